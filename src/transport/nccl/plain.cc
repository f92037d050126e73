#include "transport/nccl/plain.h"

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/beside_captures.h"
#include "core/error.h"
#include "transport/nccl/types.h"
#include "transport/pieces.h"

namespace laconic::nccl {
namespace {

/// Arrays of one call where NCCL can reach them.
class Stage {
 public:
  Stage(Rounds& rounds, cudaStream_t stream) : rounds_(rounds), stream_(stream) {}

  /// Where the operand can be read.
  const std::uint8_t* in(Piece from) {
    if (!is_out_of_reach(from)) return from.data;
    const Pinned& room = rooms_.emplace_back(rounds_.pool().take(from.bytes));
    std::memcpy(room.get(), from.data, from.bytes);
    return room.get();
  }

  /// Where the result may be written. `apart`: not where it belongs, since the operand is still read there.
  std::uint8_t* out(Piece to, bool apart = false) {
    if (to.bytes == 0 || (!apart && !is_out_of_reach(to))) return to.data;
    std::uint8_t* const room = rooms_.emplace_back(rounds_.pool().take(to.bytes)).get();
    results_.push_back({to, room});
    return room;
  }

  /// Whether NCCL has the caller's own arrays.
  [[nodiscard]] bool is_direct() const { return rooms_.empty(); }

  /// After the call: results go where they belong.
  void finish() {
    const BesideCaptures beside;
    bool on_stream = false;
    for (const Result& r : results_) {
      if (memory_of(r.to.data) != Memory::device) {
        std::memcpy(r.to.data, r.from, r.to.bytes);
        continue;
      }
      check(rounds_.rank(), "cudaMemcpyAsync",
            cudaMemcpyAsync(r.to.data, r.from, r.to.bytes, cudaMemcpyDefault, stream_));
      on_stream = true;
    }
    if (on_stream) check(rounds_.rank(), "cudaStreamSynchronize", cudaStreamSynchronize(stream_));
  }

 private:
  struct Result {
    Piece to;
    const std::uint8_t* from;
  };
  static bool is_out_of_reach(Piece p) {
    return p.bytes != 0 && memory_of(std::span<const std::uint8_t>(p.data, p.bytes)) == Memory::pageable;
  }

  Rounds& rounds_;
  cudaStream_t stream_;
  std::vector<Pinned> rooms_;
  std::vector<Result> results_;
};

class Plain final : public PlainCollectives {
 public:
  Plain(Rounds& rounds, ncclComm_t program)
      : rounds_(rounds), link_(rounds.data_link()), comm_(program != nullptr ? program : link_.comm()) {}
  [[nodiscard]] bool takes_device_arrays() const override { return true; }
  [[nodiscard]] bool knows_streams() const override { return true; }
  [[nodiscard]] bool can_leave_on_stream() const override { return comm_ != link_.comm(); }
  void leave_on_stream(bool leave) override { leave_ = leave; }
  void await_left() override { rounds_.await_left(); }
  void work_on(cudaStream_t stream) override { stream_ = stream; }

  [[nodiscard]] bool reduces(DType dtype, Op op) const override {
    const bool is_one = op != Op::average || is_float(dtype);  // of integers it cuts off what remains
    return is_one && type_of(dtype) != ncclNumTypes && operation(op) != ncclNumOps;
  }
  [[nodiscard]] bool has_scan() const override { return false; }
  [[nodiscard]] bool scatters_in_own_part() const override { return true; }
  [[nodiscard]] std::size_t most_elements() const override { return std::numeric_limits<std::size_t>::max(); }

  void allreduce(ConstArray send, MutArray recv, Op op) override {
    Stage stage(rounds_, stream_);
    const auto* const from = stage.in(whole(send));
    auto* const to = stage.out(whole(recv));
    run("ncclAllReduce", stage,
        [&] { return pncclAllReduce(from, to, send.count, type_of(send.dtype), operation(op), comm_, stream_); });
  }

  void reduce(ConstArray send, MutArray recv, Op op, int root) override {
    Stage stage(rounds_, stream_);
    const auto* const from = stage.in(whole(send));
    auto* const to = rounds_.rank() == root ? stage.out(whole(recv)) : nullptr;
    run("ncclReduce", stage,
        [&] { return pncclReduce(from, to, send.count, type_of(send.dtype), operation(op), root, comm_, stream_); });
  }

  /// In place, MPI's result lies at the array's beginning, where NCCL would still read unless that is this rank's part.
  void reduce_scatter(ConstArray send, MutArray recv, const Parts& parts, Op op) override {
    const bool in_place = send.data == recv.data;
    const ncclDataType_t type = type_of(send.dtype);
    const std::size_t size = size_of(send.dtype);
    if (in_place) send.count = parts.equal ? recv.count * ranks() : extent_of(parts);
    Stage stage(rounds_, stream_);
    const auto* const from = stage.in(whole(send));
    auto* const to = stage.out(whole(recv), in_place && rounds_.rank() != 0);
    run("ncclReduceScatter", stage, [&] {
      if (parts.equal) return pncclReduceScatter(from, to, recv.count, type, operation(op), comm_, stream_);
      return in_group([&](int r) {
        const Piece part = pieces_of(send, parts, 0, ranks())[static_cast<std::size_t>(r)];
        const auto* const operand = part.bytes == 0 ? from : from + (part.data - whole(send).data);
        return pncclReduce(operand, to, part.bytes / size, type, operation(op), r, comm_, stream_);
      });
    });
  }

  void scan(ConstArray, MutArray, Op, bool) override { throw Error(Code::unsupported, "NCCL has no scan"); }

  void bcast(MutArray data, int root) override {
    Stage stage(rounds_, stream_);
    const auto* const from = rounds_.rank() == root ? stage.in(whole(data)) : nullptr;
    auto* const to = rounds_.rank() == root ? const_cast<std::uint8_t*>(from) : stage.out(whole(data));
    broadcast(stage, from, to, data.bytes(), root);
  }

  [[nodiscard]] bool has_bcast_from() const override { return true; }
  void bcast_from(ConstArray from, MutArray data, int root) override {
    Stage stage(rounds_, stream_);
    const auto* const here = stage.in(whole(from));
    broadcast(stage, here, stage.out(whole(data)), data.bytes(), root);
  }

  void scatter(ConstArray send, const Parts& parts, MutArray recv, int root) override {
    Stage stage(rounds_, stream_);
    std::vector<Transfer> transfers;
    if (rounds_.rank() == root) put_parts(stage, pieces_of(send, parts, recv.count, ranks()), recv.data, transfers);
    if (rounds_.rank() != root || !has_own(send, parts, recv, root)) take(stage, whole(recv), root, transfers);
    exchange(stage, transfers);
  }

  void gather(ConstArray send, MutArray recv, const Parts& parts, int root) override {
    Stage stage(rounds_, stream_);
    std::vector<Transfer> transfers;
    if (rounds_.rank() == root) take_parts(stage, pieces_of(recv, parts, send.count, ranks()), send.data, transfers);
    if (rounds_.rank() != root || !has_own(recv, parts, send, root)) put(stage, whole(send), root, transfers);
    exchange(stage, transfers);
  }

  void allgather(ConstArray send, MutArray recv, const Parts& parts) override {
    Stage stage(rounds_, stream_);
    const auto pieces = pieces_of(recv, parts, send.count, ranks());
    const auto* const from = stage.in(whole(send));
    if (parts.equal) {
      auto* const to = stage.out({whole(recv).data, send.bytes() * ranks()});
      run("ncclAllGather", stage, [&] { return pncclAllGather(from, to, send.bytes(), ncclUint8, comm_, stream_); });
      return;
    }
    std::vector<std::uint8_t*> to;
    for (const Piece& p : pieces) to.push_back(stage.out(p));
    run("ncclBroadcast", stage, [&] {
      return in_group([&](int r) {
        const auto k = static_cast<std::size_t>(r);
        if (pieces[k].bytes == 0) return ncclSuccess;
        return pncclBroadcast(from, to[k], pieces[k].bytes, ncclUint8, r, comm_, stream_);
      });
    });
  }

  void alltoall(ConstArray send, const Parts& out, MutArray recv, const Parts& in) override {
    Stage stage(rounds_, stream_);
    std::vector<Transfer> transfers;
    put_parts(stage, pieces_of(send, out, send.count / ranks(), ranks()), nullptr, transfers);
    take_parts(stage, pieces_of(recv, in, recv.count / ranks(), ranks()), nullptr, transfers);
    exchange(stage, transfers);
  }

 private:
  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(rounds_.size()); }

  /// Whether the root's own part is where it belongs.
  [[nodiscard]] bool has_own(ConstArray all, const Parts& parts, ConstArray own, int root) const {
    return pieces_of(all, parts, own.count, ranks())[static_cast<std::size_t>(root)].data == own.data;
  }

  static void put(Stage& stage, Piece from, int peer, std::vector<Transfer>& into) {
    if (from.bytes != 0) into.push_back({.from = stage.in(from), .bytes = from.bytes, .peer = peer});
  }
  static void take(Stage& stage, Piece to, int peer, std::vector<Transfer>& into) {
    if (to.bytes != 0) into.push_back({.to = stage.out(to), .bytes = to.bytes, .peer = peer});
  }
  /// But not the one that is in its place.
  static void put_parts(Stage& stage, const std::vector<Piece>& pieces, const void* own, std::vector<Transfer>& into) {
    for (std::size_t r = 0; r < pieces.size(); ++r) {
      if (pieces[r].data != own) put(stage, pieces[r], static_cast<int>(r), into);
    }
  }
  static void take_parts(Stage& stage, const std::vector<Piece>& pieces, const void* own, std::vector<Transfer>& into) {
    for (std::size_t r = 0; r < pieces.size(); ++r) {
      if (pieces[r].data != own) take(stage, pieces[r], static_cast<int>(r), into);
    }
  }

  void exchange(Stage& stage, const std::vector<Transfer>& transfers) {
    if (transfers.empty()) return;
    rounds_.run_alone({.comm = link_.comm(), .stream = stream_}, "its peers to send and receive",
                      [&] { link_.exchange(transfers, stream_); });
    stage.finish();
  }

  void broadcast(Stage& stage, const void* from, void* to, std::size_t bytes, int root) {
    run("ncclBroadcast", stage, [&] { return pncclBroadcast(from, to, bytes, ncclUint8, root, comm_, stream_); });
  }

  /// call(r) for every rank, all at once.
  template <typename CallFor>
  ncclResult_t in_group(CallFor&& call) {
    link_.require("ncclGroupStart", pncclGroupStart());
    ncclResult_t worst = ncclSuccess;
    for (int r = 0; r < rounds_.size(); ++r) {
      const ncclResult_t status = call(r);
      if (status != ncclSuccess && status != ncclInProgress) worst = status;
    }
    const ncclResult_t end = pncclGroupEnd();
    return worst != ncclSuccess ? worst : end;
  }

  template <typename CallNccl>
  void run(const char* name, Stage& stage, CallNccl&& call) {
    rounds_.run_alone({.comm = comm_, .stream = stream_, .leave = leave_ && stage.is_direct()},
                      std::string("all ranks to call ") + name, [&] { link_.require(name, call()); });
    stage.finish();
  }

  Rounds& rounds_;
  Link& link_;
  ncclComm_t comm_;  ///< for NCCL's collectives: the program's own, or the link's
  cudaStream_t stream_ = nullptr;
  bool leave_ = false;
};

}  // namespace

std::unique_ptr<PlainCollectives> make_plain_nccl(Rounds& rounds, ncclComm_t program) {
  return std::make_unique<Plain>(rounds, program);
}

}  // namespace laconic::nccl
