#include "collective/shortcuts.h"

#include <bit>

namespace laconic {
namespace {

int size_class(const CallShape& s) { return s.known ? static_cast<int>(std::bit_width(s.bytes)) : 0; }

}  // namespace

Shortcuts::Place& Shortcuts::place_of(const CallShape& s) {
  const auto mixed = static_cast<std::size_t>(size_class(s)) + (s.irregular ? 31 : 0) +
                     7 * static_cast<std::size_t>(s.collective) + 13 * static_cast<std::size_t>(s.op) +
                     29 * static_cast<std::size_t>(s.dtype);
  return entries_[mixed % entries_.size()];
}

void Shortcuts::learn(const Entry& entry) {
  if (entry.shape.bytes <= most_bytes) place_of(entry.shape) = entry;
}

Shortcuts::Entry* Shortcuts::find(const CallShape& s, const Options& options) {
  Place& place = place_of(s);
  if (!place) return nullptr;
  const CallShape& known = place->shape;
  const bool alike = known.collective == s.collective && known.dtype == s.dtype && known.op == s.op &&
                     known.irregular == s.irregular && known.known == s.known && size_class(known) == size_class(s) &&
                     (place->defaults == &options || place->options == options);
  return alike ? &*place : nullptr;
}

}  // namespace laconic
