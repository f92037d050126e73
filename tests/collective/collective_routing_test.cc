// The cost model, and how calls learn which way is faster.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "collective/calibration.h"
#include "collective/fields.h"
#include "collective/routing.h"
#include "collective/world.h"
#include "transport/threads.h"

namespace laconic {
namespace {

constexpr Link gigabit{60e-6, 118e6};
constexpr CodecSpeed codec{6e9, 8e9, 10e9};
constexpr std::uint64_t mib = 1 << 20;

constexpr Collective collectives[] = {Collective::allreduce, Collective::reduce_scatter, Collective::allgather,
                                      Collective::bcast,     Collective::scatter,        Collective::gather,
                                      Collective::alltoall,  Collective::reduce,         Collective::scan};

TEST(Cost, CompressionPaysOnSlowLinksForLongData) {
  for (const Collective c : collectives) {
    const Workload w{c, 64 * mib, 4, 1};
    EXPECT_LT(compressed_seconds(w, {gigabit, codec}, 0.1), 0.2 * plain_seconds(w, gigabit)) << name_of(c);
    EXPECT_GT(compressed_seconds(w, {gigabit, codec}, 1.0), plain_seconds(w, gigabit)) << name_of(c);
    EXPECT_LT(compressed_seconds(w, {gigabit, codec}, 0.1), compressed_seconds(w, {gigabit, codec}, 0.2));
  }
}

TEST(Cost, ShortDataAndFastLinksGoPlainly) {
  for (const Collective c : collectives) {
    EXPECT_GT(compressed_seconds({c, 1024, 4, 1}, {gigabit, codec}, 0), plain_seconds({c, 1024, 4, 1}, gigabit));
    const Workload w{c, 64 * mib, 4, 1};
    EXPECT_GT(compressed_seconds(w, {{2e-6, 40e9}, codec}, 0.1), plain_seconds(w, {2e-6, 40e9})) << name_of(c);
  }
}

TEST(Cost, PlainRingAllreduceAsTextbooksHaveIt) {
  const Workload w{Collective::allreduce, 100 * mib, 4, 1};
  EXPECT_NEAR(plain_seconds(w, {0, 1e9}), 2.0 * 3 / 4 * 100 * mib / 1e9, 1e-12);
}

TEST(Cost, DirectExchangePaysWhereTheWireIsWhatTakesTime) {
  for (const Collective c : {Collective::allreduce, Collective::reduce_scatter}) {
    for (const int ranks : {3, 4, 8, 16}) {
      const Workload w{c, 64 * mib, ranks, 1};
      EXPECT_TRUE(direct_pays(w, {{60e-6, 20e6}, codec}, 0.1, 4, true)) << name_of(c) << ", " << ranks;
      EXPECT_FALSE(direct_pays(w, {{2e-6, 40e9}, codec}, 0.1, 4, true)) << name_of(c) << ", " << ranks;
      EXPECT_FALSE(direct_pays(w, {{0, 20e6}, codec}, 0.1, 4, false)) << "extremes have no more bits";
      EXPECT_TRUE(direct_pays({c, 4096, ranks, 1}, {gigabit, codec}, 0.1, 4, false));
    }
  }
}

Estimates estimates(double plain, double compressed) {
  return {.fraction = 0.1,
          .plain_model = plain,
          .compressed_model = compressed,
          .compressed_at_best = compressed / 2,
          .agreement = 1e-4};
}

/// Runs calls that take these seconds; how many of the last hundred went plainly.
int plain_calls_of_last_hundred(double plain_model, double compressed_model, double plain, double compressed,
                                int calls = 500) {
  History h;
  int plainly = 0;
  for (int i = 0; i < calls; ++i) {
    bool p = h.at_once();
    if (!p) {
      Estimates e = estimates(plain_model, compressed_model);
      e.plain_measured = h.plain.seconds();
      e.compressed_measured = h.compressed.seconds();
      p = h.decide(e);
    }
    (p ? h.plain : h.compressed).note(p ? plain : compressed);
    if (i >= calls - 100) plainly += p ? 1 : 0;
  }
  return plainly;
}

TEST(History, FollowsTheModelWhereItIsRight) {
  EXPECT_EQ(plain_calls_of_last_hundred(1, 3, 1, 3), 100);
  EXPECT_LE(plain_calls_of_last_hundred(3, 1, 3, 1), 1);
}

// A link that was measured in a bad moment: the plain way is faster than anybody believes.
TEST(History, TriesThePlainWayEvenWithoutHope) {
  EXPECT_GE(plain_calls_of_last_hundred(10, 2, 1, 2, 5000), 98);
  EXPECT_LE(plain_calls_of_last_hundred(10, 2, 10, 2, 5000), 1);
}

TEST(History, CorrectsTheModelWhereItIsWrong) {
  EXPECT_GE(plain_calls_of_last_hundred(1.2, 1, 1, 2), 98);
  EXPECT_LE(plain_calls_of_last_hundred(1, 1.2, 2, 1), 2);
}

// Three slow calls by bad luck, then never again.
TEST(History, BadLuckIsForgotten) {
  History h;
  int plainly = 0;
  for (int i = 0; i < 1000; ++i) {
    bool p = h.at_once();
    if (!p) {
      Estimates e = estimates(1, 2);
      e.plain_measured = h.plain.seconds();
      e.compressed_measured = h.compressed.seconds();
      p = h.decide(e);
    }
    (p ? h.plain : h.compressed).note(!p ? 2 : i < 3 ? 3 : 1);
    plainly += p ? 1 : 0;
  }
  EXPECT_GE(plainly, 900);
}

TEST(History, AsksRarelyWherePlainIsFaster) {
  History h;
  int asked = 0;
  for (int i = 0; i < 10000; ++i) {
    if (h.at_once()) continue;
    ++asked;
    Estimates e = estimates(1e-5, 1e-3);  // an agreement takes ten times as long as the call
    e.plain_measured = h.plain.seconds();
    EXPECT_TRUE(h.decide(e));
    h.plain.note(1e-5);
  }
  EXPECT_LE(asked, 12);
}

TEST(History, OtherDataIsJudgedAnew) {
  History h;
  Estimates rough = estimates(1, 1.1);
  rough.fraction = 0.9;
  for (int i = 0; i < 3; ++i) h.compressed.note(1.5);
  rough.compressed_model = 0.9;
  EXPECT_FALSE(h.decide(rough));  // compresses, and remembers this kind of data
  Estimates smooth = estimates(1, 0.2);
  smooth.fraction = 0.05;
  smooth.plain_measured = 1;
  smooth.compressed_measured = 1.5;
  EXPECT_FALSE(h.decide(smooth));
  EXPECT_EQ(h.compressed.seconds(), 0);  // of rough data: forgotten
}

TEST(History, WhatMustNotGoPlainlyIsAskedAgain) {
  History h;
  Estimates e = estimates(1, 10);
  e.plain_measured = 1;
  ASSERT_TRUE(h.decide(e));
  h.forbid_plain();
  EXPECT_FALSE(h.at_once());
}

TEST(Measured, TheFirstCallDoesNotCount) {
  Measured m;
  m.note(1);
  m.note(5);
  EXPECT_EQ(m.seconds(), 0);
  m.note(4);
  EXPECT_EQ(m.seconds(), 4);
  for (int i = 0; i < 4; ++i) m.note(7);
  EXPECT_EQ(m.seconds(), 7);
}

TEST(Sample, TellsSmoothFromRough) {
  const auto smooth = testing_fields::make<float>("smooth", 1000003, 0);
  const auto noise = testing_fields::make<float>("noise", 1000003, 0);
  const double a = sample_fraction(host_memory(), world::view(smooth), 1e-3, 2);
  const double b = sample_fraction(host_memory(), world::view(noise), 1e-7, 2);
  EXPECT_LT(a, 0.5);
  EXPECT_GT(b, 0.6);
  EXPECT_LE(b, 1.05);
  EXPECT_EQ(sample_fraction(host_memory(), {nullptr, 0, DType::f32}, 1e-3, 2), 1);
  const auto few = testing_fields::make<float>("smooth", 5, 0);
  EXPECT_GT(sample_fraction(host_memory(), world::view(few), 0, 2), 0);
}

class CalibrationCache : public testing::Test {
 protected:
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("laconic-calibration-" + std::to_string(::getpid()));
  ~CalibrationCache() override { std::filesystem::remove_all(folder); }

  std::vector<Costs> calibrate_on_all(const std::string& where) const {
    std::vector<Costs> all(3);
    run_ranks(
        3, [&](Transport& t) { all[static_cast<std::size_t>(t.rank())] = calibrate(t, host_memory(), where); }, 30);
    return all;
  }
  static void expect_equal(const Costs& a, const Costs& b) {
    EXPECT_DOUBLE_EQ(a.link.latency, b.link.latency);
    EXPECT_DOUBLE_EQ(a.link.bytes_per_second, b.link.bytes_per_second);
    EXPECT_DOUBLE_EQ(a.codec.encode, b.codec.encode);
    EXPECT_DOUBLE_EQ(a.codec.add, b.codec.add);
    EXPECT_DOUBLE_EQ(a.codec.decode, b.codec.decode);
  }
};

TEST_F(CalibrationCache, AllRanksHoldTheSame) {
  const auto costs = calibrate_on_all("off");
  for (const Costs& c : costs) expect_equal(c, costs[0]);
  EXPECT_GT(costs[0].link.bytes_per_second, 0);
  EXPECT_GT(costs[0].codec.encode, 0);
}

TEST_F(CalibrationCache, IsReadAgain) {
  calibrate_on_all(folder.string());
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::string line;
    std::getline(std::ifstream(file.path()) >> std::ws, line);
    std::ofstream(file.path()) << line << "\n1 2 3 4 5\n";
  }
  const auto costs = calibrate_on_all(folder.string());
  for (const Costs& c : costs) expect_equal(c, {{1, 2}, {3, 4, 5}});
}

TEST_F(CalibrationCache, DamagedFilesAreMeasuredAgain) {
  calibrate_on_all(folder.string());
  for (const char* damage : {"", "nonsense", "\n\n1 2 3"}) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) std::ofstream(file.path()) << damage;
    EXPECT_GT(calibrate_on_all(folder.string())[0].codec.add, 1e6);
  }
}

TEST_F(CalibrationCache, FolderThatCannotBeWrittenIsDoneWithout) {
  EXPECT_GT(calibrate_on_all("/proc/no/such/folder")[0].codec.add, 0);
}

}  // namespace
}  // namespace laconic
