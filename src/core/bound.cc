#include "core/bound.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "core/error.h"
#include "core/float_environment.h"
#include "core/shortest.h"

namespace laconic {
namespace {

constexpr std::string_view operand_prefix = "operand:";
constexpr std::string_view sigma_prefix = "sigma:";  // behind a number

/// The input as it may be shown: printable, one line, not endless.
std::string shown(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string out(text.substr(0, longest));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > longest ? out + "..." : out;
}

[[noreturn]] void refuse(std::string_view text, std::size_t position, const std::string& why) {
  throw Error(Code::invalid_argument, "bound '" + shown(text) + "': " + why + " at position " +
                                          std::to_string(position + 1) + "\n  " + shown(text) + "\n  " +
                                          std::string(position, ' ') + "^");
}

constexpr const char* forms = "want a number such as 1e-3, 1e-4rel, 80dB or 10x, or 'lossless'";

/// Reads the number at `at` and moves past it. std::from_chars: the decimal point is a point in every locale.
double parse_number(std::string_view text, std::size_t& at) {
  double value = 0;
  const char* first = text.data() + at;
  const auto [end, error] = std::from_chars(first, text.data() + text.size(), value);
  if (error == std::errc::invalid_argument) refuse(text, at, forms);
  if (error == std::errc::result_out_of_range) refuse(text, at, "the number does not fit a double");
  if (!std::isfinite(value)) refuse(text, at, "the number must be finite");
  if (std::signbit(value)) refuse(text, at, "the number must not be negative");
  at += static_cast<std::size_t>(end - first);
  return value;
}

/// Reads what says whom the bound is promised to, if anything does, and moves past it.
void parse_scope(std::string_view text, std::size_t& at, Bound& out) {
  if (text.starts_with(operand_prefix)) {
    out.scope = BoundScope::operand;
    at = operand_prefix.size();
  } else if (text.find(sigma_prefix) != std::string_view::npos) {
    out.scope = BoundScope::sigmas;
    out.sigmas = parse_number(text, at);
    if (!text.substr(at).starts_with(sigma_prefix)) refuse(text, at, "want 'sigma:' behind the first number");
    if (out.sigmas < 2) refuse(text, 0, "want at least 2 sigma");
    at += sigma_prefix.size();
  }
}

std::optional<BoundKind> kind_of_suffix(std::string_view suffix) {
  if (suffix.empty()) return BoundKind::absolute;
  if (suffix == "rel") return BoundKind::relative;
  if (suffix == "dB") return BoundKind::psnr;
  if (suffix == "x") return BoundKind::ratio;
  return std::nullopt;
}

std::string_view suffix_of(BoundKind kind) {
  switch (kind) {
    case BoundKind::relative:
      return "rel";
    case BoundKind::psnr:
      return "dB";
    case BoundKind::ratio:
      return "x";
    case BoundKind::lossless:
    case BoundKind::absolute:
      break;
  }
  return "";
}

/// 10^(-decibels / 20), or up to 2^-38 of it less. Ranks on unlike processors must come to the same bits, which by
/// pow() they do not; so it is made of operations that IEEE 754 defines to the last bit.
double amplitude_of(double decibels) {
  constexpr double octaves_per_decibel = 0.16609640474436813;  // log2(10) / 20
  const double octaves = std::min(decibels * octaves_per_decibel, 2000.0);
  const double whole = std::floor(octaves);
  const double x = (octaves - whole) * std::numbers::ln2;
  double power = 1;  // e^-x by its series
  for (int k = 20; k > 0; --k) power = 1 - x / k * power;
  return std::ldexp(power * (1 - 0x1p-39), -static_cast<int>(whole));  // more than all the roundings before
}

}  // namespace

Bound Bound::parse(std::string_view text) {
  const FloatEnvironment environment;  // std::from_chars rounds as the program does
  Bound out;
  std::size_t at = 0;
  parse_scope(text, at, out);
  if (text.size() == at) refuse(text, at, std::string("nothing there; ") + forms);
  if (text.substr(at) == "lossless") return out;

  const std::size_t number_at = at;
  out.value = parse_number(text, at);
  const auto kind = kind_of_suffix(text.substr(at));
  if (!kind) refuse(text, at, "unknown suffix; want none, 'rel', 'dB' or 'x'");
  out.kind = *kind;
  if (out.kind == BoundKind::psnr && out.value == 0) refuse(text, number_at, "a PSNR must be above 0 dB");
  if (out.kind == BoundKind::ratio && out.value < 1) refuse(text, number_at, "a ratio must be at least 1");
  if (out.value == 0) out.kind = BoundKind::lossless;
  return out;
}

std::string Bound::to_string() const {
  std::string out(scope == BoundScope::operand ? operand_prefix : "");
  if (scope == BoundScope::sigmas) out.append(shortest(sigmas)).append(sigma_prefix);
  if (kind == BoundKind::lossless) return out + "lossless";
  return out.append(shortest(value)).append(suffix_of(kind));
}

double Bound::absolute_for(double range) const {
  if (std::isnan(range) || range < 0) {
    throw Error(Code::invalid_argument, "range " + shortest(range) + " is no width of values; want 0 or more");
  }
  // A width that overflowed is larger than this, so the bound that follows is tighter than what was asked for.
  range = std::min(range, std::numeric_limits<double>::max());
  switch (kind) {
    case BoundKind::lossless:
      return 0;
    case BoundKind::absolute:
      return value;
    case BoundKind::relative:
      return std::min(value * range, std::numeric_limits<double>::max());
    case BoundKind::psnr:
      return std::min(std::sqrt(3.0) * (range * amplitude_of(value)), std::numeric_limits<double>::max());
    case BoundKind::ratio:
      break;
  }
  throw Error(
      Code::unsupported,
      "bound '" + to_string() + "': a fixed ratio promises nothing about the error; state a bound such as 1e-3rel");
}

}  // namespace laconic
