// What a pipeline tells a kernel that it will ask for: it asks for just that, of memory that has stayed as it was, and
// says when it will not.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/alltoall.h"
#include "collective/bcast.h"
#include "collective/fields.h"
#include "collective/moved.h"
#include "collective/ordinary_memory.h"
#include "collective/reduce_scatter.h"
#include "collective/world.h"
#include "core/error.h"
#include "support/over_transport.h"

namespace laconic::collective_ahead_test {
namespace {

using frame::Bytes;
using frame::MutBytes;
using testing_fields::make;
using world::view;

struct Counts {
  std::atomic<int> announced = 0, made = 0, unexpected = 0, forgotten = 0;
};

/// A kernel of the host's that is told of calls, and holds the pipeline to that.
class Told final : public Kernel {
 public:
  Told(std::unique_ptr<Kernel> kernel, std::vector<ConstArray> operands, std::vector<MutArray> results, Counts& counts,
       int fails_at)
      : Kernel(std::move(operands), std::move(results)), kernel_(std::move(kernel)), counts_(counts), left_(fails_at) {}
  ~Told() override { EXPECT_TRUE(told_.empty()) << "neither asked for nor called off"; }

  [[nodiscard]] bool begins() const override { return true; }
  void begin(const Task& task) noexcept override {
    ++counts_.announced;
    if (std::ranges::any_of(told_, [&](const Announced& a) { return is_same(a.task, task); })) return;
    told_.push_back({task, contents(task)});
    EXPECT_LE(told_.size(), 2U);
  }
  void forget() noexcept override {
    counts_.forgotten += static_cast<int>(told_.size());
    for (const Announced& a : told_) EXPECT_EQ(a.contents, contents(a.task));
    told_.clear();
  }

  [[nodiscard]] std::size_t element_bytes() const override { return kernel_->element_bytes(); }
  [[nodiscard]] std::size_t capacity(std::size_t values) const override { return kernel_->capacity(values); }
  std::size_t encode(const Part& part, MutBytes out) override {
    meet({.what = Task::What::encode, .part = part, .out = out});
    return kernel_->encode(part, out);
  }
  [[nodiscard]] bool delivers_as_it_encodes() const override { return kernel_->delivers_as_it_encodes(); }
  std::size_t encode_final(const Part& part, MutBytes out) override {
    meet({.what = Task::What::encode, .part = part, .final = true, .out = out});
    return kernel_->encode_final(part, out);
  }
  std::size_t encode_add(const Part& part, Bytes received, MutBytes out) override {
    return kernel_->encode_add(part, received, out);
  }
  std::size_t add(const Part& part, Bytes held, Bytes received, MutBytes out) override {
    return kernel_->add(part, held, received, out);
  }
  [[nodiscard]] std::size_t most_addends() const override { return kernel_->most_addends(); }
  std::size_t sum(const Part& part, std::optional<Bytes> held, std::span<const Bytes> received, MutBytes out) override {
    meet(sum_of(part, held, received, out));
    return kernel_->sum(part, held, received, out);
  }
  [[nodiscard]] bool delivers_as_it_adds() const override { return true; }
  std::size_t sum_final(const Part& part, std::optional<Bytes> held, std::span<const Bytes> received, MutBytes out,
                        bool sent_on) override {
    Task task = sum_of(part, held, received, out);
    task.final = true;
    task.sent_on = sent_on;
    meet(task);
    const std::size_t bytes = kernel_->sum(part, held, received, out);
    kernel_->deliver(part, out.first(bytes));
    return sent_on ? bytes : 0;
  }
  std::size_t add_plain(const Part& part, Bytes held, ConstArray received, MutBytes out) override {
    return kernel_->add_plain(part, held, received, out);
  }
  void keep(const Part& part) override { kernel_->keep(part); }
  void deliver(const Part& part, Bytes message) override {
    meet({.what = Task::What::deliver, .part = part, .received = {message}});
    kernel_->deliver(part, message);
  }

 private:
  struct Announced {
    Task task;
    std::vector<std::uint8_t> contents;
  };

  static Task sum_of(const Part& part, std::optional<Bytes> held, std::span<const Bytes> received, MutBytes out) {
    return {.what = Task::What::sum,
            .part = part,
            .held = held,
            .received = {received.begin(), received.end()},
            .out = out};
  }
  static std::vector<Bytes> messages(const Task& t) {
    std::vector<Bytes> all = t.received;
    if (t.held) all.push_back(*t.held);
    return all;
  }
  static std::vector<std::uint8_t> contents(const Task& t) {
    std::vector<std::uint8_t> all;
    for (const Bytes b : messages(t)) all.insert(all.end(), b.begin(), b.end());
    return all;
  }
  static bool is_same_part(const Task& a, const Task& b) {
    return a.what == b.what && a.part.block == b.part.block && a.part.first == b.part.first;
  }
  static bool is_same(const Task& a, const Task& b) {
    return is_same_part(a, b) && a.part.count == b.part.count && a.final == b.final && a.sent_on == b.sent_on &&
           a.out.data() == b.out.data() && a.out.size() == b.out.size() && a.held.has_value() == b.held.has_value() &&
           std::ranges::equal(messages(a), messages(b),
                              [](Bytes x, Bytes y) { return x.data() == y.data() && x.size() == y.size(); });
  }

  void meet(const Task& task) {
    ++counts_.made;
    const auto found = std::ranges::find_if(told_, [&](const Announced& a) { return is_same_part(a.task, task); });
    if (found == told_.end()) {
      ++counts_.unexpected;
    } else {
      EXPECT_TRUE(is_same(found->task, task)) << "block " << task.part.block << ", " << task.part.first;
      EXPECT_EQ(found->contents, contents(task));
      told_.erase(found);
    }
    EXPECT_LE(told_.size(), 1U) << "what is called had no room to be begun";
    if (left_ > 0 && --left_ == 0) throw Error(Code::internal, "a kernel that fails");
  }

  std::unique_ptr<Kernel> kernel_;
  Counts& counts_;
  int left_;  ///< calls, of which the last fails; 0: none does
  std::vector<Announced> told_;
};

class Telling final : public test::Ordinary {
 public:
  Telling(Counts& counts, int fails_at) : counts_(counts), fails_at_(fails_at) {}
  std::unique_ptr<Kernel> movement(std::vector<ConstArray> x, std::vector<MutArray> y, const Budget& budget,
                                   int threads) override {
    return std::make_unique<Told>(Ordinary::movement(x, y, budget, threads), x, y, counts_, fails_at_);
  }
  std::unique_ptr<Kernel> reduction(Op op, std::vector<ConstArray> x, std::vector<MutArray> y, const Budget& budget,
                                    Summands summands, int threads) override {
    auto kernel = Ordinary::reduction(op, x, y, budget, summands, threads);
    return std::make_unique<Told>(std::move(kernel), x, y, counts_, fails_at_);
  }

 private:
  Counts& counts_;
  int fails_at_;
};

using Floats = std::vector<float>;
using Call = std::function<void(Communicator&, Floats& x, const Options&)>;

Options in_short_segments(Schedule schedule) {
  Options options = moved::with("1e-3");
  options.segment_values = 4096;
  options.mode = Mode::compressed;
  options.schedule = schedule;
  return options;
}

/// Results are those of kernels that nobody tells anything. fails_at: the call with which the last rank's kernels fail.
void goes_as_announced(int ranks, Schedule schedule, const Call& call, Counts& counts, int fails_at = 0) {
  std::vector<Floats> expected(static_cast<std::size_t>(ranks)), got(expected);
  run_ranks(ranks, [&](Transport& t) {
    const auto me = static_cast<std::size_t>(t.rank());
    expected[me] = got[me] = make<float>("smooth", 120000, t.rank());
    {
      Communicator comm(t, {});
      call(comm, expected[me], in_short_segments(schedule));
    }
    Telling memory(counts, t.rank() == ranks - 1 ? fails_at : 0);
    Communicator comm(t, {}, memory);
    if (fails_at == 0) return call(comm, got[me], in_short_segments(schedule));
    EXPECT_THROW(call(comm, got[me], in_short_segments(schedule)), Error);
  });
  for (std::size_t r = 0; r < got.size() && fails_at == 0; ++r)
    EXPECT_TRUE(world::same_bytes(got[r], expected[r])) << r;
}

void reduces(Communicator& comm, Floats& x, const Options& options) {
  allreduce(view(std::as_const(x)), view(x), Op::sum, comm, options);
}

void keeps_a_share(Communicator& comm, Floats& x, const Options& options) {
  Floats y(x.size() / 3);
  reduce_scatter_block(view(std::as_const(x)), view(y), Op::sum, comm, options);
  x = y;
}

void gathers(Communicator& comm, Floats& x, const Options& options) {
  Floats y(x.size() * static_cast<std::size_t>(comm.size()));
  allgather(view(std::as_const(x)), view(y), comm, options);
  x = y;
}

TEST(Ahead, Reductions) {
  for (const Schedule schedule :
       {Schedule::ring, Schedule::direct, Schedule::recursive_doubling, Schedule::rabenseifner, Schedule::two_level})
    for (const int ranks : {2, 3, 4}) {
      Counts counts;
      goes_as_announced(ranks, schedule, reduces, counts);
      EXPECT_GT(counts.announced, counts.made / 2) << ranks;
      EXPECT_EQ(counts.forgotten, 0);
    }
}

TEST(Ahead, ReduceScatter) {
  Counts counts;
  goes_as_announced(3, Schedule::automatic, keeps_a_share, counts);
  EXPECT_GT(counts.announced, counts.made / 2);
}

TEST(Ahead, Movement) {
  const Call casts = [](Communicator& comm, Floats& x, const Options& options) { bcast(view(x), 1, comm, options); };
  for (const Call& call : {Call(gathers), casts}) {
    Counts counts;
    goes_as_announced(3, Schedule::automatic, call, counts);
    EXPECT_EQ(counts.unexpected, 0);
    EXPECT_EQ(counts.forgotten, 0);
  }
}

TEST(Ahead, WhatFailsCallsOffTheRest) {
  Counts counts;
  for (const int call : {1, 2, 5, 12, 20}) goes_as_announced(3, Schedule::ring, reduces, counts, call);
  // Whether several segments wait to be decoded depends on who gets the processor.
  for (int tries = 0; tries < 20 && counts.forgotten == 0; ++tries)
    for (const int call : {1, 20, 40, 60, 80}) goes_as_announced(3, Schedule::automatic, gathers, counts, call);
  EXPECT_GT(counts.forgotten, 0);
}

}  // namespace
}  // namespace laconic::collective_ahead_test
