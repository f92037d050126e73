#include "bench/error_report.h"

#include <fmt/core.h>

#include <algorithm>

#include "report/streams.h"
#include "report/table.h"

namespace laconic::app {
namespace {

const char* name_of(error_model::Law law) {
  switch (law) {
    case error_model::Law::nearest:
      return "nearest";
    case error_model::Law::truncated:
      return "truncated";
    case error_model::Law::unknown:
      break;
  }
  return "none";
}

std::string share(double value) { return fmt::format("{:.2f} %", 100 * value); }

/// "measured (expected)"
std::string beside(double measured, double expected, bool known) {
  return fmt::format("{:.3f} ({})", measured, known ? fmt::format("{:.3f}", expected) : "-");
}

/// What a table has beside the figures that every one has.
struct Columns {
  bool field;
  bool beyond;  ///< the bound: where it allows that
};

std::vector<std::string> cells(const ErrorRow& r, Columns with) {
  const ErrorFigures& m = r.measured;
  const bool known = r.law != error_model::Law::unknown;
  std::vector<std::string> row{fmt::format("{}", laconic::name_of(r.op)),
                               r.mode,
                               fmt::format("{}", r.ranks),
                               beside(m.bias, r.expected.bias, known),
                               beside(m.sigma, r.expected.sigma, known),
                               fmt::format("{:.3f}", r.papers_sigma),
                               fmt::format("{:.3f}", m.p50),
                               fmt::format("{:.3f}", m.p99),
                               beside(m.max, r.expected.certain, true),
                               share(m.within_papers),
                               known ? share(r.expected_within) : "-",
                               share(m.exact),
                               fmt::format("{:.4f}", m.over_promise)};
  if (with.beyond) row.push_back(fmt::format("{:.5f} % ({:.5f} %)", 100 * m.beyond_bound, 100 * r.expected_beyond));
  if (with.field) row.insert(row.begin(), r.field);
  return row;
}

std::string table_of(const std::vector<ErrorRow>& rows, Columns with) {
  std::vector<std::string> head{
      "op",           "mode", "ranks",         "bias (ours)",        "sigma (ours)", "papers' sigma",
      "median",       "99 %", "max (certain)", "in papers' 95.44 %", "ours says",    "no error",
      "error/promise"};
  if (with.beyond) head.emplace_back("beyond the bound (ours)");
  if (with.field) head.insert(head.begin(), "field");
  Table table(head);
  for (const ErrorRow& r : rows)
    if (r.measured.measured()) table.row(cells(r, with));
  return table.text();
}

nlohmann::json to_json(const ErrorRow& r) {
  const ErrorFigures& m = r.measured;
  return {{"op", laconic::name_of(r.op)},
          {"mode", r.mode},
          {"codec", r.codec},
          {"field", r.field},
          {"ranks", r.ranks},
          {"count", m.count},
          {"bias", m.bias},
          {"plain_mean", m.plain_mean},
          {"rms", m.rms},
          {"sigma", m.sigma},
          {"percentiles", {{"50", m.p50}, {"90", m.p90}, {"99", m.p99}, {"99.9", m.p999}}},
          {"max", m.max},
          {"without_error", m.exact},
          {"over_promise", m.over_promise},
          {"beyond_bound", m.beyond_bound},
          {"within_papers_interval", m.within_papers},
          {"density", {{"reach", density_reach}, {"scale", m.scale}, {"values", m.density}}},
          {"ours",
           {{"law", name_of(r.law)},
            {"bias", r.expected.bias},
            {"sigma", r.expected.sigma},
            {"certain", r.expected.certain},
            {"within_papers_interval", r.expected_within},
            {"beyond_bound", r.expected_beyond}}},
          {"papers", {{"sigma", r.papers_sigma}, {"within_interval", error_model::papers_share}}}};
}

}  // namespace

std::string to_text(const ErrorBenchOptions& options, const ErrorResult& result, bool per_field) {
  std::string out = fmt::format(
      "Errors of an allreduce, {} a rank, {} fields, bound {}; in units of e, the bound of one compression\n"
      "bias: mean, positive away from zero; in brackets what our model expects; papers: ZCCL, Theorems 1 and 2\n\n",
      human_bytes(static_cast<double>(options.bytes)), options.fields.size(), options.bound.to_string());
  const bool beyond = options.bound.scope == BoundScope::sigmas;
  if (std::none_of(result.rows.begin(), result.rows.end(), [](const ErrorRow& r) { return r.measured.measured(); })) {
    out += result.skipped.empty()
               ? "Nothing was measured: no element is a number on all ranks\n"
               : "Nothing was measured: no result has an error, as of constant data, whose range is 0\n";
  } else {
    if (per_field) out += table_of(result.per_field, {.field = true, .beyond = beyond}) + "\n";
    out += table_of(result.rows, {.field = false, .beyond = beyond});
  }
  if (!result.skipped.empty()) {
    out += fmt::format("\nNot measured, for want of an error (exact or lossless): {} of {}\n", result.skipped.size(),
                       result.skipped.size() + result.per_field.size());
    for (const std::string& s : result.skipped)
      if (per_field) out += "  " + printable(s) + "\n";
  }
  return out;
}

nlohmann::json to_json(const ErrorBenchOptions& options, const ErrorResult& result) {
  nlohmann::json j{
      {"bytes", options.bytes},          {"bound", options.bound.to_string()},   {"fields", nlohmann::json::array()},
      {"rows", nlohmann::json::array()}, {"per_field", nlohmann::json::array()}, {"skipped", result.skipped}};
  for (const LoadedField& f : options.fields) j["fields"].push_back(f.field.name);
  for (const ErrorRow& r : result.rows) j["rows"].push_back(to_json(r));
  for (const ErrorRow& r : result.per_field) j["per_field"].push_back(to_json(r));
  return j;
}

}  // namespace laconic::app
