// What the benchmarks of collectives on device memory share: arrays, times of the slowest rank, and what is said of
// them.
#pragma once

#include <cuda_runtime_api.h>
#include <laconic/laconic.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace bench {

[[noreturn]] inline void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(2);
}
inline void must(cudaError_t e) {
  if (e != cudaSuccess) give_up(cudaGetErrorString(e));
}
inline void must(int code) {
  if (code != LACONIC_OK) give_up(laconic_last_error());
}

/// Of floats, in device memory.
struct Array {
  explicit Array(std::size_t count) {
    void* p = nullptr;
    must(cudaMalloc(&p, count * sizeof(float)));
    data = static_cast<float*>(p);
  }
  ~Array() { cudaFree(data); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  float* data;
};

/// What Laconic says of why calls went as they did: rank 0's log, unless the user wants it elsewhere. To be made before
/// Laconic looks at its environment.
class Log {
 public:
  explicit Log(int rank) {
    if (rank != 0 || std::getenv("LACONIC_LOG") != nullptr) return;  // NOLINT(concurrency-mt-unsafe): one thread
    path_ = std::filesystem::temp_directory_path() / ("laconic-bench-" + std::to_string(::getpid()) + ".log");
    ::setenv("LACONIC_LOG", ("debug,file:" + path_.string()).c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  ~Log() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove(path_, error);
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// What has been said since the last time, as JSON.
  [[nodiscard]] std::string news() {
    std::ostringstream list;
    std::ifstream in(path_);
    in.seekg(seen_);
    for (std::string line; std::getline(in, line) && !in.eof(); seen_ = in.tellg()) {  // whole lines
      list << (list.tellp() > 0 ? ", " : "") << std::quoted(line);
    }
    return "[" + list.str() + "]";
  }

 private:
  std::filesystem::path path_;
  std::streamoff seen_ = 0;
};

struct World {
  const char* library;  ///< that Laconic is beside
  int rank, ranks, repetitions;
  cudaStream_t stream;
  std::function<double(double)> largest, total;  ///< of all ranks'; they leave it together
  std::function<laconic_stats()> last;           ///< of Laconic's last call
  Log& log;

  [[nodiscard]] int root() const { return ranks - 1; }  ///< not rank 0, which looks at what it got
};

/// Seconds of the slowest rank, the median of the repetitions. Calls do not count before they have taken `warm_up`
/// seconds together: one at least, sixteen at most.
inline double median(const World& w, double warm_up, const std::function<void()>& call) {
  const auto seconds = [&] {
    w.largest(0);
    const auto start = std::chrono::steady_clock::now();
    call();
    must(cudaStreamSynchronize(w.stream));
    return w.largest(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  };
  double warm = seconds();
  for (int i = 1; i < 16 && warm < warm_up; ++i) warm += seconds();
  std::vector<double> times;
  for (int i = 0; i < w.repetitions; ++i) times.push_back(seconds());
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

struct Field {
  std::string name;
  std::vector<float> values;
};

inline Field read(const std::string& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  std::vector<float> x(static_cast<std::size_t>(std::max<std::streamoff>(in.tellg(), 0)) / sizeof(float));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(x.data()), static_cast<std::streamsize>(x.size() * sizeof(float)));
  if (!in || x.empty()) give_up("cannot read " + file);
  return {std::filesystem::path(file).filename(), std::move(x)};
}

/// What the ranks bring and should get, where what a field has is repeated. Rank r begins with the field's r-th part:
/// of a file with an array for each rank (gradients of workers) that is its own.
class Values {
 public:
  Values(const Field& field, int ranks, std::size_t count) : x_(field.values), count_(count) {
    const auto n = static_cast<std::size_t>(ranks);
    part_ = x_.size() / n;
    sums_.resize(x_.size());
    for (std::size_t i = 0; i < x_.size(); ++i)
      for (int r = 0; r < ranks; ++r) sums_[i] += of(r, i);
    share_ = count / n;
  }

  [[nodiscard]] float of(int r, std::size_t i) const {
    return x_[(i + static_cast<std::size_t>(r) * part_) % x_.size()];
  }
  [[nodiscard]] std::vector<float> of(int r) const {
    std::vector<float> mine(count_);
    for (std::size_t i = 0; i < count_; ++i) mine[i] = of(r, i);
    return mine;
  }
  [[nodiscard]] double sum(std::size_t i) const { return sums_[i % sums_.size()]; }
  [[nodiscard]] double gathered(std::size_t i) const { return of(static_cast<int>(i / share_), i % share_); }

 private:
  const std::vector<float>& x_;
  std::size_t count_, share_ = 0, part_ = 0;
  std::vector<double> sums_;
};

/// One collective of `count` floats in x, or `share` of each rank; its result comes to y.
struct Case {
  const char* collective;
  std::function<void()> plain;
  std::function<int(const laconic_options*)> ours;
  std::size_t results;
  std::function<double(std::size_t)> exact;  ///< of rank 0's
};

struct Arrays {
  std::size_t count, share;
  float *x, *y;
};

/// Elements of the result that are off by more than the bound and half a unit in the last place.
inline std::size_t violations(const Case& c, const float* y, double bound) {
  std::vector<float> got(c.results);
  must(cudaMemcpy(got.data(), y, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
  std::size_t found = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double exact = c.exact(i);
    const float size = std::max(std::abs(static_cast<float>(exact)), std::abs(got[i]));
    const double ulp = std::nextafter(size, INFINITY) - size;
    if (!(std::abs(got[i] - exact) <= bound + ulp / 2)) ++found;
  }
  return found;
}

/// Of the last call, all ranks together: of a broadcast some send nothing.
inline double ratio_of(const World& w, const laconic_stats& last) {
  const double original = w.total(static_cast<double>(last.original_bytes));
  const double wire = w.total(static_cast<double>(last.wire_bytes));
  return original == 0 ? 1 : original / wire;
}

/// By LACONIC_BENCH_MODES ("auto,compressed"), each of which is measured; else by LACONIC_MODE.
inline std::vector<std::pair<std::string, laconic_mode>> modes() {
  const auto variable = [](const char* name, const char* otherwise) {
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
    return std::string(value == nullptr || *value == '\0' ? otherwise : value);
  };
  std::vector<std::pair<std::string, laconic_mode>> wanted;
  std::istringstream names(variable("LACONIC_BENCH_MODES", ""));
  for (std::string name; std::getline(names, name, ',');) {
    if (name != "auto" && name != "compressed" && name != "plain") give_up("LACONIC_BENCH_MODES has " + name);
    wanted.emplace_back(name, name == "auto"    ? LACONIC_MODE_AUTOMATIC
                              : name == "plain" ? LACONIC_MODE_PLAIN
                                                : LACONIC_MODE_COMPRESSED);
  }
  if (wanted.empty()) wanted.emplace_back(variable("LACONIC_MODE", "auto"), LACONIC_MODE_DEFAULT);
  return wanted;
}

inline void measure(const World& w, const Case& c, const std::string& field, const char* bound, const Arrays& a) {
  constexpr double until_learned = 0.3;  // by an automatic choice; and the same for MPI or NCCL
  const double plain = median(w, until_learned, c.plain);
  for (const auto& [name, mode] : modes()) {
    laconic_options options = LACONIC_OPTIONS_INIT;
    options.bound = bound;
    options.mode = mode;
    must(cudaMemsetAsync(a.y, 0xFF, a.count * sizeof(float), w.stream));  // NaN: what is not written is a violation
    const double ours = median(w, until_learned, [&] { must(c.ours(&options)); });
    const laconic_stats last = w.last();
    const double ratio = ratio_of(w, last);
    if (w.rank != 0) continue;
    std::printf(
        "{\"collective\": \"%s\", \"field\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"bound\": \"%s\", \"mode\": "
        "\"%s\", "
        "\"%s_ms\": %.4f, \"laconic_ms\": %.4f, \"faster\": %.4g, \"ratio\": %.3f, \"faster_over_ratio\": %.4g, "
        "\"plainly\": %s, \"codec_ms\": %.4f, \"wire_ms\": %.4f, \"compute_ms\": %.4f, \"other_ms\": %.4f, "
        "\"violations\": %zu, \"log\": %s}\n",
        c.collective, field.c_str(), w.ranks, a.count * sizeof(float), bound, name.c_str(), w.library, plain * 1e3,
        ours * 1e3, plain / ours, ratio, plain / ours / ratio, last.plain_calls != 0 ? "true" : "false",
        last.codec_seconds * 1e3, last.wire_seconds * 1e3, last.compute_seconds * 1e3, last.other_seconds * 1e3,
        violations(c, a.y, last.result_bound), w.log.news().c_str());
    std::fflush(stdout);
  }
}

using Cases = std::function<std::vector<Case>(const Arrays&, const Values&)>;

inline void measure_size(const World& w, const Field& field, const char* bound, double mib, const Cases& cases) {
  const auto n = static_cast<std::size_t>(w.ranks);
  const std::size_t share = static_cast<std::size_t>(mib * (1 << 20)) / sizeof(float) / n;
  if (share == 0) give_up("want more MIB");
  const Array x(share * n), y(share * n);
  const Values values(field, w.ranks, share * n);
  const Arrays a{share * n, share, x.data, y.data};
  must(cudaMemcpy(x.data, values.of(w.rank).data(), a.count * sizeof(float), cudaMemcpyHostToDevice));
  for (const Case& c : cases(a, values)) measure(w, c, field.name, bound, a);
}

/// words: FIELD MIB,... [FIELD MIB,...]...
inline void measure_all(const World& w, const char* bound, const std::vector<std::string>& words, const Cases& cases) {
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    const Field field = read(words[i]);
    std::istringstream sizes(words[i + 1]);
    for (std::string mib; std::getline(sizes, mib, ',');) measure_size(w, field, bound, std::atof(mib.c_str()), cases);
  }
}

}  // namespace bench
