// The C++ interface over real MPI ranks: every collective, blocking or not, out of and in place.
#include <gtest/gtest.h>
#include <laconic/laconic_mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <laconic/laconic.hpp>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using laconic::in_place;
using laconic::Op;
using Floats = std::vector<float>;
using Counts = std::vector<std::size_t>;

class ApiCpp : public testing::Test {
 protected:
  ApiCpp() : comm(make(), {.bound = "1e-3", .mode = laconic::Mode::compressed}) {}

  static laconic_comm* make() {
    laconic_comm* raw = nullptr;
    laconic::check(laconic_comm_from_mpi(MPI_COMM_WORLD, &raw));
    return raw;
  }
  /// Element i of rank r.
  static float element(std::size_t i, std::size_t r) {
    return static_cast<float>(i % 100) * 0.01F + static_cast<float>(r);
  }
  static Floats of_rank(std::size_t r, std::size_t first, std::size_t elements) {
    Floats x(elements);
    for (std::size_t i = 0; i < elements; ++i) x[i] = element(first + i, r);
    return x;
  }
  [[nodiscard]] Floats mine(std::size_t elements) const { return of_rank(me, 0, elements); }
  /// Of the first `ranks` ranks.
  static Floats sum(std::size_t ranks, std::size_t first, std::size_t elements) {
    Floats x(elements);
    for (std::size_t r = 0; r < ranks; ++r)
      for (std::size_t i = 0; i < elements; ++i) x[i] += element(first + i, r);
    return x;
  }
  /// What calls make of `before`, which must begin with `want` then.
  static void expect(const Floats& want, const Floats& before, const std::vector<std::function<void(Floats&)>>& calls) {
    for (std::size_t c = 0; c < calls.size(); ++c) {
      Floats y = before;
      calls[c](y);
      ASSERT_LE(want.size(), y.size());
      for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(y[i], want[i], 1.1e-3F) << "call " << c << ", " << i;
    }
  }

  template <typename T>
  void expect_sums();

  static constexpr std::size_t count = 1000;
  laconic::Comm comm;
  std::size_t n = static_cast<std::size_t>(comm.size());
  std::size_t me = static_cast<std::size_t>(comm.rank());
  int root = comm.size() - 1;
  bool at_root = comm.rank() == root;
};

TEST_F(ApiCpp, Reductions) {
  const Floats x = mine(count), other(count, 42), all = sum(n, 0, count), so_far = sum(me + 1, 0, count);
  expect(all, other,
         {[&](Floats& y) { comm.allreduce<float>(x, y, Op::sum); },
          [&](Floats& y) { comm.iallreduce<float>(x, y, Op::sum).wait(); }});
  expect(all, x,
         {[&](Floats& y) { comm.allreduce<float>(in_place, y, Op::sum); },
          [&](Floats& y) { comm.allreduce<float>(y, Op::sum); },
          [&](Floats& y) { comm.iallreduce<float>(in_place, y, Op::sum).wait(); },
          [&](Floats& y) { comm.iallreduce<float>(y, Op::sum).wait(); }});
  expect(at_root ? all : other, other,
         {[&](Floats& y) { comm.reduce<float>(x, y, Op::sum, root); },
          [&](Floats& y) { comm.ireduce<float>(x, y, Op::sum, root).wait(); }});
  expect(at_root ? all : Floats(), x,
         {[&](Floats& y) { comm.reduce<float>(in_place, y, Op::sum, root); },
          [&](Floats& y) { comm.ireduce<float>(in_place, y, Op::sum, root).wait(); },
          [&](Floats& y) {
            at_root ? comm.reduce<float>(in_place, y, Op::sum, root) : comm.reduce<float>(x, {}, Op::sum, root);
          }});
  expect(so_far, other,
         {[&](Floats& y) { comm.scan<float>(x, y, Op::sum); },
          [&](Floats& y) { comm.iscan<float>(x, y, Op::sum).wait(); }});
  expect(so_far, x,
         {[&](Floats& y) { comm.scan<float>(in_place, y, Op::sum); },
          [&](Floats& y) { comm.iscan<float>(in_place, y, Op::sum).wait(); }});
  const Floats before = sum(me, 0, count);
  expect(me == 0 ? other : before, other,
         {[&](Floats& y) { comm.exscan<float>(x, y, Op::sum); },
          [&](Floats& y) { comm.iexscan<float>(x, y, Op::sum).wait(); },
          [&](Floats& y) { comm.exscan<float>(x, std::span(y).first(me == 0 ? 0 : count), Op::sum); }});
  expect(me == 0 ? x : before, x,
         {[&](Floats& y) { comm.exscan<float>(in_place, y, Op::sum); },
          [&](Floats& y) { comm.iexscan<float>(in_place, y, Op::sum).wait(); }});
}

TEST_F(ApiCpp, ReduceScatter) {
  const Floats x = mine(count * n), share(count);
  const Floats wanted = sum(n, me * count, count);
  expect(wanted, share,
         {[&](Floats& y) { comm.reduce_scatter<float>(x, y, Op::sum); },
          [&](Floats& y) { comm.ireduce_scatter<float>(x, y, Op::sum).wait(); }});
  expect(wanted, x,
         {[&](Floats& y) { comm.reduce_scatter<float>(in_place, y, Op::sum); },
          [&](Floats& y) { comm.ireduce_scatter<float>(in_place, y, Op::sum).wait(); }});

  Counts counts(n);
  std::iota(counts.begin(), counts.end(), count);
  const std::size_t first = me * count + me * (me - 1) / 2;
  const Floats longer = mine(std::reduce(counts.begin(), counts.end()));
  const Floats part = sum(n, first, counts[me]);
  expect(part, Floats(counts[me]),
         {[&](Floats& y) { comm.reduce_scatter<float>(longer, y, counts, Op::sum); },
          [&](Floats& y) { comm.ireduce_scatter<float>(longer, y, Counts(counts), Op::sum).wait(); }});
  expect(part, longer,
         {[&](Floats& y) { comm.reduce_scatter<float>(in_place, y, counts, Op::sum); },
          [&](Floats& y) { comm.ireduce_scatter<float>(in_place, y, counts, Op::sum).wait(); }});
}

TEST_F(ApiCpp, Movement) {
  const auto last = static_cast<std::size_t>(root);
  const Floats x = mine(count), long_x = mine(count * n), other(count * n, 42);
  expect(of_rank(last, 0, count), x,
         {[&](Floats& y) { comm.bcast<float>(y, root); }, [&](Floats& y) { comm.ibcast<float>(y, root).wait(); }});

  // Where the share of the root is left in place, its y is what it sends.
  const Floats& sent = at_root ? long_x : Floats();
  const Floats share = of_rank(last, me * count, count);
  expect(share, Floats(count),
         {[&](Floats& y) { comm.scatter<float>(sent, y, root); },
          [&](Floats& y) { comm.iscatter<float>(sent, y, root).wait(); }});
  expect(at_root ? long_x : share, at_root ? long_x : Floats(count),
         {[&](Floats& y) { at_root ? comm.scatter<float>(y, in_place, root) : comm.scatter<float>({}, y, root); },
          [&](Floats& y) {
            (at_root ? comm.iscatter<float>(y, in_place, root) : comm.iscatter<float>({}, y, root)).wait();
          }});

  Floats gathered, blocks, placed(count * n);
  for (std::size_t r = 0; r < n; ++r) {
    for (const float e : of_rank(r, 0, count)) gathered.push_back(e);
    for (const float e : of_rank(r, me * count, count)) blocks.push_back(e);
  }
  std::copy(x.begin(), x.end(), placed.begin() + static_cast<std::ptrdiff_t>(me * count));
  expect(
      at_root ? gathered : other, other,
      {[&](Floats& y) { comm.gather<float>(x, y, root); }, [&](Floats& y) { comm.igather<float>(x, y, root).wait(); }});
  expect(at_root ? gathered : placed, placed,
         {[&](Floats& y) { at_root ? comm.gather<float>(in_place, y, root) : comm.gather<float>(x, y, root); },
          [&](Floats& y) {
            (at_root ? comm.igather<float>(in_place, y, root) : comm.igather<float>(x, {}, root)).wait();
          }});
  expect(gathered, other,
         {[&](Floats& y) { comm.allgather<float>(x, y); }, [&](Floats& y) { comm.iallgather<float>(x, y).wait(); }});
  expect(gathered, placed,
         {[&](Floats& y) { comm.allgather<float>(in_place, y); },
          [&](Floats& y) { comm.iallgather<float>(in_place, y).wait(); }});
  expect(blocks, other,
         {[&](Floats& y) { comm.alltoall<float>(long_x, y); },
          [&](Floats& y) { comm.ialltoall<float>(long_x, y).wait(); }});
  expect(blocks, long_x,
         {[&](Floats& y) { comm.alltoall<float>(in_place, y); },
          [&](Floats& y) { comm.ialltoall<float>(in_place, y).wait(); }});
}

// Last rank first, and a gap between two parts.
TEST_F(ApiCpp, MovementOfParts) {
  constexpr std::size_t gap = 7;
  const Counts counts(n, count);
  Counts displs(n);
  for (std::size_t r = 0; r < n; ++r) displs[r] = (n - 1 - r) * (count + gap);
  const laconic::Parts parts{.counts = counts, .displs = displs};
  const Floats x = mine(count), other(n * (count + gap), 42);
  const auto put = [&](Floats into, std::size_t r, const Floats& part) {
    std::copy(part.begin(), part.end(), into.begin() + static_cast<std::ptrdiff_t>(displs[r]));
    return into;
  };
  Floats gathered = other, blocks = other, sent = other;
  for (std::size_t r = 0; r < n; ++r) {
    gathered = put(gathered, r, of_rank(r, 0, count));
    blocks = put(blocks, r, of_rank(r, me * count, count));
    sent = put(sent, r, of_rank(me, r * count, count));
  }
  const Floats placed = put(other, me, x);

  expect(gathered, other,
         {[&](Floats& y) { comm.allgatherv<float>(x, y, parts); },
          [&](Floats& y) { comm.iallgatherv<float>(x, y, parts).wait(); }});
  expect(gathered, placed,
         {[&](Floats& y) { comm.allgatherv<float>(in_place, y, parts); },
          [&](Floats& y) { comm.iallgatherv<float>(in_place, y, parts).wait(); }});
  expect(at_root ? gathered : other, other,
         {[&](Floats& y) { comm.gatherv<float>(x, y, parts, root); },
          [&](Floats& y) { comm.igatherv<float>(x, y, parts, root).wait(); }});
  expect(at_root ? gathered : placed, placed,
         {[&](Floats& y) {
            at_root ? comm.gatherv<float>(in_place, y, parts, root) : comm.gatherv<float>(x, {}, {}, root);
          },
          [&](Floats& y) {
            (at_root ? comm.igatherv<float>(in_place, y, parts, root) : comm.igatherv<float>(x, {}, {}, root)).wait();
          }});
  const Floats share = of_rank(static_cast<std::size_t>(root), me * count, count);
  expect(share, Floats(count),
         {[&](Floats& y) { comm.scatterv<float>(sent, parts, y, root); },
          [&](Floats& y) { comm.iscatterv<float>(sent, parts, y, root).wait(); }});
  expect(at_root ? sent : share, at_root ? sent : Floats(count),
         {[&](Floats& y) {
            at_root ? comm.scatterv<float>(y, parts, in_place, root) : comm.scatterv<float>({}, {}, y, root);
          },
          [&](Floats& y) {
            (at_root ? comm.iscatterv<float>(y, parts, in_place, root) : comm.iscatterv<float>({}, {}, y, root)).wait();
          }});
  expect(blocks, other,
         {[&](Floats& y) { comm.alltoallv<float>(sent, parts, y, parts); },
          [&](Floats& y) { comm.ialltoallv<float>(sent, parts, y, parts).wait(); }});
  expect(blocks, sent,
         {[&](Floats& y) { comm.alltoallv<float>(in_place, {}, y, parts); },
          [&](Floats& y) { comm.ialltoallv<float>(in_place, {}, y, parts).wait(); }});
}

/// Where sizes are wrong it is said in terms of the call; the other ranks hear of it.
TEST_F(ApiCpp, SizesThatDoNotFitOnOneRank) {
  Floats x(count * n), y(count * n), shorter(count * n - 1);
  const auto expect_refused = [&](std::size_t where, const std::string& words, const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << "not refused: " << words;
    } catch (const laconic::Error& e) {
      EXPECT_EQ(e.code(), LACONIC_INVALID_ARGUMENT);
      const std::string wanted = me == where ? words : "rank " + std::to_string(where) + ": ";
      EXPECT_NE(std::string(e.what()).find(wanted), std::string::npos) << words << ": " << e.what();
    }
  };
  const bool here = me == 0;
  const Counts counts(n, count), beyond(n, count + 1);
  const laconic::Parts parts{.counts = counts}, wrong{.counts = here ? beyond : counts};
  const std::span<const float> out(x.data(), count), all_out(x.data(), count * n - (here ? 1 : 0)), all(x);
  const std::span<float> in(y.data(), count - (here ? 1 : 0)), all_in(here ? shorter : y), part(y.data(), count);
  expect_refused(0, "iallreduce: send and", [&] { comm.iallreduce<float>(out, in, Op::sum).wait(); });
  expect_refused(0, "ireduce: send and", [&] { comm.ireduce<float>(out, in, Op::sum, 0).wait(); });
  expect_refused(0, "iscan: send and", [&] { comm.iscan<float>(out, in, Op::sum).wait(); });
  expect_refused(0, "iexscan: send and", [&] { comm.iexscan<float>(out, in, Op::sum).wait(); });
  expect_refused(0, "ireduce_scatter: send is", [&] { comm.ireduce_scatter<float>(all_out, part, Op::sum).wait(); });
  expect_refused(0, "ireduce_scatter: counts do not add up to send",
                 [&] { comm.ireduce_scatter<float>(all, part, wrong.counts, Op::sum).wait(); });
  expect_refused(0, "iscatter: send is", [&] { comm.iscatter<float>(all_out, part, 0).wait(); });
  expect_refused(0, "igather: recv is", [&] { comm.igather<float>(out, all_in, 0).wait(); });
  expect_refused(0, "iallgather: recv is", [&] { comm.iallgather<float>(out, all_in).wait(); });
  expect_refused(0, "ialltoall: send and", [&] { comm.ialltoall<float>(all, all_in).wait(); });
  expect_refused(0, "iallgatherv: parts", [&] { comm.iallgatherv<float>(out, y, wrong).wait(); });
  expect_refused(0, "igatherv: parts", [&] { comm.igatherv<float>(out, y, wrong, 0).wait(); });
  expect_refused(0, "iscatterv: parts", [&] { comm.iscatterv<float>(x, wrong, part, 0).wait(); });
  expect_refused(0, "ialltoallv: parts", [&] { comm.ialltoallv<float>(x, parts, y, wrong).wait(); });
  // Too few displacements, of which the C interface must not see more.
  Counts displs(here ? n - 1 : n);
  for (std::size_t r = 0; r < displs.size(); ++r) displs[r] = r * count;
  displs.shrink_to_fit();
  const laconic::Parts few{.counts = counts, .displs = displs};
  if (n > 1) {
    expect_refused(0, "iallgatherv: parts", [&] { comm.iallgatherv<float>(out, y, few).wait(); });
    expect_refused(0, "igatherv: parts", [&] { comm.igatherv<float>(out, y, few, 0).wait(); });
    expect_refused(0, "iscatterv: parts", [&] { comm.iscatterv<float>(x, few, part, 0).wait(); });
    expect_refused(0, "ialltoallv: parts", [&] { comm.ialltoallv<float>(x, parts, y, few).wait(); });
  }

  // In place.
  expect_refused(0, "reduce_scatter: counts do not add up to recv",
                 [&] { comm.reduce_scatter<float>(in_place, y, wrong.counts, Op::sum); });
  expect_refused(0, "allgatherv: parts", [&] { comm.allgatherv<float>(in_place, y, wrong); });
  expect_refused(0, "alltoallv: parts", [&] { comm.alltoallv<float>(in_place, {}, y, wrong); });
  if (n == 1) return;
  expect_refused(0, "reduce_scatter: recv is not size() shares",
                 [&] { comm.reduce_scatter<float>(in_place, all_in, Op::sum); });
  expect_refused(0, "allgather: recv is", [&] { comm.allgather<float>(in_place, all_in); });
  expect_refused(0, "alltoall: send and", [&] { comm.alltoall<float>(in_place, all_in); });
  const bool elsewhere = me == 1;
  const laconic::Buffer<const float> sent = elsewhere ? laconic::Buffer<const float>(in_place) : out;
  const laconic::Buffer<float> got = elsewhere ? laconic::Buffer<float>(in_place) : part;
  const std::string words = "in place on another rank than the root";
  expect_refused(1, "gather: " + words, [&] { comm.gather<float>(sent, y, 0); });
  expect_refused(1, "gatherv: " + words, [&] { comm.gatherv<float>(sent, y, parts, 0); });
  expect_refused(1, "scatter: " + words, [&] { comm.scatter<float>(x, got, 0); });
  expect_refused(1, "scatterv: " + words, [&] { comm.scatterv<float>(x, parts, got, 0); });
}

TEST_F(ApiCpp, OptionsOfOneCall) {
  if (n == 1) return;
  const Floats x = mine(count * n);
  Floats y(x.size());
  const auto expect_bound = [&](double bound) { EXPECT_NEAR(comm.last().operand_bound, bound, bound * 1e-6); };
  comm.set_options({.bound = "operand:1e-3", .mode = laconic::Mode::compressed});
  const laconic::Options coarse{.bound = "operand:1e-2"}, threads{.threads = 2}, confirmed{.unconfirmed = false};
  EXPECT_EQ(confirmed.raw().unconfirmed, -1);  // whatever the communicator's
  comm.allreduce<float>(x, y, Op::sum, coarse);
  expect_bound(1e-2);
  comm.allreduce<float>(x, y, Op::sum, threads);  // the rest is the communicator's
  expect_bound(1e-3);
  comm.allreduce<float>(y, Op::sum, {.bound = "operand:1e-2"});
  expect_bound(1e-2);
  comm.iallreduce<float>(x, y, Op::sum, {.bound = "operand:1e-1"}).wait();
  expect_bound(1e-1);
  comm.iallreduce<float>(x, y, Op::sum).wait();
  expect_bound(1e-3);
  comm.ialltoall<float>(x, y, coarse).wait();
  expect_bound(1e-2);
  comm.bcast<float>(y, 0, {.bound = "lossless"});
  expect_bound(0);
  comm.reduce_scatter<float>(x, std::span(y).first(count), Op::sum, {.bound = "operand:1e-1"});
  expect_bound(1e-1);
  const int to = (comm.rank() + 1) % comm.size(), from = (comm.rank() + comm.size() - 1) % comm.size();
  EXPECT_EQ(comm.sendrecv<float>(x, to, y, from, 0, coarse), x.size());
  expect_bound(1e-2);
  comm.isendrecv<float>(x, to, y, from, 0, nullptr, coarse).wait();
  expect_bound(1e-2);
}

TEST_F(ApiCpp, WaitsForAllAndThrowsWhatTheFirstReported) {
  const Floats x = mine(count);
  Floats a(count), b(count), c(count);
  std::vector<laconic::Request> requests;
  requests.push_back(comm.iallreduce<float>(x, a, Op::sum));
  requests.push_back(comm.iallreduce<float>(x, b, Op::sum, {.bound = "nonsense"}));
  requests.push_back(comm.iallreduce<float>(x, c, Op::sum));
  try {
    laconic::wait_all(requests);
    ADD_FAILURE() << "nonsense was understood";
  } catch (const laconic::Error& e) {
    EXPECT_NE(std::string(e.what()).find("nonsense"), std::string::npos) << e.what();
  }
  for (laconic::Request& done : requests) EXPECT_TRUE(done.test());
  EXPECT_EQ(a, c);
  EXPECT_NO_THROW(laconic::wait_all({}));
}

// Thrown where it is begun, it would keep that rank alone from the calls behind it, for which the others then wait.
TEST_F(ApiCpp, SizesThatDoNotFitAreReportedByTheWait) {
  const Floats x = mine(count);
  Floats a(count), b(me == 0 ? count - 1 : count), c(count);
  std::vector<laconic::Request> requests;
  for (Floats* const y : {&a, &b, &c}) {
    EXPECT_NO_THROW(requests.push_back(comm.iallreduce<float>(x, *y, Op::sum)));
  }
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_THROW(laconic::wait_all(requests), laconic::Error);
  for (laconic::Request& done : requests) EXPECT_TRUE(done.test());
  EXPECT_EQ(a, c);
}

/// T: of 16 bits.
template <typename T>
void ApiCpp::expect_sums() {
  const auto of = [](std::size_t i, std::size_t r) { return static_cast<float>(i % 8 + r); };
  std::vector<T> x(count), y(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<T>(of(i, me));
  const auto expect_near = [&] {
    for (std::size_t i = 0; i < count; ++i) {
      float sum = 0;
      for (std::size_t r = 0; r < n; ++r) sum += of(i, r);
      ASSERT_NEAR(static_cast<float>(y[i]), sum, 1e-3F + sum / 256);
    }
  };
  comm.allreduce<T>(x, y, Op::sum);
  expect_near();
  y = x;
  comm.iallreduce<T>(in_place, y, Op::sum, {.bound = "lossless"}).wait();
  expect_near();
}

TEST_F(ApiCpp, Halves) {
  expect_sums<laconic::f16>();
  expect_sums<laconic::bf16>();
#ifdef __FLT16_MANT_DIG__
  expect_sums<_Float16>();
#endif
}

// Which non-blocking calls take what they send from it: no temporary, whose elements would be gone before they are
// read.
// clang-format off: it takes the first of these braces for a function's
template <typename Sent>
constexpr std::array begins = {
    requires(laconic::Comm& c, Floats& y, laconic::Parts p) { c.iallreduce<float>(std::declval<Sent>(), y, Op::sum); },
    requires(laconic::Comm& c, Floats& y, laconic::Parts p) { c.ireduce<float>(std::declval<Sent>(), y, Op::sum, 0); },
    requires(laconic::Comm& c, Floats& y, laconic::Parts p) { c.iscan<float>(std::declval<Sent>(), y, Op::sum); },
    requires(laconic::Comm& c, Floats& y, laconic::Parts p) { c.iexscan<float>(std::declval<Sent>(), y, Op::sum); },
    requires(laconic::Comm& c, Floats& y, laconic::Parts p) { c.ireduce_scatter<float>(std::declval<Sent>(), y, Op::sum); },
    requires(laconic::Comm& c, Floats& y, laconic::Parts p) { c.ireduce_scatter<float>(std::declval<Sent>(), y, p.counts, Op::sum); },
    requires(laconic::Comm& c, Floats& y, laconic::Parts p) { c.iscatter<float>(std::declval<Sent>(), y, 0); },
    requires(laconic::Comm& c, Floats& y, laconic::Parts p) { c.igather<float>(std::declval<Sent>(), y, 0); },
    requires(laconic::Comm& c, Floats& y, laconic::Parts p) { c.iallgather<float>(std::declval<Sent>(), y); },
    requires(laconic::Comm& c, Floats& y, laconic::Parts p) { c.ialltoall<float>(std::declval<Sent>(), y); },
    requires(laconic::Comm& c, Floats& y, laconic::Parts p) { c.iallgatherv<float>(std::declval<Sent>(), y, p); },
    requires(laconic::Comm& c, Floats& y, laconic::Parts p) { c.iscatterv<float>(std::declval<Sent>(), p, y, 0); },
    requires(laconic::Comm& c, Floats& y, laconic::Parts p) { c.igatherv<float>(std::declval<Sent>(), y, p, 0); },
    requires(laconic::Comm& c, Floats& y, laconic::Parts p) { c.ialltoallv<float>(std::declval<Sent>(), p, y, p); },
};
// clang-format on
template <typename Sent>
constexpr auto how_many = std::accumulate(begins<Sent>.begin(), begins<Sent>.end(), std::size_t{0});
static_assert(how_many<Floats&> == begins<Floats&>.size() && how_many<const Floats&> == begins<Floats&>.size());
static_assert(how_many<std::span<const float>> == begins<Floats&>.size());
static_assert(how_many<laconic::InPlace> == begins<Floats&>.size());
static_assert(how_many<Floats> == 0 && how_many<const Floats> == 0 && how_many<std::array<float, 3>> == 0);

}  // namespace
