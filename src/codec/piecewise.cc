#include "codec/piecewise.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"

namespace laconic {
namespace {

constexpr std::size_t least_piece_bytes = 8192;  // of raw elements, so that the table stays below 0.1 %

std::uint32_t load32(const std::uint8_t* p) {
  std::uint32_t v = 0;
  std::memcpy(&v, p, sizeof v);
  return v;
}

void store32(std::uint8_t* p, std::size_t value) {
  const auto v = static_cast<std::uint32_t>(value);
  std::memcpy(p, &v, sizeof v);
}

/// How an array is cut.
struct Cut {
  std::size_t count;
  std::size_t piece;  // elements
  std::size_t element_bytes;

  [[nodiscard]] std::size_t pieces() const { return (count + piece - 1) / piece; }
  [[nodiscard]] std::size_t head() const { return count == 0 ? 0 : 4 + 4 * pieces(); }
  [[nodiscard]] std::size_t values(std::size_t k) const { return std::min(piece, count - k * piece); }
  [[nodiscard]] std::size_t raw(std::size_t k) const { return values(k) * element_bytes; }
};

/// Writes a piece to [at, end), by way of scratch where the coder might write past the end. Returns its bytes.
std::size_t put(PieceCoder& coder, const std::uint8_t* x, std::size_t n, std::size_t raw, std::uint8_t* at,
                const std::uint8_t* end, std::vector<std::uint8_t>& scratch) {
  const auto room = static_cast<std::size_t>(end - at);
  const std::size_t limit = coder.limit(n);
  const bool direct = room >= limit + piece_slack;
  if (!direct) scratch.resize(limit + piece_slack);
  std::uint8_t* to = direct ? at : scratch.data();
  std::size_t size = coder.encode(x, n, to);
  const std::uint8_t* from = to;
  if (size == 0 || size >= raw) {
    size = raw;
    from = x;
  }
  if (size > room) throw Error(Code::too_small, "out: too small for the frame");
  if (from != at) std::memcpy(at, from, size);
  return size;
}

[[noreturn]] void corrupt(const std::string& why) { throw Error(Code::corrupt, "frame: " + why); }

/// Throws Error(corrupt) when the table does not fit.
Cut cut_of(const Coded& coded, CodecBytes payload) {
  Cut cut{coded.count, 1, size_of(coded.grid.dtype)};
  if (coded.count == 0) {
    if (!payload.empty()) corrupt("bytes that stand for no elements");
    return cut;
  }
  if (payload.size() < 4) corrupt("too short for its table of piece sizes");
  cut.piece = load32(payload.data());
  if (cut.piece == 0 || cut.piece > PiecewiseCodec::most_piece_values)
    corrupt("pieces of " + std::to_string(cut.piece) + " elements");
  if ((payload.size() - 4) / 4 < cut.pieces()) corrupt("too short for its table of piece sizes");
  return cut;
}

std::size_t size_at(CodecBytes payload, std::size_t k) { return load32(payload.data() + 4 + 4 * k); }

/// Decodes pieces for one thread, whole ones in place and the ends of a range by way of scratch.
class Reader {
 public:
  Reader(const Cut& cut, CodecBytes payload, std::unique_ptr<PieceCoder> coder, std::size_t first_piece)
      : cut_(cut), payload_(payload), coder_(std::move(coder)), at_(cut.head()) {
    for (std::size_t k = 0; k < first_piece; ++k) at_ += size_at(payload, k);
  }

  /// Piece k (each after the one before): its elements [from, to) go to y.
  void next(std::size_t k, std::size_t from, std::size_t to, std::uint8_t* y) {
    const std::size_t size = size_at(payload_, k);
    const CodecBytes piece = payload_.subspan(at_, size);
    at_ += size;
    const std::size_t n = cut_.values(k);
    if (size == cut_.raw(k)) {
      std::memcpy(y, piece.data() + from * cut_.element_bytes, (to - from) * cut_.element_bytes);
    } else if (from == 0 && to == n) {
      decode(k, piece, y, n);
    } else {
      values_.resize(cut_.raw(k));
      decode(k, piece, values_.data(), n);
      std::memcpy(y, values_.data() + from * cut_.element_bytes, (to - from) * cut_.element_bytes);
    }
  }

 private:
  void decode(std::size_t k, CodecBytes piece, std::uint8_t* y, std::size_t n) {
    if (payload_.size() - at_ < piece_slack) {  // at the end: kernels may read a little further
      padded_.assign(piece.size() + piece_slack, 0);
      std::memcpy(padded_.data(), piece.data(), piece.size());
      piece = CodecBytes(padded_).first(piece.size());
    }
    if (!coder_->decode(piece, y, n)) corrupt("piece " + std::to_string(k) + " is damaged");
  }

  Cut cut_;
  CodecBytes payload_;
  std::unique_ptr<PieceCoder> coder_;
  std::size_t at_;
  std::vector<std::uint8_t> values_, padded_;
};

std::size_t parts_for(std::size_t pieces, int threads) {
  return std::clamp<std::size_t>(static_cast<std::size_t>(std::max(threads, 1)), 1, std::max<std::size_t>(pieces, 1));
}

}  // namespace

std::size_t PiecewiseCodec::capacity(DType dtype, std::size_t count) const {
  const std::size_t raw = count * size_of(dtype);
  return raw == 0 ? 0 : 4 + 4 * (raw / least_piece_bytes + 1) + raw;
}

std::uint64_t PiecewiseCodec::most_elements(std::uint64_t payload_bytes) const {
  constexpr std::uint64_t least_piece = 5;  // with its size in the table
  return payload_bytes / least_piece * most_piece_values;
}

std::size_t PiecewiseCodec::encode(ConstArray x, const Grid& grid, Extents extents, CodecMutBytes out, int threads,
                                   Witness* /*witness*/) const {
  const Cut cut{x.count, piece_values(x.dtype, extents), size_of(x.dtype)};
  if (x.count == 0) return 0;
  if (out.size() < cut.head())
    throw Error(Code::too_small, "out: " + std::to_string(out.size()) + " bytes cannot hold the frame");
  const std::size_t pieces = cut.pieces();
  const std::size_t piece_raw = cut.piece * cut.element_bytes;
  std::uint8_t* const body = out.data() + cut.head();
  std::uint8_t* const end = out.data() + out.size();
  store32(out.data(), cut.piece);
  // Each thread needs a share of out for its pieces as they are.
  const std::size_t parts = out.size() - cut.head() < x.bytes() ? 1 : parts_for(pieces, threads);
  std::vector<std::size_t> sizes(parts);
  const auto begin_of = [&](std::size_t part) { return body + pieces * part / parts * piece_raw; };
  parallel_ranges(pieces, parts, [&](std::size_t part, std::size_t first, std::size_t last) {
    const auto worker = coder(grid, extents);
    std::vector<std::uint8_t> scratch;
    std::uint8_t* at = begin_of(part);
    const std::uint8_t* const stop = part + 1 == parts ? end : begin_of(part + 1);
    for (std::size_t k = first; k < last; ++k) {
      const auto* from = static_cast<const std::uint8_t*>(x.data) + k * piece_raw;
      const std::size_t size = put(*worker, from, cut.values(k), cut.raw(k), at, stop, scratch);
      store32(out.data() + 4 + 4 * k, size);
      at += size;
    }
    sizes[part] = static_cast<std::size_t>(at - begin_of(part));
  });
  std::size_t total = sizes[0];
  for (std::size_t part = 1; part < parts; ++part) {
    std::memmove(body + total, begin_of(part), sizes[part]);
    total += sizes[part];
  }
  return cut.head() + total;
}

void PiecewiseCodec::check(const Coded& coded, CodecBytes payload) const {
  const Cut cut = cut_of(coded, payload);
  std::size_t total = cut.head();
  for (std::size_t k = 0; k < cut.pieces(); ++k) {
    const std::size_t size = size_at(payload, k);
    if (size == 0 || size > cut.raw(k))
      corrupt("piece " + std::to_string(k) + " of " + std::to_string(size) + " bytes");
    total += size;
  }
  if (total != payload.size())
    corrupt("its pieces take " + std::to_string(total) + " bytes, it has " + std::to_string(payload.size()));
}

void PiecewiseCodec::decode(const Coded& coded, CodecBytes payload, std::size_t first, MutArray y, int threads) const {
  check(coded, payload);
  if (y.count == 0) return;
  const Cut cut = cut_of(coded, payload);
  const std::size_t first_piece = first / cut.piece;
  const std::size_t last = first + y.count;
  const std::size_t pieces = (last - 1) / cut.piece + 1 - first_piece;
  parallel_ranges(pieces, parts_for(pieces, threads), [&](std::size_t, std::size_t begin, std::size_t end) {
    Reader reader(cut, payload, coder(coded.grid, {}), first_piece + begin);
    for (std::size_t k = first_piece + begin; k < first_piece + end; ++k) {
      const std::size_t start = k * cut.piece;
      const std::size_t from = std::max(first, start);
      const std::size_t to = std::min(last, start + cut.values(k));
      reader.next(k, from - start, to - start, static_cast<std::uint8_t*>(y.data) + (from - first) * cut.element_bytes);
    }
  });
}

}  // namespace laconic
