#include <gtest/gtest.h>

#include <cstddef>

#include "preload/nccl/names.h"

namespace laconic::preload {
namespace {

/// Nothing looks into it.
ncclComm_t handle(std::size_t number) {
  static char places[8];
  return reinterpret_cast<ncclComm_t>(places + number);
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
TEST(NcclNames, AreReadWhereTheConfigHasRoomForThem) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(name_in(config), "");
  config.commName = "ocean";
  EXPECT_EQ(name_in(config), "ocean");
  config.size = offsetof(ncclConfig_t, commName) + sizeof config.commName;
  EXPECT_EQ(name_in(config), "ocean");
  config.size = offsetof(ncclConfig_t, commName);
  config.commName = reinterpret_cast<const char*>(1);  // what lies behind an older program's config
  EXPECT_EQ(name_in(config), "");
}
#endif

TEST(NcclNames, AreForgottenWithTheCommunicator) {
  NcclNames names;
  EXPECT_EQ(names.of(handle(0)), "");
  EXPECT_EQ(names.agreed(handle(0)), std::nullopt);
  names.note(handle(0), "ocean");
  EXPECT_EQ(names.of(handle(0)), "ocean");
  EXPECT_EQ(names.agreed(handle(0)), std::nullopt);
  names.agree(handle(0), "sea");
  EXPECT_EQ(names.of(handle(0)), "ocean");
  EXPECT_EQ(names.agreed(handle(0)), "sea");
  names.forget(handle(0));
  EXPECT_EQ(names.of(handle(0)), "");
  EXPECT_EQ(names.agreed(handle(0)), std::nullopt);
  names.agree(handle(0), "");
  EXPECT_EQ(names.agreed(handle(0)), "");
  names.note(handle(0), "air");  // another one with the same handle
  EXPECT_EQ(names.agreed(handle(0)), std::nullopt);
}

TEST(NcclNames, OfWhatIsStillSplitOffWaitForItsHandle) {
  NcclNames names;
  ncclComm_t first = nullptr, second = nullptr;
  names.expect(handle(0), &first, "ocean");
  names.expect(handle(1), &second, "air");
  names.settle(handle(0));  // of before the split began
  first = handle(2);
  second = handle(3);
  EXPECT_EQ(names.of(handle(2)), "");
  names.settle(handle(0));
  EXPECT_EQ(names.of(handle(2)), "ocean");
  EXPECT_EQ(names.of(handle(3)), "") << "of another parent";
  first = handle(4);
  names.settle(handle(0));
  EXPECT_EQ(names.of(handle(4)), "") << "looked at again";
}

TEST(NcclNames, OfWhatNeverComesAreNotWaitedFor) {
  NcclNames names;
  ncclComm_t given_up = nullptr, orphan = nullptr;
  names.expect(handle(0), &given_up, "ocean");
  names.expect(handle(1), &orphan, "air");
  names.give_up(handle(0));
  names.forget(handle(1));
  given_up = handle(2);
  orphan = handle(3);
  names.settle(handle(0));
  names.settle(handle(1));
  EXPECT_EQ(names.of(handle(2)), "");
  EXPECT_EQ(names.of(handle(3)), "");
}

}  // namespace
}  // namespace laconic::preload
