#include "preload/mpi/array.h"

#include <cstring>

#include "core/error.h"
#include "preload/mpi/datatypes.h"
#include "preload/mpi/device_memory.h"

namespace laconic::preload {
namespace {

void require(int code) {
  if (code != MPI_SUCCESS)
    throw Error(Code::transport,
                "MPI could not copy the elements of a derived datatype, or of an array in a GPU's memory");
}

}  // namespace

PlainArray::PlainArray(const Side& side, DType dtype, int size) : side_(side), dtype_(dtype) {
  const TypeInfo& type = info_of(side.type);
  numbers_ = type.numbers;
  extent_ = type.extent;
  const int blocks = side.all ? size : 1;
  bool packed = type.dense;
  MPI_Count elements = 0;
  for (int b = 0; b < blocks; ++b) {
    const MPI_Count n = side.counts[b];
    packed = packed && (n == 0 || !side.displacements.differ() || side.displacements[b] == elements);
    first_.push_back(total_);
    counts_.push_back(static_cast<std::size_t>(n) * numbers_);
    total_ += counts_.back();
    elements += n;
  }
  if (total_ == 0 || (packed && !is_device_memory(reinterpret_cast<std::uintptr_t>(side.buffer)))) {
    data_ = const_cast<void*>(side.buffer);  // what is only sent is only read
  } else {
    make_copy();
  }
}

void PlainArray::make_copy() {
  const std::size_t words = (total_ * size_of(dtype_) + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
  copy_ = std::make_unique_for_overwrite<std::uint64_t[]>(words);
  data_ = copy_.get();
}

void PlainArray::detach() {
  if (!direct() || total_ == 0) return;
  const void* const original = data_;
  make_copy();
  std::memcpy(data_, original, total_ * size_of(dtype_));
}

MutArray PlainArray::block(int i) const {
  const auto b = static_cast<std::size_t>(i);
  if (counts_[b] == 0) return {nullptr, 0, dtype_};
  return {static_cast<char*>(data_) + first_[b] * size_of(dtype_), counts_[b], dtype_};
}

void* PlainArray::place(int i) const {
  const auto elements = side_.displacements.differ()
                            ? static_cast<MPI_Aint>(side_.displacements[i])
                            : static_cast<MPI_Aint>(first_[static_cast<std::size_t>(i)] / numbers_);
  // Not by pointer arithmetic: MPI_BOTTOM may be null.  NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(side_.buffer) +
                                 static_cast<std::uintptr_t>(elements * extent_));
}

void PlainArray::load(int i) const {
  if (direct() || counts_[static_cast<std::size_t>(i)] == 0) return;
  require(gather_numbers(place(i), side_.counts[i], side_.type, block(i).data));
}

void PlainArray::load() const {
  for (int i = 0; i < static_cast<int>(counts_.size()); ++i) load(i);
}

void PlainArray::store() const {
  if (direct()) return;
  for (int i = 0; i < static_cast<int>(counts_.size()); ++i) {
    if (counts_[static_cast<std::size_t>(i)] != 0)
      require(scatter_numbers(block(i).data, place(i), side_.counts[i], side_.type));
  }
}

void PlainArray::store_front(std::size_t numbers) const {
  if (direct() || numbers == 0) return;
  require(scatter_numbers(data_, place(0), static_cast<MPI_Count>(numbers / numbers_), side_.type));
}

}  // namespace laconic::preload
