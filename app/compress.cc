// laconic compress: an array file to a .lcz file, checked on request.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>

#include "arguments.h"
#include "command.h"
#include "core/error.h"
#include "core/range.h"
#include "exit_code.h"
#include "frame/frame.h"
#include "io/lcz.h"
#include "report/json.h"
#include "report/progress.h"
#include "report/quality.h"
#include "report/streams.h"
#include "report/table.h"

namespace laconic::app {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct CompressOptions {
  std::string input;
  std::string output;
  std::string bound = "lossless";
  std::string codec = "slice";
  HintOptions hint;
  std::string fill_text = "none";
  std::optional<double> fill;
  int threads = 1;
  bool verify = false;
  bool force = false;
};

/// As a value of that type.
double parse_fill(const std::string& text, DType dtype) {
  double value = 0;
  const char* const last = text.data() + text.size();
  const bool plus = text.starts_with('+') && !text.starts_with("+-");
  const auto [end, error] = std::from_chars(text.data() + (plus ? 1 : 0), last, value);
  const double stored = rounded_to(dtype, value);
  const bool vanishes = stored == 0 && value != 0;
  if (error != std::errc() || end != last || !std::isfinite(stored) || vanishes)
    throw Failure(Exit::usage, fmt::format("--fill {}: want a finite value of {}; NaN and infinities are kept anyway",
                                           text, name_of(dtype)));
  return stored;
}

/// What was done, for the report.
struct Outcome {
  const Codec* codec = nullptr;
  Bound bound;
  Grid grid;
  double largest_bound = 0;  // of all frames: each its own where a ratio is kept; infinite: none is promised
  std::uint64_t raw_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t missing = 0;  // values that are the fill value
  double encode_seconds = 0;
  double decode_seconds = 0;
  double copy_seconds = 0;  // memcpy of the same bytes
  Quality quality;
};

/// Calls f(first, count) for pieces of at most one segment; once with (0, 0) for an empty array.
template <class F>
void for_each_segment(std::uint64_t count, DType dtype, F&& f) {
  const std::uint64_t step = lcz_segment_bytes / size_of(dtype);
  std::uint64_t first = 0;
  do {
    const std::uint64_t n = std::min(step, count - first);
    f(first, static_cast<std::size_t>(n));
    first += n;
  } while (first < count);
}

/// Whether a grid asks for a pass over the values before any is encoded.
bool needs_pass(DType dtype, const Bound& bound) {
  return is_float(dtype) && bound.kind != BoundKind::lossless && bound.kind != BoundKind::ratio;
}

/// A value of an array, so that reading it gives that value again.
std::string in_full(DType dtype, double value) {
  return dtype == DType::f64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
}

/// The grid for this file.
Grid choose_grid(const ArrayReader& in, const CompressOptions& options, const Codec& codec, const Bound& bound,
                 std::vector<std::uint8_t>& buffer, const Session& session, Progress& progress) {
  const DType dtype = in.shape().dtype;
  Range range;
  if (!needs_pass(dtype, bound)) return grid_for(codec, dtype, bound, range, extents_of(in.shape().dims));
  for_each_segment(in.count(), dtype, [&](std::uint64_t first, std::size_t n) {
    const MutArray piece{buffer.data(), n, dtype};
    in.read(first, piece);
    range = merge(range, scan_without(piece, options.fill));
    progress.advance(n);
  });
  if (range.max_abs() >= 1e18 && bound.needs_range()) {
    const double farthest = range.max_abs() == range.max ? range.max : range.min;
    session.warn(
        fmt::format("'{}' reaches {:g}, and the bound is relative to that; if it marks missing data, pass --fill {}",
                    in.path(), farthest, in_full(dtype, farthest)));
  }
  return grid_for(codec, dtype, bound, range);
}

/// Encodes, times and (with --verify) decodes one segment. Returns its frame's bytes.
std::size_t compress_segment(ConstArray x, Extents extents, const CompressOptions& options, Outcome& outcome,
                             std::vector<std::uint8_t>& frame, std::vector<std::uint8_t>& decoded) {
  auto start = Clock::now();
  const std::size_t bytes = frame::encode(*outcome.codec, x, outcome.grid, frame, options.threads, extents);
  outcome.encode_seconds += seconds_since(start);
  const double bound = frame::peek(frame).grid.bound;
  outcome.largest_bound = std::max(outcome.largest_bound, bound);
  if (options.verify) {
    start = Clock::now();
    std::memcpy(decoded.data(), x.data, x.bytes());
    outcome.copy_seconds += seconds_since(start);
    start = Clock::now();
    frame::decode(frame::Bytes(frame).first(bytes), {decoded.data(), x.count, x.dtype}, options.threads);
    outcome.decode_seconds += seconds_since(start);
    compare(outcome.quality, x, {decoded.data(), x.count, x.dtype}, bound, options.fill);
    if (outcome.quality.violations > 0)
      throw Failure(Exit::bound_violated,
                    fmt::format("verification failed: {} of {} values are outside the bound {:g}; no file was written",
                                outcome.quality.violations, x.count, bound));
  }
  return bytes;
}

Outcome compress_file(const ArrayReader& in, const CompressOptions& options, const Session& session) {
  Outcome outcome;
  outcome.bound = Bound::parse(options.bound);
  outcome.codec = &find_codec(options.codec);
  outcome.raw_bytes = in.bytes();
  const DType dtype = in.shape().dtype;
  const std::size_t largest = static_cast<std::size_t>(std::min<std::uint64_t>(in.bytes(), lcz_segment_bytes));
  // One page more than needed keeps data() non-null for empty arrays, and touches every page before anything is timed.
  std::vector<std::uint8_t> buffer(largest + 4096);
  OutputFile out(options.output, options.force);
  const std::uint64_t passes = needs_pass(dtype, outcome.bound) ? 2 : 1;
  Progress progress("compressing", in.count() * passes, session.progress());
  outcome.grid = choose_grid(in, options, *outcome.codec, outcome.bound, buffer, session, progress);
  std::vector<std::uint8_t> frame(frame::capacity(dtype, largest / size_of(dtype), *outcome.codec));
  std::vector<std::uint8_t> decoded(options.verify ? largest + 4096 : 0);
  const std::vector<std::uint8_t> header = make_lcz_header(in.shape(), in.kind());
  LczSeal seal;
  seal.add_header(header);
  out.write(header);
  for_each_segment(in.count(), dtype, [&](std::uint64_t first, std::size_t n) {
    const MutArray piece{buffer.data(), n, dtype};
    in.read(first, piece);
    if (options.fill) outcome.missing += occurrences(piece, *options.fill);
    const auto made =
        std::span(frame).first(compress_segment(piece, extents_of(in.shape().dims), options, outcome, frame, decoded));
    seal.add_frame(made);
    out.write(made);
    progress.advance(n);
  });
  out.write(seal.bytes());
  out.commit();
  outcome.file_bytes = out.written();
  return outcome;
}

nlohmann::json to_json(const Outcome& o, const CompressOptions& options, const ArrayReader& in) {
  nlohmann::json j{{"input", options.input},
                   {"output", options.output},
                   {"dtype", name_of(in.shape().dtype)},
                   {"dims", in.shape().dims},
                   {"codec", o.codec->name()},
                   {"bound", o.bound.to_string()},
                   {"absolute_bound", finite_or_null(o.largest_bound)},
                   {"step", o.grid.step},
                   {"raw_bytes", o.raw_bytes},
                   {"file_bytes", o.file_bytes},
                   {"ratio", static_cast<double>(o.raw_bytes) / static_cast<double>(o.file_bytes)},
                   {"encode_seconds", o.encode_seconds}};
  if (options.verify) {
    const Quality& q = o.quality;
    j["verified"] = {{"max_error", q.max_error},
                     {"max_error_over_bound", o.largest_bound > 0 && std::isfinite(o.largest_bound)
                                                  ? finite_or_null(q.max_error / o.largest_bound)
                                                  : nlohmann::json(0)},
                     {"violations", q.violations},
                     {"psnr_db", finite_or_null(q.psnr())},
                     {"nrmse", finite_or_null(q.nrmse())},
                     {"decode_seconds", o.decode_seconds},
                     {"memcpy_seconds", o.copy_seconds},
                     {"encode_over_memcpy", finite_or_null(o.copy_seconds / o.encode_seconds)},
                     {"decode_over_memcpy", finite_or_null(o.copy_seconds / o.decode_seconds)}};
  }
  return j;
}

void print_text(const Outcome& o, const CompressOptions& options, const ArrayReader& in) {
  const auto raw = static_cast<double>(o.raw_bytes);
  report(fmt::format("{}: {} of {}, {} -> {} ({}), ratio {:.2f}\n", printable(options.input),
                     to_string(in.shape().dims), name_of(in.shape().dtype), human_bytes(raw), printable(options.output),
                     human_bytes(static_cast<double>(o.file_bytes)), raw / static_cast<double>(o.file_bytes)));
  report(fmt::format("{}, {}\n", o.codec->name(),
                     o.largest_bound == 0          ? "lossless"
                     : std::isinf(o.largest_bound) ? fmt::format("a ratio of {} and no bound", o.bound.to_string())
                     : std::isinf(o.grid.bound)
                         ? fmt::format("a ratio of {}, by bounds of up to {:g}", o.bound.to_string(), o.largest_bound)
                         : fmt::format("bound {} = {:g} for every value", o.bound.to_string(), o.grid.bound)));
  if (!options.verify) return;
  const Quality& q = o.quality;
  if (o.largest_bound == 0) {
    report("verified: every bit came back\n");
  } else {
    report(fmt::format(
        "verified: max error {:g}{}, PSNR {:.2f} dB, NRMSE {:.3g}\n", q.max_error,
        std::isinf(o.largest_bound) ? "" : fmt::format(" = {:.4f} of the bound", q.max_error / o.largest_bound),
        q.psnr(), q.nrmse()));
  }
  if (o.raw_bytes > 0)
    report(fmt::format(
        "speed: compress {:.2f} GB/s ({:.2f} x memcpy), decompress {:.2f} GB/s ({:.2f} x memcpy), {} thread{}\n",
        raw / o.encode_seconds / 1e9, o.copy_seconds / o.encode_seconds, raw / o.decode_seconds / 1e9,
        o.copy_seconds / o.decode_seconds, options.threads, options.threads == 1 ? "" : "s"));
}

int run_compress(const Session& session, CompressOptions& options) {
  checked_threads(options.threads);
  require_output(options.input, options.output);
  if (options.output.empty()) options.output = options.input + ".lcz";
  const ArrayReader in(options.input, options.hint.hint());
  const DType dtype = in.shape().dtype;
  if (options.fill_text != "none") options.fill = parse_fill(options.fill_text, dtype);
  const Outcome outcome = compress_file(in, options, session);
  if (options.fill && outcome.missing == 0)
    session.warn(fmt::format("--fill: no value of '{}' is {}", in.path(), in_full(dtype, *options.fill)));
  if (session.json) {
    print_json(to_json(outcome, options, in));
  } else if (!session.quiet) {
    print_text(outcome, options, in);
  }
  return 0;
}

}  // namespace

void add_compress(CommandSyntax app, Session& session) {
  auto options = std::make_shared<CompressOptions>();
  CommandSyntax c = app.add_command("compress", "Compress an array file (.npy or raw) to .lcz");
  c.argument("input", options->input, "Array: .npy, or raw little-endian values");
  c.option("-o,--output", options->output, "Where to write (default: INPUT.lcz)");
  c.option("-b,--bound", options->bound,
           "Largest error: 1e-3, 1e-3rel (of the value range), 80dB, lossless; 10x for a ratio");
  c.option("--codec", options->codec, "slice, szx, fzlight, zfp, zfp-rate, lz4, lz4hc, zstd");
  options->hint.add_to(c, "input");
  c.option("--fill", options->fill_text, "Value that marks missing data: left out of the value range");
  c.option("-t,--threads", options->threads, "Threads");
  c.flag("--verify", options->verify, "Decompress again, check every value, report quality and speed");
  c.flag("-f,--force", options->force, "Replace an existing output");
  c.on_chosen(
      [&session, options] { session.command = [&session, options] { return run_compress(session, *options); }; });
}

}  // namespace laconic::app
