#include "collective/block_counts.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "collective/exchange.h"
#include "collective/pool.h"
#include "core/error.h"

namespace laconic {
namespace {

constexpr int counts_tag = 0;  // nothing else is under way

/// A block that is not what its receiver expects.
struct Odd {
  std::uint64_t from = 0, to = 0, sent = 0, expected = 0;
};

/// What one rank has found. No padding.
struct Summary {
  std::uint64_t largest = 0;  ///< of the blocks that it sends
  std::uint64_t any = 0;      ///< `odd` is one that comes to it, from the first such rank
  Odd odd{};
};

[[noreturn]] void refuse(const Odd& o) {
  throw Error(Code::mismatch, "alltoall: rank " + std::to_string(o.from) + " has " + std::to_string(o.sent) +
                                  " elements for rank " + std::to_string(o.to) + ", which expects " +
                                  std::to_string(o.expected));
}

/// `rows`: of each rank, its send counts and then its receive counts.
void require_matching(const std::vector<std::uint64_t>& rows, std::size_t n) {
  for (std::size_t from = 0; from < n; ++from) {
    for (std::size_t to = 0; to < n; ++to) {
      const Odd o{from, to, rows[from * 2 * n + to], rows[to * 2 * n + n + from]};
      if (o.sent != o.expected) refuse(o);
    }
  }
}

std::uint64_t largest_of_all(Communicator& comm, std::span<const std::size_t> send_counts,
                             std::span<const std::size_t> recv_counts, Report& report) {
  std::vector<std::uint64_t> row(send_counts.begin(), send_counts.end());
  row.insert(row.end(), recv_counts.begin(), recv_counts.end());
  const auto rows = exchange(comm, std::span<const std::uint64_t>(row), report);
  require_matching(rows, static_cast<std::size_t>(comm.size()));
  return *std::max_element(rows.begin(), rows.end());
}

/// Every rank tells each other how many elements it has for it. `sent` and `got`: a count for each rank.
void tell_each(Communicator& comm, std::span<const std::uint8_t> sent, std::span<std::uint8_t> got) {
  constexpr std::size_t bytes = sizeof(std::uint64_t);
  const auto n = static_cast<std::size_t>(comm.size());
  const auto me = static_cast<std::size_t>(comm.rank());
  Transport& t = comm.transport();
  std::vector<Request> requests;
  requests.reserve(2 * n);
  for (std::size_t k = 1; k < n; ++k) {
    const std::size_t from = (me + n - k) % n;
    requests.push_back(t.irecv(got.subspan(from * bytes, bytes), static_cast<int>(from), counts_tag));
  }
  for (std::size_t k = 1; k < n; ++k) {
    const std::size_t to = (me + k) % n;
    requests.push_back(t.isend(sent.subspan(to * bytes, bytes), static_cast<int>(to), counts_tag));
  }
  for (Request& r : requests) r.wait();
}

/// How many elements each rank has for this one.
std::vector<std::uint64_t> coming(Communicator& comm, std::span<const std::size_t> send_counts, Report& report) {
  std::vector<std::uint64_t> counts(send_counts.begin(), send_counts.end());
  const std::size_t bytes = counts.size() * sizeof(std::uint64_t);
  const MessagePtr sent = comm.pool().take(bytes);
  const MessagePtr got = comm.pool().take(bytes);
  std::memcpy(sent->room().data(), counts.data(), bytes);
  const Timed clock(report.stats.wire_seconds);
  try {
    tell_each(comm, sent->room().first(bytes), got->room().first(bytes));
  } catch (...) {
    if (!comm.transport().lets_go()) comm.pool().abandon();
    comm.mark_unusable();
    throw;
  }
  report.stats.wire_bytes += bytes;
  report.bytes_received += bytes;
  report.messages_sent += counts.size() - 1;
  const auto me = static_cast<std::size_t>(comm.rank());
  const std::uint64_t own = counts[me];
  std::memcpy(counts.data(), got->room().data(), bytes);
  counts[me] = own;
  return counts;
}

}  // namespace

std::uint64_t largest_block(Communicator& comm, std::span<const std::size_t> send_counts,
                            std::span<const std::size_t> recv_counts, Report& report) {
  if (comm.size() <= most_ranks_that_hear_all) return largest_of_all(comm, send_counts, recv_counts, report);
  const auto counts = coming(comm, send_counts, report);
  Summary mine{.largest = *std::max_element(send_counts.begin(), send_counts.end())};
  for (std::size_t from = 0; from < counts.size() && mine.any == 0; ++from) {
    if (counts[from] == recv_counts[from]) continue;
    mine.any = 1;
    mine.odd = {from, static_cast<std::uint64_t>(comm.rank()), counts[from], recv_counts[from]};
  }
  const auto all = exchange(comm, mine, report);  // with which it ends where messages need the help of others
  const auto first =
      std::ranges::min_element(all, {}, [](const Summary& s) { return std::tuple(s.any == 0, s.odd.from, s.odd.to); });
  if (first->any != 0) refuse(first->odd);
  return std::ranges::max(all, {}, &Summary::largest).largest;
}

}  // namespace laconic
