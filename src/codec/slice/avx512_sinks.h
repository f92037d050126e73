// Where the integers of decoded blocks go, for both policies of AVX-512 (see FastCodec::get_blocks): block(b) gives
// what takes the four vectors of block b, each block and vector after the one before. Included by avx512_policy.h.

/// Decoded elements go to memory past the caches when `stream` and their address allow it.
template <class Value>
void stream_or_store(void* at, Value v, bool stream) {
  if (stream) {
    _mm512_stream_si512(static_cast<__m512i*>(at), (__m512i)v);
  } else {
    _mm512_storeu_si512(at, (__m512i)v);
  }
}

struct Avx512Sinks {
  struct ToIntegers {
    std::int32_t* q;
    void put(int k, __m512i v) const { _mm512_store_si512(q + 16 * k, v); }
  };
  static ToIntegers sink(std::int32_t* q) { return {q}; }
  template <class Block>
  static Block sink(Block block) {
    return block;
  }

  /// Whether integers may go straight to f32 elements, without a detour over memory.
  static bool direct(const Params& p) { return elements_of(p) == Elements::f32 && p.narrow_value; }

  template <bool Stream>
  struct ToF32 {
    float* y;
    __m512 step;
    static ToF32 begin(const Params& p, void* y) { return {static_cast<float*>(y), _mm512_set1_ps(p.step32)}; }
    ToF32 block(int b) const {
      if constexpr (!Stream) {
        const float* ahead = y + 64 * b + 512;
        for (int i = 0; i < 64; i += 16) __builtin_prefetch(ahead + i, 1);
      }
      return {y + 64 * b, step};
    }
    void put(int k, __m512i v) const {
      stream_or_store(y + 16 * k, _mm512_mul_ps(_mm512_cvtepi32_ps(v), step), Stream);
    }
  };
};
