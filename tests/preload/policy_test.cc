#include "preload/policy.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

#include "core/error.h"

namespace laconic::preload::policy_test {
namespace {

/// What parse_policy says of a text that it refuses.
std::string complaint(const std::string& toml) {
  try {
    parse_policy(toml, "p.toml");
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

constexpr std::uint64_t kib = 1024;

TEST(Pattern, StarsAndQuestionMarks) {
  EXPECT_TRUE(matches_pattern("", ""));
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_TRUE(matches_pattern("ocean*", "ocean_world"));
  EXPECT_TRUE(matches_pattern("*a*b", "xaab"));
  EXPECT_TRUE(matches_pattern("a?c", "abc"));
  EXPECT_TRUE(matches_pattern("*aab*aab", "aaabxaaab"));
  EXPECT_FALSE(matches_pattern("a?c", "ac"));
  EXPECT_FALSE(matches_pattern("ocean", "ocean_world"));
  EXPECT_FALSE(matches_pattern("*b", "abc"));
  EXPECT_FALSE(matches_pattern("", "x"));
}

TEST(Policy, FirstRuleThatMatchesWins) {
  const Policy p = parse_policy(R"(
# not the control data
[[rule]]
collective = "bcast"
mode = "off"

[[rule]]
collective = ["allreduce", "reduce"]
datatype = ["f32", "float64"]
op = "sum"
min_size = "64KiB"
max_size = "1GiB"
communicator = "ocean*"
min_ranks = 4
max_ranks = 64
label = "solve?"
bound = "1e-3rel"
codec = "slice"
mode = "compressed"

[[rule]]
min_size = 100
bound = "lossless"
)",
                                "p.toml");
  ASSERT_EQ(p.rules.size(), 3U);
  const Situation big{.collective = Collective::allreduce,
                      .dtype = DType::f64,
                      .op = Op::sum,
                      .bytes = 64 * kib,
                      .communicator = "ocean_north",
                      .ranks = 4,
                      .label = "solve1"};
  EXPECT_EQ(p.match(big), &p.rules[1]);
  EXPECT_EQ(p.rules[1].bound->to_string(), "0.001rel");
  EXPECT_EQ(*p.rules[1].mode, Mode::compressed);
  const auto changed = [&](auto change) {
    Situation s = big;
    change(s);
    return p.match(s);
  };
  EXPECT_EQ(changed([](Situation& s) { s.collective = Collective::bcast; }), nullptr);
  EXPECT_EQ(changed([](Situation& s) { s.bytes = 64 * kib - 1; }), &p.rules[2]);
  EXPECT_EQ(changed([](Situation& s) { s.bytes = (kib << 20) + 1; }), &p.rules[2]);
  EXPECT_EQ(changed([](Situation& s) { s.bytes = kib << 20; }), &p.rules[1]);
  EXPECT_EQ(changed([](Situation& s) { s.dtype = DType::i32; }), &p.rules[2]);
  EXPECT_EQ(changed([](Situation& s) { s.op = Op::min; }), &p.rules[2]);
  EXPECT_EQ(changed([](Situation& s) { s.ranks = 3; }), &p.rules[2]);
  EXPECT_EQ(changed([](Situation& s) { s.ranks = 65; }), &p.rules[2]);
  EXPECT_EQ(changed([](Situation& s) { s.communicator = "atmosphere"; }), &p.rules[2]);
  EXPECT_EQ(changed([](Situation& s) { s.label = "solve"; }), &p.rules[2]);
  EXPECT_EQ(changed([](Situation& s) { s.bytes = 99; }), nullptr);
  EXPECT_EQ(p.least_bytes(), 100U);
  EXPECT_TRUE(p.asks_for_names());
  EXPECT_TRUE(p.asks_for_labels());
}

TEST(Policy, SmallCallsAreLeftAloneUnlessARuleSaysOtherwise) {
  const Policy p = parse_policy("[[rule]]\nbound = '1e-3'\n", "p.toml");
  EXPECT_EQ(p.match({.bytes = default_min_bytes - 1, .ranks = 2}), nullptr);
  EXPECT_EQ(p.match({.bytes = default_min_bytes, .ranks = 2}), &p.rules[0]);
  EXPECT_FALSE(p.asks_for_names());
  EXPECT_EQ(Policy{}.least_bytes(), std::numeric_limits<std::uint64_t>::max());
}

TEST(Policy, WhatARuleProtectsIsProtectedWhateverItsSize) {
  const char* const later = "[[rule]]\nbound = '1e-3'\nmin_size = 0\nmode = 'compressed'\n";
  const auto small_of = [](const Policy& p, std::string_view communicator, std::string_view label) {
    return p.match({.bytes = 4000, .communicator = communicator, .ranks = 2, .label = label});
  };
  for (const char* const how : {"bound = 'lossless'", "mode = 'off'", "mode = 'plain'", "bound = '1e-6'"}) {
    const Policy named =
        parse_policy(std::string("[[rule]]\ncommunicator = 'restart*'\n") + how + "\n" + later, "p.toml");
    EXPECT_EQ(small_of(named, "restart 1", ""), nullptr) << how;
    EXPECT_EQ(small_of(named, "ocean", ""), &named.rules[1]) << how;
    const Policy labelled = parse_policy(std::string("[[rule]]\nlabel = 'evaluate'\n") + how + "\n" + later, "p.toml");
    EXPECT_EQ(small_of(labelled, "", "evaluate"), nullptr) << how;
    EXPECT_EQ(small_of(labelled, "", "train"), &labelled.rules[1]) << how;
    EXPECT_TRUE(labelled.depends_on_label({.bytes = 4000, .ranks = 2})) << how;
  }
  const Policy large = parse_policy("[[rule]]\nlabel = 'x'\nbound = '1'\n[[rule]]\nmin_size = '1MiB'\n", "p.toml");
  EXPECT_FALSE(large.depends_on_label({.bytes = 4000, .ranks = 2}));  // nothing serves it
  EXPECT_TRUE(large.depends_on_label({.bytes = default_min_bytes, .ranks = 2}));
}

TEST(Policy, WhatIsOffWhateverElseItIsNeedsNoLook) {
  const auto serves = [](const char* rules, Collective c) { return parse_policy(rules, "p.toml").serves_some(c); };
  EXPECT_FALSE(serves("[[rule]]\nmode = 'off'\n[[rule]]\n", Collective::gather));
  EXPECT_TRUE(serves("[[rule]]\nmode = 'off'\ncollective = 'scatter'\n[[rule]]\n", Collective::gather));
  EXPECT_FALSE(serves("[[rule]]\nmode = 'off'\ncollective = 'gather'\n[[rule]]\n", Collective::gather));
  EXPECT_TRUE(serves("[[rule]]\nmode = 'off'\nmax_size = '1MiB'\n[[rule]]\n", Collective::gather));
  EXPECT_TRUE(serves("[[rule]]\nmode = 'off'\nmin_size = '8KiB'\n[[rule]]\nmin_size = 0\n", Collective::gather));
  EXPECT_TRUE(serves("[[rule]]\ndatatype = 'f32'\n[[rule]]\nmode = 'off'\n", Collective::gather));
  EXPECT_FALSE(serves("[[rule]]\ncollective = 'bcast'\n[[rule]]\nmode = 'off'\n", Collective::gather));
}

TEST(Policy, WhatIsOffForOneNameIsServedForOthers) {
  const auto serves = [](const char* rules, std::string_view name) {
    return parse_policy(rules, "p.toml").serves_some(name);
  };
  const char* const tensor_off = "[[rule]]\ncommunicator = 'tensor*'\nmode = 'off'\n[[rule]]\n";
  EXPECT_FALSE(serves(tensor_off, "tensor 3"));
  EXPECT_TRUE(serves(tensor_off, "data"));
  EXPECT_TRUE(serves(tensor_off, ""));
  EXPECT_TRUE(serves("[[rule]]\ncommunicator = 'x'\nmode = 'off'\nmax_size = '1MiB'\n[[rule]]\n", "x"));
  EXPECT_TRUE(serves("[[rule]]\ncommunicator = 'x'\nmode = 'off'\ncollective = 'bcast'\n[[rule]]\n", "x"));
  EXPECT_FALSE(serves("[[rule]]\ncommunicator = 'x'\n[[rule]]\nmode = 'off'\n", "y"));
}

TEST(Policy, ANameMattersWhereARuleThatAsksForItMayDecide) {
  const auto matters = [](const char* rules, std::uint64_t bytes) {
    return parse_policy(rules, "p.toml").depends_on_name({.bytes = bytes, .ranks = 2});
  };
  const char* const tensor_off = "[[rule]]\ncommunicator = 'tensor*'\nmode = 'off'\n[[rule]]\nbound = '1'\n";
  EXPECT_TRUE(matters(tensor_off, default_min_bytes));
  EXPECT_FALSE(matters(tensor_off, default_min_bytes - 1));  // nothing serves it
  EXPECT_FALSE(matters("[[rule]]\nmode = 'off'\n[[rule]]\ncommunicator = 'x'\n", kib * kib));
  EXPECT_FALSE(matters("[[rule]]\ncommunicator = 'x'\nmode = 'off'\n[[rule]]\nmode = 'off'\n", kib * kib));
  EXPECT_FALSE(matters("[[rule]]\ncommunicator = 'x'\nmin_size = '2MiB'\n[[rule]]\n", kib * kib));
  EXPECT_FALSE(matters("[[rule]]\ncommunicator = 'x'\nlabel = 'y'\n[[rule]]\n", kib * kib));
  EXPECT_FALSE(matters("[[rule]]\n", kib * kib));
}

TEST(Policy, MistakesNameTheLine) {
  EXPECT_EQ(complaint("[[rule]]\nbound = \"1e-3\"\n"), "accepted");
  EXPECT_EQ(complaint("[[rule]]\n\nbund = \"1e-3\"\n").substr(0, 32), "p.toml:3:1: 'bund' is no member ");
  EXPECT_EQ(complaint("[[rule]]\nbound = \"much\"\n").substr(0, 34), "p.toml:2:9: bound: bound 'much': w");
  EXPECT_EQ(complaint("[[rule]]\nbound = 1e-3\n"), "p.toml:2:9: bound wants a text in quotes");
  EXPECT_EQ(complaint("[[rule]]\ncollective = [\"bcast\", \"barrier\"]\n").substr(0, 35),
            "p.toml:2:24: collective: 'barrier' ");
  EXPECT_EQ(complaint("[[rule]]\nop = \"prod\"\n"),
            "p.toml:2:6: op: MPI's prod is never compressed: want sum, min or max");
  EXPECT_EQ(complaint("[[rule]]\nmin_size = \"64 KB\"\n"),
            "p.toml:2:12: min_size is '64 KB': want bytes, or a number with KiB, MiB or GiB");
  EXPECT_EQ(complaint("[[rule]]\nmin_size = \"99999999999GiB\"\n").substr(0, 30), "p.toml:2:12: min_size is '9999");
  EXPECT_EQ(complaint("[[rule]]\nmin_size = -1\n"), "p.toml:2:12: min_size is negative");
  EXPECT_EQ(complaint("[[rule]]\nmin_ranks = 0\n"), "p.toml:2:13: min_ranks wants a number of ranks, 1 or more");
  EXPECT_EQ(complaint("[[rule]]\nmin_size = 10\nmax_size = 9\n"), "p.toml:3:12: no size is both min_size and max_size");
  EXPECT_EQ(complaint("[[rule]]\nbound = '1e-3'\nmax_size = \"8KiB\"\n").substr(0, 44),
            "p.toml:3:12: calls of less than 16 KiB are l");
  EXPECT_EQ(complaint("[[rule]]\nmode = 'off'\nmax_size = \"8KiB\"\n"), "accepted");
  EXPECT_EQ(complaint("[[rule]]\nmin_size = 0\nmax_size = \"8KiB\"\n"), "accepted");
  EXPECT_EQ(complaint("[[rule]]\nmax_ranks = 1\n"), "p.toml:2:13: calls over one rank are never served");
  EXPECT_EQ(complaint("[[rule]]\ncollective = [\"bcast\", \"alltoall\"]\nop = \"sum\"\n"),
            "p.toml:3:6: op: none of these collectives has one");
  EXPECT_EQ(complaint("[[rule]]\ncollective = [\"bcast\", \"reduce\"]\nop = \"sum\"\n"), "accepted");
  EXPECT_EQ(complaint("[[rule]]\nmode = \"sometimes\"\n"),
            "p.toml:2:8: mode: 'sometimes' is none of auto, compressed, plain, off");
  EXPECT_EQ(complaint("[[rule]]\ncodec = \"gzip\"\n").substr(0, 19), "p.toml:2:9: codec: ");
  EXPECT_EQ(complaint("[[rule]]\ndatatype = []\n").substr(0, 40), "p.toml:2:12: datatype is an empty list: ");
  EXPECT_EQ(complaint("[[rule]]\nlabel = ''\n"), "p.toml:2:9: label is empty: leave it out to mean any");
  EXPECT_EQ(complaint("[[rule]]\ncommunicator = ''\n"), "p.toml:2:16: communicator is empty: leave it out to mean any");
  EXPECT_EQ(complaint("[[rule]]\ncodec = \"szx\"\ndatatype = \"i32\"\nbound = \"1\"\n").substr(0, 18),
            "p.toml:2:9: codec:");
  EXPECT_EQ(complaint("[[rule]]\ncodec = \"szx\"\ndatatype = \"i32\"\n").substr(0, 18), "p.toml:2:9: codec:");
  EXPECT_EQ(complaint("[[rule]]\ndatatype = [\"i32\", \"f32\"]\nbound = \"10x\"\n"), "accepted");
  EXPECT_EQ(complaint("[[rule]]\ndatatype = [\"f32\", \"f16\"]\nbound = \"33x\"\n").substr(0, 26),
            "p.toml:3:9: bound: a ratio");
  EXPECT_EQ(complaint("[[rule]]\ncodec = \"lz4\"\nbound = \"10x\"\n").substr(0, 18), "p.toml:3:9: bound:");
  EXPECT_EQ(complaint("[[rule]]\ncodec = \"szx\"\nbound = \"10x\"\n"), "accepted");
  EXPECT_EQ(complaint("[[rule]]\nmin_ranks = 4\n\nmax_ranks = 2\n"),
            "p.toml:4:13: no communicator has min_ranks and max_ranks");
  EXPECT_EQ(complaint("[[rules]]\n").substr(0, 31), "p.toml:1:3: 'rules' is not know");
  EXPECT_EQ(complaint("[[rule]\n").substr(0, 9), "p.toml:1:");
  EXPECT_EQ(complaint("rule = 1\n").substr(0, 12), "p.toml:1:1: ");
}

// Of some of these the parser would make anything.
TEST(Policy, CharactersThatMeanNothing) {
  EXPECT_EQ(complaint("[[rule]]\nmode \xC4\xA4= 'off'\n"),
            "p.toml:2:6: a character that means nothing outside of quotes");
  EXPECT_EQ(complaint("[[rule]]\n\x1A"), "p.toml:2:1: a character that means nothing outside of quotes");
  EXPECT_EQ(complaint("[[rule]]\nmode = x'off'\n"), "p.toml:2:9: a quotation mark within a word");
  EXPECT_EQ(complaint("[[rule]]\nlabel = \"\xC3\xA9\n"), "p.toml:2:9: a text without its closing quotation mark");
  EXPECT_EQ(complaint("[[rule]]\nlabel = '''\xC3\xA9"), "p.toml:2:9: a text without its closing quotation mark");
  EXPECT_EQ(complaint("[[rule]]\nlabel = \"\"\"a\"\"\"\"\n"), "accepted");
  for (const char* header : {"[=]", "[ \t\n", "[[#]]", "[", "[[", "[[\r\n"})
    EXPECT_EQ(complaint(header).substr(0, 9), "p.toml:1:") << header;
  EXPECT_EQ(
      complaint("\xEF\xBB\xBF[[rule]] # gr\xC3\xBC\xC3\x9F\r\nlabel = \"\xC3\xA9\\\"*\" #\ncommunicator='\xC3\xA9\\'"),
      "accepted");
  EXPECT_EQ(complaint("[[rule]]\nlabel = \"\"\"\n\"\xC3\xA9\"\n\"\"\" # \"\nmode = 'off'\n"), "accepted");
}

TEST(Policy, WhatIsTooLongIsNotRead) {
  std::string deep = "[a";
  for (int i = 0; i < 200'000; ++i) deep += ".a";
  EXPECT_EQ(complaint(deep + "]\n"), "p.toml: a policy of more than 64 KiB (400004 bytes) is not read");
  EXPECT_EQ(complaint(deep.substr(0, 4'000) + "]\n").substr(0, 25), "p.toml:1:2: 'a' is not kn");
}

TEST(Policy, ARuleLeavesAloneWhatItsCodecDoesNotTake) {
  const Policy p = parse_policy("[[rule]]\ncodec = 'szx'\nbound = '1e-3'\n[[rule]]\n", "p.toml");
  EXPECT_EQ(p.match({.dtype = DType::f64, .bytes = 1 << 20, .ranks = 2}), &p.rules[0]);
  EXPECT_EQ(p.match({.dtype = DType::i32, .bytes = 1 << 20, .ranks = 2}), &p.rules[1]);
  EXPECT_EQ(p.match({.dtype = DType::bf16, .bytes = 1 << 20, .ranks = 2}), &p.rules[1]);
  if (!find_codec("zfp-rate").available()) return;
  const Policy rate = parse_policy("[[rule]]\ncodec = 'zfp-rate'\nbound = '20x'\n", "p.toml");  // f32's end at 14.2x
  EXPECT_NE(rate.match({.dtype = DType::f64, .bytes = 1 << 20, .ranks = 2}), nullptr);
  EXPECT_EQ(rate.match({.dtype = DType::f32, .bytes = 1 << 20, .ranks = 2}), nullptr);
}

TEST(Policy, ABoundNeedOnlySuitRulesThatServeWithinIt) {
  const std::string path = testing::TempDir() + "laconic_off_policy.toml";
  std::ofstream(path) << "[[rule]]\ncollective = 'bcast'\nbound = '1e-3'\n[[rule]]\nmode = 'off'\n";
  Config config;
  config.policy = path;
  config.bound = Bound::parse("10x");
  const Policy p = policy_of(config);
  EXPECT_EQ(p.rules.size(), 2U);
  EXPECT_EQ(p.match({.collective = Collective::allreduce, .bytes = 1 << 20, .ranks = 2}), nullptr);
  EXPECT_NE(p.match({.collective = Collective::bcast, .bytes = 1 << 20, .ranks = 2}), nullptr);
  std::remove(path.c_str());
}

TEST(Policy, NothingTinyIsServedUnlessThatIsAskedForOutright) {
  const std::string path = testing::TempDir() + "laconic_tiny_policy.toml";
  std::ofstream(path)
      << "[[rule]]\ncollective = \"bcast\"\nmin_size = 0\n[[rule]]\nmin_size = 0\nmode = \"compressed\"\n";
  Config config;
  config.policy = path;
  config.mode = Mode::automatic;
  const Policy automatic = policy_of(config);
  const auto served = [](const Policy& policy, Collective collective, std::uint64_t bytes) {
    return policy.match({.collective = collective, .bytes = bytes, .ranks = 4}) != nullptr;
  };
  EXPECT_FALSE(served(automatic, Collective::bcast, least_auto_bytes - 1));  // and no later rule takes it
  EXPECT_TRUE(served(automatic, Collective::bcast, least_auto_bytes));
  EXPECT_TRUE(served(automatic, Collective::allreduce, 4));
  EXPECT_EQ(automatic.least_bytes(), 0U);
  config.mode = Mode::compressed;
  EXPECT_TRUE(served(policy_of(config), Collective::bcast, 4));
  std::remove(path.c_str());
}

TEST(Policy, TheEnvironmentStandsBehindTheRules) {
  Config config;
  config.bound = Bound::parse("1e-3");
  config.mode = Mode::compressed;
  config.threads = 2;
  const Policy all = policy_of(config);
  ASSERT_EQ(all.rules.size(), 1U);
  const Options o = options_under(all.rules[0], config);
  EXPECT_EQ(o.bound, Bound::parse("1e-3"));
  EXPECT_EQ(o.mode, Mode::compressed);
  EXPECT_EQ(o.threads, 2);
  Rule own;
  own.bound = Bound::parse("lossless");
  own.mode = Mode::plain;
  EXPECT_EQ(options_under(own, config).bound.kind, BoundKind::lossless);
  EXPECT_EQ(options_under(own, config).mode, Mode::plain);
  EXPECT_EQ(options_under(Rule{}, Config{}).bound.kind, BoundKind::lossless);  // nothing is lossy by accident
  config.bound = Bound::parse("100x");                                         // f32 has 32 bits
  EXPECT_THROW(policy_of(config), Error);
  config.bound.reset();
  config.policy = "/nowhere/policy.toml";
  EXPECT_THROW(policy_of(config), Error);
  const std::pair<const char*, const char*> nothings[] = {
      {"/dev/zero", "longer than 64 KiB"}, {"/", "Is a directory"}, {"/nowhere/p.toml", "No such file"}};
  for (const auto& [nothing, why] : nothings) {
    try {
      load_policy(nothing);
      ADD_FAILURE() << nothing;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  }
  EXPECT_TRUE(load_policy("/dev/null").rules.empty());
}

}  // namespace
}  // namespace laconic::preload::policy_test
