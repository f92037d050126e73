// A call's other way: the plain library's own collective, where that is faster or wished for.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "collective/call.h"
#include "collective/layout.h"
#include "collective/routing.h"
#include "collective/shortcuts.h"

namespace laconic {

/// The call as the plain library would make it.
struct PlainCall {
  std::uint64_t bytes = 0;     ///< as CallShape has it
  std::uint64_t elements = 0;  ///< held against PlainCollectives::most_elements(); 0: may be any number
  bool irregular = false;      ///< parts may differ
  bool known = true;           ///< all ranks know its size before they have agreed
};

/// Whether such a call needs no exchange since its mode is plain: all ranks have once agreed
/// to make the collective so. See PlainWay::at_once().
bool goes_plainly_unasked(const CallShape& shape, Communicator& comm, const Options& options);

/// The short way. Begins such a call: null where it must go the long one. Throws if the communicator is unusable.
Shortcuts::Entry* open_shortcut(const CallShape& shape, Communicator& comm, const Options& options);
/// The call has been made; `seconds`: null where it was not timed.
void close_shortcut(Shortcuts::Entry& known, const CallShape& shape, const double* seconds, Communicator& comm);

/// The whole call, if it may take the short way: as PlainWay::at_once(), but nothing of it is looked at here. The
/// caller has looked at its buffers (are_sound()), counts and root, and found them `sound`. False where it must go the
/// long way; else the communicator has the report.
template <typename Run>
bool by_shortcut(bool sound, const CallShape& shape, Communicator& comm, const Options& options, Run&& run) {
  Shortcuts::Entry* const known = sound ? open_shortcut(shape, comm, options) : nullptr;
  if (known == nullptr) return false;
  using Clock = std::chrono::steady_clock;
  const bool timed = known->is_to_be_timed();
  Clock::time_point start;
  try {
    PlainCollectives& library = *comm.plain();
    comm.memory().before_plain(library, timed);
    if (timed) start = Clock::now();
    run(library);
  } catch (const Error&) {
    comm.mark_unusable();
    throw;
  }
  const double seconds = timed ? std::chrono::duration<double>(Clock::now() - start).count() : 0;
  close_shortcut(*known, shape, timed ? &seconds : nullptr, comm);
  return true;
}

/// Whether nothing is wrong with these buffers: what Call::check_arrays() would find. `in_place` is as there.
inline bool are_sound(const ConstArray& send, const MutArray& recv, const void* in_place) {
  if (send.dtype != recv.dtype) return false;
  if ((send.data == nullptr && send.count != 0) || (recv.data == nullptr && recv.count != 0)) return false;
  return send.data == in_place || !overlap(send, recv);
}
/// The same of an array of equal parts of all ranks and this rank's own, which may be in its place.
bool is_sound_whole(const ConstArray& whole, const ConstArray& own, const Communicator& comm);
/// Of an array of parts that may differ: the elements in them, where they lie one behind the other, within the array; a
/// rank's own, of which there are so many, too. Nothing where they do not: it takes more to see what is wrong, if it
/// is.
std::optional<std::uint64_t> elements_in_order(const Parts& parts, const ConstArray& array, std::size_t own,
                                               const Communicator& comm);
/// As is_sound_whole(), where parts may differ: their elements; nothing where they are not sound.
std::optional<std::uint64_t> elements_of_sound(const ConstArray& whole, const Parts& parts, const ConstArray& own,
                                               const Communicator& comm);
inline bool is_rank(int root, const Communicator& comm) { return root >= 0 && root < comm.size(); }

/// Made when arguments have been checked, before the operand is looked through. Does nothing where the caller chose
/// otherwise (Options::mode, or anything about how to compress), where the library has no such call, and where it could
/// not keep a promise: exact sums of floats, sums of 16-bit floats, minima of floats (a NaN may be lost, and ranks may
/// differ where -0 meets 0).
class PlainWay {
 public:
  /// run(PlainCollectives&) makes the call. All must outlive this.
  template <typename Run>
  PlainWay(Call& call, Communicator& comm, PlainCall plain, Run& run)
      : call_(call), comm_(comm), plain_(plain), run_(&run), make_([](const void* r, PlainCollectives& library) {
          (*static_cast<const Run*>(r))(library);
        }) {
    prepare();
  }

  /// The whole call, where it is known without asking the others that it goes plainly (in mode plain from the second of
  /// a collective on): nothing is exchanged then, and what holds when ranks disagree is what holds for the plain
  /// library. If this rank cannot take part, that is thrown.
  [[nodiscard]] const Report* at_once();

  /// Into the proposal: what the others must know to decide. `operand` (may be empty) has been looked through.
  void propose(ConstArray operand);

  /// The whole call, if that is what the ranks decide. The first time on a communicator, costs are measured.
  [[nodiscard]] const Report* if_cheaper(const Agreement& agreed);

 private:
  void prepare();
  /// What is expected of a call whose size ranks do not know.
  void foresee();
  /// Whoever decides about asking what has become of it.
  void tell();
  [[nodiscard]] CallShape shape() const;
  [[nodiscard]] bool offered() const;
  /// Whether nobody need be asked. Counts.
  [[nodiscard]] bool goes_unasked();
  [[nodiscard]] bool keeps_promise(const Agreement& agreed);
  /// From the counts of all ranks, and what is known of calls of that size.
  void learn_size(const Agreement& agreed);
  /// What the range of all operands may be: this rank's own, widened as the last agreement widened it.
  [[nodiscard]] Range expected_range() const;
  /// Whether compression could pay for such operands if they were as smooth as can be.
  [[nodiscard]] bool may_pay(const Range& range);
  /// What remains of a sample of this rank's operand where all operands have this range.
  [[nodiscard]] double sample(const Range& range);
  /// The same over all ranks, in one more small exchange: for where ranks have looked at data within other bounds.
  [[nodiscard]] double sample_together(const Agreement& agreed);
  [[nodiscard]] Estimates estimates(const Costs& costs, double fraction) const;
  /// As many are summed on a grid.
  [[nodiscard]] int operands() const;
  Costs calibrate(CodecKind kind);
  [[nodiscard]] const Report& run();

  Call& call_;
  Communicator& comm_;
  PlainCall plain_;
  const void* run_;  // no std::function: that costs more than a short call may
  void (*make_)(const void* run, PlainCollectives& library);
  Mode mode_ = Mode::compressed;  ///< for this call
  History* history_ = nullptr;
  bool is_as_expected_ = true;      ///< the size: what ranks have told each other is of calls like this one
  InAdvance* advance_ = nullptr;    ///< of a call whose arguments do not tell its size, if that is known nevertheless
  UnknownSize* unknown_ = nullptr;  ///< of one of which it is not, if others are asked about it
  bool is_checked_ = false;         ///< as agreed: the next call of its kind must be heard too
  std::uint64_t part_ = 0;          ///< bytes of this rank's own of it
  bool repeats_ = false;            ///< the last call of its kind, if this one is agreed on: see History
  Workload workload_;
  ConstArray operand_{};
};

/// What the library computes for a reduction by `op`: an average that it does not have is a sum, divided afterwards.
Op plain_op(Op op, DType dtype, const PlainCollectives& library);
/// The rest of an average over `ranks` of which the library has made `done`.
void finish_plain_average(Op op, Op done, MutArray recv, int ranks, Memory& memory = host_memory());

}  // namespace laconic
