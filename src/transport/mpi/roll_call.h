// Who is there when an exchange does not come to its end: MPI does not say.
#pragma once

#include <mpi.h>

#include <optional>
#include <vector>

namespace laconic {

/// A rank that gives up tells all others. Who still waits for it hears that and answers by giving up, too; so each rank
/// learns who else is there, and none waits for what cannot come any more. Over a communicator that returns errors, and
/// with a tag that nothing else has.
class RollCall {
 public:
  RollCall(MPI_Comm comm, int tag);

  /// Whether rank `who` (MPI_ANY_SOURCE: any other) has given up, and which has. Quick.
  [[nodiscard]] std::optional<int> given_up(int who) const;

  enum class Why : int { nothing_came, another_did };
  void give_up(Why why) const;

  struct Answers {
    std::vector<int> silent;   ///< nothing was heard of these; ascending
    std::optional<int> first;  ///< gave up because nothing came
  };
  /// After giving up: waits until all others have answered, but not longer than this.
  [[nodiscard]] Answers listen(double seconds) const;

 private:
  MPI_Comm comm_;
  int tag_;
};

}  // namespace laconic
