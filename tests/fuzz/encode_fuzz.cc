// Any elements on any grid: what encoders promise; of the slice codec also the same bytes on every target, for frames,
// their sums and what they decode to.
#include <cmath>
#include <optional>

#include "codec/codec_cases.h"
#include "collective/budget.h"
#include "fuzz/field.h"

namespace laconic::test {
namespace {

// Two chunks, the second a short one.
constexpr std::size_t most_elements = 2048 + 300;
const std::string_view reference_name = slice::name_of(slice::Target::scalar);

/// What one target makes of two fields.
struct Answer {
  Outcome a, b, sum, fused, three;
  Array decoded_a, decoded_b, decoded_sum, decoded_fused, average, last;
  friend bool operator==(const Answer&, const Answer&) = default;
};

Answer answer_to(const Array& x, const Array& y, const Grid& g) {
  const auto opened = [&](const Outcome& f, std::uint32_t divisor = 1) {
    return f.code == Code::ok ? decoded(x, f, 1, divisor) : Array(x.dtype, 0);
  };
  Answer r{encoded(x, g), encoded(y, g), {}, {}, {}, x, x, x, x, x, x};
  r.sum = added(x, r.a, r.b);
  r.fused = encode_added(x, r.b);
  r.three = summed(&x, x, {r.a, r.b});
  r.decoded_a = opened(r.a);
  for (const bool in_place : {false, true})
    require(encode_decoded(x, g, in_place) == std::pair(r.a, r.decoded_a), "encode_decode differs",
            slice::name_of(slice::current()));
  r.decoded_b = opened(r.b);
  r.decoded_sum = opened(r.sum);
  r.decoded_fused = opened(r.fused);
  r.average = g.lossless() ? r.decoded_sum : opened(r.three, 3);
  const std::size_t chunk = x.count == 0 ? 0 : (x.count - 1) / 2048;
  r.last = Array(x.dtype, x.count - chunk * 2048);
  frame::decode_chunks(r.a.frame, chunk, x.count == 0 ? 0 : 1, r.last.view());
  return r;
}

void require_promise(const Codec& codec, const Grid& g, const Array& x, const Array& y) {
  const std::string broken = broken_promise(codec, g, x, y);
  require(broken.empty(), broken.c_str(), codec.name());
}

/// Of finite operands and sums: each within its bound, and the sum rounded.
void require_sum_bound(const Array& x, const Array& y, const Array& sum, const Grid& g) {
  for (std::size_t i = 0; i < x.count; ++i) {
    const long double exact = static_cast<long double>(x.value(i)) + static_cast<long double>(y.value(i));
    const auto size = static_cast<double>(std::abs(exact)) + 2 * g.bound;
    if (!std::isfinite(size) || size > largest_of(x.dtype) / 2) continue;
    const double ulp = ulp_of(x.dtype, size);
    require(std::abs(exact - static_cast<long double>(sum.value(i))) <= 2 * static_cast<long double>(g.bound) + ulp,
            "a sum beyond the bound", reference_name);
  }
}

/// What the other codecs promise.
void fuzz_another(std::uint8_t which, const Array& x, const Grid& wish) {
  const std::vector<const Codec*> built = built_codecs();
  const Codec& codec = *built[which % built.size()];
  if (codec.id() == CodecId::slice || !codec.takes(x.dtype)) return;
  const Grid g = codec.promise() == Promise::rate ? rate_grid(x.dtype, 1 + which / 20) : grid_for(codec, wish);
  const Outcome f = encoded_by(codec, x, g, 1, {which / 4U * 3, which / 8U});
  require(f.code == Code::ok, "not encoded", codec.name());
  require_promise(codec, g, x, decoded(x, f));
}

void fuzz(Source s) {
  const DType t = all_dtypes[s.next<std::uint8_t>() % all_dtypes.size()];
  const Grid g = next_grid(s, t);
  const std::size_t count = s.next<std::uint16_t>() % most_elements;
  const auto which = s.next<std::uint8_t>();
  const Array x = next_field(s, t, g, count), y = next_field(s, t, g, count);
  fuzz_another(which, x, g);
  std::optional<Answer> reference;
  {
    const OnTarget guard(slice::Target::scalar);
    reference = answer_to(x, y, g);
  }
  for (const Outcome* o : {&reference->a, &reference->b}) {
    require(o->code == Code::ok, "not encoded", reference_name);
    require(o->frame.size() <= frame::capacity(t, count), "beyond the capacity", reference_name);
  }
  require_promise(slice_codec(), g, x, reference->decoded_a);
  require_promise(slice_codec(), g, y, reference->decoded_b);
  require(reference->decoded_fused == reference->decoded_sum, "encode_add and add differ", reference_name);
  if (!g.lossless() && reference->sum.code == Code::ok) require_sum_bound(x, y, reference->decoded_sum, g);
  for (const auto target : fast_targets()) {
    const OnTarget guard(target);
    require(answer_to(x, y, g) == *reference, "differs from the reference", slice::name_of(target));
  }
}

}  // namespace
}  // namespace laconic::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  laconic::test::fuzz({data, size});
  return 0;
}
