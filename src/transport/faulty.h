// A wrapper that damages what it carries: how tests learn what a bad network does to a collective.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "transport/transport.h"

namespace laconic {

/// Sees every message that a rank is about to send, in order, and may change it (flip bits, cut it short) or sleep.
using Fault = std::function<void(std::vector<std::uint8_t>& message, int to, std::uint64_t nth)>;

/// Sends copies of the messages after `fault` has had them; receives untouched. `inner` must outlive the wrapper.
/// allgather_small is passed on unchanged: the wrapper plays a bad wire, not a rank that lies.
std::unique_ptr<Transport> make_faulty_transport(Transport& inner, Fault fault);

/// Flips bit `bit` (modulo its length) of the nth message. truncate cuts it to `keep` bytes. delay holds every message.
Fault flip_bit(std::uint64_t nth, std::uint64_t bit);
Fault truncate(std::uint64_t nth, std::size_t keep);
Fault delay(double seconds);

}  // namespace laconic
