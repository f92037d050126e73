// One side of a call as a plain array in the host's memory: the program's own where that is one, a copy elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/array.h"
#include "preload/mpi/call.h"

namespace laconic::preload {

class PlainArray {
 public:
  /// `size`: ranks. A side without elements has any type.
  PlainArray(const Side& side, DType dtype, int size);

  /// Whether data() is the program's own memory.
  [[nodiscard]] bool direct() const { return copy_ == nullptr; }
  [[nodiscard]] MutArray data() const { return {data_, total_, dtype_}; }
  /// Numbers of each block, and all of them.
  [[nodiscard]] const std::vector<std::size_t>& counts() const { return counts_; }
  [[nodiscard]] MutArray block(int i) const;

  /// From the program's memory to the copy, and back: all blocks or one. Nothing where there is no copy. Throws
  /// Error(transport) where MPI cannot.
  void load() const;
  void load(int i) const;
  void store() const;
  /// Only the first `numbers`, whole elements of the type.
  void store_front(std::size_t numbers) const;
  /// Makes a copy even of what is a plain array, with what is in it.
  void detach();

 private:
  void make_copy();
  [[nodiscard]] void* place(int i) const;

  const Side side_;
  DType dtype_;
  std::size_t numbers_ = 0;  ///< of one element
  MPI_Aint extent_ = 0;
  std::size_t total_ = 0;
  std::vector<std::size_t> counts_, first_;
  void* data_ = nullptr;
  std::unique_ptr<std::uint64_t[]> copy_;
};

}  // namespace laconic::preload
