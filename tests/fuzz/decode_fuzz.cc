// Any bytes as a frame, with the checksum put right so that the chunk decoders are reached: checked, decoded whole and
// by chunks, added to itself and to local elements, on every target, whose answers must agree (see frame_damage_test.cc
// for where the reference may differ).
#include <optional>

#include "codec/slice_cases.h"
#include "fuzz/require.h"
#include "support/patched_crc.h"

namespace laconic::test {
namespace {

constexpr std::uint64_t most_elements = 3 * 2048;

struct Answer {
  Code decode = Code::ok;
  std::vector<std::uint8_t> values;
  Outcome sum, fused;
  friend bool operator==(const Answer&, const Answer&) = default;
};

Answer answer_to(const std::vector<std::uint8_t>& bytes, slice::Target target) {
  const OnTarget guard(target);
  Answer a;
  try {
    const frame::Header h = frame::check(bytes);
    if (h.count > most_elements) return a;
    Array y(h.grid.dtype, h.count);
    frame::decode(bytes, y.view());
    if (h.codec != CodecId::slice) return a;  // what they decode damaged bytes to may depend on the target
    a.values.assign(y.data(), y.data() + y.size_bytes());
    if (!h.grid.lossless()) frame::decode(bytes, y.view(), 1, 3);
    Array last(h.grid.dtype, h.count == 0 ? 0 : (h.count - 1) % 2048 + 1);
    frame::decode_chunks(bytes, h.count == 0 ? 0 : h.chunks() - 1, h.count == 0 ? 0 : 1, last.view());
    const Outcome f{.frame = bytes};
    a.sum = added(y, f, f);
    a.fused = encode_added(sample(h.grid.dtype, Kind::mixed, h.count), f);
    for (const Outcome* o : {&a.sum, &a.fused})
      if (o->code == Code::ok) decoded(y, *o);  // what add writes must be valid, whatever it was given
  } catch (const Error& e) {
    require(a.values.empty(), "validity of a sum differs", slice::name_of(target));
    a.decode = e.code();
  }
  return a;
}

void fuzz(std::vector<std::uint8_t> bytes) {
  if (bytes.size() < frame::header_bytes) return;
  const std::uint64_t size = bytes.size();
  std::memcpy(bytes.data() + 24, &size, 8);
  patch_checksum(bytes.data(), bytes.size());
  const Answer reference = answer_to(bytes, slice::Target::scalar);
  std::optional<Answer> first;
  for (const auto target : fast_targets()) {
    const Answer fast = answer_to(bytes, target);
    if (!first) first = fast;
    require(fast.decode == reference.decode, "validity differs", slice::name_of(target));
    require(fast.values == reference.values, "decoding differs", slice::name_of(target));
    require(fast.sum.code == reference.sum.code, "addability differs", slice::name_of(target));
    require(fast.fused.code == reference.fused.code, "addability to elements differs", slice::name_of(target));
    require(fast == *first, "a sum differs", slice::name_of(target));
  }
}

}  // namespace
}  // namespace laconic::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  laconic::test::fuzz({data, data + size});
  return 0;
}
