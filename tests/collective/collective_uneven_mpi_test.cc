// Uneven parts that the plain MPI moves in Laconic's place, of which no rank knows what the others have.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collective/allgather.h"
#include "collective/alltoall.h"
#include "collective/gather.h"
#include "collective/placed.h"
#include "collective/plain_mpi.h"
#include "collective/routing.h"
#include "collective/scatter.h"
#include "collective/world.h"

namespace laconic::plain_mpi {
namespace {

using world::view;

class UnevenParts : public PlainMpi {};

/// Room of half floats of which only what is touched takes memory.
class Vast {
 public:
  explicit Vast(std::size_t count)
      : count_(count),
        at_(mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Vast() { munmap(at_, bytes()); }
  Vast(const Vast&) = delete;
  Vast& operator=(const Vast&) = delete;
  [[nodiscard]] bool is_there() const { return at_ != MAP_FAILED; }
  [[nodiscard]] MutArray view() const { return {at_, count_, DType::bf16}; }
  [[nodiscard]] std::span<std::uint16_t> at(std::size_t first, std::size_t count) const {
    return {static_cast<std::uint16_t*>(at_) + first, count};
  }

 private:
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(std::uint16_t); }
  std::size_t count_;
  void* at_;
};

// Asked about, and not; other ranks do not know of it.
TEST_F(UnevenParts, MayLieFurtherApartThanAnIntCanCount) {
  constexpr std::size_t count = 1000, far = (std::size_t{1} << 31) + 12345;
  const Vast all(far + n * count);
  if (!all.is_there()) GTEST_SKIP() << "no address space";
  const bool root = me == 0;
  std::vector<std::size_t> counts(n, count), displs(n);
  for (std::size_t r = 0; r < n; ++r) displs[r] = r + 1 == n ? far : r * count;
  const Parts parts{.counts = counts, .displs = displs};
  std::vector<std::uint16_t> mine(count);
  const MutArray own{mine.data(), count, DType::bf16};
  const auto value = [](std::size_t from, std::size_t to) { return static_cast<std::uint16_t>(from * 16 + to + 1); };
  const auto fill = [&](auto&& of) {
    for (std::size_t r = 0; r < n; ++r) std::ranges::fill(all.at(displs[r], count), of(r));
  };
  const auto expect = [&](auto&& of) {
    for (std::size_t r = 0; r < n; ++r) {
      EXPECT_TRUE(std::ranges::all_of(all.at(displs[r], count), [&](std::uint16_t x) { return x == of(r); })) << r;
    }
  };
  for (int i = 0; i < 2; ++i) {
    std::ranges::fill(mine, value(me, 0));
    expect_plain(gather(own, all.view(), parts, 0, comm, plainly));
    if (root) expect([&](std::size_t r) { return value(r, 0); });
    fill([](std::size_t) { return std::uint16_t{0}; });
    expect_plain(allgather(own, all.view(), parts, comm, plainly));
    expect([&](std::size_t r) { return value(r, 0); });
    if (root) fill([&](std::size_t r) { return value(0, r); });
    expect_plain(scatter(all.view(), parts, own, 0, comm, plainly));
    EXPECT_EQ(mine, std::vector<std::uint16_t>(count, value(0, me)));
    fill([&](std::size_t r) { return value(me, r); });
    expect_plain(alltoallv(all.view(), parts, all.view(), parts, comm, plainly));
    expect([&](std::size_t r) { return value(r, me); });
  }
}

// Also where nobody is asked.
TEST_F(UnevenParts, MayOverlapTheResult) {
  const auto p = placed::reversed(std::vector<std::size_t>(n, 50));
  for (int i = 0; i < 3; ++i) {
    const auto whole = operand(p.extent, static_cast<std::size_t>(i));
    std::vector<double> got(p.extent + 7, -1);
    const auto mine = placed::part(whole, p, me);
    const std::size_t first = p.displs[me] + 7;
    std::ranges::copy(mine, got.begin() + static_cast<std::ptrdiff_t>(first));
    const MutArray result{got.data(), p.extent, DType::f64};
    const ConstArray own{&got[first], mine.size(), DType::f64};
    expect_plain(allgather(own, result, p.parts(), comm, plainly));
    for (std::size_t r = 0; r < n; ++r) EXPECT_EQ(placed::part(got, p, r), placed::part(whole, p, r)) << r;
  }
}

// What the plain library does faster, whatever the parts are: a question costs more than a short call.
TEST_F(UnevenParts, AreAskedAboutLessAndLess) {
  if (n == 1) GTEST_SKIP() << "one rank needs nobody";
  constexpr CodecSpeed::Seconds slow{4, 1e-2, 1e-2, 1e-2};
  comm.routing().set_costs(CodecKind::grid64, {{1e-6, 1e10}, {slow, slow}});
  const Options chosen = with("1e-3", Mode::automatic);
  constexpr int times = 200;
  int asked = 0;
  const auto note = [&](const Report& report) {
    expect_plain(report);
    asked += report.messages_sent != 0 ? 1 : 0;
  };
  for (int i = 0; i < times; ++i) {
    auto p = placed::uneven(n, 1 + static_cast<std::size_t>(i * i % 500));
    const auto from = static_cast<std::size_t>(i) % n;
    const auto whole = operand(p.extent, from);
    const auto mine = placed::part(whole, p, me);
    std::vector<double> share(p.counts[me]), got(p.extent);
    note(scatter(view(whole), p.parts(), view(share), static_cast<int>(from), comm, chosen));
    ASSERT_EQ(share, mine);
    note(gather(view(mine), view(got), p.parts(), static_cast<int>(from), comm, chosen));
    for (std::size_t r = 0; me == from && r < n; ++r) ASSERT_EQ(placed::part(got, p, r), placed::part(whole, p, r));
    note(allgather(view(mine), view(got), p.parts(), comm, chosen));
    for (std::size_t r = 0; r < n; ++r) ASSERT_EQ(placed::part(got, p, r), placed::part(whole, p, r));
    const auto out = placed::reversed(std::vector<std::size_t>(n, static_cast<std::size_t>(i)));
    const auto x = operand(out.extent, me);
    got.assign(out.extent, -1);
    note(alltoallv(view(x), out.parts(), view(got), out.parts(), comm, chosen));
    for (std::size_t r = 0; r < n; ++r) {
      ASSERT_EQ(placed::part(got, out, r), placed::part(operand(out.extent, r), out, me));
    }
  }
  EXPECT_LT(asked, 4 * times * 2 / 3);
  EXPECT_EQ(comm.total().plain_calls, 4U * times);
}

// All of them by themselves, once one was asked about.
TEST_F(UnevenParts, AreAskedAboutOnceWherePlainIsWanted) {
  if (n == 1) GTEST_SKIP() << "one rank needs nobody";
  for (std::size_t i = 0; i < 5; ++i) {
    const auto p = placed::uneven(n, 100 * i);
    const auto whole = operand(p.extent, i);
    const auto mine = placed::part(whole, p, me);
    std::vector<double> got(p.extent);
    const Report report = gather(view(mine), view(got), p.parts(), 0, comm, plainly);
    expect_plain(report);
    EXPECT_EQ(report.messages_sent == 0, i > 0);
    for (std::size_t r = 0; me == 0 && r < n; ++r) EXPECT_EQ(placed::part(got, p, r), placed::part(whole, p, r));
  }
}

}  // namespace
}  // namespace laconic::plain_mpi
