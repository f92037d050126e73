// The frames that version 1 of the format must always give: one case a dtype, grid and kind of chunk. Inputs are made
// with exact arithmetic only, so that they are the same on every machine.
#pragma once

#include <string>
#include <vector>

#include "codec/slice_cases.h"

namespace laconic::test {

struct GoldenCase {
  std::string name;
  Array input;   ///< what is encoded; for sums also what decoding must be compared with
  Outcome made;  ///< the frame as this build makes it
};

/// Fields that need no library functions.
inline Array golden_input(DType t, int kind, std::size_t count, std::uint64_t seed) {
  Array a(t, count);
  Random random(seed);
  const double land = t == DType::f16 ? 0x1p15 : 0x1p100;
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(i);
    const double wave = static_cast<double>((i / 3 + seed) % 64) / 32 - 1;  // a saw
    const double noise = random.symmetric();
    switch (kind) {
      case 0:  // smooth, then flat, then noise
        a.set_value(i, i < 900 ? wave + x / 1024 : i < 1500 ? 0.75 : noise);
        break;
      case 1:  // land in runs
        a.set_value(i, is_float(t) && i / 40 % 3 == 0 ? land : wave);
        break;
      case 2:  // listed exceptions, and blocks that are stored losslessly
        a.set_value(i, wave * 4);
        if (is_float(t) && i % 200 < 3) a.set_bits(i, special_bits(t, random));
        if (i >= 640 && i < 800) a.set_value(i, noise * 0x1p12);
        break;
      case 3:
        a.set_bits(i, random.bits());
        break;
      case 4:
        a.set_value(i, 0.625);
        break;
      default:  // second differences
        a.set_value(i, x * x / 0x1p16 + noise / 0x1p12);
    }
  }
  return a;
}

inline std::vector<GoldenCase> golden_cases() {
  constexpr std::array names = {"field", "land", "exceptions", "bits", "constant", "curve"};
  std::vector<GoldenCase> cases;
  for (const DType t : all_dtypes)
    for (int kind = 0; kind < static_cast<int>(names.size()); ++kind) {
      const std::vector<double> bounds = is_float(t) ? std::vector<double>{0, 0x1p-7} : std::vector<double>{0};
      for (const double bound : bounds) {
        const Grid g = make_grid(t, bound, 8);
        const std::string name = std::string(laconic::name_of(t)) + (bound == 0 ? "_lossless_" : "_") +
                                 names[static_cast<std::size_t>(kind)];
        const std::size_t count = kind == 3 ? 300 : kind == 4 ? 5000 : 2048 + 77;
        const Array x = golden_input(t, kind, count, 1);
        cases.push_back({name, x, encoded(x, g)});
        if (g.lossless() && is_float(t)) continue;
        const Array y = golden_input(t, kind, count, 2);
        cases.push_back({name + "_sum", x, encode_added(x, added(x, cases.back().made, encoded(y, g)))});
      }
    }
  return cases;
}

}  // namespace laconic::test
