// Two levels on (fake) GPUs over a transport that reaches their memory: what passes between the ranks of a node as it
// is stays there. The same results as on the host, to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/bcast.h"
#include "collective/fields.h"
#include "collective/reduce.h"
#include "core/error.h"
#include "gpu/device_rank.h"
#include "gpu/emulated_device.h"
#include "gpu/nothing_is_left.h"
#include "gpu/reaching_transport.h"
#include "support/fake_cuda.h"
#include "transport/faulty.h"
#include "transport/threads.h"

namespace laconic::device_two_level_test {
namespace {

using test::Bytes;
using test::Rank;
using test::ReachingTransport;

constexpr std::size_t count = 30001;
const std::vector<int> nodes{0, 0, 0, 1, 1};
constexpr int ranks = 5;

Options two_levels(const char* bound) {
  Options o;
  o.bound = Bound::parse(bound);
  o.segment_values = 8192;
  o.mode = Mode::compressed;
  o.schedule = Schedule::two_level;
  return o;
}

using Body = std::function<std::pair<MutArray, Report>(Rank&)>;
using Where = std::function<bool(int rank)>;

struct Outcome {
  std::vector<Bytes> results{ranks};
  std::vector<std::uint64_t> local_bytes = std::vector<std::uint64_t>(ranks);
  std::vector<std::uint64_t> device_bytes = std::vector<std::uint64_t>(ranks);
};

Outcome run(const Where& on_device, const Body& body) {
  Outcome all;
  run_ranks(
      ranks,
      [&](Transport& t) {
        ReachingTransport reaching(t);
        Rank rank(reaching, on_device(t.rank()));
        const auto [result, report] = body(rank);
        const auto r = static_cast<std::size_t>(t.rank());
        all.results[r] = rank.contents(result);
        all.local_bytes[r] = report.local_bytes;
        all.device_bytes[r] = reaching.device_bytes();
      },
      60, nodes);
  return all;
}

/// All plain elements of ranks with a device come from there, and nothing else does.
void expect_as_on_host(const Body& body) {
  const Outcome expected = run([](int) { return false; }, body);
  EXPECT_GT(std::accumulate(expected.local_bytes.begin(), expected.local_bytes.end(), std::uint64_t{0}), 0U);
  for (const bool all : {true, false}) {
    const Where where = [all](int rank) { return all || rank % 2 == 0; };
    const Outcome got = run(where, body);
    EXPECT_EQ(got.results, expected.results);
    EXPECT_EQ(got.local_bytes, expected.local_bytes);
    for (int r = 0; r < ranks; ++r) {
      const auto i = static_cast<std::size_t>(r);
      EXPECT_EQ(got.device_bytes[i], where(r) ? got.local_bytes[i] : 0) << "rank " << r;
    }
  }
}

class DeviceTwoLevel : public test::NothingIsLeft {};

// Coded on the device, and by the host's code (integers, whose sums know no plain elements).
TEST_F(DeviceTwoLevel, Allreduce) {
  for (const DType t : {DType::f32, DType::bf16, DType::i32}) {
    for (const Op op : {Op::sum, Op::max}) {
      if (!is_float(t) && op == Op::sum) continue;
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::string(name_of(op)));
      const char* kind = is_float(t) ? "smooth" : "integer";
      expect_as_on_host([&](Rank& r) {
        const MutArray x = r.place(test::field(t, kind, count, r.rank()), t);
        return std::pair{x, allreduce(x, x, op, r.comm(), two_levels(is_float(t) ? "1e-2" : "lossless"))};
      });
    }
  }
}

TEST_F(DeviceTwoLevel, ReduceBcastAndAllgather) {
  constexpr std::size_t many = 400000;  // reduce: enough for slabs
  expect_as_on_host([&](Rank& r) {
    const MutArray x = r.place(test::field(DType::f32, "smooth", many, r.rank()), DType::f32);
    const MutArray y = r.room(many, DType::f32);
    return std::pair{y, reduce(x, y, Op::sum, 1, r.comm(), two_levels("1e-3"))};
  });
  expect_as_on_host([&](Rank& r) {
    const MutArray x = r.place(test::field(DType::f32, "smooth", count, r.rank()), DType::f32);
    return std::pair{x, bcast(x, 1, r.comm(), two_levels("1e-3"))};
  });
  expect_as_on_host([&](Rank& r) {
    const MutArray x = r.place(test::field(DType::f32, "smooth", count, r.rank()), DType::f32);
    const MutArray y = r.room(ranks * count, DType::f32);
    return std::pair{y, allgather_equal(x, y, r.comm(), two_levels("1e-3"))};
  });
}

// What is said of a failure comes where elements were due, on a device.
TEST_F(DeviceTwoLevel, FailuresReachEveryRank) {
  for (const std::size_t keep : {0U, 13U, 7000U}) {
    std::vector<std::string> texts(ranks);
    run_ranks(
        ranks,
        [&](Transport& t) {
          std::uint64_t sent_to_first = 0;
          const Fault cut = [&](std::vector<std::uint8_t>& message, int to, std::uint64_t) {
            if (t.rank() == 1 && to == 0 && sent_to_first++ == 0) message.resize(std::min(message.size(), keep));
          };
          const auto faulty = make_faulty_transport(t, cut);
          ReachingTransport reaching(*faulty);
          Rank r(reaching, true);
          const MutArray x = r.place(test::field(DType::f32, "smooth", count, r.rank()), DType::f32);
          try {
            allreduce(x, x, Op::sum, r.comm(), two_levels("1e-3"));
          } catch (const Error& e) {
            EXPECT_EQ(e.code(), Code::corrupt) << e.what();
            texts[static_cast<std::size_t>(t.rank())] = e.what();
          }
          const MutArray y = r.place(test::field(DType::f32, "smooth", count, r.rank()), DType::f32);
          EXPECT_NO_THROW(allreduce(y, y, Op::sum, r.comm(), two_levels("1e-3"))) << "the group works on";
        },
        60, nodes);
    EXPECT_NE(texts[0].find("from rank 1"), std::string::npos) << texts[0];
    EXPECT_NE(texts[0].find("elements"), std::string::npos) << texts[0];
    for (const auto& text : texts) EXPECT_EQ(text, texts[0]);
  }
}

}  // namespace
}  // namespace laconic::device_two_level_test
