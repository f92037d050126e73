// Files as the command uses them: inputs read at offsets, outputs that appear whole or not at all.
#pragma once

#include <sys/stat.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace laconic::app {

/// A regular file opened for reading. Throws Failure(no_input) when it cannot be opened or read.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Fills `out` from `offset`; a file that ends before is Failure(bad_data).
  void read_at(std::uint64_t offset, std::span<std::uint8_t> out) const;

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

/// While it lives, a pipe that nobody reads any more and a limit on files' size make a write fail, and do not end the
/// program.
class WriteFailuresOnly {
 public:
  WriteFailuresOnly();
  ~WriteFailuresOnly();
  WriteFailuresOnly(const WriteFailuresOnly&) = delete;
  WriteFailuresOnly& operator=(const WriteFailuresOnly&) = delete;

 private:
  std::array<struct ::sigaction, 2> before_{};
};

/// A file that appears under its name only when commit() has succeeded: until then a temporary beside it, which is
/// removed on destruction, on an error and on signals that end the program. One that replaces another has its mode and,
/// where that is permitted, its owner. Devices and pipes are written directly. Throws Failure(no_output). One output at
/// a time is protected against signals (the newest).
class OutputFile {
 public:
  /// `overwrite` false: an existing regular file is a Failure that says so, also one that comes before commit().
  OutputFile(const std::string& path, bool overwrite);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::uint8_t> data);
  /// Makes the file durable and visible. Call once, last.
  void commit();
  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  [[noreturn]] void fail(const char* doing) const;
  [[noreturn]] void refuse_to_replace() const;
  void open_temporary();
  void allow_only(const struct ::stat& before) const;
  void rename_temporary() const;

  std::optional<WriteFailuresOnly> failures_only_{std::in_place};  // until commit()
  std::string path_;                                               // as the user wrote it, for messages
  std::string target_;                                             // symbolic links resolved
  std::string temporary_;                                          // empty: written directly
  bool overwrite_;
  std::optional<struct ::stat> replaced_;
  int fd_ = -1;
  std::uint64_t written_ = 0;
};

/// Before `output` is made of `input`. Throws Failure(usage) where they are one file, of which nothing would be left,
/// and where the output is to be named after a device.
void require_output(const std::string& input, const std::string& output);

/// Writes a whole small file through OutputFile, replacing what was there.
void write_file(const std::string& path, std::span<const std::uint8_t> data);
void write_file(const std::string& path, const std::string& text);

/// Creates a folder and its parents; Failure(no_output) when that is impossible.
void make_folder(const std::string& path);

}  // namespace laconic::app
