// Other compressors, measured beside ours in the same run: zfp (fixed accuracy), LZ4 and zstd (both lossless, on
// bytes).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/array.h"
#include "io/shape.h"

namespace laconic::app {

/// One compressor set up for one array. compress() must run before decompress().
class Rival {
 public:
  virtual ~Rival() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  /// True when the error bound changes what it does.
  [[nodiscard]] virtual bool lossy() const = 0;
  /// Returns the compressed bytes.
  virtual std::size_t compress() = 0;
  virtual void decompress() = 0;
  /// What decompress() gave; as long as the original.
  [[nodiscard]] virtual ConstArray decoded() const = 0;
};

/// x must outlive the rivals. `dims` are those of one tile of x (x repeats it along the slowest axis). `bound` is
/// absolute.
std::unique_ptr<Rival> make_zfp(ConstArray x, const Dims& dims, double bound);  ///< nullptr for dtypes it has not
std::unique_ptr<Rival> make_lz4(ConstArray x);
std::unique_ptr<Rival> make_zstd(ConstArray x, int level);

}  // namespace laconic::app
