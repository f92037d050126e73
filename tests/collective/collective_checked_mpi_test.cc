// Options::check: ranks agree on every call, also on those that the plain library is known to make.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "collective/allreduce.h"
#include "collective/bcast.h"
#include "collective/gather.h"
#include "collective/layout.h"
#include "collective/plain_mpi.h"
#include "collective/reduce.h"
#include "collective/world.h"
#include "core/error.h"
#include "support/sleeping.h"

namespace laconic::plain_mpi {
namespace {

using world::view;

class CheckedMpi : public PlainMpi {
 protected:
  /// One rank that asks for it is enough.
  [[nodiscard]] Options checked(Mode mode) const {
    Options o = with("1e-3", mode);
    o.check = me == n - 1;
    return o;
  }
  void add_up(const Options& o, std::size_t count = 100, Communicator* over = nullptr) {
    const auto x = operand(count, me);
    std::vector<double> got(count);
    allreduce(view(x), view(got), Op::sum, over != nullptr ? *over : comm, o);
    const auto whole = sum(count);
    for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(got[i], whole[i], 1.01e-3) << i;
  }
  void collect(const Options& o) {
    const auto counts = uneven();
    const auto x = operand(counts[me], me);
    std::vector<double> all(me == 0 ? std::accumulate(counts.begin(), counts.end(), std::size_t{0}) : 0);
    gather(view(x), view(all), me == 0 ? counts : std::vector<std::size_t>{}, 0, comm, o);
  }
  /// Of so many calls, those before which this rank asked nobody.
  int unasked(int calls, const std::function<void()>& make) const {
    int silent = 0;
    for (int i = 0; i < calls; ++i) {
      make();
      silent += comm.last().messages_sent == 0 ? 1 : 0;
    }
    return silent;
  }
};

/// The same on every rank, with a text that has these words.
void expect_refused(Code code, const std::string& words, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "no error; want " << words;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
  }
}

TEST_F(CheckedMpi, EveryCallIsAgreedOn) {
  if (n == 1) GTEST_SKIP() << "one rank asks nobody";
  for (const Mode mode : {Mode::plain, Mode::automatic}) {
    EXPECT_EQ(unasked(200, [&] { add_up(checked(mode)); }), 0);
    EXPECT_EQ(unasked(200, [&] { collect(checked(mode)); }), 0);
  }
}

TEST_F(CheckedMpi, RanksMayBeginToWishItAtAnyTimeTogether) {
  if (n == 1) GTEST_SKIP() << "one rank asks nobody";
  Options all = plainly;
  all.check = true;
  for (int i = 0; i < 2; ++i) {
    add_up(plainly);  // from the second on they do not ask
    EXPECT_EQ(unasked(20, [&] { add_up(plainly); }), 20);
    EXPECT_EQ(unasked(20, [&] { add_up(all); }), 0);
  }
  for (int i = 0; i < 200; ++i) add_up(with("1e-3", Mode::automatic));
  all.mode = Mode::automatic;
  EXPECT_EQ(unasked(20, [&] { add_up(all); }), 0);
}

TEST_F(CheckedMpi, WrongArgumentsAreTheSameErrorOnAllRanks) {
  if (n == 1) GTEST_SKIP() << "one rank agrees with itself";
  const std::string last = "rank " + std::to_string(n - 1) + " passed ";
  const bool wrong = me == n - 1;
  for (const Mode mode : {Mode::plain, Mode::automatic}) {
    std::vector<float> x(256, 1.0F), y(256);
    const auto reduced = [&](std::size_t count, Op op, int root) {
      reduce(slice_of(view(std::as_const(x)), 0, count), slice_of(view(y), 0, count), op, root, comm, checked(mode));
    };
    for (int i = 0; i < 100; ++i) reduced(256, Op::sum, 0);
    expect_refused(Code::mismatch, last + "count", [&] { reduced(wrong ? 255 : 256, Op::sum, 0); });
    expect_refused(Code::mismatch, last + "op", [&] { reduced(256, wrong ? Op::average : Op::sum, 0); });
    expect_refused(Code::mismatch, last + "root", [&] { reduced(256, Op::sum, wrong ? 1 : 0); });
    expect_refused(Code::mismatch, last, [&] {
      if (wrong) return reduced(256, Op::sum, 0);
      bcast(view(x), 0, comm, checked(mode));
    });
    reduced(256, Op::sum, 0);  // nothing is lost
    EXPECT_NEAR(y[200], me == 0 ? static_cast<float>(n) : 0.0F, 1.01e-3);
  }
}

TEST_F(CheckedMpi, WhoDoesNotComeIsNamed) {
  if (n == 1) GTEST_SKIP() << "one rank waits for nobody";
  const std::string late = "rank " + std::to_string(n - 1);
  for (const Mode mode : {Mode::plain, Mode::automatic}) {
    Communicator impatient(make_mpi_transport(MPI_COMM_WORLD, 4));
    for (int i = 0; i < 30; ++i) add_up(checked(mode), 100, &impatient);
    if (me != n - 1) expect_refused(Code::transport, late, [&] { add_up(checked(mode), 100, &impatient); });
    sleeping_barrier();
  }
}

}  // namespace
}  // namespace laconic::plain_mpi
