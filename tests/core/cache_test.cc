#include "core/cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace laconic::cache_test {
namespace {

/// What Linux says of this processor's caches; 0 where it says nothing.
std::size_t largest_that_linux_knows() {
  std::size_t largest = 0;
  for (int i = 0; i < 8; ++i) {
    std::ifstream size("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/size");
    std::size_t kib = 0;
    if (size >> kib) largest = std::max(largest, kib << 10);
  }
  return largest;
}

TEST(Cache, LargestIsWhatLinuxSays) {
  const std::size_t linux_says = largest_that_linux_knows();
  if (linux_says == 0 || largest_cache_bytes() == 0) GTEST_SKIP() << "the processor or Linux says nothing of caches";
  EXPECT_EQ(largest_cache_bytes(), linux_says);
}

/// Whose processor Linux says this is; empty where it does not.
std::string vendor_that_linux_knows() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("vendor_id")) return line.substr(line.find(':') + 2);
  return "";
}

TEST(Cache, ManyLinesAreOnTheirWayToCoresOfAmd) {
  const std::string vendor = vendor_that_linux_knows();
  if (vendor.empty()) GTEST_SKIP() << "Linux does not say whose processor this is";
  EXPECT_EQ(few_lines_on_their_way(), vendor != "AuthenticAMD");
}

}  // namespace
}  // namespace laconic::cache_test
