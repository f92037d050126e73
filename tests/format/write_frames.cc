// Writes small frames of every kind into a folder, with what the library decodes from them:
//   NAME.frame      the frame
//   NAME.by1.out    its elements as the library decodes them; .by3.out: divided by 3, for frames that have a step
//   NAME.in         the elements that were encoded, for frames of one operand
//   NAME.refused    in place of the above: the library does not accept it
// format_document_test.py compares them with what docs/format.md says.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/half.h"
#include "frame/frame.h"

namespace {

using laconic::DType;
using laconic::Grid;
using Bytes = std::vector<std::uint8_t>;
using Values = std::vector<double>;

std::string folder;

void write_file(const std::string& name, const Bytes& bytes) {
  std::ofstream file(folder + "/" + name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + folder + "/" + name);
}

template <class T>
void append(Bytes& b, T v) {
  const std::size_t at = b.size();
  b.resize(at + sizeof v);
  std::memcpy(b.data() + at, &v, sizeof v);
}

/// The values as elements of the type. Integers: v is truncated to 64 bits and cut.
Bytes elements(DType t, const Values& values) {
  Bytes b;
  for (const double v : values) {
    switch (t) {
      case DType::f64:
        append(b, v);
        break;
      case DType::f32:
        append(b, static_cast<float>(v));
        break;
      case DType::f16:
        append(b, laconic::f16_of_f32(static_cast<float>(v)));
        break;
      case DType::bf16:
        append(b, laconic::bf16_of_f32(static_cast<float>(v)));
        break;
      case DType::i32:
      case DType::u32:
        append(b, static_cast<std::uint32_t>(static_cast<std::int64_t>(v)));
        break;
      case DType::i64:
      case DType::u64:
        append(b, static_cast<std::uint64_t>(static_cast<std::int64_t>(v)));
        break;
    }
  }
  return b;
}

laconic::ConstArray view(DType t, const Bytes& b) { return {b.data(), b.size() / laconic::size_of(t), t}; }

Bytes encode(const Grid& grid, const Bytes& x) {
  const auto array = view(grid.dtype, x);
  Bytes out(laconic::frame::capacity(grid.dtype, array.count));
  out.resize(laconic::frame::encode(array, grid, out));
  return out;
}

void save(const std::string& name, const Bytes& frame) {
  write_file(name + ".frame", frame);
  const auto header = laconic::frame::check(frame);
  for (const std::uint32_t divisor : {1U, 3U}) {
    if (divisor > 1 && header.grid.lossless()) continue;
    Bytes out(header.count * laconic::size_of(header.grid.dtype));
    laconic::frame::decode(frame, {out.data(), header.count, header.grid.dtype}, 1, divisor);
    write_file(name + ".by" + std::to_string(divisor) + ".out", out);
  }
}

void save_encoded(const std::string& name, const Grid& grid, const Values& values) {
  const Bytes x = elements(grid.dtype, values);
  write_file(name + ".in", x);
  save(name, encode(grid, x));
}

std::mt19937 random_bits(20240229);
double random_unit() { return random_bits() / 4294967296.0; }

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

Values made(std::size_t n, const std::function<double(std::size_t)>& f) {
  Values v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = f(i);
  return v;
}
Values smooth(std::size_t n) {
  return made(n, [](std::size_t i) { return 40 * std::sin(static_cast<double>(i) * 0.004); });
}
Values walk(std::size_t n) {
  double at = 3;
  return made(n, [&](std::size_t) { return at += random_unit() - 0.5; });
}
Values noise(std::size_t n) {
  return made(n, [](std::size_t) { return 100 + 20 * random_unit(); });
}
/// Blocks of `kinds` different amplitudes, so that their codes differ.
Values amplitudes(std::size_t n, std::size_t kinds) {
  return made(n, [&](std::size_t i) {
    const auto k = static_cast<int>(i / 64 % kinds);
    return (random_unit() - 0.5) * std::ldexp(1.0, k);
  });
}
Values with_land(Values v, double land) {
  for (std::size_t i = 0; i < v.size(); ++i)
    if (i % 701 > 300 && i % 701 < 610) v[i] = land;
  return v;
}
/// A few values that no grid holds, all different; and from `dense` on, whole blocks of them.
Values with_outliers(Values v, double scale, std::size_t dense) {
  for (std::size_t i = 5; i < v.size(); i += 131) v[i] = scale * (1 + static_cast<double>(i));
  for (std::size_t i = dense; i < std::min(dense + 150, v.size()); ++i)
    v[i] = scale * (2 + static_cast<double>(i) / 64);
  return v;
}

Grid grid(DType t, double step, int qbits) { return {.dtype = t, .step = step, .bound = step / 2, .qbits = qbits}; }

/// A step with a full significand, so that every product is rounded.
Grid odd_grid(DType t, double step, int qbits) {
  return {.dtype = t, .step = static_cast<double>(static_cast<float>(step)), .bound = step * 0.51, .qbits = qbits};
}

const std::vector<DType> float_types = {DType::f32, DType::f64, DType::f16, DType::bf16};
const std::vector<DType> integer_types = {DType::i32, DType::i64, DType::u32, DType::u64};

std::string label(DType t) { return std::string(laconic::name_of(t)); }

void lossless_frames() {
  for (std::uint8_t t = 1; t <= 8; ++t) {
    const auto type = static_cast<DType>(t);
    const Grid exact{.dtype = type};
    const double scale = laconic::is_float(type) ? 1 : 1000;
    Values v = walk(2500);
    for (double& x : v) x *= scale;
    save_encoded("lossless_walk_" + label(type), exact, v);
    Bytes wild;
    for (std::size_t i = 0; i < 2100 * laconic::size_of(type); ++i)
      wild.push_back(static_cast<std::uint8_t>(random_bits() >> 7));
    write_file("lossless_wild_" + label(type) + ".in", wild);
    save("lossless_wild_" + label(type), encode(exact, wild));
    Bytes tamed = elements(type, made(2048, [](std::size_t) { return 7.0; }));
    std::memcpy(tamed.data() + 640 * laconic::size_of(type), wild.data(), 40 * laconic::size_of(type));
    write_file("lossless_wide_" + label(type) + ".in", tamed);
    save("lossless_wide_" + label(type), encode(exact, tamed));
    save_encoded("lossless_constant_" + label(type), exact, made(70, [](std::size_t) { return -1e6; }));
  }
  save_encoded("lossless_special_f32", Grid{.dtype = DType::f32},
               {0.0, -0.0, nan, -nan, infinity, -infinity, 1e-42, 3});
}

void grid_frames() {
  for (const DType t : float_types) {
    const std::string n = label(t);
    const Grid fine = odd_grid(t, 0.0623, t == DType::f64 ? 50 : 20);
    const Grid narrow = grid(t, 0.0625, 14);
    save_encoded("smooth_" + n, fine, smooth(4100));
    save_encoded("walk_" + n, narrow, walk(2049));
    save_encoded("noise_" + n, narrow, noise(4096));
    save_encoded("made_grid_" + n, laconic::make_grid(t, 0.1, 130), noise(2111));
    save_encoded("made_open_grid_" + n, laconic::make_grid(t, 0.1, infinity), walk(2111));
    save_encoded("constant_" + n, narrow, made(3000, [](std::size_t) { return 2.5; }));
    save_encoded("constant_far_" + n, fine, made(3000, [](std::size_t) { return 40000.0; }));
    save_encoded("fill_" + n, narrow, with_land(smooth(4096 + 1000), 3e4));
    save_encoded("only_fill_" + n, narrow, made(2100, [](std::size_t) { return nan; }));
    save_encoded("listed_" + n, narrow, with_outliers(walk(2500), 700, 9999));
    save_encoded("lossless_blocks_" + n, narrow, with_outliers(smooth(2500), 1024, 640));
    save_encoded("lossless_blocks_wide_" + n, fine, with_outliers(smooth(2500), std::ldexp(1.0, 50), 0));
    save_encoded("raw_blocks_" + n, narrow, with_outliers(amplitudes(2048, 60), 1e18, 1000));
    save_encoded("raw_" + n, narrow, amplitudes(2300, 90));
    save_encoded("special_" + n, narrow,
                 {0.0, -0.0, nan, infinity, -infinity, 1023.9, 1024.0, -1024.0, -1024.1, 1e-42});
    for (const std::size_t kinds : {2U, 3U, 5U, 9U, 13U, 20U})
      save_encoded("codes_" + std::to_string(kinds) + "_" + n, grid(t, 0.0078125, t == DType::f64 ? 30 : 22),
                   amplitudes(2048, kinds));
    for (const std::size_t count : {0U, 1U, 63U, 64U, 65U, 2047U, 2048U})
      save_encoded("count_" + std::to_string(count) + "_" + n, narrow, walk(count));
  }
  save_encoded("far_f64", odd_grid(DType::f64, 0.0623, 25), noise(70));
  save_encoded("far_constant_f64", odd_grid(DType::f64, 0.0623, 25), Values(70, 1e6));
  save_encoded("wide_codes_f64", grid(DType::f64, 0x1p-20, 50), with_outliers(smooth(2100), 700, 640));
}

/// Values on either side of each threshold of the encoder.
void edge_frames() {
  const Grid g = grid(DType::f32, 0.0625, 14);
  Values window(200, 1.0);
  const Values edges = {-1024.0, -1024.015625, -1024.0157, -1024.03, 1023.9375, 1023.96, 1023.96875, 1024.0};
  std::copy(edges.begin(), edges.end(), window.begin() + 20);
  save_encoded("edge_window", g, window);
  Values bound(200, 0.0);
  bound[50] = static_cast<double>(0.1F);
  save_encoded("edge_bound", {.dtype = DType::f32, .step = 0.25, .bound = 0.1, .qbits = 10}, bound);
  save_encoded("edge_mean", g, made(2048, [](std::size_t i) { return i % 2 != 0 ? 0.0625 : 0.0; }));
  Values listed = smooth(2048);
  for (std::size_t i = 0; i < 16; ++i) listed[2 * i] = 5000.0 + static_cast<double>(i);
  for (std::size_t i = 0; i < 17; ++i) listed[640 + 2 * i] = 5000.0 + static_cast<double>(i);
  save_encoded("edge_listed", g, listed);
  const Grid exact{.dtype = DType::i32};
  Values wide(2048, 0.0);
  wide[30] = 0x1p29 - 1;
  wide[300] = 0x1p29;
  save_encoded("edge_wide", exact, wide);
  for (const double base : {-0x1p18, -0x1p18 - 1, 0x1p18, 0x1p18 - 1}) {
    const std::string n = std::to_string(static_cast<int>(base));
    save_encoded("edge_constant_" + n, exact, Values(70, base));
    save_encoded("edge_base_" + n, exact,
                 made(2048, [=](std::size_t i) { return base + std::floor(static_cast<double>(i) / 64); }));
  }
}

Bytes sum_of(const Grid& g, const std::vector<Values>& operands, bool fused) {
  Bytes sum = encode(g, elements(g.dtype, operands[0]));
  for (std::size_t k = 1; k < operands.size(); ++k) {
    const Bytes x = elements(g.dtype, operands[k]);
    Bytes out(laconic::frame::sum_capacity(g.dtype, operands[k].size()));
    out.resize(fused ? laconic::frame::encode_add(view(g.dtype, x), sum, out)
                     : laconic::frame::add(encode(g, x), sum, out));
    sum = out;
  }
  return sum;
}

/// Sums, and thirds of sums, that lie just beside the middle of two elements: only one rounding of the exact sum gets
/// them right.
std::vector<Values> ties(DType t) {
  const int digits = t == DType::f64 ? 53 : t == DType::f32 ? 24 : t == DType::f16 ? 11 : 8;
  const int top = t == DType::f16 ? 15 : 80;
  const double large = std::ldexp(1.0, top);
  const double middle = std::ldexp(1.0, top - digits);
  const double third = t == DType::f16 ? 8192 : 0x1p30;
  const double half = std::ldexp(third, -digits);
  return {{large, large, -large, 3 * third, -3 * third},
          {middle, middle, -middle, 3 * half, -3 * half},
          {0.0625, -0.0625, 0.0625, 0.1875, -0.1875}};
}

void sum_frames() {
  for (const bool fused : {false, true}) {
    const std::string how = fused ? "_fused_" : "_added_";
    for (const DType t : float_types) {
      const std::string n = how + label(t);
      const Grid g = odd_grid(t, 0.0617, 14);
      const Grid fine = odd_grid(t, 0.00097, t == DType::f64 ? 40 : 22);
      save("sum_plain" + n, sum_of(g, {walk(2300), smooth(2300), noise(2300)}, fused));
      Values high = walk(2300);
      for (double& x : high) x = 4000 + x / 8;
      save("sum_fine" + n, sum_of(fine, std::vector<Values>(7, high), fused));
      save("sum_constant" + n, sum_of(g, {Values(2300, 2.0), Values(2300, -2.0), Values(2300, 1.0)}, fused));
      save("sum_fill" + n, sum_of(g, {with_land(walk(4500), 3e4), with_land(walk(4500), 3e4)}, fused));
      save("sum_only_fill" + n, sum_of(g, {Values(2100, 3e4), Values(2100, 3e4)}, fused));
      save("sum_terms" + n, sum_of(g,
                                   {with_outliers(walk(2300), 700, 640), with_outliers(smooth(2300), 1e-9, 700),
                                    with_outliers(noise(2300), -3e4, 66), walk(2300)},
                                   fused));
      save("sum_ties" + n, sum_of(grid(t, 0.0625, 14), ties(t), fused));
      save("sum_special" + n, sum_of(g, {{nan, infinity, 3e4, 3e4, -0.0, 1e4}, {1, 1, -3e4, 1, -0.0, 0.0625}}, fused));
    }
    for (const DType t : integer_types) {
      Values v = walk(2300);
      for (double& x : v) x *= 1e6;
      save("sum" + how + label(t), sum_of(Grid{.dtype = t}, {v, v, v}, fused));
    }
  }
}

/// The frame with the checksum that its bytes have.
Bytes with_checksum(Bytes frame) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (std::size_t i = 0; i < frame.size(); ++i) {
    if (i >= 12 && i < 16) continue;
    crc ^= frame[i];
    for (int k = 0; k < 8; ++k) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
  }
  crc = ~crc;
  std::memcpy(&frame[12], &crc, sizeof crc);
  return frame;
}

/// Frames with one byte changed and a checksum that fits: what passes and what does not is the document's section 7.
void save_damaged(const std::string& name, const Bytes& frame, int variants) {
  const std::size_t chunk = 48 + (2 * laconic::frame::peek(frame).chunks() + 3) / 4 * 4;
  for (int k = 0; k < variants; ++k) {
    // Mostly where a chunk says what follows.
    const std::size_t from = k % 6 == 0 ? 0 : k % 6 == 1 ? 48 : chunk;
    const std::size_t to = k % 6 == 0 ? 48 : k % 6 < 4 ? std::min(chunk + 60, frame.size()) : frame.size();
    Bytes damaged = frame;
    damaged[from + random_bits() % (to - from)] ^= static_cast<std::uint8_t>(1U << random_bits() % 8);
    damaged = with_checksum(damaged);
    const std::string variant = "damaged_" + std::to_string(k) + "_" + name;
    write_file(variant + ".frame", damaged);
    try {
      const auto header = laconic::frame::check(damaged);
      Bytes out(header.count * laconic::size_of(header.grid.dtype));
      laconic::frame::decode(damaged, {out.data(), header.count, header.grid.dtype});
      write_file(variant + ".by1.out", out);
    } catch (const laconic::Error& e) {
      if (e.code() != laconic::Code::corrupt) throw;
      write_file(variant + ".refused", {});
    }
  }
}

void damaged_frames() {
  constexpr int variants = 6;
  for (const DType t : {DType::f32, DType::f64, DType::f16}) {
    const std::string n = label(t);
    const Grid g = odd_grid(t, 0.0617, 14);
    const auto save_one = [&](const std::string& name, const Grid& on, const Values& v) {
      save_damaged(name + "_" + n, encode(on, elements(t, v)), variants);
    };
    save_one("codes", g, amplitudes(700, 5));
    save_one("plain_codes", grid(t, 0.0078125, t == DType::f64 ? 40 : 22), amplitudes(2048, 20));
    save_one("smooth", odd_grid(t, 0.01, 22), smooth(2048));
    save_one("fill", g, with_land(walk(2048), 3e4));
    save_one("only_fill", g, Values(100, 3e4));
    save_one("constant", g, Values(100, 1.0));
    save_one("listed", g, with_outliers(walk(2048), 700, 9999));
    save_one("blocks", g, with_outliers(smooth(2048), 1024, 640));
    save_one("raw", g, amplitudes(100, 90));
    save_one("lossless", Grid{.dtype = t}, walk(900));
    save_damaged("sum_" + n, sum_of(g, {with_outliers(walk(2048), 700, 640), with_land(noise(2048), 3e4)}, true),
                 variants);
    save_damaged("sum_fill_" + n, sum_of(g, {with_land(walk(2048), 3e4), with_land(noise(2048), 3e4)}, true), variants);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_frames FOLDER\n");
    return 2;
  }
  folder = argv[1];
  try {
    save_encoded("example", grid(DType::f32, 0.25, 10), {1.0, 1.3, 1.5, 1.75, 1.25});
    lossless_frames();
    grid_frames();
    edge_frames();
    sum_frames();
    damaged_frames();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "write_frames: %s\n", e.what());
    return 1;
  }
  return 0;
}
