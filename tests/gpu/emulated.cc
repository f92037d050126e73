#include "gpu/emulated.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

namespace laconic::test {
namespace {

using namespace gpu::emulated;  // NOLINT(google-build-using-namespace)

/// Memory as the device gives it: aligned to 256 bytes, and its end known to the sanitizers.
class Memory {
 public:
  explicit Memory(std::size_t n) : size_(n), p_(static_cast<std::uint8_t*>(::operator new(n, std::align_val_t{256}))) {
    std::fill_n(p_, n, std::uint8_t{0xA5});
  }
  explicit Memory(const std::vector<std::uint8_t>& from) : Memory(from.size()) {
    std::copy(from.begin(), from.end(), p_);
  }
  ~Memory() { ::operator delete(p_, std::align_val_t{256}); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] std::uint8_t* data() const { return p_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  std::uint8_t* p_;
};

template <class T, class R>
struct Instance {
  using Type = T;
  using Integer = R;
};

/// Calls f with the kernel instance for these parameters, as the launcher does.
template <class F>
void with_instance(const slice::Params& p, F f) {
  switch (p.grid.dtype) {
    case DType::f64:
      return p.wide ? f(Instance<F64, std::int64_t>{}) : f(Instance<F64, std::int32_t>{});
    case DType::f16:
      return f(Instance<F16, std::int32_t>{});
    case DType::bf16:
      return f(Instance<BF16, std::int32_t>{});
    default:
      return f(Instance<F32, std::int32_t>{});
  }
}

std::uint64_t tiles_of(std::uint64_t n, std::uint64_t each) {
  return std::max<std::uint64_t>(1, (n + each - 1) / each);
}

/// Runs an operation that writes chunks over all tiles, and those that place the last ones.
template <class R, class Op>
void write_tiles(const Op& op, Sink sink) {
  const Memory regions(std::size_t{tile_warps} * region_bytes<R>);
  const std::uint64_t tiles = tiles_in(sink);
  sink.delay = sink.sizes != nullptr ? 0 : static_cast<std::uint32_t>(std::min<std::uint64_t>(tiles, 2));
  // As the device's rings, or as narrow as may be.
  sink.places = tiles % 2 == 0 ? sink.delay + 1 : static_cast<std::uint32_t>(std::clamp<std::uint64_t>(tiles, 1, 4));
  const Memory kept(sink.places * sizeof(KeptTile));
  std::vector<std::uint32_t> placed(sink.places);
  sink.kept = reinterpret_cast<KeptTile*>(kept.data());
  sink.placed = placed.data();
  TileShared shared{};
  for (std::uint64_t t = 0; t < std::max<std::uint64_t>(tiles, 1) + sink.delay; ++t)
    TileWriter<Op>(op, sink, t, shared, regions.data(), region_bytes<R>).run(Tile());
}

void add_checksum(std::uint8_t* frame, std::size_t bytes) {
  slice::store(frame + frame::at_crc, emulated_checksum(frame, bytes, 3));
}

/// Where chunks were said to begin is where the table has them.
void require_offsets(const std::vector<std::uint8_t>& frame, const std::vector<std::uint64_t>& offsets) {
  const std::size_t chunks = offsets.size() - 1;
  const std::size_t count = chunks * chunk_values;
  std::uint64_t at = frame::header_bytes + slice::table_bytes(count);
  for (std::size_t c = 0; c <= chunks && chunks > 0; ++c) {
    if (offsets[c] != at)
      throw std::logic_error("emulated: chunk " + std::to_string(c) + " is said to begin elsewhere");
    if (c < chunks) at += 4 * std::uint64_t{slice::load<std::uint16_t>(&frame[frame::header_bytes + 2 * c])};
  }
}

/// Runs `op(T, R, sink)` on a frame of this capacity and finishes it.
template <class F>
Emulated into_frame(const slice::Params& p, std::size_t count, std::size_t capacity, F f) {
  Emulated result;
  Memory out(capacity);
  std::vector<std::uint64_t> states(tiles_of(slice::chunks_of(count), tile_warps));
  gpu::Report report;
  Sink sink;
  sink.out = out.data();
  sink.capacity = capacity;
  sink.count = count;
  sink.states = states.data();
  sink.params = p;
  sink.report = &report;
  std::vector<std::uint64_t> offsets(slice::chunks_of(count) + 1);
  sink.offsets = offsets.data();
  with_instance(p, [&](auto instance) { f(instance, sink); });
  result.faults = report.faults;
  if (report.faults != 0) return result;
  add_checksum(out.data(), capacity);
  result.frame.assign(out.data(), out.data() + report.bytes);
  require_offsets(result.frame, offsets);
  return result;
}

/// A frame whose chunks have been found.
struct Located {
  Memory memory;
  std::vector<std::uint64_t> offsets;
  Located(const std::vector<std::uint8_t>& frame, const slice::Params& p, std::size_t count, gpu::Report& report)
      : memory(frame), offsets(slice::chunks_of(count) + 1) {
    const std::uint64_t tiles = tiles_of(slice::chunks_of(count), located_by_tile);
    std::vector<std::uint64_t> states(tiles);
    TileShared shared{};
    const Location at{memory.data(), memory.size(), count, p, offsets.data(), states.data(), &report};
    for (std::uint64_t t = 0; t < tiles; ++t) run_locate(Tile(), t, at, shared);
  }
  [[nodiscard]] Source source() const { return {memory.data(), memory.size(), offsets.data(), nullptr, 0}; }
};

void decode_all(const slice::Params& p, const Source& source, Array& y, gpu::Report& report) {
  with_instance(p, [&](auto instance) {
    using T = typename decltype(instance)::Type;
    using R = typename decltype(instance)::Integer;
    const Memory regions(tile_warps * region_bytes<R>);
    Memory to(y.size_bytes());
    TurnsShared shared{};
    decode_tiles<T, R>(Tile(), p, source, y.count, reinterpret_cast<typename T::Bits*>(to.data()), shared,
                       regions.data(), &report);
    if (y.count > 0) std::memcpy(y.data(), to.data(), to.size());
  });
}

}  // namespace

std::uint32_t emulated_checksum(const std::uint8_t* frame, std::size_t readable, std::uint64_t tiles) {
  static constexpr ChecksumPowers powers = checksum_powers();
  RowTable table{};
  std::uint32_t crc = 0;
  for (std::uint64_t t = 0; t < tiles; ++t) run_checksum(Tile(), t, tiles, powers, frame, readable, table, &crc);
  return crc;
}

Emulated emulated_encode(const Array& x, const Grid& g) {
  const slice::Params p = slice::params_for(g, 1);
  const Memory from({x.data(), x.data() + x.size_bytes()});
  return into_frame(p, x.count, frame::capacity(x.dtype, x.count), [&](auto instance, const Sink& sink) {
    using T = typename decltype(instance)::Type;
    using R = typename decltype(instance)::Integer;
    write_tiles<R>(EncodeOp<T, R>{p, reinterpret_cast<const typename T::Bits*>(from.data()), x.count}, sink);
  });
}

EmulatedSlots emulated_encode_slots(const Array& x, const Grid& g) {
  const slice::Params p = slice::params_for(g, 1);
  const Memory from({x.data(), x.data() + x.size_bytes()});
  EmulatedSlots result;
  result.slot_bytes = static_cast<std::uint32_t>(slice::chunk_capacity(p.shape.element_bytes) + 12);
  const std::size_t chunks = slice::chunks_of(x.count);
  result.sizes.resize(chunks + 1);
  const Memory out(chunks * result.slot_bytes);
  gpu::Report report;
  Sink sink;
  sink.out = out.data();
  sink.count = x.count;
  sink.sizes = result.sizes.data();
  sink.slot_bytes = result.slot_bytes;
  sink.params = p;
  sink.report = &report;
  with_instance(p, [&](auto instance) {
    using T = typename decltype(instance)::Type;
    using R = typename decltype(instance)::Integer;
    write_tiles<R>(EncodeOp<T, R>{p, reinterpret_cast<const typename T::Bits*>(from.data()), x.count}, sink);
  });
  result.faults = report.faults;
  result.slots.assign(out.data(), out.data() + out.size());
  return result;
}

std::uint32_t emulated_decode(const std::vector<std::uint8_t>& frame, const Grid& g, std::uint32_t operands,
                              std::uint32_t divisor, Array& y) {
  gpu::Report report;
  const Located located(frame, slice::params_for(g, operands), y.count, report);
  decode_all(slice::params_for(g, operands, divisor), located.source(), y, report);
  return report.faults;
}

std::uint32_t emulated_decode_slots(const EmulatedSlots& in, const Grid& g, Array& y) {
  gpu::Report report;
  const Memory memory(in.slots);
  decode_all(slice::params_for(g, 1), {memory.data(), memory.size(), nullptr, in.sizes.data(), in.slot_bytes}, y,
             report);
  return report.faults;
}

Emulated emulated_sum(const Array& like, const Array* x, const std::vector<EmulatedOperand>& operands) {
  std::vector<gpu::Operand> of;
  if (x != nullptr) of.push_back({operands[0].grid, 1});
  for (const EmulatedOperand& o : operands) of.push_back({o.grid, o.operands});
  const gpu::SumPlan plan = gpu::plan_sum(of, x != nullptr);
  gpu::Report report;
  std::vector<std::unique_ptr<Located>> located;
  Source sources[gpu::most_operands];
  for (std::size_t j = 0; j < of.size(); ++j) {
    if (j == 0 && x != nullptr) continue;
    const std::size_t k = j - (x != nullptr ? 1 : 0);
    located.push_back(std::make_unique<Located>(*operands[k].frame, plan.operand[j], like.count, report));
    sources[j] = located.back()->source();
  }
  const Memory from(x != nullptr ? std::vector<std::uint8_t>(x->data(), x->data() + x->size_bytes())
                                 : std::vector<std::uint8_t>());
  Emulated sum = into_frame(
      plan.result, like.count, frame::sum_capacity(like.dtype, like.count), [&](auto instance, const Sink& sink) {
        using T = typename decltype(instance)::Type;
        using R = typename decltype(instance)::Integer;
        const auto bytes = static_cast<std::uint32_t>(SumScratch<R>::bytes(plan.operands));
        const Memory memory(2 * std::size_t{bytes});
        std::uint32_t taken[2] = {};
        write_tiles<R>(SumOp<T, R>{plan, reinterpret_cast<const typename T::Bits*>(from.data()), sources,
                                   ScratchPool{memory.data(), taken, 2, bytes}, like.count},
                       sink);
      });
  sum.faults |= report.faults;
  return sum;
}

}  // namespace laconic::test
