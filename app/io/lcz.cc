#include "io/lcz.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"
#include "exit_code.h"
#include "frame/layout.h"

namespace laconic::app {
namespace {

constexpr std::array<std::uint8_t, 4> lcz_magic = {'L', 'C', 'Z', 2};
constexpr std::size_t fixed_bytes = 8;
constexpr std::size_t tail_bytes = 8;
constexpr std::uint64_t piece_chunks = 16384;  // decoded at a time

std::uint32_t crc32c(std::span<const std::uint8_t> data) { return ~frame::crc_update(frame::crc_start, data); }

void put(std::vector<std::uint8_t>& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

std::uint64_t get(std::span<const std::uint8_t> in, std::size_t at, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(in[at + static_cast<std::size_t>(i)]) << (8 * i);
  return value;
}

}  // namespace

std::vector<std::uint8_t> make_lcz_header(const Shape& shape, FileKind original) {
  std::vector<std::uint8_t> out(lcz_magic.begin(), lcz_magic.end());
  put(out, static_cast<std::uint8_t>(shape.dtype), 1);
  put(out, static_cast<std::uint8_t>(original), 1);
  put(out, shape.dims.size(), 2);
  for (const std::uint64_t d : shape.dims) put(out, d, 8);
  put(out, crc32c(out), 4);
  put(out, 0, 4);
  return out;
}

void LczSeal::add_header(std::span<const std::uint8_t> header) { add(header.subspan(header.size() - tail_bytes, 4)); }

void LczSeal::add_frame(std::span<const std::uint8_t> frame) { add(frame.subspan(frame::at_crc, 4)); }

void LczSeal::add(std::span<const std::uint8_t> checksum) { crc_ = frame::crc_update(crc_, checksum); }

std::vector<std::uint8_t> LczSeal::bytes() const {
  std::vector<std::uint8_t> out;
  put(out, ~crc_, 4);
  put(out, 0, 4);
  return out;
}

LczReader::LczReader(const std::string& path) : file_(path) { read_header(); }

void LczReader::corrupt(const std::string& why) const {
  throw Failure(Exit::corrupt, fmt::format("'{}' is damaged: {}", path(), why));
}

void LczReader::read_header() {
  std::vector<std::uint8_t> head(fixed_bytes);
  const bool whole = file_.size() >= head.size();
  file_.read_at(0, std::span(head).first(whole ? head.size() : file_.size()));
  if (std::memcmp(head.data(), lcz_magic.data(), lcz_magic.size() - 1) != 0)
    throw Failure(Exit::bad_data, fmt::format("'{}' is no .lcz file", path()));
  if (!whole) corrupt("it ends inside its header");
  if (head[3] != lcz_magic[3])
    throw Failure(Exit::bad_data,
                  fmt::format("'{}' has version {}; this command reads version {}", path(), head[3], lcz_magic[3]));
  const std::size_t extents = get(head, 6, 2);
  if (extents > max_dims) corrupt(fmt::format("{} extents", extents));
  const std::size_t checked = fixed_bytes + 8 * extents;
  if (file_.size() < checked + tail_bytes) corrupt("it ends inside its header");
  head.resize(checked + tail_bytes);
  file_.read_at(0, head);
  if (crc32c(std::span(head).first(checked)) != get(head, checked, 4)) corrupt("the header's checksum does not match");
  shape_.dtype = static_cast<DType>(head[4]);
  if (!is_valid(shape_.dtype) || head[5] > 1 || get(head, checked + 4, 4) != 0) corrupt("the header makes no sense");
  original_ = static_cast<FileKind>(head[5]);
  for (std::size_t i = 0; i < extents; ++i) shape_.dims.push_back(get(head, fixed_bytes + 8 * i, 8));
  count_ = count_of(shape_, path());
  at_ = head.size();
  seal_.add_header(head);
}

void LczReader::check_end() {
  const std::vector<std::uint8_t> want = seal_.bytes();
  const std::uint64_t left = file_.size() - at_;
  if (left < want.size()) corrupt("it ends before its last checksum");
  if (left > want.size()) corrupt(fmt::format("{} bytes follow its end", left - want.size()));
  std::vector<std::uint8_t> found(want.size());
  file_.read_at(at_, found);
  if (found != want) corrupt("its frames are not those of this array, or not in their places");
}

void LczReader::decode(std::span<const std::uint8_t> frame, const frame::Header& header, int threads,
                       const std::function<void(std::span<const std::uint8_t>)>& take) {
  const DType dtype = header.grid.dtype;
  std::uint64_t first = 0;
  do {
    const std::uint64_t chunks = std::min(piece_chunks, header.chunks() - first);
    const std::uint64_t begin = first * frame::chunk_values;
    const auto n = static_cast<std::size_t>(std::min(chunks * frame::chunk_values, header.count - begin));
    values_.resize(n * size_of(dtype));
    const MutArray out{values_.data(), n, dtype};
    try {
      if (n == header.count) {
        frame::decode(frame, out, threads);
      } else {
        frame::decode_chunks(frame, first, chunks, out, true);
      }
    } catch (const Error& e) {
      if (e.code() != Code::corrupt) throw;
      corrupt(fmt::format("frame {}: {}", frames_ - 1, e.what()));
    }
    take(values_);
    first += chunks;
  } while (first < header.chunks());
}

bool LczReader::next(std::vector<std::uint8_t>& frame, frame::Header& header) {
  if (seen_ == count_ && frames_ > 0) {
    check_end();
    return false;
  }
  const std::uint64_t left = file_.size() - at_;
  if (left < frame::header_bytes) corrupt(fmt::format("it ends after {} of {} values", seen_, count_));
  try {
    frame.resize(frame::header_bytes);
    file_.read_at(at_, frame);
    header = frame::peek(frame);
    if (header.frame_bytes > left) corrupt(fmt::format("it ends inside frame {}", frames_));
    if (header.grid.dtype != shape_.dtype || header.count > count_ - seen_ || (header.count == 0 && count_ > 0))
      corrupt(fmt::format("frame {} does not belong to this array", frames_));
    frame.resize(header.frame_bytes);
    file_.read_at(at_, frame);
    header = frame::check(frame);
  } catch (const Error& e) {
    corrupt(fmt::format("frame {} at byte {}: {}", frames_, at_, e.what()));
  }
  seal_.add_frame(frame);
  at_ += header.frame_bytes;
  seen_ += header.count;
  ++frames_;
  return true;
}

}  // namespace laconic::app
