#include "transport/mpi/roll_call.h"

#include <list>
#include <mutex>
#include <utility>

#include "transport/mpi/in_mpi.h"

namespace laconic {
namespace {

int rank_in(MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}
int size_of(MPI_Comm comm) {
  int size = 1;
  PMPI_Comm_size(comm, &size);
  return size;
}

/// A copy that stays: MPI may read it until the end.
template <typename T>
const T& kept(const T& value) {
  static std::mutex mutex;
  static std::list<T> all;
  const std::lock_guard lock(mutex);
  return all.emplace_back(value);
}

}  // namespace

RollCall::RollCall(std::shared_ptr<OwnComm> own, int tag)
    : own_(std::move(own)),
      tag_(tag),
      rank_(rank_in(own_->get())),
      size_(size_of(own_->get())),
      gave_up_(static_cast<std::size_t>(size_)),
      signs_(rank_, size_) {}

void RollCall::hear() {
  const std::lock_guard lock(mutex_);
  hear_all();
}

// What MPI cannot send or receive any more is a rank of which nothing is heard. An MPI that survives a rank may refuse
// to look for messages of any; so each is asked for then.
void RollCall::hear_all() {
  bool sound = true;
  while (hear_one(MPI_ANY_SOURCE, sound)) {
  }
  if (sound) return;
  for (int peer = 0; peer < size_; ++peer) {
    while (peer != rank_ && hear_one(peer, sound)) {
    }
  }
}

bool RollCall::hear_one(int from, bool& sound) {
  int found = 0;
  MPI_Status status;
  const auto look = [&] { return PMPI_Iprobe(from, tag_, own_->get(), &found, &status); };
  sound = in_mpi(look) == MPI_SUCCESS;
  if (!sound || found == 0) return false;
  const int who = status.MPI_SOURCE;
  Word word{};
  const auto take = [&] { return PMPI_Recv(&word, sizeof word, MPI_BYTE, who, tag_, own_->get(), MPI_STATUS_IGNORE); };
  if (in_mpi(take) != MPI_SUCCESS) return false;
  take_in(who, word);
  return true;
}

void RollCall::take_in(int who, Word word) {
  signs_.hear(who, word.awaited);
  if (word.what == What::is_here) return;
  own_->give_up();
  gave_up_[static_cast<std::size_t>(who)] = true;
  last_ = who;
  somebody_gave_up_ = true;
  if (word.what == What::gave_up && !first_) first_ = who;
}

void RollCall::say(Word word) {
  const Word& stays = kept(word);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    const auto send = [&] { return PMPI_Isend(&stays, sizeof stays, MPI_BYTE, peer, tag_, own_->get(), &request); };
    if (in_mpi(send) == MPI_SUCCESS && request != MPI_REQUEST_NULL) PMPI_Request_free(&request);
  }
}

void RollCall::answer(int awaited) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(answered_, true)) say({What::is_here, awaited});
}

void RollCall::give_up(Why why, int awaited) {
  own_->give_up();
  const std::lock_guard lock(mutex_);
  signs_.hear(rank_, awaited);
  answered_ = true;
  if (std::exchange(told_, true)) return;
  say({why == Why::nothing_came ? What::gave_up : What::gave_up_after_another, awaited});
}

std::string RollCall::missing(double seconds) {
  const std::lock_guard lock(mutex_);
  const auto heard_all = [this] {
    hear_all();
    return signs_.of_all();
  };
  if (!std::exchange(listened_, true)) static_cast<void>(done_in_time(heard_all, seconds));
  return signs_.missing();
}

}  // namespace laconic
