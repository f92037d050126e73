// laconic-mpi-<flavour>: what `laconic stack` and `laconic bench allreduce`, ... become under an MPI launcher. Built
// once per MPI library.
#include <fmt/core.h>
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

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
  std::string failure;                           ///< why this rank fails, if it is one that knows
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

/// What ranks that fail tell each other; those that do not fail are waiting in a collective.
class Failing {
 public:
  /// Takes two seconds at most. `speaks`: this rank can say why it fails.
  explicit Failing(bool speaks) : speaks_(speaks ? 1 : 0) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    others_.resize(static_cast<std::size_t>(size_), 0);
    requests_.resize(2 * others_.size(), MPI_REQUEST_NULL);
    for (int r = 0; r < size_; ++r)
      if (r != rank_) exchange_with(r);
    wait();
  }

  [[nodiscard]] bool all() const { return all_; }
  /// Whether this rank is the first that can say why.
  [[nodiscard]] bool is_speaker() const {
    for (std::size_t r = 0; r < static_cast<std::size_t>(rank_); ++r)
      if (requests_[r] == MPI_REQUEST_NULL && others_[r] != 0) return false;
    return speaks_ != 0;
  }

 private:
  void exchange_with(int r) {
    constexpr int tag = 0;
    const auto ur = static_cast<std::size_t>(r);
    MPI_Irecv(&others_[ur], 1, MPI_INT, r, tag, MPI_COMM_WORLD, &requests_[ur]);
    MPI_Isend(&speaks_, 1, MPI_INT, r, tag, MPI_COMM_WORLD, &requests_[others_.size() + ur]);
  }

  void wait() {
    std::vector<int> which(requests_.size());
    int done = 0;
    const double end = MPI_Wtime() + 2;
    do {
      if (MPI_Testsome(2 * size_, requests_.data(), &done, which.data(), MPI_STATUSES_IGNORE) != MPI_SUCCESS) return;
    } while (done != MPI_UNDEFINED && MPI_Wtime() < end);
    all_ = done == MPI_UNDEFINED;
  }

  int speaks_;
  int rank_ = 0;
  int size_ = 0;
  bool all_ = false;
  std::vector<int> others_;            ///< by rank: whether it can say why
  std::vector<MPI_Request> requests_;  ///< what each has told, what each was told
};

/// Has one rank say why, and ends the program by force, unless all ranks fail and nothing is under way between them:
/// that would lose what has just been printed.
void fail(const Job& job, bool json, int code) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // a rank that is gone must not end this one before
  const Failing failing(json && !job.failure.empty());
  if (failing.is_speaker()) {
    laconic::app::print_failure(code, job.failure);
    std::fflush(stdout);
  }
  if (failing.all() && code <= static_cast<int>(Exit::no_output)) {
    MPI_Barrier(MPI_COMM_WORLD);
    return;
  }
  // The launcher needs time to forward it; and another rank to notice that it is the one that speaks.
  if (json) std::this_thread::sleep_for(std::chrono::milliseconds(failing.is_speaker() ? 500 : 4000));
  MPI_Abort(MPI_COMM_WORLD, code);
}

int parse_and_run(int argc, char** argv) {
  laconic::app::CommandLine line("laconic", "Laconic over MPI; started by `laconic stack` or `laconic bench`.", "", "");
  laconic::app::CommandSyntax app = line.syntax();
  Job job;
  app.flag("--json", job.json, "One JSON object on stdout");
  app.flag("-q,--quiet", job.quiet, "No report");
  add_commands(app, job);
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);  // codec threads, which never call MPI
  const std::optional<int> wrong = line.parse(argc, argv, false, &job.failure);
  // Options that are wrong on one rank end all.
  int code = wrong.value_or(-1);
  MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (code < 0) code = laconic::app::guarded(false, run, &job, &job.failure);
  std::fflush(stdout);
  if (code != 0 && code != static_cast<int>(Exit::bound_violated))
    fail(job, laconic::app::asks_for_json(argc, argv), code);
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
