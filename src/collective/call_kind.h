// Which calls are expected to take the same time.
#pragma once

#include <compare>

#include "collective/collective.h"
#include "core/bound.h"
#include "core/dtype.h"
#include "core/op.h"

namespace laconic {

/// Calls that are expected to take the same time.
struct CallKind {
  Collective collective = Collective::allreduce;
  DType dtype = DType::f32;
  Op op = Op::none;
  BoundKind bound_kind = BoundKind::lossless;
  BoundScope bound_scope = BoundScope::result;
  double bound_value = 0;
  double bound_sigmas = 0;
  int size_class = 0;                                 ///< bits of the number of bytes
  bool irregular = false;                             ///< parts of ranks may differ
  auto operator<=>(const CallKind&) const = default;  // NOLINT(modernize-use-nullptr): a bug of clang-tidy 14
};

}  // namespace laconic
