#include "stack/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "exit_code.h"
#include "report/json.h"
#include "report/progress.h"
#include "report/streams.h"
#include "stack/pictures.h"
#include "stack/report.h"

namespace laconic::app {
namespace {

/// Rank 0's verdict, for everyone.
int agree(Transport& t, int mine) { return allgather_value(t, mine)[0]; }

StackResult measure_with_bar(const StackOptions& options, bool show, const ImageSet& set, Communicator& comm,
                             const PlainAllreduce& plain) {
  Progress progress("stacking", 1 + static_cast<std::uint64_t>(std::max(options.repetitions, 0)), show);
  return measure_stack(options, set, comm, plain, [&] { progress.advance(1); });
}

/// What rank 0 has to say. Returns the exit code.
int report_stack(const StackOptions& options, bool json, bool quiet, const ImageSet& set, const StackResult& result) {
  std::vector<std::string> pictures;
  if (!options.out.empty()) pictures = write_pictures(result, set, options.out);
  if (json) {
    nlohmann::json j = to_json(result);
    j["pictures"] = pictures;
    print_json(j);
  } else if (!quiet) {
    fmt::print("{}", to_text(result));
    if (!pictures.empty()) fmt::print("pictures: {}\n", printable(pictures.back()));
  }
  if (std::fflush(stdout) != 0)
    throw Failure(Exit::no_output, fmt::format("stdout cannot be written: {}", std::strerror(errno)));
  return exit_code_for(result);
}

}  // namespace

int run_stack_rank(const StackOptions& options, bool json, bool quiet, Transport& transport,
                   const PlainAllreduce& plain) {
  const ImageSet set = load_images(options);
  Communicator comm(transport);
  const StackResult result = measure_with_bar(options, transport.rank() == 0 && !json && !quiet, set, comm, plain);
  if (transport.rank() != 0) return agree(transport, 0);
  int code = 0;
  std::exception_ptr failure;  // of a picture, or memory: the others are waiting
  try {
    code = report_stack(options, json, quiet, set, result);
  } catch (const Failure& e) {
    code = static_cast<int>(e.code());
    failure = std::current_exception();
  } catch (const Error& e) {
    code = static_cast<int>(exit_for(e.code()));
    failure = std::current_exception();
  } catch (...) {  // of fmt where stdout cannot be written
    code = static_cast<int>(std::ferror(stdout) != 0 ? Exit::no_output : Exit::internal);
    failure = std::current_exception();
  }
  code = agree(transport, code);
  if (failure) std::rethrow_exception(failure);
  return code;
}

}  // namespace laconic::app
