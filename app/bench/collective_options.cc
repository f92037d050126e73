#include "bench/collective_options.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <memory>
#include <string_view>

#include "exit_code.h"

namespace laconic::app {
namespace {

struct Command {
  Collective collective;
  const char* help;
};

constexpr std::array<Command, 8> commands{{
    {Collective::allreduce, "Every rank gets the sum (or --op) of all ranks' arrays"},
    {Collective::allgather, "Every rank gets all ranks' arrays"},
    {Collective::bcast, "Every rank gets the root's array"},
    {Collective::scatter, "Every rank gets its share of the root's array"},
    {Collective::gather, "The root gets all ranks' arrays"},
    {Collective::reduce_scatter, "Every rank gets its share of the sum (or --op)"},
    {Collective::alltoall, "Every rank has a block for every rank"},
    {Collective::reduce, "The root gets the sum (or --op) of all ranks' arrays"},
}};

/// Whether a codec can code these data within the bound.
bool codes(const Codec& codec, const Bound& bound, const ConstArray& data) {
  if (!codec.available()) return false;
  try {
    static_cast<void>(grid_for(codec, data.dtype, bound, scan(data)));
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Those of --codec. Throws for one that is unknown, or was not built in.
std::vector<const Codec*> usable_codecs(const CollectiveOptions& options, const Bound& bound,
                                        const LoadedField& field) {
  std::vector<const Codec*> codecs;
  for (const std::string& name : options.codecs) {
    if (name == "all") {
      std::copy_if(all_codecs().begin(), all_codecs().end(), std::back_inserter(codecs),
                   [&](const Codec* c) { return codes(*c, bound, field.array()); });
      continue;
    }
    codecs.push_back(&find_codec(name));
    if (!codecs.back()->available())
      throw Failure(
          Exit::usage,
          fmt::format("--codec {}: its library was not there when Laconic was built; see laconic doctor", name));
  }
  if (codecs.empty())
    throw Failure(Exit::usage, fmt::format("--codec all: no codec takes {} within --bound {}",
                                           name_of(field.field.shape.dtype), options.bound));
  return codecs;
}

Schedule schedule_named(const std::string& name) {
  std::string known;
  for (const Schedule s : {Schedule::automatic, Schedule::ring, Schedule::recursive_doubling, Schedule::rabenseifner,
                           Schedule::two_level, Schedule::direct}) {
    std::string word = name_of(s);
    std::replace(word.begin(), word.end(), ' ', '-');
    if (word == name) return s;
    (known += ' ') += word;
  }
  throw Failure(Exit::usage, fmt::format("--schedule '{}': there are{}", name, known));
}

Field sample_field(const CollectiveOptions& options) {
  std::string known;
  for (Field& f : list_fields(find_data_folder(options.data))) {
    if (f.name == options.field) return std::move(f);
    known += " " + f.name;
  }
  throw Failure(Exit::no_input,
                fmt::format("--field {}: no such field among the samples; there are:{}", options.field, known));
}

/// Throws Failure(usage) for an option that none of the modes would use.
void require_users(const CollectiveOptions& options) {
  const CollectiveOptions untouched;
  const auto require = [&](const char* option, bool given, const std::vector<std::string>& users) {
    const auto& modes = options.modes;
    if (given && std::find_first_of(modes.begin(), modes.end(), users.begin(), users.end()) == modes.end())
      throw Failure(Exit::usage, fmt::format("{} is for {}, and --modes has no such", option, fmt::join(users, ", ")));
  };
  require("--codec", options.codecs != untouched.codecs, {"cprp2p"});
  require("--schedule", options.schedules != untouched.schedules, {"laconic"});
  require("--threads", options.threads != untouched.threads, {"cprp2p", "zccl-mt", "laconic", "auto"});
}

}  // namespace

void CollectiveOptions::add_to(CommandSyntax c, bool launched) {
  c.option("file", file, "Array file (default: a sample field)");
  hint.add_to(c, "file");
  c.option("--field", field, "Sample field");
  c.option("--data", data, "Folder with sample fields and MANIFEST.json");
  c.list("--size", sizes, "Bytes of a rank's operand, such as 64KiB,64MiB; the data are repeated or cut to them");
  c.option("-b,--bound", bound, "Bound on every value of the result (of integers: none, they stay exact)");
  if (reduces()) {
    c.choice("--op", op, {"sum", "average", "min", "max"}, "What all ranks' values come to (default: sum)");
  } else {
    c.refused("--op", "is for allreduce, reduce and reduce_scatter");
  }
  if (has_root()) {
    c.option("--root", root, "The root's rank");
  } else {
    c.refused("--root", "is for bcast, scatter, gather and reduce");
  }
  c.list("--codec", codecs, "Codecs of the mode cprp2p; all: those that have a use for the bound and the data");
  c.list("--modes", modes,
         "What takes turns: plain (the MPI's own), cprp2p (every message compressed), ccoll (szx, step by step), "
         "zccl (fzlight, step by step), zccl-mt (the same by --threads), laconic (on the grid), auto (laconic or "
         "plain, whichever is faster). One that is named twice has two series: what it differs from itself");
  c.list("--schedule", schedules,
         "Schedules of the mode laconic: automatic, ring, recursive-doubling, rabenseifner, two-level, direct");
  c.option("-t,--threads", threads, "Codec threads of a rank in cprp2p, zccl-mt, laconic and auto");
  c.option("--repetitions", repetitions, "Turns of each mode; the median call is reported");
  c.option("--turn", turn,
           "Calls that a mode makes in its turn. Of several the first is not timed: what it finds in caches and on the "
           "link is the mode's before it");
  c.option("--warm-up", warm_up, "Calls before any is timed (auto learns from its first five or so)");
  c.option("--wire", interface, "Count the bytes that cross this network interface, such as eth0");
  if (launched) {
    c.refused("--ranks", "is for laconic bench without a launcher, which says how many there are");
    c.refused("--mpi", "is for laconic bench without a launcher");
    c.option("--link", link, "Rate of that interface's link, such as 1gbit, for the report");
    c.needs("--link", "--wire");
  } else {
    c.option("--ranks", ranks,
             "Start so many ranks on this machine, by the launcher of an MPI (0: there is a launcher)");
    c.choice("--mpi", mpi, {"openmpi", "mpich"}, "Which MPI's launcher");
    c.option("--link", link,
             "Each rank on an emulated host of its own, joined by links of this rate, such as 1gbit or 2500mbit (as "
             "root; the bytes on them are counted)");
    c.needs("--mpi", "--ranks");
    c.needs("--link", "--ranks");
  }
  c.excludes("--field", "file");
  c.excludes("--data", "file");
}

bool CollectiveOptions::reduces() const {
  return collective == Collective::allreduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter;
}

bool CollectiveOptions::has_root() const {
  return collective == Collective::bcast || collective == Collective::scatter || collective == Collective::gather ||
         collective == Collective::reduce;
}

void require_link_rate(const std::string& link) {
  double rate = 0;
  const auto number = std::from_chars(link.data(), link.data() + link.size(), rate, std::chars_format::fixed);
  const std::string_view unit(number.ptr, link.data() + link.size());
  if (number.ec != std::errc() || !(rate > 0) || !std::isfinite(rate) || (unit != "gbit" && unit != "mbit"))
    throw Failure(Exit::usage, fmt::format("--link '{}' is not understood; write for example 1gbit or 2500mbit", link));
}

void add_collective_benches(CommandSyntax bench, bool launched,
                            const std::function<void(const CollectiveOptions&)>& chosen) {
  for (const Command& command : commands) {
    auto options = std::make_shared<CollectiveOptions>();
    options->collective = command.collective;
    CommandSyntax c = bench.add_command(name_of(command.collective),
                                        fmt::format("{}: plain MPI, published designs, Laconic", command.help));
    options->add_to(c, launched);
    c.on_chosen([chosen, options] { chosen(*options); });
  }
}

std::vector<Mode> chosen_modes(const CollectiveOptions& options, const Bound& bound, const LoadedField& field) {
  const int threads = checked_threads(options.threads);
  std::vector<Mode> modes;
  for (auto it = options.modes.begin(); it != options.modes.end(); ++it) {
    const std::string& name = *it;
    const auto others = static_cast<std::ptrdiff_t>(modes.size());
    if (name == "plain") {
      modes.push_back({name, true});
    } else if (name == "cprp2p") {
      for (const Codec* codec : usable_codecs(options, bound, field))
        modes.push_back({name, false, codec->id(), Framework::point_to_point, threads});
    } else if (name == "ccoll") {
      modes.push_back({name, false, CodecId::szx, Framework::stepwise, 1});
    } else if (name == "zccl") {
      modes.push_back({name, false, CodecId::fzlight, Framework::stepwise, 1});
    } else if (name == "zccl-mt") {
      if (threads == 1)
        throw Failure(Exit::usage, "--modes zccl-mt is zccl by several threads: give --threads 2 or more");
      modes.push_back({name, false, CodecId::fzlight, Framework::stepwise, threads});
    } else if (name == "laconic") {
      for (const std::string& schedule : options.schedules)
        modes.push_back({name, false, CodecId::slice, Framework::automatic, threads, schedule_named(schedule)});
    } else if (name == "auto") {
      modes.push_back(
          {name, false, CodecId::slice, Framework::automatic, threads, Schedule::automatic, laconic::Mode::automatic});
    } else {
      throw Failure(Exit::usage,
                    fmt::format("--modes '{}': there are plain, cprp2p, ccoll, zccl, zccl-mt, laconic and auto", name));
    }
    const bool again = std::find(options.modes.begin(), it, name) != it;
    std::for_each(modes.begin() + others, modes.end(), [again](Mode& m) { m.again = again; });
  }
  require_users(options);
  return modes;
}

LoadedField load_data(const CollectiveOptions& options) {
  Field field;
  if (options.file.empty()) {
    field = sample_field(options);
  } else {
    const ArrayReader in(options.file, options.hint.hint());
    field = {options.file, options.file, in.shape(), std::nullopt, {}};
  }
  if (count_of(field.shape, field.path) == 0) throw Failure(Exit::bad_data, fmt::format("{} is empty", field.name));
  return load(field);
}

}  // namespace laconic::app
