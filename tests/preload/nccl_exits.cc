// A program that goes on with NCCL while it exits: in an exit handler, and in the destructor of a static object that
// was made before the first call. One thread has all the GPUs, as in a group it can. Prints what is wrong, or "all as
// they should be".
#include <cstdlib>
#include <memory>
#include <vector>

#include "nccl_array.h"

namespace {

constexpr int ranks = 2;
constexpr float bound = 1e-2F;
ncclComm_t comms[ranks];

/// Within the bound, and not exact, which it would be if it were NCCL's own.
void sum(const char* when) {
  std::vector<std::unique_ptr<Array>> arrays;
  for (int r = 0; r < ranks; ++r) {
    cudaSetDevice(r);
    arrays.push_back(std::make_unique<Array>(values_of(r, count), nullptr));
  }
  ncclGroupStart();
  for (int r = 0; r < ranks; ++r) {
    float* const x = arrays[static_cast<std::size_t>(r)]->at(0);
    ncclAllReduce(x, x, count, ncclFloat32, ncclSum, comms[r], nullptr);
  }
  must(ncclGroupEnd() == ncclSuccess, std::string(when) + ": the sum failed");
  for (int r = 0; r < ranks; ++r) {
    cudaSetDevice(r);
    const std::vector<float> got = arrays[static_cast<std::size_t>(r)]->contents();
    float most = 0;
    for (std::size_t i = 0; i < count; ++i) most = std::fmax(most, std::fabs(got[i] - value(0, i) - value(1, i)));
    must(most <= bound && most > bound / 100, std::string(when) + ": the sum is off by " + std::to_string(most));
  }
}

const struct AtTheEnd {
  AtTheEnd() = default;
  AtTheEnd(const AtTheEnd&) = delete;
  AtTheEnd& operator=(const AtTheEnd&) = delete;
  ~AtTheEnd() {
    sum("in a destructor");
    ncclGroupStart();
    for (const ncclComm_t comm : comms) ncclCommDestroy(comm);
    must(ncclGroupEnd() == ncclSuccess, "destroying communicators failed");
    if (wrong == 0) std::printf("all as they should be\n");
    std::fflush(stdout);
  }
} at_the_end;

}  // namespace

int main() {
  std::atexit([] { sum("in an exit handler"); });
  must(ncclCommInitAll(comms, ranks, nullptr) == ncclSuccess, "ncclCommInitAll failed");
  sum("before the end");
  return 0;
}
