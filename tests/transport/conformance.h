// What every transport must do, whatever carries it. Called on all ranks of a group.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "core/error.h"
#include "transport/transport.h"

namespace laconic::conformance {

using Buffer = std::vector<std::uint8_t>;

/// Contents that tell who sent it to whom, and which message it was.
inline Buffer message(int from, int to, int nth, std::size_t length) {
  Buffer b(length);
  for (std::size_t i = 0; i < length; ++i) {
    b[i] = static_cast<std::uint8_t>(static_cast<std::size_t>(from * 31 + to * 7 + nth * 3) + i * 13);
  }
  return b;
}

/// Everyone to everyone at once, lengths from nothing to beyond any eager limit, into buffers that are too big.
inline void everyone_to_everyone(Transport& t, std::size_t length) {
  const auto n = static_cast<std::size_t>(t.size());
  std::vector<Buffer> out(n), in(n, Buffer(length + 5));
  std::vector<Request> sends(n), recvs(n);
  for (std::size_t p = 0; p < n; ++p) {
    if (static_cast<int>(p) == t.rank()) continue;
    recvs[p] = t.irecv(in[p], static_cast<int>(p), 3);
    out[p] = message(t.rank(), static_cast<int>(p), 0, length);
    sends[p] = t.isend(out[p], static_cast<int>(p), 3);
  }
  t.poll();
  for (std::size_t p = 0; p < n; ++p) {
    recvs[p].wait();
    sends[p].wait();
    if (static_cast<int>(p) == t.rank()) continue;
    ASSERT_EQ(recvs[p].received(), length);
    in[p].resize(length);
    ASSERT_EQ(in[p], message(static_cast<int>(p), t.rank(), 0, length)) << "from " << p << " to " << t.rank();
  }
}

/// Round the ring: messages of one pair and tag arrive in order, other tags do not disturb them, posted early or late.
inline void order_is_kept(Transport& t) {
  const int next = (t.rank() + 1) % t.size();
  const int previous = (t.rank() + t.size() - 1) % t.size();
  constexpr int many = 20;
  std::vector<Buffer> in(many, Buffer(100)), out;
  std::vector<Request> requests;
  for (int i = 0; i < many / 2; ++i) requests.push_back(t.irecv(in[static_cast<std::size_t>(i)], previous, i % 2));
  for (int i = 0; i < many; ++i) out.push_back(message(t.rank(), next, i, static_cast<std::size_t>(i) * 5));
  for (int i = 0; i < many; ++i) requests.push_back(t.isend(out[static_cast<std::size_t>(i)], next, i % 2));
  for (int i = many / 2; i < many; ++i) {
    Request r = t.irecv(in[static_cast<std::size_t>(i)], previous, i % 2);
    while (!r.test()) t.poll();
    EXPECT_EQ(r.received(), static_cast<std::size_t>(i) * 5);
  }
  for (Request& r : requests) r.wait();
  for (int i = 0; i < many; ++i) {
    auto& got = in[static_cast<std::size_t>(i)];
    got.resize(static_cast<std::size_t>(i) * 5);
    EXPECT_EQ(got, message(previous, t.rank(), i, got.size())) << "message " << i;
  }
}

inline void small_exchange(Transport& t) {
  for (int round = 0; round < 10; ++round) {
    const Buffer mine = message(t.rank(), 0, round, 37);
    Buffer all(mine.size() * static_cast<std::size_t>(t.size()));
    t.allgather_small(mine, all);
    Buffer expected;
    for (int r = 0; r < t.size(); ++r) {
      const Buffer theirs = message(r, 0, round, 37);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    ASSERT_EQ(all, expected);
  }
}

/// A duplicate conforms too, and what is sent over one is not received over the other.
inline void duplicate_is_apart(Transport& t) {
  const auto other = t.duplicate();
  const int next = (t.rank() + 1) % t.size();
  const int previous = (t.rank() + t.size() - 1) % t.size();
  const Buffer first = message(t.rank(), next, 1, 50), second = message(t.rank(), next, 2, 50);
  Buffer got_first(50), got_second(50);
  Request a = t.isend(first, next, 0);
  Request b = other->isend(second, next, 0);
  other->irecv(got_second, previous, 0).wait();
  t.irecv(got_first, previous, 0).wait();
  a.wait();
  b.wait();
  EXPECT_EQ(got_first, message(previous, t.rank(), 1, 50));
  EXPECT_EQ(got_second, message(previous, t.rank(), 2, 50));
  order_is_kept(*other);
  small_exchange(*other);
}

/// What a companion sends in a thread of its own is received here, and the other way round; an exchange among all goes
/// on meanwhile. Or there is none.
inline void companion_is_one_with(Transport& t) {
  std::unique_ptr<Transport> other;
  try {
    other = t.companion();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::unsupported);
    return;
  }
  const int next = (t.rank() + 1) % t.size();
  const int previous = (t.rank() + t.size() - 1) % t.size();
  constexpr std::size_t length = 200000;
  const Buffer from_companion = message(t.rank(), next, 1, length), to_companion = message(t.rank(), next, 2, length);
  Buffer got(length), got_by_companion(length);
  std::thread beside([&] {
    Request out = other->isend(from_companion, next, 8), in = other->irecv(got_by_companion, previous, 9);
    while (!in.await(true)) std::this_thread::yield();
    while (!out.await(false)) std::this_thread::yield();
  });
  small_exchange(t);
  Request out = t.isend(to_companion, next, 9), in = t.irecv(got, previous, 8);
  in.wait();
  out.wait();
  beside.join();
  EXPECT_EQ(got, message(previous, t.rank(), 1, length));
  EXPECT_EQ(got_by_companion, message(previous, t.rank(), 2, length));
}

inline void run_all(Transport& t) {
  ASSERT_GE(t.rank(), 0);
  ASSERT_LT(t.rank(), t.size());
  EXPECT_FALSE(t.description().empty());
  for (const std::size_t length : {0U, 1U, 1000U, 300000U}) everyone_to_everyone(t, length);
  order_is_kept(t);
  small_exchange(t);
  duplicate_is_apart(t);
  companion_is_one_with(t);
}

}  // namespace laconic::conformance
