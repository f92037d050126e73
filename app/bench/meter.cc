#include "bench/meter.h"

#include <fmt/core.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>

#include "bench/over_ranks.h"
#include "bench/timing.h"
#include "exit_code.h"

namespace laconic::app {
namespace {

/// Bytes that this host has sent through the interface so far.
double sent_through(const std::string& interface) {
  std::ifstream table("/proc/net/dev");
  std::string line;
  while (std::getline(table, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(' ');
    if (line.substr(begin, colon - begin) != interface) continue;
    std::array<double, 9> fields{};
    const char* p = line.c_str() + colon + 1;
    for (double& f : fields) {
      char* end = nullptr;
      f = std::strtod(p, &end);
      p = end;
    }
    return fields[8];  // eight fields of receiving come first
  }
  throw Failure(Exit::usage, fmt::format("--wire {}: this host has no such network interface", interface));
}

/// True on the one rank that speaks for its host: several ranks of a host share its interface.
bool speaks_for_host(Transport& t) {
  using Name = std::array<char, 64>;
  Name mine{};
  ::gethostname(mine.data(), mine.size() - 1);
  const auto all = allgather_value(t, mine);
  return std::find(all.begin(), all.end(), mine) - all.begin() == t.rank();
}

/// All ranks leave it together. The plain library's waiting does not sleep: a transport's does, and its ranks would
/// begin up to a tenth of a millisecond apart.
void meet(Transport& t) {
  allgather_value(t, std::uint8_t{0});
  if (PlainCollectives* const library = t.plain()) {
    std::int32_t all = 0;
    const MutArray one{&all, 1, DType::i32};
    library->allreduce(one, one, Op::sum);
  }
}

}  // namespace

Meter::Meter(Transport& t, std::string interface) : t_(t), interface_(std::move(interface)) {
  counts_wire_ = !interface_.empty() && speaks_for_host(t);
}

void Meter::call(const std::function<void()>& f, bool keep) {
  meet(t_);
  const double before = counts_wire_ ? sent_through(interface_) : 0;
  const double mine = time_once(f);
  const double slowest = max_over(t_, mine);
  const double bytes = sum_over(t_, counts_wire_ ? sent_through(interface_) - before : 0);
  if (first_ == 0) first_ = slowest;
  if (!keep) return;
  seconds_.push_back(slowest);
  bytes_.push_back(bytes);
}

double Meter::seconds() const { return median(seconds_); }
double Meter::fastest() const { return *std::min_element(seconds_.begin(), seconds_.end()); }
double Meter::slowest() const { return *std::max_element(seconds_.begin(), seconds_.end()); }
double Meter::wire_bytes() const { return median(bytes_); }

bool identical_everywhere(Transport& t, std::span<const std::uint8_t> bytes) {
  const auto crc = static_cast<std::uint32_t>(::crc32_z(0, bytes.data(), bytes.size()));
  const auto all = allgather_value(t, crc);
  return std::all_of(all.begin(), all.end(), [&](std::uint32_t c) { return c == all[0]; });
}

}  // namespace laconic::app
