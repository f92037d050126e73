#include "collective/extreme.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "collective/reduction.h"

namespace laconic {
namespace {

/// a and b as they compare: floats as signed integers in their own order, which their bits are from zero upwards.
template <typename Signed>
Signed ordered(Signed bits) {
  return bits < 0 ? static_cast<Signed>(bits ^ std::numeric_limits<Signed>::max()) : bits;
}

template <typename T, typename Pick>
void combine(MutArray a, ConstArray b, Pick pick) {
  auto* to = static_cast<std::uint8_t*>(a.data);
  const auto* from = static_cast<const std::uint8_t*>(b.data);
  for (std::size_t i = 0; i < a.count; ++i) {
    T x, y;
    std::memcpy(&x, to + i * sizeof(T), sizeof(T));
    std::memcpy(&y, from + i * sizeof(T), sizeof(T));
    x = pick(x, y);
    std::memcpy(to + i * sizeof(T), &x, sizeof(T));
  }
}

template <typename T>
void integers(Op op, MutArray a, ConstArray b) {
  if (op == Op::min) return combine<T>(a, b, [](T x, T y) { return std::min(x, y); });
  combine<T>(a, b, [](T x, T y) { return std::max(x, y); });
}

/// Floats by their bits; `infinity` are those of the positive one, of which `nan` is a quiet NaN.
template <typename Signed>
void floats(Op op, MutArray a, ConstArray b, Signed infinity, Signed nan) {
  const auto pick = [=](Signed x, Signed y, bool first) {
    const auto is_nan = [=](Signed v) {
      return static_cast<Signed>(v & std::numeric_limits<Signed>::max()) > infinity;
    };
    return is_nan(x) || is_nan(y) ? nan : first ? x : y;
  };
  if (op == Op::min) {
    return combine<Signed>(a, b, [=](Signed x, Signed y) { return pick(x, y, ordered(x) < ordered(y)); });
  }
  combine<Signed>(a, b, [=](Signed x, Signed y) { return pick(x, y, ordered(x) > ordered(y)); });
}

}  // namespace

void take_extreme(Op op, MutArray a, ConstArray b) {
  switch (a.dtype) {
    case DType::f32:
      return floats<std::int32_t>(op, a, b, 0x7f800000, 0x7fc00000);
    case DType::f64:
      return floats<std::int64_t>(op, a, b, 0x7ff0000000000000, 0x7ff8000000000000);
    case DType::f16:
      return floats<std::int16_t>(op, a, b, 0x7c00, 0x7e00);
    case DType::bf16:
      return floats<std::int16_t>(op, a, b, 0x7f80, 0x7fc0);
    case DType::i32:
      return integers<std::int32_t>(op, a, b);
    case DType::i64:
      return integers<std::int64_t>(op, a, b);
    case DType::u32:
      return integers<std::uint32_t>(op, a, b);
    case DType::u64:
      return integers<std::uint64_t>(op, a, b);
  }
}

ExtremeKernel::ExtremeKernel(Op op, std::vector<ConstArray> operands, std::vector<MutArray> results, const Grid& grid,
                             int threads)
    : Kernel(std::move(operands), std::move(results)),
      op_(op),
      grid_(grid),
      threads_(threads),
      frames_(operands_, results_, grid, threads) {}

MutArray ExtremeKernel::room(Scratch& scratch, std::size_t count) const {
  scratch.resize(std::max(scratch.size(), count * element_bytes()));
  return {scratch.data(), count, grid_.dtype};
}

// A frame may store an element exactly for its neighbours' sake. Frames that are added put it on the grid first; so the
// sum with a frame of zeros holds what is the element's own, wherever blocks begin.
MutArray ExtremeKernel::on_grid(ConstArray x) {
  const MutArray values = room(own_, x.count);
  if (grid_.lossless()) {
    std::copy_n(static_cast<const std::uint8_t*>(x.data), x.bytes(), own_.begin());
    return values;
  }
  frame_.resize(frame::capacity(grid_.dtype, x.count));
  zeros_.resize(frame_.size());
  sum_.resize(frame::sum_capacity(grid_.dtype, x.count));
  std::fill_n(own_.begin(), values.bytes(), std::uint8_t{0});
  const std::size_t zeros = frame::encode(values, grid_, zeros_, threads_);
  const std::size_t size = frame::encode(x, grid_, frame_, threads_);
  const std::size_t sum =
      frame::add(frame::Bytes(frame_).first(size), frame::Bytes(zeros_).first(zeros), sum_, threads_);
  frame::decode(frame::Bytes(sum_).first(sum), values, threads_);
  return values;
}

MutArray ExtremeKernel::decoded(const Part& part, frame::Bytes message, Scratch& scratch) const {
  expect_frame(message, grid_, part.count);
  const MutArray values = room(scratch, part.count);
  frame::decode(message, values, threads_);
  return values;
}

std::size_t ExtremeKernel::encode_extreme(MutArray a, ConstArray b, frame::MutBytes out) const {
  take_extreme(op_, a, b);
  return frame::encode(a, grid_, out, threads_);
}

std::size_t ExtremeKernel::encode(const Part& part, frame::MutBytes out) {
  return frame::encode(on_grid(operand(part)), grid_, out, threads_);
}

std::size_t ExtremeKernel::encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) {
  const MutArray other = decoded(part, received, other_);
  return encode_extreme(other, on_grid(operand(part)), out);
}

std::size_t ExtremeKernel::add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) {
  const MutArray a = decoded(part, held, own_);
  return encode_extreme(a, decoded(part, received, other_), out);
}

std::size_t ExtremeKernel::add_plain(const Part& part, frame::Bytes held, ConstArray received, frame::MutBytes out) {
  const MutArray other = decoded(part, held, other_);
  return encode_extreme(other, on_grid(received), out);
}

void ExtremeKernel::keep(const Part&) { refuse_alone(); }

}  // namespace laconic
