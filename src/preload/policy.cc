#include "preload/policy.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "core/error.h"

namespace laconic::preload {
namespace {

template <typename T>
bool contains_or_any(const std::vector<T>& wanted, T value) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

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

void Rule::require_use_for(const Bound& given) const {
  const Codec& chosen = *find_codec(codec);
  for (const DType d : dtypes) require_dtype(chosen, d);
  static_cast<void>(grid_for(chosen, dtypes.empty() ? DType::f32 : dtypes.front(), given, Range{}));
}

bool Rule::matches(const Situation& s) const {
  return s.bytes >= min_bytes && s.bytes <= max_bytes && s.ranks >= min_ranks && s.ranks <= max_ranks &&
         contains_or_any(collectives, s.collective) && contains_or_any(dtypes, s.dtype) && contains_or_any(ops, s.op) &&
         (communicator.empty() || matches_pattern(communicator, s.communicator)) &&
         (label.empty() || matches_pattern(label, s.label));
}

std::uint64_t Rule::least_bytes() const {
  if (off) return std::numeric_limits<std::uint64_t>::max();
  return mode == Mode::automatic ? std::max(min_bytes, least_auto_bytes) : min_bytes;
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

bool Policy::asks_for_names() const {
  return std::any_of(rules.begin(), rules.end(), [](const Rule& r) { return !r.communicator.empty(); });
}

bool Policy::asks_for_labels() const {
  return std::any_of(rules.begin(), rules.end(), [](const Rule& r) { return !r.label.empty(); });
}

Policy load_policy(const std::string& path) {
  constexpr std::size_t longest = std::size_t{1} << 20;  // what goes on for ever is no policy
  std::ifstream in(path, std::ios::binary);
  std::string text(longest + 1, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.eof()) {
    throw Error(Code::io,
                "the policy '" + path + "' " + (in.is_open() && in.good() ? "is longer than 1 MiB" : "cannot be read"));
  }
  text.resize(static_cast<std::size_t>(in.gcount()));
  return parse_policy(text, path);
}

Policy policy_of(const Config& config) {
  Policy policy;
  if (!config.policy.empty()) policy = load_policy(config.policy);
  policy.rules.emplace_back();
  for (Rule& r : policy.rules) {
    r.mode = r.mode.value_or(config.mode);
    try {
      r.require_use_for(options_under(r, config).bound);
    } catch (const Error& e) {
      const char* const whose = config.bound ? "LACONIC_BOUND: " : "a rule without bound: ";
      throw Error(e.code(), (r.bound ? "" : whose) + std::string(e.what()));
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
  return o;
}

}  // namespace laconic::preload
