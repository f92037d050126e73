// Numbers in messages.
#pragma once

#include <array>
#include <charconv>
#include <string>

namespace laconic {

/// The shortest text that parses back to the same number.
inline std::string shortest(double value) {
  std::array<char, 32> digits{};  // at most 24
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

}  // namespace laconic
