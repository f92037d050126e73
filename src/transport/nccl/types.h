// Laconic's types and operations as NCCL's, and back.
#pragma once

#include <nccl.h>

#include <optional>

#include "core/dtype.h"
#include "core/op.h"

namespace laconic::nccl {

inline constexpr struct {
  DType ours;
  ncclDataType_t theirs;
} types[] = {{DType::f32, ncclFloat32}, {DType::f64, ncclFloat64},   {DType::f16, ncclFloat16},
             {DType::i32, ncclInt32},   {DType::bf16, ncclBfloat16}, {DType::i64, ncclInt64},
             {DType::u32, ncclUint32},  {DType::u64, ncclUint64}};

inline constexpr struct {
  Op ours;
  ncclRedOp_t theirs;
} operations[] = {
    {Op::sum, ncclSum}, {Op::average, ncclAvg}, {Op::min, ncclMin}, {Op::max, ncclMax}, {Op::product, ncclProd}};

/// ncclNumTypes for a value that is no DType.
constexpr ncclDataType_t type_of(DType dtype) {
  for (const auto& t : types) {
    if (t.ours == dtype) return t.theirs;
  }
  return ncclNumTypes;
}
/// ncclNumOps where NCCL has none.
constexpr ncclRedOp_t operation(Op op) {
  for (const auto& o : operations) {
    if (o.ours == op) return o.theirs;
  }
  return ncclNumOps;
}
/// Nothing for small integers and 8-bit floats.
constexpr std::optional<DType> dtype_of(ncclDataType_t type) {
  for (const auto& t : types) {
    if (t.theirs == type) return t.ours;
  }
  return std::nullopt;
}
/// Nothing for operations of the program's own.
constexpr std::optional<Op> op_of(ncclRedOp_t op) {
  for (const auto& o : operations) {
    if (o.theirs == op) return o.ours;
  }
  return std::nullopt;
}

}  // namespace laconic::nccl
