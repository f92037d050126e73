// gpu/codec.h and gpu/survey.h over the fake CUDA, by the CPU's codec, whose bytes the kernels write too (that is what
// gpu_emulated_test and gpu_codec_test prove). For tests of what drives the device.
#pragma once

#include <cstdint>

#include "gpu/faults.h"

namespace laconic::test {

/// Every sum on an emulated device, and every decoding of one, has this fault from now on; Fault::none ends it.
void let_sums_fail(gpu::Fault fault);
/// Sums that have failed so.
std::uint64_t failed_sums();

/// Whether devices lack the shared memory for integers of 64 bits from now on.
void let_wide_integers_be_too_much(bool too_much);

/// This device has no kernels from now on; -1: all have them. At first what the environment has as FAKE_CUDA_TOO_OLD.
void let_be_too_old(int device);

/// The most operands of a sum so far.
std::size_t most_summed();

}  // namespace laconic::test
