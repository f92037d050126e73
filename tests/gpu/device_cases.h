// The same collective with arrays on the host and on a device: what must be the same.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "collective/background.h"
#include "gpu/device_rank.h"
#include "transport/threads.h"

namespace laconic::test {

/// What a rank has after a call.
struct Outcome {
  Bytes result;
  std::uint64_t wire_bytes = 0;
  Route route = Route::automatic;
};
using Body = std::function<std::pair<MutArray, Report>(Rank&)>;
using Where = std::function<bool(int rank)>;
inline const Where on_device = [](int) { return true; };
inline const Where on_host = [](int) { return false; };
inline const Where on_some = [](int rank) { return rank % 2 == 1; };

inline std::vector<Outcome> run(int ranks, const Where& where, const Body& body, std::vector<int> nodes = {}) {
  std::vector<Outcome> all(static_cast<std::size_t>(ranks));
  run_ranks(
      ranks,
      [&](Transport& t) {
        Rank rank(t, where(t.rank()));
        const auto [result, report] = body(rank);
        all[static_cast<std::size_t>(t.rank())] = {rank.contents(result), report.stats.wire_bytes, report.route};
      },
      60, std::move(nodes));
  return all;
}

/// On the device, and with ranks of both kinds, the same result and as many bytes on the wire as on the host.
inline void expect_as_on_host(int ranks, const Body& body, const std::vector<int>& nodes = {}) {
  const auto expected = run(ranks, on_host, body, nodes);
  for (const Where& where : {on_device, on_some}) {
    const auto got = run(ranks, where, body, nodes);
    for (std::size_t r = 0; r < got.size(); ++r) {
      EXPECT_TRUE(got[r].result == expected[r].result) << "rank " << r << " of " << ranks;
      EXPECT_EQ(got[r].wire_bytes, expected[r].wire_bytes) << "rank " << r << " of " << ranks;
      EXPECT_EQ(got[r].route, expected[r].route);
    }
  }
}

/// A call that a thread of the rank's makes, after what its stream has been given.
inline Report in_background(Rank& r, const Background::Work& call) {
  const auto memory = r.memory().for_another_thread();
  Background background(r.comm().transport().duplicate());
  background.use(memory != nullptr ? *memory : r.memory());
  const Memory::After after = r.memory().after_all_so_far();
  const auto work = [&](Communicator& c) {
    if (after) after(c.memory());
    return call(c);
  };
  return background.submit(work).get();
}

inline Options with(const char* bound, Mode mode = Mode::compressed) {
  Options o;
  o.bound = Bound::parse(bound);
  o.segment_values = 8192;
  o.mode = mode;
  return o;
}

}  // namespace laconic::test
