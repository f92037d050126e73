#include "collective/shortcuts.h"

#include <bit>

namespace laconic {

Shortcuts::Place& Shortcuts::place_of(const CallShape& s) {
  const auto mixed = static_cast<std::size_t>(std::bit_width(s.bytes)) + 7 * static_cast<std::size_t>(s.collective) +
                     13 * static_cast<std::size_t>(s.op) + 29 * static_cast<std::size_t>(s.dtype);
  return entries_[mixed % entries_.size()];
}

void Shortcuts::learn(const CallShape& shape, const Options& options, const Options* defaults, History* history,
                      bool leaves_on_stream) {
  if (shape.bytes > most_bytes) return;
  place_of(shape) = Entry{.shape = shape,
                          .options = options,
                          .defaults = defaults,
                          .history = history,
                          .leaves_on_stream = leaves_on_stream};
}

Shortcuts::Entry* Shortcuts::find(const CallShape& s, const Options& options) {
  Place& place = place_of(s);
  if (!place) return nullptr;
  const CallShape& known = place->shape;
  const bool alike = known.collective == s.collective && known.dtype == s.dtype && known.op == s.op &&
                     std::bit_width(known.bytes) == std::bit_width(s.bytes) &&
                     (place->defaults == &options || place->options == options);
  return alike ? &*place : nullptr;
}

}  // namespace laconic
