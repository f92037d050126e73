// Collectives on arrays in the memory of a (fake) GPU, over the fake NCCL.
#include <gtest/gtest.h>

#include <memory>

#include "collective/allreduce.h"
#include "core/error.h"
#include "gpu/device_rank.h"
#include "support/nccl_world.h"
#include "transport/faulty.h"

namespace laconic {
namespace {

// Messages that were under way are freed, too: over_nccl_communicators() looks for them.
TEST(DeviceNccl, ACallThatFailsInItsMiddleLeavesNothingBehind) {
  test::over_nccl_communicators(3, [](int, ncclComm_t nccl) {
    const auto stop = std::make_shared<nccl::Stop>();
    const auto transport = make_nccl_transport(nccl, 60, stop);
    const auto stopping = make_faulty_transport(*transport, [&](std::vector<std::uint8_t>&, int, std::uint64_t nth) {
      if (nth == 3) stop->set();
    });
    test::Rank r(*stopping, true);
    const MutArray x = r.place(test::field(DType::f32, "smooth", 60000, r.rank()), DType::f32);
    Options o;
    o.bound = Bound::parse("1e-3");
    o.mode = Mode::compressed;
    o.segment_values = 4096;
    EXPECT_THROW(allreduce(x, x, Op::sum, r.comm(), o), Error);
    EXPECT_FALSE(r.comm().usable());
  });
}

}  // namespace
}  // namespace laconic
