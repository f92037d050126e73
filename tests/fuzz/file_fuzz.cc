// Any bytes as a file that the command or the drop-in library reads: .lcz, with its checksums put right so that what
// lies behind them is reached; .npy; a policy. The first byte says which.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "exit_code.h"
#include "fuzz/require.h"
#include "io/array_file.h"
#include "io/lcz.h"
#include "io/npy.h"
#include "preload/policy.h"
#include "support/patched_crc.h"

namespace laconic::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t most_elements = 1 << 16;

/// A file that has no name of its own.
class FileOf {
 public:
  explicit FileOf(std::span<const std::uint8_t> bytes) : fd_(::memfd_create("fuzz", 0)) {
    require(fd_ >= 0 && ::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "no file",
            "memfd");
  }
  ~FileOf() { ::close(fd_); }
  FileOf(const FileOf&) = delete;
  FileOf& operator=(const FileOf&) = delete;
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

void patch_header(Bytes& file, std::size_t checked) {
  const std::uint32_t crc = ~crc32c(0xFFFFFFFFU, file.data(), checked);
  std::memcpy(file.data() + checked, &crc, 4);
  std::memset(file.data() + checked + 4, 0, 4);
}

/// The checksums of the header, of the frames as they say where they end, and of all of these.
void patch_lcz(Bytes& file) {
  if (file.size() < 8) return;
  const std::size_t checked = 8 + 8 * static_cast<std::size_t>(file[6] + 256 * file[7]);
  if (file.size() < checked + 8) return;
  patch_header(file, checked);
  app::LczSeal seal;
  seal.add_header(std::span(file).first(checked + 8));
  std::size_t at = checked + 8;
  while (file.size() - at >= frame::header_bytes) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, file.data() + at + 24, 8);
    if (bytes < frame::header_bytes || bytes > file.size() - at) break;
    patch_checksum(file.data() + at, bytes);
    seal.add_frame(std::span(file).subspan(at, bytes));
    at += bytes;
  }
  const Bytes end = seal.bytes();
  if (file.size() - at == end.size()) std::copy(end.begin(), end.end(), file.begin() + static_cast<std::ptrdiff_t>(at));
}

void read_lcz(Bytes file) {
  patch_lcz(file);
  const FileOf there(file);
  app::LczReader reader(there.path());
  Bytes bytes;
  frame::Header header;
  std::uint64_t decoded = 0;
  while (reader.next(bytes, header)) {
    if (header.count > most_elements) return;
    reader.decode(bytes, header, 1, [&](std::span<const std::uint8_t> values) { decoded += values.size(); });
  }
  require(decoded == reader.count() * size_of(reader.shape().dtype), "other bytes than it says", "lcz");
}

/// What it is taken for, written again, is read as the same.
void read_npy(const Bytes& file) {
  const FileOf there(file);
  const app::ArrayReader array(there.path(), {});
  if (array.kind() != app::FileKind::npy || array.shape().dtype == DType::bf16) return;
  Bytes again = app::make_npy_header(array.shape());
  again.resize(again.size() + std::min(array.count(), most_elements) * size_of(array.shape().dtype));
  const FileOf second(again);
  require(app::read_npy_header(app::InputFile(second.path())).shape == array.shape(), "another shape", "npy");
  if (array.count() > most_elements) return;
  Bytes values(array.bytes());
  array.read(0, {values.data(), array.count(), array.shape().dtype});
}

/// Of ASCII: at other characters, outside of texts that are closed, toml++ 3.3.0 does anything.
void read_policy(const Bytes& file) {
  if (std::any_of(file.begin(), file.end(), [](std::uint8_t c) { return c >= 0x80; })) return;
  const preload::Policy policy = preload::parse_policy({reinterpret_cast<const char*>(file.data()), file.size()}, "p");
  preload::Situation call{.bytes = 1 << 20, .communicator = "ocean", .ranks = 4, .label = "solver"};
  const preload::Rule* const rule = policy.match(call);
  require(rule == nullptr || rule->matches(call), "a rule that does not match", "policy");
}

void fuzz(std::span<const std::uint8_t> data) {
  if (data.empty()) return;
  const Bytes file(data.begin() + 1, data.end());
  try {
    if (data[0] == 'l') read_lcz(file);
    if (data[0] == 'n') read_npy(file);
    if (data[0] == 'p') read_policy(file);
  } catch (const app::Failure&) {
  } catch (const Error& e) {
    require(e.code() != Code::internal, e.what(), "internal");
  }
}

}  // namespace
}  // namespace laconic::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  laconic::test::fuzz({data, size});
  return 0;
}
