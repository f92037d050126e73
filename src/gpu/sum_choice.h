// What a sum's predictor is, as far as it follows from those of its operands (docs/format.md, section 9). Source: ours;
// the definition is codec/slice/reference.cc.
#pragma once

#include "gpu/predict.h"
#include "gpu/rare_read.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// A sum of operands as the next one meets it, all lanes alike.
template <class R>
struct Partial {
  Origin origin = Origin::elements;
  Choice<R> choice;    ///< of a coded one; of a constant one the base
  bool given = false;  ///< choice is that of the sum, as it follows from its operands'
};

/// The predictor of a sum, where it follows from those of its operands.
template <class R>
LACONIC_GPU_FN Partial<R> sum_choice(const Partial<R>& a, const OperandStart& b, bool a_is_local) {
  Partial<R> s;
  const auto base = [&](R base_a) { return wrap_add(base_a, static_cast<R>(b.base)); };
  if (b.origin == Origin::elements) return s;
  if (a_is_local) {
    if (b.origin != Origin::coded) return s;
    s.given = true;
    s.choice = {b.predictor, base(a.choice.base)};
    return s;
  }
  if (a.origin == Origin::elements) return s;
  s.given = true;
  s.choice = {higher(predictor_if(a.origin == Origin::coded, a.choice.predictor),
                     predictor_if(b.origin == Origin::coded, b.predictor)),
              base(a.choice.base)};
  return s;
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
