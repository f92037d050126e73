#include "preload/nccl/names.h"

#include <atomic>
#include <cstddef>

namespace laconic::preload {
namespace {

template <typename Config>
std::string name_within([[maybe_unused]] const Config& config) {
  if constexpr (requires { config.commName; }) {
    constexpr std::size_t end = offsetof(Config, commName) + sizeof config.commName;
    if (config.size >= end && config.commName != nullptr) return config.commName;
  }
  return {};
}

}  // namespace

std::string name_in(const ncclConfig_t& config) { return name_within(config); }

void NcclNames::note(ncclComm_t comm, const std::string& name) {
  const std::lock_guard lock(mutex_);
  names_[comm] = {name, {}};
}

void NcclNames::expect(ncclComm_t parent, ncclComm_t* place, const std::string& name) {
  const std::lock_guard lock(mutex_);
  expected_.push_back({parent, place, name});
}

void NcclNames::settle(ncclComm_t parent) {
  const std::lock_guard lock(mutex_);
  std::erase_if(expected_, [&](const Expected& e) {
    if (e.parent != parent) return false;
    // A thread of NCCL's writes it. Null: who asked after the parent did so before this one was split off.
    const ncclComm_t made = std::atomic_ref<ncclComm_t>(*e.place).load(std::memory_order_acquire);
    if (made != nullptr) names_[made] = {e.name, {}};
    return made != nullptr;
  });
}

void NcclNames::give_up(ncclComm_t parent) {
  const std::lock_guard lock(mutex_);
  std::erase_if(expected_, [&](const Expected& e) { return e.parent == parent; });
}

std::string NcclNames::of(ncclComm_t comm) {
  const std::lock_guard lock(mutex_);
  const auto at = names_.find(comm);
  return at == names_.end() ? std::string() : at->second.own;
}

void NcclNames::agree(ncclComm_t comm, const std::string& name) {
  const std::lock_guard lock(mutex_);
  names_[comm].agreed = name;
}

std::optional<std::string> NcclNames::agreed(ncclComm_t comm) {
  const std::lock_guard lock(mutex_);
  const auto at = names_.find(comm);
  return at == names_.end() ? std::nullopt : at->second.agreed;
}

void NcclNames::forget(ncclComm_t comm) {
  give_up(comm);
  const std::lock_guard lock(mutex_);
  names_.erase(comm);
}

}  // namespace laconic::preload
