#include "support/fake_nccl.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "support/fake_cuda.h"

namespace laconic::fake {
namespace {

/// One rank of a test: its communicator, a stream, and pinned memory.
struct Rank {
  int rank = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<float*> arrays{};

  float* array(const std::vector<float>& values) {
    void* p = nullptr;
    EXPECT_EQ(cudaMallocHost(&p, values.size() * sizeof(float)), cudaSuccess);
    std::memcpy(p, values.data(), values.size() * sizeof(float));
    arrays.push_back(static_cast<float*>(p));
    return arrays.back();
  }
};

void play(int ranks, const std::function<void(Rank&)>& body) {
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(ranks));
  ASSERT_EQ(ncclCommInitAll(comms.data(), ranks, nullptr), ncclSuccess);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      Rank me{.rank = r, .comm = comms[static_cast<std::size_t>(r)]};
      ASSERT_EQ(cudaStreamCreateWithFlags(&me.stream, cudaStreamNonBlocking), cudaSuccess);
      body(me);
      EXPECT_EQ(cudaStreamDestroy(me.stream), cudaSuccess);
      for (float* p : me.arrays) EXPECT_EQ(cudaFreeHost(p), cudaSuccess);
    });
  }
  for (std::thread& t : threads) t.join();
  for (ncclComm_t c : comms) EXPECT_EQ(ncclCommDestroy(c), ncclSuccess);
  EXPECT_EQ(live_communicators(), 0U);
}

#if defined(NCCL_REVOKE_DEFAULT) && defined(NCCL_SHRINK_ABORT)
TEST(FakeNccl, WhatIsRevokedMayShrink) {
  play(3, [](Rank& me) {
    if (me.rank == 2) return;
    float *const x = me.array({1}), *const y = me.array({0});
    EXPECT_EQ(ncclAllReduce(x, y, 1, ncclFloat32, ncclSum, me.comm, me.stream), ncclSuccess);
    EXPECT_EQ(ncclCommRevoke(me.comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(me.stream), cudaSuccess) << "nothing is under way";
    EXPECT_EQ(ncclAllReduce(x, y, 1, ncclFloat32, ncclSum, me.comm, me.stream), ncclInvalidUsage);
    ncclComm_t fewer = nullptr;
    int gone = 2;
    ASSERT_EQ(ncclCommShrink(me.comm, &gone, 1, &fewer, nullptr, NCCL_SHRINK_DEFAULT), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(x, y, 1, ncclFloat32, ncclSum, fewer, me.stream), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(me.stream), cudaSuccess);
    EXPECT_EQ(y[0], 2);
    EXPECT_EQ(ncclCommDestroy(fewer), ncclSuccess);
  });
}
#endif

TEST(FakeNccl, CollectivesComputeWhatTheySay) {
  play(3, [](Rank& me) {
    const auto r = static_cast<float>(me.rank);
    float* const in = me.array({r, r + 1, r + 2});
    float *const sum = me.array({0, 0, 0}), *const all = me.array(std::vector<float>(9)), *const part = me.array({0});
    float *const max = me.array({0, 0, 0}), *const root = me.array({r, r, r});
    EXPECT_EQ(ncclAllReduce(in, sum, 3, ncclFloat32, ncclSum, me.comm, me.stream), ncclSuccess);
    EXPECT_EQ(ncclAllGather(in, all, 3, ncclFloat32, me.comm, me.stream), ncclSuccess);
    EXPECT_EQ(ncclReduceScatter(in, part, 1, ncclFloat32, ncclAvg, me.comm, me.stream), ncclSuccess);
    EXPECT_EQ(ncclReduce(in, max, 3, ncclFloat32, ncclMax, 1, me.comm, me.stream), ncclSuccess);
    EXPECT_EQ(ncclBroadcast(root, root, 3, ncclFloat32, 2, me.comm, me.stream), ncclSuccess);
    EXPECT_EQ(sum[0], 0) << "nothing happens before the stream is synchronised";
    EXPECT_EQ(cudaStreamSynchronize(me.stream), cudaSuccess);
    EXPECT_EQ(sum[0], 3);
    EXPECT_EQ(sum[2], 9);
    for (int i = 0; i < 9; ++i) EXPECT_EQ(all[i], static_cast<float>(i / 3 + i % 3));
    EXPECT_EQ(*part, r + 1);
    EXPECT_EQ(max[2], me.rank == 1 ? 4 : 0);
    EXPECT_EQ(root[1], 2);
  });
}

TEST(FakeNccl, SendsAndReceivesOfAGroupProgressTogether) {
  play(2, [](Rank& me) {
    float *const out = me.array({static_cast<float>(me.rank) + 1}), *const in = me.array({0});
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclSend(out, 1, ncclFloat32, 1 - me.rank, me.comm, me.stream), ncclSuccess);
    EXPECT_EQ(ncclRecv(in, 1, ncclFloat32, 1 - me.rank, me.comm, me.stream), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(me.stream), cudaSuccess);
    EXPECT_EQ(*in, static_cast<float>(2 - me.rank));
  });
}

TEST(FakeNccl, AlongAStreamASendWaitsForItsReceive) {
  EXPECT_DEATH(play(2,
                    [](Rank& me) {
                      set_patience(0.1);
                      float *const out = me.array({1}), *const in = me.array({0});
                      ncclSend(out, 1, ncclFloat32, 1 - me.rank, me.comm, me.stream);
                      ncclRecv(in, 1, ncclFloat32, 1 - me.rank, me.comm, me.stream);
                      cudaStreamSynchronize(me.stream);
                    }),
               "deadlock");
}

TEST(FakeNccl, ByteCountsMustAgree) {
  EXPECT_DEATH(play(2,
                    [](Rank& me) {
                      float* const data = me.array({1, 2});
                      if (me.rank == 0) ncclSend(data, 1, ncclFloat32, 1, me.comm, me.stream);
                      if (me.rank == 1) ncclRecv(data, 2, ncclFloat32, 0, me.comm, me.stream);
                      cudaStreamSynchronize(me.stream);
                    }),
               "rank 0 sends 4 bytes to rank 1, which receives 8");
}

TEST(FakeNccl, CollectivesMustBeTheSameEverywhere) {
  EXPECT_DEATH(play(2,
                    [](Rank& me) {
                      float* const data = me.array({1, 2});
                      if (me.rank == 0) ncclAllReduce(data, data, 2, ncclFloat32, ncclSum, me.comm, me.stream);
                      if (me.rank == 1) ncclBroadcast(data, data, 2, ncclFloat32, 0, me.comm, me.stream);
                      cudaStreamSynchronize(me.stream);
                    }),
               "another collective");
}

TEST(FakeNccl, PageableMemoryIsRefused) {
  EXPECT_DEATH(play(1,
                    [](Rank& me) {
                      float x = 0;
                      ncclAllReduce(&x, &x, 1, ncclFloat32, ncclSum, me.comm, me.stream);
                    }),
               "neither device nor pinned");
}

ncclResult_t settled(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) ncclCommGetAsyncError(comm, &state);
  return state;
}

TEST(FakeNccl, ASplitCommunicatorIsAnotherOneAndNeedNotBlock) {
  play(3, [](Rank& me) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t child = nullptr;
    ASSERT_EQ(ncclCommSplit(me.comm, me.rank == 0 ? 7 : 8, -me.rank, &child, &config), ncclSuccess);
    int rank = -1, size = 0;
    ncclCommUserRank(child, &rank);
    ncclCommCount(child, &size);
    EXPECT_EQ(size, me.rank == 0 ? 1 : 2);
    EXPECT_EQ(rank, me.rank == 1 ? 1 : 0);
    float* const x = me.array({1});
    EXPECT_EQ(ncclAllReduce(x, x, 1, ncclFloat32, ncclSum, child, me.stream), ncclInProgress);
    EXPECT_EQ(cudaStreamSynchronize(me.stream), cudaSuccess) << "nothing is on the stream yet";
    EXPECT_EQ(*x, 1);
    EXPECT_EQ(settled(child), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(me.stream), cudaSuccess);
    EXPECT_EQ(*x, static_cast<float>(size));
    ncclComm_t grandchild = nullptr;
    EXPECT_EQ(ncclCommSplit(child, 0, 0, &grandchild, nullptr), ncclInProgress);
    EXPECT_EQ(settled(child), ncclSuccess);
    EXPECT_NE(grandchild, nullptr);
    for (const ncclComm_t c : {grandchild, child}) {
      EXPECT_EQ(ncclCommFinalize(c), ncclInProgress);
      EXPECT_EQ(settled(c), ncclSuccess);
      EXPECT_EQ(ncclCommDestroy(c), ncclSuccess);
    }
  });
}

TEST(FakeNccl, WhatRanksJoinIsThereAtOnceAndWorksWhenAllHave) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t first = nullptr, second = nullptr;
  ASSERT_EQ(ncclCommInitRankConfig(&first, 2, id, 0, &config), ncclInProgress);
  int size = 0;
  EXPECT_EQ(ncclCommCount(first, &size), ncclInvalidArgument);
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(first, &state), ncclSuccess);
  EXPECT_EQ(state, ncclInProgress);
  ASSERT_EQ(ncclCommInitRankConfig(&second, 2, id, 1, nullptr), ncclSuccess) << "waits for nobody any more";
  EXPECT_EQ(settled(first), ncclSuccess);
  EXPECT_EQ(ncclCommCount(first, &size), ncclSuccess);
  EXPECT_EQ(size, 2);
  config.magic = 0;
  EXPECT_EQ(ncclCommInitRankConfig(&second, 1, id, 0, &config), ncclInvalidArgument);
  for (const ncclComm_t c : {first, second}) EXPECT_EQ(ncclCommDestroy(c), ncclSuccess);
}

TEST(FakeNccl, AGroupHasTheRanksOfAThreadJoinAndSplit) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclComm_t whole[2] = {}, halves[2] = {};
  ncclGroupStart();
  for (const int r : {0, 1}) EXPECT_EQ(ncclCommInitRankConfig(&whole[r], 2, id, r, nullptr), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  ncclGroupStart();
  for (const int r : {0, 1}) EXPECT_EQ(ncclCommSplit(whole[r], r, 0, &halves[r], nullptr), ncclSuccess);
  EXPECT_EQ(halves[0], nullptr);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  for (const ncclComm_t c : {halves[0], halves[1], whole[0], whole[1]}) {
    ASSERT_NE(c, nullptr);
    EXPECT_EQ(ncclCommDestroy(c), ncclSuccess);
  }
}

TEST(FakeNccl, AbortLetsTheStreamGo) {
  play(2, [](Rank& me) {
    ncclComm_t child = nullptr;
    ASSERT_EQ(ncclCommSplit(me.comm, 0, 0, &child, nullptr), ncclSuccess);
    float* const x = me.array({1});
    if (me.rank == 0) {
      EXPECT_EQ(ncclAllReduce(x, x, 1, ncclFloat32, ncclSum, child, me.stream), ncclSuccess);
      EXPECT_EQ(cudaStreamQuery(me.stream), cudaErrorNotReady);
    }
    EXPECT_EQ(ncclCommAbort(child), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(me.stream), cudaSuccess);
    EXPECT_EQ(*x, 1);
  });
}

TEST(FakeNccl, AnAsynchronousErrorReachesWhatWasSplitOff) {
  play(1, [](Rank& me) {
    ncclComm_t child = nullptr;
    ASSERT_EQ(ncclCommSplit(me.comm, 0, 0, &child, nullptr), ncclSuccess);
    set_async_error(me.comm, ncclRemoteError);
    EXPECT_EQ(settled(child), ncclRemoteError);
    EXPECT_EQ(ncclCommAbort(child), ncclSuccess);
  });
}

}  // namespace
}  // namespace laconic::fake
