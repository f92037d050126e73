#include "frame/frame.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "codec/rate_control.h"
#include "core/error.h"
#include "core/parallel.h"
#include "frame/checksum.h"

namespace laconic::frame {
namespace {

static_assert(std::endian::native == std::endian::little, "header fields are stored as they are");

template <class T>
T load(const std::uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
void store(std::uint8_t* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

[[noreturn]] void corrupt(const std::string& why) { throw Error(Code::corrupt, "frame: " + why); }

std::string shown(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", v);
  return text;
}

/// The register after the header but for the checksum in it.
std::uint32_t crc_of_header(const std::uint8_t* frame) {
  const std::uint32_t crc = crc_update(crc_start, {frame, at_crc});
  return crc_update(crc, {frame + at_crc + 4, header_bytes - at_crc - 4});
}

/// Makes the checksum of a frame as its payload is read or written.
class Summing final : public Witness {
 public:
  void see(Bytes piece) override { runs_.add(piece); }
  [[nodiscard]] std::uint32_t checksum(Bytes frame) const {
    return ~runs_.update(crc_of_header(frame.data()), frame.subspan(header_bytes));
  }
  /// Has several threads look at all that lies behind the header, where it is much.
  void see_all(Bytes frame, int threads) {
    const Bytes payload = frame.subspan(header_bytes);
    const std::size_t parts = threads_worth(payload.size(), threads);
    if (parts == 1) return;
    parallel_ranges(payload.size(), parts, [&](std::size_t, std::size_t first, std::size_t last) {
      see(payload.subspan(first, last - first));
    });
  }

 private:
  CrcRuns runs_;
};

/// Throws Error(corrupt) where a frame is not what its checksum was made of.
void check_sum(const Summing& read, Bytes frame) {
  if (read.checksum(frame) != load<std::uint32_t>(frame.data() + at_crc))
    corrupt("checksum does not match: the bytes were damaged");
}

void write_header(CodecId codec, const Grid& g, std::uint32_t operands, std::uint64_t count, MutBytes out,
                  std::size_t bytes, const Summing& written) {
  std::uint8_t* p = out.data();
  store(p + at_magic, magic);
  p[at_version] = version;
  p[at_dtype] = static_cast<std::uint8_t>(g.dtype);
  p[at_codec] = static_cast<std::uint8_t>(codec);
  p[at_qbits] = static_cast<std::uint8_t>(g.qbits);
  store(p + at_operands, operands);
  store(p + at_count, count);
  store(p + at_bytes, std::uint64_t{bytes});
  store(p + at_step, g.step);
  store(p + at_bound, g.bound);
  store(p + at_crc, written.checksum(out.first(bytes)));
}

MutBytes payload_of(MutBytes out) {
  if (out.size() < header_bytes)
    throw Error(Code::too_small, "out: " + std::to_string(out.size()) + " bytes cannot hold a frame");
  return out.subspan(header_bytes);
}

void check_grid(const Grid& g, Promise promise) {
  if (promise == Promise::rate) {
    if (!(g.step > 0 && g.step <= 64) || g.bound != HUGE_VAL || g.qbits != 0) corrupt("no grid of a rate");
    return;
  }
  if (g.step == 0 && g.bound == 0 && g.qbits == 0) return;
  if (promise == Promise::lossless) corrupt("a lossless codec with a step");
  const bool f64 = g.dtype == DType::f64;
  const double least = f64 ? 0x1p-901 : 0x1p-111;
  const double most = f64 ? 0x1p900 : 0x1p120;
  if (!is_float(g.dtype)) corrupt("an integer type with a step");
  if (!(g.step >= least && g.step <= most)) corrupt("step " + shown(g.step) + " out of range");
  if (!f64 && static_cast<double>(static_cast<float>(g.step)) != g.step) corrupt("step is no 32-bit float");
  if (!(g.bound >= least) || std::isinf(g.bound)) corrupt("bound " + shown(g.bound) + " out of range");
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

Bytes payload_of(Bytes frame, const Header& h) { return frame.subspan(header_bytes, h.frame_bytes - header_bytes); }

/// peek() has found the codec before.
const Codec& codec_of(const Header& h) { return *find_codec(h.codec); }

Coded coded_of(const Header& h, std::uint32_t divisor = 1) { return {h.grid, h.count, h.operands, divisor}; }

void check_divisor(const Header& h, std::uint32_t divisor) {
  if (divisor == 1) return;
  if (divisor == 0 || h.grid.lossless())
    throw Error(Code::invalid_argument,
                "divisor: " + std::to_string(divisor) + " works for frames with a step only, and not 0");
  if (codec_of(h).linear() == nullptr)
    throw Error(Code::unsupported,
                "divisor: frames of codec " + std::string(codec_of(h).name()) + " are no sums; decode with divisor 1");
}

/// Throws Error(mismatch) unless both say as many elements on the same points.
void check_alike(const Header& a, const Header& b) {
  if (!a.grid.same_points(b.grid))
    throw Error(Code::mismatch,
                "the operands lie on different grids (step " + shown(a.grid.step) + " and " + shown(b.grid.step) + ")");
  if (a.count != b.count)
    throw Error(Code::mismatch,
                "the operands have " + std::to_string(a.count) + " and " + std::to_string(b.count) + " elements");
}

/// What a sum of frames with these headers is.
Header sum_header(const Header& a, const Header& b) {
  check_alike(a, b);
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

Header check_sizes(Bytes frame) {
  const Header h = peek(frame);
  if (h.frame_bytes != frame.size())
    corrupt("says it has " + std::to_string(h.frame_bytes) + " bytes, but " + std::to_string(frame.size()) +
            " are here");
  return h;
}

/// An operand of a sum or an extreme. Its checksum is made while it is added: nobody sees the result before finish().
class Operand {
 public:
  /// Runs work(). Where it throws, damage to an operand is the better reason.
  template <class Work>
  static void explain(Work work, std::span<Operand> operands) {
    try {
      work();
    } catch (const Error&) {
      for (Operand& o : operands) o.finish();
      throw;
    }
  }

  explicit Operand(Bytes frame) : header(check_sizes(frame)), frame_(frame) {
    explain([&] { codec_of(header).check(coded_of(header), payload()); }, {this, 1});
  }
  [[nodiscard]] Bytes payload() const { return payload_of(frame_, header); }
  [[nodiscard]] Coded coded() {
    Coded c = coded_of(header);
    c.witness = reading_.get();
    return c;
  }
  void finish() { check_sum(*reading_, frame_); }

  const Header header;

 private:
  Bytes frame_;
  std::unique_ptr<Summing> reading_ = std::make_unique<Summing>();
};

std::vector<Operand> operands_of(std::span<const Bytes> frames) {
  std::vector<Operand> operands;
  operands.reserve(frames.size());
  for (const Bytes f : frames) operands.emplace_back(f);
  return operands;
}

/// The frame with this header around what write(coded, terms, payload) makes of the operands, which returns its bytes.
template <class Write>
std::size_t combine(const Header& h, std::span<Operand> operands, MutBytes out, Write write) {
  Summing writing;
  Coded result = coded_of(h);
  result.witness = &writing;
  std::vector<CodedTerm> terms;
  terms.reserve(operands.size());
  for (Operand& o : operands) terms.push_back({o.coded(), o.payload()});
  std::size_t n = header_bytes;
  const MutBytes payload = payload_of(out);
  Operand::explain([&] { n += write(result, terms, payload); }, operands);
  for (Operand& o : operands) o.finish();
  write_header(h.codec, h.grid, h.operands, h.count, out, n, writing);
  return n;
}

/// A frame around what write(grid, payload, witness) writes, which returns its bytes.
template <typename Write>
std::size_t encode_with(const Codec& codec, ConstArray x, const Grid& grid, MutBytes out, int threads, Extents extents,
                        Write write) {
  if (grid.dtype != x.dtype)
    throw Error(Code::invalid_argument,
                "grid: made for " + std::string(name_of(grid.dtype)) + ", but x is " + std::string(name_of(x.dtype)));
  require_dtype(codec, x.dtype);
  Grid own = grid_for(codec, grid, extents);
  if (codec.promise() == Promise::bounded && std::isinf(own.bound)) {
    const auto bytes = static_cast<std::size_t>(own.step / 8 * static_cast<double>(x.count));
    // Of a few hundred bytes the header is not held against them.
    own = grid_within_bytes(codec, x, extents, bytes < 4 * header_bytes ? bytes : bytes - header_bytes, threads,
                            beyond_ratio_of(own));
  }
  Summing writing;
  const std::size_t n = header_bytes + write(own, payload_of(out), writing);
  write_header(codec.id(), own, 1, x.count, out, n, writing);
  return n;
}

/// The codec's sums; all operands must be of one that has them.
const LinearCodec& linear_of(std::span<const Operand> operands) {
  const Codec& codec = codec_of(operands[0].header);
  for (const Operand& o : operands)
    if (o.header.codec != codec.id())
      throw Error(Code::mismatch, "the operands are coded by " + std::string(codec.name()) + " and " +
                                      std::string(codec_of(o.header).name()));
  if (codec.linear() == nullptr)
    throw Error(Code::unsupported, "frames of codec " + std::string(codec.name()) +
                                       " cannot be added: decode, add and encode, or use slice");
  return *codec.linear();
}

}  // namespace

std::size_t capacity(DType dtype, std::size_t count, const Codec& codec) {
  return header_bytes + codec.capacity(dtype, count);
}

std::size_t sum_capacity(DType dtype, std::size_t count, std::size_t chunk_bytes) {
  return header_bytes + slice_codec().linear()->sum_capacity(dtype, count, chunk_bytes);
}

std::size_t encode(ConstArray x, const Grid& grid, MutBytes out, int threads) {
  return encode(slice_codec(), x, grid, out, threads);
}

std::size_t encode(const Codec& codec, ConstArray x, const Grid& grid, MutBytes out, int threads, Extents extents) {
  return encode_with(codec, x, grid, out, threads, extents, [&](const Grid& own, MutBytes payload, Witness& writing) {
    return codec.encode(x, own, extents, payload, threads, &writing);
  });
}

std::size_t encode_decode(const Codec& codec, ConstArray x, const Grid& grid, MutBytes out, MutArray y, int threads,
                          std::size_t whole_bytes) {
  if (y.dtype != x.dtype || y.count != x.count)
    throw Error(Code::invalid_argument, "y: " + std::to_string(y.count) + " " + std::string(name_of(y.dtype)) +
                                            ", but x is " + std::to_string(x.count) + " " +
                                            std::string(name_of(x.dtype)));
  const LinearCodec* const linear = codec.linear();
  if (linear == nullptr)
    throw Error(Code::unsupported, "codec " + std::string(codec.name()) + " does not read as it writes; slice does");
  return encode_with(codec, x, grid, out, threads, {}, [&](const Grid& own, MutBytes payload, Witness& writing) {
    return linear->encode_decode(x, own, payload, y, threads, whole_bytes, &writing);
  });
}

Header peek(Bytes head) {
  if (head.size() < header_bytes)
    corrupt(std::to_string(head.size()) + " bytes are fewer than a header's " + std::to_string(header_bytes));
  const std::uint8_t* p = head.data();
  if (load<std::uint32_t>(p + at_magic) != magic) corrupt("does not begin with LCN1");
  if (p[at_version] != version) corrupt("version " + std::to_string(p[at_version]) + "; this library reads version 1");
  Header h;
  h.codec = static_cast<CodecId>(p[at_codec]);
  const Codec* codec = find_codec(h.codec);
  if (codec == nullptr) corrupt("codec " + std::to_string(p[at_codec]) + " is unknown");
  h.grid.dtype = static_cast<DType>(p[at_dtype]);
  if (!is_valid(h.grid.dtype)) corrupt("dtype " + std::to_string(p[at_dtype]) + " is unknown");
  h.grid.qbits = p[at_qbits];
  h.grid.step = load<double>(p + at_step);
  h.grid.bound = load<double>(p + at_bound);
  h.operands = load<std::uint32_t>(p + at_operands);
  h.count = load<std::uint64_t>(p + at_count);
  h.frame_bytes = load<std::uint64_t>(p + at_bytes);
  if (!codec->takes(h.grid.dtype))
    corrupt("codec " + std::string(codec->name()) + " does not code " + std::string(name_of(h.grid.dtype)));
  check_grid(h.grid, codec->promise());
  if (h.operands == 0) corrupt("no operands");
  if (h.operands > 1 && codec->linear() == nullptr) corrupt("operands of a codec that cannot add");
  if (h.operands > 1 && !sum_fits(h.grid, h.operands)) corrupt("more operands than its grid can hold");
  if (h.frame_bytes < header_bytes || h.count > codec->most_elements(h.frame_bytes - header_bytes) ||
      h.count > (std::uint64_t{1} << 60))
    corrupt(std::to_string(h.count) + " elements do not fit in " + std::to_string(h.frame_bytes) + " bytes");
  return h;
}

Header check(Bytes frame, int threads) {
  const Header h = check_sizes(frame);
  Summing reading;
  reading.see_all(frame, threads);
  check_sum(reading, frame);
  codec_of(h).check(coded_of(h), payload_of(frame, h));
  return h;
}

void decode(Bytes frame, MutArray out, int threads, std::uint32_t divisor, std::size_t whole_bytes) {
  const Header h = check(frame, threads);
  check_array(h, out.dtype, out.count, "out");
  check_divisor(h, divisor);
  Coded coded = coded_of(h, divisor);
  coded.whole_bytes = whole_bytes;
  codec_of(h).decode(coded, payload_of(frame, h), 0, out, threads);
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
  check_divisor(h, divisor);
  codec_of(h).decode(coded_of(h, divisor), payload_of(frame, h), begin, out, 1);
}

std::size_t sum(std::optional<ConstArray> x, std::span<const Bytes> frames, MutBytes out, int threads) {
  if (frames.size() + (x ? 1 : 0) < 2)
    throw Error(Code::invalid_argument, "frames: " + std::to_string(frames.size()) + " are no sum");
  std::vector<Operand> operands = operands_of(frames);
  Header h = operands[0].header;
  Header local = h;
  local.operands = 1;
  const LinearCodec* codec = nullptr;
  const auto plan = [&] {
    if (x) check_array(h, x->dtype, x->count, "x");
    codec = &linear_of(operands);
    if (x) h = sum_header(local, h);
    for (std::size_t i = 1; i < operands.size(); ++i) h = sum_header(h, operands[i].header);
  };
  Operand::explain(plan, operands);
  return combine(h, operands, out, [&](const Coded& result, std::span<const CodedTerm> terms, MutBytes payload) {
    return codec->sum(result, {coded_of(local), x ? x->data : nullptr}, terms, payload, threads);
  });
}

std::size_t extreme(Op op, const Grid& grid, std::optional<ConstArray> x, std::span<const Bytes> frames, MutBytes out,
                    int threads) {
  if (!is_extreme(op) || (frames.empty() && !x))
    throw Error(Code::invalid_argument,
                "op: " + std::string(name_of(op)) + " of " + std::to_string(frames.size()) + " frames is no extreme");
  if (std::isinf(grid.bound))
    throw Error(Code::unsupported, "grid: within a ratio each frame has its own, and extremes need one for all");
  std::vector<Operand> operands = operands_of(frames);
  Header h;
  h.grid = grid;
  h.count = x ? x->count : operands[0].header.count;
  const LinearCodec* codec = slice_codec().linear();
  const auto plan = [&] {
    if (x) check_array(h, x->dtype, x->count, "x");
    if (!operands.empty()) codec = &linear_of(operands);
    for (const Operand& o : operands) check_alike(h, o.header);
    if (!operands.empty()) h.codec = operands[0].header.codec;
  };
  Operand::explain(plan, operands);
  return combine(h, operands, out, [&](const Coded& result, std::span<const CodedTerm> terms, MutBytes payload) {
    return codec->extreme(op, result, x ? x->data : nullptr, terms, payload, threads);
  });
}

std::size_t add(Bytes a, Bytes b, MutBytes out, int threads) {
  return sum(std::nullopt, std::array{a, b}, out, threads);
}

std::size_t encode_add(ConstArray x, Bytes b, MutBytes out, int threads) { return sum(x, {&b, 1}, out, threads); }

}  // namespace laconic::frame
