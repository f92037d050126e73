// One rank passes something else: the same error on every rank, which names that rank and both values; and the group
// can go on afterwards.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/alltoall.h"
#include "collective/bcast.h"
#include "collective/fields.h"
#include "collective/metadata.h"
#include "collective/reduce_scatter.h"
#include "collective/scatter.h"
#include "collective/world.h"
#include "core/error.h"

namespace laconic::collective_agreement_test {
namespace {

using testing_fields::make;
using world::view;

constexpr int ranks = 3;
constexpr int odd_one = 2;

struct Arguments {
  std::size_t count = 4000;
  DType dtype = DType::f32;
  Op op = Op::sum;
  Options options;
  bool null_recv = false;
  bool gather = false;
};

Arguments usual() {
  Arguments a;
  a.options.bound = Bound::parse("1e-3");
  return a;
}

/// Calls with `change` applied on the odd rank; every rank must throw the same. Then a good call must work.
std::optional<Error> all_throw(const std::function<void(Arguments&)>& change, const Arguments& base = usual()) {
  std::vector<std::optional<Error>> errors(ranks);
  run_ranks(
      ranks,
      [&](Transport& t) {
        Communicator comm(t);
        Arguments a = base;
        if (t.rank() == odd_one) change(a);
        std::vector<double> send(a.count * 4 + 8), recv(a.count * 4 + 8);
        const MutArray out{a.null_recv ? nullptr : recv.data(), a.gather ? a.count * ranks : a.count, a.dtype};
        try {
          if (a.gather) allgather({send.data(), a.count, a.dtype}, out, comm, a.options);
          if (!a.gather) allreduce({send.data(), a.count, a.dtype}, out, a.op, comm, a.options);
        } catch (const Error& e) {
          errors[static_cast<std::size_t>(t.rank())] = e;
        }
        const auto x = make<float>("smooth", 5000, t.rank());
        std::vector<float> sum(5000);
        EXPECT_TRUE(comm.usable());
        EXPECT_NO_THROW(allreduce(view(x), view(sum), Op::sum, comm, usual().options));
      },
      20);
  for (const auto& e : errors) {
    EXPECT_TRUE(e.has_value());
    if (!e || !errors[0]) return std::nullopt;
    EXPECT_STREQ(e->what(), errors[0]->what());
    EXPECT_EQ(e->code(), errors[0]->code());
  }
  return errors[0];
}

void expect_error(const std::optional<Error>& e, Code code, std::initializer_list<const char*> words) {
  ASSERT_TRUE(e.has_value());
  EXPECT_EQ(e->code(), code) << e->what();
  for (const char* w : words) EXPECT_NE(std::string(e->what()).find(w), std::string::npos) << w << " in: " << e->what();
}

TEST(Agreement, Count) {
  expect_error(all_throw([](Arguments& a) { a.count = 4001; }), Code::mismatch,
               {"allreduce", "rank 2", "count", "4001", "4000"});
}

TEST(Agreement, DtypeOfTheSameSize) {
  expect_error(all_throw([](Arguments& a) { a.dtype = DType::i32; }), Code::mismatch,
               {"rank 2", "dtype", "i32", "f32"});
}

TEST(Agreement, OpAndBound) {
  expect_error(all_throw([](Arguments& a) { a.op = Op::average; }), Code::mismatch, {"rank 2", "op", "average", "sum"});
  expect_error(all_throw([](Arguments& a) { a.options.bound.value = 2e-3; }), Code::mismatch,
               {"rank 2", "bound", "0.002", "0.001"});
  expect_error(all_throw([](Arguments& a) { a.options.bound = Bound::parse("operand:1e-3"); }), Code::mismatch,
               {"rank 2", "bound", "operand"});
  Arguments sigmas = usual();
  sigmas.options.bound = Bound::parse("5sigma:1e-3");
  expect_error(all_throw([](Arguments& a) { a.options.bound.sigmas = 4; }, sigmas), Code::mismatch,
               {"rank 2", "bound", "4sigma:0.001", "5sigma:0.001"});
}

TEST(Agreement, AnotherCollective) {
  expect_error(all_throw([](Arguments& a) { a.gather = true; }), Code::mismatch, {"rank 2", "allgather", "allreduce"});
}

// What else the ranks of a call must pass alike depends on the collective, so a rank that calls another might find
// fault with what is in order.
TEST(Agreement, AnotherCollectiveWhoseRanksPassOtherThingsAlike) {
  std::vector<std::string> said(ranks);
  run_ranks(
      ranks,
      [&](Transport& t) {
        Communicator comm(t);
        const std::vector<float> send(6000);
        std::vector<float> recv(3000);
        const std::vector<std::size_t> counts{1000, 2000, 3000};
        const std::span<const std::size_t> at_root = t.rank() == 0 ? std::span(counts) : std::span(counts).first(0);
        const auto mine = static_cast<std::size_t>(t.rank());
        try {
          if (t.rank() == odd_one) {
            bcast(view(recv), 0, comm, usual().options);
          } else {
            scatter(view(send), at_root, MutArray{recv.data(), counts[mine], DType::f32}, 0, comm, usual().options);
          }
        } catch (const Error& e) {
          said[mine] = e.what();
        }
      },
      20);
  for (const std::string& text : said) EXPECT_EQ(text.find("scatter: rank 2 passed collective bcast"), 0U) << text;
}

// Their ranks would go separate ways after the exchange.
TEST(Agreement, AVCollectiveIsAnotherOne) {
  for (const Mode mode : {Mode::automatic, Mode::compressed, Mode::plain}) {
    std::vector<std::string> said(ranks);
    run_ranks(
        ranks,
        [&](Transport& t) {
          Communicator comm(t);
          Options options = usual().options;
          options.mode = mode;
          options.check = true;
          const std::vector<float> send(ranks * 1000);
          std::vector<float> recv(send.size());
          const std::vector<std::size_t> counts(ranks, 1000);
          try {
            if (t.rank() == odd_one) {
              alltoallv(view(send), {.counts = counts}, view(recv), {.counts = counts}, comm, options);
            } else {
              alltoall(view(send), view(recv), comm, options);
            }
          } catch (const Error& e) {
            said[static_cast<std::size_t>(t.rank())] = e.what();
          }
        },
        20);
    for (const std::string& text : said)
      EXPECT_EQ(text.find("alltoall: rank 2 passed collective alltoallv, rank 0 passed alltoall;"), 0U) << text;
  }
}

TEST(Agreement, CountOfAnAllgather) {
  Arguments gather = usual();
  gather.gather = true;
  expect_error(all_throw([](Arguments& a) { a.count = 3999; }, gather), Code::mismatch,
               {"allgather", "rank 2 passed count 3999, rank 0 passed 4000"});
}

TEST(Agreement, AnArgumentThatIsWrongOnOneRankOnly) {
  expect_error(all_throw([](Arguments& a) { a.null_recv = true; }), Code::invalid_argument, {"rank 2", "recv is null"});
  expect_error(all_throw([](Arguments& a) { a.options.threads = 0; }), Code::invalid_argument, {"rank 2", "threads"});
}

TEST(Agreement, WhatIsNotOfferedSaysWhatIs) {
  Arguments a = usual();
  a.op = Op::product;
  expect_error(all_throw([](Arguments&) {}, a), Code::unsupported, {"product", "operand:1e-3"});
  a = usual();
  a.options.bound = Bound::parse("10x");
  a.options.framework = Framework::on_grid;
  expect_error(all_throw([](Arguments&) {}, a), Code::unsupported, {"allreduce", "ratio"});
  a = usual();
  a.dtype = DType::i32;
  a.op = Op::average;
  a.options.framework = Framework::stepwise;
  expect_error(all_throw([](Arguments&) {}, a), Code::unsupported, {"i32", "stepwise", "on the grid"});
}

// A wish that may differ: nobody may hang over it.
TEST(Agreement, SegmentsAndConfirmMayDiffer) {
  const auto run = world::run<float>(3, [&](int rank, Communicator& comm) {
    Options o = usual().options;
    o.segment_values = static_cast<std::size_t>(rank) * 3000;
    o.confirm = rank == 1;
    o.threads = rank + 1;
    const auto x = make<float>("smooth", 40000, rank);
    std::vector<float> sum(x.size());
    const Report report = allreduce(view(x), view(sum), Op::sum, comm, o);
    return std::pair(sum, report);
  });
  world::expect_same_everywhere(run);
}

// What all go by where each has a number of its own.
TEST(Agreement, KnowsTheFewestThreadsAndTheShortestSegments) {
  run_ranks(3, [](Transport& t) {
    Communicator comm(t);
    Proposal p;
    p.threads = 7 - t.rank();
    p.segment_values = static_cast<std::size_t>(3 - t.rank()) % 3 * 4096;
    Report report;
    const Agreement agreed = agree(comm, p, CountRule::equal, report);
    EXPECT_EQ(agreed.threads, 5);
    EXPECT_EQ(agreed.segment_values, 4096U);
  });
}

TEST(Agreement, OverlapThatIsNotInPlace) {
  run_ranks(2, [](Transport& t) {
    Communicator comm(t);
    std::vector<float> x(100);
    EXPECT_THROW(allreduce({x.data(), 60, DType::f32}, {x.data() + 10, 60, DType::f32}, Op::sum, comm), Error);
  });
}

// A rank that knows no counts agrees with whoever does.
TEST(Agreement, AllgatherCounts) {
  const std::vector<std::size_t> counts{10, 20, 30};
  const auto gathered = [&](int teller, const std::vector<std::size_t>& told) {
    std::vector<std::string> said(3);
    run_ranks(3, [&](Transport& t) {
      Communicator comm(t);
      const auto me = static_cast<std::size_t>(t.rank());
      const std::vector<float> send(counts[me], 1);
      std::vector<float> recv(60);
      try {
        if (t.rank() != teller) allgather(view(send), view(recv), comm, {});
        if (t.rank() == teller) allgather(view(send), view(recv), Parts{.counts = told}, comm, {});
        EXPECT_EQ(std::count(recv.begin(), recv.end(), 1), 60);
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), Code::mismatch);
        said[me] = e.what();
      }
      EXPECT_TRUE(comm.usable());
    });
    EXPECT_EQ(said, std::vector(3, said[0]));
    return said[0];
  };
  for (const int teller : {0, 2}) EXPECT_EQ(gathered(teller, counts), "");
  EXPECT_EQ(gathered(0, {10, 19, 31}), "allgather: rank 1 passed count 20, rank 0 has counts[1] = 19");
  EXPECT_EQ(gathered(2, {11, 19, 30}), "allgather: rank 0 passed count 10, rank 2 has counts[0] = 11");
}

/// All of three ranks refuse the call, and say so.
template <class Call>
void expect_all_say(const std::string& words, Call&& call) {
  std::atomic<int> said = 0;
  run_ranks(3, [&](Transport& t) {
    Communicator comm(t);
    try {
      call(t.rank(), comm);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::mismatch);
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
      ++said;
    }
  });
  EXPECT_EQ(said, 3);
}

TEST(Agreement, RoomOfAnAllgather) {
  expect_all_say("rank 2 has room for 61 elements, all ranks together bring 60", [](int rank, Communicator& comm) {
    const std::vector<float> send(20);
    std::vector<float> recv(rank == 2 ? 61 : 60);
    allgather(view(send), view(recv), comm, {});
  });
}

// What parts come to has another name than a part's count, which is what the caller passed.
TEST(Agreement, ReduceScatterTotals) {
  expect_all_say("rank 1 passed a total count of 537, rank 0 passed 540;", [](int rank, Communicator& comm) {
    const std::size_t part = rank == 1 ? 179 : 180;
    std::vector<float> send(3 * part), recv(part);
    reduce_scatter_block(view(std::as_const(send)), view(recv), Op::sum, comm, {});
  });
}

TEST(Agreement, ReduceScatterCounts) {
  expect_all_say("rank 1 passed counts[0] 20, rank 0 passed 10;", [](int rank, Communicator& comm) {
    const std::vector<std::size_t> counts =
        rank == 1 ? std::vector<std::size_t>{20, 10, 30} : std::vector<std::size_t>{10, 20, 30};
    std::vector<float> send(60), recv(counts[static_cast<std::size_t>(rank)]);
    reduce_scatter(view(std::as_const(send)), view(recv), counts, Op::sum, comm, {});
  });
}

}  // namespace
}  // namespace laconic::collective_agreement_test
