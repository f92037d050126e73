// The kernels for GPUs, emulated: any elements on any grid give the CPU's bytes, and its values back.
#include "fuzz/field.h"
#include "gpu/emulated.h"

namespace laconic::test {
namespace {

constexpr std::size_t most_elements = 2048 + 300;

void require_frame(const Emulated& got, const Outcome& expected, const char* what) {
  require(expected.code == Code::ok && got.faults == 0 && got.frame == expected.frame, what, "emulated GPU");
}

void require_values(const Outcome& f, const Grid& g, const Array& like, std::uint32_t operands) {
  for (const std::uint32_t divisor : {1U, 3U}) {
    if (divisor != 1 && g.lossless()) continue;
    Array y(like.dtype, like.count);
    require(emulated_decode(f.frame, g, operands, divisor, y) == 0, "a frame is refused", "emulated GPU");
    require(y == decoded(like, f, 1, divisor), "decoding differs", "emulated GPU");
  }
}

void fuzz(Source s) {
  constexpr DType floats[] = {DType::f32, DType::f64, DType::f16, DType::bf16};
  const DType t = floats[s.next<std::uint8_t>() % 4];
  const Grid g = next_grid(s, t);
  const std::size_t count = s.next<std::uint16_t>() % most_elements;
  const LaneOrder order(static_cast<int>(count), count % 3 == 0 ? 31 : 13);
  const Array x = next_field(s, t, g, count), y = next_field(s, t, g, count);
  const Outcome a = encoded(x, g), b = encoded(y, g);
  require_frame(emulated_encode(x, g), a, "encoding differs");
  require_values(a, g, x, 1);
  if (!sum_fits(g, 3)) return;
  const Outcome sum = added(x, a, b), three = summed(&x, x, {a, b});
  require_frame(emulated_sum(x, nullptr, {{&a.frame, g, 1}, {&b.frame, g, 1}}), sum, "a sum differs");
  require_values(sum, g, x, 2);
  require_frame(emulated_sum(x, &x, {{&b.frame, g, 1}}), encode_added(x, b), "elements and a frame differ");
  require_frame(emulated_sum(x, &x, {{&a.frame, g, 1}, {&b.frame, g, 1}}), three, "elements and two frames differ");
}

}  // namespace
}  // namespace laconic::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  laconic::test::fuzz({data, size});
  return 0;
}
