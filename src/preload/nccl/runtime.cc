#include "preload/nccl/runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "collective/cost.h"
#include "collective/metadata.h"
#include "collective/routing.h"
#include "core/error.h"
#include "core/log.h"
#include "transport/nccl/cuda.h"
#include "transport/nccl/nccl.h"

namespace laconic::preload {
namespace {

void warn(const std::string& what) { std::fprintf(stderr, "laconic: %s\n", what.c_str()); }

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

bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status != cudaStreamCaptureStatusNone;
}

/// What must be the same on all ranks, as a number.
std::uint64_t fingerprint(const Config& config, const Policy& policy) {
  const std::string text = std::string(LACONIC_VERSION) + (config.bound ? config.bound->to_string() : "none") +
                           std::string(name_of(config.mode)) + policy.text;
  return digest({text.begin(), text.end()});
}

/// Seconds that the model gives NCCL's own call; 0 where nothing has been measured yet.
double plain_estimate(const gpu::NcclCall& call, Communicator& comm) {
  if (!comm.routing().calibrated()) return 0;
  return plain_seconds({.collective = call.collective, .bytes = gpu::bytes_of(call, comm.size()), .ranks = comm.size()},
                       comm.routing().costs().link);
}

NcclRuntime* active = nullptr;  // never destroyed: the program may use NCCL to its very end

void report_at_exit() { active->report(); }

}  // namespace

NcclRuntime::NcclRuntime(const Config& config) : config_(config), policy_(policy_of(config)) {}

NcclRuntime* NcclRuntime::get() {
  static const bool made = [] {
    try {
      const Config config = Config::from_environment();
      config.apply_log();
      active = new NcclRuntime(config);
      if (!config.report.empty()) std::atexit(report_at_exit);
      return true;
    } catch (const Error& e) {
      warn(std::string(e.what()) + "; everything is left to NCCL");
      return false;
    }
  }();
  return made ? active : nullptr;
}

const Rule* NcclRuntime::rule_for(const gpu::NcclCall& call, int ranks) {
  const Rule* const rule = policy_.match({.collective = call.collective,
                                          .dtype = call.dtype,
                                          .op = call.op == Op::average ? Op::sum : call.op,
                                          .bytes = gpu::bytes_of(call, ranks),
                                          .ranks = ranks});
  if (rule == nullptr) {
    tally_.pass("smaller than what a rule asks for, or its rule says off");
    return nullptr;
  }
  if (call.op != Op::none && is_float(call.dtype) && options_under(*rule, config_).bound.kind == BoundKind::lossless) {
    tally_.pass("reductions of floating-point numbers without a bound are NCCL's own, to the last bit");
    return nullptr;
  }
  return rule;
}

gpu::NcclGroup* NcclRuntime::group_of(ncclComm_t comm) {
  if (gpu::NcclGroup* const known = groups_.find(comm)) return known;
  {
    const std::lock_guard lock(mutex_);
    if (refused_.contains(comm)) return nullptr;
  }
  gpu::NcclGroup& group = groups_.of(comm, {});
  const auto all = allgather_value(group.comm().transport(), fingerprint(config_, policy_));
  std::unique_ptr<gpu::NcclGroup> ending;  // after the lock: that waits for other ranks
  const std::lock_guard lock(mutex_);
  const int rank = group.comm().rank();
  first_rank_ = first_rank_ < 0 ? rank : std::min(first_rank_, rank);
  if (std::ranges::all_of(all, [&](std::uint64_t f) { return f == all.front(); })) return &group;
  refused_.insert(comm);
  if (group.comm().rank() == 0) warn("ranks differ in bound, mode or policy; this communicator is left to NCCL");
  ending = groups_.take(comm);
  return nullptr;
}

bool NcclRuntime::may_serve(const gpu::NcclCall& call, ncclComm_t comm, cudaStream_t stream) {
  int ranks = 0;
  if (comm == nullptr || pncclCommCount(comm, &ranks) != ncclSuccess || ranks < 2) return false;
  if (rule_for(call, ranks) == nullptr) return false;
  if (!is_capturing(stream)) return true;
  pass("the stream is being captured into a graph");
  return false;
}

std::optional<ncclResult_t> NcclRuntime::serve(const gpu::NcclCall& call, ncclComm_t comm, cudaStream_t stream) {
  int ranks = 0, device = 0;
  if (pncclCommCount(comm, &ranks) != ncclSuccess || pncclCommCuDevice(comm, &device) != ncclSuccess) {
    return std::nullopt;
  }
  const Rule* const rule = rule_for(call, ranks);
  if (rule == nullptr) return std::nullopt;
  try {
    const nccl::OnDevice on(device);
    gpu::NcclGroup* const group = group_of(comm);
    if (group == nullptr) {
      pass("ranks differ in bound, mode or policy");
      return std::nullopt;
    }
    group->use(stream);
    const Report report = gpu::run(call, group->comm(), options_under(*rule, config_));
    tally_.add(call.collective, gpu::bytes_of(call, ranks), report, plain_estimate(call, group->comm()));
    return ncclSuccess;
  } catch (const Error& e) {
    log(LogLevel::error, e.what());
    return result_of(e.code());
  } catch (const std::exception& e) {
    log(LogLevel::error, e.what());
    return ncclInternalError;
  }
}

void NcclRuntime::release(ncclComm_t comm) {
  groups_.take(comm);
  const std::lock_guard lock(mutex_);
  refused_.erase(comm);
}

void NcclRuntime::abandon(ncclComm_t comm) {
  static_cast<void>(groups_.take(comm).release());
  const std::lock_guard lock(mutex_);
  refused_.erase(comm);
}

void NcclRuntime::report() const {
  if (first_rank_ > 0) return;
  const std::string about = (config_.bound ? "bound " + config_.bound->to_string() : std::string("no bound")) +
                            (config_.policy.empty() ? "" : ", policy " + config_.policy) + ", NCCL";
  if (config_.report == "summary") {
    std::fputs(tally_.to_text(0, about).c_str(), stderr);
    return;
  }
  const std::string file = config_.report + ".nccl";  // beside that of the drop-in library for MPI
  std::ofstream out(file);
  out << tally_.to_json(0, about);
  if (!out.flush()) warn("the report cannot be written to '" + file + "'");
}

}  // namespace laconic::preload
