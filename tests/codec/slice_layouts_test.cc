// Chunks of every layout that the format allows, most of which no encoder writes, and some that it just forbids, given
// to the kernels themselves: any predictor, any w and d in any block, every shape of codes and dictionaries, zero bytes
// listed as sparse ones, bits set that are not used. Memory ends where a kernel may no longer touch it. Every target
// refuses a chunk, or makes the same bytes and elements of it as the reference.
#include "codec/slice_layouts.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <new>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "codec/slice/kernel_sets.h"
#include "codec/slice_cases.h"
#include "support/sanitized.h"

namespace laconic::test::slice_layouts_test {
namespace {

using slice::ChunkBytes;
using slice::Kernels;
using slice::largest_chunk;
using slice::Params;
using slice::Predictor;
using slice::Target;

/// Memory with a page behind it that must not be touched.
class Guarded {
 public:
  Guarded() {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    usable_ = (largest_chunk + slice::write_slack + page) / page * page;
    mapped_ = usable_ + page;
    void* at = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::uint8_t*>(at);
    if (mprotect(base_ + usable_, page, PROT_NONE) != 0) ADD_FAILURE() << "no guard page";
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  /// The last bytes before the page, filled with junk.
  std::uint8_t* last(std::size_t bytes) {
    EXPECT_LE(bytes, usable_);
    std::memset(base_ + usable_ - bytes, 0x5A, bytes);
    return base_ + usable_ - bytes;
  }

 private:
  std::uint8_t* base_ = nullptr;
  std::size_t usable_ = 0;
  std::size_t mapped_ = 0;
};

constexpr int cases = sanitized ? 150 : 800;  // of each test and shape

struct Shape {
  const char* name;
  Grid grid;
  int most_operands;  ///< of a frame
  friend void PrintTo(const Shape& s, std::ostream* out) { *out << s.name; }
};

std::vector<Shape> lossy_shapes() {
  return {{"F64Wide", make_grid(DType::f64, 1e-12, 1.3), 6},
          {"F64WideInSums", make_grid(DType::f64, 1.0 / (1 << 30), 1.3), 6},
          {"F64Narrow", make_grid(DType::f64, 1e-3, 1.3), 6},
          {"F32", make_grid(DType::f32, 1e-3, 1.3), 6},
          {"F16", make_grid(DType::f16, 1e-2, 1.3), 6},
          {"Bf16", make_grid(DType::bf16, 1e-1, 1.3), 6}};
}
std::vector<Shape> summable_shapes() {
  std::vector<Shape> shapes = lossy_shapes();
  shapes.push_back({"I64Lossless", make_grid(DType::i64, 0, 0), 6});
  return shapes;
}
std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes = summable_shapes();
  shapes.push_back({"F64Lossless", make_grid(DType::f64, 0, 0), 1});
  return shapes;
}

struct Kit {
  std::string name;
  const Kernels* kernels;
};
std::vector<Kit> fast_kits() {
  std::vector<Kit> kits;
  for (const Target t : fast_targets()) {
    const OnTarget guard(t);
    kits.push_back({std::string(slice::name_of(t)), &slice::kernels()});
  }
  return kits;
}

/// A chunk and what its frame says.
struct Operand {
  Params params;
  ChunkBytes bytes;
};

/// Calls one of the kernels; returns the size of the chunk that it wrote, or why there is none.
using Write = std::function<std::size_t(const Kernels&, std::uint8_t* out)>;

class SliceLayouts : public testing::TestWithParam<Shape> {
 protected:
  [[nodiscard]] static const Grid& grid() { return GetParam().grid; }
  bool often() { return chance(random_, 50); }

  void start(int number) {
    random_ = Random(static_cast<std::uint64_t>(number));
    count_ = chance(random_, 60) ? slice::chunk_values : 1 + below(random_, often() ? 70 : slice::chunk_values);
    common_predictor_ = chance(random_, 60) ? below(random_, 3) : -1;  // residuals of the same predictor add
    common_operands_ = chance(random_, 60) ? draw_operands() : 0;      // so do frames of the same width
  }
  int draw_operands() { return often() ? 1 : 1 + below(random_, GetParam().most_operands); }
  Params draw_params() {
    const int operands = common_operands_ > 0 ? common_operands_ : draw_operands();
    return slice::params_for(grid(), static_cast<std::uint32_t>(operands));
  }
  /// With as many readable bytes behind it as fast kernels ask for, now and then with none.
  ChunkBytes place(const Buffer& chunk, Guarded& memory) {
    const std::size_t readable = chance(random_, 5) ? 0 : slice::read_slack;
    std::uint8_t* at = memory.last(chunk.size() + readable);
    std::memcpy(at, chunk.data(), chunk.size());
    return {at, chunk.size(), readable};
  }
  Operand draw_operand(Guarded& memory) {
    const Params p = draw_params();
    const auto predictor = static_cast<Predictor>(common_predictor_ < 0 ? below(random_, 3) : common_predictor_);
    return {p, place(ChunkWriter(random_, p, count_).write(predictor), memory)};
  }
  /// Elements of an array: up to the guard page, or unaligned.
  const std::uint8_t* draw_elements() {
    const Kind kind = all_kinds[random_.below(all_kinds.size())];
    const Array x = sample(grid().dtype, kind, static_cast<std::size_t>(count_), 1 + random_.below(8));
    std::uint8_t* at = elements_.last(x.size_bytes() + (often() ? 0 : random_.below(8)));
    std::memcpy(at, x.data(), x.size_bytes());
    return at;
  }
  Params array_params() {
    Params p = slice::params_for(grid(), 1);
    p.stream = often();
    return p;
  }
  std::size_t draw_capacity() { return chance(random_, 10) ? 17000 + random_.below(25000) : largest_chunk; }

  /// What the reference writes; empty if it refuses, with `size` telling why.
  static Buffer reference(std::size_t capacity, const Write& write, std::size_t& size) {
    Buffer out(capacity + slice::write_slack);
    size = write(slice::reference_kernels(), out.data());
    out.resize(size < slice::chunk_unfused ? size : 0);
    return out;
  }
  void expect_written(std::size_t capacity, std::size_t size, const Buffer& expected, const Write& write) {
    for (const Kit& kit : kits_) {
      std::uint8_t* at = out_.last(capacity + slice::write_slack);
      const std::size_t n = write(*kit.kernels, at);
      if (n == slice::chunk_unfused) continue;  // left to others
      ++fused_;
      ASSERT_EQ(n, size) << kit.name;
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), at)) << kit.name;
    }
  }
  Buffer expect_as_on_reference(std::size_t capacity, const Write& write) {
    std::size_t size = 0;
    Buffer expected = reference(capacity, write, size);
    taken_ += expected.empty() ? 0 : 1;
    expect_written(capacity, size, expected, write);
    return expected;
  }
  void expect_decoded(const Params& p, ChunkBytes chunk) {
    Array expected(grid().dtype, static_cast<std::size_t>(count_));
    const bool valid = slice::reference_kernels().decode(p, chunk, count_, expected.data());
    taken_ += valid ? 1 : 0;
    Array y = expected;
    for (const Kit& kit : kits_) {
      // Up to the guard page, or beginning anywhere in a cache line; and in either case nothing around it is written.
      const std::size_t before = 64;
      const std::size_t behind = often() ? 0 : random_.below(80);
      std::uint8_t* around = out_.last(before + y.size_bytes() + behind);
      std::uint8_t* at = around + before;
      ASSERT_EQ(kit.kernels->decode(p, chunk, count_, at), valid) << kit.name;
      std::memcpy(y.data(), at, y.size_bytes());
      std::uint8_t* end = at + y.size_bytes();
      const auto junk = [](std::uint8_t byte) { return byte == 0x5A; };
      ASSERT_TRUE(std::all_of(around, at, junk) && std::all_of(end, end + behind, junk)) << kit.name;
      ASSERT_TRUE(!valid || (p.divisor == 1 ? y == expected : equal_but_for_nans(y, expected))) << kit.name;
    }
  }
  /// The payload of a NaN that is divided is the processor's business.
  static bool equal_but_for_nans(const Array& a, const Array& b) {
    for (std::size_t i = 0; i < a.count; ++i)
      if (a.bits(i) != b.bits(i) && !(std::isnan(a.value(i)) && std::isnan(b.value(i)))) return false;
    return true;
  }
  /// Lets each case run by itself, from a seed of its own, until one fails.
  void for_each_case(const std::function<void()>& run) {
    for (int i = 0; i < cases; ++i) {
      start(i);
      SCOPED_TRACE("case " + std::to_string(i));
      run();
      if (HasFailure()) return;
    }
    EXPECT_GT(taken_, cases / 4) << "nothing was tested";
  }

  Random random_{0};
  int count_ = 0;
  int common_predictor_ = -1;  ///< of a case's chunks; -1: each has its own
  int common_operands_ = 0;    ///< of their frames; 0: each has its own
  int taken_ = 0;              ///< chunks that the reference did not refuse
  int fused_ = 0;              ///< what fast kernels wrote
  std::vector<Kit> kits_ = fast_kits();
  std::array<Guarded, 5> chunks_;
  Guarded elements_;
  Guarded out_;
};

TEST_P(SliceLayouts, ChunksDecodeAsOnTheReference) {
  for_each_case([&] {
    const Operand a = draw_operand(chunks_[0]);
    Params p = a.params;
    if (!grid().lossless() && chance(random_, 30)) p = slice::params_for(grid(), p.operands, 3);
    p.stream = often();
    expect_decoded(p, a.bytes);
  });
}

TEST_P(SliceLayouts, ElementsEncodeAsOnTheReferenceAndDecode) {
  for_each_case([&] {
    const std::uint8_t* x = draw_elements();
    const Params p = array_params();
    const Buffer chunk =
        expect_as_on_reference(slice::chunk_capacity(p.shape.element_bytes),
                               [&](const Kernels& k, std::uint8_t* out) { return k.encode(p, x, count_, out); });
    if (!HasFailure()) expect_decoded(p, place(chunk, chunks_[0]));
  });
}

class SliceLayoutSums : public SliceLayouts {
 protected:
  [[nodiscard]] static Params sum_params(std::uint32_t operands) { return slice::params_for(grid(), operands); }

  /// x (null: none) and the terms one after another on the reference.
  Buffer in_turn(const Params& px, const std::uint8_t* x, const std::vector<Operand>& terms, std::size_t& size) {
    const Kernels& k = slice::reference_kernels();
    Operand sum = x != nullptr ? Operand{px, {}} : terms[0];
    Buffer held;
    for (std::size_t i = x != nullptr ? 0 : 1; i < terms.size(); ++i) {
      const Operand& b = terms[i];
      const Params p = sum_params(sum.params.operands + b.params.operands);
      Buffer next = reference(
          largest_chunk,
          [&](const Kernels&, std::uint8_t* out) {
            return x != nullptr && i == 0
                       ? k.encode_add(p, px, x, b.params, b.bytes, count_, out, largest_chunk)
                       : k.add(p, sum.params, sum.bytes, b.params, b.bytes, count_, out, largest_chunk);
          },
          size);
      if (next.empty()) return {};
      held = std::move(next);
      sum = {p, {held.data(), held.size(), 0}};
    }
    return held;
  }
};

TEST_P(SliceLayoutSums, ChunksAddAsOnTheReference) {
  for_each_case([&] {
    const Operand a = draw_operand(chunks_[0]);
    const Operand b = chance(random_, 20) ? a : draw_operand(chunks_[1]);
    const Params p = sum_params(a.params.operands + b.params.operands);
    const std::size_t capacity = draw_capacity();
    expect_as_on_reference(capacity, [&](const Kernels& k, std::uint8_t* out) {
      return k.add(p, a.params, a.bytes, b.params, b.bytes, count_, out, capacity);
    });
  });
}

TEST_P(SliceLayoutSums, ElementsAddAsOnTheReference) {
  for_each_case([&] {
    const Operand b = draw_operand(chunks_[0]);
    const std::uint8_t* x = draw_elements();
    const Params px = array_params();
    const Params p = sum_params(1 + b.params.operands);
    const std::size_t capacity = draw_capacity();
    expect_as_on_reference(capacity, [&](const Kernels& k, std::uint8_t* out) {
      return k.encode_add(p, px, x, b.params, b.bytes, count_, out, capacity);
    });
  });
}

TEST_P(SliceLayoutSums, SumsOfManyAreAsOneAfterAnother) {
  for_each_case([&] {
    std::vector<Operand> operands;
    std::vector<slice::Term> terms;
    const bool local = often();
    std::uint32_t arrays = local ? 1 : 0;
    const std::size_t n = 2 + random_.below(chunks_.size() - 1);
    for (std::size_t i = 0; i < n; ++i) {
      operands.push_back(draw_operand(chunks_[i]));
      arrays += operands.back().params.operands;
    }
    for (const Operand& o : operands) terms.push_back({&o.params, o.bytes});
    const std::uint8_t* x = local ? draw_elements() : nullptr;
    const Params px = array_params();
    const Params p = sum_params(arrays);
    std::size_t size = 0;
    const Buffer expected = in_turn(px, x, operands, size);
    taken_ += expected.empty() ? 0 : 1;
    expect_written(largest_chunk, size, expected, [&](const Kernels& k, std::uint8_t* out) {
      return k.sum(p, local ? &px : nullptr, x, terms, count_, out, largest_chunk);
    });
  });
  EXPECT_TRUE(fused_ > 0 || grid().lossless()) << "nothing was summed at once";
}

/// Operands that have fill values in the same places, as fields of one ocean have; or in nearly the same.
class SliceLandSums : public SliceLayoutSums {
 protected:
  void draw_land() {
    land_.assign(static_cast<std::size_t>(count_), false);
    const std::size_t runs = random_.below(6);
    for (std::size_t r = 0; r < runs; ++r) {
      const std::size_t from = random_.below(land_.size());
      const std::size_t to = std::min(land_.size(), from + 1 + random_.below(200));
      std::fill(land_.begin() + static_cast<std::ptrdiff_t>(from), land_.begin() + static_cast<std::ptrdiff_t>(to),
                true);
    }
    fill_ = draw_fill();
    shift_ = random_.symmetric();
    kind_ = often() ? Kind::smooth : all_kinds[random_.below(2)];
  }
  /// Large ones, one whose sums with others are not exact, one that is on most grids, none at all.
  double draw_fill() {
    constexpr std::array fills = {9.96e36, -32768.0, 1e30, 0.5, std::numeric_limits<double>::quiet_NaN()};
    return grid().dtype == DType::f16 ? 60000.0 : fills[random_.below(fills.size())];
  }
  Array draw_field() {
    Array x = sample(grid().dtype, kind_, static_cast<std::size_t>(count_), 1 + random_.below(8));
    const double fill = chance(random_, 10) ? draw_fill() : fill_;
    for (std::size_t i = 0; i < x.count; ++i)
      if (land_[i]) x.set_value(i, fill);
    if (chance(random_, 15)) x.set_value(random_.below(x.count), fill);    // an island
    if (chance(random_, 15)) x.set_value(random_.below(x.count), shift_);  // a lake, where there was land
    return x;
  }
  /// Other residuals, under marks too, and other marks.
  void tamper(Buffer& chunk) {
    for (std::size_t i = 1 + random_.below(3); i > 0 && chunk.size() > 16; --i)
      chunk[chunk.size() - 1 - random_.below(std::min<std::size_t>(chunk.size() - 8, 100))] ^=
          static_cast<std::uint8_t>(1U << random_.below(8));
  }
  /// Encoded by the reference, or a sum of two such.
  Operand draw_encoded(Guarded& memory, bool tampered = false) {
    const Params one = slice::params_for(grid(), 1);
    const auto encode = [&] {
      const Array x = draw_field();
      Buffer chunk(slice::chunk_capacity(one.shape.element_bytes) + slice::write_slack);
      chunk.resize(slice::reference_kernels().encode(one, x.data(), count_, chunk.data()));
      return chunk;
    };
    Buffer first = encode();
    if (tampered) tamper(first);
    if (tampered || chance(random_, 70)) return {one, place(first, memory)};
    const Buffer second = encode();
    const Params two = sum_params(2);
    std::size_t size = 0;
    const Buffer sum = reference(
        largest_chunk,
        [&](const Kernels& k, std::uint8_t* out) {
          return k.add(two, one, {first.data(), first.size(), 0}, one, {second.data(), second.size(), 0}, count_, out,
                       largest_chunk);
        },
        size);
    return {two, place(sum, memory)};
  }

  std::vector<bool> land_;
  double fill_ = 0;
  double shift_ = 0;
  Kind kind_ = Kind::smooth;
};

TEST_P(SliceLandSums, AreAsOneAfterAnotherOnTheReference) {
  for_each_case([&] {
    draw_land();
    std::vector<Operand> operands;
    std::vector<slice::Term> terms;
    const bool local = often();
    std::uint32_t arrays = local ? 1 : 0;
    const std::size_t n = (local ? 1 : 2) + random_.below(3);
    // A chunk that no encoder writes has the same places as itself.
    const bool repeated = chance(random_, 40);
    for (std::size_t i = 0; i < n; ++i) {
      if (repeated && i > 0)
        operands.push_back(operands[0]);
      else
        operands.push_back(!repeated ? draw_encoded(chunks_[i])
                           : often() ? draw_operand(chunks_[0])
                                     : draw_encoded(chunks_[0], true));
      arrays += operands.back().params.operands;
    }
    for (const Operand& o : operands) terms.push_back({&o.params, o.bytes});
    const Array field = draw_field();
    const std::uint8_t* x = local ? field.data() : nullptr;
    const Params px = array_params();
    const Params p = sum_params(arrays);
    std::size_t size = 0;
    const Buffer expected = in_turn(px, x, operands, size);
    taken_ += expected.empty() ? 0 : 1;
    const Operand& first = operands[0];
    expect_written(largest_chunk, size, expected, [&](const Kernels& k, std::uint8_t* out) {
      if (local && n == 1) return k.encode_add(p, px, x, first.params, first.bytes, count_, out, largest_chunk);
      if (n == 2 && !local)
        return k.add(p, first.params, first.bytes, operands[1].params, operands[1].bytes, count_, out, largest_chunk);
      return k.sum(p, local ? &px : nullptr, x, terms, count_, out, largest_chunk);
    });
  });
}

std::string name_of_shape(const testing::TestParamInfo<Shape>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Shapes, SliceLayouts, testing::ValuesIn(all_shapes()), name_of_shape);
INSTANTIATE_TEST_SUITE_P(Shapes, SliceLayoutSums, testing::ValuesIn(summable_shapes()), name_of_shape);
INSTANTIATE_TEST_SUITE_P(Shapes, SliceLandSums, testing::ValuesIn(lossy_shapes()), name_of_shape);

}  // namespace
}  // namespace laconic::test::slice_layouts_test
