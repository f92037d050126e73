// Which calls may take the short way to the plain library: those like one that has passed all checks before and was
// left to that library. A call that gains nothing from compression must cost little more than the library's own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "collective/collective.h"
#include "collective/options.h"
#include "core/dtype.h"
#include "core/op.h"

namespace laconic {

class History;
struct UnknownSize;

/// What decides where a call goes, as far as its rank can tell, beside its options.
struct CallShape {
  Collective collective = Collective::allreduce;
  DType dtype = DType::f32;
  Op op = Op::none;
  std::uint64_t bytes = 0;  ///< as Workload has it
  bool irregular = false;   ///< parts may differ
  bool known = true;        ///< all ranks know its size; else bytes are those of this rank's own part
};

/// Of one communicator. One thread at a time.
class Shortcuts {
 public:
  /// Longer calls have other costs.
  static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 20;

  /// One kind of calls, by these options.
  struct Entry {
    CallShape shape;  ///< of one of them; the others have about as many bytes
    Options options;
    const Options* defaults = nullptr;  ///< the communicator's own, where these are a copy of those; see forget()
    History* history = nullptr;         ///< null: the caller has chosen the plain library,
    UnknownSize* unknown = nullptr;     ///< unless the ranks do not know its size, and this says when to ask
    bool leaves_on_stream = false;      ///< a call that is not timed need not be waited for
    std::uint64_t calls = 0;
    double seconds = 0;  ///< of the last call that was timed

    /// Reading the clock costs as much as all else that is done for a short call: one in a few is timed.
    [[nodiscard]] bool is_to_be_timed() const { return calls % 8 == 0 || (seconds > 10e-6 && !leaves_on_stream); }
  };

  /// Such a call has passed every check that does not look at its buffers and counts.
  void learn(const Entry& entry);
  /// Null: not known.
  [[nodiscard]] Entry* find(const CallShape& shape, const Options& options);
  /// When defaults or histories change.
  void forget() { entries_ = {}; }

 private:
  using Place = std::optional<Entry>;  // whoever comes later takes it over
  [[nodiscard]] Place& place_of(const CallShape& shape);
  std::array<Place, 64> entries_;
};

}  // namespace laconic
