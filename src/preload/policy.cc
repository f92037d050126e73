#include "preload/policy.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace laconic::preload {
namespace {

template <typename T>
bool contains_or_any(const std::vector<T>& wanted, T value) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

constexpr std::array every_dtype{DType::f32, DType::f64, DType::f16, DType::bf16,
                                 DType::i32, DType::i64, DType::u32, DType::u64};

void require_use(const Codec& codec, DType dtype, const std::optional<Bound>& within) {
  require_dtype(codec, dtype);
  if (!within) return;
  const bool ratio = within->kind == BoundKind::ratio;
  // Where nothing is lost, a ratio would pass for a bound.
  static_cast<void>(grid_for(codec, ratio ? rate_grid(dtype, within->value) : Grid{.dtype = dtype}));  // says why not
  static_cast<void>(grid_for(codec, dtype, *within, Range{}));
}

bool allows(const std::string& pattern, std::string_view text) {
  return pattern.empty() || matches_pattern(pattern, text);
}

/// But for what the communicator and the call are named.
bool suits(const Rule& r, const Situation& s) {
  return s.bytes >= r.min_bytes.value_or(0) && s.bytes <= r.max_bytes && s.ranks >= r.min_ranks &&
         s.ranks <= r.max_ranks && contains_or_any(r.collectives, s.collective) && contains_or_any(r.dtypes, s.dtype) &&
         contains_or_any(r.ops, s.op);
}

/// Whether it depends on what this pattern is about if a call is served, or how, of which `may_match` tells whether
/// it is a rule's for some text there.
template <typename MayMatch>
bool depends_on(std::string Rule::* pattern, std::uint64_t bytes, const std::vector<Rule>& rules,
                MayMatch&& may_match) {
  bool asked = false, served = false;
  for (const Rule& r : rules) {
    if (!may_match(r)) continue;
    served = served || bytes >= r.least_bytes();
    if ((r.*pattern).empty()) break;
    asked = true;
  }
  return asked && served;
}

/// Of a rule that is off: nothing that others would serve, of whatever size, gets past it.
bool leaves_none(const Rule& off) { return off.takes_all() && off.min_bytes.value_or(0) == 0; }

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0;
  std::size_t star = std::string_view::npos, after_star = 0;  // the last * and where the text went on behind it
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool Rule::is_about(Collective collective) const { return contains_or_any(collectives, collective); }

bool Rule::takes_all() const {
  const Rule any;
  return collectives.empty() && dtypes.empty() && ops.empty() && communicator.empty() && label.empty() &&
         min_bytes.value_or(0) <= default_min_bytes && max_bytes == any.max_bytes && min_ranks <= any.min_ranks &&
         max_ranks == any.max_ranks;
}

void Rule::narrow(const std::optional<Bound>& within) {
  const Codec& chosen = *find_codec(codec);
  const bool named = !dtypes.empty();
  std::vector<DType> taken;
  std::optional<Error> why_not;
  for (const DType d : named ? dtypes : std::vector<DType>(every_dtype.begin(), every_dtype.end())) {
    try {
      require_use(chosen, d, within);
      taken.push_back(d);
    } catch (const Error& e) {
      if (named) throw;
      if (!why_not) why_not = e;
    }
  }
  if (taken.empty()) throw Error(*why_not);
  if (taken.size() < every_dtype.size()) dtypes = std::move(taken);
}

bool Rule::may_match(const Situation& s) const { return suits(*this, s) && allows(communicator, s.communicator); }

bool Rule::matches(const Situation& s) const { return may_match(s) && allows(label, s.label); }

std::uint64_t Rule::least_bytes() const {
  if (off) return std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t least = min_bytes.value_or(default_min_bytes);
  return mode == Mode::automatic ? std::max(least, least_auto_bytes) : least;
}

const Rule* Policy::match(const Situation& s) const {
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const Rule& r) { return r.matches(s); });
  return found == rules.end() || s.bytes < found->least_bytes() ? nullptr : &*found;
}

std::uint64_t Policy::least_bytes() const {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const Rule& r : rules) least = std::min(least, r.least_bytes());
  return least;
}

bool Policy::serves_some(Collective collective) const {
  for (Rule r : rules) {
    if (!r.is_about(collective)) continue;
    if (!r.off) return true;
    r.collectives.clear();
    if (leaves_none(r)) return false;
  }
  return false;
}

bool Policy::serves_some(std::string_view communicator) const {
  for (Rule r : rules) {
    if (!allows(r.communicator, communicator)) continue;
    if (!r.off) return true;
    r.communicator.clear();
    if (leaves_none(r)) return false;
  }
  return false;
}

bool Policy::asks_for_names() const {
  return std::any_of(rules.begin(), rules.end(), [](const Rule& r) { return !r.communicator.empty(); });
}

bool Policy::asks_for_labels() const {
  return std::any_of(rules.begin(), rules.end(), [](const Rule& r) { return !r.label.empty(); });
}

bool Policy::depends_on_label(const Situation& s) const {
  return depends_on(&Rule::label, s.bytes, rules, [&](const Rule& r) { return r.may_match(s); });
}

bool Policy::depends_on_name(const Situation& s) const {
  return depends_on(&Rule::communicator, s.bytes, rules,
                    [&](const Rule& r) { return suits(r, s) && allows(r.label, s.label); });
}

Policy load_policy(const std::string& path) {
  // Nobody may be writing to it; the shell's own, as /dev/stdin, has a writer.
  std::error_code ignored;
  if (std::filesystem::is_fifo(path, ignored) && !path.starts_with("/dev/"))
    throw Error(Code::io, "the policy '" + path + "' is a pipe, which may be waited for in vain; name a file");
  constexpr std::size_t longest = std::size_t{1}
                                  << 20;  // what goes on for ever is no policy; parse_policy() takes less
  std::ifstream in(path, std::ios::binary);
  std::string text(longest + 1, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.eof()) {
    const std::string why = std::generic_category().message(std::exchange(errno, 0));
    throw Error(Code::io, "the policy '" + path + "' " +
                              (in.is_open() && in.good() ? "is longer than 64 KiB" : "cannot be read: " + why));
  }
  text.resize(static_cast<std::size_t>(in.gcount()));
  return parse_policy(text, path);
}

Policy policy_of(const Config& config) {
  Policy policy;
  if (!config.policy.empty()) policy = load_policy(config.policy);
  if (std::none_of(policy.rules.begin(), policy.rules.end(), [](const Rule& r) { return r.takes_all(); }))
    policy.rules.emplace_back();
  for (Rule& r : policy.rules) {
    r.mode = r.mode.value_or(config.mode);
    if (r.off || r.bound) continue;
    try {
      r.narrow(options_under(r, config).bound);
    } catch (const Error& e) {
      throw Error(e.code(), (config.bound ? "LACONIC_BOUND: " : "a rule without bound: ") + std::string(e.what()));
    }
  }
  return policy;
}

Options options_under(const Rule& rule, const Config& config) {
  Options o;
  o.bound = rule.bound.value_or(config.bound.value_or(Bound{}));
  o.threads = config.threads;
  o.codec = rule.codec;
  o.mode = rule.mode.value_or(config.mode);
  o.verify = config.verify;
  o.check = config.check;
  return o;
}

}  // namespace laconic::preload
