// A rank that gets stuck in the middle of a call, without a word: the others end with errors that name it.
#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <functional>
#include <string>

#include "collective/allreduce.h"
#include "collective/bcast.h"
#include "collective/fields.h"
#include "collective/world.h"
#include "core/error.h"
#include "support/sleeping.h"
#include "transport/faulty.h"
#include "transport/mpi/mpi.h"

namespace laconic {
namespace {

using testing_fields::make;
using world::view;

constexpr int stuck = 1;

int rank_in_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

Options in_segments(Schedule schedule) {
  Options o;
  o.bound = Bound::parse("1e-3");
  o.segment_values = 1024;
  o.schedule = schedule;
  return o;
}

using Call = std::function<void(Communicator&)>;

void reduce_in_a_ring(Communicator& comm) {
  const auto x = make<float>("smooth", 60000, comm.rank());
  std::vector<float> sum(x.size());
  allreduce(view(x), view(sum), Op::sum, comm, in_segments(Schedule::ring));
}

void broadcast(Communicator& comm) {
  auto x = make<float>("smooth", 60000, comm.rank());
  bcast(view(x), 0, comm, in_segments(Schedule::automatic));
}

struct Ended : std::exception {};

/// What a rank says where one stops as it sends its nth message, until all others are done.
std::string error_of(const Call& call, std::uint64_t nth, double timeout) {
  const auto t = make_mpi_transport(MPI_COMM_WORLD, timeout);
  const auto fault = [nth](std::vector<std::uint8_t>&, int, std::uint64_t n) {
    if (rank_in_world() != stuck || n != nth) return;
    sleeping_barrier();
    throw Ended();
  };
  const auto faulty = make_faulty_transport(*t, fault);
  Communicator comm(*faulty);
  std::string text;
  try {
    call(comm);
  } catch (const Ended&) {
    return text;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::transport);
    text = e.what();
  }
  sleeping_barrier();
  return text;
}

/// The same on all ranks.
bool everywhere(bool good) {
  int all = good ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all != 0;
}

struct Case {
  Call call;
  std::uint64_t nth;
};

TEST(StuckRank, IsNamedByAllWhoWaitForItThroughOthers) {
  const std::string words = ": no sign of rank " + std::to_string(stuck) + ";";
  const Case cases[] = {{reduce_in_a_ring, 0}, {reduce_in_a_ring, 20}, {broadcast, 0}};
  for (const Case& c : cases) {
    std::string text;
    const auto named = [&] { return rank_in_world() == stuck || text.find(words) != std::string::npos; };
    bool sound = false;
    for (double timeout = 0.5; !sound && timeout < 10; timeout *= 4) {  // where a machine stalls, others are named, too
      const auto start = std::chrono::steady_clock::now();
      text = error_of(c.call, c.nth, timeout);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      EXPECT_LT(taken.count(), 60);
      sound = everywhere(named());
    }
    EXPECT_TRUE(named()) << text;
  }
}

}  // namespace
}  // namespace laconic
