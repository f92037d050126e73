// NCCL's collectives beside Laconic's over NCCL, in turn, on arrays in device memory. One process a rank; RANK and
// WORLD_SIZE tell which (as tools/cluster gpu and torchrun set them), and all of them see ID_FILE, which must not
// exist.
//   nccl_bench ID_FILE BOUND REPETITIONS field.f32 MIB...      0.0625: 64 KiB
// Rank 0 prints one line of JSON a collective and size: medians of the slowest rank's times, how many times fewer
// bytes, and how many elements of its result are off by more than the bound (and half a unit in the last place).
#include <cuda_runtime_api.h>
#include <laconic/laconic_nccl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace {

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "nccl_bench: %s\n", why.c_str());
  std::exit(2);
}
void must(cudaError_t e) {
  if (e != cudaSuccess) give_up(cudaGetErrorString(e));
}
void must(ncclResult_t r) {
  if (r != ncclSuccess) give_up(ncclGetErrorString(r));
}
void must(int code) {
  if (code != LACONIC_OK) give_up(laconic_last_error());
}

int variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  if (value == nullptr) give_up(std::string(name) + " is not set");
  return std::atoi(value);
}

/// Rank 0 makes it; the others wait for the file.
ncclUniqueId agree_on_id(const std::string& file, int rank) {
  ncclUniqueId id;
  if (rank == 0) {
    must(ncclGetUniqueId(&id));
    std::ofstream(file + ".part", std::ios::binary).write(id.internal, sizeof id.internal);
    if (std::rename((file + ".part").c_str(), file.c_str()) != 0) give_up("cannot write " + file);
    return id;
  }
  for (int tries = 0; tries < 600; ++tries) {
    std::ifstream in(file, std::ios::binary);
    if (in.read(id.internal, sizeof id.internal)) return id;
    ::usleep(100000);
  }
  give_up("rank 0 has not written " + file);
}

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

struct World {
  int rank, ranks;
  ncclComm_t comm;
  cudaStream_t stream;
  int repetitions;

  /// Seconds of the slowest rank, the median of the repetitions; one does not count.
  [[nodiscard]] double median(const std::function<void()>& call, float* word) const {
    std::vector<double> times;
    for (int i = 0; i <= repetitions; ++i) {
      must(ncclAllReduce(word, word, 1, ncclFloat32, ncclMax, comm, stream));  // all begin together
      must(cudaStreamSynchronize(stream));
      const auto start = std::chrono::steady_clock::now();
      call();
      must(cudaStreamSynchronize(stream));
      auto mine = static_cast<float>(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      must(cudaMemcpyAsync(word, &mine, sizeof mine, cudaMemcpyHostToDevice, stream));
      must(ncclAllReduce(word, word, 1, ncclFloat32, ncclMax, comm, stream));
      must(cudaStreamSynchronize(stream));
      must(cudaMemcpy(&mine, word, sizeof mine, cudaMemcpyDeviceToHost));
      if (i > 0) times.push_back(mine);
    }
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    return times[times.size() / 2];
  }
};

std::vector<float> read(const std::string& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  std::vector<float> x(static_cast<std::size_t>(std::max<std::streamoff>(in.tellg(), 0)) / sizeof(float));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(x.data()), static_cast<std::streamsize>(x.size() * sizeof(float)));
  if (!in || x.empty()) give_up("cannot read " + file);
  return x;
}

/// What rank r brings: neighbouring fields, alike and not the same.
float value(const std::vector<float>& field, int r, std::size_t i) {
  return field[(i + static_cast<std::size_t>(r) * 977) % field.size()] * (1.0F + 0.03F * static_cast<float>(r));
}

struct Case {
  const char* name;
  std::function<ncclResult_t(const float*, float*)> plain;
  std::function<int(const float*, float*, const laconic_options*)> ours;
  std::size_t results;
  std::function<double(std::size_t)> exact;  ///< of rank 0's element
};

void measure(const World& w, const Case& c, const char* bound, const Array& x, const Array& y, const Array& word,
             std::size_t count) {
  laconic_options options = LACONIC_OPTIONS_INIT;
  options.bound = bound;
  const double plain = w.median([&] { must(c.plain(x.data, y.data)); }, word.data);
  const double ours = w.median([&] { must(c.ours(x.data, y.data, &options)); }, word.data);
  laconic_stats last{};
  last.struct_size = sizeof last;
  must(laconic_nccl_last(w.comm, &last));
  if (w.rank != 0) return;
  std::vector<float> got(c.results);
  must(cudaMemcpy(got.data(), y.data, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
  std::size_t violations = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double exact = c.exact(i);
    const double ulp = std::abs(std::nextafter(static_cast<float>(exact), INFINITY) - static_cast<float>(exact));
    if (!(std::abs(got[i] - exact) <= last.result_bound + ulp)) ++violations;
  }
  std::printf(
      "{\"collective\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"bound\": \"%s\", \"nccl_ms\": %.4f, "
      "\"laconic_ms\": %.4f, \"faster\": %.3f, \"ratio\": %.3f, \"plainly\": %s, \"violations\": %zu}\n",
      c.name, w.ranks, count * sizeof(float), bound, plain * 1e3, ours * 1e3, plain / ours,
      static_cast<double>(last.original_bytes) / static_cast<double>(std::max<std::uint64_t>(last.wire_bytes, 1)),
      last.plain_calls != 0 ? "true" : "false", violations);
  std::fflush(stdout);
}

void measure_all(const World& w, const std::vector<float>& field, const char* bound, double mib) {
  const auto n = static_cast<std::size_t>(w.ranks);
  const std::size_t share = static_cast<std::size_t>(mib * (1 << 20)) / sizeof(float) / n;
  if (share == 0) give_up("want more MIB");
  const std::size_t count = share * n;
  const Array x(count), y(count), word(1);
  std::vector<float> mine(count);
  for (std::size_t i = 0; i < count; ++i) mine[i] = value(field, w.rank, i);
  must(cudaMemcpyAsync(x.data, mine.data(), count * sizeof(float), cudaMemcpyHostToDevice, w.stream));
  must(cudaStreamSynchronize(w.stream));
  const auto sum = [&](std::size_t i) {
    double s = 0;
    for (int r = 0; r < w.ranks; ++r) s += value(field, r, i);
    return s;
  };
  const auto gathered = [&](std::size_t i) {
    return static_cast<double>(value(field, static_cast<int>(i / share), i % share));
  };
  const auto moved = [&](std::size_t i) { return static_cast<double>(value(field, 0, i)); };
  const ncclComm_t comm = w.comm;
  const cudaStream_t s = w.stream;
  const std::vector<Case> cases = {
      {"allreduce", [=](const float* a, float* b) { return ncclAllReduce(a, b, count, ncclFloat32, ncclSum, comm, s); },
       [=](const float* a, float* b, const laconic_options* o) {
         return laconic_nccl_allreduce(a, b, count, ncclFloat32, ncclSum, comm, s, o);
       },
       count, sum},
      {"reduce_scatter",
       [=](const float* a, float* b) { return ncclReduceScatter(a, b, share, ncclFloat32, ncclSum, comm, s); },
       [=](const float* a, float* b, const laconic_options* o) {
         return laconic_nccl_reduce_scatter(a, b, share, ncclFloat32, ncclSum, comm, s, o);
       },
       share, sum},
      {"allgather", [=](const float* a, float* b) { return ncclAllGather(a, b, share, ncclFloat32, comm, s); },
       [=](const float* a, float* b, const laconic_options* o) {
         return laconic_nccl_allgather(a, b, share, ncclFloat32, comm, s, o);
       },
       count, gathered},
      {"broadcast", [=](const float* a, float* b) { return ncclBroadcast(a, b, count, ncclFloat32, 0, comm, s); },
       [=](const float* a, float* b, const laconic_options* o) {
         return laconic_nccl_broadcast(a, b, count, ncclFloat32, 0, comm, s, o);
       },
       count, moved},
  };
  for (const Case& c : cases) measure(w, c, bound, x, y, word, count);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) give_up("want ID_FILE BOUND REPETITIONS field.f32 MIB...");
  const int rank = variable("RANK");
  const int ranks = variable("WORLD_SIZE");
  int devices = 0;
  must(cudaGetDeviceCount(&devices));
  must(cudaSetDevice(rank % std::max(devices, 1)));
  const ncclUniqueId id = agree_on_id(argv[1], rank);
  World w{rank, ranks, nullptr, nullptr, std::max(std::atoi(argv[3]), 1)};
  must(ncclCommInitRank(&w.comm, ranks, id, rank));
  must(cudaStreamCreateWithFlags(&w.stream, cudaStreamNonBlocking));
  const std::vector<float> field = read(argv[4]);
  for (int i = 5; i < argc; ++i) measure_all(w, field, argv[2], std::atof(argv[i]));
  must(laconic_nccl_release(w.comm));
  must(ncclCommDestroy(w.comm));
  return 0;
}
