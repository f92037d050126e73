#include "preload/mpi/requests.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "collective/cost.h"
#include "collective/plain_way.h"
#include "collective/routing.h"
#include "core/log.h"
#include "core/room.h"
#include "preload/mpi/datatypes.h"
#include "preload/mpi/entries.h"

namespace laconic::preload {
namespace {

/// Messages to oneself say that a call is done.
MPI_Comm bell = MPI_COMM_NULL;
int bell_tags = 32767;

/// Tags come round again. Those of persistent calls, which keep theirs, do not meet the others'.
int next_bell_tag(bool persistent) {
  static std::atomic<unsigned> used[2];
  const auto half = static_cast<unsigned>(bell_tags) / 2;
  return static_cast<int>(used[persistent].fetch_add(1, std::memory_order_relaxed) % half + (persistent ? half : 0));
}

/// After an error the message is longer than what is received: so the program's MPI_Wait or MPI_Test returns one, too.
void ring(int tag, int code) {
  const char one = 0;
  PMPI_Send(&one, code == MPI_SUCCESS ? 0 : 1, MPI_BYTE, 0, tag, bell);
}

/// Everything that a call in the background needs.
struct Pending {
  Call call;
  PlainCall plain;  ///< keeps what the call refers to
  std::string label;
};

/// Of an irregular call: whether it is left to MPI without asking the others. Counted then.
bool is_passed_over(Runtime& runtime, Line& line, const Call& call) {
  return !runtime.config().check && line.passes_over(call);
}

/// Whether all ranks know, by the calls before it over this line, that this one is MPI's own; counted then. Asked again
/// after a no it says so again.
bool is_known_plain(Runtime& runtime, Line& line, const Call& call, const std::string& label) {
  if (call.irregular) return is_passed_over(runtime, line, call);
  Communicator& comm = line.comm();
  const std::optional<Shape> shape = shape_of(call, comm.rank(), comm.size());
  if (!shape) return true;
  if (runtime.depends_on_label(call.collective, *shape, line.name(), comm.size())) return false;  // ranks may differ
  const Rule* const rule = runtime.rule_for(call.collective, *shape, line.name(), comm.size(), label);
  if (rule == nullptr) return true;
  const bool uneven = call.collective == Collective::allgather && call.recv.counts.differ();
  const CallShape kind{call.collective, shape->dtype, shape->op, shape->bytes, uneven};
  Shortcuts::Entry* const known = open_shortcut(kind, comm, options_under(*rule, runtime.config()));
  if (known == nullptr) return false;
  close_shortcut(*known, kind, nullptr, comm);
  tally_of_process().add(call.collective, shape->bytes, comm.last(), 0);
  return true;
}

/// On a line's thread. What is_known_plain() must be MPI's non-blocking call here too, if the program began it with
/// one: on other ranks the program's thread may have made it.
int perform_later(Runtime& runtime, Line& line, const Pending& pending) noexcept {
  try {
    if (is_known_plain(runtime, line, pending.call, pending.label)) return pending.plain(line.mpi());
  } catch (const std::exception& e) {
    return runtime.raise(line.program(), e.what());
  }
  return perform(runtime, line, pending.call, pending.label, pending.plain);
}

int alias_error(const Call& call, const Group& group) { return alias_error(call, group.rank(), group.size()); }

bool is_refused(const Call& call, const Group& group) {
  return call.irregular && is_refused(call, group.rank(), group.size());
}

int to_the_end(const PlainStart& start, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = start(comm, &request);
  return code == MPI_SUCCESS ? PMPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

/// Why `work` could not be done; empty: it was. The program's error handlers are called when that is over: what they
/// throw is the program's, and they may never return.
template <typename Work>
std::string failure_of(Work&& work) {
  error_of_meeting() = MPI_SUCCESS;
  try {
    work();
    return {};
  } catch (const std::exception& e) {
    return *e.what() != '\0' ? e.what() : "an error without a text";
  }
}

/// Makes one call over a line, and counts it, unless it is MPI's own: false.
bool serve(Runtime& runtime, Line& line, const Call& call, const std::string& label) {
  const Unheard errors;
  if (call.irregular && is_passed_over(runtime, line, call)) return false;
  Communicator& comm = line.comm();
  const std::optional<Shape> shape = call.irregular ? line.agree(call) : shape_of(call, comm.rank(), comm.size());
  if (!shape && call.irregular) tally_of_process().pass("irregular calls of nothing, or of types that are not served");
  const Rule* const rule = shape ? runtime.common_rule_for(call.collective, *shape, line, label) : nullptr;
  if (rule == nullptr) {
    if (shape && call.irregular) line.learned_nothing(call);
    return false;
  }
  const Options options = options_under(*rule, runtime.config());
  comm.in_advance() = line.in_advance(call, *shape);
  const Report report = make(call, *shape, comm, options);
  // Where labels matter the next one may be under another rule.
  if (call.irregular && !runtime.depends_on_label(call.collective, *shape, line.name(), comm.size()))
    line.learned(call, *comm.in_advance());
  tally_of_process().add(call.collective, shape->bytes, report,
                         plain_estimate(call.collective, shape->bytes, report, comm));
  return true;
}

/// The request that the program has for a call: a receive.
struct Bell {
  explicit Bell(bool persistent) : tag(next_bell_tag(persistent)) {}
  MPI_Request request = MPI_REQUEST_NULL;
  int tag;
};

std::mutex waiting_mutex;                 // NOLINT(cert-err58-cpp)
std::unordered_set<MPI_Request> waiting;  // NOLINT(cert-err58-cpp): calls that are not done

void expect(const Bell& mine) {
  const std::lock_guard lock(waiting_mutex);
  waiting.insert(mine.request);
}

/// Over `line`, for `of`.
void run_in_background(Runtime& runtime, const Pending& pending, const BackgroundLine& of, Line* line,
                       const std::string& why_none, const Bell& mine) {
  error_of_meeting() = MPI_SUCCESS;  // nobody has heard of what happened to the line
  const int code = line == nullptr ? runtime.raise(of.program(), why_none) : perform_later(runtime, *line, pending);
  const std::lock_guard lock(waiting_mutex);  // what is not waiting can no longer be cancelled
  waiting.erase(mine.request);
  ring(mine.tag, code);
}

struct Persistent {
  Persistent(Pending p, Bell b, const std::shared_ptr<OwnComm>& own)
      : pending(std::move(p)), bell(b), line(pending.call.comm, own) {}
  Pending pending;
  Bell bell;
  BackgroundLine line;
};

std::mutex persistent_mutex;  // NOLINT(cert-err58-cpp)
/// In the order in which they were made.
std::vector<std::pair<MPI_Request, std::unique_ptr<Persistent>>> persistents;  // NOLINT(cert-err58-cpp)
std::atomic<int> persistent_count{0};

auto find_persistent(MPI_Request request) {
  return std::find_if(persistents.begin(), persistents.end(), [&](const auto& p) { return p.first == request; });
}

}  // namespace

int perform(Runtime& runtime, Line& line, const Call& call, const std::string& label, const PlainCall& plain) {
  bool served = false;
  const std::string failure = failure_of([&] { with_room([&] { served = serve(runtime, line, call, label); }); });
  if (!failure.empty()) return runtime.raise(line.program(), failure);
  if (served) return MPI_SUCCESS;
  const auto by_mpi = [&] { return plain(line.mpi()); };
  return call.irregular ? line.timed(call, by_mpi) : by_mpi();
}

int perform(Runtime& runtime, Group& group, const Call& call, const PlainCall& plain) {
  Line* line = nullptr;
  int aliased = MPI_SUCCESS;
  bool refused = false;
  std::string label;
  const std::string failure = failure_of([&] {
    aliased = alias_error(call, group);
    refused = is_refused(call, group);
    if (refused || aliased != MPI_SUCCESS) return;
    group.count_call();
    with_room([&] { line = group.foreground(); });
    if (line == nullptr) return;
    line->comm().set_turn(group.calls());
    label = runtime.label_of(call, group);
  });
  if (!failure.empty()) return runtime.raise(call.comm, failure);
  if (aliased != MPI_SUCCESS) return Runtime::raise(call.comm, aliased);
  if (line != nullptr) return perform(runtime, *line, call, label, plain);
  if (!refused) tally_of_process().pass(group.why_none());
  return plain(call.comm);
}

int begin(Runtime& runtime, Group& group, Call call, const PlainStart& now, const KeepStart& keep,
          MPI_Request* request) {
  if (const int aliased = alias_error(call, group); aliased != MPI_SUCCESS) return Runtime::raise(call.comm, aliased);
  if (is_refused(call, group)) return now(call.comm, request);
  group.count_call();
  MPI_Comm plainly_over = MPI_COMM_NULL;
  int code = MPI_SUCCESS;
  const std::string failure = failure_of([&] {
    BackgroundLine& line = group.background();
    Line* const idle = line.if_idle();
    const std::string label = runtime.label_of(call, group);
    if (idle != nullptr && is_known_plain(runtime, *idle, call, label)) {
      plainly_over = idle->mpi();
      return;
    }
    PlainCall plain = [start = keep(call)](MPI_Comm comm) { return to_the_end(start, comm); };
    const auto pending = std::make_shared<Pending>(Pending{call, std::move(plain), label});
    Bell mine(false);
    code = PMPI_Irecv(nullptr, 0, MPI_BYTE, 0, mine.tag, bell, &mine.request);
    if (code != MPI_SUCCESS) return;
    *request = mine.request;
    expect(mine);
    line.submit([&runtime, &line, pending, mine](Line* on, const std::string& why_none) {
      run_in_background(runtime, *pending, line, on, why_none, mine);
    });
  });
  if (!failure.empty()) return runtime.raise(call.comm, failure);
  return plainly_over == MPI_COMM_NULL ? code : now(plainly_over, request);
}

int make_persistent(Runtime& runtime, Group& group, Call call, const std::function<int()>& now, const KeepCall& keep,
                    MPI_Request* request) {
  if (const int aliased = alias_error(call, group); aliased != MPI_SUCCESS) return Runtime::raise(call.comm, aliased);
  if (is_refused(call, group)) return now();
  const Company company = group.company();
  if (company.own == nullptr) {
    if (!call.irregular) tally_of_process().pass(company.why_none);
    return now();
  }
  int code = MPI_SUCCESS;
  const std::string failure = failure_of([&] {
    Bell mine(true);
    code = PMPI_Recv_init(nullptr, 0, MPI_BYTE, 0, mine.tag, bell, &mine.request);
    if (code != MPI_SUCCESS) return;
    PlainCall plain = keep(call);
    auto made =
        std::make_unique<Persistent>(Pending{call, std::move(plain), runtime.label_of(call, group)}, mine, company.own);
    *request = mine.request;
    const std::lock_guard lock(persistent_mutex);
    persistents.emplace_back(*request, std::move(made));
    ++persistent_count;
  });
  return failure.empty() ? code : runtime.raise(call.comm, failure);
}

bool hears_of_requests() {
  return comes_here_first("MPI_Start") && comes_here_first("MPI_Startall") && comes_here_first("MPI_Request_free");
}

bool has_persistent() { return persistent_count != 0; }

int start_persistent(MPI_Request* request, int (*start)(MPI_Request*)) {
  Persistent* ours = nullptr;
  if (request != nullptr && persistent_count != 0 && Runtime::get() != nullptr) {
    const std::lock_guard lock(persistent_mutex);
    const auto at = find_persistent(*request);
    if (at != persistents.end()) ours = at->second.get();
  }
  const int code = start(request);
  if (code != MPI_SUCCESS || ours == nullptr) return code;
  expect(ours->bell);
  ours->line.submit([ours](Line* on, const std::string& why_none) {
    run_in_background(*Runtime::get(), ours->pending, ours->line, on, why_none, ours->bell);
  });
  return MPI_SUCCESS;
}

void forget_persistent(MPI_Request request) {
  if (persistent_count == 0) return;
  std::unique_ptr<Persistent> ours;  // ends without the lock: it waits
  const std::lock_guard lock(persistent_mutex);
  const auto at = find_persistent(request);
  if (at == persistents.end()) return;
  ours = std::move(at->second);
  persistents.erase(at);
  --persistent_count;
}

void renew_persistent_errors(MPI_Comm comm) {
  if (persistent_count == 0) return;
  const std::lock_guard lock(persistent_mutex);
  for (const auto& [request, ours] : persistents) {
    if (ours->line.program() == comm) ours->line.renew_errors();
  }
}

void revoke_persistent(MPI_Comm comm, int (*mpi)(MPI_Comm)) {
  if (persistent_count == 0) return;
  const std::lock_guard lock(persistent_mutex);
  for (const auto& [request, ours] : persistents) {
    if (ours->line.program() == comm) ours->line.revoke(mpi);
  }
}

void outlive_communicator(MPI_Comm comm) {
  if (persistent_count == 0) return;
  const std::lock_guard lock(persistent_mutex);
  for (const auto& [request, ours] : persistents) {
    if (ours->line.program() == comm) ours->line.outlive_program();
  }
}

void retire_persistent() {
  for (const auto& [request, ours] : persistents) ours->line.retire();  // no lock: they may need it
}

int cancel(MPI_Request* request, int (*mpi)(MPI_Request*)) {
  MPI_Request none = MPI_REQUEST_NULL;
  const std::lock_guard lock(waiting_mutex);
  return mpi(waiting.count(*request) != 0 ? &none : request);
}

void prepare_requests() {
  PMPI_Comm_dup(MPI_COMM_SELF, &bell);
  PMPI_Comm_set_errhandler(bell, MPI_ERRORS_RETURN);  // the handler of the call's communicator has been called before
  int* most = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(bell, MPI_TAG_UB, static_cast<void*>(&most), &found);
  if (found != 0) bell_tags = std::max(2, *most);
}

void release_requests() {
  while (!persistents.empty()) persistents.erase(persistents.begin());
  persistent_count = 0;
  PMPI_Comm_free(&bell);
}

}  // namespace laconic::preload
