#include "bench/collective_options.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>

#include "exit_code.h"

namespace laconic::app {
namespace {

struct Command {
  Collective collective;
  const char* help;
};

constexpr std::array<Command, 8> commands{{
    {Collective::allreduce, "Every rank gets the sum of all ranks' arrays"},
    {Collective::allgather, "Every rank gets all ranks' arrays"},
    {Collective::bcast, "Every rank gets rank 0's array"},
    {Collective::scatter, "Every rank gets its share of rank 0's array"},
    {Collective::gather, "Rank 0 gets all ranks' arrays"},
    {Collective::reduce_scatter, "Every rank gets its share of the sum"},
    {Collective::alltoall, "Every rank has a block for every rank"},
    {Collective::reduce, "Rank 0 gets the sum of all ranks' arrays"},
}};

/// Throws for a codec that is unknown, or was not built in.
const Codec& usable_codec(const std::string& name) {
  const Codec& codec = find_codec(name);
  if (!codec.available())
    throw Failure(
        Exit::usage,
        fmt::format("--codec {}: its library was not there when Laconic was built; see laconic doctor", name));
  return codec;
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

void CollectiveOptions::add_to(CommandSyntax c) {
  c.option("file", file, "Array file, f32 or f64 (default: a sample field)");
  hint.add_to(c, "file");
  c.option("--field", field, "Sample field");
  c.option("--data", data, "Folder with sample fields and MANIFEST.json");
  c.list("--size", sizes, "Bytes of a rank's operand, such as 64KiB,64MiB; the data are repeated or cut to them");
  c.option("-b,--bound", bound, "Bound on every value of the result");
  c.list("--codec", codecs, "Codecs of the mode cprp2p");
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
  c.excludes("--field", "file");
  c.excludes("--data", "file");
}

void add_collective_benches(CommandSyntax bench, const std::function<void(const CollectiveOptions&)>& chosen) {
  for (const Command& command : commands) {
    auto options = std::make_shared<CollectiveOptions>();
    options->collective = command.collective;
    CommandSyntax c = bench.add_command(name_of(command.collective),
                                        fmt::format("{}: plain MPI, published designs, Laconic", command.help));
    options->add_to(c);
    c.on_chosen([chosen, options] { chosen(*options); });
  }
}

std::vector<Mode> chosen_modes(const CollectiveOptions& options) {
  const int threads = checked_threads(options.threads);
  std::vector<Mode> modes;
  for (auto it = options.modes.begin(); it != options.modes.end(); ++it) {
    const std::string& name = *it;
    const auto others = static_cast<std::ptrdiff_t>(modes.size());
    if (name == "plain") {
      modes.push_back({name, true});
    } else if (name == "cprp2p") {
      for (const std::string& codec : options.codecs)
        modes.push_back({name, false, usable_codec(codec).id(), Framework::point_to_point, threads});
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
  const DType dtype = field.shape.dtype;
  if (dtype != DType::f32 && dtype != DType::f64)
    throw Failure(Exit::bad_data,
                  fmt::format("{} holds {}; a collective is measured with f32 or f64", field.name, name_of(dtype)));
  if (count_of(field.shape, field.path) == 0) throw Failure(Exit::bad_data, fmt::format("{} is empty", field.name));
  return load(field);
}

}  // namespace laconic::app
