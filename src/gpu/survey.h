// What a collective asks of an array in device memory before and after it is coded. The answers are those of the CPU,
// to the bit: scan() of core/range.h, count_outliers() of collective/outliers.h, divide() of collective/operate.h,
// take_extreme() of core/extreme.h, the chunks of collective/sample.h.
//
// As in codec.h: calls only enqueue work on a stream, allocate nothing, wait for nothing, may be captured into a CUDA
// graph. All memory is device memory of the current device; it belongs to the caller until the stream has come past
// the call. Results are written to where the caller says and need no workspace; while a call runs, it counts there.
// Thread safe. The same array always gives the same result, whatever the device.
//
// Alignment: arrays to their elements (any is fast; two arrays are faster where they lie alike, modulo 16 bytes),
// results to 8 bytes. Any count of elements, 0 included. Errors are thrown as Error before anything is enqueued:
// invalid_argument, or unsupported for a dtype.
#pragma once

#include "collective/outliers.h"
#include "core/array.h"
#include "core/op.h"
#include "core/range.h"
#include "gpu/stream.h"

namespace laconic::gpu {

/// As load_codec() of codec.h.
void load_survey();

/// *result = the range of x. f32, f64, f16, bf16. One pass at memory speed.
void scan(ConstArray x, Range* result, Stream stream);

/// *result = how many |x| lie beyond limit up to fill, how many are fill, and where. f32, f64, f16, bf16. One pass.
void count_outliers(ConstArray x, double limit, double fill, Outliers* result, Stream stream);

/// x[i] = x[i] / divisor, which is at least 1. f32, f64, f16, bf16.
void divide(MutArray x, int divisor, Stream stream);

/// a[i] = the minimum or maximum of a[i] and b[i]. All dtypes. b may be a, but not overlap it otherwise.
void take_extreme(Op op, MutArray a, ConstArray b, Stream stream);

/// Elements that gather_sample() takes of an array of `count`, at most 32768.
std::size_t sample_elements(std::size_t count);

/// out = the chunks by which the ratio of x is estimated, one behind the other: sample_fraction() of
/// collective/routing.h is the same for out as for x, and so, nearly, is the share that encode() makes of it. All
/// dtypes. out.count is sample_elements(x.count).
void gather_sample(ConstArray x, MutArray out, Stream stream);

}  // namespace laconic::gpu
