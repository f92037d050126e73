#include "core/bound.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "core/error.h"

namespace laconic::bound_test {
namespace {

std::string refusal(std::string_view text) {
  try {
    const Bound b = Bound::parse(text);
    return "accepted as " + b.to_string();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::invalid_argument);
    return e.what();
  }
}

TEST(Bound, ParsesEveryForm) {
  EXPECT_EQ(Bound::parse("1e-3"), (Bound{BoundKind::absolute, BoundScope::result, 1e-3}));
  EXPECT_EQ(Bound::parse("0.25"), (Bound{BoundKind::absolute, BoundScope::result, 0.25}));
  EXPECT_EQ(Bound::parse("1e-4rel"), (Bound{BoundKind::relative, BoundScope::result, 1e-4}));
  EXPECT_EQ(Bound::parse("80dB"), (Bound{BoundKind::psnr, BoundScope::result, 80}));
  EXPECT_EQ(Bound::parse("10x"), (Bound{BoundKind::ratio, BoundScope::result, 10}));
  EXPECT_EQ(Bound::parse("lossless"), Bound{});
  EXPECT_EQ(Bound::parse("operand:1e-3rel"), (Bound{BoundKind::relative, BoundScope::operand, 1e-3}));
  EXPECT_EQ(Bound::parse("operand:lossless"), (Bound{BoundKind::lossless, BoundScope::operand, 0}));
  EXPECT_EQ(Bound::parse("6sigma:1e-3rel"), (Bound{BoundKind::relative, BoundScope::sigmas, 1e-3, 6}));
  EXPECT_EQ(Bound::parse("2.5sigma:80dB"), (Bound{BoundKind::psnr, BoundScope::sigmas, 80, 2.5}));
  EXPECT_EQ(Bound::parse("5e-324"), (Bound{BoundKind::absolute, BoundScope::result, 5e-324}));
}

TEST(Bound, IsTheSameHoweverTheProgramRounds) {
  for (const int way : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(way);
    const Bound rounded_down = Bound::parse("0.7"), rounded_up = Bound::parse("0.1rel");
    const int kept = std::fegetround();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(rounded_down.value, 0.7);
    EXPECT_EQ(rounded_up.value, 0.1);
    EXPECT_EQ(kept, way);
  }
}

TEST(Bound, ZeroIsLossless) {
  for (const char* text : {"0", "0.0", "0e5", "0rel"}) EXPECT_EQ(Bound::parse(text), Bound{}) << text;
}

TEST(Bound, RefusalShowsTextAndPosition) {
  EXPECT_EQ(refusal("1e-3re"),
            "bound '1e-3re': unknown suffix; want none, 'rel', 'dB' or 'x' at position 5\n"
            "  1e-3re\n"
            "      ^");
  EXPECT_EQ(refusal("operand:-1"),
            "bound 'operand:-1': the number must not be negative at position 9\n"
            "  operand:-1\n"
            "          ^");
}

TEST(Bound, RefusesNonsense) {
  const struct {
    std::string text;
    std::string says;
  } cases[] = {
      {"", "nothing there"},
      {"operand:", "nothing there"},
      {"-1e-3", "negative"},
      {"-0", "negative"},
      {"nan", "finite"},
      {"inf", "finite"},
      {"-inf", "finite"},
      {"infinityrel", "finite"},
      {"1e999", "fit a double"},
      {"1e-999", "fit a double"},
      {"1e-3 ", "unknown suffix"},
      {" 1e-3", "want a number"},
      {"+1e-3", "want a number"},
      {"1,5", "unknown suffix"},
      {"0x10", "unknown suffix"},
      {"1e-3relrel", "unknown suffix"},
      {"80db", "unknown suffix"},
      {"0dB", "above 0 dB"},
      {"0x", "at least 1"},
      {"0.5x", "at least 1"},
      {"Lossless", "want a number"},
      {"lossless1", "want a number"},
      {"operand:operand:1", "want a number"},
      {"operand:4sigma:1", "unknown suffix"},
      {"sigma:1e-3", "want a number"},
      {"4 sigma:1e-3", "want 'sigma:'"},
      {"4sigma:", "nothing there"},
      {"4sigma:4sigma:1", "unknown suffix"},
      {"1.9sigma:1e-3", "at least 2 sigma"},
      {"-4sigma:1e-3", "negative"},
      {"infsigma:1e-3", "finite"},
      {"4sigma", "unknown suffix"},
      {std::string("1e-3\0rel", 8), "unknown suffix"},
  };
  for (const auto& c : cases) {
    const std::string said = refusal(c.text);
    EXPECT_NE(said.find(c.says), std::string::npos) << "for '" << c.text << "' said: " << said;
    EXPECT_NE(said.find(" at position "), std::string::npos) << said;
  }
}

TEST(Bound, RefusalStaysShortAndPrintable) {
  const std::string said = refusal(std::string(100000, '\x01'));
  EXPECT_LT(said.size(), 400U);
  for (char c : said) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
}

TEST(Bound, TextRoundTrips) {
  for (double v : {1e-3, 0.1, 1.0 / 3, 5e-324, 1e300, 1.0, 123456.789}) {
    for (BoundKind kind : {BoundKind::absolute, BoundKind::relative, BoundKind::psnr, BoundKind::ratio}) {
      if (kind == BoundKind::ratio && v < 1) continue;
      for (BoundScope scope : {BoundScope::result, BoundScope::operand}) {
        const Bound b{kind, scope, v};
        EXPECT_EQ(Bound::parse(b.to_string()), b) << b.to_string();
      }
      for (const double sigmas : {2.0, 4.0, 10.0 / 3}) {
        const Bound b{kind, BoundScope::sigmas, v, sigmas};
        EXPECT_EQ(Bound::parse(b.to_string()), b) << b.to_string();
      }
    }
  }
  EXPECT_EQ(Bound::parse("operand:lossless").to_string(), "operand:lossless");
  EXPECT_EQ(Bound::parse("0.001rel").to_string(), "0.001rel");
  EXPECT_EQ(Bound::parse("4.0sigma:1e-3rel").to_string(), "4sigma:0.001rel");
}

TEST(Bound, IgnoresTheLocale) {
  // Any locale with a decimal comma will do; where none is installed the C locale is tested again.
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"}) {
    if (std::setlocale(LC_ALL, name) != nullptr) break;
  }
  EXPECT_EQ(Bound::parse("1.5e-3").value, 1.5e-3);
  EXPECT_EQ((Bound{BoundKind::absolute, BoundScope::result, 0.5}).to_string(), "0.5");
  std::setlocale(LC_ALL, before.c_str());
}

TEST(Bound, AbsoluteForARange) {
  EXPECT_EQ(Bound::parse("1e-3").absolute_for(1e9), 1e-3);
  EXPECT_EQ(Bound::parse("1e-3rel").absolute_for(200), 1e-3 * 200);
  EXPECT_EQ(Bound::parse("1e-3rel").absolute_for(0), 0);
  EXPECT_EQ(Bound::parse("lossless").absolute_for(200), 0);
  // rms of an error uniform in [-e, e] is e / sqrt(3): the PSNR must come out as asked.
  const double e = Bound::parse("80dB").absolute_for(7);
  EXPECT_NEAR(20 * std::log10(7 / (e / std::sqrt(3.0))), 80, 1e-9);
}

// Ranks compare the grids that follow: pow() gives other bits on processors that have fused operations.
TEST(Bound, OfDecibelsIsTheSameOnEveryProcessorAndHardlyLessThanAsked) {
  std::uint64_t digest = 0xCBF29CE484222325;
  for (int i = 1; i <= 4000; ++i) {
    const double decibels = i * 0.37;
    const double got = Bound{BoundKind::psnr, BoundScope::result, decibels}.absolute_for(1);
    const long double exact = std::sqrt(3.0L) * std::pow(10.0L, static_cast<long double>(-decibels) / 20);
    EXPECT_LE(got, exact) << decibels;
    EXPECT_GE(got, exact * (1 - 0x1p-38L)) << decibels;
    digest = (digest ^ std::bit_cast<std::uint64_t>(got)) * 0x100000001B3;
  }
  EXPECT_EQ(digest, 7731644942677833193U);
  EXPECT_EQ(Bound::parse("1e300dB").absolute_for(1), 0);
}

TEST(Bound, AbsoluteForARangeThatOverflowed) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Bound::parse("0.5rel").absolute_for(infinite), 0.5 * std::numeric_limits<double>::max());
  EXPECT_TRUE(std::isfinite(Bound::parse("1e10rel").absolute_for(infinite)));
  EXPECT_TRUE(std::isfinite(Bound::parse("80dB").absolute_for(infinite)));
  EXPECT_TRUE(std::isfinite(Bound::parse("1dB").absolute_for(infinite)));
}

TEST(Bound, AbsoluteForRefusesWhatIsNoWidth) {
  const Bound b = Bound::parse("1e-3rel");
  EXPECT_THROW((void)b.absolute_for(std::nan("")), Error);
  try {
    (void)b.absolute_for(-1e-9);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), "range -1e-09 is no width of values; want 0 or more");
  }
  try {
    (void)Bound::parse("10x").absolute_for(1);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::unsupported);
  }
}

}  // namespace
}  // namespace laconic::bound_test
