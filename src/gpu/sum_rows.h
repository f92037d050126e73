// Sums of chunks in integers: where operands of several predictors cannot be raised, elements meet a constant chunk, or
// an operand leaves no plane for the sum. The integers take most of the warp's region; streams' chunks are read behind
// them, or where they lie. Source: ours; the definition is codec/slice/reference.cc.
#pragma once

#include "gpu/sum_choice.h"
#include "gpu/sum_planes.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

LACONIC_GPU_FN OperandStart operand_of(const Start& start) {
  OperandStart o;
  o.origin = start.word.kind == Kind::constant ? Origin::constant : Origin::coded;
  o.predictor = start.word.predictor;
  o.base = start.base;
  return o;
}

/// Where a chunk can be read: behind the rows of the region, or where it lies; null if neither.
LACONIC_GPU_FN const std::uint8_t* readable_beside_rows(const Warp& w, const ChunkIn& in, std::uint8_t* region) {
  constexpr std::uint32_t rows = Rows<std::int32_t>::bytes;
  if (in.size == 0) return nullptr;
  if (fetch_chunk(w, in, region + rows, region_bytes<std::int32_t> - rows))
    return region + rows + bytes_before_chunk(in);
  // What is read, and not used, behind the chunk has to be there.
  return static_cast<std::uint64_t>(in.limit - in.data) < in.size + fast_read_slack ? nullptr : in.data;
}

/// Adds a stream's chunk to the region's rows; meet(operand) is called before. False: it is not of this sort.
template <class T, class F>
LACONIC_GPU_FN bool add_to_rows(const Warp& w, const Params& p, const ChunkIn& in, std::uint8_t* region,
                                CommonMarks<T>& common, F meet) {
  const Rows<std::int32_t> rows(region);
  const std::uint8_t* bytes = readable_beside_rows(w, in, region);
  if (bytes == nullptr) return false;
  FoundParts found;
  PerLane<std::uint64_t> marks;
  const Start& start = found.start;
  if (find_parts(w, bytes, in.size, p.shape, Planes<2>::count, found) == FastRead::done) {
    meet(operand_of(start));
    PerLane<Planes<2>> planes;
    if (!read_planes(w, bytes, found, planes, marks)) return false;
    rows_of_planes<true>(w, planes, start.word.predictor, static_cast<std::int32_t>(start.base), rows);
    return common.take(w, p, start.word.has_fill, start.fill, marks);
  }
  if (!is_constant_chunk(start, in.size) || !common.take(w, p, false, 0, marks)) return false;
  meet(operand_of(start));
  const auto base = static_cast<std::int32_t>(start.base);
  w.each([&](int l) {
    LACONIC_GPU_KEEP_LOOP
    for (int u = 0; u < Rows<std::int32_t>::units; ++u)
      for (auto& q : rows.unit(l, u).v) q = wrap_add(q, base);
  });
  return true;
}

LACONIC_GPU_FN bool all_alike(const Warp& w, const Rows<std::int32_t>& rows) {
  const std::int32_t first = rows[0];
  return !w.any([&](int l) {
    std::uint32_t differ = 0;
    LACONIC_GPU_KEEP_LOOP
    for (int u = 0; u < Rows<std::int32_t>::units; ++u)
      for (const auto q : rows.unit(l, u).v) differ |= static_cast<std::uint32_t>(q ^ first);
    return differ != 0;
  });
}

/// What the sum so far would be if it were written and read.
LACONIC_GPU_FN void settle_rows(const Warp& w, const Rows<std::int32_t>& rows, bool marked,
                                Partial<std::int32_t>& sum) {
  if (!marked && all_alike(w, rows)) {
    sum.origin = Origin::constant;
    sum.choice.base = rows[0];
    return;
  }
  sum.origin = Origin::coded;
  if (!sum.given) sum.choice = choose_predictor<std::int32_t>(w, rows, true);
}

/// Adds operand j >= 1, or the first of several streams.
template <class T>
LACONIC_GPU_FN bool add_operand_to_rows(const Warp& w, const SumPlan& plan, const SumInput<T>& input, int j,
                                        std::uint8_t* region, CommonMarks<T>& common, Partial<std::int32_t>& sum) {
  const Rows<std::int32_t> rows(region);
  const bool to_local = j == 1 && plan.local;
  const auto meet = [&](const OperandStart& o) {
    if (j == 0) {
      sum.origin = o.origin;
      sum.choice = {o.predictor, static_cast<std::int32_t>(o.base)};
      return;
    }
    if (to_local) {  // an array's base depends on the predictor of the stream behind it
      const bool mean = o.origin == Origin::coded && o.predictor == Predictor::none;
      sum.choice.base = mean ? sampled_mean<std::int32_t>(w, rows) : static_cast<std::int32_t>(rows[0]);
    }
    sum = sum_choice(sum, o, to_local);
  };
  if (!add_to_rows(w, plan.operand[j], input.in(j), region, common, meet)) return false;
  if (j == 0) return true;
  common.hold_in(w, rows);
  if (sum.given && sum.choice.predictor != Predictor::none) sum.choice.base = rows[0];
  if (j + 1 < plan.operands) settle_rows(w, rows, common.any(), sum);
  return true;
}

template <class T>
LACONIC_GPU_RARE Made sum_in_rows(const Warp& w, const SumPlan& plan, const SumInput<T>& input, std::uint8_t* region) {
  const Rows<std::int32_t> rows(region);
  Partial<std::int32_t> sum;
  CommonMarks<T> common;
  if (plan.local) {
    const PerLane<std::uint64_t> none;
    const Params& p = plan.operand[0];
    const bool plain = quantise_chunk<T>(w, p, input.x, chunk_values, rows);
    if (plain ? !common.take(w, p, false, 0, none) : !common.quantise(w, p, input.x, rows)) return {};
  } else {
    w.each([&](int l) {
      LACONIC_GPU_KEEP_LOOP
      for (int u = 0; u < Rows<std::int32_t>::units; ++u) rows.unit(l, u) = {};
    });
  }
  LACONIC_GPU_KEEP_LOOP
  for (int j = plan.local ? 1 : 0; j < plan.operands; ++j) {
    if (!add_operand_to_rows(w, plan, input, j, region, common, sum)) return {};
  }
  return write_sum_of_rows(w, sum.choice, sum.given, common, plan.result.shape, region);
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
