// The real kernels on a real device against the CPU codec, byte for byte. Skipped, with the reason, where there is
// none.
#include <gtest/gtest.h>

#include "codec/slice_cases.h"
#include "gpu/codec.h"
#include "gpu/device.h"

namespace laconic::test {
namespace {

class GpuCodec : public OnDevice<testing::TestWithParam<DType>> {};

gpu::Report report_of(const DeviceMemory& report) {
  must(cudaStreamSynchronize(nullptr));
  gpu::Report r;
  must(cudaMemcpy(&r, report.data(), sizeof r, cudaMemcpyDeviceToHost));
  return r;
}

struct DeviceFrame {
  std::uint32_t faults = 0;
  std::vector<std::uint8_t> bytes;
};

/// Runs call(out, report) on a frame of this capacity.
template <class F>
DeviceFrame into_frame(std::size_t capacity, F call) {
  const DeviceMemory out(capacity);
  const DeviceMemory report(sizeof(gpu::Report));
  call(gpu::FrameOut{out.data(), capacity}, report.as<gpu::Report>());
  const gpu::Report r = report_of(report);
  DeviceFrame f{r.faults, {}};
  if (r.faults == 0) f.bytes = out.bytes(r.bytes);
  return f;
}

DeviceFrame device_encode(const Array& x, const Grid& g) {
  const DeviceMemory from(x.data(), x.size_bytes());
  const DeviceMemory work(gpu::encode_workspace(x.count));
  return into_frame(frame::capacity(x.dtype, x.count), [&](const gpu::FrameOut& out, gpu::Report* report) {
    gpu::encode({from.data(), x.count, x.dtype}, g, out, {work.data(), work.size()}, report, nullptr);
  });
}

std::uint32_t device_decode(const std::vector<std::uint8_t>& f, const Grid& g, std::uint32_t operands, Array& y,
                            std::uint32_t divisor = 1) {
  const DeviceMemory from(f.data(), f.size());
  const DeviceMemory to(y.size_bytes());
  const DeviceMemory work(gpu::decode_workspace(y.count));
  const DeviceMemory report(sizeof(gpu::Report));
  gpu::decode({from.data(), f.size(), g, operands}, {to.data(), y.count, y.dtype}, {work.data(), work.size()},
              report.as<gpu::Report>(), nullptr, divisor);
  const std::uint32_t faults = report_of(report).faults;
  if (y.count > 0) must(cudaMemcpy(y.data(), to.data(), y.size_bytes(), cudaMemcpyDeviceToHost));
  return faults;
}

struct DeviceOperand {
  const std::vector<std::uint8_t>* frame;
  std::uint32_t operands = 1;
};

DeviceFrame device_sum(const Array& like, const Array* x, const Grid& g, const std::vector<DeviceOperand>& operands) {
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  std::vector<gpu::FrameIn> in;
  for (const DeviceOperand& o : operands) {
    memory.push_back(std::make_unique<DeviceMemory>(o.frame->data(), o.frame->size()));
    in.push_back({memory.back()->data(), o.frame->size(), g, o.operands});
  }
  const DeviceMemory from(x != nullptr ? x->data() : like.data(), like.size_bytes());
  const DeviceMemory work(gpu::sum_workspace(like.dtype, like.count, in.size() + (x != nullptr ? 1 : 0)));
  return into_frame(frame::sum_capacity(like.dtype, like.count), [&](const gpu::FrameOut& out, gpu::Report* report) {
    const gpu::Workspace workspace{work.data(), work.size()};
    if (x == nullptr) return gpu::sum(in, like.count, out, workspace, report, nullptr);
    gpu::encode_sum({from.data(), like.count, like.dtype}, in, out, workspace, report, nullptr);
  });
}

/// Those that this device has kernels for.
std::vector<Grid> coded_grids_of(DType t, std::uint64_t operands) {
  std::vector<Grid> grids;
  for (const Grid& g : grids_of(t))
    if (gpu::can_code(g, operands)) grids.push_back(g);
  return grids;
}

TEST_P(GpuCodec, EncodesAndDecodesAsTheCpu) {
  const DType t = GetParam();
  for (const Grid& g : coded_grids_of(t, 1))
    for (const Kind kind : all_kinds)
      for (const std::size_t count : {0U, 1U, 31U, 2047U, 2048U, 2049U, 100001U}) {
        SCOPED_TRACE(describe(t, g, kind, count));
        const Array x = sample(t, kind, count);
        const Outcome expected = encoded(x, g);
        const DeviceFrame got = device_encode(x, g);
        ASSERT_EQ(got.faults, 0U);
        ASSERT_TRUE(expected.frame == got.bytes);
        Array y(t, count);
        ASSERT_EQ(device_decode(expected.frame, g, 1, y), 0U);
        ASSERT_TRUE(decoded(x, expected) == y);
      }
}

TEST_P(GpuCodec, AddsAsTheCpu) {
  const DType t = GetParam();
  for (const Grid& g : coded_grids_of(t, 4))
    for (std::size_t k = 0; k < all_kinds.size() && !g.lossless(); ++k)
      for (const std::size_t other : {k, k + 5}) {
        constexpr std::size_t count = 70001;
        const Array x = sample(t, all_kinds[k], count);
        const Array y = sample(t, all_kinds[other % all_kinds.size()], count, 2);
        SCOPED_TRACE(describe(t, g, all_kinds[k], count) + " + " +
                     std::string(name_of(all_kinds[other % all_kinds.size()])));
        const Outcome a = encoded(x, g);
        const Outcome b = encoded(y, g);
        const Outcome sum = added(x, a, b);
        ASSERT_TRUE(sum.frame == device_sum(x, nullptr, g, {{&a.frame}, {&b.frame}}).bytes);
        ASSERT_TRUE(encode_added(y, a).frame == device_sum(x, &y, g, {{&a.frame}}).bytes);
        if (!sum_fits(g, 4)) continue;
        const Outcome four = added(x, added(x, sum, a), b);
        ASSERT_TRUE(four.frame == device_sum(x, nullptr, g, {{&a.frame}, {&b.frame}, {&a.frame}, {&b.frame}}).bytes);
        Array back(t, count);
        ASSERT_EQ(device_decode(four.frame, g, 4, back, 4), 0U);
        ASSERT_TRUE(decoded(x, four, 1, 4) == back);
      }
}

/// Reports apart, and as one memset clears them with the workspace.
TEST_P(GpuCodec, DecodesWhatItWrites) {
  const DType t = GetParam();
  for (const Grid& g : coded_grids_of(t, 2))
    for (const Kind kind : all_kinds)
      for (const std::size_t count : {1U, 2049U, 100001U})
        for (const bool adds : {false, true}) {
          if (adds && (g.lossless() || !sum_fits(g, 2))) continue;
          SCOPED_TRACE(describe(t, g, kind, count) + (adds ? ", added" : ""));
          const Array x = sample(t, kind, count);
          const Outcome frame = encoded(x, g);
          const DeviceMemory from(x.data(), x.size_bytes());
          const DeviceMemory other(frame.frame.data(), frame.frame.size());
          const DeviceMemory to(x.size_bytes());
          const std::size_t bytes = std::max(gpu::encode_workspace(count), gpu::sum_workspace(t, count, 2));
          const DeviceMemory memory(4 * sizeof(gpu::Report) + bytes);
          const DeviceMemory out(frame::sum_capacity(t, count));
          auto* const reports = memory.as<gpu::Report>();
          const std::uint32_t operands = adds ? 2 : 1;
          for (const int first : {0, 2}) {
            const ConstArray array{from.data(), count, t};
            const gpu::Values values{{to.data(), count, t}, reports + first, operands};
            const gpu::FrameOut where{out.data(), out.size(), first == 0, values};
            const gpu::Workspace work{reports + 4, bytes};
            const gpu::FrameIn in{other.data(), frame.frame.size(), g};
            if (adds) gpu::encode_sum(array, {&in, 1}, where, work, reports + first + 1, nullptr);
            if (!adds) gpu::encode(array, g, where, work, reports + first + 1, nullptr);
            must(cudaStreamSynchronize(nullptr));
            std::array<gpu::Report, 2> found;
            must(cudaMemcpy(found.data(), reports + first, sizeof found, cudaMemcpyDeviceToHost));
            ASSERT_EQ(found[0].faults, 0U);
            ASSERT_EQ(found[1].faults, 0U);
            Array got(t, count);
            must(cudaMemcpy(got.data(), to.data(), to.size(), cudaMemcpyDeviceToHost));
            Array expected(t, count);
            ASSERT_EQ(device_decode(out.bytes(found[1].bytes), g, operands, expected, operands), 0U);
            ASSERT_TRUE(expected == got);
            must(cudaMemset(to.data(), 0xA5, to.size()));
          }
        }
}

/// The same frame from a graph that is launched twice: nothing inside allocates or waits.
TEST_P(GpuCodec, IsCapturedIntoGraphs) {
  const DType t = GetParam();
  const Grid g = make_grid(t, 1e-2, 1.3);
  const Array x = sample(t, Kind::mixed, 300000);
  const DeviceMemory from(x.data(), x.size_bytes());
  const DeviceMemory work(gpu::encode_workspace(x.count));
  const DeviceMemory out(frame::capacity(t, x.count));
  const DeviceMemory report(sizeof(gpu::Report));
  cudaStream_t stream = nullptr;
  must(cudaStreamCreate(&stream));
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  gpu::encode({from.data(), x.count, t}, g, gpu::FrameOut{out.data(), out.size()}, {work.data(), work.size()},
              report.as<gpu::Report>(), stream);
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t run = nullptr;
  must(cudaGraphInstantiate(&run, graph, 0));
  for (int i = 0; i < 2; ++i) must(cudaGraphLaunch(run, stream));
  must(cudaStreamSynchronize(stream));
  const gpu::Report r = report_of(report);
  EXPECT_EQ(r.faults, 0U);
  EXPECT_TRUE(encoded(x, g).frame == out.bytes(r.bytes));
  cudaGraphExecDestroy(run);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST_P(GpuCodec, FindsDamage) {
  const DType t = GetParam();
  const Grid g = make_grid(t, 1e-2, 1.3);
  const Array x = sample(t, Kind::smooth, 50000);
  std::vector<std::uint8_t> f = encoded(x, g).frame;
  const DeviceMemory work(gpu::decode_workspace(0));
  const DeviceMemory report(sizeof(gpu::Report));
  for (const bool damage : {false, true}) {
    if (damage) f[f.size() / 2] ^= 4;
    const DeviceMemory from(f.data(), f.size());
    gpu::check({from.data(), f.size(), g, 1}, {work.data(), work.size()}, report.as<gpu::Report>(), nullptr);
    EXPECT_EQ(report_of(report).faults != 0, damage);
  }
}

INSTANTIATE_TEST_SUITE_P(Floats, GpuCodec, testing::Values(DType::f32, DType::f64, DType::f16, DType::bf16),
                         [](const auto& p) { return std::string(laconic::name_of(p.param)); });

/// What is refused before anything is launched needs no device.
TEST(GpuCodecArguments, AreChecked) {
  const auto code_of = [](auto call) {
    try {
      call();
    } catch (const Error& e) {
      return e.code();
    }
    return Code::ok;
  };
  alignas(16) std::uint8_t memory[64] = {};
  gpu::Report report;
  const Grid g = make_grid(DType::f32, 1e-2, 1);
  const gpu::FrameOut out{memory, sizeof memory};
  const auto encode = [&](DType t, const void* data, const Grid& grid, const gpu::FrameOut& to) {
    return code_of([&] { gpu::encode({data, 8, t}, grid, to, {memory, 0}, &report, nullptr); });
  };
  EXPECT_EQ(encode(DType::f64, memory, g, out), Code::invalid_argument);
  EXPECT_EQ(encode(DType::i32, memory, make_grid(DType::i32, 0, 1), out), Code::unsupported);
  EXPECT_EQ(encode(DType::f32, memory + 2, g, out), Code::invalid_argument);
  EXPECT_EQ(encode(DType::f32, memory, g, {memory + 8, 56}), Code::invalid_argument);
  EXPECT_EQ(encode(DType::f32, memory, g, {memory, 20}), Code::too_small);
  EXPECT_EQ(encode(DType::f32, memory, g, out), Code::too_small) << "workspace";
  const gpu::Values values{{memory, 8, DType::f32}, &report, 1};
  const auto with = [&](const gpu::Values& v) { return encode(DType::f32, memory, g, {memory, 64, true, v}); };
  EXPECT_EQ(with(values), Code::too_small) << "workspace";
  EXPECT_EQ(with({{memory, 7, DType::f32}, &report, 1}), Code::invalid_argument);
  EXPECT_EQ(with({{memory, 8, DType::f16}, &report, 1}), Code::invalid_argument);
  EXPECT_EQ(with({{memory, 8, DType::f32}, &report, 0}), Code::invalid_argument);
  EXPECT_EQ(with({{nullptr, 8, DType::f32}, &report, 1}), Code::invalid_argument);
  const std::vector<gpu::FrameIn> one = {{memory, 64, g, 1}};
  EXPECT_EQ(code_of([&] { gpu::sum(one, 8, out, {memory, 0}, &report, nullptr); }), Code::invalid_argument);
  const std::vector<gpu::FrameIn> unlike = {{memory, 64, g, 1}, {memory, 64, make_grid(DType::f32, 1e-3, 1), 1}};
  EXPECT_EQ(code_of([&] { gpu::sum(unlike, 8, out, {memory, 0}, &report, nullptr); }), Code::mismatch);
}

}  // namespace
}  // namespace laconic::test
