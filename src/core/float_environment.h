// How a thread's floating-point operations round, what becomes of subnormals, and whether an exception is a signal:
// what a program may have chosen for itself (-ffast-math, -ffpe-trap, fesetround()), and Laconic must not compute by.
#pragma once

#include <cstdint>
#include <utility>
#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace laconic {

/// While this lives, the thread computes as IEEE 754 has it by default: to nearest, subnormals kept, no signals. Then
/// everything is as the program had it, its exception flags too. (The x87's state is left alone: nothing here uses it.)
class FloatEnvironment {
 public:
  FloatEnvironment() : theirs_(current()) {
    if (outermost_ == nullptr) outermost_ = this;
    choose_ours();
  }
  ~FloatEnvironment() {
    choose(theirs_);
    if (outermost_ == this) outermost_ = nullptr;
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

  /// Whether the program would compute otherwise than the thread now does, flags apart.
  static bool is_in_the_way() { return outermost_ != nullptr && is_chosen(outermost_->theirs_); }

  /// Runs work as the program would, whichever of these the thread has: the flags that it raises stay.
  template <typename Work>
  static decltype(auto) as_the_program(Work&& work) {
    FloatEnvironment* const all = std::exchange(outermost_, nullptr);
    if (all == nullptr) return std::forward<Work>(work)();
    struct Again {
      FloatEnvironment& all;
      State ours;
      ~Again() {
        all.theirs_ = current();
        choose(ours);
        outermost_ = &all;
      }
    };
    const Again again{*all, current()};
    choose(all->theirs_);
    return std::forward<Work>(work)();
  }

 private:
#if defined(__x86_64__)
  using State = unsigned;
  static State current() { return _mm_getcsr(); }
  static void choose(State s) { _mm_setcsr(s); }
  static constexpr unsigned by_default = 0x1F80, flags = 0x3F;  // all exceptions masked
  static void choose_ours() { choose(by_default); }
  static bool is_chosen(State s) { return (s & ~flags) != by_default; }
#elif defined(__aarch64__)
  struct State {
    std::uint64_t control = 0, status = 0;
  };
  static State current() {
    State s;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(s.control), "=r"(s.status));
    return s;
  }
  static void choose(const State& s) {
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(s.control), "r"(s.status) : "memory");
  }
  static void choose_ours() { choose({}); }
  static bool is_chosen(const State& s) { return s.control != 0; }
#else
  using State = std::fenv_t;
  static State current() {
    State s;
    std::fegetenv(&s);
    return s;
  }
  static void choose(const State& s) { std::fesetenv(&s); }
  static void choose_ours() { std::fesetenv(FE_DFL_ENV); }
  static bool is_chosen(const State& /*s*/) { return true; }  // who knows
#endif

  inline static thread_local FloatEnvironment* outermost_ = nullptr;
  State theirs_;
};

}  // namespace laconic
