// For tests over the fake CUDA.
#pragma once

#include <gtest/gtest.h>

#include "support/fake_cuda.h"

namespace laconic::test {

/// A test after which nothing of the (fake) device's may be left.
class NothingIsLeft : public testing::Test {
 protected:
  void SetUp() override { before_ = fake::live(); }
  void TearDown() override { EXPECT_TRUE(before_ == fake::live()) << "something of the device's was not released"; }

 private:
  fake::Live before_;
};

}  // namespace laconic::test
