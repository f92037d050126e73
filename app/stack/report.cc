#include "stack/report.h"

#include <fmt/core.h>

#include "exit_code.h"
#include "report/json.h"
#include "report/streams.h"
#include "report/table.h"

namespace laconic::app {
namespace {

std::string over_bound(const StackResult& r, const Side& side) {
  return r.absolute_bound > 0 ? fmt::format("{:.4g}", side.quality.max_error / r.absolute_bound) : "-";
}

nlohmann::json side_json(const StackResult& r, const Side& s) {
  return {
      {"seconds", s.seconds},
      {"fastest_seconds", s.fastest},
      {"slowest_seconds", s.slowest},
      {"wire_bytes", s.wire_bytes},
      {"max_error", s.quality.max_error},
      {"max_error_over_bound", r.absolute_bound > 0 ? finite_or_null(s.quality.max_error / r.absolute_bound) : nullptr},
      {"violations", s.quality.violations},
      {"psnr_db", finite_or_null(s.quality.psnr())},
      {"nrmse", finite_or_null(s.quality.nrmse())},
      {"identical_on_all_ranks", s.identical}};
}

}  // namespace

std::string to_text(const StackResult& r) {
  std::string out =
      fmt::format("{} of {} images ({}) over {} ranks, {} x {} values = {} a rank, bound {}", r.op, r.images,
                  printable(r.set), r.ranks, r.rows, r.cols, human_bytes(static_cast<double>(r.raw_bytes)), r.bound);
  out += r.absolute_bound > 0 ? fmt::format(" = {:.4g} for every value\n\n", r.absolute_bound) : " (exact)\n\n";
  Table table({"", r.plain_name, "Laconic"});
  const Side& p = r.plain;
  const Side& l = r.laconic;
  table.row({"time (median)", human_time(p.seconds), human_time(l.seconds)});
  if (p.wire_bytes > 0) table.row({"bytes on the wire", human_bytes(p.wire_bytes), human_bytes(l.wire_bytes)});
  table.row({"messages: raw, sent", human_bytes(r.uncompressed_bytes), human_bytes(r.payload_bytes)});
  table.row({"max error / bound", over_bound(r, p), over_bound(r, l)});
  table.row(
      {"values outside the bound", fmt::format("{}", p.quality.violations), fmt::format("{}", l.quality.violations)});
  table.row({"PSNR", fmt::format("{:.1f} dB", p.quality.psnr()), fmt::format("{:.1f} dB", l.quality.psnr())});
  table.row({"NRMSE", fmt::format("{:.2e}", p.quality.nrmse()), fmt::format("{:.2e}", l.quality.nrmse())});
  table.row({"same bits on all ranks", p.identical ? "yes" : "no", l.identical ? "yes" : "no"});
  out += table.text();
  out += fmt::format("\nspeed-up {:.2f}, ratio {:.2f}, speed-up / ratio {:.2f}", r.speedup(), r.ratio(),
                     r.speedup() / r.ratio());
  if (r.link_rate > 0) out += fmt::format(", efficiency {:.2f} (compressed bytes / link rate / time)", r.efficiency());
  out += fmt::format("\nLaconic's time, mean over ranks: codec {}, wire {}, compute {}, other {}\n",
                     human_time(r.codec), human_time(r.wire), human_time(r.compute), human_time(r.other));
  return out;
}

nlohmann::json to_json(const StackResult& r) {
  return {{"set", r.set},
          {"op", r.op},
          {"bound", r.bound},
          {"absolute_bound", r.absolute_bound},
          {"ranks", r.ranks},
          {"images", r.images},
          {"rows", r.rows},
          {"cols", r.cols},
          {"raw_bytes", r.raw_bytes},
          {"transport", r.transport},
          {"plain_name", r.plain_name},
          {"plain", side_json(r, r.plain)},
          {"laconic", side_json(r, r.laconic)},
          {"ratio", r.ratio()},
          {"speedup", r.speedup()},
          {"efficiency", r.link_rate > 0 ? nlohmann::json(r.efficiency()) : nlohmann::json(nullptr)},
          {"payload_bytes", r.payload_bytes},
          {"payload_bytes_busiest_rank", r.payload_bytes_busiest},
          {"uncompressed_bytes", r.uncompressed_bytes},
          {"seconds", {{"codec", r.codec}, {"wire", r.wire}, {"compute", r.compute}, {"other", r.other}}}};
}

int exit_code_for(const StackResult& r) {
  const bool kept = r.laconic.quality.violations == 0 && r.laconic.identical;
  return static_cast<int>(kept ? Exit::ok : Exit::bound_violated);
}

}  // namespace laconic::app
