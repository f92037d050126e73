// Measures codecs on one field at one bound: speed against memcpy of the same run, ratio, error.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/dataset.h"
#include "codec/codec.h"
#include "codec/slice/target.h"
#include "core/bound.h"

namespace laconic::app {

struct CodecBenchOptions {
  std::size_t bytes = std::size_t{64} << 20;         ///< each field is repeated or cut to this size
  std::size_t cache_bytes = std::size_t{256} << 10;  ///< the same in cache; 0: leave out
  int repetitions = 5;
  std::vector<const Codec*> codecs;    ///< those that are built in; lossless ones are measured once per field
  std::vector<slice::Target> targets;  ///< slice's kernels to measure; the other codecs run on the best
  int threads = 1;                     ///< more than 1: measured beside one thread
};

/// One line of the result. Seconds of one call; 0 where the codec has no such operation.
struct CodecRow {
  std::string field;
  std::string dtype;
  std::string bound;
  int bound_order = 0;  ///< its place among the bounds asked for
  const Codec* coder = nullptr;
  std::string target;  ///< SIMD target of slice; empty for others
  bool in_cache = false;
  int threads = 1;
  std::size_t raw_bytes = 0;
  std::size_t packed_bytes = 0;
  double error_over_bound = 0;   ///< largest error / bound; 0 for lossless
  std::uint64_t violations = 0;  ///< values outside the bound, or special values that changed
  double copy = 0;               ///< memcpy of raw_bytes by one thread, same run
  double copy_by_threads = 0;    ///< by as many as the row's: what the memory has for them
  double encode = 0, decode = 0, add = 0, encode_add = 0;
  double encode_sum = 0;  ///< of the array and three streams, at once

  [[nodiscard]] std::string codec() const { return std::string(coder->name()); }
  /// Whether a violation is a broken promise.
  [[nodiscard]] bool promised() const { return coder->promise() != Promise::rate; }
  [[nodiscard]] double ratio() const { return static_cast<double>(raw_bytes) / static_cast<double>(packed_bytes); }
  /// Speed as a multiple of memcpy's.
  [[nodiscard]] double versus_copy(double seconds) const { return seconds > 0 ? copy / seconds : 0; }
};

/// All rows of one field at these bounds. `step` is called after each bound, for progress.
std::vector<CodecRow> bench_field(const LoadedField& field, const std::vector<Bound>& bounds,
                                  const CodecBenchOptions& options, const std::function<void()>& step);

/// Ratio and error only, of the field as it is (not repeated). Null where the codec does not take the field's dtype.
std::optional<CodecRow> ratio_of_field(const LoadedField& field, const Bound& bound, const Codec& codec);

}  // namespace laconic::app
