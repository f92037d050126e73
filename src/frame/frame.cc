#include "frame/frame.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "codec/slice/slice.h"
#include "core/error.h"

namespace laconic::frame {
namespace {

using slice::load;
using slice::Params;
using slice::store;

constexpr std::uint32_t magic = 0x314E434C;  // "LCN1"
constexpr std::uint8_t version = 1;
constexpr std::uint8_t codec_slice = 1;

// Offsets in the header; docs/format.md has the same table.
constexpr std::size_t at_magic = 0;
constexpr std::size_t at_version = 4;
constexpr std::size_t at_dtype = 5;
constexpr std::size_t at_codec = 6;
constexpr std::size_t at_qbits = 7;
constexpr std::size_t at_operands = 8;
constexpr std::size_t at_crc = 12;
constexpr std::size_t at_count = 16;
constexpr std::size_t at_bytes = 24;
constexpr std::size_t at_step = 32;
constexpr std::size_t at_bound = 40;

[[noreturn]] void corrupt(const std::string& why) { throw Error(Code::corrupt, "frame: " + why); }

std::uint32_t crc_update(std::uint32_t crc, const std::uint8_t* p, std::size_t n) {
  while (n > 0) {
    const std::size_t part = std::min<std::size_t>(n, std::size_t{1} << 30);
    crc = crc32_iscsi(const_cast<unsigned char*>(p), static_cast<int>(part), crc);
    p += part;
    n -= part;
  }
  return crc;
}

/// CRC-32C of the frame without the four bytes that hold it.
std::uint32_t checksum(const std::uint8_t* frame, std::size_t n) {
  std::uint32_t crc = crc_update(0xFFFFFFFFU, frame, at_crc);
  crc = crc_update(crc, frame + at_crc + 4, n - at_crc - 4);
  return ~crc;
}

void write_header(const Grid& g, std::uint32_t operands, std::uint64_t count, MutBytes out, std::size_t bytes) {
  std::uint8_t* p = out.data();
  store(p + at_magic, magic);
  p[at_version] = version;
  p[at_dtype] = static_cast<std::uint8_t>(g.dtype);
  p[at_codec] = codec_slice;
  p[at_qbits] = static_cast<std::uint8_t>(g.qbits);
  store(p + at_operands, operands);
  store(p + at_count, count);
  store(p + at_bytes, std::uint64_t{bytes});
  store(p + at_step, g.step);
  store(p + at_bound, g.bound);
  store(p + at_crc, checksum(p, bytes));
}

MutBytes payload_of(MutBytes out) {
  if (out.size() < header_bytes)
    throw Error(Code::too_small, "out: " + std::to_string(out.size()) + " bytes cannot hold a frame");
  return out.subspan(header_bytes);
}

void check_grid(const Grid& g) {
  if (g.step == 0 && g.bound == 0 && g.qbits == 0) return;
  const bool f64 = g.dtype == DType::f64;
  const double least = f64 ? 0x1p-901 : 0x1p-111;
  const double most = f64 ? 0x1p900 : 0x1p120;
  if (!is_float(g.dtype)) corrupt("an integer type with a step");
  if (!(g.step >= least && g.step <= most)) corrupt("step " + std::to_string(g.step) + " out of range");
  if (!f64 && static_cast<double>(static_cast<float>(g.step)) != g.step) corrupt("step is no 32-bit float");
  if (!(g.bound > 0) || std::isinf(g.bound)) corrupt("bound is not positive");
  if (g.qbits < 1 || g.qbits > (f64 ? 50 : 22)) corrupt("qbits " + std::to_string(g.qbits) + " out of range");
}

void check_array(const Header& h, DType dtype, std::size_t count, const char* argument) {
  if (h.grid.dtype != dtype)
    throw Error(Code::invalid_argument, std::string(argument) + ": dtype " + std::string(name_of(dtype)) +
                                            ", but the frame holds " + std::string(name_of(h.grid.dtype)));
  if (h.count != count)
    throw Error(Code::invalid_argument, std::string(argument) + ": " + std::to_string(count) +
                                            " elements, but the frame holds " + std::to_string(h.count));
}

slice::Payload payload_of(Bytes frame, const Header& h) {
  return slice::check_table(frame.subspan(header_bytes, h.frame_bytes - header_bytes), h.count);
}

/// What a sum of frames with these headers is.
Header sum_header(const Header& a, const Header& b) {
  if (!a.grid.same_points(b.grid))
    throw Error(Code::mismatch, "the operands lie on different grids (step " + std::to_string(a.grid.step) + " and " +
                                    std::to_string(b.grid.step) + ")");
  if (a.count != b.count)
    throw Error(Code::mismatch,
                "the operands have " + std::to_string(a.count) + " and " + std::to_string(b.count) + " elements");
  Header h = a;
  h.grid.qbits = std::max(a.grid.qbits, b.grid.qbits);
  h.grid.bound = std::max(a.grid.bound, b.grid.bound);
  const std::uint64_t operands = std::uint64_t{a.operands} + b.operands;
  if (operands > 0xFFFFFFFFU || !sum_fits(h.grid, operands))
    throw Error(Code::unsupported,
                h.grid.lossless() && is_float(h.grid.dtype)
                    ? "lossless frames of floats cannot be added"
                    : "the sum of " + std::to_string(operands) + " operands could leave the grid's integers");
  h.operands = static_cast<std::uint32_t>(operands);
  return h;
}

}  // namespace

std::size_t capacity(DType dtype, std::size_t count) { return header_bytes + slice::capacity(dtype, count); }

std::size_t sum_capacity(DType dtype, std::size_t count) { return header_bytes + slice::sum_capacity(dtype, count); }

std::size_t encode(ConstArray x, const Grid& grid, MutBytes out, int threads) {
  if (grid.dtype != x.dtype)
    throw Error(Code::invalid_argument,
                "grid: made for " + std::string(name_of(grid.dtype)) + ", but x is " + std::string(name_of(x.dtype)));
  const Params p = slice::params_for(grid, 1);
  const std::size_t n = header_bytes + slice::encode(p, x.data, x.count, payload_of(out), threads);
  write_header(grid, 1, x.count, out, n);
  return n;
}

Header peek(Bytes head) {
  if (head.size() < header_bytes)
    corrupt(std::to_string(head.size()) + " bytes are fewer than a header's " + std::to_string(header_bytes));
  const std::uint8_t* p = head.data();
  if (load<std::uint32_t>(p + at_magic) != magic) corrupt("does not begin with LCN1");
  if (p[at_version] != version) corrupt("version " + std::to_string(p[at_version]) + "; this library reads version 1");
  if (p[at_codec] != codec_slice) corrupt("codec " + std::to_string(p[at_codec]) + " is unknown");
  Header h;
  h.grid.dtype = static_cast<DType>(p[at_dtype]);
  if (!is_valid(h.grid.dtype)) corrupt("dtype " + std::to_string(p[at_dtype]) + " is unknown");
  h.grid.qbits = p[at_qbits];
  h.grid.step = load<double>(p + at_step);
  h.grid.bound = load<double>(p + at_bound);
  h.operands = load<std::uint32_t>(p + at_operands);
  h.count = load<std::uint64_t>(p + at_count);
  h.frame_bytes = load<std::uint64_t>(p + at_bytes);
  check_grid(h.grid);
  if (h.operands == 0) corrupt("no operands");
  if (h.operands > 1 && !sum_fits(h.grid, h.operands)) corrupt("more operands than its grid can hold");
  // A chunk takes at least 6 bytes with its size; more elements than that allows are a lie.
  if (h.frame_bytes < header_bytes || h.chunks() > (h.frame_bytes - header_bytes) / 6 ||
      h.count > (std::uint64_t{1} << 60))
    corrupt(std::to_string(h.count) + " elements do not fit in " + std::to_string(h.frame_bytes) + " bytes");
  return h;
}

Header check(Bytes frame) {
  const Header h = peek(frame);
  if (h.frame_bytes != frame.size())
    corrupt("says it has " + std::to_string(h.frame_bytes) + " bytes, but " + std::to_string(frame.size()) +
            " are here");
  const std::uint32_t stored = load<std::uint32_t>(frame.data() + at_crc);
  if (checksum(frame.data(), frame.size()) != stored) corrupt("checksum does not match: the bytes were damaged");
  payload_of(frame, h);
  return h;
}

void decode(Bytes frame, MutArray out, int threads, std::uint32_t divisor) {
  const Header h = check(frame);
  check_array(h, out.dtype, out.count, "out");
  if (divisor == 0 || (divisor > 1 && h.grid.lossless()))
    throw Error(Code::invalid_argument,
                "divisor: " + std::to_string(divisor) + " works for frames with a step only, and not 0");
  const Params p = slice::params_for(h.grid, h.operands, divisor);
  slice::decode(p, payload_of(frame, h), 0, h.chunks(), out.data, threads);
}

void decode_chunks(Bytes frame, std::uint64_t first, std::uint64_t n, MutArray out, bool verified,
                   std::uint32_t divisor) {
  const Header h = verified ? peek(frame) : check(frame);
  if (first > h.chunks() || n > h.chunks() - first)
    throw Error(Code::invalid_argument, "first, n: chunks " + std::to_string(first) + " + " + std::to_string(n) +
                                            " of a frame that has " + std::to_string(h.chunks()));
  const std::uint64_t begin = first * chunk_values;
  const std::uint64_t end = std::min<std::uint64_t>(h.count, (first + n) * chunk_values);
  Header part = h;
  part.count = n == 0 ? 0 : end - begin;
  check_array(part, out.dtype, out.count, "out");
  if (divisor == 0 || (divisor > 1 && h.grid.lossless()))
    throw Error(Code::invalid_argument,
                "divisor: " + std::to_string(divisor) + " works for frames with a step only, and not 0");
  slice::decode(slice::params_for(h.grid, h.operands, divisor), payload_of(frame, h), first, n, out.data, 1);
}

std::size_t add(Bytes a, Bytes b, MutBytes out, int threads) {
  const Header ha = check(a);
  const Header hb = check(b);
  const Header h = sum_header(ha, hb);
  const std::size_t n =
      header_bytes + slice::add(slice::params_for(h.grid, h.operands), slice::params_for(ha.grid, ha.operands),
                                payload_of(a, ha), slice::params_for(hb.grid, hb.operands), payload_of(b, hb),
                                payload_of(out), threads);
  write_header(h.grid, h.operands, h.count, out, n);
  return n;
}

std::size_t encode_add(ConstArray x, Bytes b, MutBytes out, int threads) {
  const Header hb = check(b);
  check_array(hb, x.dtype, x.count, "x");
  Header hx = hb;
  hx.operands = 1;
  const Header h = sum_header(hx, hb);
  const std::size_t n =
      header_bytes + slice::encode_add(slice::params_for(h.grid, h.operands), slice::params_for(hx.grid, 1), x.data,
                                       slice::params_for(hb.grid, hb.operands), payload_of(b, hb), payload_of(out),
                                       threads);
  write_header(h.grid, h.operands, h.count, out, n);
  return n;
}

}  // namespace laconic::frame
