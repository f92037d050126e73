#include "collective/calibration.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <vector>

#include "collective/cost_cache.h"
#include "collective/exact_sum.h"
#include "collective/kernel.h"
#include "collective/pool.h"
#include "core/config.h"
#include "core/half.h"
#include "core/log.h"

namespace laconic {
namespace {

constexpr int probe_tag = 0;  // nothing else is under way

// A shaped link lets the first bytes through at once. Beyond those, what takes this long, and is not latency, is told
// from noise; longer probes would only cost more, on slow links much more.
constexpr std::size_t first_probe_bytes = std::size_t{128} << 10;
constexpr std::size_t most_message_bytes = std::size_t{2} << 20;
constexpr double long_enough = 5e-3;
// Nor is it the link's time where twice as many bytes do not take this many times as long: on a busy machine ranks wait
// for a processor, for milliseconds, whatever they send.
constexpr double grows = 1.6;
// The least of some probes is taken: as many as this time allows.
constexpr double seconds_of_probes = 30e-3;
constexpr double most_probes = 8;
// Over NCCL a message may take milliseconds however short it is, and what bytes add to that for one of them is lost in
// noise: there several go at once, as in a pipeline.
constexpr int most_messages_of_devices = 8;
// Where even that is too noisy: a link is believed to be so much faster than what all of a probe's time comes to.
constexpr double least_of_a_probe = 1.0 / 8;

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A rank's messages, each of most_message_bytes.
struct ProbeRooms {
  std::vector<MessagePtr> out, in;
  [[nodiscard]] std::size_t bytes() const { return out.size() * most_message_bytes; }
};

/// Every rank sends so many bytes to the next one while it receives from the one before.
double shift_seconds(Transport& t, const ProbeRooms& rooms, std::size_t bytes) {
  const int n = t.size();
  const std::size_t messages = (bytes + most_message_bytes - 1) / most_message_bytes;
  const std::size_t each = bytes / messages;
  return seconds_of([&] {
    std::vector<Request> requests;
    for (std::size_t i = 0; i < messages; ++i)
      requests.push_back(t.irecv(rooms.in[i]->room().first(each), (t.rank() + n - 1) % n, probe_tag));
    for (std::size_t i = 0; i < messages; ++i)
      requests.push_back(t.isend(rooms.out[i]->room().first(each), (t.rank() + 1) % n, probe_tag));
    for (Request& r : requests) r.wait();
  });
}

/// Of the rank that took longest: what all ranks can decide by.
double slowest(Transport& t, double seconds) { return std::ranges::max(allgather_value(t, seconds)); }

Link measure_link(Transport& t, const ProbeRooms& rooms) {
  constexpr std::size_t few = 8;
  for (const MessagePtr& m : rooms.out) std::ranges::fill(m->room(), std::uint8_t{1});
  std::array<double, 15> shorts{};
  for (double& s : shorts) s = shift_seconds(t, rooms, few);
  // Ranks that wait nap, and wake up late for the next message: that says more about the waiting than about the link.
  std::ranges::sort(shorts);
  const double latency = shorts[shorts.size() / 4];
  std::size_t bytes = first_probe_bytes;
  const auto shift = [&] { return shift_seconds(t, rooms, bytes); };
  const auto least_of = [&](int probes) {
    double least = shift();
    for (int i = 1; i < probes; ++i) least = std::min(least, shift());
    return least;
  };
  shift();  // connections, buffers, pages
  double mine = 0;
  double half = 0;
  double all = slowest(t, least_of(2) - latency);
  do {
    half = all;
    bytes *= 2;
    mine = least_of(2);
    all = slowest(t, mine - latency);
  } while (bytes < rooms.bytes() && (all < long_enough || all < grows * half));
  mine =
      std::min(mine, least_of(static_cast<int>(std::clamp(seconds_of_probes / std::max(all, 1e-9), 1.0, most_probes))));
  return {latency, static_cast<double>(bytes) / std::max({mine - latency, least_of_a_probe * mine, 1e-9})};
}

Link measure_link(Transport& t, Memory& memory) {
  BufferPool pool(memory, false);
  ProbeRooms rooms;
  const int messages = std::ranges::max(allgather_value(t, memory.on_host() ? 1 : most_messages_of_devices));
  std::exception_ptr failure;
  try {
    for (int i = 0; i < messages; ++i) {
      rooms.out.push_back(pool.take(most_message_bytes));
      rooms.in.push_back(pool.take(most_message_bytes));
    }
  } catch (...) {
    failure = std::current_exception();
  }
  // Ranks wait for each other's probes: all send them, or none.
  const std::vector<int> poor = allgather_value(t, failure ? 1 : 0);
  if (failure) std::rethrow_exception(failure);
  if (const auto one = std::ranges::find(poor, 1); one != poor.end())
    throw Error(Code::internal,
                "rank " + std::to_string(one - poor.begin()) + " has no memory to measure the link with");
  try {
    return measure_link(t, rooms);
  } catch (...) {
    pool.abandon();
    throw;
  }
}

/// A wave with noise on it, as a kind of elements.
struct Probe {
  DType dtype;
  double bound;      ///< 0: lossless
  double amplitude;  ///< of the wave
  double noise[2];   ///< in the smooth data and in the rough, beside the wave
};

Probe probe_of(CodecKind kind) {
  switch (kind) {
    case CodecKind::grid16:
      return {DType::f16, 1e-3, 1, {1e-2, 1}};
    case CodecKind::grid32:
      return {DType::f32, 1e-6, 1, {1e-5, 1}};
    case CodecKind::grid64:
      return {DType::f64, 1e-6, 1, {1e-5, 1}};
    case CodecKind::wide64:
      return {DType::f64, 1e-12, 1, {1e-6, 1}};
    case CodecKind::exact32:
      return {DType::i32, 0, 1e6, {1e-4, 1}};
    case CodecKind::exact64:
      return {DType::i64, 0, 1e15, {1e-6, 1}};
  }
  return {};
}

template <typename T, typename Convert>
void fill(const Probe& probe, double noise, MutArray x, Convert&& convert) {
  const double turn_re = std::cos(0.01), turn_im = std::sin(0.01);
  double re = 1, im = 0;
  std::uint32_t state = 1;
  auto* to = static_cast<std::uint8_t*>(x.data);
  for (std::size_t i = 0; i < x.count; ++i, to += sizeof(T)) {
    const double next = (re * turn_re) - (im * turn_im);
    im = (re * turn_im) + (im * turn_re);
    re = next;
    state = state * 1664525U + 1013904223U;
    const T v = convert(probe.amplitude * (im + noise * (static_cast<double>(state) * 0x1p-32 - 0.5)));
    std::memcpy(to, &v, sizeof v);
  }
}

template <typename T>
T probe_value(double v) {
  return static_cast<T>(v);
}

void fill(const Probe& probe, double noise, MutArray x) {
  switch (probe.dtype) {
    case DType::f16:
      return fill<std::uint16_t>(probe, noise, x, [](double v) { return f16_of_f32(static_cast<float>(v)); });
    case DType::f32:
      return fill<float>(probe, noise, x, probe_value<float>);
    case DType::f64:
      return fill<double>(probe, noise, x, probe_value<double>);
    case DType::i32:
      return fill<std::int32_t>(probe, noise, x, probe_value<std::int32_t>);
    default:
      return fill<std::int64_t>(probe, noise, x, probe_value<std::int64_t>);
  }
}

CodecSpeed::Seconds measure_codec(const Probe& probe, double noise, Memory& memory) {
  const std::size_t count = memory.segment_bytes().most / 8;
  const std::size_t bytes = count * size_of(probe.dtype);
  const Room plain = host_memory().array_room(bytes);
  fill(probe, noise, {plain.get(), count, probe.dtype});
  const Room there = memory.array_room(bytes);
  memory.copy(there.get(), plain.get(), bytes);
  const MutArray x{there.get(), count, probe.dtype};
  const bool adds = probe.bound > 0;
  const Budget budget{.route = adds ? Route::on_grid : Route::exact, .grid = make_grid(probe.dtype, probe.bound, 2)};
  const auto kernel =
      adds ? memory.reduction(Op::sum, {x}, {x}, budget, {1, 1}, 1) : memory.movement({x}, {x}, budget, 1);
  const Part all{0, 0, count};
  const std::size_t capacity = kernel->capacity(count);
  const Room frame = memory.message_room(capacity);
  const Room sum = memory.message_room(std::max(capacity, bytes));
  std::size_t size = 0;
  const auto each = [&](const std::function<void()>& work) {
    // A device's clocks rise as it works, and kernels of other ranks come between.
    const int tries = memory.on_host() ? 3 : 10;
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < tries; ++i) best = std::min(best, seconds_of(work));
    return std::max(best, 1e-9) / static_cast<double>(count);
  };
  CodecSpeed::Seconds s;
  s.encode = each([&] { size = kernel->encode(all, {frame.get(), capacity}); });
  s.bits = 8 * static_cast<double>(size) / static_cast<double>(count);
  if (adds) {
    s.add = each([&] { kernel->encode_add(all, {frame.get(), size}, {sum.get(), capacity}); });
  } else {  // by the host, of arrays in any memory
    const ConstArray term{plain.get(), count, probe.dtype};
    s.add = each([&] { sum_exactly({term, term}, {sum.get(), count, probe.dtype}, Op::sum); }) / 2;
  }
  s.decode = each([&] { kernel->deliver(all, {frame.get(), size}); });
  return s;
}

Link worse(const Link& a, const Link& b) {
  return {std::max(a.latency, b.latency), std::min(a.bytes_per_second, b.bytes_per_second)};
}

CodecSpeed worse(const CodecSpeed& a, const CodecSpeed& b) {
  const auto slower = [](const CodecSpeed::Seconds& s, const CodecSpeed::Seconds& t) {
    return CodecSpeed::Seconds{std::max(s.bits, t.bits), std::max(s.encode, t.encode), std::max(s.add, t.add),
                               std::max(s.decode, t.decode)};
  };
  return {slower(a.smooth, b.smooth), slower(a.rough, b.rough)};
}

/// Where this rank is, for measurements that are interchangeable only there.
struct Place {
  std::string host;   ///< this one, and how many of the ranks are on it
  std::string nodes;  ///< the same of nodes, which may be several of one host's name, and where the next rank is
};

Place place_of(Transport& t) {
  struct Host {
    char name[64] = {};
  } mine;
  ::gethostname(mine.name, sizeof mine.name - 1);
  const auto hosts = allgather_value(t, mine);
  const auto same = [&](const Host& h) { return std::strcmp(h.name, mine.name) == 0; };
  const auto& nodes = t.nodes();
  const auto me = static_cast<std::size_t>(t.rank());
  const std::size_t next = (me + 1) % nodes.size();
  const auto on = [&](std::ptrdiff_t ranks) {
    return std::string(mine.name) + ", " + std::to_string(ranks) + " ranks";
  };
  return {on(std::ranges::count_if(hosts, same)), on(std::ranges::count(nodes, nodes[me])) + " of " +
                                                      std::to_string(t.size()) + " > " +
                                                      (nodes[next] == nodes[me] ? "itself" : hosts[next].name)};
}

std::string in_words(const Link& l) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << l.latency * 1e3 << " ms, " << l.bytes_per_second / 1e9 << " GB/s";
  return text.str();
}

std::string in_words(const CodecSpeed& c) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  for (const CodecSpeed::Seconds* s : {&c.smooth, &c.rough}) {
    text << (s == &c.smooth ? "" : "; ") << s->bits << " bits: encode " << s->encode * 1e9 << " ns an element, add "
         << s->add * 1e9 << ", decode " << s->decode * 1e9;
  }
  return text.str();
}

/// For whoever wonders what choices follow from.
template <typename T>
T logged(const std::string& what, const char* origin, const T& costs) {
  if (log_enabled(LogLevel::debug)) log(LogLevel::debug, what + " (" + origin + "): " + in_words(costs));
  return costs;
}

/// `measure` is called by all ranks or by none.
template <typename T, typename Measure>
T agree_on_worst(const std::string& what, Transport& transport, const std::string& folder, Measure&& measure) {
  const CostCache cache(folder);
  struct Found {
    T costs{};
    std::uint64_t valid = 0;
  } mine;
  if (const auto known = cache.read<T>(what)) mine = {*known, 1};
  const auto worst_of = [](const std::vector<Found>& all) {
    T worst = all.front().costs;
    for (const Found& f : all) worst = worse(worst, f.costs);
    return worst;
  };
  const auto found = allgather_value(transport, mine);
  if (std::ranges::all_of(found, [](const Found& f) { return f.valid != 0; }))
    return logged(what, "kept from before", worst_of(found));
  mine = {};
  std::exception_ptr failure;
  try {
    mine = {measure(), 1};
  } catch (const Error& e) {
    if (e.code() == Code::transport) throw;  // the others would not hear of it
    failure = std::current_exception();
  } catch (...) {
    failure = std::current_exception();
  }
  const auto measured = allgather_value(transport, mine);
  if (failure) std::rethrow_exception(failure);
  const auto without = std::ranges::find_if(measured, [](const Found& f) { return f.valid == 0; });
  if (without != measured.end())
    throw Error(Code::transport, "rank " + std::to_string(without - measured.begin()) + " could not measure its speed");
  cache.write(what, mine.costs);
  return logged(what, "measured", worst_of(measured));
}

}  // namespace

Link calibrate_link(Transport& transport, Memory& memory, const std::string& folder) {
  const std::string what =
      "link | " + transport.description() + " | " + place_of(transport).nodes + (memory.on_host() ? "" : " | GPU");
  return agree_on_worst<Link>(what, transport, folder, [&] { return measure_link(transport, memory); });
}

CodecSpeed calibrate_codec(CodecKind kind, Transport& transport, Memory& memory, const std::string& folder) {
  std::ostringstream what;
  what.imbue(std::locale::classic());
  what << "codec " << name_of(kind) << " | " << place_of(transport).host << " | " << name_of(config().simd)
       << (memory.on_host() ? "" : " | GPU");
  const Probe probe = probe_of(kind);
  return agree_on_worst<CodecSpeed>(what.str(), transport, folder, [&] {
    return CodecSpeed{measure_codec(probe, probe.noise[0], memory), measure_codec(probe, probe.noise[1], memory)};
  });
}

}  // namespace laconic
