#include "collective/calibration.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <sstream>
#include <vector>

#include "collective/kernel.h"
#include "collective/metadata.h"
#include "core/config.h"
#include "frame/frame.h"

namespace laconic {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::hours fresh(24);
constexpr int probe_tag = 0;                               // nothing else is under way
constexpr std::size_t probe_bytes = std::size_t{2} << 20;  // well beyond what a shaped link lets through at once
constexpr std::size_t probe_values = std::size_t{1} << 18;

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Every rank sends to the next one while it receives from the one before.
double shift_seconds(Transport& t, std::span<std::uint8_t> out, std::span<std::uint8_t> in) {
  const int n = t.size();
  return seconds_of([&] {
    Request receive = t.irecv(in, (t.rank() + n - 1) % n, probe_tag);
    Request send = t.isend(out, (t.rank() + 1) % n, probe_tag);
    receive.wait();
    send.wait();
  });
}

Link measure_link(Transport& t, Memory& memory) {
  constexpr int few = 8;
  const Room from = memory.message_room(probe_bytes);
  const Room to = memory.message_room(probe_bytes);
  const std::span<std::uint8_t> out(from.get(), probe_bytes), in(to.get(), probe_bytes);
  std::ranges::fill(out, std::uint8_t{1});
  std::array<double, 3 * few> shorts{};
  for (double& s : shorts) s = shift_seconds(t, out.first(few), in.first(few));
  std::nth_element(shorts.begin(), shorts.begin() + shorts.size() / 2, shorts.end());
  Link link{.latency = shorts[shorts.size() / 2]};
  shift_seconds(t, out, in);  // connections, buffers, pages
  double best = shift_seconds(t, out, in);
  for (int i = 0; i < 2; ++i) best = std::min(best, shift_seconds(t, out, in));
  link.bytes_per_second = static_cast<double>(probe_bytes) / std::max(best - link.latency, 1e-9);
  return link;
}

CodecSpeed measure_codec(Memory& memory) {
  std::vector<float> x(probe_values);
  std::uint32_t noise = 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    noise = noise * 1664525U + 1013904223U;
    x[i] = std::sin(static_cast<float>(i) * 0.01F) + static_cast<float>(noise >> 8) * 0x1p-30F;
  }
  const std::size_t bytes = x.size() * sizeof(float);
  const Room there = memory.array_room(bytes);
  memory.copy(there.get(), x.data(), bytes);
  const Budget budget{.route = Route::on_grid, .grid = make_grid(DType::f32, 1e-3, 2)};
  const auto kernel = memory.reduction(Op::sum, {{there.get(), x.size(), DType::f32}},
                                       {{there.get(), x.size(), DType::f32}}, budget, 1, 1);
  const Part all{0, 0, x.size()};
  const std::size_t capacity = kernel->capacity(x.size());
  const Room frame = memory.message_room(capacity);
  const Room sum = memory.message_room(capacity);
  std::size_t size = 0;
  const auto speed = [&](const std::function<void()>& work) {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3; ++i) best = std::min(best, seconds_of(work));
    return static_cast<double>(bytes) / best;
  };
  CodecSpeed s;
  s.encode = speed([&] { size = kernel->encode(all, {frame.get(), capacity}); });
  s.add = speed([&] { kernel->encode_add(all, {frame.get(), size}, {sum.get(), capacity}); });
  s.decode = speed([&] { kernel->deliver(all, {frame.get(), size}); });
  return s;
}

Costs worst_of(const std::vector<Costs>& all) {
  Costs worst = all.front();
  for (const Costs& c : all) {
    worst.link.latency = std::max(worst.link.latency, c.link.latency);
    worst.link.bytes_per_second = std::min(worst.link.bytes_per_second, c.link.bytes_per_second);
    worst.codec.encode = std::min(worst.codec.encode, c.codec.encode);
    worst.codec.add = std::min(worst.codec.add, c.codec.add);
    worst.codec.decode = std::min(worst.codec.decode, c.codec.decode);
  }
  return worst;
}

/// Which measurements are interchangeable: the same library, between the same hosts, with as many ranks on this one.
std::string class_of(Transport& t, const Memory& memory) {
  struct Host {
    char name[64] = {};
  } mine;
  ::gethostname(mine.name, sizeof mine.name - 1);
  const auto hosts = allgather_value(t, mine);
  const auto same = [&](const Host& h) { return std::strcmp(h.name, mine.name) == 0; };
  const Host& next = hosts[static_cast<std::size_t>((t.rank() + 1) % t.size())];
  std::ostringstream text;
  text << t.description() << " | " << mine.name << " > " << next.name << " | " << std::ranges::count_if(hosts, same)
       << " of " << t.size() << " | " << name_of(config().simd) << (memory.on_host() ? "" : " | GPU") << " | "
       << LACONIC_VERSION;
  return text.str();
}

/// Empty: none.
fs::path cache_folder(const std::string& folder) {
  if (folder == "off") return {};
  if (!folder.empty()) return folder;
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing in Laconic changes the environment
    return value == nullptr ? "" : value;
  };
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return fs::path(cache) / "laconic";
  if (const std::string home = variable("HOME"); !home.empty()) return fs::path(home) / ".cache" / "laconic";
  return {};
}

fs::path file_for(const fs::path& folder, const std::string& what) {
  std::ostringstream name;
  name << "costs-" << std::hex << digest({what.begin(), what.end()});
  return folder / name.str();
}

bool plausible(const Costs& c) {
  const std::array all{c.link.latency, c.link.bytes_per_second, c.codec.encode, c.codec.add, c.codec.decode};
  return std::ranges::all_of(all, [](double v) { return std::isfinite(v) && v > 0; });
}

std::optional<Costs> read_cache(const fs::path& file, const std::string& what) {
  std::error_code error;
  const auto written = fs::last_write_time(file, error);
  if (error || fs::file_time_type::clock::now() - written > fresh) return std::nullopt;
  std::ifstream in(file);
  std::string line;
  Costs c;
  if (!std::getline(in, line) || line != what) return std::nullopt;
  in >> c.link.latency >> c.link.bytes_per_second >> c.codec.encode >> c.codec.add >> c.codec.decode;
  if (!in || !plausible(c)) return std::nullopt;
  return c;
}

/// Whole or not at all: ranks of several programs may write the same file.
void write_cache(const fs::path& file, const std::string& what, const Costs& c) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  std::ostringstream name;
  name << file.string() << '.' << ::getpid() << ".part";
  const fs::path temporary = name.str();
  std::ofstream out(temporary);
  out << what << '\n'
      << c.link.latency << ' ' << c.link.bytes_per_second << ' ' << c.codec.encode << ' ' << c.codec.add << ' '
      << c.codec.decode << '\n';
  out.close();
  if (out) fs::rename(temporary, file, error);
  if (!out || error) fs::remove(temporary, error);
}

}  // namespace

Costs calibrate(Transport& transport, Memory& memory, const std::string& folder) {
  const std::string what = class_of(transport, memory);
  const fs::path cache = cache_folder(folder);
  struct Found {
    Costs costs;
    std::uint64_t valid = 0;
  } mine;
  if (!cache.empty()) {
    if (const auto known = read_cache(file_for(cache, what), what)) mine = {*known, 1};
  }
  const auto found = allgather_value(transport, mine);
  if (std::ranges::all_of(found, [](const Found& f) { return f.valid != 0; })) {
    std::vector<Costs> known;
    for (const Found& f : found) known.push_back(f.costs);
    return worst_of(known);
  }
  Costs measured;
  measured.link = measure_link(transport, memory);
  measured.codec = measure_codec(memory);
  if (!cache.empty()) write_cache(file_for(cache, what), what, measured);
  return worst_of(allgather_value(transport, measured));
}

}  // namespace laconic
