// Where the integers of decoded blocks go, for both policies of AVX-512 (see FastCodec::get_blocks): block(b) gives
// what takes the four vectors of block b, each block and vector after the one before. Included by avx512_policy.h.

/// Decoded elements go to memory past the caches when `stream` and their address allow it. Else the line that is soon
/// written is asked for: stores wait for theirs one after the other.
template <class Value>
void stream_or_store(void* at, Value v, bool stream) {
  if (stream) {
    _mm512_stream_si512(static_cast<__m512i*>(at), (__m512i)v);
  } else {
    __builtin_prefetch(static_cast<char*>(at) + 2048, 1);
    _mm512_storeu_si512(at, (__m512i)v);
  }
}

struct Avx512Sinks {
  struct ToIntegers {
    std::int32_t* q;
    void put(int k, __m512i v) const { _mm512_store_si512(q + 16 * k, v); }
  };
  static ToIntegers sink(std::int32_t* q) { return {q}; }
  /// Integers that are added to those that are there.
  struct Added {
    std::int32_t* q;
    void put(int k, __m512i v) const {
      _mm512_store_si512(q + 16 * k, _mm512_add_epi32(v, _mm512_load_si512(q + 16 * k)));
    }
  };
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
    [[nodiscard]] ToF32 block(int b) const { return {y + 64 * b, step}; }
    void put(int k, __m512i v) const {
      stream_or_store(y + 16 * k, _mm512_mul_ps(_mm512_cvtepi32_ps(v), step), Stream);
    }
  };

  /// Past the caches where elements begin within a cache line: each whole line is the end of one vector and the
  /// beginning of the next. (Copies of whole chunks take turns with the work; these go on beside it.)
  struct ToF32Lines {
    struct Ends {
      __m512 first, last;
    };
    float* line;    ///< where the block's first vector begins
    __m512* first;  ///< where the chunk's first vector goes, for finish(); null in all blocks but the first
    __m512* last;
    __m512 step;
    __m512i joint;
    int begun;  ///< elements of the line before the chunk's

    static ToF32Lines begin(const Params& p, void* y, Ends& ends) {
      const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      __builtin_prefetch(static_cast<float*>(y) + chunk_values - 1, 1);  // finish() would hold up all stores behind it
      const auto begun = static_cast<int>(reinterpret_cast<std::uintptr_t>(y) % 64 / sizeof(float));
      return {static_cast<float*>(y) - begun,
              &ends.first,
              &ends.last,
              _mm512_set1_ps(p.step32),
              _mm512_add_epi32(lanes, _mm512_set1_epi32(16 - begun)),
              begun};
    }
    [[nodiscard]] ToF32Lines block(int b) const {
      return {line + 64 * b, b == 0 ? first : nullptr, last, step, joint, begun};
    }
    void put(int k, __m512i v) const {
      const __m512 now = _mm512_mul_ps(_mm512_cvtepi32_ps(v), step);
      const __m512 joined = _mm512_permutex2var_ps(*last, joint, now);
      *last = now;
      if (k == 0 && first != nullptr) {
        *first = joined;  // not past the caches: finish() would wait for memory
      } else {
        _mm512_stream_ps(line + 16 * k, joined);
      }
    }
    /// The two lines that have others' elements too; a store that began in another line would take that from memory.
    void finish() const {
      const auto before = static_cast<__mmask16>((1U << begun) - 1);
      _mm512_mask_storeu_ps(line, static_cast<__mmask16>(~before), *first);
      _mm512_mask_storeu_ps(line + chunk_values, before, _mm512_permutexvar_ps(joint, *last));
    }
  };
};
