// Laconic over NCCL, for the C interface. Compiled where NCCL's header is.
#include "transport/nccl/nccl.h"

#include <laconic/laconic_nccl.h>

#include "api/arguments.h"
#include "gpu/nccl_calls.h"
#include "transport/nccl/cuda.h"
#include "transport/nccl/types.h"

namespace laconic::api {
namespace {

gpu::NcclGroups& groups() {
  static auto& all = *new gpu::NcclGroups;  // not destroyed: at the program's end CUDA may be gone
  return all;
}

/// Needs an operation unless the collective only moves data.
struct Given {
  ncclDataType_t datatype;
  std::optional<ncclRedOp_t> op;
};

/// Wrong types, operations and counts are wrong on every rank, as NCCL wants them to be the same: nobody waits.
int call(gpu::NcclCall c, const Given& given, ncclComm_t nccl, laconic_stream stream,
         const laconic_options* options) noexcept {
  return guarded([&] {
    if (nccl == nullptr) throw Error(Code::invalid_argument, "comm is null");
    const auto dtype = nccl::dtype_of(given.datatype);
    if (!dtype) {
      throw Error(Code::unsupported, "datatype " + std::to_string(given.datatype) +
                                         ": want ncclFloat32, 64 or 16, ncclBfloat16, or integers of 32 or 64 bits");
    }
    c.dtype = *dtype;
    if (given.op) {
      const auto op = nccl::op_of(*given.op);
      if (!op || *op == Op::product) {
        throw Error(Code::unsupported,
                    "op " + std::to_string(*given.op) + ": want ncclSum, ncclAvg, ncclMin or ncclMax");
      }
      c.op = *op;
    }
    int device = 0;
    pncclCommCuDevice(nccl, &device);
    const nccl::OnDevice as(device);
    const auto there = groups().find(nccl);
    const auto group = there != nullptr ? there : groups().of(nccl, options_from_environment(), stream);
    group->use(stream);
    Communicator& comm = group->comm();
    const bool of_all = c.collective == Collective::reduce_scatter || c.collective == Collective::allgather;
    require_count("count", c.count, c.dtype, of_all ? comm.size() : 1);
    run(c, comm, Chosen(options, comm).of({.collective = c.collective, .dtype = c.dtype, .op = c.op}, comm));
  });
}

std::shared_ptr<gpu::NcclGroup> known(ncclComm_t nccl) {
  auto group = groups().find(nccl);
  if (group == nullptr) throw Error(Code::invalid_argument, "comm: no call of Laconic's was made on it");
  return group;
}

}  // namespace
}  // namespace laconic::api

namespace api = laconic::api;
using laconic::Collective;

extern "C" {

int laconic_comm_from_nccl(ncclComm_t nccl, laconic_stream stream, laconic_comm** comm) {
  if (comm == nullptr) return api::report(laconic::Code::invalid_argument, "comm is null");
  *comm = nullptr;
  return api::guarded([&] {
    if (nccl == nullptr) throw laconic::Error(laconic::Code::invalid_argument, "nccl is null");
    const laconic::Options defaults = api::options_from_environment();
    laconic::gpu::await(stream);
    auto transport = laconic::make_nccl_transport(nccl);
    auto memory = laconic::gpu::device_memory_of_all(*transport);
    memory->use(stream);
    auto made = std::make_unique<laconic_comm>(std::move(transport), defaults);
    made->lay_arrays_in(std::move(memory));
    *comm = made.release();
  });
}

int laconic_nccl_allreduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, laconic_stream stream, const laconic_options* options) {
  return api::call({.collective = Collective::allreduce, .send = sendbuff, .recv = recvbuff, .count = count},
                   {datatype, op}, comm, stream, options);
}

int laconic_nccl_reduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                        int root, ncclComm_t comm, laconic_stream stream, const laconic_options* options) {
  return api::call({.collective = Collective::reduce, .send = sendbuff, .recv = recvbuff, .count = count, .root = root},
                   {datatype, op}, comm, stream, options);
}

int laconic_nccl_reduce_scatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                                ncclRedOp_t op, ncclComm_t comm, laconic_stream stream,
                                const laconic_options* options) {
  return api::call({.collective = Collective::reduce_scatter, .send = sendbuff, .recv = recvbuff, .count = recvcount},
                   {datatype, op}, comm, stream, options);
}

int laconic_nccl_broadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                           ncclComm_t comm, laconic_stream stream, const laconic_options* options) {
  return api::call({.collective = Collective::bcast, .send = sendbuff, .recv = recvbuff, .count = count, .root = root},
                   {datatype, {}}, comm, stream, options);
}

int laconic_nccl_allgather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, laconic_stream stream, const laconic_options* options) {
  return api::call({.collective = Collective::allgather, .send = sendbuff, .recv = recvbuff, .count = sendcount},
                   {datatype, {}}, comm, stream, options);
}

int laconic_nccl_last(ncclComm_t comm, laconic_stats* stats) {
  return api::guarded([&] {
    const auto group = api::known(comm);
    const laconic::Communicator& c = group->comm();
    api::fill(stats, c.last().stats, c.last());
  });
}

int laconic_nccl_total(ncclComm_t comm, laconic_stats* stats) {
  return api::guarded([&] {
    const auto group = api::known(comm);
    const laconic::Communicator& c = group->comm();
    api::fill(stats, c.total(), c.last());
  });
}

int laconic_nccl_release(ncclComm_t comm) {
  return api::guarded([&] { api::groups().take(comm); });
}

int laconic_nccl_abandon(ncclComm_t comm) {
  return api::guarded([&] { api::groups().abandon(comm); });
}

}  // extern "C"
