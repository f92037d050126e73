#include "preload/mpi/self_attributes.h"

#ifdef OPEN_MPI

namespace laconic::preload {

void note_attributes_of_self(void (* /*finalizing*/)()) {}
void delete_attributes_of_self() {}

}  // namespace laconic::preload

#else

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "preload/mpi/caller.h"
#include "preload/mpi/next.h"

extern "C" {
// Not in every header.
int MPI_Attr_put(MPI_Comm comm, int keyval, void* value);
int MPI_Keyval_create(MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* erase, int* keyval,
                      void* extra);
int MPI_Keyval_free(int* keyval);
}

namespace laconic::preload {
namespace {

/// What the program made a keyval with, in whose place MPI has functions of Laconic's. As long as the process: an
/// attribute may outlive its keyval. Not Fortran's: MPI's entry for Fortran makes a keyval as C does and then tells MPI
/// to call its functions as Fortran's are called. Their attributes are not noted; a program that has MPI's library for
/// Fortran linked into it is not told apart.
struct Keyval {
  MPI_Comm_copy_attr_function* copy;
  MPI_Comm_delete_attr_function* erase;
  void* extra;
};

std::mutex mutex;                 // NOLINT(cert-err58-cpp)
std::map<int, Keyval*> keyvals;   // NOLINT(cert-err58-cpp): that have not been freed, and delete by a function
std::vector<int> noted;           // NOLINT(cert-err58-cpp): of MPI_COMM_SELF's attributes, as they were set
int herald = MPI_KEYVAL_INVALID;  ///< of an attribute that is set last, so that its function is called first
void (*when_finalizing)() = nullptr;

thread_local int replacing = MPI_KEYVAL_INVALID;  ///< by this thread: the attribute keeps its place
thread_local int ending = MPI_KEYVAL_INVALID;     ///< the one that is deleted because MPI ends
int first_error = MPI_SUCCESS;

int herald_is_deleted(MPI_Comm, int, void*, void*) {
  if (void (*const call)() = std::exchange(when_finalizing, nullptr)) call();
  return MPI_SUCCESS;
}

int report_first_error(MPI_Comm, int, void*, void*) { return first_error; }

void withdraw_herald() {
  void (*const kept)() = std::exchange(when_finalizing, nullptr);
  PMPI_Comm_delete_attr(MPI_COMM_SELF, herald);
  when_finalizing = kept;
}

int copy_attribute(MPI_Comm comm, int keyval, void* ours, void* in, void* out, int* flag) {
  const auto& its = *static_cast<const Keyval*>(ours);
  return its.copy(comm, keyval, its.extra, in, out, flag);
}

/// One that cannot be deleted stays, and MPI would call its function once more: not where MPI ends.
int delete_attribute(MPI_Comm comm, int keyval, void* value, void* ours) {
  const auto& its = *static_cast<const Keyval*>(ours);
  const bool ends = comm == MPI_COMM_SELF && keyval == ending;
  if (ends) ending = MPI_KEYVAL_INVALID;
  const int code = its.erase(comm, keyval, value, its.extra);
  if (ends) {
    if (code != MPI_SUCCESS && first_error == MPI_SUCCESS) first_error = code;
    return MPI_SUCCESS;
  }
  if (code == MPI_SUCCESS && comm == MPI_COMM_SELF && keyval != replacing) {
    const std::lock_guard lock(mutex);
    noted.erase(std::remove(noted.begin(), noted.end(), keyval), noted.end());
  }
  return code;
}

/// `caller`: where the call returns to.
template <typename Mpi>
int create_keyval(MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* erase, int* keyval, void* extra,
                  Mpi mpi, const void* caller) {
  if (herald == MPI_KEYVAL_INVALID || erase == MPI_COMM_NULL_DELETE_FN || keyval == nullptr ||
      is_of_another_language(caller))
    return mpi(copy, erase, keyval, extra);
  auto* const its = new Keyval{copy, erase, extra};
  const bool copies = copy != MPI_COMM_NULL_COPY_FN && copy != MPI_COMM_DUP_FN;
  const int code = mpi(copies ? copy_attribute : copy, delete_attribute, keyval, its);
  const std::lock_guard lock(mutex);
  if (code == MPI_SUCCESS) keyvals[*keyval] = its;
  return code;
}

template <typename Mpi>
int free_keyval(int* keyval, Mpi mpi) {
  const int freed = keyval == nullptr ? MPI_KEYVAL_INVALID : *keyval;
  const int code = mpi(keyval);
  const std::lock_guard lock(mutex);
  keyvals.erase(freed);
  return code;
}

/// Whether an attribute that is set is one to note.
bool is_known(int keyval) {
  const std::lock_guard lock(mutex);
  return keyvals.count(keyval) != 0;
}

template <typename Mpi>
int set_attribute(MPI_Comm comm, int keyval, void* value, Mpi mpi) {
  if (comm != MPI_COMM_SELF || herald == MPI_KEYVAL_INVALID || !is_known(keyval)) return mpi(comm, keyval, value);
  const int before = std::exchange(replacing, keyval);
  const int code = mpi(comm, keyval, value);
  replacing = before;
  if (code != MPI_SUCCESS) return code;
  const std::lock_guard lock(mutex);
  if (std::find(noted.begin(), noted.end(), keyval) != noted.end()) return code;
  noted.push_back(keyval);
  if (when_finalizing != nullptr) {
    withdraw_herald();
    PMPI_Comm_set_attr(MPI_COMM_SELF, herald, nullptr);
  }
  return code;
}

int take_last() {
  const std::lock_guard lock(mutex);
  if (noted.empty()) return MPI_KEYVAL_INVALID;
  const int last = noted.back();
  noted.pop_back();
  return last;
}

}  // namespace

void note_attributes_of_self(void (*finalizing)()) {
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, herald_is_deleted, &herald, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, herald, nullptr);
  when_finalizing = finalizing;
}

void delete_attributes_of_self() {
  if (herald == MPI_KEYVAL_INVALID) return;
  withdraw_herald();
  when_finalizing = nullptr;
  for (int keyval = take_last(); keyval != MPI_KEYVAL_INVALID; keyval = take_last()) {
    ending = keyval;
    PMPI_Comm_delete_attr(MPI_COMM_SELF, keyval);
  }
  PMPI_Comm_free_keyval(&herald);
  if (first_error == MPI_SUCCESS) return;
  int last = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, report_first_error, &last, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, last, nullptr);
}

}  // namespace laconic::preload

extern "C" {

int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* erase, int* keyval,
                           void* extra) {
  static const auto mpi = laconic::preload::next<decltype(&PMPI_Comm_create_keyval)>("MPI_Comm_create_keyval");
  return laconic::preload::create_keyval(copy, erase, keyval, extra, mpi, __builtin_return_address(0));
}

int MPI_Keyval_create(MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* erase, int* keyval,
                      void* extra) {
  static const auto mpi = laconic::preload::next<decltype(&PMPI_Comm_create_keyval)>("MPI_Keyval_create");
  return laconic::preload::create_keyval(copy, erase, keyval, extra, mpi != nullptr ? mpi : &PMPI_Comm_create_keyval,
                                         __builtin_return_address(0));
}

int MPI_Comm_free_keyval(int* keyval) {
  static const auto mpi = laconic::preload::next<decltype(&PMPI_Comm_free_keyval)>("MPI_Comm_free_keyval");
  return laconic::preload::free_keyval(keyval, mpi);
}

int MPI_Keyval_free(int* keyval) {
  static const auto mpi = laconic::preload::next<decltype(&PMPI_Comm_free_keyval)>("MPI_Keyval_free");
  return laconic::preload::free_keyval(keyval, mpi != nullptr ? mpi : &PMPI_Comm_free_keyval);
}

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
