// Slice behind the codec interface.
#include <vector>

#include "codec/codec.h"
#include "codec/slice/slice.h"

namespace laconic {
namespace {

class SliceCodec final : public Codec, public LinearCodec {
 public:
  [[nodiscard]] CodecId id() const override { return CodecId::slice; }
  [[nodiscard]] std::string_view name() const override { return "slice"; }
  [[nodiscard]] Promise promise() const override { return Promise::bounded; }
  [[nodiscard]] bool takes(DType dtype) const override { return is_valid(dtype); }
  [[nodiscard]] const LinearCodec* linear() const override { return this; }

  [[nodiscard]] std::size_t capacity(DType dtype, std::size_t count) const override {
    return slice::capacity(dtype, count);
  }
  [[nodiscard]] std::uint64_t most_elements(std::uint64_t payload_bytes) const override {
    constexpr std::uint64_t least_chunk = 6;  // with its size in the table
    return payload_bytes / least_chunk * slice::chunk_values;
  }
  std::size_t encode(ConstArray x, const Grid& grid, Extents, CodecMutBytes out, int threads,
                     Witness* witness) const override {
    return slice::encode(slice::params_for(grid, 1), x.data, x.count, out, threads, witness);
  }
  void check(const Coded& coded, CodecBytes payload) const override { slice::check_table(payload, coded.count); }
  void decode(const Coded& coded, CodecBytes payload, std::size_t first, MutArray y, int threads) const override {
    slice::decode(slice::params_for(coded.grid, coded.operands, coded.divisor),
                  slice::check_table(payload, coded.count), first / slice::chunk_values, slice::chunks_of(y.count),
                  y.data, threads, coded.whole_bytes);
  }

  [[nodiscard]] std::size_t sum_capacity(DType dtype, std::size_t count, std::size_t chunk_bytes) const override {
    return slice::sum_capacity(dtype, count, chunk_bytes);
  }
  std::size_t encode_decode(ConstArray x, const Grid& grid, CodecMutBytes out, MutArray y, int threads,
                            std::size_t whole_bytes, Witness* witness) const override {
    return slice::encode_decode(slice::params_for(grid, 1), x.data, x.count, out, y.data, threads, whole_bytes,
                                witness);
  }
  std::size_t sum(const Coded& result, const LocalTerm& local, std::span<const CodedTerm> terms, CodecMutBytes out,
                  int threads) const override {
    return slice::sum(params(result), {params(local.coded), local.x}, operands_of(terms), out, threads, result.witness);
  }
  std::size_t extreme(Op op, const Coded& result, const void* x, std::span<const CodedTerm> terms, CodecMutBytes out,
                      int threads) const override {
    return slice::extreme(op, params(result), x, operands_of(terms), result.count, out, threads, result.witness);
  }

 private:
  static slice::Payload operand(const Coded& c, CodecBytes bytes) {
    slice::Payload p = slice::check_table(bytes, c.count);
    p.witness = c.witness;
    return p;
  }
  static std::vector<slice::Operand> operands_of(std::span<const CodedTerm> terms) {
    std::vector<slice::Operand> operands;
    operands.reserve(terms.size());
    for (const CodedTerm& t : terms) operands.push_back({params(t.coded), operand(t.coded, t.payload)});
    return operands;
  }
  static slice::Params params(const Coded& c) { return slice::params_for(c.grid, c.operands); }
};

}  // namespace

const Codec& slice_codec() {
  static const SliceCodec codec;
  return codec;
}

}  // namespace laconic
