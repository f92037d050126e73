#include "core/op.h"

#include <array>
#include <string>

#include "core/error.h"

namespace laconic {
namespace {

struct OpRow {
  Op op;
  std::string_view name;
  std::string_view alias;
};
constexpr std::array<OpRow, 5> op_rows = {{{Op::sum, "sum", "add"},
                                           {Op::average, "average", "avg"},
                                           {Op::min, "min", "minimum"},
                                           {Op::max, "max", "maximum"},
                                           {Op::product, "product", "prod"}}};

}  // namespace

std::string_view name_of(Op op) {
  for (const OpRow& row : op_rows) {
    if (row.op == op) return row.name;
  }
  return op == Op::none ? "none" : "?";
}

Op parse_op(std::string_view text) {
  for (const OpRow& row : op_rows) {
    if (text == row.name || text == row.alias) return row.op;
  }
  if (text == "mean") return Op::average;
  throw Error(Code::invalid_argument, "op '" + std::string(text) + "': want sum, average, min, max or product");
}

}  // namespace laconic
