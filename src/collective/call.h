// What every collective does around its data exchange: check the arguments, agree, keep the clock, report.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "collective/budget.h"
#include "collective/communicator.h"
#include "collective/metadata.h"
#include "collective/routing.h"
#include "collective/verify.h"
#include "core/array.h"
#include "core/float_environment.h"
#include "transport/plain.h"

namespace laconic {

/// What begins every call that is not certain to be a short plain one: throws Error(transport) if the communicator is
/// unusable, and waits for what was left to the plain library.
void require_ready(Communicator& comm);

/// One call of one collective on one rank. Construct, check, agree, move data, finish.
class Call {
 public:
  /// Throws if the communicator is unusable: without the others, since none of them can be reached.
  Call(Collective collective, Communicator& comm, const Options& options);

  /// Runs a check of this rank's arguments; an Error that it throws is kept for agree(), so that the others hear of it.
  template <typename Check>
  void check(Check&& work) {
    if (proposal_.refused) return;
    try {
      work();
    } catch (const Error& e) {
      proposal_.refused = e;
    }
  }

  /// Checks that hold everywhere: dtypes, pointers, overlap, bound, threads, op. `in_place` is where send.data must
  /// equal recv.data's counterpart if the two overlap at all.
  void check_arrays(ConstArray send, MutArray recv, const void* in_place);
  void check_bound(DType dtype);
  void check_op(Op op, DType dtype);
  /// Codec and framework fit each other and the dtype. Part of check_arrays().
  void check_codec(DType dtype);
  void check_root(int root);
  void check_same_count(ConstArray send, ConstArray recv);
  /// All of a reduction's that has the same count on both sides.
  void check_reduction(ConstArray send, MutArray recv, Op op);
  /// Of a rank that knows the parts of all ranks in its array of `total` elements: one for each rank, which fill it or,
  /// with displacements, lie in it; this rank's has `own` elements. `side` stands before their names in errors.
  void check_parts(const Parts& parts, std::size_t total, std::size_t own, const std::string& side = "");
  /// That nothing is written twice, and nothing written over that is sent (but for this rank's own part in its place).
  void check_apart(const std::vector<ConstArray>& sent, const std::vector<MutArray>& written);

  /// Looks through the operand, if its range is needed.
  void scan_operand(ConstArray operand);
  /// The same where it is several arrays: what lies between them is nobody's business.
  void scan_operand(std::span<const ConstArray> parts);

  /// The exchange. See metadata.h.
  Agreement agree(CountRule rule);

  /// Where the ranks agreed on it: the call will be verified when it finishes. To be called before the result is
  /// written.
  void verify(const Agreement& agreed, Verification::Blocks blocks, Verification::Exactly exactly);

  /// The budget on the grid of operands of this range: of all ranks together, or of this one before they have agreed.
  [[nodiscard]] const Budget& budget_within(const Range& range);
  /// The budget of a reduction, agreed by all: where there are values beyond the grid, one more small exchange tells
  /// how many. Puts the decision into the report.
  Budget decide(Op op, ConstArray operand, const Agreement& agreed);
  /// The budget of data that only moves. Puts it into the report.
  Budget decide_movement(DType dtype, const Agreement& agreed);
  /// Puts a decision into the report.
  void note(const Budget& budget);

  /// Elements of a segment, whole chunks: what was agreed, or what suits blocks of these numbers of elements.
  [[nodiscard]] std::size_t segment_values(const Agreement& agreed, DType dtype,
                                           const std::vector<std::size_t>& blocks) const;

  /// The exchange after the data; throws what any rank has to say. Then closes the books, and verifies.
  const Report& finish(const std::optional<Failure>& failure);

  /// Since it began.
  [[nodiscard]] double seconds() const;

  /// For a call that moved no data.
  const Report& finish();

  /// For a reduction on one rank: the result is the operand.
  const Report& finish_alone(const ConstArray& send, const MutArray& recv);

  /// What this call takes is noted there, if it ends well.
  void watch(History* history) { history_ = history; }
  /// What it takes is not to be noted after all, and this is how it goes where a schedule is to be chosen.
  void repeat_schedule(bool direct) {
    history_ = nullptr;
    direct_ = direct;
  }

  /// The schedule of a reduction on the grid where nobody chose one: what suits by choice.h, given whether a direct
  /// exchange pays. Where that matters, it follows from what such calls took, or else from the model.
  using Choose = std::function<Schedule(std::optional<bool> direct_pays)>;
  Schedule faster_schedule(ConstArray operand, const Budget& budget, const Agreement& agreed, const Choose& choose);

  [[nodiscard]] Proposal& proposal() { return proposal_; }
  [[nodiscard]] Report& report() { return report_; }
  /// As they are carried out; what this rank was given is in the proposal.
  [[nodiscard]] const Options& options() const { return options_; }
  /// Never automatic.
  [[nodiscard]] Framework framework() const;

 private:
  /// Then not all data need be known: see moving_range.h.
  [[nodiscard]] bool moves_on_grid() const;
  FloatEnvironment environment_;  // first: it outlives the rest; all but what the plain library does is computed in it

  /// The same where values lie beyond the grid.
  Budget without_outliers(const Budget& budget, ConstArray operand, const Agreement& agreed);

  Communicator& comm_;
  Options options_;
  Proposal proposal_;
  Report report_;
  bool confirm_ = true;
  History* history_ = nullptr;
  Measured* by_schedule_ = nullptr;  ///< in the history
  std::optional<bool> direct_;       ///< of repeat_schedule()
  std::optional<Budget> budget_;     ///< within budget_range_: several ask for the same one
  Range budget_range_;
  std::optional<Verification> verification_;
  std::chrono::steady_clock::time_point start_;
};

/// For a rank that cannot even begin such a call (its bytes do not matter) by these options: takes part in the
/// exchange, so that the others fail too, and throws. Where they ask nobody, it throws at once in mode plain; in the
/// automatic one it cannot know, waits for as long as the communicator does, and says both.
[[noreturn]] void refuse(const CallShape& shape, Communicator& comm, const Options& options, const Error& why);

}  // namespace laconic
