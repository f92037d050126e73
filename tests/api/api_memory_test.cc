// Memory that runs out in a rank's call, at each place where that needs some: no later call of one rank may be taken
// for another one of the others.
#include <gtest/gtest.h>
#include <laconic/laconic.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "api/handle.h"
#include "transport/threads.h"

namespace {

thread_local long allocations_left = -1;  // of this thread until one fails; negative: none does
thread_local bool one_failed = false;

void* allocate(std::size_t bytes) {
  if (allocations_left >= 0 && allocations_left-- == 0) {
    one_failed = true;
    throw std::bad_alloc();
  }
  if (void* p = std::malloc(bytes == 0 ? 1 : bytes)) return p;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

namespace laconic::api_memory_test {
namespace {

constexpr std::size_t count = 1000;

/// What a rank's two calls were told, and the first element of their results.
struct Told {
  int code[2] = {-1, -1};
  float result[2] = {0, 0};
  bool failed = false;
};

using OneCall = std::function<int(laconic_comm*, int rank, const std::vector<float>& x, std::vector<float>& y)>;

laconic_options compressed() {
  laconic_options o = LACONIC_OPTIONS_INIT;
  o.mode = LACONIC_MODE_COMPRESSED;
  o.bound = "1e-3";
  return o;
}

/// Two such calls of two ranks. In its first one rank 0 lacks memory after so many allocations.
std::vector<Told> two_calls(const OneCall& call, long allocations) {
  std::vector<Told> told(2);
  const auto body = [&](Transport& t) {
    laconic_comm comm(t.duplicate(), Options{});
    const int rank = t.rank();
    Told& mine = told[static_cast<std::size_t>(rank)];
    std::vector<float> x(count), y(count);
    for (const int k : {0, 1}) {
      x.assign(count, static_cast<float>((k == 0 ? 10 : 100) + rank));
      if (rank == 0 && k == 0) {
        one_failed = false;
        allocations_left = allocations;
      }
      mine.code[k] = call(&comm, rank, x, y);
      allocations_left = -1;
      mine.failed = one_failed;
      mine.result[k] = y[0];
    }
    // The other one waits for the first call still.
    if (mine.code[1] != LACONIC_OK) throw Error(Code::transport, "no call any more");
  };
  try {
    run_ranks(2, body, 20);
  } catch (const Error&) {  // the codes say what is of interest
  }
  return told;
}

/// The last of so many allocations on rank 0 that it did not lack any.
void expect_no_mixture(const OneCall& call, const std::vector<float>& first, const std::vector<float>& second) {
  for (long k = 0;; ++k) {
    SCOPED_TRACE("allocation " + std::to_string(k));
    const std::vector<Told> told = two_calls(call, k);
    for (std::size_t r = 0; r < 2; ++r) {
      if (told[r].code[0] == LACONIC_OK) {
        EXPECT_NEAR(told[r].result[0], first[r], 2e-3);
      }
      if (told[r].code[1] == LACONIC_OK) {
        EXPECT_NEAR(told[r].result[1], second[r], 2e-3);
      }
    }
    if (!told[0].failed) {
      EXPECT_GT(k, 0);
      for (const Told& t : told) EXPECT_EQ(t.code[1], LACONIC_OK);
      return;
    }
  }
}

TEST(ScarceMemoryInTheInterface, ANonBlockingCallThatIsNotMadeIsTheLast) {
  expect_no_mixture(
      [](laconic_comm* comm, int, const std::vector<float>& x, std::vector<float>& y) {
        const laconic_options o = compressed();
        laconic_request* request = nullptr;
        const int code = laconic_iallreduce(x.data(), y.data(), count, LACONIC_F32, LACONIC_SUM, comm, &o, &request);
        return code != LACONIC_OK ? code : laconic_wait(&request);
      },
      {21, 21}, {201, 201});
}

TEST(ScarceMemoryInTheInterface, NoMessageIsTakenForAnother) {
  for (const int sender : {0, 1}) {
    const float from = static_cast<float>(sender);
    const std::vector<float> first(2, 10 + from), second(2, 100 + from);
    expect_no_mixture(
        [=](laconic_comm* comm, int rank, const std::vector<float>& x, std::vector<float>& y) {
          const laconic_options o = compressed();
          if (rank != sender) return laconic_recv(y.data(), count, LACONIC_F32, sender, 5, nullptr, comm, &o);
          y = x;
          return laconic_send(x.data(), count, LACONIC_F32, 1 - sender, 5, comm, &o);
        },
        first, second);
  }
}

// Rank 0 has no place for its request: the others hear of it, and the next call is everybody's again.
TEST(NonBlocking, ACallWithoutARequestFailsOnAllRanks) {
  run_ranks(
      2,
      [](Transport& t) {
        laconic_comm comm(t.duplicate(), Options{});
        const std::vector<float> x(count, 1);
        std::vector<float> y(count);
        laconic_request* request = nullptr;
        const auto call = [&](laconic_request** r) {
          const int code = laconic_iallreduce(x.data(), y.data(), count, LACONIC_F32, LACONIC_SUM, &comm, nullptr, r);
          return code != LACONIC_OK ? code : laconic_wait(&request);
        };
        EXPECT_EQ(call(t.rank() == 0 ? nullptr : &request), LACONIC_INVALID_ARGUMENT);
        EXPECT_NE(std::string(laconic_last_error()).find("request is null"), std::string::npos) << laconic_last_error();
        EXPECT_EQ(call(&request), LACONIC_OK);
        EXPECT_EQ(y[0], 2);
      },
      20);
}

}  // namespace
}  // namespace laconic::api_memory_test
