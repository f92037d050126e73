// Small exact exchanges of plain values between all ranks of a communicator, and what they cost.
#pragma once

#include <span>
#include <vector>

#include "collective/communicator.h"
#include "core/stats.h"
#include "transport/transport.h"

namespace laconic {

/// Collective: every rank's values, in rank order; the same number of them everywhere. Where that fails the
/// communicator is unusable.
template <typename T>
std::vector<T> exchange(Communicator& comm, std::span<const T> mine, Report& report) {
  const Timed clock(report.stats.wire_seconds);
  std::vector<T> all;
  try {
    all = allgather_values(comm.transport(), mine);
  } catch (...) {
    comm.mark_unusable();
    throw;
  }
  report.stats.wire_bytes += mine.size_bytes();
  report.bytes_received += all.size() * sizeof(T) - mine.size_bytes();
  ++report.messages_sent;
  return all;
}
template <typename T>
std::vector<T> exchange(Communicator& comm, const T& mine, Report& report) {
  return exchange(comm, std::span<const T>(&mine, 1), report);
}

}  // namespace laconic
