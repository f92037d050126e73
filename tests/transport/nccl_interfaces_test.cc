#include <gtest/gtest.h>
#include <netinet/in.h>

#include <string>
#include <string_view>
#include <vector>

#include "transport/nccl/interfaces.h"

namespace laconic::nccl_interfaces_test {
namespace {

using nccl::Address;
using nccl::Interface;

constexpr Address v4 = {.family = AF_INET, .bytes = {10, 0, 0, 1}};
constexpr Address v6 = {.family = AF_INET6, .bytes = {0x20, 0x01, 0x0d, 0xb8}};
constexpr Address of_link = {.family = AF_INET6, .bytes = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1}};
constexpr Address own_v4 = {.family = AF_INET, .bytes = {127, 0, 0, 1}};
constexpr Address own_v6 = {.family = AF_INET6, .bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
constexpr Address of_no_network = {};

std::string chosen(const std::vector<Interface>& all, std::string_view names = "", std::string_view family = "") {
  const auto i = nccl::choose(all, names, family);
  return i ? i->name : "none";
}

TEST(NcclInterfaces, TheFirstThatReachesOtherHosts) {
  EXPECT_EQ(chosen({{"lo", true, own_v4}, {"docker0", true, v4}, {"virbr0", true, v4}, {"eth1", true, v4}}), "eth1");
  EXPECT_EQ(chosen({{"eth0", false, v4}, {"eth1", true, v4}, {"eth2", true, v4}}), "eth1");
  EXPECT_EQ(chosen({{"eth0", true, v4}, {"ib0", true, v4}}), "ib0");
}

TEST(NcclInterfaces, OnlyWhereThereIsNoneAnotherOne) {
  EXPECT_EQ(chosen({{"lo", true, own_v4}, {"docker0", true, v4}}), "docker0");
  EXPECT_EQ(chosen({{"lo", true, own_v6}, {"lo", true, own_v4}, {"eth0", false, v4}}), "lo");
  EXPECT_EQ(chosen({{"lo", true, own_v6}}), "none");
  EXPECT_EQ(chosen({}), "none");
}

TEST(NcclInterfaces, AddressesThatOthersCanReach) {
  const std::vector<Interface> all = {
      {"a", true, of_no_network}, {"b", true, of_link}, {"c", true, v6}, {"d", true, v4}};
  EXPECT_EQ(chosen(all), "c");
  EXPECT_EQ(chosen(all, "", "AF_INET"), "d");
  EXPECT_EQ(chosen(all, "", "AF_INET6"), "c");
  EXPECT_EQ(chosen({{"b", true, of_link}}), "none");
}

TEST(NcclInterfaces, AsItsVariableSays) {
  const std::vector<Interface> all = {
      {"lo", true, own_v4}, {"eth0", true, v4}, {"eth01", true, v4}, {"ens1", true, v4}, {"ib0", true, v4}};
  EXPECT_EQ(chosen(all, "e"), "eth0");
  EXPECT_EQ(chosen(all, "ens,eth"), "eth0");
  EXPECT_EQ(chosen(all, "eth01"), "eth01");
  EXPECT_EQ(chosen(all, "=eth"), "none");
  EXPECT_EQ(chosen(all, "=eth01,ens1"), "eth01");
  EXPECT_EQ(chosen(all, "^lo,eth"), "ens1");
  EXPECT_EQ(chosen(all, "^=lo,eth0"), "eth01");
  EXPECT_EQ(chosen(all, "lo"), "lo");
  EXPECT_EQ(chosen(all, "wlan"), "none") << "not another one";
  EXPECT_EQ(chosen(all, ",ib,"), "ib0");
}

}  // namespace
}  // namespace laconic::nccl_interfaces_test
