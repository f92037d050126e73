// A region of a source whose functions are compiled for a processor that has certain instructions.
#pragma once

#define LACONIC_PRAGMA(text) _Pragma(#text)

#if defined(__clang__)
#define LACONIC_BEGIN_REGION(features) \
  LACONIC_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define LACONIC_TARGET_REGION_END LACONIC_PRAGMA(clang attribute pop)
#else
#define LACONIC_BEGIN_REGION(features) LACONIC_PRAGMA(GCC push_options) LACONIC_PRAGMA(GCC target(features))
#define LACONIC_TARGET_REGION_END LACONIC_PRAGMA(GCC pop_options)
#endif

/// `features`: a string literal. Apart from what it does, since tests put other features in their place
/// (tests/codec/emulated_avx512.h).
#define LACONIC_TARGET_REGION(features) LACONIC_BEGIN_REGION(features)
