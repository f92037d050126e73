#include "preload/tally.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "preload/serving.h"
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

TEST(Tally, VariablesThatMeanNothingAreNamed) {
  const Heading heading{.ranks = 2, .policy = "no bound", .library = "MPI", .unknown = {"LACONIC_BUOND"}};
  EXPECT_NE(Tally().to_text(heading).find("  LACONIC_BUOND is set, but Laconic has no such variable\n"),
            std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(Tally().to_json(heading))["unknown_variables"],
            nlohmann::json::array({"LACONIC_BUOND"}));
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

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What is said on standard error.
std::string written_to(const std::filesystem::path& file) {
  Config config;
  config.report = file.string();
  testing::internal::CaptureStderr();
  write_report(Tally(), mpi(2), config);
  return testing::internal::GetCapturedStderr();
}

class ReportFile : public testing::Test {
 protected:
  ReportFile() {
    std::string name = testing::TempDir() + "laconic_report_XXXXXX";
    folder = ::mkdtemp(name.data());
  }
  ~ReportFile() override { std::filesystem::remove_all(folder); }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  }
  std::filesystem::path folder;
};

TEST_F(ReportFile, IsWholeAndReplacesWhatIsThere) {
  const auto file = folder / "report.json", link = folder / "link.json";
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(written_to(file), "");
    EXPECT_EQ(nlohmann::json::parse(content_of(file))["ranks"], 2);
  }
  std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::create_symlink(file, link);
  EXPECT_EQ(written_to(link), "");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(std::filesystem::status(file).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(files(), 2);
}

TEST_F(ReportFile, MayHaveTheLongestNameAndBeWhereALinkLeads) {
  const auto longest = folder / std::string(255, 'n'), link = folder / "link.json", file = folder / "report.json";
  EXPECT_EQ(written_to(longest), "");
  EXPECT_EQ(nlohmann::json::parse(content_of(longest))["ranks"], 2);
  std::filesystem::create_symlink("report.json", link);
  EXPECT_EQ(written_to(link), "");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(nlohmann::json::parse(content_of(file))["ranks"], 2);
  EXPECT_EQ(files(), 3);
  const auto circle = folder / "circle";
  std::filesystem::create_symlink("circle", circle);
  EXPECT_NE(written_to(circle).find("the report cannot be written to"), std::string::npos);
}

TEST_F(ReportFile, OnAFullDiskLeavesTheOneBefore) {
  const auto file = folder / "report.json";
  std::ofstream(file) << "precious";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  // The limit holds for what is captured on standard error, too: it is said in two parts.
  const rlimit small{.rlim_cur = 300, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string said = written_to(file);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(said.find("the report cannot be written to"), std::string::npos) << said;
  EXPECT_NE(said.find("File too large"), std::string::npos) << said;
  EXPECT_EQ(content_of(file), "precious");
  EXPECT_EQ(files(), 1);
}

TEST_F(ReportFile, LeavesAloneWhatHasTheNameOfItsBeginning) {
  const auto file = folder / "report.json", other = folder / "other";
  std::ofstream(file) << "precious";
  std::ofstream(other) << "somebody's";
  const std::string begun = file.string() + "." + std::to_string(::getpid());
  for (const char* name : {".part", "-0.part"}) std::filesystem::create_symlink(other, begun + name);
  EXPECT_EQ(written_to(file), "");
  EXPECT_EQ(content_of(other), "somebody's");
  EXPECT_EQ(nlohmann::json::parse(content_of(file))["ranks"], 2);
  EXPECT_EQ(files(), 4);
}

TEST_F(ReportFile, ThatCannotBeBegunLeavesTheOneBefore) {
  const auto file = folder / "report.json";
  std::ofstream(file) << "precious";
  for (int k = 0; k < 16; ++k)
    std::ofstream(file.string() + "." + std::to_string(::getpid()) + "-" + std::to_string(k) + ".part") << "old";
  EXPECT_NE(written_to(file).find("File exists"), std::string::npos);
  EXPECT_EQ(content_of(file), "precious");
}

TEST_F(ReportFile, IsWrittenInPlaceWhereItsFolderTakesNoOthers) {
  const auto file = folder / "report.json";
  std::ofstream(file) << "old";
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 0555), 0);
  const uid_t before = ::geteuid();
  if (before == 0 && ::seteuid(65534) != 0) GTEST_SKIP() << "no user whom permissions are for";
  const std::string said = written_to(file);
  ASSERT_EQ(::seteuid(before), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  EXPECT_EQ(said, "");
  EXPECT_EQ(nlohmann::json::parse(content_of(file))["ranks"], 2);
  EXPECT_EQ(files(), 1);
}

TEST_F(ReportFile, APipeThatNobodyReadsIsNotWaitedFor) {
  const auto pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(written_to(pipe).find("No such device or address"), std::string::npos);
}

}  // namespace
}  // namespace laconic::preload::tally_test
