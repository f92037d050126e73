// laconic-stack-<flavour>: what `laconic stack` becomes under an MPI launcher. Built once per MPI library.
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <string>

#include "exit_code.h"
#include "stack/run.h"
#include "transport/mpi/mpi.h"

namespace {

using laconic::ConstArray;
using laconic::DType;
using laconic::MutArray;
using laconic::Op;
using laconic::app::Exit;

/// "Open MPI v4.1.4": the first words of what the library says of itself.
std::string library_name() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  if (text.rfind("MPICH Version:", 0) == 0) {
    const std::size_t digits = text.find_first_of("0123456789");
    return "MPICH " + text.substr(digits, text.find_first_of(" \t\n", digits) - digits);
  }
  return text.substr(0, text.find_first_of(",\n"));
}

void mpi_allreduce(ConstArray send, MutArray recv, Op op) {
  const MPI_Datatype type = send.dtype == DType::f64 ? MPI_DOUBLE : MPI_FLOAT;
  if (MPI_Allreduce(send.data, recv.data, static_cast<int>(send.count), type, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS)
    throw laconic::app::Failure(Exit::communication, "MPI_Allreduce failed");
  if (op != Op::average) return;
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (send.dtype == DType::f64) {
    for (std::size_t i = 0; i < send.count; ++i) static_cast<double*>(recv.data)[i] /= ranks;
  } else {
    for (std::size_t i = 0; i < send.count; ++i) static_cast<float*>(recv.data)[i] /= static_cast<float>(ranks);
  }
}

struct Job {
  laconic::app::StackOptions options;
  bool json = false;
  bool quiet = false;
};

int run(void* state) {
  const Job& job = *static_cast<Job*>(state);
  const auto transport = laconic::make_mpi_transport(MPI_COMM_WORLD);
  return run_stack_rank(job.options, job.json, job.quiet, *transport,
                        {"MPI_Allreduce, " + library_name(), mpi_allreduce});
}

int parse_and_run(int argc, char** argv) {
  CLI::App app{"Image stacking over MPI; normally started by `laconic stack`."};
  Job job;
  app.add_flag("--json", job.json, "One JSON object on stdout");
  app.add_flag("-q,--quiet", job.quiet, "No report");
  CLI::App* stack = app.add_subcommand("stack", "Sum or average images over ranks");
  stack->fallthrough();
  app.require_subcommand(1);
  job.options.add_to(*stack);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(Exit::usage);
  }
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int code = laconic::app::guarded(job.json && rank == 0, run, &job);
  // A rank that failed alone must not leave the others waiting in a collective.
  if (code != 0 && code != static_cast<int>(Exit::bound_violated)) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const std::exception& e) {  // only before MPI is initialised: guarded() handles the rest
    std::fputs(e.what(), stderr);
    return static_cast<int>(Exit::internal);
  }
}
