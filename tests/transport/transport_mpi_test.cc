#include <gtest/gtest.h>

#include <algorithm>
#include <climits>

#include "core/error.h"
#include "support/sleeping.h"
#include "transport/conformance.h"
#include "transport/mpi/mpi.h"

namespace laconic {
namespace {

TEST(Mpi, Conforms) { conformance::run_all(*make_mpi_transport(MPI_COMM_WORLD)); }

TEST(Mpi, TwoTransportsOverOneCommunicatorDoNotMeet) {
  const auto a = make_mpi_transport(MPI_COMM_WORLD);
  const auto b = make_mpi_transport(MPI_COMM_WORLD);
  const int next = (a->rank() + 1) % a->size();
  const int previous = (a->rank() + a->size() - 1) % a->size();
  const std::vector<std::uint8_t> one(3, 1), two(3, 2);
  std::vector<std::uint8_t> got_one(3), got_two(3);
  Request sa = a->isend(one, next, 0);
  Request sb = b->isend(two, next, 0);
  b->irecv(got_two, previous, 0).wait();
  a->irecv(got_one, previous, 0).wait();
  sa.wait();
  sb.wait();
  EXPECT_EQ(got_one, one);
  EXPECT_EQ(got_two, two);
}

std::string error_of_message_from(int rank, Transport& t) {
  std::vector<std::uint8_t> room(1);
  try {
    t.irecv(room, rank, 0).wait();
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::transport);
    return e.what();
  }
}

TEST(Mpi, WaitingGivesUpAndNamesTheRank) {
  const auto t = make_mpi_transport(MPI_COMM_WORLD, 0.05);
  const std::string previous = std::to_string((t->rank() + t->size() - 1) % t->size());
  const std::string text = error_of_message_from(std::stoi(previous), *t);
  // Whichever of the two gives up first.
  const bool named = text.find("a message from rank " + previous) != std::string::npos ||
                     text.find("rank " + previous + " has given up waiting") != std::string::npos;
  EXPECT_TRUE(named) << text;
  sleeping_barrier();
}

TEST(Mpi, WhoIsPatientDoesNotGiveUpBeforeTheOther) {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) GTEST_SKIP() << "there is nobody to wait for";
  const auto t = make_mpi_transport(MPI_COMM_WORLD, 0.1);
  std::uint8_t byte = 0;
  Request request = t->irecv({&byte, 1}, (rank + 1) % size, 0);
  const auto error_of = [&](bool patient, double seconds) -> std::string {
    try {
      for (const Deadline end(seconds); !end.passed();) {
        if (request.await(patient)) return "it came";
        std::this_thread::yield();
      }
      return "";
    } catch (const Error& e) {
      return e.what();
    }
  };
  EXPECT_EQ(error_of(true, 0.5), "");
  sleeping_barrier();  // all have been patient: nobody has given up before
  EXPECT_NE(error_of(false, 60).find("waiting"), std::string::npos);
  sleeping_barrier();
}

std::string error_of_exchange(Transport& t) {
  try {
    allgather_value(t, t.rank());
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::transport);
    return e.what();
  }
}

/// What a rank says of an exchange to which some come too late.
std::string error_where_some_are_late(bool late) {
  const auto t = make_mpi_transport(MPI_COMM_WORLD, 1);
  if (late) sleeping_barrier();
  std::string text = error_of_exchange(*t);  // where MPI has kept what the others brought, too
  if (!late) sleeping_barrier();
  return text;
}

TEST(Mpi, WhoGivesUpNamesThoseWhoDidNotCome) {
  int rank = 0, size = 1, sound = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) GTEST_SKIP() << "one rank is never late";
  std::vector<int> late;
  for (int r = 1; r < size; r += 2) late.push_back(r);
  const std::string words = rank % 2 == 0 ? no_sign_of(late) + ";" : " has given up waiting;";
  std::string text;
  for (int attempt = 0; sound == 0 && attempt < 3; ++attempt) {  // of a machine that stalls for a second, too
    text = error_where_some_are_late(rank % 2 == 1);
    sound = text.find(words) != std::string::npos ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &sound, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  EXPECT_NE(text.find(words), std::string::npos) << text;
}

TEST(Mpi, WhoGivesUpAMessageIsNotWaitedFor) {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) GTEST_SKIP() << "there is nobody to wait";
  const auto t = make_mpi_transport(MPI_COMM_WORLD, rank == 0 ? 0.1 : 30);
  if (rank == 0) {
    EXPECT_NE(error_of_message_from(1, *t), "");
  } else {
    const std::string text = error_of_exchange(*t);
    EXPECT_NE(text.find("cannot end its call: rank 0 has given up waiting"), std::string::npos) << text;
  }
  sleeping_barrier();
}

TEST(Mpi, WhoCanStillGetWhatItWaitsForDoesNotGiveUpWithAnother) {
  int rank = 0, size = 1, word = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 3) GTEST_SKIP() << "one gives up, one is slow, the others wait";
  const auto t = make_mpi_transport(MPI_COMM_WORLD, rank == 0 ? 1 : 60);
  if (rank == 0) {
    const std::string text = error_of_message_from(1, *t);
    EXPECT_NE(text.find(": no sign of rank"), std::string::npos) << text;
    MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else if (rank == 1) {
    MPI_Request request;
    MPI_Irecv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
    sleep_until_done(&request);
    const std::vector<std::uint8_t> data(1);
    for (int r = 2; r < size; ++r) t->isend(data, r, 0).wait();
  } else {
    EXPECT_EQ(error_of_message_from(1, *t), "");
  }
  sleeping_barrier();
}

TEST(Mpi, SaysWhichLibraryItIs) {
  const std::string name = make_mpi_transport(MPI_COMM_WORLD)->description();
  EXPECT_TRUE(name.rfind("MPI (Open MPI ", 0) == 0 || name.rfind("MPI (MPICH ", 0) == 0) << name;
}

TEST(Mpi, RanksOfOneHostShareANode) {
  const auto t = make_mpi_transport(MPI_COMM_WORLD);
  std::vector<std::uint8_t> mine(MPI_MAX_PROCESSOR_NAME), all(mine.size() * static_cast<std::size_t>(t->size()));
  int length = 0;
  MPI_Get_processor_name(reinterpret_cast<char*>(mine.data()), &length);
  t->allgather_small(mine, all);
  ASSERT_EQ(t->nodes().size(), static_cast<std::size_t>(t->size()));
  for (std::size_t r = 0; r < t->nodes().size(); ++r) {
    const bool same = std::equal(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(r * mine.size()));
    EXPECT_EQ(t->nodes()[r] == t->nodes()[static_cast<std::size_t>(t->rank())], same) << r;
  }
}

TEST(Mpi, AMessageLongerThanItsBufferIsAnError) {
  const auto t = make_mpi_transport(MPI_COMM_WORLD);
  if (t->size() < 2) GTEST_SKIP() << "MPI libraries treat messages to oneself differently";
  const int next = (t->rank() + 1) % t->size();
  const int previous = (t->rank() + t->size() - 1) % t->size();
  const std::vector<std::uint8_t> data(10);
  Request s = t->isend(data, next, 0);
  const std::string text = error_of_message_from(previous, *t);
  EXPECT_NE(text.find("a receive from rank " + std::to_string(previous) + " failed: "), std::string::npos) << text;
  s.wait();
}

}  // namespace
}  // namespace laconic
