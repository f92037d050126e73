#include "preload/mpi/creations.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace laconic::preload {
namespace {

/// What is under way.
struct Creations {
  std::mutex mutex;
  std::condition_variable own_is_over;
  int programs = 0;                  ///< that block
  std::vector<MPI_Comm> duplicates;  ///< MPI_COMM_NULL: one that is just being begun
  bool own = false;
};

Creations& creations() {
  static Creations all;
  return all;
}

}  // namespace

Creation::Creation() {
  if (!makes_one_at_a_time) return;
  Creations& all = creations();
  std::unique_lock lock(all.mutex);
  all.own_is_over.wait(lock, [&] { return !all.own; });
  ++all.programs;
}

Creation::~Creation() {
  if (!makes_one_at_a_time) return;
  const std::lock_guard lock(creations().mutex);
  --creations().programs;
}

Duplication::Duplication() {
  Creations& all = creations();
  std::unique_lock lock(all.mutex);
  all.own_is_over.wait(lock, [&] { return !all.own; });
  all.duplicates.push_back(MPI_COMM_NULL);
}

Duplication::~Duplication() {
  const std::lock_guard lock(creations().mutex);
  auto& duplicates = creations().duplicates;
  const auto at = std::find(duplicates.begin(), duplicates.end(), MPI_COMM_NULL);
  if (made_ != MPI_COMM_NULL) {
    *at = made_;
  } else {
    duplicates.erase(at);
  }
}

void Duplication::is_over(MPI_Comm comm) {
  if (!makes_one_at_a_time) return;
  const std::lock_guard lock(creations().mutex);
  auto& duplicates = creations().duplicates;
  duplicates.erase(std::remove(duplicates.begin(), duplicates.end(), comm), duplicates.end());
}

OwnCreation::OwnCreation() {
  const std::lock_guard lock(creations().mutex);
  const Creations& all = creations();
  granted_ = !makes_one_at_a_time || (all.programs == 0 && all.duplicates.empty() && !all.own);
  if (granted_) creations().own = true;
}

OwnCreation::~OwnCreation() {
  if (!granted_) return;
  const std::lock_guard lock(creations().mutex);
  creations().own = false;
  creations().own_is_over.notify_all();
}

}  // namespace laconic::preload
