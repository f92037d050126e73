// One source, several instruction sets: a kernel is written once in plain C++ as an inline function and compiled anew
// for each set of vector instructions. What runs is what runs for slice (codec/slice/target.h).
#pragma once

#include "codec/slice/target.h"

#define LACONIC_INLINE [[gnu::always_inline]] inline

#if defined(__x86_64__)
#define LACONIC_AVX2 [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]]
#define LACONIC_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi,bmi2,lzcnt,popcnt")]]
#else
#define LACONIC_AVX2
#define LACONIC_AVX512
#endif

namespace laconic {

/// body, compiled three times; what it calls comes along if it is LACONIC_INLINE as body is itself.
template <auto body, class F>
struct Variants;
template <auto body, class R, class... A>
struct Variants<body, R (*)(A...)> {
  static R plain(A... a) { return body(a...); }
  LACONIC_AVX2 static R avx2(A... a) { return body(a...); }
  LACONIC_AVX512 static R avx512(A... a) { return body(a...); }
};

/// The variant of a function for the present target.
template <auto body>
auto variant() {
  using All = Variants<body, decltype(body)>;
  const slice::Target target = slice::current();
  if (target == slice::Target::avx512 || target == slice::Target::avx512x) return &All::avx512;
  if (target == slice::Target::avx2) return &All::avx2;
  return &All::plain;
}

}  // namespace laconic
