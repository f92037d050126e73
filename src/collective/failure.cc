#include "collective/failure.h"

#include <cstring>

namespace laconic {
namespace {

// Magic, code, rank, text.
constexpr std::uint8_t magic[4] = {'L', 'E', 'R', 'R'};
constexpr std::size_t head = 12;

}  // namespace

std::vector<std::uint8_t> poison_of(const Failure& failure) {
  std::vector<std::uint8_t> bytes(head);
  const auto code = static_cast<std::int32_t>(failure.code);
  const auto rank = static_cast<std::int32_t>(failure.rank);
  std::memcpy(&bytes[0], magic, 4);
  std::memcpy(&bytes[4], &code, 4);
  std::memcpy(&bytes[8], &rank, 4);
  const std::string text = failure.text.substr(0, most_poison_bytes - head);
  bytes.insert(bytes.end(), text.begin(), text.end());
  return bytes;
}

std::optional<Failure> failure_in(std::span<const std::uint8_t> message) {
  if (message.size() < head || std::memcmp(message.data(), magic, 4) != 0) return std::nullopt;
  std::int32_t code = 0;
  std::int32_t rank = 0;
  std::memcpy(&code, &message[4], 4);
  std::memcpy(&rank, &message[8], 4);
  std::string text(message.begin() + head, message.end());
  if (!text.empty() && text.back() == '\0') text.pop_back();
  return Failure{static_cast<Code>(code), rank, text};
}

}  // namespace laconic
