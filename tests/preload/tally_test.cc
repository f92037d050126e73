#include "preload/tally.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "preload/variables.h"

namespace laconic::preload::tally_test {
namespace {

Report report(std::uint64_t original, std::uint64_t wire) {
  Report r;
  r.stats.calls = 1;
  r.stats.original_bytes = original;
  r.stats.wire_bytes = wire;
  r.stats.codec_seconds = 0.25;
  r.stats.wire_seconds = 0.75;
  return r;
}

Heading mpi(int ranks) { return {.ranks = ranks, .policy = "bound 0.001", .library = "MPI"}; }

TEST(Tally, LinesByCollectiveAndSize) {
  Tally tally;
  tally.add(Collective::allreduce, 65536, report(1000, 100), 3);
  tally.add(Collective::allreduce, 131071, report(1000, 100), 3);  // the same class
  tally.add(Collective::bcast, 65536, report(500, 500), 0);
  tally.pass("for a reason");
  const auto j = nlohmann::json::parse(tally.to_json(mpi(4)));
  EXPECT_EQ(j["ranks"], 4);
  ASSERT_EQ(j["lines"].size(), 2U);
  EXPECT_EQ(j["lines"][0]["collective"], "allreduce");
  EXPECT_EQ(j["lines"][0]["min_bytes"], 65536);
  EXPECT_EQ(j["lines"][0]["calls"], 2);
  EXPECT_DOUBLE_EQ(j["lines"][0]["ratio"], 10);
  EXPECT_DOUBLE_EQ(j["lines"][0]["saved_seconds"], 4);
  EXPECT_DOUBLE_EQ(j["lines"][1]["saved_seconds"], 0);  // no model yet
  EXPECT_EQ(j["total"]["original_bytes"], 2500);
  EXPECT_EQ(j["left_to_mpi"]["for a reason"], 1);
  const std::string text = tally.to_text(mpi(4));
  EXPECT_TRUE(text.starts_with("laconic: 4 ranks, bound 0.001; all ranks together\n")) << text;
  EXPECT_NE(text.find("64 KiB"), std::string::npos);
  EXPECT_FALSE(j.contains("process") || j.contains("lowest_rank"));
}

TEST(Tally, OneOfSeveralProcessesSaysWhich) {
  Tally tally;
  tally.pass("for a reason");
  const Heading heading{.policy = "no bound", .library = "NCCL", .process = "node1.4711", .lowest_rank = 3};
  const auto j = nlohmann::json::parse(tally.to_json(heading));
  EXPECT_EQ(j["ranks"], 0);
  EXPECT_EQ(j["process"], "node1.4711");
  EXPECT_EQ(j["lowest_rank"], 3);
  EXPECT_EQ(j["left_to_nccl"]["for a reason"], 1);
  EXPECT_FALSE(j.contains("left_to_mpi"));
  EXPECT_TRUE(tally.to_text(heading).starts_with("laconic: process node1.4711, no bound, NCCL\n"));
}

TEST(Tally, FilesMayBeCalledAnything) {
  const auto j =
      nlohmann::json::parse(Tally().to_json({.ranks = 2, .policy = "policy caf\xe9.toml", .library = "MPI"}));
  EXPECT_EQ(j["policy"], "policy caf\uFFFD.toml");
}

TEST(Variables, AreTheTallysCountsOfOneCollectiveAndOfAll) {
  Tally tally;
  tally.add(Collective::allreduce, 65536, report(1000, 100), 3);
  tally.add(Collective::allreduce, 1 << 20, report(1000, 100), 3);
  tally.add(Collective::alltoall, 65536, report(500, 500), 0);
  const auto value = [&](const std::string& name) {
    for (std::size_t i = 0; i < variables().size(); ++i)
      if (variables()[i].name == name) return value_of(i, tally);
    ADD_FAILURE() << "no " << name;
    return std::variant<std::uint64_t, double>(std::uint64_t{0});
  };
  const auto count = [&](const std::string& name) { return std::get<std::uint64_t>(value(name)); };
  EXPECT_EQ(count("laconic_calls"), 3U);
  EXPECT_EQ(count("laconic_allreduce_calls"), 2U);
  EXPECT_EQ(count("laconic_alltoall_wire_bytes"), 500U);
  EXPECT_EQ(count("laconic_bcast_calls"), 0U);
  EXPECT_EQ(count("laconic_original_bytes"), 2500U);
  EXPECT_DOUBLE_EQ(std::get<double>(value("laconic_allreduce_codec_seconds")), 0.5);
  EXPECT_DOUBLE_EQ(std::get<double>(value("laconic_saved_seconds")), 4);
  std::set<std::string> names;
  for (std::size_t i = 0; i < variables().size(); ++i) {
    names.insert(variables()[i].name);
    EXPECT_EQ(value_of(i, tally).index() == 0, variables()[i].kind == VariableKind::counter) << variables()[i].name;
  }
  EXPECT_EQ(names.size(), variables().size());
  EXPECT_EQ(names.size(), 81U);
}

TEST(Tally, RanksAddUp) {
  Tally here, there;
  Report verified = report(10, 5);
  verified.verified = 7;
  verified.achieved_error = 5e-4;
  verified.result_bound = 1e-3;
  verified.stats.add_fallback("why");
  here.add(Collective::gather, 100, report(10, 5), 0);
  there.add(Collective::gather, 100, verified, 0);
  there.pass("for a reason");
  here.merge(there.pack());
  const TallyLine sum = here.total();
  EXPECT_EQ(sum.calls, 2U);
  EXPECT_EQ(sum.verified, 7U);
  EXPECT_DOUBLE_EQ(sum.worst_error, 0.5);
  EXPECT_DOUBLE_EQ(sum.seconds, 2);
  const auto j = nlohmann::json::parse(here.to_json(mpi(2)));
  EXPECT_EQ(j["left_to_mpi"]["for a reason"], 1);
  EXPECT_EQ(j["fallbacks"]["why"], 1);
  EXPECT_EQ(Tally{}.total().calls, 0U);
}

}  // namespace
}  // namespace laconic::preload::tally_test
