// The counts of this rank as variables with names, for tools that read MPI's performance variables (MPI_T).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "preload/tally.h"

namespace laconic::preload {

enum class VariableKind : std::uint8_t {
  counter,     ///< uint64, only grows
  timer,       ///< double, seconds, only grows; what was saved shrinks too where it was nothing
  high_water,  ///< double, the largest so far
};

struct Variable {
  std::string name;  ///< "laconic_wire_bytes" of all collectives together, "laconic_allreduce_wire_bytes"
  std::string description;
  VariableKind kind;
};

/// All of them, always the same in the same order.
const std::vector<Variable>& variables();

/// The value of variables()[index]: uint64 of counters, double of others. Thread safe.
std::variant<std::uint64_t, double> value_of(std::size_t index, const Tally& tally);

}  // namespace laconic::preload
