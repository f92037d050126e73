// The collectives with the arguments of the C interface, ready to be run now or later. Counts are copied, buffers are
// not.
#pragma once

#include "api/arguments.h"

namespace laconic::api {

Work allreduce(const Communicator& c, const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype,
               laconic_op op, const laconic_options* options);
Work reduce(const Communicator& c, const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
            int root, const laconic_options* options);
Work scan(const Communicator& c, const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
          const laconic_options* options);
Work exscan(const Communicator& c, const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
            const laconic_options* options);
/// Empty counts: refused.
Work reduce_scatter(const Communicator& c, const void* sendbuf, void* recvbuf, std::vector<std::size_t> counts,
                    laconic_dtype dtype, laconic_op op, const laconic_options* options);
Work bcast(const Communicator& c, void* buf, size_t count, laconic_dtype dtype, int root,
           const laconic_options* options);
/// counts: on the root those of all ranks.
Work scatter(const Communicator& c, const void* sendbuf, std::vector<std::size_t> counts, bool equal, void* recvbuf,
             size_t recvcount, laconic_dtype dtype, int root, const laconic_options* options);
Work gather(const Communicator& c, const void* sendbuf, size_t sendcount, void* recvbuf,
            std::vector<std::size_t> counts, bool equal, laconic_dtype dtype, int root, const laconic_options* options);
/// Empty counts: refused.
Work allgather(const Communicator& c, const void* sendbuf, void* recvbuf, std::vector<std::size_t> counts, bool equal,
               laconic_dtype dtype, const laconic_options* options);
Work alltoall(const Communicator& c, const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype,
              const laconic_options* options);
Work alltoallv(const Communicator& c, const void* sendbuf, const size_t* sendcounts, void* recvbuf,
               const size_t* recvcounts, laconic_dtype dtype, const laconic_options* options);

}  // namespace laconic::api
