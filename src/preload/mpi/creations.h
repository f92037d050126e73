// What makes communicators in this process, so that Laconic makes its own when nothing else does. Open MPI (4 and 5)
// makes one at a time, first that which is made from the communicator with the lowest number: what Laconic makes from a
// new one would wait for what another thread, or an MPI_Comm_idup() that nobody waits for yet, makes from an old one,
// and ranks that have these in different orders would wait for each other for ever. MPICH needs nothing of this.
#pragma once

#include <mpi.h>

namespace laconic::preload {

/// Whether MPI is such a one.
#ifdef OPEN_MPI
inline constexpr bool makes_one_at_a_time = true;
#else
inline constexpr bool makes_one_at_a_time = false;
#endif

/// While there is one, the program makes a communicator by a call that blocks. Begins when Laconic makes none.
class Creation {
 public:
  Creation();
  ~Creation();
  Creation(const Creation&) = delete;
  Creation& operator=(const Creation&) = delete;
};

/// The program's call that begins MPI_Comm_idup(). When what it makes is there only the program knows, and, when it
/// calls over that or frees it, Laconic.
class Duplication {
 public:
  Duplication();
  ~Duplication();
  Duplication(const Duplication&) = delete;
  Duplication& operator=(const Duplication&) = delete;
  /// What there will be; without this, nothing.
  void makes(MPI_Comm made) { made_ = made; }
  /// The program calls over this one, which need not be one of them, or frees it.
  static void is_over(MPI_Comm comm);

 private:
  MPI_Comm made_ = MPI_COMM_NULL;
};

/// While there is one that was granted, no other of these begins. Not granted where one is under way. Waits for nobody;
/// who has it must not wait for ranks that are not there yet.
class OwnCreation {
 public:
  OwnCreation();
  ~OwnCreation();
  OwnCreation(const OwnCreation&) = delete;
  OwnCreation& operator=(const OwnCreation&) = delete;
  [[nodiscard]] bool is_granted() const { return granted_; }

 private:
  bool granted_;
};

}  // namespace laconic::preload
