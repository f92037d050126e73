// The one small exact exchange before data moves: every rank learns what every rank brought, and all come to the same
// decision or to the same error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective/collective.h"
#include "collective/communicator.h"
#include "collective/cost.h"
#include "collective/outliers.h"
#include "collective/pipeline.h"
#include "core/bound.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/op.h"
#include "core/range.h"

namespace laconic {

/// What one rank brings to a call.
struct Proposal {
  Collective collective = Collective::allreduce;
  DType dtype = DType::f32;
  Op op = Op::none;
  Bound bound{};
  std::uint64_t count = 0;             ///< elements of the operand
  std::uint64_t total = 0;             ///< elements of the whole result, as this rank understands it
  std::span<const std::size_t> parts;  ///< all ranks' counts, as this rank understands them; none: it has no idea
  std::int32_t root = -1;              ///< -1: a call without one
  Schedule schedule = Schedule::automatic;
  CodecId codec = CodecId::slice;
  Framework framework = Framework::automatic;
  Mode mode = Mode::automatic;
  double fraction = 0;                   ///< of the bytes that a sample of the operand leaves; 0: no sample
  double sampled_within = 0;             ///< the absolute bound of that sample; 0: lossless
  double plain_seconds = 0;              ///< measured by this rank before, see routing.h; 0: not
  double asking_seconds = 0;             ///< the same
  double compressed_cost = 0;            ///< the same, as a multiple of the model's seconds
  ScheduleSeconds schedule_seconds{};    ///< measured, of compressed calls by schedule
  int threads = 1;                       ///< of the codec on this rank
  std::uint64_t segment_values = 0;      ///< wish; 0: none
  Memory::SegmentBytes segment_bytes{};  ///< of the memory of this rank's arrays; powers of two
  bool confirm = true;                   ///< wish
  bool verify = false;                   ///< wish
  bool check = false;                    ///< wish
  bool in_place = false;                 ///< where that must have consequences on the other ranks too
  bool irregular = false;                ///< a v-collective
  bool news = false;                     ///< Asking::take_news()
  Range range{};
  std::optional<Error> refused;  ///< this rank cannot take part in the data exchange, and why
};

/// What all ranks know after the exchange.
struct Agreement {
  std::vector<std::uint64_t> counts;  ///< per rank
  Range range{};                      ///< of all operands
  double fraction = 1;                ///< mean over those who have taken a sample, within about the agreed bound if any
  bool sampled = false;               ///< within about the bound that the range of all operands gives
  double plain_seconds = 0;           ///< of the rank that came last, so that nobody's waiting counts; where ranks may
                                      ///< leave before others have come (rooted calls, scans): the slowest rank's
  double asking_seconds = 0;          ///< of the rank that came last
  double compressed_cost = 0;         ///< of the rank that came last, as a multiple of the model's seconds
  ScheduleSeconds schedule_seconds{};    ///< by schedule, of the rank that came last
  int threads = 1;                       ///< the fewest of any rank's codec
  std::uint64_t segment_values = 0;      ///< smallest wish; 0: nobody had one
  Memory::SegmentBytes segment_bytes{};  ///< the largest that any rank has
  bool confirm = false;                  ///< somebody wishes it
  bool verify = false;                   ///< somebody wishes it
  bool check = false;                    ///< somebody wishes it, or to verify
  bool in_place = false;                 ///< somebody is
  bool news = false;                     ///< somebody has some
};

/// How counts must fit together.
enum class CountRule : std::uint8_t {
  equal,   ///< the same count on every rank
  gather,  ///< any count, but each rank's total is the sum of all, and its parts, if it has any, are the counts
  shares,  ///< any count, but the root's parts are the counts
  any,     ///< any count, not compared here
};

/// What a rank's own error is to all, and to itself where the others do not hear of it.
Error refusal(Collective collective, int rank, const Error& why);

/// Collective: every rank calls it, also one whose arguments are wrong (with `refused` set). Where one rank refuses,
/// all throw its error, naming it; where ranks differ, all throw the same Error(mismatch) naming the rank and both
/// values. Of the parts digests are exchanged; where these differ, all show what they have in one more exchange.
Agreement agree(Communicator& comm, const Proposal& mine, CountRule rule, Report& report);

/// The mean over the ranks that have a sample (Proposal::fraction); `none` where nobody has.
double mean_fraction(Communicator& comm, double mine, double none, Report& report);

/// Adds up what the ranks found.
AllOutliers sum_outliers(Communicator& comm, const Outliers& mine, Report& report);

/// The exchange after data has moved: throws the same error on every rank if any of them failed. With
/// `together` off (the same on every rank) nothing is exchanged and it throws this rank's own failure.
void confirm(Communicator& comm, const std::optional<Failure>& mine, bool together, Report& report);

/// What verification found: the largest error, and of how many elements.
struct Achieved {
  double error = 0;
  std::uint64_t count = 0;
};
/// The same over all ranks.
Achieved achieved_by_all(Communicator& comm, const Achieved& mine, Report& report);

/// FNV-1a.
std::uint64_t digest(const std::vector<std::uint64_t>& values);

}  // namespace laconic
