#include "support/fake_nccl_reduce.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/element.h"
#include "support/fake_cuda.h"

namespace laconic::fake {
namespace {

template <typename T>
T combine(T a, T b, ncclRedOp_t op) {
  // Integers wrap, as they do on a GPU.
  using Sum = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  switch (op) {
    case ncclProd:
      return static_cast<T>(static_cast<Sum>(a) * static_cast<Sum>(b));
    case ncclMin:
      return std::min(a, b);
    case ncclMax:
      return std::max(a, b);
    default:
      return static_cast<T>(static_cast<Sum>(a) + static_cast<Sum>(b));
  }
}

template <typename Element>
void reduce(Element, const std::vector<const void*>& operands, std::size_t count, ncclRedOp_t op, unsigned char* out) {
  using Stored = typename Element::Stored;
  const auto at = [&](const void* from, std::size_t i) {
    Stored x;
    std::memcpy(&x, static_cast<const unsigned char*>(from) + i * sizeof x, sizeof x);
    return Element::widen(x);
  };
  for (std::size_t i = 0; i < count; ++i) {
    // As NCCL: an average of floats is a sum of what has been scaled before, so that it stays within the type.
    constexpr bool scales = std::is_floating_point_v<decltype(Element::widen(Stored{}))>;
    const auto share = [&](std::size_t r) {
      const auto x = at(operands[r], i);
      if constexpr (scales) {
        using T = decltype(x * x);
        if (op == ncclAvg)
          return Element::widen(Element::narrow(static_cast<T>(x * (T{1} / static_cast<T>(operands.size())))));
      }
      return x;
    };
    auto sum = share(0);
    for (std::size_t r = 1; r < operands.size(); ++r) {
      sum = Element::widen(Element::narrow(combine(sum, share(r), op)));
    }
    if constexpr (!scales) {
      if (op == ncclAvg) sum = static_cast<decltype(sum)>(sum / static_cast<decltype(sum)>(operands.size()));
    }
    const Stored result = Element::narrow(sum);
    std::memcpy(out + i * sizeof result, &result, sizeof result);
  }
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

std::vector<unsigned char> reduced(const std::vector<const void*>& operands, std::size_t count, ncclDataType_t type,
                                   ncclRedOp_t op) {
  std::vector<unsigned char> out(count * size_of(type));
  const auto with = [&](auto element) { reduce(element, operands, count, op, out.data()); };
  switch (type) {
    case ncclInt8:
      with(PlainElement<std::int8_t>{});
      break;
    case ncclUint8:
      with(PlainElement<std::uint8_t>{});
      break;
    case ncclInt32:
      with(PlainElement<std::int32_t>{});
      break;
    case ncclUint32:
      with(PlainElement<std::uint32_t>{});
      break;
    case ncclInt64:
      with(PlainElement<std::int64_t>{});
      break;
    case ncclUint64:
      with(PlainElement<std::uint64_t>{});
      break;
    case ncclFloat16:
      with(HalfElement{});
      break;
    case ncclBfloat16:
      with(BrainHalfElement{});
      break;
    case ncclFloat32:
      with(PlainElement<float>{});
      break;
    case ncclFloat64:
      with(PlainElement<double>{});
      break;
    default:
      give_up("a reduction of a type that the fake NCCL does not know");
  }
  return out;
}

}  // namespace laconic::fake
