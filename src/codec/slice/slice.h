// The slice codec over whole arrays: a table of chunk sizes (u16 each, in units of 4 bytes, padded to a multiple of 4)
// and the chunks. What frames carry. Thread safe; bytes do not depend on the SIMD target or the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/slice/kernels.h"
#include "codec/witness.h"
#include "core/op.h"

namespace laconic::slice {

using Bytes = std::span<const std::uint8_t>;
using MutBytes = std::span<std::uint8_t>;

constexpr std::size_t chunks_of(std::size_t count) { return (count + chunk_values - 1) / chunk_values; }
constexpr std::size_t table_bytes(std::size_t count) { return pad4(2 * chunks_of(count)); }

/// Most bytes that encode() writes.
std::size_t capacity(DType dtype, std::size_t count);
/// Most bytes that sum() writes where none of its chunks takes more than `chunk_bytes`, or than exceptions of two terms
/// each do. With less it may throw too_small.
std::size_t sum_capacity(DType dtype, std::size_t count, std::size_t chunk_bytes = 0);
/// Most bytes of a chunk of a sum with so many exceptions, of so many terms in all. Beyond largest_chunk there is none.
std::size_t sum_chunk_bytes(int planes, std::size_t exceptions, std::size_t terms);

/// A payload whose table has been found to describe exactly its bytes.
struct Payload {
  Bytes bytes;
  std::size_t count = 0;
  Witness* witness = nullptr;  ///< sums show it the bytes that they use
};

/// Throws Error(corrupt) when the table does not fit.
Payload check_table(Bytes payload, std::size_t count);

/// A payload that is a term of a sum.
struct Operand {
  Params params;
  Payload payload;
};
/// Elements that are a sum's first term; null: there are none.
struct Local {
  Params params;
  const void* x = nullptr;
};

/// Each returns the payload's bytes; Error(too_small) when out cannot hold it, Error(corrupt) for a damaged operand.
/// `witness`, if there is one, is shown the chunks that have been written.
std::size_t encode(const Params& p, const void* x, std::size_t count, MutBytes out, int threads,
                   Witness* witness = nullptr);

/// encode(), and to y what decode() makes of that; y is x, or apart from it. `whole_bytes`: as decode() has it. After
/// an Error y holds anything.
std::size_t encode_decode(const Params& p, const void* x, std::size_t count, MutBytes out, void* y, int threads,
                          std::size_t whole_bytes, Witness* witness);

/// out = local + operands[0] + operands[1] + ..., two at least: what adding them one after another gives. p describes
/// the result.
std::size_t sum(const Params& p, const Local& local, std::span<const Operand> operands, MutBytes out, int threads,
                Witness* witness = nullptr);

/// The least or the greatest of x on the grid (Kernels::on_grid; null: there is none) and all operands, element by
/// element, encoded as p says. One term at least.
std::size_t extreme(Op op, const Params& p, const void* x, std::span<const Operand> operands, std::size_t count,
                    MutBytes out, int threads, Witness* witness = nullptr);

/// Decodes chunks [first, first + n) to y, which holds the values of just those. `whole_bytes`: see frame::decode().
void decode(const Params& p, const Payload& in, std::size_t first, std::size_t n, void* y, int threads,
            std::size_t whole_bytes = 0);

}  // namespace laconic::slice
