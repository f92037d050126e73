#include "transport/mpi/plain.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "transport/mpi/mpi.h"
#include "transport/pieces.h"

// An extension of Open MPI and its relatives and of MPICH, absent from others; their headers do not always declare it.
extern "C" int MPIX_Query_cuda_support(void) __attribute__((weak));

namespace laconic {
namespace {

// Longer arrays go in pieces of this many elements, where a collective allows that.
constexpr std::size_t longest_piece = std::size_t{1} << 30;
// With so many a rank exchanges messages at a time.
constexpr int most_peers = 32;

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
  PlainMpi(MPI_Comm comm, MPI_Comm own, int tag) : comm_(comm), own_(own), tag_(tag) {
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
    if (!parts.equal) return scatter_uneven(send, parts, recv, root);
    const MPI_Datatype type = bits_type(recv.dtype);
    const int own = static_cast<int>(recv.count);
    void* to = rank_ == root && recv.data == part_of(send.data, parts, recv) ? MPI_IN_PLACE : recv.data;
    check("MPI_Scatter", PMPI_Scatter(send.data, own, type, to, own, type, root, comm_));
  }

  void gather(ConstArray send, MutArray recv, const Parts& parts, int root) override {
    if (!parts.equal) return gather_uneven(send, recv, parts, root);
    const MPI_Datatype type = bits_type(send.dtype);
    const int own = static_cast<int>(send.count);
    const void* from = rank_ == root && send.data == part_of(recv.data, parts, send) ? MPI_IN_PLACE : send.data;
    check("MPI_Gather", PMPI_Gather(from, own, type, recv.data, own, type, root, comm_));
  }

  void allgather(ConstArray send, MutArray recv, const Parts& parts) override {
    const MPI_Datatype type = bits_type(send.dtype);
    const int own = static_cast<int>(send.count);
    const void* from = send.data == part_of(recv.data, parts, send) ? MPI_IN_PLACE : send.data;
    if (parts.equal) {
      check("MPI_Allgather", PMPI_Allgather(from, own, type, recv.data, own, type, comm_));
      return;
    }
    if (extent_of(parts) > INT_MAX) return allgather_far(send, recv, parts);
    const Places places(parts);
    check("MPI_Allgatherv",
          PMPI_Allgatherv(from, own, type, recv.data, places.counts.data(), places.first.data(), type, comm_));
  }

  void alltoall(ConstArray send, const Parts& out, MutArray recv, const Parts& in) override {
    if (out.equal) {
      const MPI_Datatype type = bits_type(send.dtype);
      const int block = static_cast<int>(send.count) / size_;
      check("MPI_Alltoall", PMPI_Alltoall(send.data, block, type, recv.data, block, type, comm_));
      return;
    }
    exchange(pieces_of(send, out, 0, ranks()), pieces_of(recv, in, 0, ranks()));
  }

 private:
  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(size_); }

  void scatter_uneven(ConstArray send, const Parts& parts, MutArray recv, int root) {
    const auto me = static_cast<std::size_t>(rank_);
    Messages messages(*this);
    if (rank_ != root) {
      messages.take(whole(recv), static_cast<std::size_t>(root));
    } else {
      const auto from = pieces_of(send, parts, 0, ranks());
      for (std::size_t r = 0; r < ranks(); ++r) {
        if (r != me) messages.put(from[r], r);
      }
      copy(from[me].data, whole(recv));
    }
    messages.wait();
  }

  void gather_uneven(ConstArray send, MutArray recv, const Parts& parts, int root) {
    const auto me = static_cast<std::size_t>(rank_);
    Messages messages(*this);
    if (rank_ != root) {
      messages.put(whole(send), static_cast<std::size_t>(root));
    } else {
      const auto to = pieces_of(recv, parts, 0, ranks());
      for (std::size_t r = 0; r < ranks(); ++r) {
        if (r != me) messages.take(to[r], r);
      }
      copy(whole(send).data, to[me]);
    }
    messages.wait();
  }

  /// from[r] goes to rank r, from whom to[r] comes.
  void exchange(const std::vector<Piece>& from, const std::vector<Piece>& to) {
    const auto peer = [&](int distance) { return static_cast<std::size_t>((rank_ + distance + size_) % size_); };
    copy(from[peer(0)].data, to[peer(0)]);
    for (int first = 1; first < size_; first += most_peers) {
      const int last = std::min(first + most_peers, size_);
      Messages messages(*this);
      for (int distance = first; distance < last; ++distance) messages.take(to[peer(-distance)], peer(-distance));
      for (int distance = first; distance < last; ++distance) messages.put(from[peer(distance)], peer(distance));
      messages.wait();
    }
  }

  /// Under way. The v-calls of Open MPI and MPICH send one for each part, too, but their counts are ints: here nobody
  /// need know whether another rank's fit. What is not waited for, after an error, is given up.
  class Messages {
   public:
    explicit Messages(const PlainMpi& plain) : plain_(plain) {}
    ~Messages() {
      for (std::size_t i = 0; i < requests_.size(); ++i) {
        if (requests_[i] == MPI_REQUEST_NULL) continue;
        if (i < receives_) PMPI_Cancel(&requests_[i]);
        PMPI_Request_free(&requests_[i]);
      }
    }
    Messages(const Messages&) = delete;
    Messages& operator=(const Messages&) = delete;

    void take(Piece to, std::size_t from) {  // before all put()
      in_messages(to, [&](std::uint8_t* data, int bytes) {
        plain_.check_own("MPI_Irecv", PMPI_Irecv(data, bytes, MPI_BYTE, static_cast<int>(from), plain_.tag_,
                                                 plain_.own_, &requests_.emplace_back(MPI_REQUEST_NULL)));
        ++receives_;
      });
    }
    void put(Piece from, std::size_t to) {
      in_messages(from, [&](const std::uint8_t* data, int bytes) {
        plain_.check_own("MPI_Isend", PMPI_Isend(data, bytes, MPI_BYTE, static_cast<int>(to), plain_.tag_, plain_.own_,
                                                 &requests_.emplace_back(MPI_REQUEST_NULL)));
      });
    }
    void wait() {
      const int n = static_cast<int>(requests_.size());
      if (n == 0) return;
      std::vector<MPI_Status> each(requests_.size());
      const int code = PMPI_Waitall(n, requests_.data(), each.data());
      if (code != MPI_ERR_IN_STATUS) return plain_.check_own("MPI_Waitall", code);
      for (const MPI_Status& status : each) {
        if (status.MPI_ERROR != MPI_ERR_PENDING) plain_.check_own("MPI_Waitall", status.MPI_ERROR);
      }
      plain_.check_own("MPI_Waitall", code);
    }

   private:
    const PlainMpi& plain_;
    std::vector<MPI_Request> requests_;
    std::size_t receives_ = 0;  ///< that come first
  };

  template <class F>
  static void in_messages(Piece all, F&& f) {
    for (std::size_t at = 0; at < all.bytes; at += longest_piece) {
      f(all.data + at, static_cast<int>(std::min(longest_piece, all.bytes - at)));
    }
  }

  /// Either may be in a device's memory, if MPI takes it there.
  void copy(const std::uint8_t* from, Piece to) const {
    if (to.bytes == 0 || from == to.data) return;
    if (!takes_device_arrays_) {
      std::memcpy(to.data, from, to.bytes);
      return;
    }
    in_messages(to, [&](std::uint8_t* data, int bytes) {
      check_own("MPI_Sendrecv", PMPI_Sendrecv(from + (data - to.data), bytes, MPI_BYTE, rank_, tag_, data, bytes,
                                              MPI_BYTE, rank_, tag_, own_, MPI_STATUS_IGNORE));
    });
  }

  /// Where gaps between parts are more than an int can count, on this rank: they are received without.
  void allgather_far(ConstArray send, MutArray recv, const Parts& parts) {
    const Parts packed{.counts = parts.counts};
    std::vector<std::uint8_t> room(extent_of(packed) * size_of(send.dtype));
    allgather(send, {room.data(), extent_of(packed), recv.dtype}, packed);
    const auto to = pieces_of(recv, parts, 0, ranks());
    const std::uint8_t* from = room.data();
    for (const Piece& part : to) {
      copy(from, part);
      from += part.bytes;
    }
  }

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
    if (comm_ != own_) error_of_meeting() = status;
    fail(call, status);
  }
  void check_own(const char* call, int status) const {
    if (status != MPI_SUCCESS) fail(call, status);
  }
  [[noreturn]] void fail(const char* call, int status) const {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    PMPI_Error_string(status, text, &length);
    throw Error(Code::transport, "rank " + std::to_string(rank_) + ": " + call + " failed: " + text);
  }

  MPI_Comm comm_, own_;
  int tag_;
  int rank_ = 0, size_ = 1;
  bool takes_device_arrays_ = MPIX_Query_cuda_support != nullptr && MPIX_Query_cuda_support() == 1;
};

}  // namespace

std::unique_ptr<PlainCollectives> make_plain_mpi(MPI_Comm comm, MPI_Comm own, int tag) {
  return std::make_unique<PlainMpi>(comm, own, tag);
}

}  // namespace laconic
