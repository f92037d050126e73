// Speed of the codec and the survey on the device as a fraction of a device-to-device copy of the same run. At memory
// speed, scan and count_outliers, which only read, are twice as fast as the copy, take_extreme 2/3 as fast.
//   gpu_codec_bench MIB BOUND field.f32...     one line of JSON a field and type (f32, f64), fields tiled to MIB
// Times are medians of 9 by events, after 2 that do not count; GB/s are of original bytes (add, sum: of one operand).
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "codec/slice/slice.h"
#include "core/error.h"
#include "frame/frame.h"
#include "gpu/codec.h"
#include "gpu/survey.h"

namespace {

using namespace laconic;  // NOLINT(google-build-using-namespace)

void must(cudaError_t e) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "gpu_codec_bench: %s\n", cudaGetErrorString(e));
  std::exit(2);
}

std::uint8_t* device_bytes(std::size_t n) {
  void* p = nullptr;
  must(cudaMalloc(&p, n + 256));
  return static_cast<std::uint8_t*>(p);
}

/// Milliseconds that work takes on the default stream. A profiler that is told to wait (ncu --profile-from-start off)
/// sees the last.
template <class F>
double median_ms(F work) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  must(cudaEventCreate(&begin));
  must(cudaEventCreate(&end));
  std::vector<float> ms;
  for (int i = 0; i < 11; ++i) {
    if (i == 10) must(cudaProfilerStart());
    must(cudaEventRecord(begin));
    work();
    must(cudaEventRecord(end));
    must(cudaEventSynchronize(end));
    if (i == 10) must(cudaProfilerStop());
    float t = 0;
    must(cudaEventElapsedTime(&t, begin, end));
    if (i >= 2) ms.push_back(t);
  }
  std::nth_element(ms.begin(), ms.begin() + 4, ms.end());
  must(cudaEventDestroy(begin));
  must(cudaEventDestroy(end));
  return ms[4];
}

template <class T>
std::vector<T> tiled_field(const std::string& file, std::size_t count) {
  std::ifstream in(file, std::ios::binary);
  std::vector<float> field;
  for (float v = 0; in.read(reinterpret_cast<char*>(&v), sizeof v);) field.push_back(v);
  if (field.empty()) throw Error(Code::io, file + ": no elements");
  std::vector<T> x(count);
  std::copy_n(field.begin(), std::min(field.size(), count), x.begin());
  for (std::size_t n = field.size(); n < count; n *= 2)
    std::copy_n(x.begin(), std::min(n, count - n), x.begin() + static_cast<std::ptrdiff_t>(n));
  return x;
}

template <class T>
bool is_fill(T v) {
  return !(std::abs(v) < T(1e18));
}

template <class T>
struct Field {
  T low = 0, high = 0;
};
template <class T>
Field<T> without_fills(const std::vector<T>& x) {
  Field<T> r;
  bool any = false;
  for (const T v : x) {
    if (is_fill(v)) continue;
    r.low = any ? std::min(r.low, v) : v;
    r.high = any ? std::max(r.high, v) : v;
    any = true;
  }
  return r;
}

/// Memory and settings of one field's measurements.
template <class T>
class Bench {
 public:
  Bench(DType dtype, std::vector<T> x, double relative)
      : dtype_(dtype), x_(std::move(x)), count_(x_.size()), bytes_(count_ * sizeof(T)) {
    const Field<T> r = without_fills(x_);
    const double largest = std::max(std::abs(static_cast<double>(r.low)), std::abs(static_cast<double>(r.high)));
    grid_ = make_grid(dtype, relative * (static_cast<double>(r.high) - static_cast<double>(r.low)), largest);
    for (auto& a : arrays_) a = device_bytes(bytes_);
    for (auto& f : frames_) f = device_bytes(frame::capacity(dtype, count_));
    sum_capacity_ = frame::sum_capacity(dtype, count_);
    sum_ = device_bytes(sum_capacity_);
    slots_ = device_bytes(slice::chunks_of(count_) * gpu::slot_capacity(dtype));
    sizes_ = device_bytes(2 * slice::chunks_of(count_));
    work_bytes_ = gpu::sum_workspace(dtype, count_, 4);
    work_ = device_bytes(work_bytes_);
    report_ = device_bytes(sizeof(gpu::Report));
    must(cudaMemcpy(arrays_[0], x_.data(), bytes_, cudaMemcpyHostToDevice));
  }
  ~Bench() {
    for (auto* p :
         {arrays_[0], arrays_[1], frames_[0], frames_[1], frames_[2], frames_[3], sum_, slots_, sizes_, work_, report_})
      cudaFree(p);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void run(const std::string& name) {
    const double copy =
        median_ms([&] { must(cudaMemcpyAsync(arrays_[1], arrays_[0], bytes_, cudaMemcpyDeviceToDevice)); });
    const double scan = median_ms([&] { gpu::scan(array(0), reinterpret_cast<Range*>(work_), nullptr); });
    const double outliers =
        median_ms([&] { gpu::count_outliers(array(0), 1, 1e30, reinterpret_cast<Outliers*>(work_), nullptr); });
    const double divide = median_ms([&] { gpu::divide({arrays_[1], count_, dtype_}, 3, nullptr); });
    const double extreme =
        median_ms([&] { gpu::take_extreme(Op::max, {arrays_[1], count_, dtype_}, array(0), nullptr); });
    const double encode = median_ms([&] { encode_frame(0); });
    const std::uint64_t size = report("encode").bytes;
    const double bare = median_ms([&] { encode_frame(0, false); });
    encode_frame(0);
    const double slots = median_ms([&] {
      gpu::encode(array(0), grid_,
                  gpu::SlotsOut{slots_, reinterpret_cast<std::uint16_t*>(sizes_), gpu::slot_capacity(dtype_)},
                  as_report(), nullptr);
    });
    report("slots");
    const double decode = median_ms(
        [&] { gpu::decode(frame(0), MutArray{arrays_[1], count_, dtype_}, workspace(), as_report(), nullptr); });
    report("decode");
    const std::size_t violations = count_violations();
    make_other_frames();
    const double add = median_ms([&] { add_frames(2); });
    report("add");
    const double sum4 = median_ms([&] { add_frames(4); });
    report("sum of 4");
    const double fused = median_ms([&] {
      const gpu::FrameIn in = frame(0);
      gpu::encode_sum(array(0), {&in, 1}, {sum_, sum_capacity_}, workspace(), as_report(), nullptr);
    });
    report("encode_sum");
    const std::pair<const char*, double> rows[] = {{"encode", encode},
                                                   {"encode_without_checksum", bare},
                                                   {"slots", slots},
                                                   {"decode", decode},
                                                   {"add", add},
                                                   {"sum4", sum4},
                                                   {"encode_add", fused},
                                                   {"scan", scan},
                                                   {"count_outliers", outliers},
                                                   {"divide", divide},
                                                   {"take_extreme", extreme}};
    const auto speed = [&](double ms) { return static_cast<double>(bytes_) / ms / 1e6; };
    std::printf("{\"field\":\"%s\",\"dtype\":\"%s\",\"mib\":%zu,\"ratio\":%.3f,\"violations\":%zu,\"copy_gbs\":%.0f",
                name.c_str(), std::string(name_of(dtype_)).c_str(), bytes_ >> 20,
                static_cast<double>(bytes_) / static_cast<double>(size), violations, speed(copy));
    const char* before = ",\"gbs\":{";
    for (const auto& [what, ms] : rows) std::printf("%s\"%s\":%.0f", std::exchange(before, ","), what, speed(ms));
    before = "},\"of_copy\":{";
    for (const auto& [what, ms] : rows) std::printf("%s\"%s\":%.3f", std::exchange(before, ","), what, copy / ms);
    std::puts("}}");
    std::fflush(stdout);
  }

 private:
  [[nodiscard]] ConstArray array(int i) const { return {arrays_[i], count_, dtype_}; }
  [[nodiscard]] gpu::FrameIn frame(int i) const { return {frames_[i], frame::capacity(dtype_, count_), grid_, 1}; }
  [[nodiscard]] gpu::Workspace workspace() const { return {work_, work_bytes_}; }
  [[nodiscard]] gpu::Report* as_report() const { return reinterpret_cast<gpu::Report*>(report_); }

  void encode_frame(int to, bool checksum = true) {
    gpu::encode(array(to == 0 ? 0 : 1), grid_, gpu::FrameOut{frames_[to], frame::capacity(dtype_, count_), checksum},
                workspace(), as_report(), nullptr);
  }
  gpu::Report report(const char* what) {
    gpu::Report r;
    must(cudaMemcpy(&r, report_, sizeof r, cudaMemcpyDeviceToHost));
    if (r.faults == 0) return r;
    std::fprintf(stderr, "gpu_codec_bench: %s: faults %u\n", what, r.faults);
    std::exit(2);
  }
  /// Decoded elements that break the bound.
  std::size_t count_violations() {
    std::vector<T> y(count_);
    must(cudaMemcpy(y.data(), arrays_[1], bytes_, cudaMemcpyDeviceToHost));
    std::size_t n = 0;
    for (std::size_t i = 0; i < count_; ++i)
      if (x_[i] != y[i] && !(std::abs(static_cast<double>(x_[i]) - static_cast<double>(y[i])) <= grid_.bound)) ++n;
    return n;
  }
  /// The other operands are the same field, begun elsewhere; but land stays where it is, as in members of an ensemble.
  void make_other_frames() {
    std::vector<T> y(count_);
    for (int k = 1; k < 4; ++k) {
      const std::size_t shift = static_cast<std::size_t>(k) * 77773 % count_;
      for (std::size_t i = 0; i < count_; ++i) {
        const T moved = x_[i + shift < count_ ? i + shift : i + shift - count_];
        y[i] = is_fill(x_[i]) || is_fill(moved) ? x_[i] : moved;
      }
      must(cudaMemcpy(arrays_[1], y.data(), bytes_, cudaMemcpyHostToDevice));
      encode_frame(k);
      report("encode of another operand");
    }
  }
  void add_frames(int n) {
    const gpu::FrameIn in[4] = {frame(0), frame(1), frame(2), frame(3)};
    gpu::sum({in, static_cast<std::size_t>(n)}, count_, {sum_, sum_capacity_}, workspace(), as_report(), nullptr);
  }

  DType dtype_;
  std::vector<T> x_;
  std::size_t count_;
  std::size_t bytes_;
  Grid grid_;
  std::uint8_t* arrays_[2] = {};
  std::uint8_t* frames_[4] = {};
  std::uint8_t *sum_ = nullptr, *slots_ = nullptr, *sizes_ = nullptr, *work_ = nullptr, *report_ = nullptr;
  std::size_t sum_capacity_ = 0;
  std::size_t work_bytes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: gpu_codec_bench MIB BOUND field.f32...   (BOUND relative to the range, e.g. 1e-3)\n");
    return 2;
  }
  try {
    const std::size_t bytes = std::strtoull(argv[1], nullptr, 10) << 20;
    const double bound = std::strtod(argv[2], nullptr);
    for (int i = 3; i < argc; ++i) {
      const std::string file = argv[i];
      const std::string name = file.substr(file.rfind('/') + 1);
      Bench<float>(DType::f32, tiled_field<float>(file, bytes / 4), bound).run(name);
      Bench<double>(DType::f64, tiled_field<double>(file, bytes / 8), bound).run(name);
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "gpu_codec_bench: %s\n", e.what());
    return 2;
  }
  return 0;
}
