// Compares kernels that nvcc made, translated from PTX to C++ (translate.py), with the CPU codec: frames and values
// have to be the same bytes, whatever the order of the lanes. Compiled for one kind of kernel (codec_calls.h). Prints
// what differs, and a sum.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "codec_calls.h"

namespace laconic::test {
namespace {

/// How many of the kernels give something else than the CPU.
int check(const Grid& grid, Kind kind, std::size_t count) {
  int bad = 0;
  const auto expect = [&](bool right, const char* what) {
    if (right) return;
    std::printf("%s: %s\n", what, describe(dtype, grid, kind, count).c_str());
    bad++;
  };
  const Array x = sample(dtype, kind, count);
  const Outcome of_x = encoded(x, grid);
  expect(same(of_x.frame, encoded_by_kernel(x, grid)), "encode");
  Array y(dtype, count);
  expect(decode_by_kernel(of_x.frame, grid, 1, 1, y) == 0 && decoded(x, of_x) == y, "decode");
  if (grid.lossless()) return bad;

  const Array x2 = sample(dtype, kind, count, 2);
  const Outcome of_x2 = encoded(x2, grid);
  const Outcome sum = added(x, of_x, of_x2);
  expect(same(sum.frame, added_by_kernel(count, nullptr, grid, {&of_x.frame, &of_x2.frame})), "add");
  expect(same(encode_added(x2, of_x).frame, added_by_kernel(count, &x2, grid, {&of_x.frame})), "encode_add");
  for (const u32 divisor : {1u, 2u}) {
    Array z(dtype, count);
    expect(decode_by_kernel(sum.frame, grid, 2, divisor, z) == 0 && decoded(x, sum, 1, divisor) == z,
           divisor == 1 ? "decode a sum" : "decode an average");
  }
  if (!sum_fits(grid, 4)) return bad;

  // Predictors and widths differ from operand to operand. (The CPU may refuse what the device has room for.)
  const auto at = static_cast<std::size_t>(kind);
  const Outcome other = encoded(sample(dtype, all_kinds[(at + 1) % all_kinds.size()], count), grid);
  const Outcome third = encoded(sample(dtype, all_kinds[(at + 7) % all_kinds.size()], count), grid);
  const Outcome four = summed_in_turn(nullptr, x, {of_x, other, third, of_x2});
  if (four.code == Code::ok)
    expect(same(four.frame,
                added_by_kernel(count, nullptr, grid, {&of_x.frame, &other.frame, &third.frame, &of_x2.frame})),
           "add four that are unlike");
  const Outcome three = summed_in_turn(&x2, x, {other, of_x});
  if (three.code == Code::ok)
    expect(same(three.frame, added_by_kernel(count, &x2, grid, {&other.frame, &of_x.frame})),
           "encode_add two that are unlike");
  return bad;
}

int run() {
  std::vector<Grid> grids = grids_of(dtype);
  grids.push_back(make_grid(dtype, 0.3, 1.3));
  grids.push_back(make_grid(dtype, 2e-7, 1.3));
  int bad = 0, cases = 0;
  for (const Grid& grid : grids) {
    if (dtype == DType::f64 && needs_wide_integers(grid, 1) != wide) continue;
    for (const Kind kind : all_kinds) {
      for (const std::size_t count :
           {std::size_t{1}, std::size_t{2048}, std::size_t{16500}}) {  // the last: two thread blocks
        bad += check(grid, kind, count);
        cases++;
      }
    }
  }
  std::printf("%d cases, %d bad\n", cases, bad);
  return bad == 0 ? 0 : 1;
}

}  // namespace
}  // namespace laconic::test

int main() { return laconic::test::run(); }
