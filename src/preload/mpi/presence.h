// Whether all ranks of the program run with Laconic, and want the same of it.
#pragma once

#include <string>

namespace laconic::preload {

struct Presence {
  bool agreed = false;
  std::string why_not;  ///< on one rank only: which ranks lack it or differ, with what they say
};

/// To be called by every rank that has Laconic, right after MPI_Init. Ranks without it need do nothing, which rules out
/// any message to them: it goes by MPI_Publish_name, which asks the launcher. `wishes`: short text, the same on all
/// ranks or the answer is no. Waits up to `timeout` seconds for ranks that have not come so far.
Presence agree_on_presence(const std::string& wishes, double timeout);

}  // namespace laconic::preload
