#include "transport/threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/thread.h"

namespace laconic {
namespace {

// Between the ranks of allgather_small; callers' tags are not negative.
constexpr int small_tag = -1;

/// A receive that waits for its message. Lives in its Request; the mailbox only points at it.
struct PostedReceive {
  std::span<std::uint8_t> buffer;
  int from = 0;
  int tag = 0;
  bool done = false;
  std::size_t length = 0;  ///< of the message, also when the buffer was too short for it
};

struct Unexpected {
  int from = 0;
  int tag = 0;
  std::vector<std::uint8_t> bytes;
};

/// What has been sent to one rank, and what it waits for. Both in order of arrival, so matching is first come, first
/// served per sender and tag.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<PostedReceive*> posted;
  std::deque<Unexpected> unexpected;
};

struct Group {
  Group(std::vector<int> node_of_each, double timeout_seconds)
      : boxes(node_of_each.size()), nodes(std::move(node_of_each)), timeout(timeout_seconds), awaited_by(boxes.size()) {
    for (auto& awaited : awaited_by) awaited = Signs::nobody;
  }

  /// The first failure counts; everyone who waits is woken to see it.
  void fail(const std::string& what) {
    {
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = what;
    }
    for (Mailbox& box : boxes) {
      const std::lock_guard lock(box.mutex);
      box.arrived.notify_all();
    }
    std::vector<std::shared_ptr<Group>> all;
    {
      const std::lock_guard lock(failure_mutex);
      all = duplicates;
    }
    for (const auto& group : all) group->fail(what);
  }

  /// The group behind every rank's nth duplicate.
  std::shared_ptr<Group> duplicate(std::size_t nth) {
    const std::lock_guard lock(failure_mutex);
    while (duplicates.size() <= nth) {
      duplicates.push_back(std::make_shared<Group>(nodes, timeout));
      duplicates.back()->failure = failure;
    }
    return duplicates[nth];
  }

  /// Whom rank `me`, which gives up, has not seen waiting or giving up within its patience, in words.
  [[nodiscard]] std::string missing(int me) const {
    const int ranks = static_cast<int>(boxes.size());
    Signs signs(me, ranks);
    const auto seen_all = [&] {
      for (int r = 0; r < ranks; ++r) {
        const int awaited = awaited_by[static_cast<std::size_t>(r)];
        if (awaited != Signs::nobody) signs.hear(r, awaited);
      }
      return signs.of_all();
    };
    static_cast<void>(done_in_time(seen_all, patience_after(timeout)));
    return signs.missing();
  }

  [[nodiscard]] std::optional<std::string> failed() {
    const std::lock_guard lock(failure_mutex);
    return failure;
  }

  std::vector<Mailbox> boxes;
  std::vector<int> nodes;
  double timeout;
  std::vector<std::atomic<int>> awaited_by;  ///< each rank, whom: see Signs
  std::mutex failure_mutex;                  ///< taken after a mailbox's, never before
  std::optional<std::string> failure;
  std::vector<std::shared_ptr<Group>> duplicates;  ///< made by whoever asks first
};

void deliver(PostedReceive& posted, std::span<const std::uint8_t> data) {
  posted.length = data.size();
  const std::size_t fits = std::min(data.size(), posted.buffer.size());
  if (fits != 0) std::memcpy(posted.buffer.data(), data.data(), fits);
  posted.done = true;
}

/// Sends are copied at once, so a send is complete when isend returns.
struct SendState final : Request::State {
  bool test() override { return true; }
  void wait() override {}
};

class RecvState final : public Request::State {
 public:
  RecvState(std::shared_ptr<Group> group, int rank, std::span<std::uint8_t> buffer, int from, int tag)
      : group_(std::move(group)), rank_(rank), posted_{buffer, from, tag} {
    const std::lock_guard lock(box().mutex);
    auto& waiting = box().unexpected;
    const auto match = std::find_if(waiting.begin(), waiting.end(),
                                    [&](const Unexpected& m) { return m.from == from && m.tag == tag; });
    if (match == waiting.end()) {
      box().posted.push_back(&posted_);
      return;
    }
    deliver(posted_, match->bytes);
    waiting.erase(match);
  }

  RecvState(const RecvState&) = delete;
  RecvState& operator=(const RecvState&) = delete;

  ~RecvState() override {
    const std::lock_guard lock(box().mutex);
    std::erase(box().posted, &posted_);
  }

  bool test() override {
    const std::lock_guard lock(box().mutex);
    if (posted_.done) {
      finish();
      return true;
    }
    throw_if_failed();
    return false;
  }

  void wait() override {
    std::atomic<int>& awaited = group_->awaited_by[static_cast<std::size_t>(rank_)];
    awaited = posted_.from;
    if (done_by(Deadline(group_->timeout))) {
      awaited = Signs::nobody;
      return;
    }
    const std::string from = std::to_string(posted_.from);
    throw_timeout(rank_, "a message from rank " + from + group_->missing(rank_), group_->timeout);
  }

  bool await(bool patient) override {
    if (patient || !until_) until_.emplace(group_->timeout);
    if (test()) return true;
    if (until_->passed()) throw_timeout(rank_, "a message from rank " + std::to_string(posted_.from), group_->timeout);
    return false;
  }

  [[nodiscard]] int from() const { return posted_.from; }
  bool done_by(const Deadline& deadline) {
    std::unique_lock lock(box().mutex);
    while (!posted_.done) {
      throw_if_failed();
      if (!deadline.finite()) {
        box().arrived.wait(lock);
      } else if (box().arrived.wait_until(lock, deadline.at()) == std::cv_status::timeout && !posted_.done) {
        return false;
      }
    }
    finish();
    return true;
  }

 private:
  [[nodiscard]] Mailbox& box() { return group_->boxes[static_cast<std::size_t>(rank_)]; }

  void throw_if_failed() {
    if (const auto what = group_->failed()) throw Error(Code::transport, *what);
  }

  void finish() {
    if (posted_.length > posted_.buffer.size()) {
      throw Error(Code::transport, "rank " + std::to_string(rank_) + ": a message of " +
                                       std::to_string(posted_.length) + " bytes from rank " +
                                       std::to_string(posted_.from) + " is longer than the " +
                                       std::to_string(posted_.buffer.size()) + " bytes posted for it");
    }
    received = posted_.length;
  }

  std::shared_ptr<Group> group_;
  int rank_;
  PostedReceive posted_;
  std::optional<Deadline> until_;  ///< of await()
};

class ThreadsTransport final : public Transport {
 public:
  ThreadsTransport(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(group_->boxes.size()); }
  [[nodiscard]] const std::vector<int>& nodes() const override { return group_->nodes; }
  [[nodiscard]] std::string description() const override { return "threads"; }
  void poll() override {}
  std::unique_ptr<Transport> duplicate() override {
    return std::make_unique<ThreadsTransport>(group_->duplicate(duplicates_++), rank_);
  }

  std::unique_ptr<Transport> companion() override { return std::make_unique<ThreadsTransport>(group_, rank_); }

  Request isend(std::span<const std::uint8_t> data, int to, int tag) override {
    Mailbox& box = group_->boxes.at(static_cast<std::size_t>(to));
    const std::lock_guard lock(box.mutex);
    const auto match = std::find_if(box.posted.begin(), box.posted.end(),
                                    [&](const PostedReceive* p) { return p->from == rank_ && p->tag == tag; });
    if (match == box.posted.end()) {
      box.unexpected.push_back({rank_, tag, {data.begin(), data.end()}});
    } else {
      deliver(**match, data);
      box.posted.erase(match);
      box.arrived.notify_all();
    }
    return Request(std::make_unique<SendState>());
  }

  Request irecv(std::span<std::uint8_t> buffer, int from, int tag) override {
    return Request(std::make_unique<RecvState>(group_, rank_, buffer, from, tag));
  }

  void allgather_small(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) override {
    std::vector<std::unique_ptr<RecvState>> receives;
    for (int peer = 0; peer < size(); ++peer) {
      const auto place = all.subspan(static_cast<std::size_t>(peer) * mine.size(), mine.size());
      if (peer == rank_) {
        std::copy(mine.begin(), mine.end(), place.begin());
        continue;
      }
      receives.push_back(std::make_unique<RecvState>(group_, rank_, place, peer, small_tag));
      isend(mine, peer, small_tag).wait();
    }
    std::atomic<int>& awaited = group_->awaited_by[static_cast<std::size_t>(rank_)];
    awaited = Signs::everybody;
    const Deadline deadline(group_->timeout);
    std::vector<int> silent;
    for (const auto& r : receives)
      if (!r->done_by(deadline)) silent.push_back(r->from());
    if (!silent.empty()) throw_timeout(rank_, all_to_call + no_sign_of(silent), group_->timeout);
    awaited = Signs::nobody;
  }

 private:
  std::shared_ptr<Group> group_;
  int rank_;
  std::size_t duplicates_ = 0;
};

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

std::vector<std::unique_ptr<Transport>> transports_of(const std::shared_ptr<Group>& group) {
  std::vector<std::unique_ptr<Transport>> all;
  for (int r = 0; r < static_cast<int>(group->boxes.size()); ++r) {
    all.push_back(std::make_unique<ThreadsTransport>(group, r));
  }
  return all;
}

std::shared_ptr<Group> make_group(int ranks, double timeout_seconds, std::vector<int> nodes) {
  if (ranks < 1) throw Error(Code::invalid_argument, "ranks = " + std::to_string(ranks) + ": want at least 1");
  if (nodes.empty()) nodes.assign(static_cast<std::size_t>(ranks), 0);
  if (nodes.size() != static_cast<std::size_t>(ranks)) {
    throw Error(Code::invalid_argument, std::to_string(nodes.size()) + " nodes given for " + std::to_string(ranks) +
                                            " ranks: want one for each, or none");
  }
  return std::make_shared<Group>(std::move(nodes), timeout_seconds);
}

}  // namespace

std::vector<std::unique_ptr<Transport>> make_threads_group(int ranks, double timeout_seconds, std::vector<int> nodes) {
  return transports_of(make_group(ranks, timeout_seconds, std::move(nodes)));
}

void run_ranks(int ranks, const std::function<void(Transport&)>& body, double timeout_seconds, std::vector<int> nodes) {
  const auto group = make_group(ranks, timeout_seconds, std::move(nodes));
  const auto transports = transports_of(group);
  std::mutex mutex;
  std::exception_ptr first;
  const auto play = [&](Transport& t) {
    try {
      body(t);
    } catch (...) {
      const auto error = std::current_exception();
      {
        const std::lock_guard lock(mutex);
        if (!first) first = error;
      }
      group->fail("rank " + std::to_string(t.rank()) + " failed: " + text_of(error));
    }
  };
  std::vector<Thread> threads;
  try {
    for (const auto& transport : transports) threads.emplace_back([&play, t = transport.get()] { play(*t); });
  } catch (...) {  // those that have begun would wait for the others
    group->fail("the system has no thread for each of " + std::to_string(ranks) + " ranks");
    throw;
  }
  threads.clear();
  if (first) std::rethrow_exception(first);
}

}  // namespace laconic
