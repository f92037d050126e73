#include "collective/metadata.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <type_traits>

#include "collective/budget.h"
#include "collective/exchange.h"

namespace laconic {
namespace {

constexpr std::uint32_t record_version = 0x4243414cU;  // "LACB": both ends speak the same record
constexpr std::size_t text_room = 136;
using Text = std::array<char, text_room>;
constexpr std::uint8_t flag_confirm = 1;
constexpr std::uint8_t flag_in_place = 2;
constexpr std::uint8_t flag_verify = 4;
constexpr std::uint8_t flag_news = 8;
constexpr std::uint8_t flag_check = 16;
constexpr std::uint8_t flag_irregular = 32;

/// A Proposal on the wire. Fixed size, no padding, little endian.
struct Record {
  std::uint32_t version = 0;
  std::uint8_t collective = 0, dtype = 0, op = 0, refused = 0;
  std::uint8_t bound_kind = 0, bound_scope = 0;
  std::uint8_t flags = 0, schedule = 0;
  std::int32_t root = -1;
  std::uint8_t codec = 0, framework = 0, mode = 0;
  std::uint8_t least_segment_bits = 0, most_segment_bits = 0;  ///< of SegmentBytes
  std::uint8_t turn = 0;
  std::uint16_t threads = 1;
  double bound_value = 0, bound_sigmas = 0;
  std::uint64_t count = 0, total = 0, layout = 0, segment_values = 0;
  double range_min = 0, range_max = 0;
  std::uint64_t range_count = 0, range_non_finite = 0;
  double fraction = 0, sampled_within = 0, plain_seconds = 0, asking_seconds = 0, compressed_cost = 0;
  double ring_seconds = 0, direct_seconds = 0;
};
static_assert(sizeof(Record) == 160);

struct Verdict {
  std::int32_t code = 0;
  std::int32_t rank = 0;
};

void put_text(char* room, std::size_t size, const std::string& text) {
  std::memcpy(room, text.data(), std::min(size - 1, text.size()));
}

Record pack(const Proposal& p, std::uint8_t turn) {
  Record r;
  r.turn = turn;
  r.version = record_version;
  r.collective = static_cast<std::uint8_t>(p.collective);
  r.dtype = static_cast<std::uint8_t>(p.dtype);
  r.op = static_cast<std::uint8_t>(p.op);
  r.bound_kind = static_cast<std::uint8_t>(p.bound.kind);
  r.bound_scope = static_cast<std::uint8_t>(p.bound.scope);
  r.bound_value = p.bound.value;
  r.bound_sigmas = p.bound.sigmas;
  r.flags = static_cast<std::uint8_t>((p.confirm ? flag_confirm : 0U) | (p.in_place ? flag_in_place : 0U) |
                                      (p.verify ? flag_verify : 0U) | (p.news ? flag_news : 0U) |
                                      (p.check ? flag_check : 0U) | (p.irregular ? flag_irregular : 0U));
  r.schedule = static_cast<std::uint8_t>(p.schedule);
  r.codec = static_cast<std::uint8_t>(p.codec);
  r.framework = static_cast<std::uint8_t>(p.framework);
  r.mode = static_cast<std::uint8_t>(p.mode);
  r.fraction = p.fraction;
  r.sampled_within = p.sampled_within;
  r.plain_seconds = p.plain_seconds;
  r.asking_seconds = p.asking_seconds;
  r.compressed_cost = p.compressed_cost;
  r.ring_seconds = p.schedule_seconds.ring;
  r.direct_seconds = p.schedule_seconds.direct;
  r.root = p.root;
  r.threads = static_cast<std::uint16_t>(std::clamp(p.threads, 1, 0xffff));
  r.count = p.count;
  r.total = p.total;
  if (!p.parts.empty()) r.layout = digest({p.parts.begin(), p.parts.end()});
  r.segment_values = p.segment_values;
  r.least_segment_bits = static_cast<std::uint8_t>(std::countr_zero(p.segment_bytes.least));
  r.most_segment_bits = static_cast<std::uint8_t>(std::countr_zero(p.segment_bytes.most));
  r.range_min = p.range.min;
  r.range_max = p.range.max;
  r.range_count = p.range.count;
  r.range_non_finite = p.range.non_finite;
  if (p.refused) r.refused = static_cast<std::uint8_t>(p.refused->code());
  return r;
}

Bound bound_of(const Record& r) {
  return {static_cast<BoundKind>(r.bound_kind), static_cast<BoundScope>(r.bound_scope), r.bound_value, r.bound_sigmas};
}

/// The same on every rank, whoever calls.
[[noreturn]] void throw_mismatch(Collective what, const char* argument, int rank, const std::string& theirs,
                                 const std::string& first) {
  throw Error(Code::mismatch, std::string(name_of(what)) + ": rank " + std::to_string(rank) + " passed " + argument +
                                  " " + theirs + ", rank 0 passed " + first +
                                  "; all ranks of a call must pass the same");
}

std::string text_of(const Bound& bound) { return bound.to_string(); }
std::string text_of(CodecId codec) {
  const Codec* known = find_codec(codec);
  return known != nullptr ? std::string(known->name()) : std::to_string(static_cast<int>(codec));
}
template <typename Value>
std::string text_of(Value value) {
  if constexpr (std::is_enum_v<Value>) {
    return std::string(name_of(value));
  } else {
    return std::to_string(value);
  }
}

std::string call_of(const Record& r) {
  return std::string(name_of(static_cast<Collective>(r.collective))) + ((r.flags & flag_irregular) != 0 ? "v" : "");
}

/// That all call the same, in the same words: what else must be equal depends on that.
void require_one_collective(const std::vector<Record>& all) {
  const Record& first = all.front();
  const auto what = static_cast<Collective>(first.collective);
  for (std::size_t r = 1; r < all.size(); ++r) {
    const Record& other = all[r];
    if (other.version != first.version)
      throw_mismatch(what, "record version", static_cast<int>(r), std::to_string(other.version),
                     std::to_string(first.version));
    if (other.collective != first.collective || ((other.flags ^ first.flags) & flag_irregular) != 0)
      throw_mismatch(what, "collective", static_cast<int>(r), call_of(other), call_of(first));
  }
}

/// Where one rank is a call ahead there is no way back.
void require_one_turn(Communicator& comm, const std::vector<Record>& all) {
  if (std::ranges::all_of(all, [&](const Record& r) { return r.turn == all.front().turn; })) return;
  comm.mark_unusable();
  throw Error(Code::mismatch,
              std::string(name_of(static_cast<Collective>(all.front().collective))) + ": " + other_turns);
}

/// Every other field that must be equal, in order of how much it explains.
void require_equal(const std::vector<Record>& all, CountRule rule) {
  const Record& first = all.front();
  const auto what = static_cast<Collective>(first.collective);
  for (int r = 1; r < static_cast<int>(all.size()); ++r) {
    const Record& other = all[static_cast<std::size_t>(r)];
    const auto differ = [&](const char* argument, const auto& theirs, const auto& ours) {
      if (!(theirs == ours)) throw_mismatch(what, argument, r, text_of(theirs), text_of(ours));
    };
    differ("dtype", static_cast<DType>(other.dtype), static_cast<DType>(first.dtype));
    differ("op", static_cast<Op>(other.op), static_cast<Op>(first.op));
    differ("bound", bound_of(other), bound_of(first));
    differ("root", other.root, first.root);
    differ("schedule", static_cast<Schedule>(other.schedule), static_cast<Schedule>(first.schedule));
    differ("mode", static_cast<Mode>(other.mode), static_cast<Mode>(first.mode));
    differ("codec", static_cast<CodecId>(other.codec), static_cast<CodecId>(first.codec));
    differ("framework", static_cast<Framework>(other.framework), static_cast<Framework>(first.framework));
    // Of these that is what the parts come to, which nobody passed as it is.
    const bool in_parts = what == Collective::reduce_scatter || what == Collective::alltoall;
    const char* const count = in_parts ? "a total count of" : "count";
    if (rule == CountRule::equal) differ(count, other.count, first.count);
  }
}

/// Whether nobody leaves the plain library's call before all have come.
bool keeps_ranks_together(Collective c) {
  return c == Collective::allreduce || c == Collective::allgather || c == Collective::alltoall ||
         c == Collective::reduce_scatter;
}

double extreme_of(const std::vector<Record>& all, double Record::* what, bool least) {
  const auto less = [what](const Record& a, const Record& b) { return a.*what < b.*what; };
  const auto it =
      least ? std::min_element(all.begin(), all.end(), less) : std::max_element(all.begin(), all.end(), less);
  return (*it).*what;
}

/// Mean over the samples.
class MeanFraction {
 public:
  void add(double fraction) {
    sum_ += fraction;
    samples_ += fraction > 0 ? 1 : 0;
  }
  [[nodiscard]] bool any() const { return samples_ > 0; }
  [[nodiscard]] double get() const { return sum_ / samples_; }

 private:
  double sum_ = 0;
  int samples_ = 0;
};

// A bit more or less of each element is about what other samples of the same data differ by.
bool about_the_same(double bound, double other) { return bound <= 2 * other && other <= 2 * bound; }

/// Of samples that each rank has taken within a bound from its own range.
void agree_on_fraction(Agreement& agreed, const std::vector<Record>& all) {
  MeanFraction any, fitting;
  for (const Record& r : all) any.add(r.fraction);
  if (!any.any()) return;
  const Record& first = all.front();
  const double bound = absolute_bound(static_cast<DType>(first.dtype), bound_of(first), agreed.range);
  for (const Record& r : all)
    if (about_the_same(r.sampled_within, bound)) fitting.add(r.fraction);
  agreed.sampled = fitting.any();
  agreed.fraction = (agreed.sampled ? fitting : any).get();
}

/// "rank 1 passed count 20, rank 0 has counts[1] = 15"
[[noreturn]] void throw_other_parts(Collective what, int rank, std::uint64_t count, const std::string& who,
                                    std::uint64_t expected) {
  throw Error(Code::mismatch, std::string(name_of(what)) + ": rank " + std::to_string(rank) + " passed count " +
                                  std::to_string(count) + ", " + who + " has counts[" + std::to_string(rank) +
                                  "] = " + std::to_string(expected));
}

/// That those who say what all ranks' counts are mean the same, and where they must, the counts that there are.
void require_same_parts(Communicator& comm, const Proposal& mine, const std::vector<Record>& all, CountRule rule,
                        const std::vector<std::uint64_t>& counts, Report& report) {
  if (rule == CountRule::any) return;
  const std::uint64_t wanted = rule == CountRule::equal ? all.front().layout : digest(counts);
  const auto other = std::ranges::find_if(
      all, [&](const Record& r) { return r.layout != wanted && (r.layout != 0 || rule == CountRule::equal); });
  if (other == all.end()) return;
  std::vector<std::uint64_t> row(mine.parts.begin(), mine.parts.end());
  row.resize(all.size());
  const std::vector<std::uint64_t> rows = exchange(comm, std::span<const std::uint64_t>(row), report);
  const auto what = static_cast<Collective>(other->collective);
  const auto rank = static_cast<int>(other - all.begin());
  const auto theirs = std::span(rows).subspan(static_cast<std::size_t>(rank) * all.size(), all.size());
  const auto expected = rule == CountRule::equal ? std::span(rows).first(all.size()) : std::span(counts);
  const auto [at, there] = std::ranges::mismatch(expected, theirs);
  const auto part = static_cast<int>(at - expected.begin());
  if (rule == CountRule::equal)
    throw_mismatch(what, ("counts[" + std::to_string(part) + "]").c_str(), rank, std::to_string(*there),
                   std::to_string(*at));
  throw_other_parts(what, part, *at, (rule == CountRule::shares ? "the root, rank " : "rank ") + std::to_string(rank),
                    *there);
}

void require_totals(const std::vector<Record>& all) {
  std::uint64_t sum = 0;
  for (const Record& r : all) sum += r.count;
  // Where all count on the same from each rank, it is who brings another that matters.
  const bool equal = std::ranges::all_of(all, [&](const Record& r) { return r.total == r.count * all.size(); });
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (equal && all[r].count != all.front().count) {
      throw_mismatch(static_cast<Collective>(all[r].collective), "count", static_cast<int>(r),
                     std::to_string(all[r].count), std::to_string(all.front().count));
    }
    if (equal || all[r].total == sum) continue;
    throw Error(Code::mismatch, std::string(name_of(static_cast<Collective>(all[r].collective))) + ": rank " +
                                    std::to_string(r) + " has room for " + std::to_string(all[r].total) +
                                    " elements, all ranks together bring " + std::to_string(sum));
  }
}

/// Only where somebody refuses do the words travel, too.
void require_nobody_refused(Communicator& comm, const Proposal& mine, const std::vector<Record>& all, Report& report) {
  const auto first = std::ranges::find_if(all, [](const Record& r) { return r.refused != 0; });
  if (first == all.end()) return;
  Text text{};
  if (mine.refused) put_text(text.data(), text.size(), mine.refused->what());
  const auto rank = static_cast<std::size_t>(first - all.begin());
  const Text words = exchange(comm, text, report)[rank];
  throw refusal(static_cast<Collective>(first->collective), static_cast<int>(rank),
                Error(static_cast<Code>(first->refused), std::string(words.data(), strnlen(words.data(), text_room))));
}

}  // namespace

Error refusal(Collective collective, int rank, const Error& why) {
  return {why.code(), std::string(name_of(collective)) + ": rank " + std::to_string(rank) + ": " + why.what()};
}

Agreement agree(Communicator& comm, const Proposal& mine, CountRule rule, Report& report) {
  const double before = report.stats.wire_seconds;
  const std::vector<Record> all = exchange(comm, pack(mine, comm.turn()), report);
  report.agreement_seconds = report.stats.wire_seconds - before;
  require_one_turn(comm, all);
  require_nobody_refused(comm, mine, all, report);
  require_one_collective(all);
  require_equal(all, rule);
  Agreement agreed;
  for (const Record& r : all) agreed.counts.push_back(r.count);
  require_same_parts(comm, mine, all, rule, agreed.counts, report);
  if (rule == CountRule::gather) require_totals(all);
  agreed.threads = all.front().threads;
  agreed.plain_seconds = extreme_of(all, &Record::plain_seconds, keeps_ranks_together(mine.collective));
  agreed.asking_seconds = extreme_of(all, &Record::asking_seconds, true);
  agreed.compressed_cost = extreme_of(all, &Record::compressed_cost, true);
  agreed.schedule_seconds = {extreme_of(all, &Record::ring_seconds, true),
                             extreme_of(all, &Record::direct_seconds, true)};
  for (const Record& r : all) {
    agreed.range = merge(agreed.range, {r.range_min, r.range_max, r.range_count, r.range_non_finite});
    agreed.confirm = agreed.confirm || (r.flags & flag_confirm) != 0;
    agreed.in_place = agreed.in_place || (r.flags & flag_in_place) != 0;
    agreed.verify = agreed.verify || (r.flags & flag_verify) != 0;
    agreed.check = agreed.check || (r.flags & (flag_check | flag_verify)) != 0;
    agreed.news = agreed.news || (r.flags & flag_news) != 0;
    auto& [least, most] = agreed.segment_bytes;
    least = std::max(least, std::size_t{1} << (r.least_segment_bits & 63U));
    most = std::max(most, std::size_t{1} << (r.most_segment_bits & 63U));
    agreed.threads = std::min<int>(agreed.threads, r.threads);
    if (r.segment_values == 0) continue;
    const bool first = agreed.segment_values == 0;
    agreed.segment_values = first ? r.segment_values : std::min(agreed.segment_values, r.segment_values);
  }
  agree_on_fraction(agreed, all);
  return agreed;
}

double mean_fraction(Communicator& comm, double mine, double none, Report& report) {
  MeanFraction mean;
  for (const double fraction : exchange(comm, mine, report)) mean.add(fraction);
  return mean.any() ? mean.get() : none;
}

AllOutliers sum_outliers(Communicator& comm, const Outliers& mine, Report& report) {
  return all_outliers(exchange(comm, mine, report));
}

void confirm(Communicator& comm, const std::optional<Failure>& mine, bool together, Report& report) {
  if (!together) {
    if (mine) throw Error(mine->code, mine->text);
    return;
  }
  const Verdict verdict{mine ? static_cast<std::int32_t>(mine->code) : 0, mine ? mine->rank : 0};
  const auto verdicts = exchange(comm, verdict, report);
  const auto failed = std::find_if(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.code != 0; });
  if (failed == verdicts.end()) return;
  // Only now does anybody need the words; all ranks quote the first rank that has any.
  std::array<char, 512> text{};
  if (mine) put_text(text.data(), text.size(), mine->text);
  const auto texts = exchange(comm, text, report);
  const auto& words = texts[static_cast<std::size_t>(failed - verdicts.begin())];
  throw Error(static_cast<Code>(failed->code), std::string(words.data(), strnlen(words.data(), words.size())));
}

Achieved achieved_by_all(Communicator& comm, const Achieved& mine, Report& report) {
  Achieved all;
  for (const Achieved& a : exchange(comm, mine, report)) {
    all.error = std::max(all.error, a.error);
    all.count += a.count;
  }
  return all;
}

std::uint64_t digest(const std::vector<std::uint64_t>& values) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::uint64_t v : values) {
    for (int byte = 0; byte < 8; ++byte) {
      hash = (hash ^ (v >> (8 * byte) & 0xff)) * 0x100000001b3ULL;
    }
  }
  return hash;
}

}  // namespace laconic
