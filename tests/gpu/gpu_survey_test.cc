// The survey on a real device against the CPU. Skipped, with the reason, where there is none.
#include <gtest/gtest.h>

#include "collective/operate.h"
#include "collective/sample.h"
#include "core/error.h"
#include "core/extreme.h"
#include "gpu/device.h"
#include "gpu/survey.h"
#include "gpu/survey_cases.h"

namespace laconic::test {
namespace {

class GpuSurvey : public OnDevice<testing::TestWithParam<DType>> {};
class GpuSurveyOfFloats : public GpuSurvey {};

/// An array on the device, as far from a multiple of 16 bytes as the one it was copied from.
class DeviceArray {
 public:
  explicit DeviceArray(const Array& x) : like_(x), memory_(x.bytes.data(), x.bytes.size()) {}
  [[nodiscard]] MutArray view() const { return {memory_.data() + like_.offset, like_.count, like_.dtype}; }
  [[nodiscard]] Array fetched() const {
    must(cudaStreamSynchronize(nullptr));
    Array x = like_;
    x.bytes = memory_.bytes(x.bytes.size());
    return x;
  }

 private:
  Array like_;
  DeviceMemory memory_;
};

/// What call(Result*) leaves in device memory.
template <class Result, class F>
Result result_of(F call) {
  const DeviceMemory memory(sizeof(Result));
  call(memory.as<Result>());
  must(cudaStreamSynchronize(nullptr));
  Result r;
  must(cudaMemcpy(&r, memory.data(), sizeof r, cudaMemcpyDeviceToHost));
  return r;
}

TEST_P(GpuSurveyOfFloats, ScansAndCountsAsTheCpu) {
  for (const Kind kind : all_kinds)
    for (Place at : places) {
      if (at.count > 40000) at.count = 3000017;
      SCOPED_TRACE(describe(GetParam(), kind, at));
      const Array x = placed(GetParam(), kind, at);
      const DeviceArray d(x);
      expect_same(scan(x.view()), result_of<Range>([&](Range* r) { gpu::scan(d.view(), r, nullptr); }));
      for (const Beyond& what : questions_about(x)) {
        const auto got =
            result_of<Outliers>([&](Outliers* r) { gpu::count_outliers(d.view(), what.limit, what.fill, r, nullptr); });
        expect_same(count_outliers(x.view(), what.limit, what.fill), got);
      }
    }
}

TEST_P(GpuSurveyOfFloats, DividesAsTheCpu) {
  for (const Kind kind : all_kinds)
    for (const Place& at : places)
      for (const int divisor : {1, 2, 3, 7, 1000, 2147483647}) {
        SCOPED_TRACE(describe(GetParam(), kind, at) + " by " + std::to_string(divisor));
        Array x = placed(GetParam(), kind, at);
        const DeviceArray d(x);
        gpu::divide(d.view(), divisor, nullptr);
        divide(x.view(), divisor);
        ASSERT_TRUE(x == d.fetched());
      }
}

/// The same results from a graph that is launched twice: nothing inside allocates or waits.
TEST_P(GpuSurveyOfFloats, IsCapturedIntoGraphs) {
  const Array x = placed(GetParam(), Kind::fill_runs, {300000, 1});
  const DeviceArray d(x);
  const DeviceMemory range(sizeof(Range));
  const DeviceMemory outliers(sizeof(Outliers));
  cudaStream_t stream = nullptr;
  must(cudaStreamCreate(&stream));
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  gpu::scan(d.view(), range.as<Range>(), stream);
  gpu::count_outliers(d.view(), 2, x.value(0), outliers.as<Outliers>(), stream);
  gpu::divide(d.view(), 1, stream);
  gpu::take_extreme(Op::max, d.view(), d.view(), stream);
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t run = nullptr;
  must(cudaGraphInstantiate(&run, graph, 0));
  for (int i = 0; i < 2; ++i) must(cudaGraphLaunch(run, stream));
  must(cudaStreamSynchronize(stream));
  expect_same(scan(x.view()), result_of<Range>([&](Range* r) {
                must(cudaMemcpy(r, range.data(), sizeof *r, cudaMemcpyDeviceToDevice));
              }));
  expect_same(count_outliers(x.view(), 2, x.value(0)), result_of<Outliers>([&](Outliers* r) {
                must(cudaMemcpy(r, outliers.data(), sizeof *r, cudaMemcpyDeviceToDevice));
              }));
  EXPECT_TRUE(x == d.fetched());
  cudaGraphExecDestroy(run);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

INSTANTIATE_TEST_SUITE_P(All, GpuSurveyOfFloats, testing::ValuesIn(float_dtypes),
                         [](const auto& p) { return std::string(laconic::name_of(p.param)); });

TEST_P(GpuSurvey, TakesExtremesAsTheCpu) {
  for (std::size_t k = 0; k < all_kinds.size(); ++k)
    for (const Place& at : places)
      for (const Op op : {Op::min, Op::max})
        for (const std::size_t apart : {0U, 1U}) {  // of the two arrays' places
          SCOPED_TRACE(describe(GetParam(), all_kinds[k], at) + " " + std::string(name_of(op)));
          Array a = placed(GetParam(), all_kinds[k], at);
          const Array b =
              placed(GetParam(), all_kinds[(k * 5 + apart * 3) % all_kinds.size()], {at.count, at.offset + apart}, 2);
          const DeviceArray to(a);
          const DeviceArray from(b);
          gpu::take_extreme(op, to.view(), from.view(), nullptr);
          take_extreme(op, a.view(), b.view());
          ASSERT_TRUE(a == to.fetched());
        }
}

TEST_P(GpuSurvey, GathersTheChunksOfASample) {
  for (const Place& at : {Place{0, 0}, Place{5, 1}, Place{16 * 2048, 0}, Place{100000, 3}}) {
    SCOPED_TRACE(describe(GetParam(), Kind::mixed, at));
    const Array x = placed(GetParam(), Kind::mixed, at);
    Array want(GetParam(), gpu::sample_elements(at.count));
    const DeviceArray d(x);
    const DeviceArray out(want);
    gpu::gather_sample(d.view(), out.view(), nullptr);
    for (std::size_t i = 0; i < want.count; ++i)
      want.set_bits(i, x.bits(Sample{at.count}.first(i / frame::chunk_values) + i % frame::chunk_values));
    EXPECT_TRUE(want == out.fetched());
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuSurvey, testing::ValuesIn(all_dtypes),
                         [](const auto& p) { return std::string(laconic::name_of(p.param)); });

/// More elements than 32 bits can number; they are equal but for one.
TEST(GpuSurveyOfMany, LooksBehindFourGi) {
  const std::string why = no_device();
  if (!why.empty()) GTEST_SKIP() << why;
  constexpr std::size_t count = (std::size_t{1} << 32) + 100001;
  std::size_t free = 0;
  std::size_t total = 0;
  must(cudaMemGetInfo(&free, &total));
  if (free < 2 * count + (std::size_t{1} << 28)) GTEST_SKIP() << "not enough memory on the device";
  const DeviceMemory memory(2 * count);
  must(cudaMemset(memory.data(), 0x3F, 2 * count));
  const std::uint16_t large = bf16_of_f32(7);
  must(cudaMemcpy(memory.data() + 2 * (count - 50001), &large, 2, cudaMemcpyHostToDevice));
  const ConstArray x{memory.data(), count, DType::bf16};
  const Range want{f32_of_bf16(0x3F3F), 7, count, 0};
  expect_same(want, result_of<Range>([&](Range* r) { gpu::scan(x, r, nullptr); }));
  const auto found = result_of<Outliers>([&](Outliers* r) { gpu::count_outliers(x, 1, 7, r, nullptr); });
  EXPECT_EQ(found.count, 1U);
  EXPECT_EQ(found.fills, 1U);
}

/// What is refused before anything is launched needs no device.
TEST(GpuSurveyArguments, AreChecked) {
  const auto code_of = [](auto call) {
    try {
      call();
    } catch (const Error& e) {
      return e.code();
    }
    return Code::ok;
  };
  alignas(16) std::uint8_t memory[64] = {};
  Range range;
  Outliers outliers;
  const auto scan = [&](DType t, const void* data, Range* r) {
    return code_of([&] { gpu::scan({data, 8, t}, r, nullptr); });
  };
  EXPECT_EQ(scan(DType::i32, memory, &range), Code::unsupported);
  EXPECT_EQ(scan(DType::f32, memory + 2, &range), Code::invalid_argument);
  EXPECT_EQ(scan(DType::f32, nullptr, &range), Code::invalid_argument);
  EXPECT_EQ(scan(DType::f32, memory, nullptr), Code::invalid_argument);
  EXPECT_EQ(scan(static_cast<DType>(77), memory, &range), Code::invalid_argument);
  EXPECT_EQ(code_of([&] { gpu::count_outliers({memory, 8, DType::u64}, 0, 1, &outliers, nullptr); }),
            Code::unsupported);
  EXPECT_EQ(code_of([&] { gpu::divide({memory, 8, DType::f32}, 0, nullptr); }), Code::invalid_argument);
  EXPECT_EQ(code_of([&] { gpu::divide({memory, 8, DType::i32}, 2, nullptr); }), Code::unsupported);
  EXPECT_EQ(code_of([&] { gpu::divide({memory, 0, DType::f32}, 2, nullptr); }), Code::ok);
  const auto extreme = [&](Op op, ConstArray b) {
    return code_of([&] { gpu::take_extreme(op, {memory, 8, DType::i32}, b, nullptr); });
  };
  EXPECT_EQ(extreme(Op::sum, {memory, 8, DType::i32}), Code::invalid_argument);
  EXPECT_EQ(extreme(Op::min, {memory, 8, DType::u32}), Code::invalid_argument);
  EXPECT_EQ(extreme(Op::min, {memory, 7, DType::i32}), Code::invalid_argument);
  EXPECT_EQ(code_of([&] { gpu::gather_sample({memory, 8, DType::f32}, {memory, 7, DType::f32}, nullptr); }),
            Code::invalid_argument);
}

}  // namespace
}  // namespace laconic::test
