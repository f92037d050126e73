#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "collective/allgather.h"
#include "collective/fields.h"
#include "collective/moved.h"
#include "collective/world.h"

namespace laconic::collective_allgather_test {
namespace {

using moved::expect_within;
using moved::joined;
using moved::with;
using testing_fields::make;
using testing_fields::sprinkle;
using world::view;

enum class Place { apart, in_place, overlapping };

template <typename T>
world::Run<T> gather(const std::vector<std::vector<T>>& parts, const Options& options, Place place = Place::apart) {
  std::size_t total = 0;
  for (const auto& p : parts) total += p.size();
  return world::run<T>(static_cast<int>(parts.size()), [&](int rank, Communicator& comm) {
    const auto& mine = parts[static_cast<std::size_t>(rank)];
    std::vector<T> recv(total);
    std::size_t first = 0;
    for (int r = 0; r < rank; ++r) first += parts[static_cast<std::size_t>(r)].size();
    if (place == Place::overlapping) first = (total - mine.size()) / 2;
    ConstArray send = view(mine);
    if (place != Place::apart) {
      std::copy(mine.begin(), mine.end(), recv.begin() + static_cast<std::ptrdiff_t>(first));
      send.data = recv.data() + first;
    }
    const Report report = allgather(send, view(recv), comm, options);
    return std::pair(recv, report);
  });
}

template <typename T>
std::vector<std::vector<T>> parts_of(const std::string& kind, int ranks, std::size_t unit) {
  std::vector<std::vector<T>> parts;
  for (int r = 0; r < ranks; ++r) parts.push_back(make<T>(kind, static_cast<std::size_t>((r * 3 + 2) % 4) * unit, r));
  return parts;
}

TEST(Allgather, KeepsTheBoundAndTheSameBytesOnEveryRankTheOwnerToo) {
  for (const int n : {1, 2, 3, 4, 7, 8}) {
    SCOPED_TRACE(n);
    const auto floats = parts_of<float>("smooth", n, 20001);
    const auto run = gather(floats, with("1e-3"));
    world::expect_same_everywhere(run);
    expect_within(run.results[0], joined(floats), n == 1 ? 0 : 1e-3);
    if (n > 1) {
      EXPECT_GT(run.reports[0].stats.ratio(), 1.5);
      EXPECT_EQ(run.reports[0].result_bound, 1e-3);
    }
    const auto doubles = parts_of<double>("noise", n, 5000);
    expect_within(gather(doubles, with("1e-4")).results[0], joined(doubles), 1e-4);
  }
}

TEST(Allgather, LosslessKeepsEveryBit) {
  for (const int n : {1, 2, 4, 7}) {
    auto parts = parts_of<float>("wild", n, 9001);
    sprinkle(parts[0], 1, 50, std::numeric_limits<float>::quiet_NaN());
    sprinkle(parts[0], 2, 50, -0.0F);
    for (const Place place : {Place::apart, Place::in_place, Place::overlapping}) {
      const auto run = gather(parts, with("lossless"), place);
      world::expect_same_everywhere(run);
      EXPECT_TRUE(world::same_bytes(run.results[0], joined(parts)));
    }
  }
}

TEST(Allgather, IntegersAreExactWhateverTheBound) {
  const auto parts = parts_of<std::int64_t>("integer", 3, 4000);
  EXPECT_TRUE(world::same_bytes(gather(parts, with("1e-3")).results[2], joined(parts)));
}

TEST(Allgather, PlaceAndSegmentsDoNotMatter) {
  auto parts = parts_of<float>("smooth", 4, 11000);
  sprinkle(parts[0], 1, 500, std::numeric_limits<float>::infinity());
  const auto plain = gather(parts, with("1e-3rel"));
  for (const Place place : {Place::in_place, Place::overlapping}) {
    const auto run = gather(parts, with("1e-3rel", 2048), place);
    world::expect_same_everywhere(run);
    EXPECT_TRUE(world::same_bytes(run.results[0], plain.results[0]));
  }
}

TEST(Allgather, NothingAtAllAndNothingFromSome) {
  EXPECT_TRUE(gather(std::vector<std::vector<float>>(3), with("1e-3")).results[0].empty());
  const std::vector<std::vector<float>> one{{}, {1.0F, 2.0F}, {}};
  expect_within(gather(one, with("1e-3")).results[2], joined(one), 1e-3);
}

}  // namespace
}  // namespace laconic::collective_allgather_test
