// The cost model, and how calls learn which way is faster.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <locale>
#include <random>

#include "collective/calibration.h"
#include "collective/cost_cache.h"
#include "collective/fields.h"
#include "collective/routing.h"
#include "collective/sample.h"
#include "collective/world.h"
#include "transport/threads.h"

namespace laconic::collective_routing_test {
namespace {

constexpr Link gigabit{60e-6, 118e6};
constexpr CodecSpeed::Seconds f32_anyhow{8, 4 / 6e9, 4 / 8e9, 4 / 10e9};
constexpr CodecSpeed codec{f32_anyhow, f32_anyhow};
// As measured on one machine with AVX-512 (nanoseconds).
constexpr CodecSpeed grid32{{4, 0.16e-9, 0.25e-9, 0.18e-9}, {20, 0.57e-9, 1.1e-9, 0.34e-9}};
constexpr CodecSpeed exact64{{28, 1.2e-9, 0.3e-9, 1.1e-9}, {53, 2.3e-9, 0.3e-9, 1.5e-9}};
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

// Two GPUs, each with a link of 10 Gb/s, over NCCL, whose rounds take a while; segments wait for their kernels.
TEST(Cost, DevicesCompressWhatALinkHoldsUp) {
  constexpr CodecSpeed::Seconds smooth{4, 0.2e-9, 0.3e-9, 0.2e-9}, rough{20, 0.3e-9, 0.4e-9, 0.3e-9};
  const Costs costs{{0.3e-3, 1.2e9}, {smooth, rough}};
  for (const Collective c :
       {Collective::allreduce, Collective::reduce_scatter, Collective::allgather, Collective::bcast}) {
    const Workload longest{c, 256 * mib, 2, 1}, medium{c, 16 * mib, 2, 1}, brief{c, mib / 16, 2, 1};
    EXPECT_LT(compressed_seconds(longest, costs, 0.25), 0.4 * plain_seconds(longest, costs.link)) << name_of(c);
    EXPECT_LT(compressed_seconds(medium, costs, 0.25), 0.6 * plain_seconds(medium, costs.link)) << name_of(c);
    EXPECT_GT(compressed_seconds(brief, costs, 0.25), plain_seconds(brief, costs.link)) << name_of(c);
    const Costs nvlink{{30e-6, 200e9}, costs.codec};
    EXPECT_GT(compressed_seconds(longest, nvlink, 0.25), plain_seconds(longest, nvlink.link)) << name_of(c);
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
      EXPECT_TRUE(schedule_seconds(w, {{60e-6, 20e6}, codec}, 0.1).direct_pays()) << name_of(c) << ", " << ranks;
      EXPECT_FALSE(schedule_seconds(w, {{2e-6, 40e9}, codec}, 0.1).direct_pays()) << name_of(c) << ", " << ranks;
      Workload extremes = w;
      extremes.combining = Combining::extremes;
      EXPECT_FALSE(schedule_seconds(extremes, {{0, 20e6}, codec}, 0.1).direct_pays()) << "extremes have no more bits";
      extremes.bytes = 4096;
      EXPECT_TRUE(schedule_seconds(extremes, {gigabit, codec}, 0.1).direct_pays());
    }
  }
}

TEST(Cost, CodecIsSlowerTheMoreBitsAreLeft) {
  EXPECT_DOUBLE_EQ(grid32.at(0).encode, 0.16e-9);
  EXPECT_DOUBLE_EQ(grid32.at(4).add, 0.25e-9);
  EXPECT_DOUBLE_EQ(grid32.at(12).encode, (0.16e-9 + 0.57e-9) / 2);
  EXPECT_DOUBLE_EQ(grid32.at(20).decode, 0.34e-9);
  EXPECT_GT(grid32.at(32).encode, 0.57e-9);
  const CodecSpeed noisy{grid32.rough, grid32.smooth};  // a measurement that makes no sense
  EXPECT_DOUBLE_EQ(noisy.at(12).encode, noisy.smooth.encode);
}

// The same bytes, and as much of them would travel: what pays for floats on a grid does not for 64-bit integers.
TEST(Cost, WhatPaysDependsOnTheKindOfElements) {
  const Link fast{2e-6, 4e9};
  for (const Collective c : {Collective::allgather, Collective::bcast, Collective::alltoall}) {
    const Workload floats{c, 64 * mib, 4, 1, 4, Combining::nothing};
    const Workload integers{c, 64 * mib, 4, 1, 8, Combining::nothing};
    EXPECT_LT(compressed_seconds(floats, {fast, grid32}, 0.45), plain_seconds(floats, fast)) << name_of(c);
    EXPECT_GT(compressed_seconds(integers, {fast, exact64}, 0.45), plain_seconds(integers, fast)) << name_of(c);
    EXPECT_LT(compressed_seconds(integers, {gigabit, exact64}, 0.45), plain_seconds(integers, gigabit)) << name_of(c);
  }
}

TEST(Cost, DataWithManyPlanesGoPlainlyWhereSmoothOnesAreCompressed) {
  const Link fast{2e-6, 4e9};
  const Workload w{Collective::allreduce, 64 * mib, 2, 1};
  EXPECT_LT(compressed_seconds(w, {fast, grid32}, 0.13), plain_seconds(w, fast));
  EXPECT_GT(compressed_seconds(w, {fast, grid32}, 0.65), plain_seconds(w, fast));
  // At the speed of smooth data they would seem to pay.
  EXPECT_LT(compressed_seconds(w, {fast, {grid32.smooth, grid32.smooth}}, 0.65), plain_seconds(w, fast));
}

// Every operand is encoded and decoded where compressed sums are encoded once.
TEST(Cost, ExactSumsAndExtremesKeepTheCodecBusier) {
  for (const Collective c : {Collective::allreduce, Collective::reduce_scatter, Collective::scan}) {
    const Workload w{c, 64 * mib, 4, 1, 8, Combining::on_grid};
    Workload exactly = w, extremes = w;
    exactly.combining = Combining::exactly;
    extremes.combining = Combining::extremes;
    const Costs costs{{2e-6, 40e9}, exact64};
    EXPECT_GT(compressed_seconds(exactly, costs, 0.5), 1.5 * compressed_seconds(w, costs, 0.5)) << name_of(c);
    EXPECT_GT(compressed_seconds(extremes, costs, 0.5), 1.5 * compressed_seconds(w, costs, 0.5)) << name_of(c);
    EXPECT_DOUBLE_EQ(plain_seconds(exactly, gigabit), plain_seconds(w, gigabit));
  }
  const Workload sum{Collective::allreduce, 64 * mib, 4, 1, 8, Combining::exactly};
  EXPECT_LT(compressed_seconds(sum, {gigabit, exact64}, 0.3), 0.4 * plain_seconds(sum, gigabit));
}

TEST(Cost, KindsOfElements) {
  const auto kind = [](DType dtype, double bound, int operands = 1) {
    return codec_kind_of(make_grid(dtype, bound, 1), operands);
  };
  EXPECT_EQ(kind(DType::f32, 1e-3), CodecKind::grid32);
  EXPECT_EQ(kind(DType::f16, 1e-2), CodecKind::grid16);
  EXPECT_EQ(kind(DType::bf16, 1e-2), CodecKind::grid16);
  EXPECT_EQ(kind(DType::f64, 1e-3), CodecKind::grid64);
  EXPECT_EQ(kind(DType::f64, 1e-12), CodecKind::wide64);
  EXPECT_EQ(kind(DType::f64, 1e-8, 2), CodecKind::grid64);
  EXPECT_EQ(kind(DType::f64, 1e-8, 1024), CodecKind::wide64) << "the sum is what needs 64 bits";
  for (const DType t : {DType::f16, DType::bf16, DType::f32, DType::i32, DType::u32})
    EXPECT_EQ(kind(t, 0), CodecKind::exact32) << name_of(t);
  for (const DType t : {DType::f64, DType::i64, DType::u64}) EXPECT_EQ(kind(t, 0), CodecKind::exact64) << name_of(t);
}

Estimates estimates(double plain, double compressed) {
  return {.fraction = 0.1,
          .plain_model = plain,
          .compressed_model = compressed,
          .compressed_at_best = compressed / 2,
          .agreement = 1e-4};
}

void note(History& h, bool plainly, double seconds) {
  plainly ? h.plain.note(seconds) : h.note_compressed(seconds, nullptr);
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
      e.plain_measured = h.plain.cost();
      e.compressed_measured = h.compressed.cost() * e.compressed_model;
      p = h.decide(e);
    }
    note(h, p, p ? plain : compressed);
    if (i >= calls - 100) plainly += p ? 1 : 0;
  }
  return plainly;
}

// Which calls look a kind up that is there may differ between ranks; which meet a new one does not.
TEST(Routing, IsForgottenOnlyWhereSomethingNewIsMet) {
  Routing routing;
  const auto kind = [](int i) { return CallKind{.bound_value = static_cast<double>(i)}; };
  constexpr int most = 4096;
  for (int i = 0; i < most; ++i) {
    routing.of(kind(i));
    routing.of_unknown_size(kind(i)).last_bytes = 1;
  }
  routing.of(kind(0));
  EXPECT_EQ(routing.of_unknown_size(kind(0)).last_bytes, 1U);
  for (const int i : {0, 1, most - 1}) EXPECT_NE(routing.known(kind(i)), nullptr) << i;
  EXPECT_EQ(routing.known(kind(most)), nullptr);
  routing.of(kind(most));
  routing.of_unknown_size(kind(most));
  EXPECT_EQ(routing.known(kind(1)), nullptr);
  EXPECT_EQ(routing.of_unknown_size(kind(1)).last_bytes, 0U);
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

// The model knows what a link carries of long messages; short ones may be through sooner.
TEST(History, TriesShortPlainCallsWithoutHope) {
  EXPECT_GE(plain_calls_of_last_hundred(2.5e-4, 6e-5, 4e-5, 6e-5, 110), 95);
  EXPECT_LE(plain_calls_of_last_hundred(2.5e-4, 6e-5, 3e-4, 6e-5, 110), 4);
}

TEST(History, CorrectsTheModelWhereItIsWrong) {
  EXPECT_GE(plain_calls_of_last_hundred(1.2, 1, 1, 2), 98);
  EXPECT_LE(plain_calls_of_last_hundred(1, 1.2, 2, 1), 2);
}

// Nothing is known of the link but a latency, so nothing could pay by the model, and asking seems to cost so much that
// hundreds of calls would go without it. They take what the link takes.
TEST(History, AModelThatSeesNoHopeIsNotBelievedForLong) {
  History h;
  int plainly = 0;
  for (int i = 0; i < 20; ++i) {
    bool p = h.at_once();
    if (!p) {
      const double measured = h.plain.cost(), multiple = h.compressed.cost();
      p = h.decide({.fraction = 1,
                    .plain_model = 8e-3,
                    .compressed_model = 42e-3,
                    .compressed_at_best = 42e-3,
                    .plain_measured = measured,
                    .compressed_measured = multiple * 42e-3,
                    .agreement = 12e-3});
    }
    note(h, p, p ? 216e-3 : 70e-3);
    plainly += p ? 1 : 0;
  }
  EXPECT_EQ(plainly, 4);
}

// Three slow calls by bad luck, then never again.
TEST(History, BadLuckIsForgotten) {
  History h;
  int plainly = 0;
  for (int i = 0; i < 1000; ++i) {
    bool p = h.at_once();
    if (!p) {
      Estimates e = estimates(1, 2);
      e.plain_measured = h.plain.cost();
      e.compressed_measured = h.compressed.cost() * e.compressed_model;
      p = h.decide(e);
    }
    note(h, p, !p ? 2 : i < 3 ? 3 : 1);
    plainly += p ? 1 : 0;
  }
  EXPECT_GE(plainly, 900);
}

// Ranks that were not all running, when a call of microseconds was measured: it seems to take milliseconds.
TEST(History, BadLuckOfShortCallsIsForgottenSoon) {
  History h;
  int plainly = 0;
  for (int i = 0; i < 200; ++i) {
    bool p = h.at_once();
    if (!p) {
      Estimates e = estimates(1e-5, 4e-5);
      e.plain_measured = h.plain.cost();
      e.compressed_measured = h.compressed.cost() * e.compressed_model;
      p = h.decide(e);
    }
    note(h, p, !p ? 4e-5 : i < 3 ? 4e-3 : 1e-5);
    plainly += p ? 1 : 0;
  }
  EXPECT_GE(plainly, 150);
}

TEST(History, AsksRarelyWherePlainIsFaster) {
  History h;
  int asked = 0;
  for (int i = 0; i < 10000; ++i) {
    if (!h.at_once()) {
      ++asked;
      Estimates e = estimates(1e-5, 1e-3);  // an agreement takes ten times as long as the call
      e.plain_measured = h.plain.cost();
      EXPECT_TRUE(h.decide(e));
    }
    h.plain.note(1e-5);
  }
  EXPECT_LE(asked, 12);
}

/// Smooth and rough data take turns: so do these seconds. How many of the last hundred calls went plainly.
int plain_calls_of_mixed(const std::array<double, 2>& model, const std::array<double, 2>& compressed) {
  History h;
  int plainly = 0;
  for (std::size_t i = 0; i < 5000; ++i) {
    bool p = h.at_once();
    if (!p) {
      Estimates e = estimates(1, model[i % 2]);
      e.fraction = i % 2 == 0 ? 0.05 : 0.5;
      e.plain_measured = h.plain.cost();
      e.compressed_measured = h.compressed.cost() * e.compressed_model;
      p = h.decide(e);
    }
    note(h, p, p ? 3 : compressed[i % 2]);
    if (i >= 4900) plainly += p ? 1 : 0;
  }
  return plainly;
}

// Data that shrink more or less from call to call, as forward and backward transforms have them.
TEST(History, MixedDataCorrectTheModel) {
  EXPECT_GE(plain_calls_of_mixed({0.9, 1.2}, {60, 80}), 98);  // the model is wrong by as much for both
  EXPECT_LE(plain_calls_of_mixed({0.9, 1.2}, {0.9, 1.2}), 2);
  EXPECT_NEAR(plain_calls_of_mixed({0.5, 2}, {1.5, 6}), 50, 2) << "each kind of data goes its way";
}

/// Which calls of those that take this long, and shrink as `fraction` says of each, are looked at.
std::vector<bool> looked_at(std::size_t calls, double seconds, const std::function<double(std::size_t)>& fraction) {
  History h;
  std::vector<bool> looked;
  for (std::size_t i = 0; i < calls; ++i) {
    looked.push_back(!h.repeats());
    if (h.repeats()) {
      h.repeat();
      continue;
    }
    Estimates e = estimates(5 * seconds, seconds);
    e.fraction = fraction(i);
    e.plain_measured = h.plain.cost();
    e.compressed_measured = h.compressed.cost() * e.compressed_model;
    const bool plainly = h.decide(e);
    note(h, plainly, plainly ? e.plain_model : e.compressed_model);
  }
  return looked;
}

std::ptrdiff_t looks(const std::vector<bool>& looked, std::size_t first, std::size_t last) {
  const auto begin = looked.begin();
  return std::count(begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(last), true);
}

TEST(History, ShortCallsOfSteadyDataAreLookedAtRarely) {
  const auto steady = [](std::size_t i) { return i % 2 == 0 ? 0.25 : 0.26; };
  EXPECT_NEAR(static_cast<double>(looks(looked_at(1000, 5e-5, steady), 100, 1000)), 900 / 4, 30);
  EXPECT_NEAR(static_cast<double>(looks(looked_at(1000, 4e-3, steady), 100, 1000)), 900 / 4, 30);
  EXPECT_EQ(looks(looked_at(1000, 5e-3, steady), 0, 1000), 1000) << "to a long call a look is little";
}

TEST(History, OtherDataAreNoticedSoon) {
  const auto changes = [](std::size_t i) { return i < 500 ? 0.25 : 0.55; };
  const auto looked = looked_at(1000, 5e-5, changes);
  EXPECT_GE(looks(looked, 500, 504), 1);
  EXPECT_GE(looks(looked, 504, 512), 8) << "until they are known";
  EXPECT_LE(looks(looked, 600, 1000), 130);
}

// As transforms have them, forward and backward; and one of nine fields is another one.
TEST(History, DataThatTakeTurnsAreLookedAtEveryTime) {
  const auto in_turn = [](std::size_t i) { return i % 2 == 0 ? 0.25 : 0.55; };
  EXPECT_EQ(looks(looked_at(1000, 5e-5, in_turn), 0, 1000), 1000);
  const auto one_in_nine = [](std::size_t i) { return i % 9 == 8 ? 0.55 : 0.25; };
  EXPECT_EQ(looks(looked_at(1000, 5e-5, one_in_nine), 500, 1000), 500);
}

TEST(History, CallsThatAreNotLookedAtTakeTheScheduleThatIsFaster) {
  History h;
  for (int i = 0; i < 200; ++i) {
    if (h.repeats()) {
      EXPECT_TRUE(h.repeat()) << "call " << i;
      continue;
    }
    h.decide(estimates(1e-3, 1e-5));
    h.goes_directly(true, {1.1, 1}, {1.1, 1});  // now and then it tries the ring
  }
}

TEST(History, CallsThatTheModelWasNotAskedAboutAreNotNoted) {
  History h;
  for (int i = 0; i < 3; ++i) h.note_compressed(1, nullptr);
  EXPECT_EQ(h.compressed.cost(), 0);
}

TEST(History, WhatMustNotGoPlainlyIsAskedAgain) {
  History h;
  Estimates e = estimates(1, 10);
  e.plain_measured = 1;
  ASSERT_TRUE(h.decide(e));
  h.ask_next();
  EXPECT_FALSE(h.at_once());
}

/// Of a hundred compressed calls that take these seconds, how many of the last fifty went directly.
int direct_calls_of_last_fifty(bool expected, const ScheduleSeconds& model, const ScheduleSeconds& real) {
  History h;
  int direct = 0;
  for (int i = 0; i < 100; ++i) {
    const bool d = h.goes_directly(expected, model, {h.ring.cost(), h.direct.cost()});
    (d ? h.direct : h.ring).note(d ? real.direct : real.ring);
    if (i >= 50) direct += d ? 1 : 0;
  }
  return direct;
}

TEST(History, SchedulesFollowWhatTheyTook) {
  for (const bool expected : {false, true}) {
    for (const ScheduleSeconds model : {ScheduleSeconds{}, ScheduleSeconds{1, 1.2}, ScheduleSeconds{1.2, 1}}) {
      EXPECT_LE(direct_calls_of_last_fifty(expected, model, {1, 1.14}), 5);
      EXPECT_GE(direct_calls_of_last_fifty(expected, model, {1.14, 1}), 45);
    }
  }
}

TEST(History, SchedulesThatTheModelRulesOutAreNotTried) {
  EXPECT_EQ(direct_calls_of_last_fifty(false, {1, 2}, {1, 0.5}), 0);
  EXPECT_EQ(direct_calls_of_last_fifty(true, {2, 1}, {0.5, 1}), 50);
}

TEST(Measured, TheFirstCallDoesNotCount) {
  Measured m;
  m.note(1);
  m.note(5);
  EXPECT_EQ(m.cost(), 0);
  m.note(4);
  EXPECT_EQ(m.cost(), 4);
  for (int i = 0; i < 8; ++i) m.note(7);
  EXPECT_EQ(m.cost(), 7);
  for (const double luck : {2, 3}) {
    m.note(luck);
    EXPECT_EQ(m.cost(), 7) << "one or two are luck";
  }
  m.note(4);
  EXPECT_EQ(m.cost(), 4);
}

/// How many of 2000 calls go plainly, of which compressed ones take 2 seconds, and plain ones plain(i).
int plain_calls_beside_two_seconds(const std::function<double(int)>& plain) {
  History h;
  int plainly = 0;
  for (int i = 0; i < 2000; ++i) {
    bool p = h.at_once();
    if (!p) {
      Estimates e = estimates(3, 2);
      e.plain_measured = h.plain.cost();
      e.compressed_measured = h.compressed.cost() * e.compressed_model;
      p = h.decide(e);
    }
    note(h, p, p ? plain(i) : 2);
    plainly += p ? 1 : 0;
  }
  return plainly;
}

// Held up by the wire three times out of four.
TEST(History, LuckyCallsDoNotHideWhatCallsMostlyTake) {
  EXPECT_LE(plain_calls_beside_two_seconds([](int i) { return i % 4 == 0 ? 1.9 : 4; }), 200);
}

// A link lets most short messages through at once, and holds up some, often a few in a row.
TEST(History, CallsThatAreHeldUpInARowDoNotHideWhatCallsMostlyTake) {
  std::mt19937 random;
  EXPECT_GE(plain_calls_beside_two_seconds([&](int) { return random() % 10 < 3 ? 3 : 1.2; }), 1400);
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

TEST(Sample, TakesAFewChunksThatLieWithinTheArray) {
  for (const std::uint64_t count : {1U, 2048U, 5000U, 65536U, 100001U, 1000003U}) {
    const Sample s{count};
    EXPECT_LE(s.chunks(), std::max<std::uint64_t>(Sample::least_chunks, s.chunks_in_all() / Sample::one_in));
    EXPECT_LE(s.elements(), count);
    for (std::uint64_t i = 0; i < s.chunks(); ++i) {
      EXPECT_LT(s.first(i), count);
      EXPECT_TRUE(s.elements() == count || s.first(i) + frame::chunk_values <= count);
    }
  }
  EXPECT_EQ(Sample{std::uint64_t{1} << 40}.chunks(), Sample::most_chunks);
}

class CalibrationCache : public testing::Test {
 protected:
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("laconic-calibration-" + std::to_string(::getpid()));
  CalibrationCache() { CostCache::forget(); }
  ~CalibrationCache() override { std::filesystem::remove_all(folder); }

  std::vector<Costs> calibrate_on_all(const std::string& where, CodecKind kind = CodecKind::grid32) const {
    std::vector<Costs> all(3);
    const auto work = [&](Transport& t) {
      Costs& mine = all[static_cast<std::size_t>(t.rank())];
      mine.link = calibrate_link(t, host_memory(), where);
      mine.codec = calibrate_codec(kind, t, host_memory(), where);
    };
    run_ranks(3, work, 30);
    return all;
  }
  using Numbers = std::array<double, sizeof(Costs) / sizeof(double)>;
  static Numbers numbers(const Costs& c) { return std::bit_cast<Numbers>(c); }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  }
  static std::string title_of(const std::filesystem::path& file) {
    std::string line;
    std::ifstream in(file);
    std::getline(in, line);
    return line;
  }
};

TEST_F(CalibrationCache, AllRanksHoldTheSame) {
  for (std::size_t k = 0; k < codec_kinds; ++k) {
    const auto costs = calibrate_on_all("off", static_cast<CodecKind>(k));
    for (const Costs& c : costs) EXPECT_EQ(numbers(c), numbers(costs[0]));
    for (const double number : numbers(costs[0])) EXPECT_GT(number, 0);
    const CodecSpeed& speed = costs[0].codec;
    EXPECT_GT(speed.rough.bits, 1.3 * speed.smooth.bits) << "two points of a line, " << name_of(CodecKind(k));
    EXPECT_LT(speed.rough.bits, 62) << name_of(CodecKind(k));
  }
}

TEST_F(CalibrationCache, IsReadAgain) {
  calibrate_on_all(folder.string());
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string title = title_of(file.path());
    std::ofstream(file.path()) << title << (title.find("link") != title.npos ? "\n1 2\n" : "\n3 4 5 6 7 8 9 10\n");
  }
  const auto costs = calibrate_on_all(folder.string());
  for (const Costs& c : costs) EXPECT_EQ(numbers(c), (Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

/// Numbers as German programs write them: 1.234,5.
class German : public std::numpunct<char> {
  [[nodiscard]] char do_decimal_point() const override { return ','; }
  [[nodiscard]] char do_thousands_sep() const override { return '.'; }
  [[nodiscard]] std::string do_grouping() const override { return "\3"; }
};

TEST_F(CalibrationCache, IsTheSameInEveryLocaleOfTheProgram) {
  calibrate_on_all(folder.string());
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new German));
  calibrate_on_all(folder.string());
  std::locale::global(before);
  EXPECT_EQ(files(), 2) << "the names of the files are others";
}

TEST_F(CalibrationCache, MakesNoHomeForAUserWhoHasNone) {
  const auto before = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  const std::string home = before("HOME"), cache = before("XDG_CACHE_HOME");
  setenv("HOME", (folder / "nobody").c_str(), 1);
  setenv("XDG_CACHE_HOME", "relative", 1);  // which the specification wants ignored
  calibrate_on_all("");
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_FALSE(std::filesystem::exists("relative"));
  std::filesystem::create_directories(folder / "nobody");
  CostCache::forget();
  calibrate_on_all("");
  EXPECT_TRUE(std::filesystem::exists(folder / "nobody" / ".cache" / "laconic"));
  home.empty() ? unsetenv("HOME") : setenv("HOME", home.c_str(), 1);
  cache.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", cache.c_str(), 1);
}

TEST_F(CalibrationCache, WhatIsOldOrOfAnotherDayToComeIsMeasuredAgain) {
  const auto now = std::filesystem::file_time_type::clock::now();
  for (const int hours : {-1000, -25, 25, 100000}) {
    calibrate_on_all(folder.string());
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      const std::string title = title_of(file.path());
      std::ofstream(file.path()) << title << "\n3 4 5 6 7 8 9 10\n";
      std::filesystem::last_write_time(file.path(), now + std::chrono::hours(hours));
    }
    EXPECT_LT(calibrate_on_all(folder.string())[0].codec.smooth.add, 1e-6) << hours;
  }
}

TEST_F(CalibrationCache, EachKindHasAFileOfItsOwn) {
  calibrate_on_all(folder.string());
  EXPECT_EQ(files(), 2);
  calibrate_on_all(folder.string(), CodecKind::exact64);
  EXPECT_EQ(files(), 3);
  for (const auto& file : std::filesystem::directory_iterator(folder))
    EXPECT_EQ(title_of(file.path()).rfind("costs 2 | ", 0), 0) << "the format's number";
}

TEST_F(CalibrationCache, DamagedFilesAreMeasuredAgain) {
  calibrate_on_all(folder.string());
  for (const char* damage : {"", "nonsense", "\n\n1 2 3"}) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) std::ofstream(file.path()) << damage;
    EXPECT_LT(calibrate_on_all(folder.string())[0].codec.smooth.add, 1e-6);
  }
  for (const char* numbers :
       {"1 2 3", "0 0 0 0 0 0 0 0", "-1 -1 -1 -1 -1 -1 -1 -1", "nan nan nan nan nan nan nan nan"}) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      const std::string title = title_of(file.path());
      std::ofstream(file.path()) << title << '\n' << numbers << '\n';
    }
    const Costs costs = calibrate_on_all(folder.string())[0];
    EXPECT_GT(costs.codec.smooth.encode, 0) << numbers;
    EXPECT_LT(costs.codec.smooth.encode, 1e-6) << numbers;
  }
}

TEST_F(CalibrationCache, WhereThereIsNoFolderTheProcessKeepsWhatItMeasured) {
  for (const char* where : {"off", "/proc/no/such/folder"}) {
    CostCache::forget();
    EXPECT_GT(calibrate_on_all(where)[0].codec.smooth.add, 0) << where;
    const auto costs = calibrate_on_all(where);  // of the rank that kept them last: here all are of one process
    EXPECT_EQ(numbers(calibrate_on_all(where)[0]), numbers(costs[0])) << where;
    CostCache::forget();
    EXPECT_NE(numbers(calibrate_on_all(where)[0]), numbers(costs[0])) << where;
  }
}

}  // namespace
}  // namespace laconic::collective_routing_test
