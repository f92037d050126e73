// Sums of chunks by one warp: of up to eight streams, or of elements and up to seven streams; in planes or integers
// where that is possible (docs/format.md, section 9). The result is what adding one after another gives, from the left.
// Source: ours; the definition is codec/slice/reference.cc.
#pragma once

#include "gpu/sum_rows.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

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
      contribution(j, l, i, exception, j == 0 ? total : own);  // what begins the sum is not grown once more
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
      const PerLane<std::uint64_t> marks = quantise_others<T>(w, p, input.x, count, rows).marks;
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

/// Chunks all of whose elements are one fill value each.
template <class T>
LACONIC_GPU_FN Made sum_fill_chunks(const Warp& w, const SumPlan& plan, const SumInput<T>& input,
                                    std::uint8_t* region) {
  FillSum<T> sum;
  if (plan.local) {
    const Rows<std::int32_t> rows(region);
    const Exceptions<T> found = quantise_others<T>(w, plan.operand[0], input.x, chunk_values, rows);
    if (!found.single || !found.all(w, chunk_values) || !sum.add(plan.operand[0], found.value)) return {};
  }
  LACONIC_GPU_KEEP_LOOP
  for (int j = plan.local ? 1 : 0; j < plan.operands; ++j) {
    const ChunkIn in = input.in(j);
    const Params& p = plan.operand[j];
    Pieces pieces(in.data, in.size);
    Start start;
    if (!read_start<std::int32_t>(pieces, p.shape, start) || start.word.kind != Kind::fill || pieces.left() != 0)
      return {};
    if (!sum.add(p, start.fill)) return {};
  }
  return {Made::As::bytes, write_fill_chunk(w, sum.bits(), plan.result.shape, region)};
}

/// Whole chunks with fill values; apart, so that others are not added with registers for these.
template <class T>
LACONIC_GPU_RARE Made sum_filled(const Warp& w, const SumPlan& plan, const SumInput<T>& input, std::uint8_t* region) {
  const ChunkIn last = input.in(plan.operands - 1);
  if (last.size >= 4 && Word::unpack(load32(last.data)).kind == Kind::fill)
    return sum_fill_chunks(w, plan, input, region);
  FastRead read = FastRead::done;
  const Made made = sum_in_planes(w, plan, input, CommonMarks<T>(), region, read);
  return read == FastRead::unlike || read == FastRead::too_wide ? sum_in_rows(w, plan, input, region) : made;
}

/// First half of a sum: its size, and its bytes in the region where they fit there. `again`: sum_any() is to be called.
template <class T, class R>
LACONIC_GPU_FN Made sum_fast(const Warp& w, const SumPlan& plan, const SumInput<T>& input, int count,
                             std::uint8_t* region) {
  Made made{Made::As::again, 0};
  if constexpr (sizeof(R) == 4) {
    if (count < chunk_values) return made;
    FastRead read = FastRead::done;
    made = sum_in_planes(w, plan, input, NoMarks<T>(), region, read);
    if (read == FastRead::filled) return sum_filled(w, plan, input, region);
    if (read == FastRead::unlike || read == FastRead::too_wide) made = sum_in_rows(w, plan, input, region);
  }
  return made;
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
