// What the drop-in library for NCCL knows in a running program: policy, tally, and what belongs to each communicator.
#pragma once

#include <nccl.h>
#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/config.h"
#include "gpu/nccl_calls.h"
#include "preload/nccl/names.h"
#include "preload/policy.h"
#include "preload/tally.h"
#include "transport/nccl/stop.h"

namespace laconic::preload {

/// Thread safe; of one communicator, one thread at a time, as NCCL has it. All ranks' processes must have the library:
/// that one lacks it cannot be found out over NCCL.
class NcclRuntime {
 public:
  /// Null after a mistake in the environment, which is said once on standard error: everything is NCCL's then.
  static NcclRuntime* get();

  /// The rule under which a call is served; nothing, and counted: it is NCCL's. Ranks come to the same: what is looked
  /// at must be the same everywhere for NCCL too. Null: that depends on what the communicator is called, over which its
  /// ranks are to meet first.
  std::optional<const Rule*> may_serve(const gpu::NcclCall& call, ncclComm_t comm, cudaStream_t stream);
  /// Makes the call that may be served; nothing, and counted, where its ranks, once they have met, leave it to NCCL:
  /// because of the communicator's name, or because they are under different settings. `alone`: no other call of its
  /// group relies on its end. A group is a point in time for all of its streams, and another thread's
  /// cudaStreamPerThread is another one; so only such a call may be left on its stream.
  std::optional<ncclResult_t> serve(const gpu::NcclCall& call, const Rule* rule, ncclComm_t comm, cudaStream_t stream,
                                    bool alone);
  /// Counts a call that Laconic has no word for.
  void pass(const std::string& reason) { tally_.pass(reason); }
  /// Null: no rule asks for names.
  [[nodiscard]] NcclNames* names() { return policy_.asks_for_names() ? &names_ : nullptr; }

  /// What abandon() and revoke() set: for whoever has a communicator in hand that another thread may abort.
  std::shared_ptr<nccl::Stop> stop_of(ncclComm_t comm);

  /// Before NCCL takes the communicator down. Collective where calls on it were served.
  void release(ncclComm_t comm);
  /// Before NCCL aborts the communicator, from any thread: waits for nobody, and a call that does fails at once.
  void abandon(ncclComm_t comm);
  /// The same before NCCL revokes it. What follows on it is NCCL's.
  void revoke(ncclComm_t comm);

  /// At the end of the program. Nothing can be gathered then, and nobody knows who is the one rank 0 of several
  /// communicators: each process has a file of its own. A summary is for who was a rank 0, or had no communicator.
  void report() const;

 private:
  explicit NcclRuntime(const Config& config);

  /// As may_serve(), whatever the stream does.
  std::optional<const Rule*> rule_for(const gpu::NcclCall& call, ncclComm_t comm);
  /// The same when they have met.
  std::optional<const Rule*> common_rule_for(const gpu::NcclCall& call, ncclComm_t comm);
  /// Null, and counted: NCCL has this communicator for itself. Collective the first time.
  std::shared_ptr<gpu::NcclGroup> group_of(ncclComm_t comm, cudaStream_t stream);
  /// False, and counted: a rank cannot, so NCCL has it. Collective.
  bool begin(const std::shared_ptr<gpu::NcclGroup>& group, ncclComm_t comm, cudaStream_t stream);
  /// Leaves a communicator to NCCL.
  void refuse(ncclComm_t comm, const std::string& reason);
  void set_stop_of(ncclComm_t comm);
  /// And then counts the call.
  [[nodiscard]] bool is_refused(ncclComm_t comm);

  Config config_;
  Policy policy_;
  Tally tally_;
  gpu::NcclGroups groups_;
  NcclNames names_;
  std::mutex mutex_;
  std::map<ncclComm_t, std::string> refused_;  ///< with the reason
  std::map<ncclComm_t, std::weak_ptr<nccl::Stop>> stops_;
  int lowest_rank_ = -1;  ///< that this process has had in a communicator; -1: there was none
  ::pid_t pid_;
};

}  // namespace laconic::preload
