// A call that a rank does not come to ends the communicator on those that waited: blocking or not, their next calls
// fail at once.
#include <gtest/gtest.h>
#include <laconic/laconic.h>

#include <chrono>
#include <exception>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "api/handle.h"
#include "transport/threads.h"

namespace laconic::api_failed_comm_test {
namespace {

/// Rank 0 makes calls, rank 1 none.
void without_rank_1(const std::function<void(laconic_comm&)>& calls) {
  std::latch over(1);
  run_ranks(
      2,
      [&](Transport& t) {
        laconic_comm comm(t.duplicate(), Options{});
        comm.begin_background();
        if (t.rank() == 1) return over.wait();
        try {
          calls(comm);
        } catch (const std::exception& e) {
          ADD_FAILURE() << e.what();
        }
        over.count_down();
      },
      2);
}

struct Sum {
  laconic_options options = LACONIC_OPTIONS_INIT;
  std::vector<float> x = std::vector<float>(1000, 1.0F);
  std::vector<float> y = x;
  Sum() {
    options.bound = "1e-3";
    options.mode = LACONIC_MODE_COMPRESSED;
  }
  int now(laconic_comm& comm) {
    return laconic_allreduce(x.data(), y.data(), x.size(), LACONIC_F32, LACONIC_SUM, &comm, &options);
  }
  int later(laconic_comm& comm, laconic_request** request) {
    return laconic_iallreduce(x.data(), y.data(), x.size(), LACONIC_F32, LACONIC_SUM, &comm, &options, request);
  }
};

void expect_refused(int code) {
  EXPECT_EQ(code, LACONIC_TRANSPORT);
  EXPECT_NE(std::string(laconic_last_error()).find("failed before and cannot be used any more"), std::string::npos)
      << laconic_last_error();
}

TEST(ApiFailedComm, ByANonBlockingCall) {
  without_rank_1([](laconic_comm& comm) {
    Sum sum;
    laconic_request* request = nullptr;
    ASSERT_EQ(sum.later(comm, &request), LACONIC_OK) << laconic_last_error();
    EXPECT_EQ(laconic_wait(&request), LACONIC_TRANSPORT);
    EXPECT_NE(std::string(laconic_last_error()).find("rank 1"), std::string::npos) << laconic_last_error();
    expect_refused(sum.now(comm));
    expect_refused(sum.later(comm, &request));
    EXPECT_EQ(request, nullptr);
    const float one = 1;
    expect_refused(laconic_send(&one, 1, LACONIC_F32, 1, 0, &comm, nullptr));
  });
}

TEST(ApiFailedComm, ByANonBlockingCallThatNobodyHasWaitedFor) {
  without_rank_1([](laconic_comm& comm) {
    Sum sum;
    laconic_request* request = nullptr;
    ASSERT_EQ(sum.later(comm, &request), LACONIC_OK) << laconic_last_error();
    while (comm.background->usable()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    expect_refused(sum.now(comm));
    EXPECT_EQ(laconic_wait(&request), LACONIC_TRANSPORT);
  });
}

TEST(ApiFailedComm, ByABlockingCall) {
  without_rank_1([](laconic_comm& comm) {
    Sum sum;
    laconic_request* request = nullptr;
    EXPECT_EQ(sum.now(comm), LACONIC_TRANSPORT);
    expect_refused(sum.later(comm, &request));
    EXPECT_EQ(request, nullptr);
    expect_refused(sum.now(comm));
  });
}

}  // namespace
}  // namespace laconic::api_failed_comm_test
