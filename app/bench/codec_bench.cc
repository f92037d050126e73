#include "bench/codec_bench.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "bench/rivals.h"
#include "bench/timing.h"
#include "frame/frame.h"
#include "report/quality.h"

namespace laconic::app {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t second_operand_shift = 61;  // values; no multiple of any block, row or page

/// The values of one measurement: an operand, a second one to add to it, and room for every result.
struct Workspace {
  ConstArray x;
  Bytes x_bytes, y_bytes, decoded;
  Bytes frame_x, frame_y, sum;
  std::size_t x_size = 0, y_size = 0;

  Workspace(ConstArray field, std::size_t bytes) : x_bytes(tile(field, bytes, 0)), decoded(x_bytes.size()) {
    x = {x_bytes.data(), x_bytes.size() / size_of(field.dtype), field.dtype};
    // Another operand of the same scene, moved a little, as the images of a stack are.
    y_bytes = tile(field, bytes, field.count > second_operand_shift ? second_operand_shift : 0);
    frame_x.resize(frame::capacity(x.dtype, x.count));
    frame_y.resize(frame_x.size());
    sum.resize(frame::sum_capacity(x.dtype, x.count));
  }
  [[nodiscard]] ConstArray y() const { return {y_bytes.data(), x.count, x.dtype}; }
  [[nodiscard]] MutArray out() { return {decoded.data(), x.count, x.dtype}; }

 private:
  /// The field repeated to `bytes` (rounded down to whole elements), from element `start` on.
  static Bytes tile(ConstArray field, std::size_t bytes, std::size_t start) {
    const auto* from = static_cast<const std::uint8_t*>(field.data);
    const std::size_t size = field.bytes();
    Bytes out(bytes / size_of(field.dtype) * size_of(field.dtype));
    std::size_t at = start * size_of(field.dtype);
    for (std::size_t done = 0; done < out.size();) {
      const std::size_t n = std::min(size - at, out.size() - done);
      std::memcpy(out.data() + done, from + at, n);
      done += n;
      at = 0;
    }
    return out;
  }
};

Grid grid_for(const LoadedField& f, const Bound& bound) {
  const Range r = scan_without(f.array(), f.field.fill, true);
  return make_grid(f.field.shape.dtype, bound.absolute_for(r.width()), r.max_abs());
}

CodecRow new_row(const LoadedField& f, const Bound& bound, std::size_t raw) {
  CodecRow row;
  row.field = f.field.name;
  row.dtype = name_of(f.field.shape.dtype);
  row.bound = bound.to_string();
  row.raw_bytes = raw;
  return row;
}

void judge(CodecRow& row, ConstArray original, ConstArray decoded, double bound, std::optional<double> fill) {
  Quality q;
  compare(q, original, decoded, bound, fill);
  row.violations = q.violations;
  row.error_over_bound = bound > 0 ? q.max_error / bound : 0;
}

void slice_tasks(Workspace& w, const Grid& grid, int threads, slice::Target target,
                 std::vector<std::function<void()>>& tasks) {
  tasks.emplace_back([&w, grid, threads, target] {
    slice::force(target);
    w.x_size = frame::encode(w.x, grid, w.frame_x, threads);
  });
  tasks.emplace_back([&w, threads] { frame::decode(frame::Bytes(w.frame_x).first(w.x_size), w.out(), threads); });
  tasks.emplace_back([&w, threads] {
    frame::add(frame::Bytes(w.frame_x).first(w.x_size), frame::Bytes(w.frame_y).first(w.y_size), w.sum, threads);
  });
  tasks.emplace_back(
      [&w, threads] { frame::encode_add(w.x, frame::Bytes(w.frame_y).first(w.y_size), w.sum, threads); });
}

void bench_slice(const LoadedField& f, const Bound& bound, const CodecBenchOptions& options, Workspace& w,
                 bool in_cache, std::vector<CodecRow>& rows) {
  const Grid grid = grid_for(f, bound);
  w.y_size = frame::encode(w.y(), grid, w.frame_y);
  w.x_size = frame::encode(w.x, grid, w.frame_x);
  frame::decode(frame::Bytes(w.frame_x).first(w.x_size), w.out());
  CodecRow base = new_row(f, bound, w.x.bytes());
  base.codec = "slice";
  base.in_cache = in_cache;
  base.packed_bytes = w.x_size;
  judge(base, w.x, w.out(), grid.bound, f.field.fill);

  std::vector<int> thread_counts{1};
  if (options.threads > 1 && !in_cache) thread_counts.push_back(options.threads);
  std::vector<std::function<void()>> tasks{[&w] { std::memcpy(w.decoded.data(), w.x.data, w.x.bytes()); }};
  for (const slice::Target target : options.targets)
    for (const int threads : thread_counts) slice_tasks(w, grid, threads, target, tasks);
  const slice::Target before = slice::current();
  const std::vector<double> seconds = time_interleaved(tasks, options.repetitions, in_cache ? 20 : 1);
  slice::force(before);

  std::size_t t = 1;
  for (const slice::Target target : options.targets) {
    for (const int threads : thread_counts) {
      CodecRow row = base;
      row.target = name_of(target);
      row.threads = threads;
      row.copy = seconds[0];
      row.encode = seconds[t++];
      row.decode = seconds[t++];
      row.add = seconds[t++];
      row.encode_add = seconds[t++];
      rows.push_back(row);
    }
  }
}

void bench_rival(const LoadedField& f, const Bound& bound, double absolute, Workspace& w, std::unique_ptr<Rival> rival,
                 std::vector<CodecRow>& rows) {
  if (!rival) return;
  CodecRow row = new_row(f, bound, w.x.bytes());
  row.codec = rival->name();
  // Rivals are slow and steady: a warm-up for the page faults, then one repetition.
  const std::vector<double> seconds =
      time_interleaved({[&w] { std::memcpy(w.decoded.data(), w.x.data, w.x.bytes()); },
                        [&] { row.packed_bytes = rival->compress(); }, [&] { rival->decompress(); }},
                       1);
  row.copy = seconds[0];
  row.encode = seconds[1];
  row.decode = seconds[2];
  judge(row, w.x, rival->decoded(), rival->lossy() ? absolute : 0, f.field.fill);
  rows.push_back(row);
}

}  // namespace

std::vector<CodecRow> bench_field(const LoadedField& field, const std::vector<Bound>& bounds,
                                  const CodecBenchOptions& options, const std::function<void()>& step) {
  std::vector<CodecRow> rows;
  Workspace large(field.array(), options.bytes);
  std::unique_ptr<Workspace> small;
  if (options.cache_bytes > 0) small = std::make_unique<Workspace>(field.array(), options.cache_bytes);
  int order = 0;
  for (const Bound& bound : bounds) {
    const std::size_t first = rows.size();
    bench_slice(field, bound, options, large, false, rows);
    if (small) bench_slice(field, bound, options, *small, true, rows);
    if (options.rivals) {
      const double absolute = grid_for(field, bound).bound;
      bench_rival(field, bound, absolute, large, make_zfp(large.x, field.field.shape.dims, absolute), rows);
    }
    for (std::size_t i = first; i < rows.size(); ++i) rows[i].bound_order = order;
    ++order;
    step();
  }
  const std::size_t lossless = rows.size();
  if (options.rivals) {
    bench_rival(field, Bound{}, 0, large, make_lz4(large.x), rows);
    bench_rival(field, Bound{}, 0, large, make_zstd(large.x, 1), rows);
  }
  for (std::size_t i = lossless; i < rows.size(); ++i) rows[i].bound_order = order;
  return rows;
}

CodecRow ratio_of_field(const LoadedField& field, const Bound& bound) {
  Workspace w(field.array(), field.bytes.size());
  const Grid grid = grid_for(field, bound);
  CodecRow row = new_row(field, bound, w.x.bytes());
  row.codec = "slice";
  row.packed_bytes = frame::encode(w.x, grid, w.frame_x);
  frame::decode(frame::Bytes(w.frame_x).first(row.packed_bytes), w.out());
  judge(row, w.x, w.out(), grid.bound, field.field.fill);
  return row;
}

}  // namespace laconic::app
