// What this library adds to a call that it leaves to the plain library: collectives through the C interface over a
// plain library that does nothing. (bench/small_call_bench.cc has the same beside real MPI calls.)
#include <benchmark/benchmark.h>
#include <laconic/laconic.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "api/handle.h"

namespace {

using laconic::ConstArray;
using laconic::MutArray;
using laconic::Op;
using laconic::Parts;

class NothingToDo final : public laconic::PlainCollectives {
 public:
  [[nodiscard]] bool reduces(laconic::DType, Op) const override { return true; }
  [[nodiscard]] std::size_t most_elements() const override { return 1 << 30; }
  void allreduce(ConstArray, MutArray, Op) override {}
  void reduce(ConstArray, MutArray, Op, int) override {}
  void reduce_scatter(ConstArray, MutArray, const Parts&, Op) override {}
  void scan(ConstArray, MutArray, Op, bool) override {}
  void bcast(MutArray, int) override {}
  void scatter(ConstArray, const Parts&, MutArray, int) override {}
  void gather(ConstArray, MutArray, const Parts&, int) override {}
  void allgather(ConstArray, MutArray, const Parts&) override {}
  void alltoall(ConstArray, const Parts&, MutArray, const Parts&) override {}
};

/// Two ranks, of which the other does not exist.
class Alone final : public laconic::Transport {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 2; }
  laconic::Request isend(std::span<const std::uint8_t>, int, int) override { throw std::logic_error("no messages"); }
  laconic::Request irecv(std::span<std::uint8_t>, int, int) override { throw std::logic_error("no messages"); }
  /// It would say the same: calls that ask nobody do so once (plain_wanted_by_all).
  void allgather_small(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) override {
    for (std::size_t at = 0; at < all.size(); at += mine.size()) std::ranges::copy(mine, all.subspan(at).begin());
  }
  void poll() override {}
  std::unique_ptr<Transport> duplicate() override {
    throw laconic::Error(laconic::Code::unsupported, "nothing to duplicate");
  }
  [[nodiscard]] const std::vector<int>& nodes() const override { return nodes_; }
  laconic::PlainCollectives* plain() override { return &library_; }
  [[nodiscard]] std::string description() const override { return "nothing"; }

 private:
  std::vector<int> nodes_ = {0, 0};
  NothingToDo library_;
};

enum class Told { on_the_communicator, with_every_call };

/// Mode plain takes the way that mode automatic takes once it knows, but for the look at what it knows.
template <typename Make>
void measure(benchmark::State& state, Make make, Told told = Told::on_the_communicator) {
  laconic_comm comm(std::make_unique<Alone>(), laconic::Options{});
  laconic_options options = LACONIC_OPTIONS_INIT;
  options.bound = "1e-3rel";
  options.mode = LACONIC_MODE_PLAIN;
  laconic_comm_set_options(&comm, &options);
  std::vector<float> send(2048), recv(4096);
  for (auto _ : state) {
    const int code = make(send.data(), recv.data(), &comm, told == Told::with_every_call ? &options : nullptr);
    if (code != LACONIC_OK) state.SkipWithError(laconic_last_error());
  }
}

int allreduce(const float* send, float* recv, laconic_comm* comm, const laconic_options* options) {
  return laconic_allreduce(send, recv, 1024, LACONIC_F32, LACONIC_SUM, comm, options);
}
int bcast(const float*, float* recv, laconic_comm* comm, const laconic_options* options) {
  return laconic_bcast(recv, 1024, LACONIC_F32, 0, comm, options);
}
int gather(const float* send, float* recv, laconic_comm* comm, const laconic_options* options) {
  return laconic_gather(send, 1024, recv, LACONIC_F32, 0, comm, options);
}
int allgather(const float* send, float* recv, laconic_comm* comm, const laconic_options* options) {
  return laconic_allgather(send, 1024, recv, LACONIC_F32, comm, options);
}
int alltoall(const float* send, float* recv, laconic_comm* comm, const laconic_options* options) {
  return laconic_alltoall(send, recv, 1024, LACONIC_F32, comm, options);
}
int reduce_scatter(const float* send, float* recv, laconic_comm* comm, const laconic_options* options) {
  return laconic_reduce_scatter_block(send, recv, 1024, LACONIC_F32, LACONIC_SUM, comm, options);
}

BENCHMARK_CAPTURE(measure, allreduce, allreduce);
BENCHMARK_CAPTURE(measure, allreduce_with_options, allreduce, Told::with_every_call);
BENCHMARK_CAPTURE(measure, bcast, bcast);
BENCHMARK_CAPTURE(measure, gather, gather);
BENCHMARK_CAPTURE(measure, allgather, allgather);
BENCHMARK_CAPTURE(measure, alltoall, alltoall);
BENCHMARK_CAPTURE(measure, reduce_scatter, reduce_scatter);

}  // namespace
