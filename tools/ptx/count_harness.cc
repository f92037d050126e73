// Runs the kernels of one kind, translated so that they count (counted.py), over arrays in files, and prints what
// counting.h has counted: a line "run OPERATION FILE ELEMENTS", then "block NUMBER ISSUES LANES" and "access STATEMENT
// REQUESTS BYTES SECTORS PASSES". Arguments: the bound relative to the range, how many elements of each file,
// operations (encode,decode,add,encode_add,sum4), the files. What the kernels write has to be the CPU codec's.
#include <cmath>
#include <cstdio>
#include <string>

#include "codec_calls.h"
#include "counting.h"

namespace laconic::test {
namespace {

Array read_array(const char* path) {
  std::FILE* f = std::fopen(path, "rb");
  if (f == nullptr) fail(path);
  std::fseek(f, 0, SEEK_END);
  Array x(dtype, static_cast<std::size_t>(std::ftell(f)) / size_of(dtype));
  std::rewind(f);
  if (std::fread(x.data(), size_of(dtype), x.count, f) != x.count) fail(path);
  std::fclose(f);
  return x;
}

bool is_fill(double v) { return !(std::abs(v) < 1e18); }

Grid grid_of(const Array& x, double relative) {
  double low = INFINITY, high = -INFINITY;
  for (std::size_t i = 0; i < x.count; i++) {
    if (is_fill(x.value(i))) continue;
    low = std::min(low, x.value(i));
    high = std::max(high, x.value(i));
  }
  return make_grid(dtype, relative * (high - low), std::max(std::abs(low), std::abs(high)));
}

template <class F>
bool counted(const std::string& title, std::size_t count, F run) {
  for (auto& e : counting::entered) e = {};
  counting::accessed.clear();
  counting::on = true;
  const bool right = run();
  counting::on = false;
  std::printf("run %s %zu\n", title.c_str(), count);
  for (u32 b = 0; b < counting::most_blocks; b++) {
    const counting::Entered& e = counting::entered[b];
    if (e.issues != 0)
      std::printf("block %u %llu %llu\n", b, static_cast<unsigned long long>(e.issues),
                  static_cast<unsigned long long>(e.lanes));
  }
  for (const auto& [statement, a] : counting::accessed)
    std::printf("access %u %llu %llu %llu %llu\n", statement, static_cast<unsigned long long>(a.requests),
                static_cast<unsigned long long>(a.bytes), static_cast<unsigned long long>(a.sectors),
                static_cast<unsigned long long>(a.passes));
  if (!right) std::printf("wrong: %s\n", title.c_str());
  return right;
}

/// `count` of the array's elements from `first` on, and again from its beginning behind the last one; but fill values
/// stay where they are.
Array part(const Array& x, std::size_t count, std::size_t first) {
  Array y(dtype, count);
  for (std::size_t i = 0; i < count; i++) {
    const double own = x.value(i % x.count), moved = x.value((i + first) % x.count);
    y.set_value(i, is_fill(own) || is_fill(moved) ? own : moved);
  }
  return y;
}

/// The operands of sums begin one element apart: alike, as the parts of ranks are, with the same land.
bool count_file(const std::string& path, const Array& whole, double relative, std::size_t elements,
                const std::string& operations) {
  const Grid grid = grid_of(whole, relative);
  const std::string name = path.substr(path.rfind('/') + 1);
  const Array x = part(whole, elements, 0);
  const Outcome a = encoded(x, grid), b = encoded(part(whole, elements, 1), grid),
                c = encoded(part(whole, elements, 2), grid), d = encoded(part(whole, elements, 3), grid);
  bool right = true;
  const auto count = [&](const char* operation, auto run) {
    if (("," + operations + ",").find("," + std::string(operation) + ",") == std::string::npos) return;
    right &= counted(operation + (" " + name), x.count, run);
  };
  count("encode", [&] { return same(a.frame, encoded_by_kernel(x, grid)); });
  count("decode", [&] {
    Array y(dtype, x.count);
    return decode_by_kernel(a.frame, grid, 1, 1, y) == 0 && decoded(x, a) == y;
  });
  count("add",
        [&] { return same(added(x, a, b).frame, added_by_kernel(x.count, nullptr, grid, {&a.frame, &b.frame})); });
  count("encode_add", [&] { return same(encode_added(x, b).frame, added_by_kernel(x.count, &x, grid, {&b.frame})); });
  count("sum4", [&] {
    return same(summed(nullptr, x, {a, b, c, d}).frame,
                added_by_kernel(x.count, nullptr, grid, {&a.frame, &b.frame, &c.frame, &d.frame}));
  });
  return right;
}

int run(int argc, char** argv) {
  warp_met = counting::meet;
  const double relative = std::atof(argv[1]);
  const auto elements = static_cast<std::size_t>(std::atoll(argv[2]));
  bool right = true;
  for (int i = 4; i < argc; i++) right &= count_file(argv[i], read_array(argv[i]), relative, elements, argv[3]);
  return right ? 0 : 1;
}

}  // namespace
}  // namespace laconic::test

int main(int argc, char** argv) { return argc < 5 ? 2 : laconic::test::run(argc, argv); }
