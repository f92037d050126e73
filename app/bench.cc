// laconic bench codec: speed, ratio and error of all codecs over the sample fields, side by side. The collectives are
// measured by the executables for MPI, which the command becomes under their launchers.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arguments.h"
#include "bench/codec_bench.h"
#include "bench/collective_options.h"
#include "bench/dataset.h"
#include "bench/timing.h"
#include "command.h"
#include "core/error.h"
#include "exit_code.h"
#include "launcher.h"
#include "report/json.h"
#include "report/progress.h"
#include "report/table.h"

namespace laconic::app {
namespace {

struct BenchOptions {
  FieldOptions fields;
  std::string size = "64MiB";
  std::vector<std::string> bounds{"1e-2rel", "1e-3rel", "1e-4rel"};
  std::vector<std::string> codecs{"all"};
  std::vector<std::string> targets{"best"};
  int threads = 1;
  int repetitions = 5;
  bool no_cache = false;
  bool ratio_only = false;
  bool per_field = false;
};

/// Rows that are averaged together, in the order in which they are shown.
struct Group {
  std::string dtype;
  bool in_cache = false;
  int bound_order = 0;  ///< place of the bound on the command line; lossless rivals come last
  std::string bound;
  std::string codec;
  std::string target;
  int threads = 1;

  friend bool operator<(const Group& a, const Group& b) {
    const auto key = [](const Group& g) {
      return std::tie(g.dtype, g.in_cache, g.bound_order, g.bound, g.codec, g.target, g.threads);
    };
    return key(a) < key(b);
  }
};

/// What is timed: its name in JSON, its heading in tables, and where a row has its seconds.
struct Operation {
  const char* name;
  const char* heading;
  double CodecRow::* seconds;
};
constexpr std::array operations = {Operation{"copy", "memcpy", &CodecRow::copy_by_threads},
                                   Operation{"encode", "compress", &CodecRow::encode},
                                   Operation{"decode", "decompress", &CodecRow::decode},
                                   Operation{"add", "add", &CodecRow::add},
                                   Operation{"encode_add", "encode+add", &CodecRow::encode_add},
                                   Operation{"encode_sum", "encode+add 3", &CodecRow::encode_sum}};
using Speeds = std::array<double, operations.size()>;

struct GroupMeans {
  std::size_t fields = 0;
  double ratio = 0;         // these are geometric means
  Speeds versus{}, rate{};  // over memcpy; GB/s of original bytes
  double worst_error = 0;
  std::uint64_t violations = 0;
};

std::vector<slice::Target> chosen_targets(const std::vector<std::string>& names) {
  std::vector<slice::Target> chosen;
  for (const std::string& name : names) {
    std::string known;
    const std::size_t before = chosen.size();
    if (name == "best") chosen.push_back(slice::current());
    for (const auto t : {slice::Target::scalar, slice::Target::portable, slice::Target::avx2, slice::Target::avx512,
                         slice::Target::avx512x}) {
      if (!slice::supported(t)) continue;
      known += fmt::format(" {}", name_of(t));
      if (name == name_of(t) || (name == "all" && t != slice::Target::scalar)) chosen.push_back(t);
    }
    if (chosen.size() == before)
      throw Failure(Exit::usage,
                    fmt::format("--target '{}': there are best, all and, on this machine,{}", name, known));
  }
  return chosen;
}

std::vector<const Codec*> chosen_codecs(const std::vector<std::string>& names) {
  std::vector<const Codec*> chosen;
  for (const std::string& name : names) {
    if (name != "all") {
      chosen.push_back(&find_codec(name));
      continue;
    }
    for (const Codec* c : all_codecs())
      if (c->available()) chosen.push_back(c);
  }
  return chosen;
}

std::vector<CodecRow> measure(const BenchOptions& options, const std::vector<Bound>& bounds, bool show_progress) {
  CodecBenchOptions codec;
  codec.bytes = parse_size(options.size);
  if (options.no_cache) codec.cache_bytes = 0;
  codec.repetitions = options.repetitions;
  codec.targets = chosen_targets(options.targets);
  codec.threads = checked_threads(options.threads);
  codec.codecs = chosen_codecs(options.codecs);
  if (options.targets != BenchOptions{}.targets &&
      std::none_of(codec.codecs.begin(), codec.codecs.end(), [](const Codec* c) { return c->id() == CodecId::slice; }))
    throw Failure(Exit::usage, "--target is for slice, and --codec has no such");
  const std::vector<Field> fields = options.fields.choose();
  Progress progress("", fields.size() * bounds.size(), show_progress);
  std::vector<CodecRow> rows;
  for (const Field& f : fields) {
    progress.label(f.name);
    const LoadedField field = load_any(f);
    if (options.ratio_only) {
      for (const Codec* c : codec.codecs)
        for (const Bound& b : bounds)
          if (const auto row = ratio_of_field(field, b, *c)) rows.push_back(*row);
      progress.advance(bounds.size());
    } else {
      const auto more = bench_field(field, bounds, codec, [&] { progress.advance(1); });
      rows.insert(rows.end(), more.begin(), more.end());
    }
  }
  return rows;
}

double rate(const CodecRow& r, double seconds) {
  return seconds > 0 ? static_cast<double>(r.raw_bytes) / seconds / 1e9 : 0;
}

std::map<Group, GroupMeans> summarise(const std::vector<CodecRow>& rows) {
  std::map<Group, std::vector<const CodecRow*>> groups;
  for (const CodecRow& r : rows)
    groups[{r.dtype, r.in_cache, r.bound_order, r.bound, r.codec(), r.target, r.threads}].push_back(&r);
  std::map<Group, GroupMeans> out;
  for (const auto& [group, members] : groups) {
    const auto mean = [&, &m = members](auto f) {
      std::vector<double> values;
      values.reserve(m.size());
      for (const CodecRow* r : m) values.push_back(f(*r));
      return geometric_mean(values);
    };
    GroupMeans& s = out[group];
    s.fields = members.size();
    s.ratio = mean([](const CodecRow& r) { return r.ratio(); });
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const auto seconds = operations[i].seconds;
      s.versus[i] = mean([seconds](const CodecRow& r) { return r.versus_copy(r.*seconds); });
      s.rate[i] = mean([seconds](const CodecRow& r) { return rate(r, r.*seconds); });
    }
    for (const CodecRow* r : members) {
      s.worst_error = std::max(s.worst_error, r->error_over_bound);
      s.violations += r->violations;
    }
  }
  return out;
}

/// Without a promise it may be anything.
std::string share_of_bound(double v) { return v < 10000 ? fmt::format("{:.4f}", v) : fmt::format("{:.1e}", v); }

std::string speed(double rate, double ratio) { return ratio > 0 ? fmt::format("{:.2f} ({:.2f})", rate, ratio) : "-"; }

/// Headings of a table of speeds.
std::vector<std::string> columns(std::vector<std::string> first) {
  for (const Operation& o : operations) first.emplace_back(o.heading);
  first.insert(first.end(), {"error/bound", "violations"});
  return first;
}

nlohmann::json by_name(const Speeds& speeds) {
  nlohmann::json j;
  for (std::size_t i = 0; i < operations.size(); ++i) j[operations[i].name] = speeds[i];
  return j;
}

void print_speed_tables(const std::map<Group, GroupMeans>& summary) {
  std::set<std::pair<std::string, bool>> kinds;
  for (const auto& [g, m] : summary) kinds.insert({g.dtype, g.in_cache});
  for (const auto& [dtype, in_cache] : kinds) {
    Table table(columns({"codec", "bound", "fields", "ratio"}));
    for (const auto& [g, m] : summary) {
      if (g.dtype != dtype || g.in_cache != in_cache) continue;
      std::string who = g.codec;
      if (!g.target.empty()) who += " " + g.target;
      if (g.threads > 1) who += fmt::format(" {} threads", g.threads);
      std::vector<std::string> cells = {who, g.bound, fmt::format("{}", m.fields), fmt::format("{:.2f}", m.ratio)};
      for (std::size_t i = 0; i < operations.size(); ++i) cells.push_back(speed(m.rate[i], m.versus[i]));
      cells.insert(cells.end(), {share_of_bound(m.worst_error), fmt::format("{}", m.violations)});
      table.row(std::move(cells));
    }
    fmt::print("\n{}, {}: GB/s of original bytes (as a multiple of memcpy in the same run), geometric means\n{}", dtype,
               in_cache ? "256 KiB buffers in cache" : "large buffers from memory", table.text());
  }
}

void print_ratios(const std::vector<CodecRow>& rows, const std::vector<Bound>& bounds) {
  std::vector<std::string> head{"field", "codec", "dtype"};
  for (const Bound& b : bounds) head.push_back(b.to_string());
  head.insert(head.end(), {"error/bound", "violations"});
  Table table(head);
  for (std::size_t i = 0; i < rows.size(); i += bounds.size()) {
    std::vector<std::string> cells{rows[i].field, rows[i].codec(), rows[i].dtype};
    double worst = 0;
    std::uint64_t violations = 0;
    for (std::size_t b = 0; b < bounds.size(); ++b) {
      cells.push_back(fmt::format("{:.2f}", rows[i + b].ratio()));
      worst = std::max(worst, rows[i + b].error_over_bound);
      violations += rows[i + b].violations;
    }
    cells.insert(cells.end(), {share_of_bound(worst), fmt::format("{}", violations)});
    table.row(cells);
  }
  table.rule();
  std::vector<std::pair<std::string, const Codec*>> kinds;  // as the rows have them
  for (const CodecRow& r : rows)
    if (std::pair kind(r.dtype, r.coder); std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
      kinds.push_back(std::move(kind));
  for (const auto& [dtype, codec] : kinds) {
    std::vector<std::string> cells{"geometric mean", std::string(codec->name()), dtype};
    for (std::size_t b = 0; b < bounds.size(); ++b) {
      std::vector<double> values;
      for (std::size_t i = b; i < rows.size(); i += bounds.size())
        if (rows[i].dtype == dtype && rows[i].coder == codec) values.push_back(rows[i].ratio());
      cells.push_back(fmt::format("{:.2f}", geometric_mean(values)));
    }
    table.row(cells);
  }
  fmt::print("{}", table.text());
}

nlohmann::json to_json(const CodecRow& r) {
  Speeds versus;
  nlohmann::json seconds{{"memcpy", r.copy}};
  for (std::size_t i = 0; i < operations.size(); ++i) {
    seconds[operations[i].name] = r.*operations[i].seconds;
    versus[i] = r.versus_copy(r.*operations[i].seconds);
  }
  return {{"field", r.field},
          {"dtype", r.dtype},
          {"bound", r.bound},
          {"codec", r.codec()},
          {"target", r.target},
          {"in_cache", r.in_cache},
          {"threads", r.threads},
          {"raw_bytes", r.raw_bytes},
          {"packed_bytes", r.packed_bytes},
          {"ratio", r.ratio()},
          {"error_over_bound", r.error_over_bound},
          {"violations", r.violations},
          {"seconds", seconds},
          {"versus_memcpy", by_name(versus)}};
}

nlohmann::json to_json(const std::vector<CodecRow>& rows, const std::map<Group, GroupMeans>& summary) {
  nlohmann::json j{{"rows", nlohmann::json::array()}, {"geometric_means", nlohmann::json::array()}};
  for (const CodecRow& r : rows) j["rows"].push_back(to_json(r));
  for (const auto& [g, m] : summary) {
    j["geometric_means"].push_back({{"dtype", g.dtype},
                                    {"bound", g.bound},
                                    {"in_cache", g.in_cache},
                                    {"codec", g.codec},
                                    {"target", g.target},
                                    {"threads", g.threads},
                                    {"fields", m.fields},
                                    {"ratio", m.ratio},
                                    {"worst_error_over_bound", m.worst_error},
                                    {"violations", m.violations},
                                    {"gb_per_s", by_name(m.rate)},
                                    {"versus_memcpy", by_name(m.versus)}});
  }
  return j;
}

void print_per_field(const std::vector<CodecRow>& rows) {
  Table table(columns({"field", "codec", "bound", "ratio"}));
  for (const CodecRow& r : rows) {
    std::vector<std::string> cells = {r.field,
                                      fmt::format("{} {}{}{}", r.codec(), r.target, r.in_cache ? " cache" : "",
                                                  r.threads > 1 ? fmt::format(" x{}", r.threads) : ""),
                                      r.bound, fmt::format("{:.2f}", r.ratio())};
    for (const Operation& o : operations) cells.push_back(speed(rate(r, r.*o.seconds), r.versus_copy(r.*o.seconds)));
    cells.insert(cells.end(), {share_of_bound(r.error_over_bound), fmt::format("{}", r.violations)});
    table.row(std::move(cells));
  }
  fmt::print("{}", table.text());
}

int run_bench_codec(const Session& session, const BenchOptions& options) {
  if (options.repetitions < 1 || options.repetitions > 1000)
    throw Failure(Exit::usage, fmt::format("--repetitions {} is not between 1 and 1000", options.repetitions));
  std::vector<Bound> bounds;
  for (const std::string& text : options.bounds) bounds.push_back(Bound::parse(text));
  const std::vector<CodecRow> rows = measure(options, bounds, session.progress());
  if (rows.empty()) throw Failure(Exit::usage, "--codec: none of these takes the elements of any of the fields");
  const auto summary = summarise(rows);
  if (session.json) {
    print_json(to_json(rows, summary));
  } else if (session.quiet) {
    // the exit code says it
  } else if (options.ratio_only) {
    print_ratios(rows, bounds);
  } else {
    if (options.per_field) print_per_field(rows);
    print_speed_tables(summary);
  }
  const bool kept =
      std::all_of(rows.begin(), rows.end(), [](const CodecRow& r) { return !r.promised() || r.violations == 0; });
  return static_cast<int>(kept ? Exit::ok : Exit::bound_violated);
}

int run_bench_collective(const Session& session, const CollectiveOptions& options) {
  const char* const name = name_of(options.collective);
  if (options.ranks == 0)
    throw Failure(Exit::usage, fmt::format("bench {} needs the ranks of an MPI: laconic bench {} --ranks 4, or "
                                           "mpiexec -n 4 laconic bench {}",
                                           name, name, name));
  if (options.ranks < 1 || options.ranks > 256)
    throw Failure(Exit::usage, fmt::format("--ranks {} is not between 1 and 256", options.ranks));
  Launch launch{options.mpi, options.ranks, options.link, {}};
  if (!options.link.empty()) {
    require_link_rate(options.link);
    if (options.interface.empty()) launch.more = {"--wire", "eth0"};
  }
  become_launcher(launch, session.arguments);
}

}  // namespace

void add_bench(CommandSyntax app, Session& session) {
  auto options = std::make_shared<BenchOptions>();
  CommandSyntax bench = app.add_command("bench", "Measure on this machine");
  CommandSyntax c = bench.add_command("codec", "Speed against memcpy, ratio and error of all codecs");
  options->fields.add_to(c);
  c.option("--size", options->size, "Each field is repeated to this many bytes");
  c.list("-b,--bound", options->bounds, "Bounds");
  c.list("--codec", options->codecs, "all (that are built in), or names of codecs");
  c.list("--target", options->targets,
         "slice's kernels: best, all (but the slow scalar reference), scalar, portable, avx2, avx512, avx512x");
  c.option("-t,--threads", options->threads, "Measure with this many threads too");
  c.option("--repetitions", options->repetitions, "Repetitions; medians are reported");
  c.flag("--no-cache", options->no_cache, "Leave out the measurements in cache");
  c.flag("--ratio", options->ratio_only, "Ratio and error only, of the fields as they are");
  c.flag("--per-field", options->per_field, "A line for every field before the means");
  for (const char* timing : {"--size", "--target", "--threads", "--repetitions", "--no-cache", "--per-field"})
    c.excludes(timing, "--ratio");
  c.on_chosen(
      [&session, options] { session.command = [&session, options] { return run_bench_codec(session, *options); }; });
  add_collective_benches(bench, false, [&session](const CollectiveOptions& chosen) {
    session.command = [&session, chosen] { return run_bench_collective(session, chosen); };
  });
  add_error_bench(bench, session);
}

}  // namespace laconic::app
