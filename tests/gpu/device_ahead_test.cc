// Calls that a kernel for arrays in device memory is told of: they are begun on streams that run side by side, and give
// what they would have given.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "codec/grid.h"
#include "collective/kernel.h"
#include "frame/frame.h"
#include "gpu/device_memory.h"
#include "gpu/emulated_device.h"
#include "gpu/nothing_is_left.h"
#include "support/fake_cuda.h"

namespace laconic::device_ahead_test {
namespace {

using What = Task::What;
using Frame = std::vector<std::uint8_t>;

constexpr std::size_t part_count = 5000;
constexpr std::size_t parts = 3;

/// A kernel over an array in device memory, of several parts.
class Ahead : public test::NothingIsLeft {
 protected:
  void SetUp() override {
    test::NothingIsLeft::SetUp();
    memory_ = std::make_unique<gpu::DeviceMemory>();
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    memory_->use(stream_);
    for (Room* room : {&x_, &y_}) *room = memory_->array_room(parts * part_count * sizeof(float));
    budget_.route = Route::on_grid;
    budget_.grid = make_grid(DType::f32, 1e-3, 4);
  }
  void TearDown() override {
    kernel_.reset();
    x_.reset(), y_.reset();
    memory_.reset();
    cudaStreamDestroy(stream_);
    test::NothingIsLeft::TearDown();
  }

  void make(bool adds, Op op = Op::sum) {
    const ConstArray x{x_.get(), parts * part_count, DType::f32};
    const MutArray y{y_.get(), parts * part_count, DType::f32};
    kernel_ = adds ? memory_->reduction(op, {x}, {y}, budget_, {2, 2}, 1) : memory_->movement({x}, {y}, budget_, 1);
  }
  static Part part(std::size_t i) { return {0, i * part_count, part_count}; }
  static std::vector<float> values(std::size_t i) {
    std::vector<float> v(part_count);
    for (std::size_t k = 0; k < v.size(); ++k) v[k] = static_cast<float>((k * (i + 3)) % 1000) / 500;
    return v;
  }
  /// What the caller's stream is given writes the operand only when it comes to that.
  void write_when_asked() {
    fake::enqueue(stream_, [this] {
      const fake::DeviceAccess open;
      for (std::size_t i = 0; i < parts; ++i) std::ranges::copy(values(i), floats(x_) + i * part_count);
      return true;
    });
  }
  [[nodiscard]] Frame encoded(const std::vector<float>& v) const {
    Frame f(frame::capacity(DType::f32, v.size()));
    f.resize(frame::encode({v.data(), v.size(), DType::f32}, budget_.grid, f));
    return f;
  }
  [[nodiscard]] std::vector<float> result(std::size_t i) const {
    const fake::DeviceAccess open;
    return {floats(y_) + i * part_count, floats(y_) + (i + 1) * part_count};
  }
  static std::vector<float> decoded(const Frame& f) {
    std::vector<float> v(part_count);
    frame::decode(f, {v.data(), v.size(), DType::f32});
    return v;
  }
  Frame room() { return Frame(kernel_->capacity(part_count)); }
  static float* floats(const Room& room) { return reinterpret_cast<float*>(room.get()); }

  std::unique_ptr<gpu::DeviceMemory> memory_;
  cudaStream_t stream_ = nullptr;
  Room x_, y_;
  Budget budget_;
  std::unique_ptr<Kernel> kernel_;
};

TEST_F(Ahead, EncodesWhatTheCallersStreamWrites) {
  make(false);
  write_when_asked();
  std::vector<Frame> out(parts, room());
  const auto task = [&](std::size_t i) {
    return Task{.what = What::encode, .part = part(i), .final = i != 0, .out = out[i]};
  };
  kernel_->begin(task(1));
  kernel_->begin(task(0));
  kernel_->begin(task(2));  // for which there is no room
  // The second stream's first, so nobody has asked for the caller's.
  out[0].resize(kernel_->encode(part(0), out[0]));
  out[1].resize(kernel_->encode_final(part(1), out[1]));
  out[2].resize(kernel_->encode_final(part(2), out[2]));
  for (std::size_t i = 0; i < parts; ++i) EXPECT_EQ(out[i], encoded(values(i))) << i;
  EXPECT_EQ(result(1), decoded(out[1]));
  EXPECT_EQ(result(2), decoded(out[2]));
}

TEST_F(Ahead, AddsAndDelivers) {
  make(true);
  write_when_asked();
  std::vector<Frame> out(parts, room()), received, expected;
  for (std::size_t i = 0; i < parts; ++i) {
    received.push_back(encoded(values(i + 7)));
    expected.emplace_back(out[i].size());
    const std::vector<float> x = values(i);
    expected[i].resize(frame::encode_add({x.data(), x.size(), DType::f32}, received[i], expected[i]));
  }
  const auto task = [&](std::size_t i, bool sent_on) {
    return Task{.what = What::sum,
                .part = part(i),
                .final = true,
                .sent_on = sent_on,
                .received = {received[i]},
                .out = out[i]};
  };
  kernel_->begin(task(0, true));
  kernel_->begin(task(1, false));
  out[0].resize(kernel_->sum_final(part(0), {}, std::vector<frame::Bytes>{received[0]}, out[0], true));
  EXPECT_EQ(out[0], expected[0]);
  EXPECT_EQ(kernel_->sum_final(part(1), {}, std::vector<frame::Bytes>{received[1]}, out[1], false), 0U);
  kernel_->begin({.what = What::deliver, .part = part(2), .received = {expected[2]}});
  kernel_->deliver(part(2), expected[2]);
  for (std::size_t i = 0; i < parts; ++i) EXPECT_EQ(result(i), decoded(expected[i])) << i;
}

// A decoded part would be there before the operand under it has been read.
TEST_F(Ahead, NothingIsBegunWhereTheResultCoversOtherOperands) {
  const auto at = [](const Room& room, std::size_t first, std::size_t n = part_count) {
    return MutArray{floats(room) + first, n, DType::f32};
  };
  const auto begins = [&](const std::vector<ConstArray>& x, const std::vector<MutArray>& y) {
    return memory_->reduction(Op::sum, x, y, budget_, {2, 2}, 1)->begins();
  };
  const MutArray none{nullptr, part_count, DType::f32};
  const std::vector<ConstArray> all{at(x_, 0), at(x_, part_count), at(x_, 2 * part_count)};
  EXPECT_TRUE(begins(all, {none, none, at(y_, 0)}));
  EXPECT_TRUE(begins(all, {none, none, at(x_, 2 * part_count)})) << "in its own place";
  EXPECT_TRUE(begins(all, {at(x_, 0), at(x_, part_count), at(x_, 2 * part_count)})) << "all in their places";
  EXPECT_TRUE(begins({none, at(x_, part_count), none}, {at(x_, 0), at(x_, part_count), at(x_, 2 * part_count)}))
      << "as a gathering in place";
  EXPECT_FALSE(begins(all, {none, none, at(x_, 0)})) << "at the front";
  EXPECT_FALSE(begins(all, {none, none, at(x_, 2 * part_count - 1)}));
  EXPECT_FALSE(begins(all, {none, at(x_, part_count + 1), none}));
  EXPECT_FALSE(begins({at(x_, 0), at(x_, 1), at(x_, 2)}, {at(x_, 0), none, none})) << "operands that overlap";
  const std::vector<ConstArray> uneven{at(x_, 0, 100), at(x_, 100), none};
  EXPECT_FALSE(begins(uneven, {none, at(x_, 0), none})) << "of its own operand, but another part";
}

// Memory that was named goes, and what another call asks for is not what was begun.
TEST_F(Ahead, WhatIsNotAskedForDoesNoHarm) {
  make(true);
  write_when_asked();
  Frame out = room();
  {
    Frame gone = room();
    const Frame received = encoded(values(9));
    kernel_->begin({.what = What::encode, .part = part(0), .out = gone});
    kernel_->begin({.what = What::sum, .part = part(1), .received = {received}, .out = gone});
    kernel_->forget();
  }
  out.resize(kernel_->encode(part(0), out));
  EXPECT_EQ(out, encoded(values(0)));

  Frame damaged = encoded(values(1));
  damaged[0] ^= 1;
  kernel_->begin({.what = What::deliver, .part = part(1), .received = {damaged}});
  kernel_->begin({.what = What::encode, .part = part(1), .out = damaged});
  Frame other = room();
  other.resize(kernel_->encode(part(1), other));  // what was begun was to go elsewhere
  EXPECT_EQ(other, encoded(values(1)));
  EXPECT_THROW(kernel_->deliver(part(1), Frame(100)), Error);
  kernel_->deliver(part(1), other);
  EXPECT_EQ(result(1), decoded(other));
  kernel_->forget();
}

/// Messages may be gone when a call has returned, whatever it returned with.
TEST_F(Ahead, ADamagedMessageLeavesNoCopyOfAnotherUnderWay) {
  const Frame held = encoded(values(0));
  Frame damaged = held;
  damaged[0] ^= 1;
  const std::vector<float> elements = values(1);
  const ConstArray plain{elements.data(), elements.size(), DType::f32};
  for (const Op op : {Op::sum, Op::max}) {
    make(true, op);
    write_when_asked();
    Frame out = room();
    const std::function<void(const Frame&)> calls[] = {
        [&](const Frame& other) { kernel_->add(part(0), held, other, out); },
        [&](const Frame& other) { kernel_->add_plain(part(0), other, plain, out); }};
    for (const auto& call : calls) {
      call(held);  // all buffers are there from now on
      bool is_asked = false;
      fake::enqueue(stream_, [&] { return is_asked = true; });
      EXPECT_THROW(call(damaged), Error);
      EXPECT_TRUE(is_asked) << name_of(op);
      cudaStreamSynchronize(stream_);
    }
  }
}

}  // namespace
}  // namespace laconic::device_ahead_test
