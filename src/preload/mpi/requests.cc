#include "preload/mpi/requests.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "collective/cost.h"
#include "collective/plain_way.h"
#include "collective/routing.h"
#include "preload/mpi/datatypes.h"

namespace laconic::preload {
namespace {

/// Messages to oneself say that a call is done.
MPI_Comm bell = MPI_COMM_NULL;
int bell_tags = 32767;

int next_bell_tag() {
  static std::atomic<unsigned> used{0};
  return static_cast<int>(used.fetch_add(1, std::memory_order_relaxed) % static_cast<unsigned>(bell_tags));
}

/// After an error the message is longer than what is received: so the program's MPI_Wait or MPI_Test returns one, too.
void ring(int tag, int code) {
  const char one = 0;
  PMPI_Send(&one, code == MPI_SUCCESS ? 0 : 1, MPI_BYTE, 0, tag, bell);
}

/// Derived datatypes of a call, kept although the program may free its own before the call is done.
class KeptTypes {
 public:
  explicit KeptTypes(Call& call) {
    keep(call.send.type, 0);
    keep(call.recv.type, 1);
  }
  KeptTypes(const KeptTypes&) = delete;
  KeptTypes& operator=(const KeptTypes&) = delete;
  ~KeptTypes() {
    for (MPI_Datatype& t : kept_) {
      if (t != MPI_DATATYPE_NULL) PMPI_Type_free(&t);
    }
  }

 private:
  void keep(MPI_Datatype& type, std::size_t i) {
    if (type == MPI_DATATYPE_NULL || info_of(type).predefined || !info_of(type).base) return;
    PMPI_Type_dup(type, &kept_[i]);
    type = kept_[i];
  }
  MPI_Datatype kept_[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
};

/// Its counts and displacements, which the program may take away as soon as its call returns.
class KeptCounts {
 public:
  KeptCounts(Call& call, const Group& group) {
    const std::vector<const Side*> meant = sides_of(call, group.rank());
    std::size_t i = 0;
    for (Side* side : {&call.send, &call.recv}) {
      if (std::find(meant.begin(), meant.end(), side) == meant.end()) continue;
      side->counts = side->counts.kept_in(copies_[i++], group.size());
      side->displacements = side->displacements.kept_in(copies_[i++], group.size());
    }
  }
  KeptCounts(const KeptCounts&) = delete;
  KeptCounts& operator=(const KeptCounts&) = delete;

 private:
  std::vector<std::int64_t> copies_[4];
};

/// Everything that a call in the background needs.
struct Pending {
  Pending(Call c, const Group& group, PlainCall p)
      : call(c), types(call), counts(call, group), plain(std::move(p)), label(Runtime::get()->label_of(call)) {}
  Call call;
  KeptTypes types;
  KeptCounts counts;
  PlainCall plain;
  std::string label;
};

/// Whether all ranks know, by the calls before it over this line, that this one is MPI's own; counted then. Asked again
/// after a no it says so again.
bool is_known_plain(Runtime& runtime, Line& line, const Call& call, const std::string& label) {
  if (call.irregular) return line.passes_over(call);
  Communicator& comm = line.comm();
  const std::optional<Shape> shape = shape_of(call, comm.rank(), comm.size());
  const Rule* const rule = shape ? runtime.rule_for(call.collective, *shape, line.name(), comm.size(), label) : nullptr;
  if (rule == nullptr) return true;
  const CallShape kind{call.collective, shape->dtype, shape->op, shape->bytes};
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
    return runtime.raise(pending.call.comm, e.what());
  }
  return perform(runtime, line, pending.call, pending.label, pending.plain);
}

int to_the_end(const PlainStart& start, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = start(comm, &request);
  return code == MPI_SUCCESS ? PMPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

void run_in_background(Runtime& runtime, const Pending& pending, Line* line, const std::string& why_none, int tag) {
  ring(tag, line == nullptr ? runtime.raise(pending.call.comm, why_none) : perform_later(runtime, *line, pending));
}

struct Persistent {
  Persistent(Call call, const Group& group, PlainCall plain, int t)
      : pending(call, group, std::move(plain)), tag(t), line(call.comm) {}
  Pending pending;
  int tag;
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

int perform(Runtime& runtime, Line& line, const Call& call, const std::string& label, const PlainCall& plain) noexcept {
  try {
    if (call.irregular && line.passes_over(call)) return plain(line.mpi());
    Communicator& comm = line.comm();
    const std::optional<Shape> shape = call.irregular ? line.agree(call) : shape_of(call, comm.rank(), comm.size());
    const Rule* const rule =
        shape ? runtime.rule_for(call.collective, *shape, line.name(), comm.size(), label) : nullptr;
    if (rule == nullptr) return plain(line.mpi());
    const Options options = options_under(*rule, runtime.config());
    const Report report = make(call, *shape, comm, options);
    tally_of_process().add(call.collective, shape->bytes, report,
                           plain_estimate(call.collective, shape->bytes, report, comm));
    return MPI_SUCCESS;
  } catch (const std::exception& e) {
    return runtime.raise(call.comm, e.what());
  }
}

int perform(Runtime& runtime, Group& group, const Call& call, const PlainCall& plain) noexcept {
  try {
    if (is_aliased(call, group.rank())) return Runtime::raise(call.comm, MPI_ERR_BUFFER);
    return perform(runtime, group.foreground(), call, runtime.label_of(call), plain);
  } catch (const std::exception& e) {
    return runtime.raise(call.comm, e.what());
  }
}

int begin(Runtime& runtime, Group& group, Call call, PlainStart plain, MPI_Request* request) noexcept {
  try {
    if (is_aliased(call, group.rank())) return Runtime::raise(call.comm, MPI_ERR_BUFFER);
    BackgroundLine& line = group.background();
    Line* const idle = line.if_idle();
    if (idle != nullptr && is_known_plain(runtime, *idle, call, runtime.label_of(call)))
      return plain(idle->mpi(), request);
    const auto pending = std::make_shared<Pending>(
        call, group, [start = std::move(plain)](MPI_Comm comm) { return to_the_end(start, comm); });
    const int tag = next_bell_tag();
    const int code = PMPI_Irecv(nullptr, 0, MPI_BYTE, 0, tag, bell, request);
    if (code != MPI_SUCCESS) return code;
    line.submit([&runtime, pending, tag](Line* on, const std::string& why_none) {
      run_in_background(runtime, *pending, on, why_none, tag);
    });
    return MPI_SUCCESS;
  } catch (const std::exception& e) {
    return runtime.raise(call.comm, e.what());
  }
}

int make_persistent(Runtime& runtime, const Group& group, Call call, PlainCall plain, MPI_Request* request) noexcept {
  try {
    if (is_aliased(call, group.rank())) return Runtime::raise(call.comm, MPI_ERR_BUFFER);
    const int tag = next_bell_tag();
    auto made = std::make_unique<Persistent>(call, group, std::move(plain), tag);
    const int code = PMPI_Recv_init(nullptr, 0, MPI_BYTE, 0, tag, bell, request);
    if (code != MPI_SUCCESS) return code;
    const std::lock_guard lock(persistent_mutex);
    persistents.emplace_back(*request, std::move(made));
    ++persistent_count;
    return MPI_SUCCESS;
  } catch (const std::exception& e) {
    return runtime.raise(call.comm, e.what());
  }
}

bool has_persistent() { return persistent_count != 0; }

int start_persistent(MPI_Request* request, int (*start)(MPI_Request*)) {
  Persistent* ours = nullptr;
  if (persistent_count != 0 && Runtime::get() != nullptr) {
    const std::lock_guard lock(persistent_mutex);
    const auto at = find_persistent(*request);
    if (at != persistents.end()) ours = at->second.get();
  }
  const int code = start(request);
  if (code != MPI_SUCCESS || ours == nullptr) return code;
  ours->line.submit([ours](Line* on, const std::string& why_none) {
    run_in_background(*Runtime::get(), ours->pending, on, why_none, ours->tag);
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

void prepare_requests() {
  PMPI_Comm_dup(MPI_COMM_SELF, &bell);
  PMPI_Comm_set_errhandler(bell, MPI_ERRORS_RETURN);  // the handler of the call's communicator has been called before
  int* most = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(bell, MPI_TAG_UB, static_cast<void*>(&most), &found);
  if (found != 0) bell_tags = std::max(1, *most);
}

void release_requests() {
  while (!persistents.empty()) persistents.erase(persistents.begin());
  persistent_count = 0;
  PMPI_Comm_free(&bell);
}

}  // namespace laconic::preload
