#include "core/worker.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/log.h"
#include "core/parallel.h"

namespace laconic::worker_test {
namespace {

/// While it lives no thread can be started: none gets the stack that it would have by default.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&usual_);
    pthread_attr_t huge;
    pthread_getattr_default_np(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 50);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
  ~NoThreads() {
    pthread_setattr_default_np(&usual_);
    pthread_attr_destroy(&usual_);
  }

 private:
  pthread_attr_t usual_;
};

TEST(Worker, RunsJobsInOrderOnAThreadOfItsOwnAndWaitsForThemAtTheEnd) {
  std::vector<int> done;
  std::promise<void> go;
  {
    Worker worker;
    EXPECT_TRUE(worker.is_idle());
    worker.submit([&] { go.get_future().wait(); });
    for (int i = 0; i < 100; ++i)
      worker.submit([&done, i, caller = std::this_thread::get_id()] {
        if (std::this_thread::get_id() != caller) done.push_back(i);
      });
    EXPECT_FALSE(worker.is_idle());
    go.set_value();
  }
  ASSERT_EQ(done.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], i);
}

TEST(Worker, WhatAJobHeldMayComeBackWhenItEnds) {
  std::promise<void> ended;
  bool here = false, idle = true;
  {
    Worker worker;
    const auto come_back = [&](const int* held) {
      delete held;
      here = worker.runs_here();
      idle = worker.is_idle();
      worker.submit([&] { ended.set_value(); });
    };
    worker.submit([held = std::shared_ptr<int>(new int, come_back)] { EXPECT_NE(held, nullptr); });
    ended.get_future().wait();
  }
  EXPECT_TRUE(here);
  EXPECT_FALSE(idle);
}

TEST(Worker, WithoutAThreadJobsRunWhereTheyAreSubmitted) {
  std::string said;
  set_log(LogLevel::warning, [&](LogLevel, std::string_view text) { said = text; });
  Worker worker;
  std::vector<std::thread::id> ran_on;
  const auto job = [&] { ran_on.push_back(std::this_thread::get_id()); };
  {
    const NoThreads guard;
    EXPECT_THROW(std::thread([] {}).join(), std::system_error);
    worker.submit(job);
    worker.submit(job);
    EXPECT_EQ(ran_on, std::vector(2, std::this_thread::get_id()));
    EXPECT_TRUE(worker.is_idle());
  }
  EXPECT_NE(said.find("no thread"), std::string::npos) << said;
  std::promise<std::thread::id> later;  // threads are to be had again
  worker.submit([&] { later.set_value(std::this_thread::get_id()); });
  EXPECT_NE(later.get_future().get(), std::this_thread::get_id());
  set_log(LogLevel::off, {});
}

TEST(Worker, KnowsWhoIsItsJob) {
  std::promise<void> begun, go;
  std::vector<bool> here;
  Worker worker;
  const auto job = [&] { here.push_back(worker.runs_here()); };
  {
    const NoThreads guard;
    worker.submit(job);
  }
  EXPECT_FALSE(worker.runs_here());
  worker.submit([&] {
    job();
    begun.set_value();
    go.get_future().wait();
  });
  begun.get_future().wait();
  EXPECT_FALSE(worker.runs_here()) << "it is busy elsewhere";
  go.set_value();
  while (!worker.is_idle()) std::this_thread::yield();
  EXPECT_EQ(here, std::vector(2, true));
}

// Nobody's job is lost or doubled, whoever runs it.
TEST(Worker, WithoutAThreadManyMaySubmit) {
  Worker worker;
  std::atomic<int> running = 0, most = 0, jobs = 0;
  std::vector<std::thread> callers;
  std::promise<void> go;
  const std::shared_future<void> ready = go.get_future().share();
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] {
      ready.wait();
      for (int k = 0; k < 50; ++k)
        worker.submit([&] {
          const int now = ++running;
          if (now > most) most = now;
          ++jobs;
          --running;
        });
    });
  {
    const NoThreads guard;
    go.set_value();
    for (std::thread& caller : callers) caller.join();
  }
  EXPECT_EQ(jobs, 200);
  EXPECT_EQ(most, 1);
}

TEST(ParallelRanges, WithoutThreadsTheCallerDoesAll) {
  const NoThreads guard;
  std::vector<int> times(1000);
  parallel_ranges(times.size(), 7, [&](std::size_t, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) ++times[i];
  });
  EXPECT_EQ(times, std::vector(1000, 1));
}

}  // namespace
}  // namespace laconic::worker_test
