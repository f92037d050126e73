#include "preload/mpi/runtime.h"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <exception>
#include <iterator>
#include <new>

#include "collective/metadata.h"
#include "core/error.h"
#include "core/log.h"
#include "core/of_thread.h"
#include "preload/mpi/caller.h"
#include "preload/mpi/creations.h"
#include "preload/mpi/datatypes.h"
#include "preload/mpi/next.h"
#include "preload/mpi/presence.h"
#include "preload/mpi/process.h"
#include "preload/mpi/requests.h"
#include "preload/mpi/self_attributes.h"
#include "preload/mpi/ulfm.h"
#include "preload/mpi/uncounted.h"
#include "preload/serving.h"

namespace laconic::preload {
namespace {

constexpr double longest_presence_wait = 10;

// What is kept for communicators that are not served.
Group not_served(MPI_COMM_NULL, 0, 1);
Group left_alone_with_all(MPI_COMM_NULL, 0, 1);  ///< nor is what is made from them

std::mutex early_mutex;         // NOLINT(cert-err58-cpp)
std::vector<MPI_Comm> early{};  ///< communicators of sessions from before MPI_Init

bool is_early(MPI_Comm comm) {
  const std::lock_guard lock(early_mutex);
  return std::find(early.begin(), early.end(), comm) != early.end();
}

std::vector<MPI_Comm>& being_freed() {
  thread_local OfThread<std::vector<MPI_Comm>> comms;
  return comms.get();
}

/// Of a mistake, which may have its place in a text on lines of its own.
std::string left_to_mpi(std::string mistake) {
  return mistake.insert(std::min(mistake.find('\n'), mistake.size()), "; everything is left to MPI");
}

/// Eight digits that are different where texts are.
std::string fingerprint(const std::string& text) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(digest({text.begin(), text.end()})));
  return digits;
}

int world_rank() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int world_size() {
  int size = 1;
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// To who asked for a report.
void say_alone() {
  try {
    if (!Config::from_environment().report.empty()) warn("one rank: everything is left to MPI, and there is no report");
  } catch (const Error& e) {
    warn(e.what());
  }
}

bool was_spawned() {
  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_get_parent(&parent);
  return parent != MPI_COMM_NULL;
}

/// Whether its ranks are threads too (MPICH's MPIX_Threadcomm_init): there are more than its group's. (Of a grid that
/// leaves ranks out MPICH's group has those, too.)
bool is_of_threads(MPI_Comm comm) {
  MPI_Group its = MPI_GROUP_NULL;
  int ranks = 0, processes = 0;
  PMPI_Comm_size(comm, &ranks);
  PMPI_Comm_group(comm, &its);
  PMPI_Group_size(its, &processes);
  PMPI_Group_free(&its);
  return ranks > processes;
}

/// Whether it is tied to a stream of MPICH's (MPIX_Stream_comm_create), over which MPICH 5's own calls that do not
/// block hang.
bool is_of_a_stream([[maybe_unused]] MPI_Comm comm) {
#ifdef MPIX_STREAM_NULL
  static const auto stream_of = next<int (*)(MPI_Comm, int, MPIX_Stream*)>("MPIX_Comm_get_stream");
  MPIX_Stream stream = MPIX_STREAM_NULL;
  return stream_of != nullptr && stream_of(comm, 0, &stream) == MPI_SUCCESS && stream != MPIX_STREAM_NULL;
#else
  return false;
#endif
}

Situation situation_of(Collective collective, const Shape& shape, std::string_view communicator, int ranks,
                       std::string_view label) {
  return {.collective = collective,
          .dtype = shape.dtype,
          .op = shape.op,
          .bytes = shape.bytes,
          .communicator = communicator,
          .ranks = ranks,
          .label = label};
}

}  // namespace

Runtime* Runtime::active_ = nullptr;

Runtime::Runtime(const Config& config)
    : config_(config), policy_(policy_of(config)), least_bytes_(policy_.least_bytes()) {
  for (std::size_t c = 0; c < serves_some_.size(); ++c)
    serves_some_[c] = policy_.serves_some(static_cast<Collective>(c));
}

/// All that ranks must have in common, what is short first, as others see the beginning only.
std::string Runtime::wishes() const {
  std::string text = std::string("v") + LACONIC_VERSION + " mode " + std::string(name_of(config_.mode));
  if (config_.verify) text += " verify";
  if (config_.check) text += " check";
  if (!config_.report.empty()) text += " report";
  text += " bound " + (config_.bound ? config_.bound->to_string() : "none");
  if (!config_.policy.empty())
    text += " policy " + fingerprint(policy_.text) + " " + config_.policy.substr(config_.policy.rfind('/') + 1);
  return fingerprint(text) + " " + text;
}

void Runtime::start() noexcept {
  try {
    if (active_ != nullptr || was_spawned()) return;
    if (world_size() < 2) return say_alone();
    std::unique_ptr<Runtime> made;
    std::string wishes, mistake;
    try {
      const Config config = Config::from_environment();
      config.apply_log();
      set_log_name("rank " + std::to_string(world_rank()));
      if (sends_in_parts())
        throw Error(Code::unsupported,
                    "a program that sends in parts (MPI_Psend_init) cannot be served beside Open MPI 5");
      made.reset(new Runtime(config));
      wishes = made->wishes();
    } catch (const Error& e) {
      mistake = e.what();
      wishes = "a mistake: " + mistake.substr(0, mistake.find('\n'));
    }
    const double given = made ? made->config_.timeout_seconds.value_or(0) : 0;
    const double timeout = given > 0 ? std::min(given, longest_presence_wait) : longest_presence_wait;
    const Presence presence = agree_on_presence(wishes, timeout);
    if (!presence.agreed) {
      if (!presence.why_not.empty()) warn(left_to_mpi(presence.why_not));
      return;
    }
    if (!made) {
      if (world_rank() == 0) warn(left_to_mpi(mistake));
      return;
    }
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    int threads = level >= MPI_THREAD_MULTIPLE && made->config_.nonblocking != Switch::off ? 1 : 0;
    uncounted_allreduce(threads, MPI_MIN, MPI_COMM_WORLD);
    made->has_threads_ = threads != 0;
    int starts = hears_of_requests() ? 1 : 0;
    uncounted_allreduce(starts, MPI_MIN, MPI_COMM_WORLD);
    made->has_starts_ = starts != 0;
    PMPI_Comm_create_keyval(hand_on, has_been_freed, &made->keyval_, nullptr);
    int last = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, is_over, &last, nullptr);
    made->stops_by_itself_ = PMPI_Comm_set_attr(MPI_COMM_SELF, last, nullptr) == MPI_SUCCESS;
    PMPI_Comm_free_keyval(&last);  // the attribute stays
    if (!made->config_.report.empty()) made->end_ = std::make_unique<OwnComm>(MPI_COMM_WORLD);
    prepare_datatypes();
    prepare_requests();
    prepare_groups();
    if (made->has_threads_)
      note_attributes_of_self([] {
        if (active_ != nullptr) active_->come_to_one_thread();
      });
    active_ = made.release();
    active_->accompany(MPI_COMM_WORLD, MPI_COMM_WORLD);
  } catch (const std::exception& e) {
    warn(e.what());
  }
}

int Runtime::is_over(MPI_Comm, int, void*, void*) {
  stop();
  return MPI_SUCCESS;
}

void Runtime::before_finalize() {
  if (active_ == nullptr) return;
  if (!active_->stops_by_itself_) return stop();
  if (has_locks_to_the_end || !active_->has_threads_) return;
  delete_attributes_of_self();
  active_->come_to_one_thread();
}

/// Ends the threads of calls in the background, which waits for what is under way. What the program still does in
/// functions that Laconic has not heard of, calls that do not block are MPI's own, and persistent ones MPI_Start's.
void Runtime::come_to_one_thread() {
  std::vector<Group*> all;
  for (const auto& [comm, group] : groups_) all.push_back(group.get());
  for (const auto& group : deserted_) all.push_back(group.get());
  for (Group* const group : all) group->retire();
  retire_persistent();
  has_threads_ = false;
}

void Runtime::stop() noexcept {
  if (active_ == nullptr) return;
  const std::unique_ptr<Runtime> ending(active_);
  try {
    ending->deserted_.clear();
    auto groups = std::exchange(ending->groups_, {});
    while (!groups.empty()) groups.erase(groups.begin());
    release_requests();
    release_groups();
    ending->report();
    ending->end_.reset();
    release_datatypes();
    PMPI_Comm_free_keyval(&ending->keyval_);
  } catch (const std::exception& e) {
    warn(e.what());
  }
  active_ = nullptr;
}

void Runtime::report() {
  if (config_.report.empty()) return;
  const std::vector<std::uint8_t> mine = tally_of_process().pack();
  int bytes = static_cast<int>(mine.size());
  std::vector<int> sizes(static_cast<std::size_t>(world_size())), places(sizes.size());
  if (PMPI_Gather(&bytes, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, end_->get()) != MPI_SUCCESS) return report_nothing();
  int total = 0;
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    places[r] = total;
    total += sizes[r];
  }
  std::vector<std::uint8_t> all(static_cast<std::size_t>(world_rank() == 0 ? total : 0));
  if (PMPI_Gatherv(mine.data(), bytes, MPI_BYTE, all.data(), sizes.data(), places.data(), MPI_BYTE, 0, end_->get()) !=
      MPI_SUCCESS)
    return report_nothing();
  if (world_rank() != 0) return;
  Tally together;
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    const auto* const first = all.data() + places[r];
    together.merge({first, first + sizes[r]});
  }
  write_report(together, {.ranks = world_size(), .library = "MPI"}, config_);
}

void Runtime::report_nothing() {
  end_->give_up();
  if (world_rank() == 0) warn("no report: a rank has failed");
}

bool Runtime::is_served(MPI_Comm comm) const {
  int inter = 0, size = 1;
  PMPI_Comm_test_inter(comm, &inter);
  PMPI_Comm_size(comm, &size);
  if (inter != 0 || size < 2 || is_of_a_stream(comm)) return false;
  MPI_Group mine = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &mine);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> ranks(static_cast<std::size_t>(size)), in_world(ranks.size());
  for (int r = 0; r < size; ++r) ranks[static_cast<std::size_t>(r)] = r;
  PMPI_Group_translate_ranks(mine, size, ranks.data(), world, in_world.data());
  PMPI_Group_free(&mine);
  PMPI_Group_free(&world);
  return std::find(in_world.begin(), in_world.end(), MPI_UNDEFINED) == in_world.end();
}

Group* Runtime::group_of(MPI_Comm comm, std::optional<int>* refused) {
  if (comm == MPI_COMM_NULL) return nullptr;
  void* kept = nullptr;
  int found = -1;
  const int code = PMPI_Comm_get_attr(comm, keyval_, static_cast<void*>(&kept), &found);
  if (found < 0) {
    if (refused != nullptr) *refused = code;
    return nullptr;
  }
  if (found != 0) return kept == &not_served || kept == &left_alone_with_all ? nullptr : static_cast<Group*>(kept);
  if (Freeing::is_under_way(comm)) return nullptr;
  if (has_threads_ && is_early(comm)) {
    leave_alone(comm);
    return nullptr;
  }
  if (is_of_threads(comm)) return nullptr;  // and nothing is kept there, by several at once
  Duplication::is_over(comm);
  if (!is_served(comm)) {
    PMPI_Comm_set_attr(comm, keyval_, &not_served);
    return nullptr;
  }
  release_idle();
  int rank = 0, size = 1;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  auto made = std::make_unique<Group>(comm, rank, size);
  Group* const group = made.get();
  PMPI_Comm_set_attr(comm, keyval_, group);
  const std::lock_guard lock(mutex_);
  groups_.emplace_back(comm, std::move(made));
  return group;
}

void Runtime::note_early(MPI_Comm comm, MPI_Comm parent) {
  if (comm == MPI_COMM_NULL || (parent != MPI_COMM_NULL && !is_early(parent))) return;
  const std::lock_guard lock(early_mutex);
  early.push_back(comm);
}

void Runtime::forget_early(MPI_Comm comm) {
  const std::lock_guard lock(early_mutex);
  early.erase(std::remove(early.begin(), early.end(), comm), early.end());
}

void Runtime::leave_alone(MPI_Comm comm) {
  if (comm != MPI_COMM_NULL) PMPI_Comm_set_attr(comm, keyval_, &left_alone_with_all);
}

bool Runtime::is_left_alone(MPI_Comm comm) const {
  const void* kept = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(comm, keyval_, static_cast<void*>(&kept), &found);
  return found != 0 ? kept == &left_alone_with_all : is_early(comm);
}

void Runtime::accompany(MPI_Comm comm, MPI_Comm parent) {
  if (comm == MPI_COMM_NULL) return;
  Freeing::is_over(comm);
  if (!has_threads_) return;
  if (parent == MPI_COMM_NULL || is_left_alone(parent)) return leave_alone(comm);
  try {
    if (Group* const group = group_of(comm)) group->accompany();
  } catch (const std::exception& e) {
    log(LogLevel::error, e.what());
  }
}

std::unique_ptr<Group> Runtime::take(const void* group) {
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(groups_.begin(), groups_.end(), [&](const auto& g) { return g.second.get() == group; });
  if (at == groups_.end()) return nullptr;
  std::unique_ptr<Group> taken = std::move(at->second);
  groups_.erase(at);
  return taken;
}

// Asks MPI nothing: it may be no communicator.
std::unique_ptr<Group> Runtime::take_group(MPI_Comm comm) {
  const auto known = [&]() -> const Group* {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(groups_.begin(), groups_.end(), [&](const auto& g) { return g.first == comm; });
    return at == groups_.end() ? nullptr : at->second.get();
  };
  std::unique_ptr<Group> group = take(known());
  if (group != nullptr) PMPI_Comm_delete_attr(comm, keyval_);
  return group;
}

void Runtime::end_group(MPI_Comm comm) {
  std::unique_ptr<Group> group = take_group(comm);
  if (group == nullptr || !group->runs_here()) return;  // waits for what is under way
  group->outlive_program();
  const std::lock_guard lock(mutex_);
  deserted_.push_back(std::move(group));
}

int Runtime::hand_on(MPI_Comm, int, void*, void* group, void* copy, int* is_copied) {
  *is_copied = group == &left_alone_with_all ? 1 : 0;
  if (*is_copied != 0) *static_cast<void**>(copy) = group;
  return MPI_SUCCESS;
}

// MPI may be in the middle of anything, on any thread, a group's own too: so nothing ends here.
int Runtime::has_been_freed(MPI_Comm comm, int /*keyval*/, void* group, void* /*extra*/) {
  if (active_ == nullptr) return MPI_SUCCESS;
  std::unique_ptr<Group> deserted = active_->take(group);
  if (deserted == nullptr) return MPI_SUCCESS;
  outlive_communicator(comm);
  deserted->outlive_program();
  const std::lock_guard lock(active_->mutex_);
  active_->deserted_.push_back(std::move(deserted));
  return MPI_SUCCESS;
}

// Waits for nobody: what is under way may need calls that other ranks make later.
void Runtime::release_idle() {
  std::vector<std::unique_ptr<Group>> ending;
  const std::lock_guard lock(mutex_);
  const auto idle = std::partition(deserted_.begin(), deserted_.end(), [](const auto& g) { return !g->is_idle(); });
  std::move(idle, deserted_.end(), std::back_inserter(ending));
  deserted_.erase(idle, deserted_.end());
}

void Runtime::renew_errors(MPI_Comm comm) {
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(groups_.begin(), groups_.end(), [&](const auto& g) { return g.first == comm; });
  if (at != groups_.end()) at->second->renew_errors();
}

const Rule* Runtime::rule_for(Collective collective, const Shape& shape, std::string_view communicator, int ranks,
                              std::string_view label) {
  return preload::rule_for(situation_of(collective, shape, communicator, ranks, label), policy_, config_, "MPI",
                           tally_of_process());
}

bool Runtime::may_serve(const Call& call, const Group& group) {
  if (call.irregular) return true;
  const std::optional<Shape> shape = shape_of(call, group.rank(), group.size());
  if (!shape && bytes_at_a_glance(call, group.rank(), group.size()) != 0)
    tally_of_process().pass("operations, or types of elements, that are not served");
  if (!shape) return false;
  return policy_.asks_for_names() || depends_on_label(call.collective, *shape, "", group.size()) ||
         rule_for(call.collective, *shape, "", group.size(), "") != nullptr;
}

std::string Runtime::label_of(const Call& call, const Group& group) const {
  if (!policy_.asks_for_labels()) return {};
  if (!call.irregular && !policy_.asks_for_names()) {
    const std::optional<Shape> shape = shape_of(call, group.rank(), group.size());
    if (!shape || !depends_on_label(call.collective, *shape, "", group.size())) return {};
  }
  return label_of_thread().empty() ? caller() : label_of_thread();
}

bool Runtime::depends_on_label(Collective collective, const Shape& shape, std::string_view communicator,
                               int ranks) const {
  return policy_.asks_for_labels() &&
         policy_.depends_on_label(situation_of(collective, shape, communicator, ranks, ""));
}

const Rule* Runtime::common_rule_for(Collective collective, const Shape& shape, Line& line, std::string_view label) {
  Communicator& comm = line.comm();
  const Rule* const mine = rule_for(collective, shape, line.name(), comm.size(), label);
  if (!depends_on_label(collective, shape, line.name(), comm.size())) return mine;
  const std::ptrdiff_t which = mine == nullptr ? -1 : mine - policy_.rules.data();
  const auto all = line.exchange(static_cast<std::int64_t>(which));
  if (std::all_of(all.begin(), all.end(), [which](std::int64_t other) { return other == which; })) return mine;
  if (mine != nullptr) tally_of_process().pass("calls that ranks make under rules of different labels");
  return nullptr;
}

// MPI's codes are few, and never freed.
int Runtime::code_of(const std::string& what) {
  const std::lock_guard lock(mutex_);
  const auto known = codes_.find(what);
  if (known != codes_.end()) return known->second;
  if (codes_.empty()) PMPI_Add_error_class(&error_class_);  // not before: the program's classes count from the next
  int code = MPI_ERR_OTHER;
  if (PMPI_Add_error_code(error_class_, &code) != MPI_SUCCESS) return MPI_ERR_OTHER;
  std::string text = "Laconic: " + what;
  text.resize(std::min<std::size_t>(text.size(), MPI_MAX_ERROR_STRING - 1));
  PMPI_Add_error_string(code, text.c_str());
  return codes_[what] = code;
}

int Runtime::raise(MPI_Comm comm, const std::string& what) {
  const int heard = std::exchange(error_of_meeting(), MPI_SUCCESS);
  int code = MPI_ERR_NO_MEM;
  try {
    log(LogLevel::error, what);
    if (heard != MPI_SUCCESS) return heard;
    const int of_mpi = class_of_failure(comm);
    code = of_mpi != MPI_SUCCESS ? of_mpi : code_of(what);
  } catch (const std::bad_alloc&) {  // where memory has run out, there may be none to say so
    if (heard != MPI_SUCCESS) return heard;
  }
  return raise(comm, code);
}

int Runtime::raise(MPI_Comm comm, int error_class) {
  PMPI_Comm_call_errhandler(comm, error_class);
  return error_class;
}

Freeing::Freeing(MPI_Comm comm) : comm_(comm) { being_freed().push_back(comm); }

Freeing::~Freeing() { is_over(comm_); }

bool Freeing::is_under_way(MPI_Comm comm) {
  const auto& all = being_freed();
  return std::find(all.begin(), all.end(), comm) != all.end();
}

void Freeing::is_over(MPI_Comm comm) {
  auto& all = being_freed();
  all.erase(std::remove(all.begin(), all.end(), comm), all.end());
}

Tally& tally_of_process() {
  static Tally tally;
  return tally;
}

std::string& label_of_thread() {
  thread_local OfThread<std::string> label;
  return label.get();
}

}  // namespace laconic::preload
