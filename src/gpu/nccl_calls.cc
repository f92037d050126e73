#include "gpu/nccl_calls.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/bcast.h"
#include "collective/call.h"
#include "collective/plain_way.h"
#include "collective/reduce.h"
#include "collective/reduce_scatter.h"
#include "core/error.h"
#include "transport/nccl/cuda.h"
#include "transport/nccl/nccl.h"

namespace laconic::gpu {

std::uint64_t bytes_of(const NcclCall& call, int ranks) {
  const bool of_all = call.collective == Collective::reduce_scatter || call.collective == Collective::allgather;
  return call.count * size_of(call.dtype) * static_cast<std::uint64_t>(of_all ? ranks : 1);
}

namespace {

/// NCCL's root may have its array elsewhere. What is wrong with it is an error on every rank.
void bring_root(ConstArray send, MutArray recv, Communicator& comm, const Options& options) {
  const Memory& memory = comm.memory();
  if (send.count != 0 && (!memory.holds(send.data) || !memory.holds(recv.data))) {
    refuse({.collective = Collective::bcast, .dtype = send.dtype}, comm, options,
           Error(Code::invalid_argument, "sendbuff or recvbuff of the root is not in the memory of a GPU"));
  }
  require_ready(comm);  // else the copy would wait for what was left on the stream, and nothing could end that
  if (overlap(send, recv)) return comm.memory().copy(recv.data, send.data, send.bytes());
  comm.memory().begin_copy(recv.data, send.data, send.bytes());
}

/// Where such a call goes plainly at once, NCCL takes the root's array where it lies. All other ranks make bcast().
bool left_from_root(ConstArray send, MutArray recv, int root, Communicator& comm, const Options& options) {
  if (comm.plain() == nullptr || !comm.plain()->has_bcast_from()) return false;
  const auto plainly = [&](PlainCollectives& library) { library.bcast_from(send, recv, root); };
  const bool sound = (send.data != nullptr && recv.data != nullptr) || send.count == 0;
  return by_shortcut(sound, {Collective::bcast, recv.dtype, Op::none, recv.bytes()}, comm, options, plainly);
}

}  // namespace

laconic::Report run(const NcclCall& call, Communicator& comm, const Options& options) {
  const std::size_t all = call.count * static_cast<std::size_t>(comm.size());
  const ConstArray send{call.send, call.count, call.dtype};
  const MutArray recv{call.recv, call.count, call.dtype};
  return comm.whole([&]() -> laconic::Report {
    switch (call.collective) {
      case Collective::allreduce:
        return allreduce(send, recv, call.op, comm, options);
      case Collective::reduce:
        return reduce(send, recv, call.op, call.root, comm, options);
      case Collective::reduce_scatter:
        return reduce_scatter_block({call.send, all, call.dtype}, recv, call.op, comm, options);
      case Collective::allgather:
        return allgather_equal(send, {call.recv, all, call.dtype}, comm, options);
      case Collective::bcast:
        if (comm.rank() == call.root && call.send != call.recv) {
          if (left_from_root(send, recv, call.root, comm, options)) return comm.last();
          bring_root(send, recv, comm, options);
        }
        return bcast(recv, call.root, comm, options);
      default:
        throw Error(Code::internal, "NCCL has no such collective");
    }
  });
}

std::unique_ptr<DeviceMemory> device_memory_of_all(Transport& transport) {
  std::unique_ptr<DeviceMemory> memory;
  std::string why = "a rank's GPU cannot run Laconic's kernels";
  try {
    memory = std::make_unique<DeviceMemory>();
  } catch (const std::exception& e) {
    why = "rank " + std::to_string(transport.rank()) + "'s GPU cannot run Laconic's kernels: " + e.what();
  }
  const auto can = allgather_value(transport, static_cast<std::uint8_t>(memory != nullptr));
  const auto first = std::ranges::find(can, 0) - can.begin();
  if (first < transport.size()) throw CannotRun(why, first == transport.rank());
  return memory;
}

void NcclGroup::begin(ncclComm_t nccl, const Options& defaults, double timeout) {
  stop_->unless_set([&] { return pncclCommCuDevice(nccl, &device_); });
  auto transport = make_nccl_transport(nccl, timeout, stop_, config().nccl_sockets, true);
  memory_ = device_memory_of_all(*transport);
  comm_.emplace(std::move(transport), defaults, *memory_);
}

NcclGroup::~NcclGroup() {
  const nccl::OnDevice on(device_);
  comm_.reset();
  memory_.reset();
}

std::shared_ptr<NcclGroup> NcclGroups::of(ncclComm_t nccl, const Options& defaults, Stream stream) {
  if (auto known = find(nccl)) return known;
  auto made = add(nccl);
  begin(made, nccl, defaults, stream, default_timeout());
  return made;
}

std::shared_ptr<NcclGroup> NcclGroups::add(ncclComm_t nccl) {
  auto made = std::make_shared<NcclGroup>();
  const std::lock_guard lock(mutex_);
  groups_[nccl] = made;
  return made;
}

void NcclGroups::begin(const std::shared_ptr<NcclGroup>& added, ncclComm_t nccl, const Options& defaults, Stream stream,
                       double timeout) {
  try {
    await(stream);
    std::vector<std::shared_ptr<NcclGroup>> ending;
    {
      const std::lock_guard lock(mutex_);
      ending.swap(abandoned_);
    }
    ending.clear();
    added->begin(nccl, defaults, timeout);  // unlocked: ranks of other communicators may have to do the same meanwhile
  } catch (...) {
    const std::lock_guard lock(mutex_);
    std::erase_if(groups_, [&](const auto& entry) { return entry.second == added; });
    throw;
  }
}

std::shared_ptr<NcclGroup> NcclGroups::find(ncclComm_t nccl) {
  const std::lock_guard lock(mutex_);
  const auto at = groups_.find(nccl);
  return at == groups_.end() ? nullptr : at->second;
}

std::shared_ptr<NcclGroup> NcclGroups::take(ncclComm_t nccl) {
  const std::lock_guard lock(mutex_);
  auto entry = groups_.extract(nccl);
  return entry.empty() ? nullptr : std::move(entry.mapped());
}

void NcclGroups::abandon(ncclComm_t nccl) {
  auto group = take(nccl);
  if (group == nullptr) return;
  group->stop();
  const std::lock_guard lock(mutex_);
  abandoned_.push_back(std::move(group));
}

}  // namespace laconic::gpu
