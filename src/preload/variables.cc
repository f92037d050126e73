#include "preload/variables.h"

#include <array>

namespace laconic::preload {
namespace {

/// Those that the drop-in library serves.
constexpr std::array served{Collective::allreduce, Collective::reduce,  Collective::reduce_scatter,
                            Collective::bcast,     Collective::scatter, Collective::gather,
                            Collective::allgather, Collective::alltoall};

using Value = std::variant<std::uint64_t, double>;

struct Count {
  const char* name;
  const char* description;
  VariableKind kind;
  Value (*of)(const TallyLine&);
};

constexpr std::array counts{
    Count{"calls", "Calls that Laconic looked after", VariableKind::counter,
          [](const TallyLine& l) -> Value { return l.calls; }},
    Count{"plain_calls", "Of those, calls left to MPI because that is faster", VariableKind::counter,
          [](const TallyLine& l) -> Value { return l.plain_calls; }},
    Count{"original_bytes", "Bytes that would have been sent without compression", VariableKind::counter,
          [](const TallyLine& l) -> Value { return l.original_bytes; }},
    Count{"wire_bytes", "Bytes that were sent", VariableKind::counter,
          [](const TallyLine& l) -> Value { return l.wire_bytes; }},
    Count{"seconds", "Time spent in these calls", VariableKind::timer,
          [](const TallyLine& l) -> Value { return l.seconds; }},
    Count{"codec_seconds", "Of that, time spent compressing, adding and decompressing", VariableKind::timer,
          [](const TallyLine& l) -> Value { return l.codec_seconds; }},
    Count{"saved_seconds", "Time saved, by the model of what MPI's own calls take", VariableKind::timer,
          [](const TallyLine& l) -> Value { return l.saved_seconds; }},
    Count{"worst_error_over_bound", "Largest achieved error over its bound, of verified calls",
          VariableKind::high_water, [](const TallyLine& l) -> Value { return l.worst_error; }},
    Count{"verified_elements", "Elements of results that were compared with exact ones", VariableKind::counter,
          [](const TallyLine& l) -> Value { return l.verified; }},
};

}  // namespace

const std::vector<Variable>& variables() {
  static const std::vector<Variable> all = [] {
    std::vector<Variable> list;
    for (const Count& c : counts)
      list.push_back({std::string("laconic_") + c.name, std::string(c.description) + "; all collectives", c.kind});
    for (const Collective collective : served) {
      const std::string name = name_of(collective);
      for (const Count& c : counts)
        list.push_back({"laconic_" + name + "_" + c.name, std::string(c.description) + "; " + name, c.kind});
    }
    return list;
  }();
  return all;
}

Value value_of(std::size_t index, const Tally& tally) {
  const std::size_t group = index / counts.size();
  return counts.at(index % counts.size()).of(group == 0 ? tally.total() : tally.of(served.at(group - 1)));
}

}  // namespace laconic::preload
