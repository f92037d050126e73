// What a reduction does with the ranks' elements.
#pragma once

#include <cstdint>
#include <string_view>

namespace laconic {

/// The numeric values are part of the C API (laconic_op): never renumber. product goes step by step: see Framework.
enum class Op : std::uint8_t { none = 0, sum = 1, average = 2, min = 3, max = 4, product = 5 };

constexpr bool is_extreme(Op op) { return op == Op::min || op == Op::max; }

/// "sum", "average", ...; "?" for a value that is no Op.
std::string_view name_of(Op op);

/// "sum", "average" ("avg", "mean"), "min", "max", "product" ("prod"). Throws Error(invalid_argument).
Op parse_op(std::string_view text);

}  // namespace laconic
