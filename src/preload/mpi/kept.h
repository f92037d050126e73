// What a call was given and the program may take away before the call is made.
#pragma once

#include <mpi.h>

#include <concepts>
#include <memory>
#include <utility>
#include <vector>

#include "preload/mpi/call.h"

namespace laconic::preload {

/// A datatype among the arguments of a call: in some MPIs its handle is a number like any other.
struct GivenType {
  MPI_Datatype type;
  operator MPI_Datatype() const { return type; }  // NOLINT(google-explicit-constructor)
};

/// What a call's arguments refer to on this rank: its derived datatypes, counts and displacements. From then on the
/// call itself has these.
class Kept {
 public:
  Kept(Call& call, int rank, int size);
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept();

  /// What is to be given in place of an argument.
  template <typename T>
  [[nodiscard]] T in_place_of(T given) const {
    return given;
  }
  template <std::integral I>
  [[nodiscard]] const I* in_place_of(const I* given) const {
    return static_cast<const I*>(array(given));
  }
  [[nodiscard]] MPI_Datatype in_place_of(GivenType given) const { return type(given.type); }

 private:
  [[nodiscard]] MPI_Datatype type(MPI_Datatype given) const;
  [[nodiscard]] const void* array(const void* given) const;
  void keep(MPI_Datatype given);
  void keep(Counts& counts, int size);

  std::vector<std::pair<MPI_Datatype, MPI_Datatype>> types_;             ///< as given, as kept
  std::vector<std::pair<const void*, std::unique_ptr<char[]>>> arrays_;  ///< likewise
};

}  // namespace laconic::preload
