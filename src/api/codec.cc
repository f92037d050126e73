// laconic_compress and its kin: the frame behind the C interface.
#include <algorithm>

#include "api/arguments.h"
#include "api/handle.h"
#include "core/config.h"
#include "core/float_environment.h"
#include "core/range.h"
#include "frame/frame.h"

namespace laconic::api {
namespace {

void require(bool holds, const std::string& text) {
  if (!holds) throw Error(Code::invalid_argument, text);
}

frame::Bytes stream_from(const void* stream, std::size_t size) {
  require(buffer(stream) != nullptr || size == 0, "stream is null or in place");
  return {static_cast<const std::uint8_t*>(stream), size};
}

/// ConstArray or MutArray.
template <typename Array, typename Data>
Array array_from(Data* data, std::size_t count, laconic_dtype dtype) {
  require(buffer(data) != nullptr || count == 0, "data is null or in place");
  require_dtype(dtype);
  const Array x{data, count, as_dtype(dtype)};
  require_count("count", count, x.dtype);
  return x;
}

/// Throws Error(unsupported) for a bound or dtype that the codec has no use for.
Grid grid_of(const Codec& codec, ConstArray x, const Bound& bound, int threads) {
  require_dtype(codec, x.dtype);
  const bool needs_range = is_float(x.dtype) && bound.kind != BoundKind::lossless && bound.kind != BoundKind::ratio;
  return grid_for(codec, x.dtype, bound, needs_range ? scan(x, threads) : Range{});
}

}  // namespace
}  // namespace laconic::api

namespace lac = laconic;
using lac::api::guarded;

extern "C" {

size_t laconic_compress_capacity(size_t count, laconic_dtype dtype) {
  const lac::DType d = lac::api::as_dtype(dtype);
  if (!lac::is_valid(d) || count > lac::most_elements_of(d)) return 0;
  std::size_t most = 0;  // of any codec: options are not asked for here
  for (const lac::Codec* const codec : lac::all_codecs())
    if (codec->takes(d)) most = std::max(most, lac::frame::capacity(d, count, *codec));
  return most;
}

int laconic_compress(const void* data, size_t count, laconic_dtype dtype, void* stream, size_t capacity,
                     size_t* written, const laconic_options* options) {
  return guarded([&] {
    const lac::FloatEnvironment environment;
    const auto x = lac::api::array_from<lac::ConstArray>(data, count, dtype);
    lac::api::require(lac::api::buffer(stream) != nullptr, "stream is null or in place");
    lac::api::require(written != nullptr, "written is null");
    const lac::Options o = lac::api::options_from(options, lac::api::options_from_environment());
    lac::require_threads(o.threads);
    const lac::Codec& codec = *lac::find_codec(o.codec);
    *written = lac::frame::encode(codec, x, lac::api::grid_of(codec, x, o.bound, o.threads),
                                  {static_cast<std::uint8_t*>(stream), capacity}, o.threads);
  });
}

int laconic_inspect(const void* stream, size_t size, laconic_info* info) {
  return guarded([&] {
    const lac::FloatEnvironment environment;
    lac::api::require(info != nullptr && info->struct_size >= sizeof(laconic_info),
                      "info: set struct_size to sizeof(laconic_info)");
    const auto bytes = lac::api::stream_from(stream, size);
    const lac::frame::Header h = lac::frame::check(bytes);
    info->dtype = static_cast<int>(h.grid.dtype);
    info->operands = h.operands;
    info->count = h.count;
    info->bytes = h.frame_bytes;
    info->bound = h.grid.bound;
  });
}

int laconic_decompress(const void* stream, size_t size, void* data, size_t count, laconic_dtype dtype, int threads) {
  return guarded([&] {
    const lac::FloatEnvironment environment;
    const auto x = lac::api::array_from<lac::MutArray>(data, count, dtype);
    const int with = threads != 0 ? threads : lac::config().threads;
    lac::require_threads(with);
    lac::frame::decode(lac::api::stream_from(stream, size), x, with);
  });
}

}  // extern "C"
