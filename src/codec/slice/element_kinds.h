// What the x86 sets tell elements apart by. Included by their *_quantise.h.

enum class Elements { f32, f64, f16, bf16, exact32, exact_f32, exact_f16 };

inline Elements elements_of(const Params& p) {
  if (p.shape.exact_only) {
    if (p.shape.element_bytes == 2) return Elements::exact_f16;
    return p.shape.floating ? Elements::exact_f32 : Elements::exact32;
  }
  switch (p.grid.dtype) {
    case DType::f64:
      return Elements::f64;
    case DType::f16:
      return Elements::f16;
    case DType::bf16:
      return Elements::bf16;
    default:
      return Elements::f32;
  }
}
