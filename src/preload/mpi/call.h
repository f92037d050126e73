// One call of a collective as the program made it, in whatever form; and making it with Laconic.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "collective/collective.h"
#include "collective/communicator.h"
#include "core/dtype.h"
#include "core/op.h"

namespace laconic::preload {

class Group;

/// A count for all ranks or one for each, as int or as MPI_Count. Owns nothing. Displacements are the same. An array
/// that is null is one negative count.
class Counts {
  static_assert(sizeof(long) == sizeof(std::int64_t), "MPI_Count and MPI_Aint are one of these");

 public:
  Counts() = default;
  Counts(MPI_Count one) : one_(one) {}                   // NOLINT(google-explicit-constructor)
  Counts(const int* each) : Counts(each, false) {}       // NOLINT(google-explicit-constructor)
  Counts(const long* each) : Counts(each, true) {}       // NOLINT(google-explicit-constructor)
  Counts(const long long* each) : Counts(each, true) {}  // NOLINT(google-explicit-constructor)
  /// What it was made of; null for one count.
  [[nodiscard]] const void* array() const { return each_; }
  /// Of that array.
  [[nodiscard]] std::size_t bytes(int size) const {
    return static_cast<std::size_t>(size) * (wide_ ? sizeof(std::int64_t) : sizeof(int));
  }
  /// The same, where that array has been copied to.
  [[nodiscard]] Counts at(const void* copy) const {
    Counts moved = *this;
    moved.each_ = copy;
    return moved;
  }
  [[nodiscard]] bool differ() const { return each_ != nullptr; }
  [[nodiscard]] MPI_Count operator[](int rank) const {
    if (each_ == nullptr) return one_;
    return wide_ ? static_cast<const std::int64_t*>(each_)[rank] : static_cast<const int*>(each_)[rank];
  }

  [[nodiscard]] bool missing() const { return each_ == nullptr && one_ < 0; }

 private:
  Counts(const void* each, bool wide) : each_(each), wide_(wide), one_(each == nullptr ? -1 : 0) {}

  const void* each_ = nullptr;
  bool wide_ = false;
  MPI_Count one_ = 0;
};

/// What a call sends or receives: blocks of elements.
struct Side {
  const void* buffer = nullptr;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  Counts counts;         ///< elements of each block
  Counts displacements;  ///< of blocks that have any, in elements; otherwise one block follows the other
  bool all = false;      ///< a block for each rank; else one
};

/// What one rank has, and what there is of all.
inline Side one_block(const void* buffer, MPI_Datatype type, Counts count) { return {buffer, type, count, {}, false}; }
inline Side all_blocks(const void* buffer, MPI_Datatype type, Counts counts, Counts displacements = {}) {
  return {buffer, type, counts, displacements, true};
}

struct Call {
  Collective collective = Collective::allreduce;
  MPI_Comm comm = MPI_COMM_NULL;
  Side send{};
  Side recv{};
  MPI_Op op = MPI_OP_NULL;
  int root = 0;
  /// Ranks know only their own counts: what is served must be agreed on (gatherv, scatterv, alltoallv).
  bool irregular = false;
  /// The communicator is none: what MPI said when it was asked about it, and had called its error handlers (after which
  /// MPICH 5 says MPI_SUCCESS). So the call is over.
  std::optional<int> refused{};
  Group* left_alone_over = nullptr;  ///< of the communicator, where the call could be served, but for what it is
};

/// What all ranks know of a call when they decide whether it is served.
struct Shape {
  DType dtype = DType::f32;
  Op op = Op::none;
  std::uint64_t bytes = 0;  ///< of the largest array that any rank has
};

/// Of a regular call. The same on every rank, since signatures and counts must be. Nothing: not for Laconic.
std::optional<Shape> shape_of(const Call& call, int rank, int size);

/// Bytes that this rank can tell at once: at most those of the shape. For irregular calls everything.
std::uint64_t bytes_at_a_glance(const Call& call, int rank, int size);
/// The same where rank and size are not known yet; asks MPI for those that matter, and notes if it refuses. Everything
/// too where an allgather's counts are those of another group.
std::uint64_t bytes_at_a_glance(Call& call);

/// The class of MPI's error where one buffer is used twice, by one type, and MPI wants MPI_IN_PLACE; MPI_SUCCESS: it is
/// not, or MPI lets it pass, as Open MPI does in all but an allreduce and at the root of a reduce. MPICH's own rule
/// (4 and 5), since who is refused waits for nobody.
int alias_error(const Call& call, int rank, int size);

/// Whether MPI refuses an irregular call at once for what this rank gives: counts, types, places or the root are none.
/// (Of others there is no shape then.)
bool is_refused(const Call& call, int rank, int size);

/// What one rank has to say of an irregular call, and what all of them make of it: all ranks' words, in rank order.
struct Word {
  std::uint64_t bytes = 0;  ///< of its part, or for an alltoall of its larger array
  std::uint8_t dtype = 0;   ///< 0: it has no elements
  std::uint8_t refused = 0;
  std::uint8_t turn = 0;  ///< Communicator::turn()
  std::uint8_t news = 0;  ///< Asking::take_news()
};
Word word_of(const Call& call, int rank, int size);
/// Bytes of this rank's part of an irregular call, for a guess: 0 where it is in place.
std::uint64_t bytes_of_part(const Call& call, int rank, int size);
std::optional<Shape> shape_of(const Word* words, int size);

/// One side or both.
class Sides {
 public:
  void add(const Side& side) { each_[count_++] = &side; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] const Side* const* begin() const { return each_.data(); }
  [[nodiscard]] const Side* const* end() const { return begin() + count_; }

 private:
  std::array<const Side*, 2> each_{};
  std::size_t count_ = 0;
};
/// The sides that mean something on this rank: all but those in place, where MPI has that, and those of interest at the
/// root only.
Sides sides_of(const Call& call, int rank);

/// Makes the call over `comm`, which has the ranks of call.comm. Layouts that are no plain arrays are copied to such
/// before and from them afterwards. Throws Error.
Report make(const Call& call, const Shape& shape, Communicator& comm, const Options& options);

}  // namespace laconic::preload
