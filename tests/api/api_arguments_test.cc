// Arguments that no call can have, over real MPI ranks: refused on every rank, and the communicator works on.
#include <gtest/gtest.h>
#include <laconic/laconic_mpi.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <laconic/laconic.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr auto f32 = LACONIC_F32;
constexpr auto sum = LACONIC_SUM;

class ApiArguments : public testing::Test {
 protected:
  ApiArguments() : comm(make(), {.bound = "1e-3", .mode = laconic::Mode::compressed}), x(room), y(room) {}

  static laconic_comm* make() {
    laconic_comm* raw = nullptr;
    laconic::check(laconic_comm_from_mpi(MPI_COMM_WORLD, &raw));
    return raw;
  }
  /// words: that the text has.
  static void expect_refused(int code, const std::string& words) {
    EXPECT_EQ(code, LACONIC_INVALID_ARGUMENT);
    EXPECT_NE(std::string(laconic_last_error()).find(words), std::string::npos)
        << words << ": " << laconic_last_error();
  }
  void expect_works() {
    x.assign(room, 1.0F);
    ASSERT_EQ(laconic_allreduce(x.data(), y.data(), 1000, f32, sum, raw, nullptr), LACONIC_OK) << laconic_last_error();
    ASSERT_NEAR(y[999], comm.size(), 2e-3);
  }

  static constexpr std::size_t room = 5000;
  laconic::Comm comm;
  laconic_comm* raw = comm.raw();
  std::size_t n = static_cast<std::size_t>(comm.size());
  std::vector<float> x, y;
  const float* s = nullptr;
  float* r = nullptr;
  void SetUp() override {
    s = x.data();
    r = y.data();
  }

  void expect_count_refused(std::size_t count);
  void expect_counts_refused(const std::vector<std::size_t>& counts, const std::string& words);
};

/// Of an array of all ranks.
void ApiArguments::expect_count_refused(std::size_t count) {
  expect_refused(laconic_reduce_scatter_block(s, r, count, f32, sum, raw, nullptr), "recvcount is ");
  expect_refused(laconic_allgather(s, count, r, f32, raw, nullptr), "count is ");
  expect_refused(laconic_allgather(LACONIC_IN_PLACE, count, r, f32, raw, nullptr), "count is ");
  expect_refused(laconic_alltoall(s, r, count, f32, raw, nullptr), "count is ");
  expect_refused(laconic_scatter(s, r, count, f32, 0, raw, nullptr), "count is ");
  expect_refused(laconic_gather(s, count, r, f32, 0, raw, nullptr), "count is ");
}

TEST_F(ApiArguments, CountsThatNoMemoryHolds) {
  for (const auto mode : {laconic::Mode::compressed, laconic::Mode::plain, laconic::Mode::automatic}) {
    comm.set_options({.bound = "1e-3", .mode = mode});
    for (int i = 0; i < 3; ++i) expect_works();  // the next ones may go without asking
    // The second one's bytes are those of the call that works.
    for (const std::size_t count : {SIZE_MAX, SIZE_MAX / 4 + 1 + 1000, SIZE_MAX / 4, SIZE_MAX / 8 + 1}) {
      SCOPED_TRACE(count);
      expect_refused(laconic_allreduce(s, r, count, f32, sum, raw, nullptr), "count is " + std::to_string(count));
      expect_refused(laconic_allreduce(LACONIC_IN_PLACE, r, count, f32, sum, raw, nullptr), "count is ");
      expect_refused(laconic_reduce(s, r, count, f32, sum, 0, raw, nullptr), "count is ");
      expect_refused(laconic_scan(s, r, count, f32, sum, raw, nullptr), "count is ");
      expect_refused(laconic_exscan(s, r, count, f32, sum, raw, nullptr), "count is ");
      expect_refused(laconic_bcast(r, count, f32, 0, raw, nullptr), "count is ");
      expect_count_refused(count);
    }
    expect_count_refused(PTRDIFF_MAX / 4 / n + 1);
    expect_works();
  }
}

void ApiArguments::expect_counts_refused(const std::vector<std::size_t>& counts, const std::string& words) {
  const std::size_t* c = counts.data();
  const std::vector<std::size_t> ones(n, 1);
  expect_refused(laconic_reduce_scatter(s, r, c, f32, sum, raw, nullptr), words);
  expect_refused(laconic_allgatherv(s, r, c, nullptr, f32, raw, nullptr), words);
  expect_refused(laconic_allgatherv(LACONIC_IN_PLACE, r, c, nullptr, f32, raw, nullptr), words);
  expect_refused(laconic_gatherv(s, 1, r, c, nullptr, f32, 0, raw, nullptr), words);
  expect_refused(laconic_scatterv(s, c, nullptr, r, 1, f32, 0, raw, nullptr), "sendcounts");
  expect_refused(laconic_alltoallv(s, c, nullptr, r, ones.data(), nullptr, f32, raw, nullptr), "sendcounts");
  expect_refused(laconic_alltoallv(s, ones.data(), nullptr, r, c, nullptr, f32, raw, nullptr), words);
}

TEST_F(ApiArguments, PartsThatNoMemoryHolds) {
  const std::vector<std::size_t> ones(n, 1), beyond(n, SIZE_MAX - 1);
  expect_counts_refused(std::vector<std::size_t>(n, SIZE_MAX), "recvcounts[0] = " + std::to_string(SIZE_MAX));
  if (n > 1) expect_counts_refused(std::vector<std::size_t>(n, SIZE_MAX / n + 1), "recvcounts");  // in all, a few
  const std::size_t* one = ones.data();
  const std::size_t* far = beyond.data();
  expect_refused(laconic_allgatherv(s, r, one, far, f32, raw, nullptr), "displs[0]");
  expect_refused(laconic_allgatherv(LACONIC_IN_PLACE, r, one, far, f32, raw, nullptr), "displs[0]");
  expect_refused(laconic_gatherv(s, 1, r, one, far, f32, 0, raw, nullptr), "displs[0]");
  expect_refused(laconic_scatterv(s, one, far, r, 1, f32, 0, raw, nullptr), "displs[0]");
  expect_refused(laconic_scatterv(s, one, nullptr, r, SIZE_MAX, f32, 0, raw, nullptr), "recvcount is ");
  expect_refused(laconic_gatherv(s, SIZE_MAX, r, one, nullptr, f32, 0, raw, nullptr), "sendcount is ");
  expect_refused(laconic_alltoallv(s, one, far, r, one, nullptr, f32, raw, nullptr), "sdispls[0]");
  expect_refused(laconic_alltoallv(s, one, nullptr, r, one, far, f32, raw, nullptr), "rdispls[0]");
  const std::vector<std::size_t> none(n, 0);  // whose displacements say nothing
  EXPECT_EQ(laconic_allgatherv(LACONIC_IN_PLACE, r, none.data(), far, f32, raw, nullptr), LACONIC_OK);
  expect_works();
}

TEST_F(ApiArguments, ACountOnOneRankIsAnErrorOnAll) {
  const int last = comm.size() - 1;
  const std::size_t count = comm.rank() == last ? SIZE_MAX : 100;
  const std::string words = "rank " + std::to_string(last) + ": count is";
  expect_refused(laconic_allreduce(s, r, count, f32, sum, raw, nullptr), words);
  expect_refused(laconic_allgather(s, count, r, f32, raw, nullptr), words);
  expect_refused(laconic_gather(s, count, r, f32, 0, raw, nullptr), words);
  laconic_request* request = nullptr;
  ASSERT_EQ(laconic_ibcast(r, count, f32, 0, raw, nullptr, &request), LACONIC_OK);
  expect_refused(laconic_wait(&request), words);
  expect_works();
}

// In mode plain nobody asks the others from a collective's second call on: only this rank calls here, and must not
// wait.
TEST_F(ApiArguments, WhatIsWrongIsSaidAtOnceInModePlain) {
  comm.set_options({.bound = "1e-3", .mode = laconic::Mode::plain});
  expect_works();
  const int last = comm.size() - 1;
  const std::string whose = "allreduce: rank " + std::to_string(last) + ": ";
  laconic_options misspelled = LACONIC_OPTIONS_INIT;
  misspelled.bound = "1e-3real";
  if (comm.rank() == last) {
    expect_refused(laconic_allreduce(s, r, SIZE_MAX, f32, sum, raw, nullptr), whose + "count is");
    expect_refused(laconic_allreduce(nullptr, r, 100, f32, sum, raw, nullptr), whose + "send is null");
    expect_refused(laconic_allreduce(s, r, 100, f32, sum, raw, &misspelled), whose + "bound '1e-3real'");
  }
  expect_works();
  // What the library does not have is agreed on here too.
  const std::string whose_gather = "gather: rank " + std::to_string(last) + ": ";
  ASSERT_EQ(laconic_gather(s, 10, r, f32, 0, raw, nullptr), LACONIC_OK) << laconic_last_error();
  const std::size_t count = comm.rank() == last ? SIZE_MAX : 100;
  expect_refused(laconic_allreduce(s, r, count, LACONIC_BF16, sum, raw, nullptr), whose + "count is");
  if (comm.rank() == last) {
    const std::vector<std::size_t> counts(n, 100);
    expect_refused(laconic_gatherv(s, count, r, counts.data(), nullptr, f32, 0, raw, nullptr),
                   whose_gather + "sendcount is");
    expect_refused(laconic_gather(s, SIZE_MAX, r, f32, 0, raw, nullptr), whose_gather + "count is");
  }
  expect_works();
  comm.set_options({.bound = "1e-3", .mode = laconic::Mode::compressed});  // others than the call's
  misspelled.mode = LACONIC_MODE_PLAIN;
  if (comm.rank() == last) {
    expect_refused(laconic_allreduce(s, r, 100, f32, sum, raw, &misspelled), whose + "bound '1e-3real'");
  }
  misspelled.mode = LACONIC_MODE_DEFAULT;  // now all wait for it
  const auto* here = comm.rank() == last ? &misspelled : nullptr;
  expect_refused(laconic_allreduce(s, r, 100, f32, sum, raw, here), whose + "bound '1e-3real'");
  expect_works();
}

// By the names and with the values that the caller has given.
TEST_F(ApiArguments, TextsNameTheArgumentAndItsValue) {
  const std::vector<std::size_t> counts(n, 100);
  const std::size_t* c = counts.data();
  const int me = comm.rank();
  for (const int number : {-1, 0, 9, 255, 0x4c00040a}) {  // the last one is a handle of MPICH's
    const auto none = static_cast<laconic_dtype>(number);
    const std::string words = "dtype " + std::to_string(number) + " is none";
    expect_refused(laconic_allreduce(s, r, 100, none, sum, raw, nullptr), words);
    expect_refused(laconic_gatherv(s, 100, r, c, nullptr, none, 0, raw, nullptr), words);
    expect_refused(laconic_sendrecv(s, 1, none, me, 1, r, 1, f32, me, 1, nullptr, raw, nullptr), words);
  }
  EXPECT_EQ(laconic_scan(s, r, 100, f32, static_cast<laconic_op>(0x58000003), raw, nullptr), LACONIC_UNSUPPORTED);
  EXPECT_NE(std::string(laconic_last_error()).find("op 1476395011: want"), std::string::npos) << laconic_last_error();
  expect_refused(laconic_bcast(nullptr, 100, f32, 0, raw, nullptr), "buf is null");
  expect_refused(laconic_reduce_scatter(s, r, nullptr, f32, sum, raw, nullptr), "recvcounts is null");
  expect_refused(laconic_allgatherv(s, r, nullptr, nullptr, f32, raw, nullptr), "recvcounts is null");
  expect_refused(laconic_gatherv(s, 100, r, nullptr, nullptr, f32, 0, raw, nullptr), "rank 0: recvcounts is null");
  expect_refused(laconic_scatterv(s, nullptr, nullptr, r, 100, f32, 0, raw, nullptr), "rank 0: sendcounts is null");
  for (void* const none : {static_cast<void*>(nullptr), LACONIC_IN_PLACE})  // in place is the root's alone
    if (n > 1) expect_refused(laconic_scatter(s, me == 0 ? r : none, 9, f32, 0, raw, nullptr), "rank 1: recv is null");
  expect_refused(laconic_alltoallv(s, nullptr, nullptr, r, c, nullptr, f32, raw, nullptr), "sendcounts is null");
  expect_refused(laconic_alltoallv(s, c, nullptr, r, nullptr, nullptr, f32, raw, nullptr), "recvcounts is null");
  expect_works();
}

// Else the next call that receives would get what had been sent to this one.
TEST_F(ApiArguments, AMessageToACallThatIsRefusedIsTaken) {
  if (n == 1) return;
  const int to = (comm.rank() + 1) % comm.size(), from = (comm.rank() + comm.size() - 1) % comm.size();
  laconic_options misspelled = LACONIC_OPTIONS_INIT;
  misspelled.bound = "1e-3real";
  const auto pass_on = [&](float value, const laconic_options* options) {
    x.assign(room, value);
    return laconic_sendrecv(s, 10, f32, to, 1, r, 10, f32, from, 1, nullptr, raw, options);
  };
  const int refused = pass_on(1, comm.rank() == 0 ? &misspelled : nullptr);
  EXPECT_EQ(refused != LACONIC_OK, comm.rank() == 0 || from == 0) << laconic_last_error();
  ASSERT_EQ(pass_on(2, nullptr), LACONIC_OK) << laconic_last_error();
  EXPECT_NEAR(y[0], 2, 1e-3);
  if (comm.rank() == 0) {
    for (const float value : {3.0F, 4.0F}) {
      x.assign(room, value);
      ASSERT_EQ(laconic_send(s, 10, f32, 1, 0, raw, nullptr), LACONIC_OK) << laconic_last_error();
    }
  } else if (comm.rank() == 1) {
    expect_refused(laconic_recv(r, 10, f32, 0, 0, nullptr, raw, &misspelled), "bound '1e-3real'");
    ASSERT_EQ(laconic_recv(r, 10, f32, 0, 0, nullptr, raw, nullptr), LACONIC_OK) << laconic_last_error();
    EXPECT_NEAR(y[0], 4, 1e-3);
  }
}

TEST_F(ApiArguments, ExscanNeedsNoArrayToWriteToOnRank0) {
  for (const auto mode : {laconic::Mode::plain, laconic::Mode::compressed}) {
    comm.set_options({.bound = "1e-3", .mode = mode});
    x.assign(room, 1.0F);
    ASSERT_EQ(laconic_exscan(s, comm.rank() == 0 ? nullptr : r, room, f32, sum, raw, nullptr), LACONIC_OK)
        << laconic_last_error();
    EXPECT_TRUE(comm.rank() == 0 || std::abs(y[room - 1] - static_cast<float>(comm.rank())) <= 1e-3F) << y[room - 1];
    EXPECT_EQ(x, std::vector<float>(room, 1.0F));
  }
  void* const last = comm.rank() == comm.size() - 1 && n > 1 ? nullptr : r;
  if (n > 1) expect_refused(laconic_exscan(s, last, room, f32, sum, raw, nullptr), "recv is null");
}

TEST_F(ApiArguments, MessagesThatNoMemoryHolds) {
  const int to = (comm.rank() + 1) % comm.size(), from = (comm.rank() + comm.size() - 1) % comm.size();
  expect_refused(laconic_sendrecv(s, SIZE_MAX, f32, to, 1, r, 10, f32, from, 1, nullptr, raw, nullptr), "send has ");
  expect_refused(laconic_sendrecv(s, 10, f32, to, 1, r, SIZE_MAX / 4 + 2, f32, from, 1, nullptr, raw, nullptr),
                 "recv has ");
  if (n > 1 && comm.rank() == 0) {
    expect_refused(laconic_send(s, SIZE_MAX / 4 + 2, f32, 1, 0, raw, nullptr), "send has ");
    EXPECT_EQ(laconic_send(s, 10, f32, 1, 0, raw, nullptr), LACONIC_OK);
  } else if (comm.rank() == 1) {
    expect_refused(laconic_recv(r, 10, f32, 0, 0, nullptr, raw, nullptr), "send has ");
    expect_refused(laconic_recv(r, SIZE_MAX, f32, 0, 0, nullptr, raw, nullptr), "recv has ");
  }
  expect_works();
}

/// In C++, where arrays have sizes: one rank's that do not fit are an error on all.
TEST_F(ApiArguments, SizesThatDoNotFitOnOneRank) {
  using laconic::Op;
  const std::span<const float> out(x.data(), 12);
  const std::size_t wrong = comm.rank() == 0 ? 11 : 12;
  const std::span<float> in(y.data(), wrong), none(y.data(), comm.rank() == 0 ? 0 : 12);
  const std::span<const float> all(x.data(), 12 * n), empty(x.data(), comm.rank() == 0 ? 0 : 12);
  EXPECT_THROW(comm.allreduce<float>(out, in, Op::sum), laconic::Error);
  EXPECT_THROW(comm.reduce<float>(out, in, Op::sum, 0), laconic::Error);
  EXPECT_THROW(comm.scan<float>(out, in, Op::sum), laconic::Error);
  EXPECT_THROW(comm.exscan<float>(out, in, Op::sum), laconic::Error);
  EXPECT_THROW(comm.reduce_scatter<float>(all, in, Op::sum), laconic::Error);
  EXPECT_THROW(comm.allgather<float>(empty, std::span(y.data(), 12 * n)), laconic::Error);
  EXPECT_THROW(comm.alltoall<float>(all, std::span(y.data(), comm.rank() == 0 ? 0 : 12 * n)), laconic::Error);
  EXPECT_THROW(comm.allreduce<float>(out, none, Op::sum), laconic::Error);
  expect_works();
}

/// Where it is wrong, it is said in terms of the C++ call.
TEST_F(ApiArguments, PartsThatDoNotFitOnOneRank) {
  const bool here = comm.rank() == 0;
  const std::vector<std::size_t> counts(n, 12), beyond(n, 13);
  const laconic::Parts parts{.counts = counts}, wrong{.counts = here ? beyond : counts};
  const std::span<const float> out(x.data(), 12), all_out(x.data(), 12 * n - (here ? 1 : 0)), sent(x.data(), 12 * n);
  const std::span<float> in(y.data(), 12), all_in(y.data(), 12 * n - (here ? 1 : 0)), got(y.data(), 12 * n);
  const auto expect_throws = [&](auto&& call, const char* words) {
    try {
      call();
      ADD_FAILURE() << "not refused: " << words;
    } catch (const laconic::Error& e) {
      EXPECT_EQ(e.code(), LACONIC_INVALID_ARGUMENT);
      EXPECT_NE(std::string(e.what()).find(here ? words : "rank 0: "), std::string::npos) << e.what();
    }
  };
  expect_throws([&] { comm.allgatherv<float>(out, got, wrong); }, "allgatherv: parts");
  expect_throws([&] { comm.gatherv<float>(out, got, wrong, 0); }, "gatherv: parts");
  expect_throws([&] { comm.scatterv<float>(sent, wrong, in, 0); }, "scatterv: parts");
  expect_throws([&] { comm.alltoallv<float>(sent, parts, got, wrong); }, "alltoallv: parts");
  expect_throws([&] { comm.reduce_scatter<float>(sent, in, wrong.counts, laconic::Op::sum); },
                "reduce_scatter: counts");
  expect_throws([&] { comm.scatter<float>(all_out, in, 0); }, "scatter: send is not");
  expect_throws([&] { comm.gather<float>(out, all_in, 0); }, "gather: recv is not");
  expect_works();
}

TEST_F(ApiArguments, NothingCanBeDoneWithWhatWasMovedFrom) {
  const laconic::Comm now_here = std::move(comm);
  const std::vector<std::size_t> counts(n, 1);
  const laconic::Parts parts{.counts = counts};
  const std::vector<std::function<void()>> calls = {
      [&] { comm.allreduce<float>(x, y, laconic::Op::sum); },
      [&] { comm.reduce_scatter<float>(x, y, laconic::Op::sum); },
      [&] { comm.reduce_scatter<float>(x, y, counts, laconic::Op::sum); },
      [&] { comm.allgather<float>(x, y); },
      [&] { comm.alltoall<float>(x, y); },
      [&] { comm.allgatherv<float>(x, y, parts); },
      [&] { comm.scatterv<float>(x, parts, y, -1); },  // as its own rank would be
      [&] { comm.alltoallv<float>(x, parts, y, parts); },
      [&] { comm.iallgather<float>(x, y).wait(); },
      [&] { comm.send<float>(x, 0); },
      [&] { static_cast<void>(comm.last()); },
      [&] { comm.set_options({}); },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    try {
      calls[i]();
      ADD_FAILURE() << "call " << i << " was made";
    } catch (const laconic::Error& e) {
      EXPECT_STREQ(e.what(), "comm is null") << "call " << i;
    }
  }
}

// Memory that was the communicator's is by then anybody's.
TEST_F(ApiArguments, ARequestOutlivesItsCommunicator) {
  laconic::Request request;
  {
    laconic::Comm brief(make(), {.bound = "1e-3", .mode = laconic::Mode::compressed});
    x.assign(room, 1.0F);
    request = brief.iallreduce<float>(x, y, laconic::Op::sum);
  }
  EXPECT_NEAR(y[room - 1], comm.size(), 2e-3);
  std::vector<std::string> others;
  for (std::size_t size = 64; size < 4096; size += 16)
    for (int i = 0; i < 4; ++i) others.emplace_back(size, '\x7f');
  request.wait();
  EXPECT_TRUE(request.test());
  for (const std::string& other : others) ASSERT_EQ(other.find_first_not_of('\x7f'), std::string::npos) << other.size();
}

// Else its bound would be gone with it.
template <typename T>
concept HasOptionsForC = requires(T&& options) { std::forward<T>(options).raw(); };
static_assert(HasOptionsForC<const laconic::Options&> && !HasOptionsForC<laconic::Options>);

TEST_F(ApiArguments, InPlaceOnlyWhereItMeansSomething) {
  void* const here = LACONIC_IN_PLACE;
  const std::vector<std::size_t> counts(n, 100);
  const std::size_t* c = counts.data();
  const bool at_root = comm.rank() == 0;
  for (const auto mode : {laconic::Mode::compressed, laconic::Mode::plain}) {
    comm.set_options({.bound = "1e-3", .mode = mode});
    for (const void* from : {static_cast<const void*>(s), static_cast<const void*>(here)}) {
      expect_refused(laconic_allreduce(from, here, 100, f32, sum, raw, nullptr), "in place where");
      expect_refused(laconic_reduce(from, here, 100, f32, sum, comm.rank(), raw, nullptr), "in place where");
      expect_refused(laconic_scan(from, here, 100, f32, sum, raw, nullptr), "in place where");
      expect_refused(laconic_exscan(from, here, 100, f32, sum, raw, nullptr), "in place where");
      expect_refused(laconic_reduce_scatter(from, here, c, f32, sum, raw, nullptr), "in place where");
      expect_refused(laconic_reduce_scatter_block(from, here, 100, f32, sum, raw, nullptr), "in place where");
      expect_refused(laconic_allgather(from, 100, here, f32, raw, nullptr), "in place where");
      expect_refused(laconic_allgatherv(from, here, c, nullptr, f32, raw, nullptr), "in place where");
      expect_refused(laconic_gather(from, 100, here, f32, 0, raw, nullptr), "in place where");
      expect_refused(laconic_gatherv(from, 100, here, c, nullptr, f32, 0, raw, nullptr), "in place where");
      expect_refused(laconic_alltoall(from, here, 100, f32, raw, nullptr), "in place where");
      expect_refused(laconic_alltoallv(from, c, nullptr, here, c, nullptr, f32, raw, nullptr), "in place where");
    }
    expect_refused(laconic_bcast(here, 100, f32, 0, raw, nullptr), "in place where");
    for (void* to : {static_cast<void*>(r), here}) {
      expect_refused(laconic_scatter(here, to, 100, f32, 0, raw, nullptr), "in place where");
      expect_refused(laconic_scatterv(here, c, nullptr, to, 100, f32, 0, raw, nullptr), "in place where");
    }
    if (n > 1) {  // only the root's own part has a place
      expect_refused(laconic_gatherv(here, 100, r, c, nullptr, f32, 0, raw, nullptr), "in place where");
      expect_refused(laconic_scatterv(s, c, nullptr, here, 100, f32, 0, raw, nullptr), "in place where");
    }
    EXPECT_EQ(laconic_reduce(s, at_root ? r : here, 100, f32, sum, 0, raw, nullptr), LACONIC_OK)
        << laconic_last_error();
    const int to = (comm.rank() + 1) % comm.size(), from = (comm.rank() + comm.size() - 1) % comm.size();
    expect_refused(laconic_sendrecv(here, 10, f32, to, 1, r, 10, f32, from, 1, nullptr, raw, nullptr), "in place");
    expect_refused(laconic_sendrecv(s, 10, f32, to, 1, here, 10, f32, from, 1, nullptr, raw, nullptr), "in place");
    EXPECT_EQ(laconic_in_place, 0);
    expect_works();
  }
}

// What no call could have later is refused at once, and the options stay as they were.
TEST_F(ApiArguments, OfTheCommunicatorsOptions) {
  laconic_options o = LACONIC_OPTIONS_INIT;
  o.threads = 5000;
  expect_refused(laconic_comm_set_options(raw, &o), "threads = 5000: want 1 to 1024");
  o.threads = 1;
  o.bound = "1e-3REL";
  expect_refused(laconic_comm_set_options(raw, &o), "1e-3REL");
  expect_works();
}

TEST_F(ApiArguments, CountsThatDifferInPlace) {
  std::vector<std::size_t> out(n, 10), in(n, 10);
  in[static_cast<std::size_t>(comm.rank())] = 11;
  expect_refused(laconic_alltoallv(LACONIC_IN_PLACE, out.data(), nullptr, r, in.data(), nullptr, f32, raw, nullptr),
                 "in place, counts and displs of send and recv must be the same");
  expect_works();
}

}  // namespace
