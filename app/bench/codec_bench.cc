#include "bench/codec_bench.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>

#include "bench/timing.h"
#include "core/element.h"
#include "core/share.h"
#include "frame/frame.h"
#include "report/quality.h"

namespace laconic::app {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t second_operand_shift = 61;  // values; no multiple of any block, row or page
constexpr std::uint64_t most_operands = 4;        // of a sum

/// The values of one measurement: an operand, a second one to add to it, and room for every result.
struct Workspace {
  ConstArray x;
  Bytes x_bytes, y_bytes, decoded;
  Bytes frame_x, frame_y, sum;
  std::size_t x_size = 0, y_size = 0;

  Workspace(const LoadedField& f, std::size_t bytes) : x_bytes(tile(f.array(), bytes, 0)), decoded(x_bytes.size()) {
    const ConstArray field = f.array();
    x = {x_bytes.data(), x_bytes.size() / size_of(field.dtype), field.dtype};
    // Another operand of the same scene, moved a little, as the images of a stack are; but land stays where it is.
    y_bytes = tile(field, bytes, field.count > second_operand_shift ? second_operand_shift : 0);
    if (f.field.fill) keep_in_place(*f.field.fill);
    // No frame of any codec is larger.
    frame_x.resize(x.bytes() + x.bytes() / 50 + 64);
    frame_y.resize(frame_x.size());
    sum.resize(frame::sum_capacity(x.dtype, x.count));
  }
  [[nodiscard]] ConstArray y() const { return {y_bytes.data(), x.count, x.dtype}; }
  [[nodiscard]] MutArray out() { return {decoded.data(), x.count, x.dtype}; }

 private:
  /// Only what is the fill value in x is it in y.
  void keep_in_place(double fill) {
    with_element(x.dtype, [&](auto element) {
      using Stored = typename decltype(element)::Stored;
      const auto is_fill = [&](Stored v) { return static_cast<double>(element.widen(v)) == fill; };
      const auto* from = reinterpret_cast<const Stored*>(x_bytes.data());
      auto* to = reinterpret_cast<Stored*>(y_bytes.data());
      for (std::size_t i = 0; i < x.count; ++i)
        if (is_fill(from[i]) || is_fill(to[i])) to[i] = from[i];
    });
  }

  /// The field repeated to `bytes` (rounded down to whole elements, but at least one), from element `start` on.
  static Bytes tile(ConstArray field, std::size_t bytes, std::size_t start) {
    const auto* from = static_cast<const std::uint8_t*>(field.data);
    const std::size_t size = field.bytes();
    Bytes out(std::max<std::size_t>(1, bytes / size_of(field.dtype)) * size_of(field.dtype));
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
  const Range r = scan_without(f.array(), f.field.fill);
  return make_grid(f.field.shape.dtype, bound.absolute_for(r.width()), r.max_abs());
}

/// What a codec is given at a bound. A rate codec gets the ratio that slice reaches there: the same bytes, so that the
/// errors can be compared, or the largest that it has.
Grid grid_for(const Codec& codec, const LoadedField& f, const Bound& bound, Workspace& w) {
  const Grid grid = grid_for(f, bound);
  if (codec.promise() != Promise::rate) return laconic::grid_for(codec, grid);
  const Extents extents = extents_of(f.field.shape.dims);
  const double ratio = static_cast<double>(w.x.bytes()) / static_cast<double>(frame::encode(w.x, grid, w.frame_x));
  Grid rate = rate_grid(grid.dtype, std::clamp(ratio, 1.0, 8.0 * static_cast<double>(size_of(grid.dtype))));
  rate.step = std::max(rate.step, codec.rates(grid.dtype, extents).least);
  return laconic::grid_for(codec, rate, extents);
}

/// Encodes w.x, decodes it, and says what came of it.
CodecRow new_row(const LoadedField& f, const Codec& codec, const Bound& bound, const Grid& grid, Workspace& w) {
  CodecRow row;
  row.field = f.field.name;
  row.dtype = name_of(f.field.shape.dtype);
  row.bound = bound.to_string();
  row.coder = &codec;
  row.raw_bytes = w.x.bytes();
  w.x_size = frame::encode(codec, w.x, grid, w.frame_x, 1, extents_of(f.field.shape.dims));
  row.packed_bytes = w.x_size;
  frame::decode(frame::Bytes(w.frame_x).first(w.x_size), w.out());
  const double absolute = codec.promise() == Promise::lossless ? 0 : grid_for(f, bound).bound;
  Quality q;
  compare(q, w.x, w.out(), absolute, f.field.fill);
  row.violations = q.violations;
  row.error_over_bound = absolute > 0 ? q.max_error / absolute : 0;
  return row;
}

/// memcpy of x, each thread an equal part.
void copy(Workspace& w, int threads) {
  const std::size_t parts = static_cast<std::size_t>(threads);
  std::atomic<std::size_t> next{0};
  share_work(parts, [&] {
    for (std::size_t part; (part = next.fetch_add(1)) < parts;) {
      const std::size_t begin = w.x.bytes() * part / parts;
      std::memcpy(w.decoded.data() + begin, w.x_bytes.data() + begin, w.x.bytes() * (part + 1) / parts - begin);
    }
  });
}

/// What CodecRow has seconds of, in this order: encoding, decoding, and where streams on the grid can be added, sums.
void slice_tasks(Workspace& w, const Grid& grid, int threads, slice::Target target,
                 std::vector<std::function<void()>>& tasks) {
  tasks.emplace_back([&w, grid, threads, target] {
    slice::force(target);
    w.x_size = frame::encode(w.x, grid, w.frame_x, threads);
  });
  tasks.emplace_back([&w, threads] { frame::decode(frame::Bytes(w.frame_x).first(w.x_size), w.out(), threads); });
  if (!sum_fits(grid, most_operands)) return;
  tasks.emplace_back([&w, threads] {
    frame::add(frame::Bytes(w.frame_x).first(w.x_size), frame::Bytes(w.frame_y).first(w.y_size), w.sum, threads);
  });
  tasks.emplace_back(
      [&w, threads] { frame::encode_add(w.x, frame::Bytes(w.frame_y).first(w.y_size), w.sum, threads); });
  tasks.emplace_back([&w, threads] {
    const frame::Bytes x = frame::Bytes(w.frame_x).first(w.x_size);
    const frame::Bytes y = frame::Bytes(w.frame_y).first(w.y_size);
    frame::sum(w.x, std::array{y, x, y}, w.sum, threads);
  });
}

void bench_slice(const LoadedField& f, const Bound& bound, const CodecBenchOptions& options, Workspace& w,
                 bool in_cache, std::vector<CodecRow>& rows) {
  const Grid grid = grid_for(f, bound);
  w.y_size = frame::encode(w.y(), grid, w.frame_y);
  CodecRow base = new_row(f, slice_codec(), bound, grid, w);
  base.in_cache = in_cache;

  std::vector<int> thread_counts{1};
  if (options.threads > 1 && !in_cache) thread_counts.push_back(options.threads);
  std::vector<std::function<void()>> tasks;
  for (const int threads : thread_counts) tasks.emplace_back([&w, threads] { copy(w, threads); });
  for (const slice::Target target : options.targets)
    for (const int threads : thread_counts) slice_tasks(w, grid, threads, target, tasks);
  const slice::Target before = slice::current();
  const std::vector<double> seconds = time_interleaved(tasks, options.repetitions, in_cache ? 20 : 1);
  slice::force(before);

  std::size_t t = thread_counts.size();
  for (const slice::Target target : options.targets) {
    for (std::size_t i = 0; i < thread_counts.size(); ++i) {
      CodecRow row = base;
      row.target = name_of(target);
      row.threads = thread_counts[i];
      row.copy = seconds[0];
      row.copy_by_threads = seconds[i];
      row.encode = seconds[t++];
      row.decode = seconds[t++];
      if (sum_fits(grid, most_operands)) {
        row.add = seconds[t++];
        row.encode_add = seconds[t++];
        row.encode_sum = seconds[t++];
      }
      rows.push_back(row);
    }
  }
}

/// Much slower than memory, and steady: a warm-up for the page faults, then one repetition.
bool is_slow(const Codec& codec) {
  return codec.id() == CodecId::zfp || codec.id() == CodecId::zfp_rate || codec.id() == CodecId::lz4hc ||
         codec.id() == CodecId::zstd;
}

void bench_other(const LoadedField& f, const Codec& codec, const Bound& bound, const CodecBenchOptions& options,
                 Workspace& w, bool in_cache, std::vector<CodecRow>& rows) {
  const Grid grid = grid_for(codec, f, bound, w);
  const Extents extents = extents_of(f.field.shape.dims);
  CodecRow row = new_row(f, codec, bound, grid, w);
  row.in_cache = in_cache;
  std::vector<int> thread_counts{1};
  if (options.threads > 1 && !in_cache) thread_counts.push_back(options.threads);
  std::vector<std::function<void()>> tasks;
  for (const int threads : thread_counts) {
    tasks.emplace_back([&w, threads] { copy(w, threads); });
    tasks.emplace_back([&, threads] { w.x_size = frame::encode(codec, w.x, grid, w.frame_x, threads, extents); });
    tasks.emplace_back([&, threads] { frame::decode(frame::Bytes(w.frame_x).first(w.x_size), w.out(), threads); });
  }
  const bool slow = is_slow(codec);
  const std::vector<double> seconds =
      time_interleaved(tasks, slow ? 1 : options.repetitions, in_cache && !slow ? 20 : 1);
  row.copy = seconds[0];
  for (std::size_t i = 0; i < thread_counts.size(); ++i) {
    row.threads = thread_counts[i];
    row.copy_by_threads = seconds[3 * i];
    row.encode = seconds[3 * i + 1];
    row.decode = seconds[3 * i + 2];
    rows.push_back(row);
  }
}

}  // namespace

std::vector<CodecRow> bench_field(const LoadedField& field, const std::vector<Bound>& bounds,
                                  const CodecBenchOptions& options, const std::function<void()>& step) {
  std::vector<CodecRow> rows;
  Workspace large(field, options.bytes);
  std::unique_ptr<Workspace> small;
  if (options.cache_bytes > 0) small = std::make_unique<Workspace>(field, options.cache_bytes);
  const auto measure = [&](const Codec& codec, const Bound& bound, int order) {
    if (!codec.takes(field.field.shape.dtype)) return;
    const std::size_t first = rows.size();
    for (const bool in_cache : {false, true}) {
      if (in_cache && (!small || is_slow(codec))) continue;
      Workspace& w = in_cache ? *small : large;
      if (codec.id() == CodecId::slice) {
        bench_slice(field, bound, options, w, in_cache, rows);
      } else {
        bench_other(field, codec, bound, options, w, in_cache, rows);
      }
    }
    for (std::size_t i = first; i < rows.size(); ++i) rows[i].bound_order = order;
  };
  int order = 0;
  for (const Bound& bound : bounds) {
    for (const Codec* codec : options.codecs)
      if (codec->promise() != Promise::lossless) measure(*codec, bound, order);
    ++order;
    step();
  }
  for (const Codec* codec : options.codecs)
    if (codec->promise() == Promise::lossless) measure(*codec, Bound{}, order);
  return rows;
}

std::optional<CodecRow> ratio_of_field(const LoadedField& field, const Bound& bound, const Codec& codec) {
  if (!codec.takes(field.field.shape.dtype)) return std::nullopt;
  Workspace w(field, field.bytes.size());
  return new_row(field, codec, bound, grid_for(codec, field, bound, w), w);
}

}  // namespace laconic::app
