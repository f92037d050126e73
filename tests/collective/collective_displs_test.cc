// Parts that lie where displacements say: reversed, with gaps and empty ones, in place and not. Gaps are never written.
#include <gtest/gtest.h>

#include <algorithm>

#include "collective/allgather.h"
#include "collective/alltoall.h"
#include "collective/fields.h"
#include "collective/gather.h"
#include "collective/layout.h"
#include "collective/moved.h"
#include "collective/placed.h"
#include "collective/scatter.h"
#include "collective/world.h"
#include "core/error.h"

namespace laconic::collective_displs_test {
namespace {

using moved::expect_within;
using moved::with;
using placed::Places;
using testing_fields::make;
using world::view;

constexpr float untouched = 42;

/// body(rank as an index, communicator, bound, its options) on every number of ranks, with and without a bound.
template <typename Body>
void everywhere(Body body) {
  for (int n = 1; n <= 5; ++n) {
    for (const double bound : {1e-3, 0.0}) {
      Options o = with(bound == 0 ? "lossless" : "1e-3", 2048);
      o.verify = true;
      SCOPED_TRACE(std::to_string(n) + " ranks, bound " + std::to_string(bound));
      run_ranks(
          n,
          [&](Transport& t) {
            Communicator comm(t);
            body(static_cast<std::size_t>(t.rank()), comm, bound, o);
          },
          30);
    }
  }
}

MutArray place(std::vector<float>& array, const Places& p, std::size_t r) {
  return slice_of(view(array), p.displs[r], p.counts[r]);
}

void expect_untouched_gaps(const std::vector<float>& array, const Places& p) {
  const auto gaps = placed::gaps(array, p);
  EXPECT_EQ(gaps, std::vector<float>(gaps.size(), untouched));
}

TEST(Displacements, Scatter) {
  everywhere([](std::size_t me, Communicator& comm, double bound, const Options& o) {
    const Places p = placed::uneven(static_cast<std::size_t>(comm.size()), 5000);
    const auto whole = make<float>("smooth", p.extent, 1);
    const int root = comm.size() - 1;
    std::vector<float> share(p.counts[me], untouched);
    scatter(view(whole), p.parts(), view(share), root, comm, o);
    expect_within(share, placed::part(whole, p, me), bound);
    auto kept = whole;
    scatter(view(std::as_const(kept)), p.parts(), comm.rank() == root ? place(kept, p, me) : view(share), root, comm,
            o);
    EXPECT_EQ(kept, whole);
  });
}

TEST(Displacements, Gather) {
  everywhere([](std::size_t me, Communicator& comm, double bound, const Options& o) {
    const Places p = placed::uneven(static_cast<std::size_t>(comm.size()), 5000);
    const auto whole = make<float>("smooth", p.extent, 2);
    const auto mine = placed::part(whole, p, me);
    std::vector<float> got(p.extent, untouched);
    gather(view(mine), view(got), p.parts(), 0, comm, o);
    std::vector<float> again(p.extent, untouched);
    std::copy(mine.begin(), mine.end(), again.begin() + static_cast<std::ptrdiff_t>(p.displs[me]));
    gather(me == 0 ? ConstArray(place(again, p, me)) : view(mine), view(again), p.parts(), 0, comm, o);
    if (me != 0) return;
    for (std::size_t r = 0; r < p.counts.size(); ++r)
      expect_within(placed::part(got, p, r), placed::part(whole, p, r), bound);
    expect_untouched_gaps(got, p);
    EXPECT_EQ(again, got);
  });
}

TEST(Displacements, Allgather) {
  everywhere([](std::size_t me, Communicator& comm, double bound, const Options& o) {
    const Places p = placed::uneven(static_cast<std::size_t>(comm.size()), 5000);
    const auto whole = make<float>("smooth", p.extent, 3);
    const auto mine = placed::part(whole, p, me);
    std::vector<float> got(p.extent, untouched), again(p.extent, untouched);
    allgather(view(mine), view(got), p.parts(), comm, o);
    for (std::size_t r = 0; r < p.counts.size(); ++r)
      expect_within(placed::part(got, p, r), placed::part(whole, p, r), bound);
    expect_untouched_gaps(got, p);
    std::copy(mine.begin(), mine.end(), again.begin() + static_cast<std::ptrdiff_t>(p.displs[me]));
    allgather(ConstArray(place(again, p, me)), view(again), p.parts(), comm, o);
    EXPECT_EQ(again, got);
  });
}

/// What rank `from` sends to rank `to`.
std::size_t between(std::size_t from, std::size_t to) { return from == 1 ? 0 : 1000 * from + 700 * to; }

TEST(Displacements, Alltoallv) {
  everywhere([](std::size_t me, Communicator& comm, double bound, const Options& o) {
    const auto n = static_cast<std::size_t>(comm.size());
    const auto sent_by = [&](std::size_t r) {
      std::vector<std::size_t> counts(n);
      for (std::size_t to = 0; to < n; ++to) counts[to] = between(r, to);
      return placed::reversed(counts);
    };
    const auto field_of = [&](std::size_t r) { return make<float>("smooth", sent_by(r).extent, static_cast<int>(r)); };
    std::vector<std::size_t> counts(n);
    for (std::size_t r = 0; r < n; ++r) counts[r] = between(r, me);
    const Places in = placed::reversed(counts);
    const auto x = field_of(me);
    std::vector<float> got(in.extent, untouched);
    alltoallv(view(x), sent_by(me).parts(), view(got), in.parts(), comm, o);
    for (std::size_t r = 0; r < n; ++r)
      expect_within(placed::part(got, in, r), placed::part(field_of(r), sent_by(r), me), bound);
    expect_untouched_gaps(got, in);
  });
}

TEST(Displacements, AlltoallvInPlace) {
  everywhere([](std::size_t me, Communicator& comm, double bound, const Options& o) {
    const auto n = static_cast<std::size_t>(comm.size());
    const auto places_of = [&](std::size_t r) {  // between two ranks the same both ways
      std::vector<std::size_t> counts(n);
      for (std::size_t other = 0; other < n; ++other) counts[other] = r + other == 1 ? 0 : 900 * (r + other);
      return placed::reversed(counts);
    };
    const Places p = places_of(me);
    const auto field_of = [&](std::size_t r) {
      return make<float>("smooth", places_of(r).extent, static_cast<int>(r));
    };
    auto x = field_of(me);
    alltoallv(view(std::as_const(x)), p.parts(), view(x), p.parts(), comm, o);
    for (std::size_t r = 0; r < n; ++r)
      expect_within(placed::part(x, p, r), placed::part(field_of(r), places_of(r), me), bound);
    EXPECT_EQ(placed::gaps(x, p), placed::gaps(field_of(me), p));
  });
}

/// Values in the gaps of what is sent, which nobody gets, must not widen the range that a relative bound refers to.
TEST(Displacements, GapsThatAreSentToNobodyAreNotLookedAt) {
  constexpr std::size_t count = 3000;
  const Options o = with("1e-3rel", 2048);
  run_ranks(
      3,
      [&](Transport& t) {
        Communicator comm(t);
        const auto me = static_cast<std::size_t>(t.rank());
        const Places p = placed::reversed({count, count, count});
        const auto field_of = [&](std::size_t r) {
          auto x = make<float>("smooth", p.extent, static_cast<int>(r));
          std::vector<bool> sent(x.size());
          for (const std::size_t first : p.displs) std::fill_n(sent.begin() + static_cast<long>(first), count, true);
          for (std::size_t i = 0; i < x.size(); ++i) x[i] = sent[i] ? x[i] : 1e6F;
          return x;
        };
        std::vector<float> got(3 * count);
        const std::vector<std::size_t> counts(3, count);
        const auto x = field_of(me);
        const std::vector<float> root = field_of(0);
        scatter(view(root), p.parts(), slice_of(view(got), 0, count), 0, comm, o);
        expect_within({got.begin(), got.begin() + count}, placed::part(root, p, me), 4e-3);
        alltoallv(view(x), p.parts(), view(got), {.counts = counts, .displs = {}}, comm, o);
        for (std::size_t r = 0; r < 3; ++r)
          expect_within({got.begin() + static_cast<long>(r * count), got.begin() + static_cast<long>((r + 1) * count)},
                        placed::part(field_of(r), p, me), 4e-3);
      },
      20);
}

/// On every rank of two: the error of `call`, which must be of this kind and have these words.
template <typename Call>
void expect_refused(Code code, const char* words, Call call) {
  run_ranks(
      2,
      [&](Transport& t) {
        Communicator comm(t);
        try {
          call(static_cast<std::size_t>(t.rank()), comm);
          ADD_FAILURE() << "no error where this was due: " << words;
        } catch (const Error& e) {
          EXPECT_EQ(e.code(), code) << e.what();
          EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
        }
      },
      20);
}

TEST(Displacements, WrongOnesAreRefusedOnEveryRank) {
  const std::vector<std::size_t> counts{10, 20}, beyond{0, 15}, touching{0, 9}, apart{20, 0};
  const auto gathered = [&](const std::vector<std::size_t>& displs) {
    return [&](std::size_t me, Communicator& comm) {
      const std::vector<float> x(counts[me]);
      std::vector<float> y(30);
      gather(view(x), view(y), {.counts = counts, .displs = displs}, 0, comm, with("1e-3"));
    };
  };
  expect_refused(Code::invalid_argument,
                 "rank 0: the array for all ranks has 30 elements, displs[1] = 15 and counts[1] = 20",
                 gathered(beyond));
  expect_refused(Code::invalid_argument, "rank 0: recv: the parts of ranks 0 and 1 overlap", gathered(touching));
  expect_refused(Code::invalid_argument, "rank 0: displs has 1 entries, want one for each of 2 ranks", gathered({3}));
  expect_refused(Code::invalid_argument, "send and recv overlap without being in place",
                 [&](std::size_t me, Communicator& comm) {
                   std::vector<float> y(30);
                   gather(slice_of(ConstArray(view(y)), 1, counts[me]), view(y), {.counts = counts, .displs = apart}, 0,
                          comm, with("1e-3"));
                 });
  expect_refused(Code::mismatch, "rank 0 passed count 10, rank 1 has counts[0] = 11",
                 [&](std::size_t me, Communicator& comm) {
                   const std::vector<std::size_t> mine = me == 0 ? counts : std::vector<std::size_t>{11, 20};
                   const std::vector<float> x(mine[me]);
                   std::vector<float> y(40);
                   allgather(view(x), view(y), {.counts = mine, .displs = apart}, comm, with("1e-3"));
                 });
  expect_refused(Code::invalid_argument, "in place, counts and displs of send and recv must be the same",
                 [&](std::size_t, Communicator& comm) {
                   const std::vector<std::size_t> equal{10, 10}, one{0, 10}, other{10, 0};
                   std::vector<float> x(20);
                   alltoallv(view(std::as_const(x)), {.counts = equal, .displs = one}, view(x),
                             {.counts = equal, .displs = other}, comm, with("1e-3"));
                 });
}

// A message may lie in a gap of what is received.
TEST(Displacements, SendInAGapIsNoOverlap) {
  run_ranks(
      2,
      [](Transport& t) {
        Communicator comm(t);
        const auto me = static_cast<std::size_t>(t.rank());
        const std::vector<std::size_t> counts{10, 10}, displs{20, 0};
        std::vector<float> y(30, static_cast<float>(me));
        gather(slice_of(ConstArray(view(y)), 10, 10), view(y), {.counts = counts, .displs = displs}, 0, comm,
               with("lossless"));
        if (me != 0) return;
        std::vector<float> expected(30, 0.0F);
        std::fill_n(expected.begin(), 10, 1.0F);
        EXPECT_EQ(y, expected);
      },
      20);
}

}  // namespace
}  // namespace laconic::collective_displs_test
