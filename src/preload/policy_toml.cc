// What the parser (toml++ 3.3.0) asserts of a text, or lets the compiler assume, it mostly checks afterwards, too.
#undef NDEBUG
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>

#include "codec/codec.h"
#include "core/error.h"
#include "preload/policy.h"

namespace laconic::preload {
namespace {

constexpr std::array collectives{Collective::allreduce, Collective::reduce,  Collective::reduce_scatter,
                                 Collective::bcast,     Collective::scatter, Collective::gather,
                                 Collective::allgather, Collective::alltoall};

[[noreturn]] void refuse(const std::string& file, const toml::source_region& where, const std::string& what) {
  throw Error(Code::invalid_argument,
              file + ":" + std::to_string(where.begin.line) + ":" + std::to_string(where.begin.column) + ": " + what);
}

/// Reads the values of one rule; every complaint names the place.
class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  [[nodiscard]] std::string text(const toml::node& node, std::string_view key) const {
    if (const auto* s = node.as_string()) return s->get();
    refuse(file_, node.source(), std::string(key) + " wants a text in quotes");
  }

  [[nodiscard]] std::string pattern(const toml::node& node, std::string_view key) const {
    std::string given = text(node, key);
    if (given.empty()) refuse(file_, node.source(), std::string(key) + " is empty: leave it out to mean any");
    return given;
  }

  /// One text or a list of them, each understood by `parse`, which throws an Error for what it cannot.
  template <typename T>
  [[nodiscard]] std::vector<T> list(const toml::node& node, std::string_view key,
                                    const std::function<T(const std::string&)>& parse) const {
    std::vector<T> out;
    if (const auto* many = node.as_array()) {
      if (many->empty()) refuse(file_, node.source(), std::string(key) + " is an empty list: leave it out to mean any");
      for (const toml::node& one : *many) out.push_back(understood<T>(one, key, parse));
    } else {
      out.push_back(understood<T>(node, key, parse));
    }
    return out;
  }

  template <typename T>
  [[nodiscard]] T understood(const toml::node& node, std::string_view key,
                             const std::function<T(const std::string&)>& parse) const {
    const std::string given = text(node, key);
    try {
      return parse(given);
    } catch (const Error& e) {
      refuse(file_, node.source(), std::string(key) + ": " + e.what());
    }
  }

  [[nodiscard]] int ranks(const toml::node& node, std::string_view key) const {
    const auto value = node.value_exact<std::int64_t>();
    if (!value || *value < 1 || *value > std::numeric_limits<int>::max())
      refuse(file_, node.source(), std::string(key) + " wants a number of ranks, 1 or more");
    return static_cast<int>(*value);
  }

  /// A number of bytes: 65536, "64KiB", "1GiB".
  [[nodiscard]] std::uint64_t size(const toml::node& node, std::string_view key) const {
    if (const auto value = node.value_exact<std::int64_t>()) {
      if (*value < 0) refuse(file_, node.source(), std::string(key) + " is negative");
      return static_cast<std::uint64_t>(*value);
    }
    if (!node.is_string()) refuse(file_, node.source(), std::string(key) + " wants bytes, or a text like \"64KiB\"");
    const std::string given = text(node, key);
    std::uint64_t number = 0;
    const char* const end = given.data() + given.size();
    const auto [rest, error] = std::from_chars(given.data(), end, number);
    static const std::array<std::pair<std::string_view, int>, 5> units{
        {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}}};
    const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
    const auto* const known = std::find_if(units.begin(), units.end(), [&](const auto& u) { return u.first == unit; });
    if (error != std::errc{} || known == units.end() ||
        number > (std::numeric_limits<std::uint64_t>::max() >> known->second))
      refuse(file_, node.source(),
             std::string(key) + " is '" + given + "': want bytes, or a number with KiB, MiB or GiB");
    return number << known->second;
  }

 private:
  const std::string& file_;
};

Collective parse_collective(const std::string& name) {
  std::string want;
  for (const Collective c : collectives) {
    if (name == name_of(c)) return c;
    want += std::string(want.empty() ? "" : ", ") + name_of(c);
  }
  throw Error(Code::invalid_argument, "'" + name + "' is none of " + want);
}

Op parse_served_op(const std::string& name) {
  for (const Op op : {Op::sum, Op::min, Op::max}) {
    if (name == name_of(op)) return op;
  }
  throw Error(Code::unsupported, "MPI's " + name + " is never compressed: want sum, min or max");
}

Mode parse_mode(const std::string& name) {
  for (const Mode m : {Mode::automatic, Mode::compressed, Mode::plain}) {
    if (name == name_of(m)) return m;
  }
  throw Error(Code::invalid_argument, "'" + name + "' is none of auto, compressed, plain, off");
}

CodecId parse_codec(const std::string& name) {
  const Codec& codec = laconic::find_codec(name);
  if (!codec.available()) throw Error(Code::unsupported, name + " was not found when Laconic was built");
  return codec.id();
}

void read_member(const Reader& read, std::string_view key, const toml::node& value, Rule& rule,
                 const std::function<void(const std::string&)>& unknown) {
  if (key == "collective") {
    rule.collectives = read.list<Collective>(value, key, parse_collective);
  } else if (key == "datatype") {
    rule.dtypes = read.list<DType>(value, key, [](const std::string& t) { return parse_dtype(t); });
  } else if (key == "op") {
    rule.ops = read.list<Op>(value, key, parse_served_op);
  } else if (key == "min_size") {
    rule.min_bytes = read.size(value, key);
  } else if (key == "max_size") {
    rule.max_bytes = read.size(value, key);
  } else if (key == "communicator") {
    rule.communicator = read.pattern(value, key);
  } else if (key == "label") {
    rule.label = read.pattern(value, key);
  } else if (key == "min_ranks") {
    rule.min_ranks = read.ranks(value, key);
  } else if (key == "max_ranks") {
    rule.max_ranks = read.ranks(value, key);
  } else if (key == "bound") {
    rule.bound = read.understood<Bound>(value, key, [](const std::string& t) { return Bound::parse(t); });
  } else if (key == "codec") {
    rule.codec = read.understood<CodecId>(value, key, parse_codec);
  } else if (key == "mode") {
    rule.off = read.text(value, key) == "off";
    if (!rule.off) rule.mode = read.understood<Mode>(value, key, parse_mode);
  } else {
    unknown("'" + std::string(key) +
            "' is no member of a rule: want collective, datatype, op, min_size, max_size, communicator, min_ranks, "
            "max_ranks, label, bound, codec or mode");
  }
}

Rule read_rule(const toml::table& table, const std::string& file) {
  const Reader read(file);
  Rule rule;
  for (const auto& [key, value] : table) {
    const toml::source_region where = key.source();
    read_member(read, key.str(), value, rule, [&](const std::string& what) { refuse(file, where, what); });
  }
  // Of members that do not go together: where one of them is.
  const auto place_of = [&](std::string_view key) {
    const toml::node* const member = table.get(key);
    return member != nullptr ? member->source() : table.source();
  };
  try {
    rule.narrow(rule.bound);
  } catch (const Error& e) {
    refuse(file, place_of(std::string_view(e.what()).starts_with("codec") ? "codec" : "bound"), e.what());
  }
  if (!rule.ops.empty() && !rule.collectives.empty() &&
      std::none_of(rule.collectives.begin(), rule.collectives.end(), reduces))
    refuse(file, place_of("op"), "op: none of these collectives has one");
  if (rule.min_bytes > rule.max_bytes) refuse(file, place_of("max_size"), "no size is both min_size and max_size");
  if (!rule.off && !rule.min_bytes && rule.max_bytes < default_min_bytes)
    refuse(
        file, place_of("max_size"),
        "calls of less than 16 KiB are left alone where the rule has no min_size: add min_size = 0, or mode = \"off\"");
  if (rule.max_ranks < 2) refuse(file, place_of("max_ranks"), "calls over one rank are never served");
  if (rule.min_ranks > rule.max_ranks)
    refuse(file, place_of("max_ranks"), "no communicator has min_ranks and max_ranks");
  return rule;
}

/// Where a text in quotes that begins at `at` ends; npos: it does not.
std::size_t end_of_text(std::string_view toml, std::size_t at) {
  const char quote = toml[at];
  const std::string thrice(3, quote);
  const bool long_one = toml.substr(at).starts_with(thrice);
  const std::string_view end = long_one ? std::string_view(thrice) : toml.substr(at, 1);
  at += end.size();
  while (at < toml.size() && !toml.substr(at).starts_with(end)) {
    if (!long_one && toml[at] == '\n') return std::string_view::npos;
    at += quote == '"' && toml[at] == '\\' ? 2 : 1;
  }
  if (at >= toml.size()) return std::string_view::npos;
  at += end.size();
  for (int k = 0; long_one && k < 2 && at < toml.size() && toml[at] == quote; ++k) ++at;  // its own
  return at;
}

/// Refuses what the parser says does not happen, and then does anything: outside of texts and comments other characters
/// than those of ASCII that are printed.
void require_parsable(std::string_view toml, const std::string& name) {
  const auto refuse_at = [&](std::size_t at, const std::string& what) {
    const auto lines = std::count(toml.begin(), toml.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const std::size_t line = toml.substr(0, at).rfind('\n') + 1;  // 0 where there is none
    toml::source_region where;
    where.begin.line = static_cast<toml::source_index>(lines + 1);
    where.begin.column = static_cast<toml::source_index>(at - line + 1);
    refuse(name, where, what);
  };
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF", before_texts = " \t\n=,.[{";
  const std::size_t start = toml.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  for (std::size_t at = start; at < toml.size(); ++at) {
    const char c = toml[at];
    if ((c < ' ' && c != '\t' && c != '\n' && c != '\r') || c > '~') {
      refuse_at(at, "a character that means nothing outside of quotes");
    }
    if (c == '#') at = std::min(toml.find('\n', at), toml.size()) - 1;
    if (c != '"' && c != '\'') continue;
    if (at != start && before_texts.find(toml[at - 1]) == std::string_view::npos) {
      refuse_at(at, "a quotation mark within a word");
    }
    const std::size_t end = end_of_text(toml, at);
    if (end == std::string_view::npos) refuse_at(at, "a text without its closing quotation mark");
    at = end - 1;
  }
}

}  // namespace

Policy parse_policy(std::string_view toml_text, const std::string& name) {
  Policy policy;
  policy.text = toml_text;
  // Hundreds of rules. A key of many more parts than fit is one that the parser cannot unwind.
  constexpr std::size_t most = 64 * 1024;
  if (toml_text.size() > most)
    throw Error(Code::invalid_argument,
                name + ": a policy of more than 64 KiB (" + std::to_string(toml_text.size()) + " bytes) is not read");
  require_parsable(toml_text, name);
  toml::table file;
  try {
    file = toml::parse(toml_text, name);
  } catch (const toml::parse_error& e) {
    refuse(name, e.source(), std::string(e.description()));
  }
  for (const auto& [key, value] : file) {
    const auto* const rules = value.as_array();
    if (key.str() != "rule" || rules == nullptr)
      refuse(name, key.source(), "'" + std::string(key.str()) + "' is not known here: a policy is a list of [[rule]]");
    for (const toml::node& one : *rules) {
      const auto* const table = one.as_table();
      if (table == nullptr) refuse(name, one.source(), "a rule is written as [[rule]] with its members below");
      policy.rules.push_back(read_rule(*table, name));
    }
  }
  return policy;
}

}  // namespace laconic::preload
