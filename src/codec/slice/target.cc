#include "codec/slice/target.h"

#include <array>
#include <atomic>
#include <string>

#include "codec/slice/kernel_sets.h"
#include "core/config.h"
#include "core/error.h"

namespace laconic::slice {
namespace {

constexpr std::array all = {Target::scalar, Target::portable, Target::avx2, Target::avx512, Target::avx512x};

const Kernels* kernels_of(Target t) {
  switch (t) {
    case Target::scalar:
      return &reference_kernels();
    case Target::portable:
      return portable_kernels();
    case Target::avx2:
      return avx2_kernels();
    case Target::avx512:
      return avx512_kernels();
    case Target::avx512x:
      return avx512x_kernels();
  }
  return nullptr;
}

void require(Target t, const std::string& who) {
  if (supported(t)) return;
  std::string names;
  for (const Target s : all)
    if (supported(s)) names += (names.empty() ? "" : ", ") + std::string(name_of(s));
  throw Error(Code::unsupported,
              who + ": target " + std::string(name_of(t)) + " is not available here; these are: " + names);
}

Target from_configuration() {
  const auto named = [](Target t) {
    require(t, "LACONIC_SIMD");
    return t;
  };
  switch (config().simd) {
    case Simd::scalar:
      return named(Target::scalar);
    case Simd::portable:
      return named(Target::portable);
    case Simd::avx2:
      return named(Target::avx2);
    case Simd::avx512:
      return named(Target::avx512);
    case Simd::avx512x:
      return named(Target::avx512x);
    case Simd::automatic:
      break;
  }
  return best();
}

std::atomic<int>& forced() {
  static std::atomic<int> t{-1};
  return t;
}

}  // namespace

std::string_view name_of(Target t) {
  constexpr std::array<std::string_view, 5> names = {"scalar", "portable", "avx2", "avx512", "avx512x"};
  return names[static_cast<std::size_t>(t)];
}

bool supported(Target t) { return kernels_of(t) != nullptr; }

Target best() {
  Target found = Target::scalar;
  for (const Target t : all)
    if (supported(t)) found = t;
  return found;
}

Target current() {
  static const Target initial = from_configuration();
  const int f = forced().load(std::memory_order_relaxed);
  return f < 0 ? initial : static_cast<Target>(f);
}

void force(Target t) {
  require(t, "slice::force");
  forced().store(static_cast<int>(t), std::memory_order_relaxed);
}

const Kernels& kernels() { return *kernels_of(current()); }

}  // namespace laconic::slice
