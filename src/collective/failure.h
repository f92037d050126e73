// Why a collective failed, and how that travels in place of data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"

namespace laconic {

/// `rank`: where it began.
struct Failure {
  Code code = Code::ok;
  int rank = 0;
  std::string text;
};

/// Of a poison message.
inline constexpr std::size_t most_poison_bytes = 412;

/// The failure as a poison message, its text shortened if need be. No frame begins as this does.
std::vector<std::uint8_t> poison_of(const Failure& failure);

/// What a message says if it is a poison message; a zero byte may follow that.
std::optional<Failure> failure_in(std::span<const std::uint8_t> message);

}  // namespace laconic
