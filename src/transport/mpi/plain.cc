#include "transport/mpi/plain.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "transport/mpi/mpi.h"

// An extension of Open MPI and its relatives and of MPICH, absent from others; their headers do not always declare it.
extern "C" int MPIX_Query_cuda_support(void) __attribute__((weak));

namespace laconic {
namespace {

// Longer arrays go in pieces of this many elements, where a collective allows that.
constexpr std::size_t longest_piece = std::size_t{1} << 30;

MPI_Datatype number_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return MPI_FLOAT;
    case DType::f64:
      return MPI_DOUBLE;
    case DType::i32:
      return MPI_INT32_T;
    case DType::i64:
      return MPI_INT64_T;
    case DType::u32:
      return MPI_UINT32_T;
    case DType::u64:
      return MPI_UINT64_T;
    default:
      return MPI_DATATYPE_NULL;
  }
}

/// Any type of that size: for elements that only move.
MPI_Datatype bits_type(DType dtype) {
  const std::size_t size = size_of(dtype);
  return size == 2 ? MPI_UINT16_T : size == 4 ? MPI_UINT32_T : MPI_UINT64_T;
}

MPI_Op operation(Op op) {
  switch (op) {
    case Op::sum:
      return MPI_SUM;
    case Op::min:
      return MPI_MIN;
    case Op::max:
      return MPI_MAX;
    case Op::product:
      return MPI_PROD;
    default:
      return MPI_OP_NULL;
  }
}

/// Counts and displacements as MPI's v-calls want them.
struct Places {
  explicit Places(const Parts& of) {
    std::size_t at = 0;
    for (std::size_t r = 0; r < of.counts.size(); ++r) {
      counts.push_back(static_cast<int>(of.counts[r]));
      first.push_back(static_cast<int>(of.displs.empty() ? at : of.displs[r]));
      at += of.counts[r];
    }
  }
  std::vector<int> counts, first;
};

class PlainMpi final : public PlainCollectives {
 public:
  PlainMpi(MPI_Comm comm, bool is_meeting) : comm_(comm), is_meeting_(is_meeting) {
    PMPI_Comm_rank(comm, &rank_);
    PMPI_Comm_size(comm, &size_);
  }

  [[nodiscard]] bool reduces(DType dtype, Op op) const override {
    return number_type(dtype) != MPI_DATATYPE_NULL && operation(op) != MPI_OP_NULL;
  }
  [[nodiscard]] bool takes_device_arrays() const override { return takes_device_arrays_; }
  [[nodiscard]] std::size_t most_elements() const override { return INT_MAX; }

  void allreduce(ConstArray send, MutArray recv, Op op) override {
    in_pieces(send, recv, [&](const void* from, void* to, int n) {
      check("MPI_Allreduce",
            PMPI_Allreduce(from == to ? MPI_IN_PLACE : from, to, n, number_type(send.dtype), operation(op), comm_));
    });
  }

  void reduce(ConstArray send, MutArray recv, Op op, int root) override {
    if (rank_ != root) recv = {nullptr, send.count, send.dtype};
    in_pieces(send, recv, [&](const void* from, void* to, int n) {
      check("MPI_Reduce", PMPI_Reduce(rank_ == root && from == to ? MPI_IN_PLACE : from, to, n, number_type(send.dtype),
                                      operation(op), root, comm_));
    });
  }

  void reduce_scatter(ConstArray send, MutArray recv, const Parts& parts, Op op) override {
    const void* from = send.data == recv.data ? MPI_IN_PLACE : send.data;
    const MPI_Datatype type = number_type(send.dtype);
    if (parts.equal) {
      check("MPI_Reduce_scatter_block",
            PMPI_Reduce_scatter_block(from, recv.data, static_cast<int>(recv.count), type, operation(op), comm_));
      return;
    }
    const Places places(parts);
#ifdef MPICH  // which ends the program where long arrays of uneven parts are in place (5.0.2)
    std::vector<std::uint8_t> copy;
    if (from == MPI_IN_PLACE && !takes_device_arrays_) {
      const auto* const first = static_cast<const std::uint8_t*>(send.data);
      copy.assign(first, first + send.bytes());
      from = copy.data();
    }
#endif
    check("MPI_Reduce_scatter", PMPI_Reduce_scatter(from, recv.data, places.counts.data(), type, operation(op), comm_));
  }

  void scan(ConstArray send, MutArray recv, Op op, bool exclusive) override {
    in_pieces(send, recv, [&](const void* from, void* to, int n) {
      const void* operand = from == to ? MPI_IN_PLACE : from;
      const MPI_Datatype type = number_type(send.dtype);
      check(exclusive ? "MPI_Exscan" : "MPI_Scan", exclusive ? PMPI_Exscan(operand, to, n, type, operation(op), comm_)
                                                             : PMPI_Scan(operand, to, n, type, operation(op), comm_));
    });
  }

  void bcast(MutArray data, int root) override {
    in_pieces(data, data, [&](const void*, void* to, int n) {
      check("MPI_Bcast", PMPI_Bcast(to, n, bits_type(data.dtype), root, comm_));
    });
  }

  void scatter(ConstArray send, const Parts& parts, MutArray recv, int root) override {
    const MPI_Datatype type = bits_type(recv.dtype);
    const int own = static_cast<int>(recv.count);
    void* to = rank_ == root && recv.data == part_of(send.data, parts, recv) ? MPI_IN_PLACE : recv.data;
    if (parts.equal) {
      check("MPI_Scatter", PMPI_Scatter(send.data, own, type, to, own, type, root, comm_));
      return;
    }
    const Places places(parts);
    check("MPI_Scatterv",
          PMPI_Scatterv(send.data, places.counts.data(), places.first.data(), type, to, own, type, root, comm_));
  }

  void gather(ConstArray send, MutArray recv, const Parts& parts, int root) override {
    const MPI_Datatype type = bits_type(send.dtype);
    const int own = static_cast<int>(send.count);
    const void* from = rank_ == root && send.data == part_of(recv.data, parts, send) ? MPI_IN_PLACE : send.data;
    if (parts.equal) {
      check("MPI_Gather", PMPI_Gather(from, own, type, recv.data, own, type, root, comm_));
      return;
    }
    const Places places(parts);
    check("MPI_Gatherv",
          PMPI_Gatherv(from, own, type, recv.data, places.counts.data(), places.first.data(), type, root, comm_));
  }

  void allgather(ConstArray send, MutArray recv, const Parts& parts) override {
    const MPI_Datatype type = bits_type(send.dtype);
    const int own = static_cast<int>(send.count);
    const void* from = send.data == part_of(recv.data, parts, send) ? MPI_IN_PLACE : send.data;
    if (parts.equal) {
      check("MPI_Allgather", PMPI_Allgather(from, own, type, recv.data, own, type, comm_));
      return;
    }
    const Places places(parts);
    check("MPI_Allgatherv",
          PMPI_Allgatherv(from, own, type, recv.data, places.counts.data(), places.first.data(), type, comm_));
  }

  void alltoall(ConstArray send, const Parts& out, MutArray recv, const Parts& in) override {
    const MPI_Datatype type = bits_type(send.dtype);
    if (out.equal) {
      const int block = static_cast<int>(send.count) / size_;
      check("MPI_Alltoall", PMPI_Alltoall(send.data, block, type, recv.data, block, type, comm_));
      return;
    }
    const Places from(out), to(in);
    check("MPI_Alltoallv", PMPI_Alltoallv(send.data, from.counts.data(), from.first.data(), type, recv.data,
                                          to.counts.data(), to.first.data(), type, comm_));
  }

 private:
  /// f(from, to, n) for pieces that an int can count. Once for an empty array: it is still a collective.
  template <class F>
  static void in_pieces(ConstArray send, MutArray recv, F&& f) {
    const auto* from = static_cast<const std::uint8_t*>(send.data);
    auto* to = static_cast<std::uint8_t*>(recv.data);
    const std::size_t piece_bytes = longest_piece * size_of(send.dtype);
    for (std::size_t left = send.count;; left -= longest_piece) {
      f(from, to, static_cast<int>(std::min(longest_piece, left)));
      if (left <= longest_piece) return;
      from += piece_bytes;
      if (to != nullptr) to += piece_bytes;
    }
  }

  /// Where this rank's part of the array of all parts lies; null where it has none.
  const void* part_of(const void* all, const Parts& parts, ConstArray own) const {
    if (own.count == 0) return nullptr;
    const auto me = static_cast<std::size_t>(rank_);
    std::size_t before = me * own.count;
    if (!parts.displs.empty()) {
      before = parts.displs[me];
    } else if (!parts.equal) {
      before = std::accumulate(parts.counts.begin(), parts.counts.begin() + rank_, std::size_t{0});
    }
    return static_cast<const std::uint8_t*>(all) + before * size_of(own.dtype);
  }

  void check(const char* call, int status) const {
    if (status == MPI_SUCCESS) return;
    if (is_meeting_) error_of_meeting() = status;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    PMPI_Error_string(status, text, &length);
    throw Error(Code::transport, "rank " + std::to_string(rank_) + ": " + call + " failed: " + text);
  }

  MPI_Comm comm_;
  bool is_meeting_;
  int rank_ = 0, size_ = 1;
  bool takes_device_arrays_ = MPIX_Query_cuda_support != nullptr && MPIX_Query_cuda_support() == 1;
};

}  // namespace

std::unique_ptr<PlainCollectives> make_plain_mpi(MPI_Comm comm, bool is_meeting) {
  return std::make_unique<PlainMpi>(comm, is_meeting);
}

}  // namespace laconic
