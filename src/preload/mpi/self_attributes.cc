#include "preload/mpi/self_attributes.h"

#ifdef OPEN_MPI

namespace laconic::preload {

void note_attributes_of_self(void (* /*finalizing*/)()) {}
int delete_attributes_of_self() { return MPI_SUCCESS; }

}  // namespace laconic::preload

#else

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "preload/mpi/next.h"

extern "C" int MPI_Attr_put(MPI_Comm comm, int keyval, void* value);  // not in every header

namespace laconic::preload {
namespace {

std::mutex mutex;                 // NOLINT(cert-err58-cpp)
std::vector<int> keyvals;         // NOLINT(cert-err58-cpp): in the order in which they were set
int herald = MPI_KEYVAL_INVALID;  ///< of an attribute that is set last, so that its function is called first
void (*when_finalizing)() = nullptr;

int herald_is_deleted(MPI_Comm, int, void*, void*) {
  if (void (*const call)() = std::exchange(when_finalizing, nullptr)) call();
  return MPI_SUCCESS;
}

void withdraw_herald() {
  void (*const kept)() = std::exchange(when_finalizing, nullptr);
  PMPI_Comm_delete_attr(MPI_COMM_SELF, herald);
  when_finalizing = kept;
}

bool is_noted(int keyval) {
  const std::lock_guard lock(mutex);
  return std::find(keyvals.begin(), keyvals.end(), keyval) != keyvals.end();
}

/// MPI has known it.
bool is_set(int keyval) {
  void* value = nullptr;
  int found = 0;
  return PMPI_Comm_get_attr(MPI_COMM_SELF, keyval, static_cast<void*>(&value), &found) == MPI_SUCCESS && found != 0;
}

template <typename Mpi>
int set_attribute(MPI_Comm comm, int keyval, void* value, Mpi mpi) {
  if (comm != MPI_COMM_SELF || herald == MPI_KEYVAL_INVALID) return mpi(comm, keyval, value);
  const bool stays = is_noted(keyval) && is_set(keyval);  // and keeps its place
  const int code = mpi(comm, keyval, value);
  if (code != MPI_SUCCESS || stays) return code;
  const std::lock_guard lock(mutex);
  keyvals.erase(std::remove(keyvals.begin(), keyvals.end(), keyval), keyvals.end());
  keyvals.push_back(keyval);
  if (when_finalizing != nullptr) {
    withdraw_herald();
    PMPI_Comm_set_attr(MPI_COMM_SELF, herald, nullptr);
  }
  return code;
}

/// One that the program has not deleted since; MPI_KEYVAL_INVALID: there is none.
int take_last() {
  const std::lock_guard lock(mutex);
  while (!keyvals.empty()) {
    const int last = keyvals.back();
    keyvals.pop_back();
    if (is_set(last)) return last;
  }
  return MPI_KEYVAL_INVALID;
}

}  // namespace

void note_attributes_of_self(void (*finalizing)()) {
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, herald_is_deleted, &herald, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, herald, nullptr);
  when_finalizing = finalizing;
}

int delete_attributes_of_self() {
  if (herald == MPI_KEYVAL_INVALID) return MPI_SUCCESS;
  withdraw_herald();
  when_finalizing = nullptr;
  for (int keyval = take_last(); keyval != MPI_KEYVAL_INVALID; keyval = take_last()) {
    const int code = PMPI_Comm_delete_attr(MPI_COMM_SELF, keyval);
    if (code != MPI_SUCCESS) return code;
  }
  PMPI_Comm_free_keyval(&herald);
  return MPI_SUCCESS;
}

}  // namespace laconic::preload

extern "C" {

int MPI_Comm_set_attr(MPI_Comm comm, int keyval, void* value) {
  static const auto mpi = laconic::preload::next<decltype(&PMPI_Comm_set_attr)>("MPI_Comm_set_attr");
  return laconic::preload::set_attribute(comm, keyval, value, mpi);
}

int MPI_Attr_put(MPI_Comm comm, int keyval, void* value) {
  static const auto mpi = laconic::preload::next<decltype(&PMPI_Comm_set_attr)>("MPI_Attr_put");
  return laconic::preload::set_attribute(comm, keyval, value, mpi != nullptr ? mpi : &PMPI_Comm_set_attr);
}

}  // extern "C"

#endif
