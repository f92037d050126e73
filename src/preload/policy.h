// Which calls of an unmodified program are served, and how: the rules of a policy, the first that matches wins. Nothing
// here knows MPI. The TOML form, with examples, is in docs/guide.md:
//
//   [[rule]]
//   collective = ["allreduce", "reduce"]   # allreduce, reduce, reduce_scatter, bcast, scatter, gather, allgather,
//                                          # alltoall, each with its v, block, non-blocking and persistent forms
//   datatype = "f32"                       # f32, f64, f16, bf16, i32, i64, u32, u64; complex numbers are pairs
//   op = "sum"                             # sum, min, max; movement has none
//   min_size = "64KiB"                     # of the largest array of the call; without it the rule is for calls of any
//                                          # size, of which it leaves alone those under 16 KiB
//   max_size = "1GiB"
//   communicator = "ocean*"                # its name (MPI_Comm_set_name, ncclConfig_t.commName) when first used;
//                                          # * and ? match anything
//   min_ranks = 4
//   max_ranks = 64
//   label = "solver*"                      # of the call site: the calling function's name, or "program+0x1a2b" where
//                                          # the file has no names; or what laconic_label() said; NCCL's
//                                          # calls have none
//   bound = "1e-3rel"                      # or "lossless"; without it LACONIC_BOUND holds, else lossless
//   codec = "slice"                        # with another one only calls of types that it takes match
//   mode = "auto"                          # auto, compressed, plain (counted and reported, not compressed), off
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collective/collective.h"
#include "collective/options.h"
#include "core/config.h"
#include "core/dtype.h"
#include "core/op.h"

namespace laconic::preload {

/// One call, as far as rules look at it. The same on every rank but for the label.
struct Situation {
  Collective collective = Collective::allreduce;
  DType dtype = DType::f32;
  Op op = Op::none;
  std::uint64_t bytes = 0;  ///< of the largest array that any rank has in this call
  std::string_view communicator{};
  int ranks = 1;
  std::string_view label{};
};

/// Calls with smaller arrays are left alone where their rule has no min_size: they are still that rule's, so that one
/// which protects some data (off, lossless) protects all of it from the rules that follow.
constexpr std::uint64_t default_min_bytes = std::uint64_t{16} << 10;

/// Under the mode auto calls with smaller arrays are left alone whatever a rule says: at 1 Gb/s all of such an array is
/// on the wire for 33 us, about what the exchange costs by which ranks would agree to compress it, and less than what
/// the hand-over of a non-blocking call to a thread does. Who knows better says mode = "compressed".
constexpr std::uint64_t least_auto_bytes = std::uint64_t{4} << 10;

struct Rule {
  std::vector<Collective> collectives;  ///< empty: any; so are the next two
  std::vector<DType> dtypes;
  std::vector<Op> ops;
  std::optional<std::uint64_t> min_bytes;
  std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();  ///< inclusive
  std::string communicator;                                             ///< pattern; empty: any
  int min_ranks = 2;
  int max_ranks = std::numeric_limits<int>::max();
  std::string label;  ///< pattern; empty: any
  bool off = false;   ///< left to MPI untouched
  std::optional<Bound> bound;
  CodecId codec = CodecId::slice;
  std::optional<Mode> mode;

  [[nodiscard]] bool matches(const Situation& s) const;
  /// The same for some label.
  [[nodiscard]] bool may_match(const Situation& s) const;
  [[nodiscard]] bool is_about(Collective collective) const;
  /// Whether no call that the default rule would serve gets past this one.
  [[nodiscard]] bool takes_all() const;
  /// Leaves those types that the codec takes, and within this bound. Throws Error(unsupported, invalid_argument) that
  /// says why not where the rule names one that it does not take, or where none is left.
  void narrow(const std::optional<Bound>& within);
  /// Calls with smaller arrays are left alone though the rule matches them.
  [[nodiscard]] std::uint64_t least_bytes() const;
};

struct Policy {
  std::vector<Rule> rules;
  std::string text;  ///< that it was read from

  /// Null: the call is left alone.
  [[nodiscard]] const Rule* match(const Situation& s) const;
  /// Smaller arrays are served under no rule, whatever else they are; the maximum where there are no rules.
  [[nodiscard]] std::uint64_t least_bytes() const;
  /// Whether some calls of a kind may be served, of whatever size: not all are off.
  [[nodiscard]] bool serves_some(Collective collective) const;
  /// The same for calls over communicators of this name.
  [[nodiscard]] bool serves_some(std::string_view communicator) const;
  /// Whether any rule looks at the communicator's name.
  [[nodiscard]] bool asks_for_names() const;
  [[nodiscard]] bool asks_for_labels() const;
  /// Whether it depends on its label if such a call is served, or how.
  [[nodiscard]] bool depends_on_label(const Situation& s) const;
  /// The same of its communicator's name.
  [[nodiscard]] bool depends_on_name(const Situation& s) const;
};

/// Throws Error(invalid_argument) whose text begins with "name:line:column: ". `name` is only for such texts.
Policy parse_policy(std::string_view toml, const std::string& name);

/// The same from a file. Throws Error(io) if it cannot be read, is a named pipe, or is longer than any policy.
Policy load_policy(const std::string& path);

/// The file that LACONIC_POLICY names (Error(io) if it cannot be read), followed by the rule that everything else is
/// under: served within LACONIC_BOUND, losslessly where there is none. Rules without a mode get that of `config`; those
/// without a bound must have a use for that of `config`: Error(unsupported, invalid_argument).
Policy policy_of(const Config& config);

/// How a call under this rule is made. What the rule leaves open is as `config` has it.
Options options_under(const Rule& rule, const Config& config);

/// Whether the pattern, in which * stands for any characters and ? for one, is the whole text.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace laconic::preload
