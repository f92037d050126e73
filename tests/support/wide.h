// Floats of 113 bits: what long double is on some processors, and __float128 on the others.
#pragma once

#include <limits>

namespace laconic {

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 Wide;
#else
using Wide = long double;
static_assert(std::numeric_limits<Wide>::digits >= 113);
#endif

}  // namespace laconic
