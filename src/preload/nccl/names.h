// What the program calls its communicators (ncclConfig_t.commName, which came with NCCL 2.27): for rules that ask.
#pragma once

#include <nccl.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace laconic::preload {

/// Empty: there is none, or no room for one, in a program that was built for an older NCCL, or in the nccl.h that
/// Laconic was built with.
std::string name_in(const ncclConfig_t& config);

/// Thread safe.
class NcclNames {
 public:
  /// The program has made a communicator, and calls it so on this rank. Whatever had its handle before is gone.
  void note(ncclComm_t comm, const std::string& name);
  /// NCCL splits one off `parent` and says at `place`, in its own time, which it is: until settle() or give_up() that
  /// must not go away.
  void expect(ncclComm_t parent, ncclComm_t* place, const std::string& name);
  /// NCCL has done all that it was to do with `parent`.
  void settle(ncclComm_t parent);
  /// It never will.
  void give_up(ncclComm_t parent);

  /// This rank's.
  [[nodiscard]] std::string of(ncclComm_t comm);
  /// All ranks go by rank 0's.
  void agree(ncclComm_t comm, const std::string& name);
  [[nodiscard]] std::optional<std::string> agreed(ncclComm_t comm);
  /// And what was expected of it.
  void forget(ncclComm_t comm);

 private:
  struct Names {
    std::string own;
    std::optional<std::string> agreed;
  };
  struct Expected {
    ncclComm_t parent;
    ncclComm_t* place;
    std::string name;
  };
  std::mutex mutex_;
  std::map<ncclComm_t, Names> names_;
  std::vector<Expected> expected_;
};

}  // namespace laconic::preload
