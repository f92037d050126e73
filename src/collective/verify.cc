#include "collective/verify.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "collective/budget.h"
#include "collective/layout.h"
#include "collective/metadata.h"
#include "core/element.h"

namespace laconic {
namespace {

constexpr std::size_t slab_total = std::size_t{1} << 20;  // elements, over all ranks' blocks

template <typename Element>
void compare_as(ConstArray got, ConstArray exact, Tolerance tolerance, std::size_t first, Comparison& sum) {
  using Stored = typename Element::Stored;
  const auto at = [](ConstArray x, std::size_t i) {
    Stored stored;
    std::memcpy(&stored, static_cast<const std::uint8_t*>(x.data) + i * sizeof stored, sizeof stored);
    return Element::widen(stored);
  };
  for (std::size_t i = 0; i < got.count; ++i) {
    const auto a = at(got, i);
    const auto b = at(exact, i);
    if (a == b) continue;
    const auto x = static_cast<double>(a);
    const auto y = static_cast<double>(b);
    if (std::isnan(x) && std::isnan(y)) continue;
    // Integers may differ by less than a double can tell.
    double error = std::isfinite(x) && std::isfinite(y) ? std::abs(x - y) : std::numeric_limits<double>::infinity();
    using Value = std::remove_const_t<decltype(a)>;
    if constexpr (std::is_integral_v<Value>) {
      using Whole = std::make_unsigned_t<Value>;  // which no difference leaves
      error = static_cast<double>(static_cast<Whole>(std::max(a, b)) - static_cast<Whole>(std::min(a, b)));
    }
    if (std::isfinite(error)) sum.largest = std::max(sum.largest, error);
    if (error <= tolerance.bound || sum.offence) continue;
    const bool rounds = tolerance.bound > 0 && std::isfinite(error);
    const double ulp = rounds ? ulp_of(got.dtype, std::max(std::abs(x), std::abs(y))) : 0;
    if (rounds && error <= tolerance.bound + tolerance.ulps * ulp) continue;
    sum.offence = {first + i, x, y};
  }
}

std::string digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

/// The elements of each block from `first` on, at most `most` of them.
template <typename Array>
std::vector<Array> cut(const std::vector<Array>& blocks, std::size_t first, std::size_t most) {
  std::vector<Array> parts;
  for (const Array& b : blocks) {
    const std::size_t from = std::min(first, b.count);
    parts.push_back(slice_of(b, from, std::min(most, b.count - from)));
  }
  return parts;
}

/// Room for the same numbers of elements, one after the other.
class Gathered {
 public:
  template <typename Array>
  Gathered(const std::vector<Array>& parts, DType dtype) : dtype_(dtype) {
    for (const Array& p : parts) counts.push_back(p.count);
    room_ = std::make_unique_for_overwrite<std::uint8_t[]>(all().bytes());
  }
  [[nodiscard]] MutArray all() const {
    return {room_.get(), std::accumulate(counts.begin(), counts.end(), std::size_t{0}), dtype_};
  }
  std::vector<std::size_t> counts;

 private:
  DType dtype_;
  std::unique_ptr<std::uint8_t[]> room_;
};

}  // namespace

std::string text_of(const Comparison::Offence& o, double bound) {
  return "element " + std::to_string(o.element) + " is " + digits(o.got) + ", exactly " + digits(o.exact) +
         "; promised within " + digits(bound) + " (verification)";
}

void compare(ConstArray got, ConstArray exact, Tolerance tolerance, std::size_t first, Comparison& sum) {
  sum.count += got.count;
  if (got.count == 0 || std::memcmp(got.data, exact.data, got.bytes()) == 0) return;
  with_element(got.dtype, [&]<typename Element>(Element) { compare_as<Element>(got, exact, tolerance, first, sum); });
}

Verification::Verification(Blocks blocks, double ulps, int threads, Exactly exactly, Memory& memory)
    : blocks_(std::move(blocks)), ulps_(ulps), threads_(threads), exactly_(std::move(exactly)), memory_(memory) {
  const auto overwritten = [&](const ConstArray& operand) {
    return std::any_of(blocks_.results.begin(), blocks_.results.end(),
                       [&](const MutArray& result) { return overlap(operand, result); });
  };
  for (ConstArray& operand : blocks_.operands) {
    if (!blocks_.lent && !overwritten(operand)) continue;
    kept_.push_back(memory_.array_room(operand.bytes()));
    memory_.copy(kept_.back().get(), operand.data, operand.bytes());
    operand.data = kept_.back().get();
  }
}

Comparison Verification::compare_all(double bound, Communicator& comm) const {
  Comparison found;
  Options lossless;
  lossless.threads = threads_;
  lossless.mode = Mode::compressed;
  const std::size_t most = std::max<std::size_t>(slab_total / static_cast<std::size_t>(comm.size()), 1);
  const DType dtype = blocks_.operands.empty() ? blocks_.results[0].dtype : blocks_.operands[0].dtype;
  for (std::size_t first = 0; first < blocks_.longest; first += most) {
    const auto operands = cut(blocks_.operands, first, most);
    const auto results = cut(blocks_.results, first, most);
    const Gathered send(operands, dtype);
    const Gathered recv(results, dtype);
    const auto copies = split(send.all(), send.counts);
    for (std::size_t b = 0; b < operands.size(); ++b)
      memory_.copy(copies[b].data, operands[b].data, operands[b].bytes());
    exactly_({send.all(), send.counts, recv.all(), recv.counts}, comm, lossless);
    const auto exact = split(ConstArray(recv.all()), recv.counts);
    std::size_t before = 0;  // elements of the blocks before this one
    for (std::size_t b = 0; b < results.size(); ++b) {
      compare(HostOperand(memory_, results[b]).get(), exact[b], {bound, ulps_}, before + first, found);
      before += blocks_.results[b].count;
    }
  }
  return found;
}

void Verification::run(const char* collective, Communicator& comm, Report& report) const {
  Communicator quiet(comm.transport());
  try {
    const Comparison found = compare_all(report.result_bound, quiet);
    std::optional<Failure> failure;
    if (found.offence) {
      failure = {Code::internal, comm.rank(),
                 std::string(collective) + ": rank " + std::to_string(comm.rank()) + ": " +
                     text_of(*found.offence, report.result_bound)};
    }
    Report uncounted;
    confirm(quiet, failure, true, uncounted);
    const Achieved all = achieved_by_all(quiet, {found.largest, found.count}, uncounted);
    report.achieved_error = all.error;
    report.verified = all.count;
  } catch (...) {
    if (!quiet.usable()) comm.mark_unusable();
    throw;
  }
}

}  // namespace laconic
