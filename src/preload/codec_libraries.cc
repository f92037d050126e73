// The libraries of codecs and checksums (zfp, LZ4, Zstandard, ISA-L) come when they are first called, and where the
// program does not see them. What a library that is loaded before a program needs stands in the program's own scope:
// its plugins would take our stream_open or LZ4_compressBound for theirs, and we would take a program's for ours. So
// these are the functions that the codecs call; the exports leave them hidden.
#include <dlfcn.h>
#if defined(LACONIC_UNSEEN_ISAL)
#include <isa-l/crc.h>
#endif
#if defined(LACONIC_UNSEEN_LZ4)
#include <lz4.h>
#include <lz4hc.h>
#endif
#if defined(LACONIC_UNSEEN_ZFP)
#include <zfp.h>
#endif
#if defined(LACONIC_UNSEEN_ZSTD)
#include <zstd.h>
#endif

#include <string>

#include "core/error.h"

namespace {

void* function_of(const char* library, const char* name) {
  // Its calls to itself shall not reach the program either; but sanitizers end a program that asks for that.
  const int deep = ::dlsym(RTLD_DEFAULT, "__sanitizer_set_death_callback") == nullptr ? RTLD_DEEPBIND : 0;
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL | deep);
  void* const function = handle == nullptr ? nullptr : ::dlsym(handle, name);
  if (function != nullptr) return function;
  const char* const why = ::dlerror();  // NOLINT(concurrency-mt-unsafe): glibc keeps one for each thread
  throw laconic::Error(laconic::Code::unsupported, why != nullptr ? why : std::string(library) + " lacks " + name);
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): types and lists
#define LACONIC_UNSEEN_CALL(library, result, name, parameters, arguments)                      \
  result name parameters {                                                                     \
    static const auto real = reinterpret_cast<decltype(&::name)>(function_of(library, #name)); \
    return real arguments;                                                                     \
  }
// NOLINTEND(bugprone-macro-parentheses)

extern "C" {

#if defined(LACONIC_UNSEEN_ISAL)
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ISAL, unsigned, crc32_iscsi, (unsigned char* buffer, int n, unsigned crc),
                    (buffer, n, crc))

/// Every message needs this one: it comes before the program can run out of files to open.
__attribute__((constructor)) void begin_with_checksums() {
  unsigned char none = 0;
  try {
    crc32_iscsi(&none, 0, 0);
  } catch (const laconic::Error&) {  // NOLINT(bugprone-empty-catch): who needs it will hear of it
  }
}
#endif

#if defined(LACONIC_UNSEEN_LZ4)
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_LZ4, int, LZ4_compressBound, (int n), (n))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_LZ4, int, LZ4_compress_default, (const char* from, char* to, int n, int room),
                    (from, to, n, room))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_LZ4, int, LZ4_compress_HC, (const char* from, char* to, int n, int room, int level),
                    (from, to, n, room, level))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_LZ4, int, LZ4_decompress_safe, (const char* from, char* to, int n, int room),
                    (from, to, n, room))
#endif

#if defined(LACONIC_UNSEEN_ZSTD)
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZSTD, size_t, ZSTD_compressBound, (size_t n), (n))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZSTD, unsigned, ZSTD_isError, (size_t code), (code))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZSTD, ZSTD_CCtx*, ZSTD_createCCtx, (), ())
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZSTD, ZSTD_DCtx*, ZSTD_createDCtx, (), ())
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZSTD, size_t, ZSTD_freeCCtx, (ZSTD_CCtx * context), (context))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZSTD, size_t, ZSTD_freeDCtx, (ZSTD_DCtx * context), (context))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZSTD, size_t, ZSTD_compressCCtx,
                    (ZSTD_CCtx * context, void* to, size_t room, const void* from, size_t n, int level),
                    (context, to, room, from, n, level))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZSTD, size_t, ZSTD_decompressDCtx,
                    (ZSTD_DCtx * context, void* to, size_t room, const void* from, size_t n),
                    (context, to, room, from, n))
#endif

#if defined(LACONIC_UNSEEN_ZFP)
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZFP, bitstream*, stream_open, (void* buffer, size_t bytes), (buffer, bytes))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZFP, void, stream_close, (bitstream * stream), (stream))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZFP, zfp_field*, zfp_field_1d, (void* p, zfp_type type, size_t nx), (p, type, nx))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZFP, zfp_field*, zfp_field_2d, (void* p, zfp_type type, size_t nx, size_t ny),
                    (p, type, nx, ny))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZFP, zfp_field*, zfp_field_3d,
                    (void* p, zfp_type type, size_t nx, size_t ny, size_t nz), (p, type, nx, ny, nz))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZFP, void, zfp_field_free, (zfp_field * field), (field))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZFP, zfp_stream*, zfp_stream_open, (bitstream * stream), (stream))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZFP, void, zfp_stream_close, (zfp_stream * stream), (stream))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZFP, void, zfp_stream_rewind, (zfp_stream * stream), (stream))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZFP, void, zfp_stream_set_bit_stream, (zfp_stream * stream, bitstream* bs),
                    (stream, bs))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZFP, size_t, zfp_stream_maximum_size,
                    (const zfp_stream* stream, const zfp_field* field), (stream, field))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZFP, void, zfp_stream_set_reversible, (zfp_stream * stream), (stream))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZFP, double, zfp_stream_set_accuracy, (zfp_stream * stream, double tolerance),
                    (stream, tolerance))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZFP, double, zfp_stream_set_rate,
                    (zfp_stream * stream, double rate, zfp_type type, unsigned dims, zfp_bool align),
                    (stream, rate, type, dims, align))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZFP, size_t, zfp_compress, (zfp_stream * stream, const zfp_field* field),
                    (stream, field))
LACONIC_UNSEEN_CALL(LACONIC_UNSEEN_ZFP, size_t, zfp_decompress, (zfp_stream * stream, zfp_field* field),
                    (stream, field))
#endif

}  // extern "C"
