// Byte permutations and 8x8 bit matrices for avx512x.cc, which includes this inside its target region.

/// Byte permutations and bit matrices.
struct Tables {
  alignas(64) std::uint8_t from_packed[64];       // after the lane-wise packs: value 8g+7-r to byte 8g+r
  alignas(64) std::uint8_t to_planes[64];         // byte 8g+r to 8r+g
  alignas(64) std::uint8_t from_planes[64];       // byte 8(7-r)+g to 8g+r
  alignas(64) std::uint8_t ascending[64];         // 0, 1, 2, ...
  alignas(64) std::int32_t fours[4][16];          // of vector k, lane j: group 4k + j / 4 of four values
  alignas(64) std::uint8_t triangle[64];          // byte t of lane j: whether t <= j % 4
  alignas(64) std::uint8_t wedge[64];             // and how many there are from t to j % 4: sums of sums
  alignas(64) std::uint8_t from_packed16[2][64];  // low and high bytes of 16-bit packs, in from_packed's order
  alignas(64) std::uint8_t lowest[9 * 64];        // at 64 n: all bits of the first n planes
  alignas(64) std::uint8_t interleave[2][64];     // low bytes (0..63) and high bytes (64..127) of 32 words each
  alignas(64) std::uint8_t value_before[64];      // at byte 8g+r of value 8g+7-r: where the one before is; 64 on: of 63
  std::uint16_t splits[9][9];  // by w and by full planes from the bottom: 8 * d, code in the high byte

  constexpr Tables()
      : from_packed(),
        to_planes(),
        from_planes(),
        ascending(),
        fours(),
        triangle(),
        wedge(),
        from_packed16(),
        lowest(),
        interleave(),
        value_before(),
        splits() {
    for (int g = 0; g < 8; ++g)
      for (int r = 0; r < 8; ++r) {
        const int v = g * 8 + (7 - r);
        from_packed[g * 8 + r] = static_cast<std::uint8_t>((v % 16) / 4 * 16 + v / 16 * 4 + v % 4);
        to_planes[r * 8 + g] = static_cast<std::uint8_t>(g * 8 + r);
        from_planes[g * 8 + r] = static_cast<std::uint8_t>((7 - r) * 8 + g);
        value_before[g * 8 + r] = static_cast<std::uint8_t>(v == 0 ? 64 + 56 : (v - 1) / 8 * 8 + 7 - (v - 1) % 8);
      }
    for (int i = 0; i < 64; ++i) ascending[i] = static_cast<std::uint8_t>(i);
    for (int j = 0; j < 16; ++j)
      for (int k = 0; k < 4; ++k) {
        fours[k][j] = 4 * k + j / 4;
        triangle[4 * j + k] = k <= j % 4;
        wedge[4 * j + k] = static_cast<std::uint8_t>(k <= j % 4 ? j % 4 - k + 1 : 0);
      }
    for (int g = 0; g < 8; ++g)
      for (int r = 0; r < 8; ++r) {
        // Value v stands in the first pack when v < 32; a pack's 128-bit lane holds four of one half, four of the
        // other.
        const int v = g * 8 + (7 - r);
        const int word = v / 32 * 32 + v % 16 / 4 * 8 + v % 32 / 16 * 4 + v % 4;
        for (int high = 0; high < 2; ++high)
          from_packed16[high][g * 8 + r] = static_cast<std::uint8_t>(2 * word + high);
      }
    for (int n = 0; n <= 8; ++n)
      for (int i = 0; i < 8 * n; ++i) lowest[64 * n + i] = 255;
    for (int half = 0; half < 2; ++half)
      for (int i = 0; i < 32; ++i) {
        interleave[half][2 * i] = static_cast<std::uint8_t>(32 * half + i);
        interleave[half][2 * i + 1] = static_cast<std::uint8_t>(64 + 32 * half + i);
      }
    for (int w = 0; w <= 8; ++w)
      for (int full = 0; full <= 8; ++full) {
        const int d = dense_planes(w, [&](int r) { return r < full ? 8 : 0; });
        splits[w][full] = static_cast<std::uint16_t>(8 * d | make_code(w, d) << 8);
      }
  }
};
constexpr Tables tables;

/// The tables by one base register that the compiler cannot see through: else it keeps an address for each of them.
inline const Tables& at_hand() {
  const Tables* t = &tables;
  asm("" : "+r"(t));
  return *t;
}

/// GF2P8AFFINEQB's operand that transposes 8x8 bits and maps the bytes on the way: sums(in, out) says which input bits
/// an output bit is the sum of.
template <class F>
constexpr std::uint64_t plane_matrix(F sums) {
  std::uint64_t a = 0;
  for (int out = 0; out < 8; ++out)
    for (int in = 0; in < 8; ++in)
      if (sums(in, out)) a |= std::uint64_t{1} << (8 * out + in);
  return a;
}
/// Its matrix that maps bytes: the same with the rows reversed.
template <class F>
constexpr std::uint64_t bit_matrix(F sums) {
  return plane_matrix([&](int in, int row) { return sums(in, 7 - row); });
}
/// Zigzag of a signed byte: bit 0 is the sign, bit i is bit i-1 xor the sign; and parts of it, for longer values.
constexpr auto zigzag_bits = [](int in, int out) { return (in == 7) != (out > 0 && in == out - 1); };
constexpr auto bits_up = [](int in, int out) { return in == out - 1; };
constexpr auto sign_to_all_bits = [](int in, int) { return in == 7; };
constexpr auto sign_to_one_bit = [](int in, int out) { return in == 7 && out == 0; };

/// Zigzag and back.
constexpr std::uint64_t to_zigzag = bit_matrix(zigzag_bits);
constexpr std::uint64_t from_zigzag =
    bit_matrix([](int in, int out) { return (in == 0) != (out < 7 && in == out + 1); });
constexpr std::uint64_t identity = bit_matrix([](int in, int out) { return in == 7 - out; });

/// The same between the halves of a 16-bit value, beside to_zigzag and from_zigzag of the half itself.
struct ZigzagMaps {
  std::uint64_t carry_down = bit_matrix([](int in, int out) { return in == 0 && out == 7; });
  std::uint64_t shift_down = bit_matrix([](int in, int out) { return in == out + 1; });
  std::uint64_t sign_down = bit_matrix([](int in, int) { return in == 0; });
  std::uint64_t sign_to_one = bit_matrix(sign_to_one_bit);
  std::uint64_t shift_up = bit_matrix(bits_up);
  std::uint64_t sign_up = bit_matrix(sign_to_all_bits);
};
constexpr ZigzagMaps zigzag_maps;

constexpr std::uint64_t reversal = bit_matrix([](int in, int out) { return in == out; });

/// Of each eight bytes; in another order, or with the bytes mapped as plane_matrix says.
inline __m512i transpose(__m512i rows, std::uint64_t map = identity) {
  return _mm512_gf2p8affine_epi64_epi8(_mm512_set1_epi64(static_cast<long long>(map)), rows, 0);
}

inline __m512i affine(__m512i bytes, std::uint64_t matrix) {
  return _mm512_gf2p8affine_epi64_epi8(bytes, _mm512_set1_epi64(static_cast<long long>(matrix)), 0);
}
