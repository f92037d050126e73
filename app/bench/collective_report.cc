#include "bench/collective_report.h"

#include <fmt/core.h>

#include <cmath>

#include "exit_code.h"
#include "report/json.h"
#include "report/streams.h"
#include "report/table.h"

namespace laconic::app {
namespace {

bool has_bound(const SizeResult& size) { return size.absolute_bound > 0 && std::isfinite(size.absolute_bound); }

std::vector<std::string> cells(const CollectiveResult& r, const SizeResult& size, const ModeResult& m) {
  const bool plain = m.name == "plain";
  const double speedup = size.speedup(m);
  const auto unless_plain = [plain](const std::string& text) { return plain ? "-" : text; };
  std::vector<std::string> row{
      m.name,
      human_time(m.seconds),
      speedup > 0 ? fmt::format("{:.2f}", speedup) : "-",
      unless_plain(fmt::format("{:.2f}", m.ratio())),
      unless_plain(human_bytes(m.sent_bytes)),
      unless_plain(human_time(m.codec)),
      unless_plain(human_time(m.wire)),
      unless_plain(human_time(m.compute)),
      unless_plain(human_time(m.other)),
      has_bound(size) ? fmt::format("{:.4g}", m.max_error / size.absolute_bound) : "-",
      plain || m.promised ? fmt::format("{:.0f}", m.violations) : "no promise",
      unless_plain(human_bytes(m.scratch_bytes)),
      unless_plain(human_bytes(m.scratch_allowance)),
      !m.identical   ? "-"
      : *m.identical ? "yes"
                     : "no",
  };
  if (r.counts_wire) row.insert(row.begin() + 5, human_bytes(m.wire_bytes));
  return row;
}

nlohmann::json to_json(const SizeResult& size, const ModeResult& m) {
  nlohmann::json j{{"mode", m.name},
                   {"timed_calls", m.calls},
                   {"seconds", m.seconds},
                   {"first_seconds", m.first},
                   {"fastest_seconds", m.fastest},
                   {"slowest_seconds", m.slowest},
                   {"speedup", size.speedup(m) > 0 ? nlohmann::json(size.speedup(m)) : nlohmann::json(nullptr)},
                   {"interface_bytes", m.wire_bytes},
                   {"max_error", finite_or_null(m.max_error)},
                   {"max_error_over_bound",
                    has_bound(size) ? finite_or_null(m.max_error / size.absolute_bound) : nlohmann::json(nullptr)},
                   {"violations", m.violations},
                   {"promised", m.promised},
                   {"identical_on_all_ranks", m.identical ? nlohmann::json(*m.identical) : nlohmann::json(nullptr)}};
  if (m.name == "plain") return j;
  j["ratio"] = m.ratio();
  j["sent_bytes"] = m.sent_bytes;
  j["original_bytes"] = m.original_bytes;
  j["breakdown_seconds"] = {{"codec", m.codec}, {"wire", m.wire}, {"compute", m.compute}, {"other", m.other}};
  j["scratch_bytes"] = m.scratch_bytes;
  j["scratch_allowance"] = m.scratch_allowance;
  return j;
}

}  // namespace

std::string text_of_last(const CollectiveResult& r) {
  const SizeResult& size = r.sizes.back();
  std::string out;
  if (r.sizes.size() == 1) {
    const std::string op = r.op.empty() ? "" : fmt::format(" ({})", r.op);
    const std::string root = r.root ? fmt::format(", root {}", *r.root) : "";
    const std::string link = r.link.empty() ? "" : ", links of " + r.link;
    out = fmt::format("{}{} of {} ({}) over {} ranks{}{}, {}, bound {}; medians of {}\n", name_of(r.collective), op,
                      printable(r.field), r.dtype, r.ranks, link, root, r.mpi, r.bound, size.modes.front().calls);
  }
  std::vector<std::string> head{"mode",    "time",  "speed-up",    "ratio",   "sent",    "codec",   "wire",
                                "compute", "other", "error/bound", "outside", "scratch", "allowed", "same bits"};
  if (r.counts_wire) head.insert(head.begin() + 5, "interfaces");
  Table table(head);
  for (const ModeResult& m : size.modes) table.row(cells(r, size, m));
  out += fmt::format("\n{} a rank", human_bytes(static_cast<double>(size.operand_bytes)));
  if (has_bound(size)) out += fmt::format(", bound = {:.4g}", size.absolute_bound);
  return out + "\n" + table.text();
}

nlohmann::json to_json(const CollectiveResult& r) {
  nlohmann::json sizes = nlohmann::json::array();
  for (const SizeResult& size : r.sizes) {
    nlohmann::json modes = nlohmann::json::array();
    for (const ModeResult& m : size.modes) modes.push_back(to_json(size, m));
    sizes.push_back({{"operand_bytes", size.operand_bytes},
                     {"absolute_bound", finite_or_null(size.absolute_bound)},
                     {"modes", modes}});
  }
  return {{"collective", name_of(r.collective)},
          {"op", r.op.empty() ? nlohmann::json(nullptr) : nlohmann::json(r.op)},
          {"root", r.root ? nlohmann::json(*r.root) : nlohmann::json(nullptr)},
          {"field", r.field},
          {"dtype", r.dtype},
          {"bound", r.bound},
          {"mpi", r.mpi},
          {"ranks", r.ranks},
          {"link", r.link.empty() ? nlohmann::json(nullptr) : nlohmann::json(r.link)},
          {"repetitions", r.repetitions},
          {"sizes", sizes}};
}

int exit_code_for(const CollectiveResult& r) {
  for (const SizeResult& size : r.sizes) {
    for (const ModeResult& m : size.modes) {
      const bool differs = m.name.rfind("laconic", 0) == 0 && m.identical == false;
      if ((m.promised && m.violations > 0) || differs) return static_cast<int>(Exit::bound_violated);
    }
  }
  return static_cast<int>(Exit::ok);
}

}  // namespace laconic::app
