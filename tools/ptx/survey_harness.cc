// Compares the kernels of survey.cu that nvcc made, translated from PTX to C++ (translate.py), with the CPU: ranges,
// outliers, quotients, extremes and samples have to be the same bits, whatever the order of the lanes and the number of
// thread blocks. Prints what differs, and a sum.
#include <map>
#include <vector>

#include "collective/extreme.h"
#include "collective/operate.h"
#include "gpu/survey_cases.h"
#include "gpu/survey_steps.h"
#include "launch.h"

// The kernels: parameters as PTX has them, pointers to where they lie.
#define FOR_FLOATS(DO) DO(F32) DO(F64) DO(F16) DO(BF16)
#define DECLARE(T)                                                            \
  void scan_kernel_##T(Lane&, u8*, u8* x, u8* count, u8* tally);              \
  void outliers_kernel_##T(Lane&, u8*, u8* x, u8* count, u8* wanted, u8* to); \
  void divide_kernel_##T(Lane&, u8*, u8* x, u8* count, u8* divisor);
FOR_FLOATS(DECLARE)
#define DECLARE_EXTREME(T) void extreme_kernel_##T(Lane&, u8*, u8* smaller, u8* a, u8* b, u8* count);
FOR_FLOATS(DECLARE_EXTREME)
#define FOR_INTEGERS(DO) DO(i) DO(l) DO(j) DO(m)
FOR_INTEGERS(DECLARE_EXTREME)
#define FOR_WORDS(DO) DO(t) DO(j) DO(m)
#define DECLARE_GATHER(T) void gather_kernel_##T(Lane&, u8*, u8* x, u8* sample, u8* out);
FOR_WORDS(DECLARE_GATHER)

namespace laconic::test {
namespace {

/// What kernels are called with; a lane's function has no way to capture it.
struct Arguments {
  const void* x;
  const void* b;
  void* to;
  u64 count;
  gpu::OutlierBits wanted;
  double divisor64;
  float divisor32;
  bool smaller;
  Sample sample;
};
Arguments arguments;

using Launched = void (*)(Lane&);

struct Kernels {
  Launched scan = nullptr, outliers = nullptr, divide = nullptr, extreme = nullptr, gather = nullptr;
};

#define EXTREME_OF(T)                                                                            \
  [](Lane& lane) {                                                                               \
    extreme_kernel_##T(lane, nullptr, at_argument(arguments.smaller), at_argument(arguments.to), \
                       at_argument(arguments.b), at_argument(arguments.count));                  \
  }
#define GATHER_OF(T)                                                                          \
  [](Lane& lane) {                                                                            \
    gather_kernel_##T(lane, nullptr, at_argument(arguments.x), at_argument(arguments.sample), \
                      at_argument(arguments.to));                                             \
  }
#define FLOATS_OF(T, divisor, word)                                                             \
  {[](Lane& lane) {                                                                             \
     scan_kernel_##T(lane, nullptr, at_argument(arguments.x), at_argument(arguments.count),     \
                     at_argument(arguments.to));                                                \
   },                                                                                           \
   [](Lane& lane) {                                                                             \
     outliers_kernel_##T(lane, nullptr, at_argument(arguments.x), at_argument(arguments.count), \
                         at_argument(arguments.wanted), at_argument(arguments.to));             \
   },                                                                                           \
   [](Lane& lane) {                                                                             \
     divide_kernel_##T(lane, nullptr, at_argument(arguments.to), at_argument(arguments.count),  \
                       at_argument(arguments.divisor));                                         \
   },                                                                                           \
   EXTREME_OF(T), GATHER_OF(word)}

const std::map<DType, Kernels> kernels = {
    {DType::f32, FLOATS_OF(F32, divisor32, j)},
    {DType::f64, FLOATS_OF(F64, divisor64, m)},
    {DType::f16, FLOATS_OF(F16, divisor32, t)},
    {DType::bf16, FLOATS_OF(BF16, divisor32, t)},
    {DType::i32, {.extreme = EXTREME_OF(i), .gather = GATHER_OF(j)}},
    {DType::i64, {.extreme = EXTREME_OF(l), .gather = GATHER_OF(m)}},
    {DType::u32, {.extreme = EXTREME_OF(j), .gather = GATHER_OF(j)}},
    {DType::u64, {.extreme = EXTREME_OF(m), .gather = GATHER_OF(m)}},
};

/// Where nobody has been before: a small and a large one, odd places, several batches of several warps.
constexpr Place some_places[] = {{1, 1}, {33, 1}, {2047, 7}, {9001, 3}, {20000, 0}};

class Checker {
 public:
  explicit Checker(DType dtype) : dtype_(dtype), of_(kernels.at(dtype)) {}

  void scan_and_count(const Array& x, const std::string& what) {
    arguments.x = x.data();
    arguments.count = x.count;
    for (const u64 blocks : {1, 2}) {
      Range range;
      std::memset(&range, 0, sizeof range);
      arguments.to = &range;
      launch(blocks, 0, of_.scan);
      const Range want = scan(x.view());
      expect(std::memcmp(&range, &want, sizeof range) == 0, "scan", what);
    }
    for (const Beyond& beyond : questions_about(x)) {
      gpu::OutlierBits wanted = gpu::outlier_bits(dtype_, beyond.limit, beyond.fill);
      Outliers found;
      arguments.wanted = wanted;
      arguments.to = &found;
      launch(1 + x.count % 2, 0, of_.outliers);
      const Outliers want = count_outliers(x.view(), beyond.limit, beyond.fill);
      expect(want.count == found.count && want.fills == found.fills && want.within == found.within &&
                 want.fill_at == found.fill_at && want.lone_at == found.lone_at,
             "outliers", what);
    }
  }
  void divide_by(const Array& x, int divisor, const std::string& what) {
    Array want = x, got = x;
    divide(want.view(), divisor);
    arguments.to = got.data();
    arguments.count = got.count;
    arguments.divisor32 = static_cast<float>(divisor);
    arguments.divisor64 = divisor;
    launch(2, 0, of_.divide);
    expect(want == got, "divide", what);
  }
  void take(Op op, const Array& a, const Array& b, const std::string& what) {
    Array want = a, got = a;
    take_extreme(op, want.view(), b.view());
    arguments.smaller = op == Op::min;
    arguments.to = got.data();
    arguments.b = b.data();
    arguments.count = got.count;
    launch(2, 0, of_.extreme);
    expect(want == got, "extreme", what);
  }
  void gather(const Array& x, const std::string& what) {
    const Sample chosen{x.count};
    Array out(dtype_, chosen.elements());
    arguments.x = x.data();
    arguments.sample = chosen;
    arguments.to = out.data();
    launch(3, 0, of_.gather);
    bool same = true;
    for (std::size_t i = 0; i < out.count; i++) {
      same = same && out.bits(i) == x.bits(chosen.first(i / frame::chunk_values) + i % frame::chunk_values);
    }
    expect(same, "gather", what);
  }
  [[nodiscard]] int cases() const { return cases_; }
  [[nodiscard]] int bad() const { return bad_; }

 private:
  void expect(bool right, const char* kernel, const std::string& what) {
    cases_++;
    if (right) return;
    bad_++;
    std::printf("%s: %s\n", kernel, what.c_str());
  }

  DType dtype_;
  const Kernels& of_;
  int cases_ = 0, bad_ = 0;
};

int run() {
  int cases = 0, bad = 0;
  for (const DType dtype : all_dtypes) {
    Checker checker(dtype);
    for (std::size_t k = 0; k < all_kinds.size(); k++) {
      for (const Place& at : some_places) {
        const Array x = placed(dtype, all_kinds[k], at);
        const std::string what = describe(dtype, all_kinds[k], at);
        if (is_float(dtype)) {
          checker.scan_and_count(x, what);
          for (const int divisor : {1, 3, 1000, 2147483647}) checker.divide_by(x, divisor, what);
        }
        for (const std::size_t apart : {0U, 1U}) {  // of the two arrays' places
          const Kind other = all_kinds[(k * 5 + apart * 3) % all_kinds.size()];
          const Array b = placed(dtype, other, {at.count, at.offset + apart}, 2);
          for (const Op op : {Op::min, Op::max}) checker.take(op, x, b, what);
        }
      }
    }
    for (const Place& at : {Place{5, 1}, Place{2049, 0}, Place{16 * 2048 + 1, 0}, Place{100000, 3}}) {
      checker.gather(placed(dtype, Kind::mixed, at), describe(dtype, Kind::mixed, at));
    }
    cases += checker.cases();
    bad += checker.bad();
  }
  std::printf("%d cases, %d bad\n", cases, bad);
  return bad == 0 ? 0 : 1;
}

}  // namespace
}  // namespace laconic::test

int main() { return laconic::test::run(); }
