// Ranks over the fake NCCL: each is a thread with a communicator and a device.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "support/fake_cuda.h"
#include "support/fake_nccl.h"
#include "transport/nccl/nccl.h"

namespace laconic::test {

/// Runs body(rank, communicator) on a thread for each rank, then sees that nothing is left of what it made.
inline void over_nccl_communicators(int ranks, const std::function<void(int, ncclComm_t)>& body) {
  const fake::Live before = fake::live();
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(ranks));
  ASSERT_EQ(ncclCommInitAll(comms.data(), ranks, nullptr), ncclSuccess);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      int device = 0;
      const ncclComm_t comm = comms[static_cast<std::size_t>(r)];
      ncclCommCuDevice(comm, &device);
      EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
      try {
        body(r, comm);
      } catch (const std::exception& e) {
        ADD_FAILURE() << "rank " << r << ": " << e.what();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const ncclComm_t c : comms) EXPECT_EQ(ncclCommAbort(c), ncclSuccess);
  EXPECT_EQ(fake::live_communicators(), 0U);
  EXPECT_EQ(fake::live(), before) << "something was not released";
}

/// The same with a transport for each. `sockets`: as for make_nccl_transport().
inline void over_nccl(int ranks, const std::function<void(Transport&)>& body, double timeout = 30,
                      bool sockets = config().nccl_sockets) {
  over_nccl_communicators(ranks, [&](int, ncclComm_t comm) {
    body(*make_nccl_transport(comm, timeout, std::make_shared<nccl::Stop>(), sockets));
  });
}

}  // namespace laconic::test
