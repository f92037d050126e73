// Which way a call goes: compressed, or by the plain library's own collective. What the model says comes first; from
// then on, what calls of the same kind took. Every decision follows from values that all ranks have agreed on.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "collective/asking.h"
#include "collective/call_kind.h"
#include "collective/cost.h"
#include "collective/memory.h"
#include "collective/shortcuts.h"
#include "core/array.h"
#include "core/bound.h"
#include "core/op.h"
#include "transport/transport.h"

namespace laconic {

class Communicator;
struct Agreement;

/// What one rank measured of one way, in seconds or as a multiple of an expectation: the third best of the last eight
/// calls. Whatever else happens makes calls slower; but one that nothing happens to is luck where a way is often held
/// up, as long messages are. Of fewer calls some in a row that are held up now and then look like all.
class Measured {
 public:
  void note(double cost);
  void clear() { calls_ = 0; }
  /// 0 until there are three: the first, which also pays for connections and pages, does not count, and one is luck.
  [[nodiscard]] double cost() const;

 private:
  std::array<double, 8> last_{};
  unsigned calls_ = 0;
};

/// What all ranks know when they decide. Seconds; 0: not measured.
struct Estimates {
  double fraction = 1;     ///< of the original bytes that would travel, from a sample of the data
  double plain_model = 0;  ///< cost.h
  double compressed_model = 0;
  double compressed_at_best = 0;  ///< the model, for data of which next to nothing would travel
  double plain_measured = 0;      ///< see Agreement
  double compressed_measured = 0;
  double agreement = 0;  ///< what asking costs, measured or by the model
};

/// Of two ways to make the same call, when the one that is not taken is tried, so that both are measured.
class Trials {
 public:
  /// A call that is not asked about.
  void skip(std::uint64_t calls = 1) { calls_since_ += calls; }
  /// Whether this call goes the other way. Seconds; 0: not measured. For a first try, the model must not give
  /// the other way more than `hope` times as long.
  bool is_due(double taken, double other, double other_model, double hope);

 private:
  std::uint64_t calls_since_ = 0;
  double patience_ = 8;  ///< calls after which a short one is tried again; longer each time
};

/// What happened to calls of one kind.
class History {
 public:
  Measured plain;         ///< this rank's own; seconds
  Measured asking;        ///< what came before the plain call in those that were agreed on, in seconds
  Measured compressed;    ///< the same as a multiple of what the model had for that data: other data may be next
  Measured ring, direct;  ///< seconds of those by one of these schedules, of data like the last
  double widening = 1;    ///< all operands' range, as a multiple of this rank's, in the last agreement

  /// Whether this call goes plainly without being agreed on. The same on all ranks, and counted.
  bool at_once();
  /// So many calls went plainly without anybody looking here.
  void skip(std::uint64_t calls);
  /// After how many calls decide() was last content to be asked again.
  [[nodiscard]] std::uint64_t interval() const { return interval_; }
  /// Whether decide() found the plain way faster, whichever the call took then.
  [[nodiscard]] bool prefers_plain() const { return prefers_plain_; }
  /// Whether the call that is being agreed on goes plainly. May let some of the next ones go at_once(), more and more
  /// often, so that asking costs a hundredth of what the calls take.
  bool decide(const Estimates& e);
  /// Whether the compressed call being agreed on takes a direct exchange rather than a ring. `expected`: what is done
  /// where not both have been measured.
  bool goes_directly(bool expected, const ScheduleSeconds& model, const ScheduleSeconds& measured);
  /// Whether the next call that is agreed on goes as the last one did, compressed, and nobody need look at its data:
  /// for short calls, to which that look is much, of data that have shrunk alike for some time. The same on all ranks.
  [[nodiscard]] bool repeats() const { return repeats_left_ > 0; }
  /// In place of decide(), if repeats(). What the call takes is not to be noted: its data may be others after all.
  /// Returns whether it takes a direct exchange rather than a ring.
  bool repeat();
  /// The compressed call that was agreed on, by ring or direct (or null).
  void note_compressed(double seconds, Measured* schedule);
  /// The next call is agreed on.
  void ask_next() { at_once_left_ = interval_ = 0; }

 private:
  void let_pass(const Estimates& e);
  /// Whether data that shrink to `fraction` are like those of the last compressed call.
  bool look_alike(double fraction);

  Trials ways_, schedules_;
  std::uint64_t at_once_left_ = 0, interval_ = 0;
  std::uint64_t repeats_left_ = 0;
  std::uint64_t alike_ = 0;         ///< looks at data in a row that have found what the one before found
  std::uint64_t enough_alike_ = 4;  ///< before a call repeats the last one; more where that was wrong
  bool prefers_plain_ = false, prefers_direct_ = false;  ///< when last asked
  double fraction_ = 0;                                  ///< of the last compressed call
  double model_ = 0;  ///< seconds that the model gave the call agreed on, if that is compressed and was asked about
};

/// What is known of calls whose size ranks know only when they have agreed; but for last_part, and what `asking` has
/// seen of parts, the same on all ranks.
struct UnknownSize {
  Asking asking;                 ///< calls that are not asked about go plainly
  std::uint64_t last_bytes = 0;  ///< of the last that was: what the next one's are expected to be; 0: there was none
  std::uint64_t last_part = 0;   ///< what of them was this rank's
  History* last = nullptr;       ///< of calls of that size

  /// Where what a call takes may be noted that was not asked about: it is like the last that was, as far as a rank can
  /// tell. Null: it is not.
  [[nodiscard]] History* history_of(std::uint64_t part) const {
    return std::bit_width(part) == std::bit_width(last_part) ? last : nullptr;
  }
};

/// What a communicator knows about costs.
class Routing {
 public:
  /// Collective, the first time for each kind. When all ranks have agreed that they want to know.
  Costs calibrate(CodecKind kind, Transport& transport, Memory& memory);
  /// In place of a calibration; the same on all ranks.
  void set_costs(CodecKind kind, const Costs& costs);
  /// Nothing before the first calibrate().
  [[nodiscard]] const std::optional<Link>& link() const { return link_; }
  /// Nothing before calibrate() of this kind.
  [[nodiscard]] std::optional<Costs> costs(CodecKind kind) const;
  /// The history of this kind. A new one beyond a few thousand makes all be forgotten: on all ranks at once, as all
  /// meet the same kinds in the same order.
  History& of(const CallKind& kind);
  /// Everything about calls, as then: when one has failed before ranks knew that they mean the same.
  void forget();
  /// A history for what only this rank may ask: null where there is none.
  [[nodiscard]] History* known(const CallKind& kind);
  /// Of calls of this kind, its size class left open. Forgotten as histories are.
  UnknownSize& of_unknown_size(const CallKind& kind);
  [[nodiscard]] Shortcuts& shortcuts() { return shortcuts_; }
  /// Whether all ranks have once agreed to make this collective plainly whatever it costs (Mode::plain): the next need
  /// no exchange. Before, one that wants otherwise would wait for the others for ever.
  [[nodiscard]] bool& plain_wanted_by_all(Collective c) { return plain_wanted_by_all_[c]; }

 private:
  std::optional<Link> link_;
  std::array<std::optional<CodecSpeed>, codec_kinds> codec_;
  std::map<CallKind, History> histories_;
  std::pair<const CallKind, History>* last_ = nullptr;  ///< most calls are like the one before
  Shortcuts shortcuts_;                                 ///< into histories_ and of_unknown_size_
  std::map<Collective, bool> plain_wanted_by_all_;
  std::map<CallKind, UnknownSize> of_unknown_size_;
};

/// Seconds that the plain library's own call would have taken by the model, for a call that was made: it would have
/// waited for the last rank, too. 0 where nothing has been measured yet. `bytes`: as Workload has them.
double plain_estimate(Collective collective, std::uint64_t bytes, const Report& made, Communicator& comm);

/// What the model expects of a reduction of x within `budget`, the same on all ranks. Zeros where it knows too little:
/// links or codecs that have not been measured, or no sample of the data.
ScheduleSeconds model_of_schedules(Collective collective, Op op, ConstArray x, const Budget& budget,
                                   const Agreement& agreed, Communicator& comm);

/// The share of bytes that remains of some chunks spread over x (in `memory`), encoded within `bound` (absolute; 0:
/// losslessly); 1 for an empty array.
double sample_fraction(Memory& memory, ConstArray x, double bound, double max_abs);

}  // namespace laconic
