// What a program has chosen for its own floating-point operations changes nothing that Laconic computes, and is as it
// was afterwards; and what the plain library computes is computed by it.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "collective/allreduce.h"
#include "collective/bcast.h"
#include "collective/fields.h"
#include "collective/p2p.h"
#include "collective/plain_way.h"
#include "collective/scan.h"
#include "collective/world.h"
#include "core/float_environment.h"
#include "support/sanitized.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace laconic::collective_environment_test {
namespace {

using testing_fields::Operands;
using world::view;

struct Choice {
  std::string name;
  std::function<void()> choose;
};

std::vector<Choice> choices() {
  std::vector<Choice> all{
      {"to nearest", [] {}},
      {"upward", [] { std::fesetround(FE_UPWARD); }},
      {"downward", [] { std::fesetround(FE_DOWNWARD); }},
      {"toward zero", [] { std::fesetround(FE_TOWARDZERO); }},
      {"signals", [] { feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW); }},
  };
#if defined(__x86_64__)
  all.push_back({"subnormals are 0", [] { _mm_setcsr(_mm_getcsr() | 0x8040U); }});
#endif
  return all;
}

/// Rounding, subnormals, signals and flags, as numbers.
std::vector<unsigned> state() {
  std::vector<unsigned> s{static_cast<unsigned>(std::fegetround()), static_cast<unsigned>(fegetexcept()),
                          static_cast<unsigned>(std::fetestexcept(FE_ALL_EXCEPT))};
#if defined(__x86_64__)
  s.push_back(_mm_getcsr());
#endif
  return s;
}

template <typename T>
using Body = std::function<Report(const std::vector<T>& mine, std::vector<T>& result, int rank, Communicator&)>;

/// The same bytes under every choice, which is still there afterwards.
template <typename T>
void expect_the_same(const std::string& what, const Operands<T>& operands, const Body<T>& body) {
  std::vector<std::vector<T>> expected;
  for (const Choice& choice : choices()) {
    std::vector<int> kept(operands.size());
    const auto run = world::run<T>(static_cast<int>(operands.size()), [&](int rank, Communicator& comm) {
      const auto r = static_cast<std::size_t>(rank);
      std::vector<T> result = operands[r];
      std::fenv_t before;
      std::fegetenv(&before);
      choice.choose();
      std::feraiseexcept(FE_INEXACT);
      const auto chosen = state();
      const Report report = body(operands[r], result, rank, comm);
      kept[r] = state() == chosen ? 1 : 0;
      std::fesetenv(&before);
      return std::pair(result, report);
    });
    if (expected.empty()) expected = run.results;
    for (std::size_t r = 0; r < operands.size(); ++r) {
      EXPECT_TRUE(world::same_bytes(run.results[r], expected[r])) << what << ", " << choice.name << ", rank " << r;
      EXPECT_EQ(kept[r], 1) << what << ", " << choice.name << ", rank " << r << " has another environment than before";
    }
  }
}

Options with(const char* bound, Framework framework = Framework::automatic, int threads = 1) {
  Options o;
  o.bound = Bound::parse(bound);
  o.framework = framework;
  o.threads = threads;
  return o;
}

/// Everything that is no number, too large, or next to nothing.
template <typename T>
Operands<T> hard(std::size_t count, int ranks) {
  auto all = testing_fields::hostile<T>(count, ranks);
  for (auto& x : all) {
    testing_fields::sprinkle(x, 11, 97, std::numeric_limits<T>::denorm_min() * 5);
    testing_fields::sprinkle(x, 12, 89, std::numeric_limits<T>::max());
    testing_fields::sprinkle(x, 13, 83, std::numeric_limits<T>::signaling_NaN());
  }
  return all;
}

template <typename T>
class Environment : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Environment, Types);

TYPED_TEST(Environment, ChangesNoReduction) {
  using T = TypeParam;
  for (const auto& operands : {testing_fields::operands_of<T>("smooth", 40000, 3), hard<T>(40000, 3)}) {
    for (const char* bound : {"1e-3", "1e-4rel", "60dB", "lossless"}) {
      for (const Op op : {Op::sum, Op::average, Op::min}) {
        if (test::sanitized && op == Op::average) continue;
        expect_the_same<T>(std::string(bound) + " " + std::to_string(static_cast<int>(op)), operands,
                           [&](const auto& mine, auto& result, int, Communicator& comm) {
                             return allreduce(view(mine), view(result), op, comm, with(bound, {}, 2));
                           });
      }
    }
    expect_the_same<T>("in steps", operands, [&](const auto& mine, auto& result, int, Communicator& comm) {
      return allreduce(view(mine), view(result), Op::sum, comm, with("1e-2", Framework::stepwise));
    });
    expect_the_same<T>("scan", operands, [&](const auto& mine, auto& result, int, Communicator& comm) {
      return scan(view(mine), view(result), Op::sum, comm, with("1e-3"));
    });
  }
}

TYPED_TEST(Environment, ChangesNothingThatMoves) {
  using T = TypeParam;
  const auto operands = hard<T>(30000, 3);
  for (const char* bound : {"1e-3", "1e-4rel", "lossless"}) {
    expect_the_same<T>(bound, operands, [&](const auto&, auto& result, int, Communicator& comm) {
      return bcast(view(result), 1, comm, with(bound));
    });
    expect_the_same<T>(bound, operands, [&](const auto& mine, auto& result, int rank, Communicator& comm) {
      const int n = comm.size();
      return sendrecv(view(mine), (rank + 1) % n, 0, view(result), (rank + n - 1) % n, 0, comm, with(bound)).report;
    });
  }
}

double quotient(double a, double b) {
  const volatile double x = a, y = b;
  return x / y;
}

// By the library's own way, too: of that it computes the sum.
TEST(FloatEnvironment, ChangesNoAverage) {
  std::fenv_t before;
  std::fegetenv(&before);
  std::vector<double> sums{2, std::numeric_limits<double>::denorm_min()};
  std::fesetround(FE_UPWARD);
  feenableexcept(FE_UNDERFLOW);
  finish_plain_average(Op::average, Op::sum, view(sums), 3);
  std::fesetenv(&before);
  EXPECT_EQ(sums, (std::vector<double>{2.0 / 3, 0}));
}

TEST(FloatEnvironment, IsTheProgramsWhereItComputesItself) {
  std::fenv_t before;
  std::fegetenv(&before);
  const double below = quotient(2, 3);
  std::fesetround(FE_UPWARD);
  const double above = quotient(2, 3);
  std::feclearexcept(FE_ALL_EXCEPT);
  {
    const FloatEnvironment environment;
    EXPECT_EQ(quotient(2, 3), below);
    quotient(0, 0);  // nobody's business
    {
      const FloatEnvironment within;
      FloatEnvironment::as_the_program([above, below] {
        EXPECT_EQ(quotient(2, 3), above);
        const FloatEnvironment its_own;
        EXPECT_EQ(quotient(2, 3), below);
        FloatEnvironment::as_the_program([above] { EXPECT_EQ(quotient(2, 3), above); });
        EXPECT_EQ(quotient(2, 3), below);
      });
      EXPECT_EQ(quotient(2, 3), below);
    }
    FloatEnvironment::as_the_program([above] {
      EXPECT_EQ(quotient(2, 3), above);
      quotient(1, 0);
    });
    EXPECT_THROW(FloatEnvironment::as_the_program([] { throw 1; }), int);
    EXPECT_EQ(quotient(2, 3), below);
  }
  EXPECT_EQ(quotient(2, 3), above);
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), FE_DIVBYZERO | FE_INEXACT);
  std::fesetenv(&before);
  EXPECT_LT(below, above);
}

}  // namespace
}  // namespace laconic::collective_environment_test
