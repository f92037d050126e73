// Sums of chunks in planes, where nothing leaves the registers but bytes: the operands are coded with one predictor, or
// those of lower ones come first, and what they are together is raised before the next.
// Source: ours; the definition is codec/slice/reference.cc.
#pragma once

#include "gpu/plan.h"
#include "gpu/sum_fill.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// One chunk's operands.
template <class T>
struct SumInput {
  const typename T::Bits* x;  ///< the local one's elements
  const Source* sources;      ///< of all operands; that of a local one is not used
  std::uint64_t chunk;

  [[nodiscard]] LACONIC_GPU_FN ChunkIn in(int j) const { return sources[j].chunk(chunk); }
};

/// A sum on its way, all lanes alike.
struct PlaneSum {
  Predictor predictor = Predictor::none;
  std::uint32_t base = 0;
  bool coded = false;  ///< some operand is; else the sum is constant so far, and the planes are 0
};

/// Begins with the first operand's elements: their integers in the rows, or slopes of these, whose residuals are to be
/// those of the predictor that the stream behind it has.
template <class T, class Marks>
LACONIC_GPU_FN FastRead start_with_local(const Warp& w, const SumPlan& plan, const SumInput<T>& input,
                                         const Rows<std::int32_t>& rows, Marks& exceptions, PlaneSum& sum) {
  const ChunkIn next = input.in(1);
  if (next.size < 4) return FastRead::rare;
  const Word word = Word::unpack(load32(next.data));
  if (word.kind == Kind::constant) return FastRead::unlike;
  if (!exceptions.admits(word)) return Marks::refused;
  if (word.kind != Kind::coded || !word.valid_codes()) return FastRead::rare;
  if (!exceptions.quantise(w, plan.operand[0], input.x, rows)) return Marks::refused;
  sum.coded = true;
  sum.predictor = word.predictor;
  const std::int32_t base =
      word.predictor == Predictor::none ? sampled_mean<std::int32_t>(w, rows) : static_cast<std::int32_t>(rows[0]);
  sum.base = static_cast<std::uint32_t>(base);
  if (word.predictor == Predictor::second) slopes_in_place(w, rows);
  return FastRead::done;
}

/// The residuals of what start_with_local() has left in the rows.
LACONIC_GPU_FN FastRead local_planes(const Warp& w, const Rows<std::int32_t>& rows, const PlaneSum& sum,
                                     PlaneStore& planes) {
  PerLane<Planes<2>> in_registers;
  if (!planes_of_rows(w, rows, sum.predictor != Predictor::none, static_cast<std::int32_t>(sum.base), in_registers))
    return FastRead::too_wide;
  planes.put(w, in_registers);
  planes.trim(w);
  return FastRead::done;
}

/// Adds a stream's chunk.
template <class Marks>
LACONIC_GPU_FN FastRead add_stream(const Warp& w, const Params& p, const ChunkIn& in, std::uint8_t* region,
                                   Marks& exceptions, PlaneSum& sum, PlaneStore& planes) {
  if (in.size < 4 || !fetch_chunk(w, in, region, region_bytes<std::int32_t> - PlaneStore::bytes)) return FastRead::rare;
  const std::uint8_t* bytes = region + bytes_before_chunk(in);
  if (!exceptions.admits(Word::unpack(load32(bytes)))) return Marks::refused;
  FoundParts found;
  const Start& start = found.start;
  const FastRead read = find_parts(w, bytes, in.size, p.shape, PlaneStore::most - 1, found);
  if (read == FastRead::too_wide) return read;
  PerLane<std::uint64_t> marks;
  const bool coded = read == FastRead::done;
  if (!coded) {
    if (!is_constant_chunk(start, in.size)) return read;
  } else {
    if (sum.coded && sum.predictor != start.word.predictor) return FastRead::unlike;
    sum.coded = true;
    sum.predictor = start.word.predictor;
    if (planes.count == PlaneStore::most) return FastRead::too_wide;
    if (!add_read_planes<Marks::marked>(w, bytes, found, planes, marks)) return FastRead::rare;
  }
  if (!exceptions.take(w, p, coded && start.word.has_fill, start.fill, marks)) return Marks::refused;
  sum.base += static_cast<std::uint32_t>(start.base);
  return FastRead::done;
}

/// Which operands are added before the sum is raised, once, and twice, one bit each; all where they are coded alike.
struct SumTurns {
  std::uint32_t now = 0;
  std::uint32_t next = 0;
  std::uint32_t last = 0;
};

/// As far as the first words of the streams' chunks say. False: predictors differ, and raising would not do. Elements
/// are predicted as the first stream is; a partial sum that is constant would have lost its predictor, which does not
/// matter where the last has the highest anyway.
template <class T>
LACONIC_GPU_FN bool find_turns(const Warp& w, const SumPlan& plan, const SumInput<T>& input, bool raises,
                               SumTurns& turns) {
  PerLane<Word> word;
  const std::uint32_t streams = ((1U << plan.operands) - 1) & ~(plan.local ? 1U : 0U);
  const std::uint32_t coded = w.ballot([&](int l) {
    if ((streams >> l & 1) == 0) return false;
    const ChunkIn in = input.in(l);
    if (in.size < 4) return false;
    word[l] = Word::unpack(load32(in.data));
    return word[l].kind == Kind::coded;
  });
  const auto with = [&](Predictor p) { return w.ballot([&](int l) { return word[l].predictor == p; }) & coded; };
  const std::uint32_t first = with(Predictor::first);
  const std::uint32_t second = with(Predictor::second);
  turns.now = streams;
  if (coded == 0 || with(Predictor::none) == coded || first == coded || second == coded) return true;
  const std::uint32_t highest = second != 0 ? second : first;
  if (!raises || plan.local || (plan.operands > 2 && highest < (coded & ~highest))) return false;
  turns = {streams & ~first & ~second, first, second};
  return true;
}

/// Adds all operands.
template <class T, class Marks>
LACONIC_GPU_FN FastRead add_planes_of(const Warp& w, const SumPlan& plan, const SumInput<T>& input, SumTurns turns,
                                      std::uint8_t* region, Marks& exceptions, PlaneSum& sum, PlaneStore& planes) {
  FastRead read = FastRead::done;
  if (plan.local) read = local_planes(w, Rows<std::int32_t>(region), sum, planes);
  int raised = 0;
  LACONIC_GPU_KEEP_LOOP
  while (read == FastRead::done) {
    if (turns.now == 0) {
      if ((turns.next | turns.last) == 0) break;
      turns = {turns.next, turns.last, 0};
      ++raised;
      if (!sum.coded) continue;
      if (planes.count == PlaneStore::most) return FastRead::too_wide;
      sum.base += static_cast<std::uint32_t>(raise_residuals(w, planes));
      sum.predictor = static_cast<Predictor>(raised);
      continue;
    }
    const int j = trailing_zeros(turns.now);
    turns.now &= turns.now - 1;
    read = add_stream(w, plan.operand[j], input.in(j), region, exceptions, sum, planes);
    // A partial sum that is constant would have become a constant chunk, with another base.
    std::int32_t residual = 0;
    if (!Marks::marked && read == FastRead::done && j > 0 && j + 1 < plan.operands && sum.coded &&
        sum.predictor == Predictor::none && all_residuals_equal(w, planes, residual))
      return FastRead::unlike;
  }
  return read;
}

template <class T>
LACONIC_GPU_FN Made write_sum(const Warp& w, const SumPlan& plan, const PlaneSum& sum, const NoMarks<T>&,
                              PlaneStore& planes, std::uint8_t* region) {
  const auto base = static_cast<std::int32_t>(sum.base);
  if (!sum.coded) return {Made::As::bytes, write_constant<std::int32_t>(w, base, plan.result.shape, region)};
  Fill fill;
  const std::uint32_t bytes =
      write_planes(w, planes, {sum.predictor, base}, fill, plan.result.shape, region_bytes<std::int32_t>, region);
  return {bytes != 0 ? Made::As::bytes : Made::As::again, bytes};
}

/// Whether the integers of these residuals, of `first` or `none`, are held.
LACONIC_GPU_FN bool are_held(const Warp& w, const PlaneStore& planes, Predictor predictor,
                             const PerLane<std::uint64_t>& marks) {
  PerLane<std::uint32_t> last;  // bit r: plane r of the block's last residual
  w.each([&](int l) {
    LACONIC_GPU_KEEP_LOOP
    for (int r = 0; r < planes.count; ++r) last[l] |= planes.at(r, l).half[1] >> 31 << r;
  });
  const PerLane<std::uint32_t> before = w.gather(last, [](int l) { return l == 0 ? 0 : l - 1; });
  const std::uint32_t mask = predictor == Predictor::none ? ~0U : 0;
  const int first = trailing_zeros(w.ballot([&](int l) { return ~marks[l] != 0; }));
  return !w.any([&](int l) {
    std::uint32_t differ[2] = {0, 0};
    LACONIC_GPU_KEEP_LOOP
    for (int r = 0; r < planes.count; ++r) {
      const Plane p = planes.at(r, l);
      differ[0] |= p.half[0] ^ ((p.half[0] << 1 | (before[l] >> r & 1)) & mask);
      differ[1] |= p.half[1] ^ (funnel_right(p.half[0], p.half[1], 31) & mask);
    }
    // Marked positions, and that of the first integer where others come before it; nothing comes before the chunk.
    std::uint64_t held = marks[l] | (l == first ? ~marks[l] & (marks[l] + 1) : 0);
    if (l == 0) held &= ~std::uint64_t{1};
    return ((std::uint64_t{differ[1]} << 32 | differ[0]) & held) != 0;
  });
}

/// With exceptions. The operands are held, if encoders wrote them, and so is their sum, which second differences do not
/// show.
template <class T>
LACONIC_GPU_FN Made write_sum(const Warp& w, const SumPlan& plan, const PlaneSum& sum, const CommonMarks<T>& common,
                              PlaneStore& planes, std::uint8_t* region) {
  if (!common.any()) return {};
  Choice<std::int32_t> choice{sum.predictor, static_cast<std::int32_t>(sum.base)};
  if (sum.predictor != Predictor::second && are_held(w, planes, sum.predictor, common.marks())) {
    const Fill fill = common.fill(w);
    const std::uint32_t bytes =
        write_planes(w, planes, choice, fill, plan.result.shape, region_bytes<std::int32_t>, region);
    return {bytes != 0 ? Made::As::bytes : Made::As::again, bytes};
  }
  const Rows<std::int32_t> rows(region);
  PerLane<Planes<2>> in_registers;
  planes.get(w, in_registers);
  rows_of_planes<false>(w, in_registers, choice.predictor, choice.base, rows);
  common.hold_in(w, rows);
  if (choice.predictor != Predictor::none) choice.base = rows[0];
  return write_sum_of_rows(w, choice, true, common, plan.result.shape, region);
}

/// The chunk, if it is to be had this way; `read` says why not.
template <class T, class Marks>
LACONIC_GPU_FN Made sum_in_planes(const Warp& w, const SumPlan& plan, const SumInput<T>& input, Marks exceptions,
                                  std::uint8_t* region, FastRead& read) {
  PlaneSum sum;
  SumTurns turns;
  read = FastRead::unlike;
  if (!find_turns(w, plan, input, !Marks::marked, turns)) return {};
  if (plan.local) {
    read = start_with_local(w, plan, input, Rows<std::int32_t>(region), exceptions, sum);
    if (read != FastRead::done) return {};
  }
  PlaneStore planes(planes_in_region(region));
  read = add_planes_of(w, plan, input, turns, region, exceptions, sum, planes);
  return read == FastRead::done ? write_sum(w, plan, sum, exceptions, planes, region) : Made{};
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
