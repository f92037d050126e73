// The .lcz file: a header that says what the array was, then frames one after another, and a checksum that makes sure
// that they are this array's, and in their places. docs/format.md describes it (14. Files).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "frame/checksum.h"
#include "frame/frame.h"
#include "io/array_file.h"
#include "io/file.h"

namespace laconic::app {

/// Raw bytes that one frame of a file covers: large enough to cost nothing, small enough to keep memory bounded.
inline constexpr std::size_t lcz_segment_bytes = std::size_t{64} << 20;

std::vector<std::uint8_t> make_lcz_header(const Shape& shape, FileKind original);

/// What a .lcz file ends with.
class LczSeal {
 public:
  void add_header(std::span<const std::uint8_t> header);
  void add_frame(std::span<const std::uint8_t> frame);
  [[nodiscard]] std::vector<std::uint8_t> bytes() const;

 private:
  void add(std::span<const std::uint8_t> checksum);

  std::uint32_t crc_ = frame::crc_start;  // of all checksums so far
};

/// Reads a .lcz file frame by frame. Throws Failure(corrupt) when it is damaged, Failure(bad_data) when it is none.
class LczReader {
 public:
  explicit LczReader(const std::string& path);

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] FileKind original() const { return original_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_.size(); }
  [[nodiscard]] const std::string& path() const { return file_.path(); }

  /// The next frame, with its checksum checked; false after the last. `frame` keeps its memory between calls.
  bool next(std::vector<std::uint8_t>& frame, frame::Header& header);
  /// Decodes the frame that next() gave, piece by piece: a small frame may stand for very many values, and memory must
  /// not follow what a file claims. Throws Failure(corrupt) that names file and frame, Error(unsupported) for a codec
  /// that was not built in.
  void decode(std::span<const std::uint8_t> frame, const frame::Header& header, int threads,
              const std::function<void(std::span<const std::uint8_t>)>& take);

 private:
  [[noreturn]] void corrupt(const std::string& why) const;
  void read_header();
  void check_end();

  InputFile file_;
  Shape shape_;
  FileKind original_ = FileKind::raw;
  std::uint64_t count_ = 0;
  std::uint64_t seen_ = 0;    // elements of the frames so far
  std::uint64_t at_ = 0;      // byte where the next frame begins
  std::uint64_t frames_ = 0;  // frames so far
  LczSeal seal_;              // of what was read so far
  std::vector<std::uint8_t> values_;
};

}  // namespace laconic::app
