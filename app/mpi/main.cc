// laconic-mpi-<flavour>: what `laconic stack` and `laconic bench allreduce`, ... become under an MPI launcher. Built
// once per MPI library.
#include <fmt/core.h>
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <string>

#include "bench/collective_report.h"
#include "collective/plain_way.h"
#include "exit_code.h"
#include "report/json.h"
#include "report/streams.h"
#include "stack/run.h"
#include "transport/mpi/mpi.h"

namespace {

using laconic::ConstArray;
using laconic::MutArray;
using laconic::Op;
using laconic::app::Exit;

/// The library's own, for `laconic stack`.
laconic::app::PlainAllreduce plain_allreduce(laconic::Transport& t) {
  return {"MPI_Allreduce, " + t.description(), [&t](ConstArray send, MutArray recv, Op op) {
            const Op done = laconic::plain_op(op, send.dtype, *t.plain());
            t.plain()->allreduce(send, recv, done);
            laconic::finish_plain_average(op, done, recv, t.size());
          }};
}

/// The command line of one rank.
struct Job {
  bool json = false;
  bool quiet = false;
  laconic::app::StackOptions stack;
  std::function<int(laconic::Transport&)> work;  ///< of the chosen command; returns an exit code
};

int bench(const Job& job, const laconic::app::CollectiveOptions& options, laconic::Transport& transport) {
  laconic::Communicator comm(transport);
  const bool speaks = transport.rank() == 0;
  // Under a launcher there is no terminal to draw progress on: what has been measured is said at once.
  const auto print_last = [&](const laconic::app::CollectiveResult& so_far) {
    if (!speaks || job.json || job.quiet) return;
    fmt::print("{}", text_of_last(so_far));
    std::fflush(stdout);
  };
  const auto result = measure_collective(options, comm, print_last);
  if (speaks && job.json) laconic::app::print_json(to_json(result));
  return exit_code_for(result);
}

int run(void* state) {
  const auto transport = laconic::make_mpi_transport(MPI_COMM_WORLD);
  return static_cast<Job*>(state)->work(*transport);
}

void add_commands(laconic::app::CommandSyntax app, Job& job) {
  laconic::app::CommandSyntax stack = app.add_command("stack", "Sum or average images over ranks");
  job.stack.add_to(stack);
  stack.on_chosen([&job] {
    job.work = [&job](laconic::Transport& t) {
      return run_stack_rank(job.stack, job.json, job.quiet, t, plain_allreduce(t));
    };
  });
  laconic::app::CommandSyntax benches =
      app.add_command("bench", "Collectives of plain MPI, published designs, Laconic");
  laconic::app::add_collective_benches(benches, true, [&job](const laconic::app::CollectiveOptions& options) {
    job.work = [&job, options](laconic::Transport& t) { return bench(job, options, t); };
  });
}

/// Whether all ranks fail, and nothing is under way between them: they can end as they should. Ending the program by
/// force loses what rank 0 has just printed.
bool all_fail_in_order(int code) {
  if (code > static_cast<int>(Exit::no_output)) return false;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  int done = 0;
  const double end = MPI_Wtime() + 2;
  while (done == 0 && MPI_Wtime() < end) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  return done != 0;
}

int parse_and_run(int argc, char** argv) {
  laconic::app::CommandLine line("laconic", "Laconic over MPI; started by `laconic stack` or `laconic bench`.", "", "");
  laconic::app::CommandSyntax app = line.syntax();
  Job job;
  app.flag("--json", job.json, "One JSON object on stdout");
  app.flag("-q,--quiet", job.quiet, "No report");
  add_commands(app, job);
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::optional<int> wrong = line.parse(argc, argv, rank == 0);
  // Options that are wrong on one rank end all.
  int code = wrong.value_or(-1);
  MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (code < 0) code = laconic::app::guarded(job.json && rank == 0, run, &job);
  std::fflush(stdout);
  // A rank that failed alone must not leave the others waiting in a collective.
  if (code != 0 && code != static_cast<int>(Exit::bound_violated) && !all_fail_in_order(code))
    MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  laconic::app::open_standard_streams();
  try {
    return parse_and_run(argc, argv);
  } catch (const std::exception& e) {  // only before MPI is initialised: guarded() handles the rest
    std::fputs(e.what(), stderr);
    return static_cast<int>(Exit::internal);
  }
}
