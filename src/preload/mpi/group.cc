#include "preload/mpi/group.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cmath>
#include <exception>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "collective/routing.h"
#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "preload/mpi/creations.h"
#include "preload/mpi/runtime.h"
#include "preload/mpi/uncounted.h"

namespace laconic::preload {
namespace {

/// Some MPIs have 2048 communicators, and the program may want many.
constexpr int most_companies = 256;
std::atomic<int> companies{0};

std::vector<int> nodes;  ///< for each rank of the program the lowest that it shares memory with

/// For each rank of `comm`, which may come from a session, the lowest of them that it shares memory with.
std::vector<int> nodes_among(MPI_Comm comm) {
  MPI_Group its = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
  int size = 0;
  PMPI_Comm_size(comm, &size);
  PMPI_Comm_group(comm, &its);
  PMPI_Comm_group(MPI_COMM_WORLD, &all);
  std::vector<int> each(static_cast<std::size_t>(size)), there(each.size()), lowest(nodes.size(), -1);
  std::iota(each.begin(), each.end(), 0);
  PMPI_Group_translate_ranks(its, size, each.data(), all, there.data());
  PMPI_Group_free(&its);
  PMPI_Group_free(&all);
  for (std::size_t r = 0; r < each.size(); ++r) {
    int& first = lowest[static_cast<std::size_t>(nodes[static_cast<std::size_t>(there[r])])];
    if (first < 0) first = static_cast<int>(r);
    each[r] = first;
  }
  return each;
}

/// A program's rank may well come minutes after the others, and MPI waits for it: so does Laconic, unless told
/// otherwise.
double patience() { return config().timeout_seconds.value_or(0); }

/// An attribute of communicators that are made here: the BackgroundLine.
int line_key = MPI_KEYVAL_INVALID;
/// Calls the program's error handler with the program's communicator.
MPI_Errhandler forwarding = MPI_ERRHANDLER_NULL;

void forward(MPI_Comm* comm, int* code, ...) {  // NOLINT(cert-dcl50-cpp,readability-non-const-parameter): as MPI has it
  if (Unheard::is_now()) return;
  void* line = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(*comm, line_key, static_cast<void*>(&line), &found);
  if (found == 0) return;
  const MPI_Comm program = static_cast<BackgroundLine*>(line)->program();
  if (program != *comm) PMPI_Comm_call_errhandler(program, *code);
}

/// For a communicator in place of the program's: what the program has, but with its own handlers called as it expects.
MPI_Errhandler errors_of(MPI_Comm program) {
  MPI_Errhandler its = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(program, &its);
  const bool own = its != MPI_ERRORS_ARE_FATAL && its != MPI_ERRORS_RETURN;
  if (own) PMPI_Errhandler_free(&its);
  return own ? forwarding : its;
}

void release(MPI_Errhandler errors) {
  if (errors != forwarding) PMPI_Errhandler_free(&errors);
}

/// Of a call over the program's communicator, or, in the background, Laconic's.
void require(const char* call, int code) {
  if (code == MPI_SUCCESS) return;
  error_of_meeting() = code;
  throw Error(Code::transport, std::string(call) + " failed");
}

std::string name_of_rank_0(MPI_Comm comm) {
  auto name = std::make_unique<std::array<char, MPI_MAX_OBJECT_NAME + 1>>();
  int length = 0;
  PMPI_Comm_get_name(comm, name->data(), &length);
  require("MPI_Ibcast", uncounted_bcast(name, comm, patience()));
  return name->data();
}

/// The largest of what ranks have to say.
int agree(int mine, MPI_Comm comm, double timeout = patience()) {
  require("MPI_Iallreduce", uncounted_allreduce(mine, MPI_MAX, comm, timeout));
  return mine;
}

/// Null, on all ranks: one of them has too many, or MPI makes none, or it makes something else on one of them.
/// Collective.
Company make_company(MPI_Comm comm) {
  constexpr int no_room = INT_MAX;
  const int milliseconds = static_cast<int>(std::min(std::ceil(patience() * 1e3), no_room - 1.0));
  const int longest = agree(companies.load() < most_companies ? milliseconds : no_room, comm);
  if (longest == no_room) return {};
  // Now all ranks are there, and make one without waiting for anything else. But one that comes late finds what those
  // have said who have given up since: they do not say anything more.
  const OwnCreation creation;
  const bool asks_again = makes_one_at_a_time || longest > 0;
  if (asks_again && agree(creation.is_granted() ? 0 : 1, comm, longest * 1e-3) != 0) return {nullptr, beside_others};
  try {
    std::shared_ptr<OwnComm> made(new OwnComm(comm), [](OwnComm* own) {
      delete own;
      --companies;
    });
    ++companies;
    return {std::move(made)};
  } catch (const std::exception& e) {
    log(LogLevel::error, e.what());
    return {};
  }
}

}  // namespace

int& Unheard::depth() {
  thread_local int n = 0;
  return n;
}

Line::Line(MPI_Comm mpi, std::shared_ptr<OwnComm> own, int lane, const std::atomic<MPI_Comm>* program)
    : mpi_(mpi),
      program_(program),
      name_(name_of_rank_0(mpi)),
      comm_(share_mpi_transport(std::move(own), lane, mpi, patience(), nodes_among(mpi))) {}

bool Line::passes_over(const Call& call) {
  comm_.require_usable();
  Irregular& calls = like(call);
  if (calls.asking.is_due(part_of(call))) return false;
  if (calls.plain_bytes != 0) {
    comm_.record_plain(calls.plain_bytes, 0, 0);
    tally_of_process().add(call.collective, calls.plain_bytes, comm_.last(), 0);
  }
  return true;
}

std::optional<Shape> Line::agree(const Call& call) {
  Asking& asking = like(call).asking;
  Word word = word_of(call, comm_.rank(), comm_.size());
  word.turn = comm_.turn();
  word.news = asking.take_news() ? 1 : 0;
  const auto words = exchange(word);
  if (std::any_of(words.begin(), words.end(), [&](const Word& w) { return w.turn != word.turn; })) {
    comm_.mark_unusable();
    throw Error(Code::mismatch, std::string(laconic::name_of(call.collective)) + ": " + other_turns);
  }
  if (std::any_of(words.begin(), words.end(), [](const Word& w) { return w.news != 0; })) asking.heard_news();
  const std::optional<Shape> shape = shape_of(words.data(), comm_.size());
  if (!shape) learned_nothing(call);
  return shape;
}

void Line::learned_nothing(const Call& call) {
  Irregular& calls = like(call);
  calls.asking.came_to_nothing(part_of(call));
  calls.plain_bytes = 0;
}

InAdvance Line::in_advance(const Call& call, const Shape& shape) {
  return {.bytes = shape.bytes, .left_alone = call.irregular ? like(call).asking.take_left_alone() : 0};
}

void Line::learned(const Call& call, const InAdvance& outcome) {
  Irregular& calls = like(call);
  calls.plain_bytes = outcome.pays ? 0 : outcome.bytes;
  calls.part = part_of(call);
  calls.kind = outcome.kind;
  if (outcome.pays) {
    calls.asking.came_to_something(part_of(call));
  } else {
    calls.asking.came_to_nothing(part_of(call), outcome.may_be_left_alone);
  }
}

void Line::note_plain(const Call& call, double seconds) {
  if (History* const history = comm_.routing().known(*like(call).kind)) history->plain.note(seconds);
}

BackgroundLine::BackgroundLine(MPI_Comm program, std::shared_ptr<OwnComm> own)
    : program_(program), own_(std::move(own)), errors_(errors_of(program)) {
  char name[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  PMPI_Comm_get_name(program, name, &length);
  if (length > 0) PMPI_Comm_set_name(own_->get(), name);
  PMPI_Comm_set_attr(own_->get(), line_key, this);
  PMPI_Comm_set_errhandler(own_->get(), errors_);
  worker_.emplace();
}

BackgroundLine::~BackgroundLine() {
  retire();
  release(errors_);
}

void BackgroundLine::begin() {
  const Unheard errors;
  try {
    line_.emplace(own_->get(), own_, 1, &program_);
  } catch (const std::exception& e) {
    why_none_ = e.what();
  }
}

void BackgroundLine::submit(Job job) {
  auto work = [this, job = std::move(job)] {
    if (!line_ && why_none_.empty()) begin();
    job(line_ ? &*line_ : nullptr, why_none_);
  };
  if (worker_) return worker_->submit(std::move(work));
  work();
}

void BackgroundLine::hand_errors_to(MPI_Errhandler errors) {
  PMPI_Comm_set_errhandler(own_->get(), errors);
  release(std::exchange(errors_, errors));
}

void BackgroundLine::renew_errors() { hand_errors_to(errors_of(program_)); }

void BackgroundLine::outlive_program() {
  MPI_Errhandler its = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(program_, &its);
  hand_errors_to(its);
  program_ = own_->get();
}

Line* BackgroundLine::if_idle() { return is_idle() && line_ ? &*line_ : nullptr; }

template <typename Work>
void Group::or_never(Work&& work) {
  try {
    work();
  } catch (const std::exception& e) {
    failure_ = std::string("nothing can be said over this communicator since a call in which ") + e.what();
    throw;
  }
}

void Group::accompany() {
  if (!failure_.empty()) throw Error(Code::transport, failure_);
  if (tried_ || duplicated_later_ || !trying_.is_due()) return;
  tried_ = true;
  Company company;
  or_never([&] { company = make_company(comm_); });
  tried_ = company.why_none != beside_others;
  if (!tried_) trying_.came_to_nothing();
  own_ = std::move(company.own);
  why_none_ = company.why_none;
}

Line* Group::foreground() {
  accompany();
  if (own_ == nullptr || duplicated_later_) return nullptr;
  if (!foreground_) or_never([&] { foreground_.emplace(comm_, own_, 0); });
  return &*foreground_;
}

Company Group::company() noexcept {
  if (duplicated_later_) return {nullptr, duplicated_later};
  if (!failure_.empty()) return {nullptr, after_a_failure};
  try {
    return make_company(comm_);
  } catch (const std::exception& e) {
    log(LogLevel::error, e.what());
    return {};
  }
}

BackgroundLine& Group::background() {
  if (!background_) background_.emplace(comm_, own_);
  return *background_;
}

void Group::revoke(int (*mpi)(MPI_Comm)) {
  if (own_ != nullptr) mpi(own_->get());
}

void Group::renew_errors() {
  if (background_) background_->renew_errors();
}

void prepare_groups() {
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &line_key, nullptr);
  PMPI_Comm_create_errhandler(forward, &forwarding);
  nodes = find_mpi_nodes(OwnComm(MPI_COMM_WORLD).get());
}

void release_groups() {
  PMPI_Errhandler_free(&forwarding);
  PMPI_Comm_free_keyval(&line_key);
}

}  // namespace laconic::preload
