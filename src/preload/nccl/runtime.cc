#include "preload/nccl/runtime.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "collective/metadata.h"
#include "collective/routing.h"
#include "core/error.h"
#include "core/log.h"
#include "preload/serving.h"
#include "transport/nccl/cuda.h"

namespace laconic::preload {
namespace {

ncclResult_t result_of(Code code) {
  switch (code) {
    case Code::invalid_argument:
    case Code::mismatch:
      return ncclInvalidArgument;
    case Code::unsupported:
      return ncclInvalidUsage;
    case Code::transport:
      return ncclRemoteError;
    default:
      return ncclInternalError;
  }
}

/// What must be the same on all ranks, as a number.
std::uint64_t fingerprint(const Config& config, const Policy& policy) {
  const std::string text = std::string(LACONIC_VERSION) + (config.bound ? config.bound->to_string() : "none") +
                           std::string(name_of(config.mode)) + policy.text;
  return digest({text.begin(), text.end()});
}

/// Collective.
std::string name_of_rank_0(Transport& transport, std::string name) {
  std::array<char, 256> part{};
  name.resize(allgather_value(transport, std::uint64_t{name.size()}).front());
  for (std::size_t at = 0; at < name.size(); at += part.size()) {
    const std::size_t length = name.copy(part.data(), part.size(), at);
    name.replace(at, length, allgather_value(transport, part).front().data(), length);
  }
  return name;
}

NcclRuntime* to_report = nullptr;

/// After all that the program registered for its exit, in which it may use NCCL.
__attribute__((destructor)) void report_at_the_end() {
  if (to_report != nullptr) to_report->report();
}

}  // namespace

NcclRuntime::NcclRuntime(const Config& config) : config_(config), policy_(policy_of(config)), pid_(::getpid()) {}

NcclRuntime* NcclRuntime::get() {
  static NcclRuntime* const active =
      []() -> NcclRuntime* {  // never destroyed: the program may use NCCL to its very end
    try {
      const Config config = Config::from_environment();
      config.apply_log();
      int version = 0;
      if (pncclGetVersion(&version) != ncclSuccess || version < NCCL_VERSION(2, 18, 0)) {
        warn("the program's NCCL cannot split communicators, as 2.18 and newer can; everything is left to it");
        return nullptr;
      }
      auto* const made = new NcclRuntime(config);
      if (made->policy_.asks_for_labels())
        warn("NCCL's calls have no labels: of the rules that ask for one only those for '*' match");
      return to_report = made;
    } catch (const Error& e) {
      warn(std::string(e.what()) + "; everything is left to NCCL");
      return nullptr;
    }
  }();
  return active;
}

std::shared_ptr<gpu::NcclGroup> NcclRuntime::group_of(ncclComm_t comm, cudaStream_t stream) {
  if (auto known = groups_.find(comm)) return known;
  auto group = groups_.add(comm);
  if (is_refused(comm)) {  // after add(): what is revoked from now on is found there
    groups_.take(comm);
    return nullptr;
  }
  if (!begin(group, comm, stream)) return nullptr;
  const auto all = allgather_value(group->comm().transport(), fingerprint(config_, policy_));
  const int rank = group->comm().rank();
  {
    const std::lock_guard lock(mutex_);
    lowest_rank_ = lowest_rank_ < 0 ? rank : std::min(lowest_rank_, rank);
  }
  if (std::ranges::all_of(all, [&](std::uint64_t f) { return f == all.front(); })) {
    if (policy_.asks_for_names()) {
      names_.agree(comm, name_of_rank_0(group->comm().transport(), names_.of(comm)));
      if (groups_.find(comm) != group) names_.forget(comm);  // abandoned meanwhile
    }
    return group;
  }
  if (rank == 0) warn("ranks differ in bound, mode or policy; this communicator is left to NCCL");
  const std::string reason = "ranks differ in bound, mode or policy";
  refuse(comm, reason);
  pass(reason);
  groups_.take(comm);
  return nullptr;
}

bool NcclRuntime::begin(const std::shared_ptr<gpu::NcclGroup>& group, ncclComm_t comm, cudaStream_t stream) {
  try {
    groups_.begin(group, comm, {}, stream, config_.timeout_seconds.value_or(0));  // as long as NCCL, unless said
    return true;
  } catch (const gpu::CannotRun& e) {
    if (e.is_first) warn(std::string(e.what()) + "; this communicator is left to NCCL");
    const std::string reason = "a rank's GPU cannot run Laconic's kernels";
    refuse(comm, reason);
    pass(reason);
    return false;
  }
}

bool NcclRuntime::is_refused(ncclComm_t comm) {
  const std::lock_guard lock(mutex_);
  const auto at = refused_.find(comm);
  if (at != refused_.end()) pass(at->second);
  return at != refused_.end();
}

void NcclRuntime::refuse(ncclComm_t comm, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  refused_[comm] = reason;
}

std::optional<const Rule*> NcclRuntime::rule_for(const gpu::NcclCall& call, ncclComm_t comm) {
  int ranks = 0;
  if (comm == nullptr || pncclCommCount(comm, &ranks) != ncclSuccess || ranks < 2) return std::nullopt;
  Situation situation{.collective = call.collective,
                      .dtype = call.dtype,
                      .op = call.op == Op::average ? Op::sum : call.op,
                      .bytes = gpu::bytes_of(call, ranks),
                      .ranks = ranks};
  std::optional<std::string> name;
  if (policy_.asks_for_names()) {
    name = names_.agreed(comm);
    if (!name && policy_.depends_on_name(situation)) return nullptr;
    if (name) situation.communicator = *name;
  }
  const Rule* const rule = preload::rule_for(situation, policy_, config_, "NCCL", tally_);
  return rule != nullptr ? std::optional(rule) : std::nullopt;
}

std::optional<const Rule*> NcclRuntime::common_rule_for(const gpu::NcclCall& call, ncclComm_t comm) {
  const auto rule = rule_for(call, comm);
  if (rule && *rule == nullptr)
    throw Error(Code::transport, "the communicator's ranks failed when they met over its name");
  const auto name = names_.agreed(comm);
  if (name && !policy_.serves_some(*name)) groups_.take(comm);  // it has memory on the device that nobody needs
  return rule;
}

std::optional<const Rule*> NcclRuntime::may_serve(const gpu::NcclCall& call, ncclComm_t comm, cudaStream_t stream) {
  const auto rule = rule_for(call, comm);
  if (!rule) return std::nullopt;
  try {
    if (!gpu::is_capturing(stream)) return rule;
    pass("the stream is being captured into a graph");
  } catch (const Error& e) {
    pass(std::string("its stream: ") + e.what());
  }
  return std::nullopt;
}

std::optional<ncclResult_t> NcclRuntime::serve(const gpu::NcclCall& call, const Rule* rule, ncclComm_t comm,
                                               cudaStream_t stream, bool alone) {
  int device = 0;
  if (pncclCommCuDevice(comm, &device) != ncclSuccess) return std::nullopt;
  try {
    const nccl::OnDevice as(device);
    if (rule == nullptr) {  // unless ranks have met since, in the same group
      const auto known = rule_for(call, comm);
      if (!known) return std::nullopt;
      rule = *known;
    }
    const auto group = group_of(comm, stream);
    if (group == nullptr) return std::nullopt;
    if (rule == nullptr) {
      const auto common = common_rule_for(call, comm);
      if (!common) return std::nullopt;
      rule = *common;
    }
    group->use(stream, alone);
    Communicator& on = group->comm();
    const std::uint64_t bytes = gpu::bytes_of(call, on.size());
    const Report report = gpu::run(call, on, options_under(*rule, config_));
    tally_.add(call.collective, bytes, report, plain_estimate(call.collective, bytes, report, on));
    return ncclSuccess;
  } catch (const Error& e) {
    log(LogLevel::error, e.what());
    return result_of(e.code());
  } catch (const std::exception& e) {
    log(LogLevel::error, e.what());
    return ncclInternalError;
  }
}

std::shared_ptr<nccl::Stop> NcclRuntime::stop_of(ncclComm_t comm) {
  const std::lock_guard lock(mutex_);
  auto& known = stops_[comm];
  auto stop = known.lock();
  if (stop == nullptr) known = stop = std::make_shared<nccl::Stop>();
  return stop;
}

void NcclRuntime::set_stop_of(ncclComm_t comm) {
  std::shared_ptr<nccl::Stop> stop;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = stops_.extract(comm);
    if (!entry.empty()) stop = entry.mapped().lock();
  }
  if (stop != nullptr) stop->set();
}

void NcclRuntime::release(ncclComm_t comm) {
  groups_.take(comm);
  names_.forget(comm);
  const std::lock_guard lock(mutex_);
  refused_.erase(comm);
  stops_.erase(comm);
}

void NcclRuntime::abandon(ncclComm_t comm) {
  set_stop_of(comm);
  groups_.abandon(comm);
  names_.forget(comm);
  const std::lock_guard lock(mutex_);
  refused_.erase(comm);
}

void NcclRuntime::revoke(ncclComm_t comm) {
  refuse(comm, "the communicator was revoked");
  set_stop_of(comm);
  groups_.abandon(comm);
}

void NcclRuntime::report() const {
  if (config_.report.empty()) return;
  if (::getpid() != pid_) return;  // a fork of the process, with what that had counted until then
  if (config_.report == "summary" && lowest_rank_ > 0) return;  // one that was rank 0 has as many calls
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const std::string process = std::string(host) + "." + std::to_string(pid_);
  const Heading heading{.library = "NCCL", .process = process, .lowest_rank = lowest_rank_};
  write_report(tally_, heading, config_, ".nccl." + process);  // beside that of the drop-in library for MPI
}

}  // namespace laconic::preload
