// laconic bench error: how the errors of results are distributed, beside two theories.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "arguments.h"
#include "bench/error_report.h"
#include "command.h"
#include "exit_code.h"
#include "report/json.h"
#include "report/progress.h"

namespace laconic::app {
namespace {

struct Arguments {
  FieldOptions fields;
  std::string size = "256KiB";
  std::string bound = "1e-3rel";
  std::vector<int> ranks{2, 4, 8, 16, 32};
  std::vector<std::string> ops{"sum", "average", "min", "max"};
  bool per_field = false;
};

ErrorBenchOptions checked(const Arguments& given) {
  ErrorBenchOptions options;
  options.bytes = parse_size(given.size);
  options.bound = Bound::parse(given.bound);
  options.ranks = given.ranks;
  if (options.bound.kind == BoundKind::lossless || options.bound.kind == BoundKind::ratio)
    throw Failure(Exit::usage, fmt::format("--bound {}: its errors have no law to be held against", given.bound));
  for (const int n : given.ranks)
    if (n < 2 || n > 256) throw Failure(Exit::usage, fmt::format("--ranks {} is not between 2 and 256", n));
  for (const std::string& name : given.ops) {
    const Op op = parse_op(name);
    if (op == Op::product) throw Failure(Exit::usage, "--ops product: there are sum, average, min and max");
    options.ops.push_back(op);
  }
  for (const Field& f : given.fields.choose()) {
    if (f.shape.dtype != DType::f32 && f.shape.dtype != DType::f64)
      throw Failure(Exit::bad_data,
                    fmt::format("{} holds {}; errors are measured of f32 and f64", f.name, name_of(f.shape.dtype)));
    options.fields.push_back(load_any(f));
  }
  return options;
}

int run(const Session& session, const Arguments& given) {
  const ErrorBenchOptions options = checked(given);
  Progress progress("reducing", options.fields.size() * options.ranks.size(), session.progress());
  const ErrorResult result = bench_error(options, [&] { progress.advance(1); });
  if (session.json) {
    print_json(to_json(options, result));
  } else if (!session.quiet) {
    fmt::print("{}", to_text(options, result, given.per_field));
  }
  const bool kept = std::all_of(result.per_field.begin(), result.per_field.end(),
                                [](const ErrorRow& r) { return r.measured.over_promise <= 1; });
  return static_cast<int>(kept ? Exit::ok : Exit::bound_violated);
}

}  // namespace

void add_error_bench(CommandSyntax bench, Session& session) {
  auto given = std::make_shared<Arguments>();
  CommandSyntax c =
      bench.add_command("error", "Distribution of the error of a reduction's result, beside two theories");
  given->fields.add_to(c);
  c.option("--size", given->size, "Bytes of a rank's operand; fields are repeated or cut to them");
  c.option("-b,--bound", given->bound, "Bound");
  c.list("--ranks", given->ranks, "Numbers of ranks, played by threads");
  c.list("--ops", given->ops, "Operations");
  c.flag("--per-field", given->per_field, "A line for every field before all of them together");
  c.on_chosen([&session, given] { session.command = [&session, given] { return run(session, *given); }; });
}

}  // namespace laconic::app
