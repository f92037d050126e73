// The host's side of the survey: checks arguments, launches.
#include <algorithm>

#include "gpu/launch.h"
#include "gpu/survey.h"
#include "gpu/survey_steps.h"

namespace laconic::gpu {
namespace {

using namespace on_device;

/// Enough for a full multiprocessor, and few enough that what each adds to the result at the end costs nothing.
constexpr int blocks_per_multiprocessor = 8;
constexpr int least_resident_blocks = 4;

__device__ Share share_of_warp() {
  return {std::uint64_t{blockIdx.x} * tile_warps + threadIdx.x / warp_lanes, std::uint64_t{gridDim.x} * tile_warps};
}

template <class T>
__global__ void __launch_bounds__(tile_threads, least_resident_blocks)
    scan_kernel(const typename T::Bits* x, std::uint64_t count, ScanTally* tally) {
  __shared__ ScanShared shared;
  run_scan<T>(Tile(), blockIdx.x, gridDim.x, x, count, tally, shared);
}

template <class T>
__global__ void __launch_bounds__(tile_threads, least_resident_blocks)
    outliers_kernel(const typename T::Bits* x, std::uint64_t count, const OutlierBits wanted, Outliers* result) {
  __shared__ OutlierShared shared;
  run_count_outliers<T>(Tile(), blockIdx.x, gridDim.x, x, count, wanted, result, shared);
}

template <class T>
__global__ void __launch_bounds__(tile_threads, least_resident_blocks)
    divide_kernel(typename T::Bits* x, std::uint64_t count, typename T::Real divisor) {
  divide_share<T>(Warp(), share_of_warp(), x, count, divisor);
}

template <class O>
__global__ void __launch_bounds__(tile_threads, least_resident_blocks)
    extreme_kernel(bool smaller, typename O::Bits* a, const typename O::Bits* b, std::uint64_t count) {
  extreme_share<O>(Warp(), share_of_warp(), smaller, a, b, count);
}

template <class Element>
__global__ void __launch_bounds__(tile_threads) gather_kernel(const Element* x, Sample sample, Element* out) {
  gather_share(Warp(), share_of_warp(), x, sample, out);
}

/// Thread blocks that share an array: as many as the device can make use of, and no more than find a batch each.
template <class T>
std::uint64_t blocks_for(std::uint64_t count) {
  int device = 0;
  int multiprocessors = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
             "cudaDeviceGetAttribute");
  const auto most = static_cast<std::uint64_t>(multiprocessors) * blocks_per_multiprocessor;
  return std::min(most, tiles_of(count, tile_warps * Batches<T>::size));
}

void require_array(ConstArray x, const char* what) {
  if (!is_valid(x.dtype))
    throw Error(Code::invalid_argument, std::string(what) + ": " + std::to_string(static_cast<int>(x.dtype)) +
                                            " is no dtype; want one of core/dtype.h");
  if (x.count > 0) require_aligned(x.data, size_of(x.dtype), what);
}

void require_float(ConstArray x, const char* what) {
  require_array(x, what);
  if (!is_float(x.dtype))
    throw Error(Code::unsupported,
                std::string(what) + ": dtype " + std::string(name_of(x.dtype)) + "; want f32, f64, f16 or bf16");
}

template <class Result>
void clear(Result* result, Stream stream) {
  require_aligned(result, alignof(Result), "result");
  check_cuda(cudaMemsetAsync(result, 0, sizeof *result, stream), "cudaMemsetAsync");
}

}  // namespace

void load_survey() {
  const auto floats = {DType::f32, DType::f64, DType::f16, DType::bf16};
  const auto integers = {DType::i32, DType::i64, DType::u32, DType::u64};
  const auto load_extreme = []<class O>(O) { load(reinterpret_cast<const void*>(&extreme_kernel<O>)); };
  for (const DType t : floats)
    with_float(t, []<class T>(T) {
      load(reinterpret_cast<const void*>(&scan_kernel<T>));
      load(reinterpret_cast<const void*>(&outliers_kernel<T>));
      load(reinterpret_cast<const void*>(&divide_kernel<T>));
    });
  for (const DType t : floats) with_ordered(t, load_extreme);
  for (const DType t : integers) with_ordered(t, load_extreme);
  load(reinterpret_cast<const void*>(&gather_kernel<std::uint16_t>));
  load(reinterpret_cast<const void*>(&gather_kernel<std::uint32_t>));
  load(reinterpret_cast<const void*>(&gather_kernel<std::uint64_t>));
}

void scan(ConstArray x, Range* result, Stream stream) {
  require_float(x, "x");
  clear(result, stream);
  if (x.count == 0) return;
  with_float(x.dtype, [&]<class T>(T) {
    std::uint64_t count = x.count;
    launch<3>(reinterpret_cast<const void*>(&scan_kernel<T>), blocks_for<T>(count), 0, {&x.data, &count, &result},
              stream);
  });
}

void count_outliers(ConstArray x, double limit, double fill, Outliers* result, Stream stream) {
  require_float(x, "x");
  clear(result, stream);
  if (x.count == 0) return;
  with_float(x.dtype, [&]<class T>(T) {
    std::uint64_t count = x.count;
    OutlierBits wanted = outlier_bits(x.dtype, limit, fill);
    launch<4>(reinterpret_cast<const void*>(&outliers_kernel<T>), blocks_for<T>(count), 0,
              {&x.data, &count, &wanted, &result}, stream);
  });
}

void divide(MutArray x, int divisor, Stream stream) {
  require_float(x, "x");
  if (divisor < 1) throw Error(Code::invalid_argument, "divisor: " + std::to_string(divisor) + "; want 1 or more");
  if (x.count == 0) return;
  with_float(x.dtype, [&]<class T>(T) {
    std::uint64_t count = x.count;
    auto by = static_cast<typename T::Real>(divisor);
    launch<3>(reinterpret_cast<const void*>(&divide_kernel<T>), blocks_for<T>(count), 0, {&x.data, &count, &by},
              stream);
  });
}

void take_extreme(Op op, MutArray a, ConstArray b, Stream stream) {
  require_array(a, "a");
  require_array(b, "b");
  if (!is_extreme(op)) throw Error(Code::invalid_argument, "op: " + std::string(name_of(op)) + "; want min or max");
  if (a.dtype != b.dtype || a.count != b.count)
    throw Error(Code::invalid_argument, "a and b: want the same dtype and count of both");
  if (a.count == 0) return;
  with_ordered(a.dtype, [&]<class O>(O) {
    std::uint64_t count = a.count;
    bool smaller = op == Op::min;
    launch<4>(reinterpret_cast<const void*>(&extreme_kernel<O>), blocks_for<O>(count), 0,
              {&smaller, &a.data, &b.data, &count}, stream);
  });
}

std::size_t sample_elements(std::size_t count) { return Sample{count}.elements(); }

void gather_sample(ConstArray x, MutArray out, Stream stream) {
  require_array(x, "x");
  require_array(out, "out");
  Sample sample{x.count};
  if (out.dtype != x.dtype || out.count != sample.elements())
    throw Error(Code::invalid_argument, "out: " + std::to_string(out.count) + " elements of dtype " +
                                            std::string(name_of(out.dtype)) + "; want " +
                                            std::to_string(sample.elements()) + " of " + std::string(name_of(x.dtype)));
  if (x.count == 0) return;
  const std::size_t bytes = size_of(x.dtype);
  const auto* kernel = bytes == 2   ? reinterpret_cast<const void*>(&gather_kernel<std::uint16_t>)
                       : bytes == 4 ? reinterpret_cast<const void*>(&gather_kernel<std::uint32_t>)
                                    : reinterpret_cast<const void*>(&gather_kernel<std::uint64_t>);
  launch<3>(kernel, tiles_of(out.count, 4 * tile_threads), 0, {&x.data, &sample, &out.data}, stream);
}

}  // namespace laconic::gpu
