// Sums of chunks by one warp: of up to eight streams, or of elements and up to seven streams; in planes where that is
// possible (docs/format.md, section 9). The result is what adding one after another gives, from the left. Source: ours;
// the definition is codec/slice/reference.cc.
#pragma once

#include "gpu/decode_chunk.h"
#include "gpu/plan.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// One chunk's operands.
template <class T>
struct SumInput {
  const typename T::Bits* x;  ///< the local one's elements
  const Source* sources;      ///< of all operands; that of a local one is not used
  std::uint64_t chunk;

  [[nodiscard]] LACONIC_GPU_FN ChunkIn in(int j) const { return sources[j].chunk(chunk); }
};

// ------------------------------------------------------------------------------------------------------ the fast way

/// Whether all values of two's complement planes fit 8 G - spare bits.
template <int G>
LACONIC_GPU_FN bool leaves_spare(const Warp& w, const PerLane<Planes<G>>& planes, int spare) {
  return !w.any([&](int l) {
    std::uint32_t differ = 0;
    LACONIC_GPU_UNROLL
    for (int k = 2; k <= 4; ++k) {
      if (k > spare + 1) continue;
      differ |= planes[l].half[8 * G - k][0] ^ planes[l].half[8 * G - 1][0];
      differ |= planes[l].half[8 * G - k][1] ^ planes[l].half[8 * G - 1][1];
    }
    return differ != 0;
  });
}

/// A sum on its way, all lanes alike.
struct FastSum {
  Predictor predictor = Predictor::none;
  std::uint32_t base = 0;
  bool coded = false;  ///< some operand is; else the sum is constant so far, and the planes are 0
};

/// The first operand's elements as residuals of the predictor that the stream behind it has.
template <class T, int G>
LACONIC_GPU_FN FastRead local_planes(const Warp& w, const SumPlan& plan, const SumInput<T>& input, int spare,
                                     std::uint8_t* region, FastSum& sum, PerLane<Planes<G>>& planes) {
  const Rows<std::int32_t> rows(region);
  const ChunkIn next = input.in(1);
  if (next.size < 4) return FastRead::rare;
  const Word word = Word::unpack(load32(next.data));
  if (word.kind != Kind::coded || !word.valid_codes()) return FastRead::rare;
  if (!quantise_chunk<T>(w, plan.operand[0], input.x, chunk_values, rows)) return FastRead::rare;
  sum.coded = true;
  sum.predictor = word.predictor;
  const std::int32_t base =
      word.predictor == Predictor::none ? sampled_mean<std::int32_t>(w, rows) : static_cast<std::int32_t>(rows[0]);
  sum.base = static_cast<std::uint32_t>(base);
  if (word.predictor == Predictor::second) slopes_in_place(w, rows);
  const bool fits = planes_of_rows(w, rows, word.predictor != Predictor::none, base, planes);
  return fits && leaves_spare(w, planes, spare) ? FastRead::done : FastRead::too_wide;
}

/// Adds a stream's chunk.
template <int G>
LACONIC_GPU_FN FastRead add_stream(const Warp& w, const Params& p, const ChunkIn& in, int spare, std::uint8_t* region,
                                   FastSum& sum, PerLane<Planes<G>>& planes) {
  const std::uint8_t* bytes = fetch_chunk(w, in, region, region_bytes<std::int32_t>);
  if (bytes == nullptr) return FastRead::rare;
  Start start;
  PerLane<Planes<G>> other;
  PerLane<std::uint64_t> marks;
  const FastRead read = read_planes(w, bytes, in.size, p.shape, start, other, marks);
  if (read == FastRead::too_wide) return read;
  if (read == FastRead::rare) {
    if (start.word.kind != Kind::constant || in.size != 4U + (start.word.long_base ? 4U : 0U)) return read;
    sum.base += static_cast<std::uint32_t>(start.base);
    return FastRead::done;
  }
  if (w.any([&](int l) { return marks[l] != 0; })) return FastRead::rare;
  if (!leaves_spare(w, other, spare)) return FastRead::too_wide;
  if (sum.coded && sum.predictor != start.word.predictor) return FastRead::rare;
  sum.coded = true;
  sum.predictor = start.word.predictor;
  sum.base += static_cast<std::uint32_t>(start.base);
  w.each([&](int l) { add_planes(planes[l], other[l]); });
  return FastRead::done;
}

template <class T, int G>
LACONIC_GPU_FN FastRead sum_planes(const Warp& w, const SumPlan& plan, const SumInput<T>& input, std::uint8_t* region,
                                   Made& made) {
  const int spare = static_cast<int>(bit_width(static_cast<unsigned>(plan.operands - 1)));
  FastSum sum;
  PerLane<Planes<G>> planes;
  FastRead read = FastRead::done;
  w.each([&](int l) {
    LACONIC_GPU_UNROLL
    for (auto& plane : planes[l].half) plane[0] = plane[1] = 0;
  });
  if (plan.local) read = local_planes(w, plan, input, spare, region, sum, planes);
  LACONIC_GPU_KEEP_LOOP
  for (int j = plan.local ? 1 : 0; j < plan.operands && read == FastRead::done; ++j) {
    read = add_stream(w, plan.operand[j], input.in(j), spare, region, sum, planes);
    // A partial sum that is constant would have become a constant chunk, with another base.
    std::int32_t residual = 0;
    if (read == FastRead::done && j > 0 && j + 1 < plan.operands && sum.coded && sum.predictor == Predictor::none &&
        all_residuals_equal(w, planes, residual))
      return FastRead::rare;
  }
  if (read != FastRead::done) return read;
  const auto base = static_cast<std::int32_t>(sum.base);
  Fill fill;
  made.as = Made::As::bytes;
  made.bytes = sum.coded ? write_planes(w, planes, {sum.predictor, base}, fill, plan.result.shape,
                                        region_bytes<std::int32_t>, region)
                         : write_constant<std::int32_t>(w, base, plan.result.shape, region);
  return made.bytes != 0 ? FastRead::done : FastRead::rare;
}

// ------------------------------------------------------------------------------------- the way that can do everything

/// Memory that a sum of any chunks needs beside the region: the operands' integers, blocks, and two expansions a lane.
/// Lent to a warp for one chunk.
template <class R>
class SumScratch {
 public:
  LACONIC_GPU_FN static constexpr std::size_t bytes(int operands) {
    return 2 * Terms::most * warp_lanes * sizeof(double) + static_cast<std::size_t>(operands) * operand_bytes;
  }
  LACONIC_GPU_FN explicit SumScratch(std::uint8_t* memory) : memory_(memory) {}

  LACONIC_GPU_FN R& q(int j, int lane, int i) const {
    return reinterpret_cast<R*>(operand(j) + info_bytes)[i * warp_lanes + lane];
  }
  LACONIC_GPU_FN OperandStart& start(int j) const { return *reinterpret_cast<OperandStart*>(operand(j)); }
  LACONIC_GPU_FN OperandBlock& block(int j, int lane) const {
    return reinterpret_cast<OperandBlock*>(operand(j) + 64)[lane];
  }
  [[nodiscard]] LACONIC_GPU_FN Terms terms(int lane, int which) const {
    return {reinterpret_cast<double*>(memory_) + which * Terms::most * warp_lanes + lane, warp_lanes};
  }

 private:
  static constexpr std::size_t info_bytes = 64 + warp_lanes * sizeof(OperandBlock);
  static constexpr std::size_t operand_bytes = info_bytes + chunk_values * sizeof(R);
  static_assert(sizeof(OperandStart) <= 64);
  [[nodiscard]] LACONIC_GPU_FN std::uint8_t* operand(int j) const {
    return memory_ + bytes(0) + static_cast<std::size_t>(j) * operand_bytes;
  }
  std::uint8_t* memory_;
};

/// q of a sum of operands 0..j, which wraps as its integers do.
LACONIC_GPU_FN std::int64_t wrap_partial(const SumPlan& plan, int j, std::int64_t q) {
  return (plan.wide_partials >> j & 1) != 0 ? q : static_cast<std::int32_t>(q);
}

/// The exceptions of the sum of the first n operands.
template <class T, class R>
struct SumExact {
  static constexpr bool sum = true;
  const SumPlan& plan;
  const SumScratch<R>& scratch;
  int n;
  PerLane<bool> too_many;

  LACONIC_GPU_FN bool key(int l, int i, std::uint64_t& k) {
    const int count = terms(l, i);
    if (count > 1) return false;
    k = count == 0 ? 0 : std::bit_cast<std::uint64_t>(term(l, 0));
    return true;
  }
  [[nodiscard]] LACONIC_GPU_FN double term(int l, int j) const { return scratch.terms(l, 0)[j]; }
  [[nodiscard]] LACONIC_GPU_FN bool failed(int l) const { return too_many[l]; }

  /// Leaves the terms in the lane's first expansion.
  LACONIC_GPU_RARE int terms(int l, int i) {
    Terms total = scratch.terms(l, 0);
    Terms own = scratch.terms(l, 1);
    bool exact = false;  // so far; else the sum is q
    std::int64_t q = 0;
    for (int j = 0; j < n; ++j) {
      const bool exception = (scratch.block(j, l).marks >> i & 1) != 0;
      if (!exact && !exception) {
        q = wrap_partial(
            plan, j,
            static_cast<std::int64_t>(static_cast<std::uint64_t>(q) + static_cast<std::uint64_t>(scratch.q(j, l, i))));
        continue;
      }
      if (exact && j > 1) total.regrow();  // it was written and read before j came
      if (!exact && j > 0) total.add_product(static_cast<double>(q), plan.result.grid.step);
      own.clear();
      contribution(j, l, i, exception, own);
      for (int t = 0; t < own.size(); ++t) total.add(own[t]);
      too_many[l] = too_many[l] || own.overflown() || total.overflown();
      exact = true;
    }
    return total.size();
  }

 private:
  LACONIC_GPU_FN void contribution(int j, int l, int i, bool exception, Terms& own) const {
    if (!exception) {
      own.add_product(static_cast<double>(scratch.q(j, l, i)), plan.result.grid.step);
    } else if (plan.operand[j].shape.sum) {
      stored_terms(scratch.start(j), scratch.block(j, l), i, own);
    } else {
      own.add(static_cast<double>(
          T::real(stored_element<T>(scratch.start(j), scratch.block(j, l), i, scratch.q(j, l, i)))));
    }
  }
};

/// Elements that were stored exactly only because their block or chunk was count as the grid points that they are.
template <class T, class R>
LACONIC_GPU_FN void regrid(const Warp& w, const Params& p, const OperandStart& start, const Rows<R>& rows,
                           PerLane<OperandBlock>& blocks) {
  const Quantiser<T> quantise(p);
  w.each([&](int l) {
    for (std::uint64_t m = blocks[l].stored; m != 0; m &= m - 1) {
      const int i = trailing_zeros(m);
      R q = 0;
      if (!quantise(stored_element<T>(start, blocks[l], i, rows.at(l, i)), q)) continue;
      rows.at(l, i) = q;
      blocks[l].marks &= ~(std::uint64_t{1} << i);
    }
  });
}

/// Reads operand j into the scratch memory.
template <class T, class R>
LACONIC_GPU_RARE bool read_operand(const Warp& w, const SumPlan& plan, const SumInput<T>& input, int j, int count,
                                   const Rows<R>& rows, const SumScratch<R>& scratch) {
  const Params& p = plan.operand[j];
  OperandStart start;
  PerLane<OperandBlock> blocks;
  if (j == 0 && plan.local) {
    if (!quantise_chunk<T>(w, p, input.x, count, rows)) {
      const PerLane<std::uint64_t> marks = exceptions_of<T>(w, p, input.x, count);
      w.each([&](int l) {
        blocks[l].stored = blocks[l].marks = marks[l];
        blocks[l].source = ExactSource::elements;
        blocks[l].exact = reinterpret_cast<const std::uint8_t*>(input.x + block_values * l);
      });
    }
    PerLane<std::uint64_t> marks;
    w.each([&](int l) { marks[l] = blocks[l].marks; });
    hold(w, rows, marks, count);
  } else {
    const ChunkIn in = input.in(j);
    bool valid = false;
    if constexpr (sizeof(R) == 8) {
      valid = p.wide ? read_any_chunk<T, std::int64_t>(w, in.data, in.size, p.shape, count, rows, start, blocks)
                     : read_any_chunk<T, std::int32_t>(w, in.data, in.size, p.shape, count, rows, start, blocks);
    } else {
      valid = read_any_chunk<T, std::int32_t>(w, in.data, in.size, p.shape, count, rows, start, blocks);
    }
    if (!valid) return false;
    if (!p.shape.sum) regrid<T>(w, p, start, rows, blocks);
  }
  w.each([&](int l) {
    if (l == 0) scratch.start(j) = start;
    scratch.block(j, l) = blocks[l];
    for (int i = 0; i < block_values; ++i) scratch.q(j, l, i) = rows.at(l, i);
  });
  return true;
}

/// A sum of operands as the next one meets it, all lanes alike.
template <class R>
struct Partial {
  Origin origin = Origin::elements;
  Choice<R> choice;    ///< of a coded one; of a constant one the base
  bool given = false;  ///< choice is that of the sum, as it follows from its operands'
};

/// The predictor of a sum, where it follows from those of its operands.
template <class R>
LACONIC_GPU_FN Partial<R> sum_choice(const Partial<R>& a, const OperandStart& b, bool a_is_local) {
  Partial<R> s;
  const auto base = [&](R base_a) { return wrap_add(base_a, static_cast<R>(b.base)); };
  if (b.origin == Origin::elements) return s;
  if (a_is_local) {
    if (b.origin != Origin::coded) return s;
    s.given = true;
    s.choice = {b.predictor, base(a.choice.base)};
    return s;
  }
  if (a.origin == Origin::elements) return s;
  if (a.origin == Origin::coded && b.origin == Origin::coded && a.choice.predictor != b.predictor) return s;
  s.given = true;
  s.choice = {a.origin == Origin::coded ? a.choice.predictor : b.predictor, base(a.choice.base)};
  return s;
}

/// Adds operand j to the rows of the sum of those before it, and their marks; then they are held.
template <class R>
LACONIC_GPU_FN void add_operand(const Warp& w, const SumPlan& plan, const SumScratch<R>& scratch, int j, int count,
                                const Rows<R>& rows, PerLane<std::uint64_t>& marks) {
  w.each([&](int l) {
    marks[l] |= scratch.block(j, l).marks;
    for (int i = 0; i < block_values; ++i) {
      const R sum = wrap_add(rows.at(l, i), scratch.q(j, l, i));
      rows.at(l, i) = static_cast<R>(wrap_partial(plan, j, sum));
    }
  });
  hold(w, rows, marks, count);
}

/// What the sum of the first j + 1 operands would be if it were written and read.
template <class T, class R>
LACONIC_GPU_FN void settle(const Warp& w, const SumPlan& plan, const SumScratch<R>& scratch, int j, int count,
                           const Rows<R>& rows, const PerLane<std::uint64_t>& marks, Partial<R>& sum) {
  SumExact<T, R> exact{plan, scratch, j + 1, {}};
  PerLane<BlockOut> blocks;
  const Form<R> form = form_of(w, rows, marks, count, exact, blocks);
  sum.origin = form.kind == Kind::constant ? Origin::constant
               : form.kind == Kind::fill   ? Origin::elements
                                           : Origin::coded;
  if (form.kind == Kind::constant) sum.choice.base = rows[0];
  if (form.kind != Kind::coded || sum.given) return;
  if ((plan.wide_partials >> j & 1) != 0) {
    sum.choice = choose_predictor<R>(w, rows, true);
  } else {
    const Choice<std::int32_t> c = choose_predictor<std::int32_t>(w, rows, true);
    sum.choice = {c.predictor, c.base};
  }
}

/// The first operand as the second meets it. An array's base depends on the predictor that the second one has.
template <class T, class R>
LACONIC_GPU_FN Partial<R> first_operand(const Warp& w, const SumPlan& plan, const SumScratch<R>& scratch,
                                        const Rows<R>& rows) {
  Partial<R> s;
  const OperandStart& own = scratch.start(0);
  s.origin = own.origin;
  s.choice = {own.predictor, static_cast<R>(own.base)};
  if (!plan.local) return s;
  s.choice.base = rows[0];
  if (scratch.start(1).predictor == Predictor::none)
    s.choice.base =
        plan.operand[0].wide ? sampled_mean<R>(w, rows) : static_cast<R>(sampled_mean<std::int32_t>(w, rows));
  return s;
}

/// Any chunk, straight to `out`, or only its size if that is null. 0: an operand is corrupt.
template <class T, class R>
LACONIC_GPU_RARE std::uint32_t sum_any(const Warp& w, const SumPlan& plan, const SumInput<T>& input, int count,
                                       std::uint8_t* region, std::uint8_t* scratch_memory, std::uint8_t* out) {
  const Rows<R> rows(region);
  const SumScratch<R> scratch(scratch_memory);
  LACONIC_GPU_KEEP_LOOP
  for (int j = 0; j < plan.operands; ++j)
    if (!read_operand<T>(w, plan, input, j, count, rows, scratch)) return 0;
  PerLane<std::uint64_t> marks;
  w.each([&](int l) {
    marks[l] = scratch.block(0, l).marks;
    for (int i = 0; i < block_values; ++i) rows.at(l, i) = scratch.q(0, l, i);
  });
  Partial<R> sum = first_operand<T>(w, plan, scratch, rows);
  LACONIC_GPU_KEEP_LOOP
  for (int j = 1; j < plan.operands; ++j) {
    sum = sum_choice(sum, scratch.start(j), j == 1 && plan.local);
    sum.choice.base = static_cast<R>(wrap_partial(plan, j, sum.choice.base));
    add_operand(w, plan, scratch, j, count, rows, marks);
    // A chain starts at its first value, which is not the sum of the operands' where that one is an exception.
    if (sum.given && sum.choice.predictor != Predictor::none) sum.choice.base = rows[0];
    if (j + 1 < plan.operands) settle<T>(w, plan, scratch, j, count, rows, marks, sum);
  }
  SumExact<T, R> exact{plan, scratch, plan.operands, {}};
  return write_any_chunk<T, R>(w, rows, marks, count, plan.result.shape, exact, sum.given ? &sum.choice : nullptr, out);
}

/// First half of a sum: its size, and its bytes in the region where they fit there. `again`: sum_any() is to be called.
template <class T, class R>
LACONIC_GPU_FN Made sum_fast(const Warp& w, const SumPlan& plan, const SumInput<T>& input, int count,
                             std::uint8_t* region) {
  Made made{Made::As::again, 0};
  if constexpr (sizeof(R) == 4) {
    if (count < chunk_values) return made;
    FastRead read = sum_planes<T, 1>(w, plan, input, region, made);
    if (read == FastRead::too_wide) read = sum_planes<T, 2>(w, plan, input, region, made);
    if (read != FastRead::done) made = {Made::As::again, 0};
  }
  return made;
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
