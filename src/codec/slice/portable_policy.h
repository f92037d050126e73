// What the portable set does apart from its plane coder: elements <-> integers, residuals, the choice of a predictor,
// tables of codes. Included inside a target region and an anonymous namespace, after fast_codec.h's types. f32, the
// common case, is written in vectors; the rest in loops that compilers can make vectors of.

/// The integers of one block.
struct Block64 {
  std::int32_t v[block_values];
};

inline std::uint32_t zigzag(std::int32_t v) {
  return static_cast<std::uint32_t>(v) << 1 ^ static_cast<std::uint32_t>(v >> 31);
}
inline std::int32_t wrapped_sub(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}

/// One element and what decoding gives: the reference's arithmetic (reference.cc), where 1.5 * 2^52 in doubles stands
/// in for fused multiply-add in floats: the product of two floats is exact in a double.
struct OneF32 {
  static float load(const void* x, int i) { return slice::load<float>(static_cast<const float*>(x) + i); }
  static float rounded(float v) { return v; }
};
struct OneF16 {
  static float load(const void* x, int i) {
    return f32_of_f16(slice::load<std::uint16_t>(static_cast<const std::uint16_t*>(x) + i));
  }
  static float rounded(float v) { return f32_of_f16(f16_of_f32(v)); }
};
struct OneBf16 {
  static float load(const void* x, int i) {
    return f32_of_bf16(slice::load<std::uint16_t>(static_cast<const std::uint16_t*>(x) + i));
  }
  static float rounded(float v) { return f32_of_bf16(bf16_of_f32(v)); }
};

constexpr double magic52 = 0x1.8p52;

/// Integer and whether it stands for the element within the bound.
struct Quantised {
  std::int32_t q;
  bool good;
};

template <class T>
Quantised quantise_narrow(const Params& p, double half_window, const void* x, int i) {
  const float a = T::load(x, i);
  const double v = static_cast<double>(a) * static_cast<double>(p.inverse32);
  // In floats, sums below the window's start are rounded to halves: -1/4 is a tie, which goes to the even start.
  if (!(v >= -half_window - 0.25 && v < half_window)) return {0, false};
  const double r = (v + magic52) - magic52;
  const float value = T::rounded(static_cast<float>(r) * p.step32);
  return {static_cast<std::int32_t>(r), r < half_window && std::abs(a - value) <= p.bound32};
}

inline Quantised quantise_f64(const Params& p, double half_window, const void* x, int i) {
  const auto a = slice::load<double>(static_cast<const double*>(x) + i);
  const double origin = 0x1p52 + half_window;
  const double t = std::fma(a, p.inverse64, origin);
  if (!(t >= 0x1p52 && t < origin + half_window)) return {0, false};
  const double r = t - origin;
  return {static_cast<std::int32_t>(r), std::abs(a - r * p.grid.step) <= p.grid.bound};
}

/// Calls f(q, good, i) for every element of a chunk with a step.
template <class F>
void quantise_each(const Params& p, const void* x, F f) {
  const double half_window = static_cast<double>(1 << p.grid.qbits);
  const auto run = [&](auto one) {
    for (int i = 0; i < chunk_values; ++i) {
      const Quantised v = one(i);
      f(v.q, v.good, i);
    }
  };
  switch (p.grid.dtype) {
    case DType::f64:
      return run([&](int i) { return quantise_f64(p, half_window, x, i); });
    case DType::f16:
      return run([&](int i) { return quantise_narrow<OneF16>(p, half_window, x, i); });
    case DType::bf16:
      return run([&](int i) { return quantise_narrow<OneBf16>(p, half_window, x, i); });
    default:
      return run([&](int i) { return quantise_narrow<OneF32>(p, half_window, x, i); });
  }
}

constexpr hn::FixedTag<std::uint8_t, 16> d8;
constexpr hn::FixedTag<float, 4> f32x4;
constexpr hn::FixedTag<double, 2> f64x2;
constexpr hn::FixedTag<float, 2> f32x2;
constexpr hn::FixedTag<std::int32_t, 4> i32x4;
constexpr hn::FixedTag<std::uint32_t, 4> u32x4;
constexpr hn::FixedTag<std::int32_t, 2> i32x2;

#if HWY_NATIVE_FMA
/// A whole chunk of f32; false if any value is an exception or, unless errors are `Checked`, may be one.
template <bool Checked>
bool quantise_f32(const Params& p, const float* x, std::int32_t* q) {
  const auto inverse = hn::Set(f32x4, p.inverse32);
  const auto step = hn::Set(f32x4, p.step32);
  const auto middle = hn::Set(f32x4, 0x1p23F + static_cast<float>(1 << p.grid.qbits));
  const auto middle_bits = hn::BitCast(i32x4, middle);
  auto low = hn::Zero(i32x4);
  auto high = hn::Zero(i32x4);
  auto worst = hn::Zero(f32x4);
  for (int i = 0; i < chunk_values; i += 4) {
    const auto a = hn::LoadU(f32x4, x + i);
    const auto t = hn::MulAdd(a, inverse, middle);
    const auto r = hn::Sub(hn::BitCast(i32x4, t), middle_bits);  // in the window, where bits count integers
    low = hn::Min(low, r);
    high = hn::Max(high, r);
    if constexpr (Checked) worst = hn::Max(worst, hn::Abs(hn::Sub(a, hn::Mul(hn::Sub(t, middle), step))));
    hn::StoreU(r, i32x4, q + i);
  }
  const std::int64_t most = Checked ? std::int64_t{1} << p.grid.qbits : p.proven;
  const auto least = hn::Set(i32x4, static_cast<std::int32_t>(-most));
  const auto top = hn::Set(i32x4, static_cast<std::int32_t>(Checked ? most - 1 : p.highest_proven()));
  return hn::AllFalse(i32x4, hn::Lt(low, least)) && hn::AllFalse(i32x4, hn::Gt(high, top)) &&
         hn::AllTrue(f32x4, hn::Le(worst, hn::Set(f32x4, p.bound32)));
}
#else
/// The same where there is no fused multiply-add: in doubles, see above.
template <bool Checked>
bool quantise_f32(const Params& p, const float* x, std::int32_t* q) {
  const double half = static_cast<double>(1 << p.grid.qbits);
  const auto inverse = hn::Set(f64x2, static_cast<double>(p.inverse32));
  const auto least = hn::Set(f64x2, Checked || p.all_proven() ? -half - 0.25 : 0.5 - static_cast<double>(p.proven));
  const auto most = hn::Set(f64x2, Checked || p.all_proven() ? half - 0.5 : static_cast<double>(p.proven) - 0.5);
  const auto magic = hn::Set(f64x2, magic52);
  const auto step = hn::Set(f32x2, p.step32);
  auto inside = hn::Eq(least, least);
  auto worst = hn::Zero(f32x2);
  for (int i = 0; i < chunk_values; i += 2) {
    const auto a = hn::LoadU(f32x2, x + i);
    const auto v = hn::Mul(hn::PromoteTo(f64x2, a), inverse);
    inside = hn::And(inside, hn::And(hn::Ge(v, least), hn::Lt(v, most)));
    // Clamped, so that nothing overflows; what was outside is already known.
    const auto r = hn::Sub(hn::Add(hn::Min(hn::Max(v, least), most), magic), magic);
    if constexpr (Checked) {
      const auto value = hn::Mul(hn::DemoteTo(f32x2, r), step);
      worst = hn::Max(worst, hn::Abs(hn::Sub(a, value)));
    }
    hn::StoreU(hn::DemoteTo(i32x2, r), i32x2, q + i);
  }
  return hn::AllTrue(f64x2, inside) && hn::AllTrue(f32x2, hn::Le(worst, hn::Set(f32x2, p.bound32)));
}
#endif

/// Everything of the policy but the plane coder.
struct PortableBase {
  using R = Block64;

  static bool quantise(const Params& p, const void* x, std::int32_t* q) {
    if (p.shape.exact_only) {
      load_exact(p, x, q);
      return true;
    }
    if (p.grid.dtype == DType::f32) {
      const auto* f32 = static_cast<const float*>(x);
      if (p.proven != 0 && quantise_f32<false>(p, f32, q)) return true;
      return !p.all_proven() && quantise_f32<true>(p, f32, q);
    }
    bool all = true;
    quantise_each(p, x, [&](std::int32_t v, bool good, int i) {
      q[i] = v;
      all = all && good;
    });
    return all;
  }
  static void load_exact(const Params& p, const void* x, std::int32_t* q) {
    if (p.shape.element_bytes == 2) {
      const auto* e = static_cast<const std::uint16_t*>(x);
      for (int i = 0; i < chunk_values; ++i) q[i] = order_map<std::int32_t>(slice::load<std::uint16_t>(e + i), 2);
      return;
    }
    std::memcpy(q, x, 4 * chunk_values);
    if (!p.shape.floating) return;
    for (int i = 0; i < chunk_values; ++i)
      q[i] ^= static_cast<std::int32_t>(static_cast<std::uint32_t>(q[i] >> 31) >> 1);
  }

  static void find_marks(const Params& p, const void* x, std::uint64_t* marks) {
    for (int b = 0; b < chunk_blocks; ++b) marks[b] = 0;
    quantise_each(p, x, [&](std::int32_t, bool good, int i) {
      marks[i / block_values] |= std::uint64_t{good ? 0U : 1U} << (i % block_values);
    });
  }

  static bool marked_equal(const void* x, const std::uint64_t* marks, std::uint64_t value, int bytes) {
    for (int b = 0; b < chunk_blocks; ++b)
      for (std::uint64_t m = marks[b]; m != 0; m &= m - 1) {
        const int i = block_values * b + std::countr_zero(m);
        if (std::memcmp(static_cast<const std::uint8_t*>(x) + static_cast<std::ptrdiff_t>(i) * bytes, &value,
                        static_cast<std::size_t>(bytes)) != 0)
          return false;
      }
    return true;
  }

  static bool constant(const std::int32_t* q) {
    if (q[0] != q[chunk_values - 1] || q[0] != q[chunk_values / 2]) return false;
    std::int32_t other = 0;
    for (int i = 0; i < chunk_values; ++i) other |= q[i] ^ q[0];
    return other == 0;
  }

  static std::int32_t mean(const std::int32_t* q) { return sampled_mean(q); }

  template <Predictor P>
  static Block64 residual(const std::int32_t* q, std::int32_t base) {
    Block64 r;
    for (int i = 0; i < block_values; ++i) {
      if constexpr (P == Predictor::none) {
        r.v[i] = wrapped_sub(q[i], base);
      } else {
        r.v[i] = wrapped_sub(q[i], q[i - 1]);
        if constexpr (P == Predictor::second) r.v[i] = wrapped_sub(r.v[i], wrapped_sub(q[i - 1], q[i - 2]));
      }
    }
    return r;
  }

  static Choice<std::int32_t> choose(const Integers& q) { return choose_predictor(q.q, true); }

  static Block64 sum(const Block64& a, const Block64& b) {
    Block64 s;
    for (int i = 0; i < block_values; ++i)
      s.v[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v[i]) + static_cast<std::uint32_t>(b.v[i]));
    return s;
  }

  static void broadcast(std::int32_t v, std::int32_t* q) {
    for (int i = 0; i < chunk_values; ++i) q[i] = v;
  }

  // ------------------------------------------------------------------------------------------- integers -> elements

  /// One rounding of q * step / divisor.
  static float value(const Params& p, std::int32_t q) {
    if (p.narrow_value) return static_cast<float>(q) * p.step32;
    return static_cast<float>(static_cast<double>(q) * p.value_step);
  }

  template <class Element, class F>
  static void store_each(void* y, F f) {
    auto* to = static_cast<std::uint8_t*>(y);
    for (int i = 0; i < chunk_values; ++i) {
      const Element e = f(i);
      std::memcpy(to + static_cast<std::size_t>(i) * sizeof e, &e, sizeof e);
    }
  }

  static void dequantise(const Params& p, const std::int32_t* q, void* y, bool /*stream*/) {
    const int bytes = p.shape.element_bytes;
    if (p.shape.exact_only) {
      if (bytes == 2)
        return store_each<std::uint16_t>(y, [&](int i) { return static_cast<std::uint16_t>(order_unmap(q[i], 2)); });
      const std::int32_t flip = p.shape.floating ? 0x7FFFFFFF : 0;
      return store_each<std::int32_t>(y, [&](int i) { return q[i] ^ (q[i] >> 31 & flip); });
    }
    switch (p.grid.dtype) {
      case DType::f64:
        return store_each<double>(y, [&](int i) { return static_cast<double>(q[i]) * p.value_step; });
      case DType::f16:
        return store_each<std::uint16_t>(y, [&](int i) { return f16_of_f32(value(p, q[i])); });
      case DType::bf16:
        return store_each<std::uint16_t>(y, [&](int i) { return bf16_of_f32(value(p, q[i])); });
      default:
        if (!p.narrow_value) return store_each<float>(y, [&](int i) { return value(p, q[i]); });
        for (int i = 0; i < chunk_values; i += 4)
          hn::StoreU(hn::Mul(hn::ConvertTo(f32x4, hn::LoadU(i32x4, q + i)), hn::Set(f32x4, p.step32)), f32x4,
                     static_cast<float*>(y) + i);
    }
  }

  static void put_fill(const Params& p, void* y, int b, std::uint64_t marks, std::uint64_t value) {
    const int bytes = p.shape.element_bytes;
    if (bytes == 4 && p.shape.sum)
      value = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(value)));
    auto* to = static_cast<std::uint8_t*>(y) + static_cast<std::ptrdiff_t>(block_values * b * bytes);
    for (std::uint64_t m = marks; m != 0; m &= m - 1)
      std::memcpy(to + std::countr_zero(m) * bytes, &value, static_cast<std::size_t>(bytes));
  }

  // ------------------------------------------------------------------------------------------- tables of codes

  /// Of each code its index into the dictionary, as four index planes.
  static void put_indices(const std::uint8_t* codes, const std::uint8_t* dictionary, int k, std::uint8_t* to) {
    for (int h = 0; h < 2; ++h) {
      const auto c = hn::LoadU(d8, codes + 16 * h);
      auto index = hn::Zero(d8);
      for (int i = 0; i < k; ++i) index = hn::Sub(index, hn::VecFromMask(d8, hn::Gt(c, hn::Set(d8, dictionary[i]))));
      for (int j = 0; j < 4; ++j)
        hn::StoreMaskBits(d8, hn::TestBit(index, hn::Set(d8, static_cast<std::uint8_t>(1U << j))), to + 4 * j + 2 * h);
    }
  }

  static bool split_codes(const std::uint8_t* codes, std::uint8_t* dense, std::uint8_t* sparse, std::size_t& dense_sum,
                          std::size_t& sparse_sum, int& extended) {
    dense_sum = sparse_sum = 0;
    extended = 0;
    for (int b = 0; b < chunk_blocks; b += 16) {
      const auto c = hn::LoadU(d8, codes + b);
      const auto w = hn::And(c, hn::Set(d8, std::uint8_t{31}));
      const auto top = hn::ShiftRight<5>(c);
      const auto special = hn::Eq(w, hn::Set(d8, std::uint8_t{31}));
      const auto s = hn::IfThenElse(hn::Eq(top, hn::Set(d8, std::uint8_t{7})), w, top);
      if (!hn::AllFalse(d8, hn::AndNot(special, hn::Gt(s, w)))) return false;
      const auto of_planes = hn::IfThenZeroElse(special, hn::Sub(w, s));
      const auto of_sparse = hn::IfThenZeroElse(special, s);
      hn::StoreU(of_planes, d8, dense + b);
      hn::StoreU(of_sparse, d8, sparse + b);
      dense_sum += byte_sum(of_planes);
      sparse_sum += byte_sum(of_sparse);
      extended |= hn::AllFalse(d8, special) ? 0 : 1;
    }
    return true;
  }
  static std::size_t byte_sum(hn::Vec<hn::FixedTag<std::uint8_t, 16>> v) {
    constexpr hn::FixedTag<std::uint64_t, 2> d;
    return static_cast<std::size_t>(hn::GetLane(hn::SumOfLanes(d, hn::SumsOf8(v))));
  }

  static bool look_up_codes(const std::uint8_t* at, std::uint32_t planes, std::uint32_t dictionary,
                            std::uint8_t* codes) {
    alignas(16) constexpr std::uint8_t byte_of[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    alignas(16) constexpr std::uint8_t bit_of[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const auto bits = hn::Load(d8, bit_of);
    const auto code_of = hn::LoadU(d8, at + 4 * planes);
    for (unsigned b = 0; b < chunk_blocks; b += 16) {
      const auto bytes = hn::Add(hn::Load(d8, byte_of), hn::Set(d8, static_cast<std::uint8_t>(b / 8)));
      auto index = hn::Zero(d8);
      for (std::uint32_t j = 0; j < planes; ++j) {
        const auto plane = hn::BitCast(d8, hn::Set(u32x4, slice::load<std::uint32_t>(at + 4 * j)));
        const auto set = hn::TestBit(hn::TableLookupBytes(plane, bytes), bits);
        index = hn::Or(index, hn::IfThenElseZero(set, hn::Set(d8, static_cast<std::uint8_t>(1U << j))));
      }
      if (!hn::AllTrue(d8, hn::Lt(index, hn::Set(d8, static_cast<std::uint8_t>(dictionary))))) return false;
      hn::StoreU(hn::TableLookupBytes(code_of, index), d8, codes + b);
    }
    return true;
  }

  static std::size_t count_bits(const std::uint8_t* masks, std::size_t n) {
    std::size_t total = 0;
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) total += static_cast<std::size_t>(std::popcount(slice::load<std::uint64_t>(masks + i)));
    for (; i < n; ++i) total += static_cast<std::size_t>(std::popcount(masks[i]));
    return total;
  }

  static std::uint8_t* copy(std::uint8_t* to, const std::uint8_t* from, std::ptrdiff_t n) {
    std::memcpy(to, from, static_cast<std::size_t>(n));
    return to + n;
  }
};
