// MPI's tool information interface with Laconic's variables in it: behind those that the MPI library had when it was
// first asked, so that no variable ever changes its number.
#include <mpi.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <variant>

#include "preload/mpi/entries.h"
#include "preload/mpi/next.h"
#include "preload/mpi/process.h"
#include "preload/mpi/runtime.h"
#include "preload/variables.h"

using laconic::preload::next;
using laconic::preload::Variable;
using laconic::preload::VariableKind;
using laconic::preload::variables;

// What MPI has, under a short name; each with the type of its profiling twin.
#define MPI(name)                                                                   \
  [] {                                                                              \
    static const auto f = next<decltype(&PMPI_T_pvar_##name)>("MPI_T_pvar_" #name); \
    return f;                                                                       \
  }()

namespace {

/// A tool in front that wraps some of these functions gives what comes from the others to MPI, which must not be given
/// handles of Laconic's.
bool all_come_here_first() {
  for (const char* const name : {"get_num", "get_info", "get_index", "handle_alloc", "handle_free", "session_free",
                                 "read", "start", "stop", "write", "reset", "readreset"})
    if (!laconic::preload::comes_here_first((std::string("MPI_T_pvar_") + name).c_str())) return false;
  return true;
}

int own_count() {
  static const int count =
      laconic::preload::is_foreign_mpi() || !all_come_here_first() ? 0 : static_cast<int>(variables().size());
  return count;
}

/// The number under which a tool knows the first of Laconic's variables: the same for ever, though MPI libraries may
/// find more variables of their own.
int first_own(int& number) {
  static std::mutex mutex;
  static int first = -1;
  const std::lock_guard lock(mutex);
  if (first < 0) {
    int others = 0;
    const int code = MPI(get_num)(&others);
    if (code != MPI_SUCCESS) return code;
    first = others;
  }
  number = first;
  return MPI_SUCCESS;
}

struct Place {
  bool own = false;
  int index = 0;  ///< among Laconic's, or among the MPI library's
};

/// Where a variable is that a tool knows by this number.
int find(int number, Place& place) {
  int first = 0;
  const int code = first_own(first);
  if (code != MPI_SUCCESS) return code;
  place.own = number >= first && number - first < own_count();
  place.index = number < first ? number : place.own ? number - first : number - own_count();
  return MPI_SUCCESS;
}

struct Handle {
  MPI_T_pvar_session session;
  std::size_t variable;
};

/// The handles on Laconic's variables that are in use.
class Handles {
 public:
  MPI_T_pvar_handle add(MPI_T_pvar_session session, std::size_t variable) {
    auto made = std::make_unique<Handle>(Handle{session, variable});
    auto* const name = reinterpret_cast<MPI_T_pvar_handle>(made.get());
    const std::lock_guard lock(mutex_);
    handles_.emplace(name, std::move(made));
    return name;
  }

  /// Null for the MPI library's.
  const Handle* find(MPI_T_pvar_handle name) {
    const std::lock_guard lock(mutex_);
    const auto at = handles_.find(name);
    return at == handles_.end() ? nullptr : at->second.get();
  }

  void remove(MPI_T_pvar_handle name) {
    const std::lock_guard lock(mutex_);
    handles_.erase(name);
  }

  void remove_all_of(MPI_T_pvar_session session) {
    const std::lock_guard lock(mutex_);
    std::erase_if(handles_, [&](const auto& entry) { return entry.second->session == session; });
  }

 private:
  std::mutex mutex_;
  std::unordered_map<MPI_T_pvar_handle, std::unique_ptr<Handle>> handles_;
};

Handles& handles() {
  static Handles all;
  return all;
}

/// As the standard has it: *size is the room, and becomes what the text needs with its terminator.
void give(const std::string& text, char* to, int* size) {
  if (size == nullptr) return;
  if (to != nullptr && *size > 0) {
    const auto room = static_cast<std::size_t>(*size);
    const std::size_t n = text.copy(to, room - 1);
    to[n] = '\0';
  }
  *size = static_cast<int>(text.size()) + 1;
}

template <typename T>
void give(T value, T* to) {
  if (to != nullptr) *to = value;
}

int class_of(VariableKind kind) {
  switch (kind) {
    case VariableKind::counter:
      return MPI_T_PVAR_CLASS_COUNTER;
    case VariableKind::timer:
      return MPI_T_PVAR_CLASS_TIMER;
    case VariableKind::high_water:
      return MPI_T_PVAR_CLASS_HIGHWATERMARK;
  }
  return MPI_T_PVAR_CLASS_GENERIC;
}

}  // namespace

extern "C" {

int MPI_T_pvar_get_num(int* num_pvar) {
  int others = 0;
  int code = MPI(get_num)(num_pvar == nullptr ? nullptr : &others);
  if (code != MPI_SUCCESS || num_pvar == nullptr) return code;
  int ignored = 0;
  code = first_own(ignored);
  *num_pvar = others + own_count();
  return code;
}

int MPI_T_pvar_get_info(int pvar_index, char* name, int* name_len, int* verbosity, int* var_class,
                        MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len, int* bind,
                        int* readonly, int* continuous, int* atomic) {
  Place place;
  if (const int code = find(pvar_index, place); code != MPI_SUCCESS) return code;
  if (!place.own)
    return MPI(get_info)(place.index, name, name_len, verbosity, var_class, datatype, enumtype, desc, desc_len, bind,
                         readonly, continuous, atomic);
  const Variable& v = variables()[static_cast<std::size_t>(place.index)];
  give(v.name, name, name_len);
  give(v.description, desc, desc_len);
  give<int>(MPI_T_VERBOSITY_USER_BASIC, verbosity);
  give(class_of(v.kind), var_class);
  give(v.kind == VariableKind::counter ? MPI_UNSIGNED_LONG_LONG : MPI_DOUBLE, datatype);
  give(MPI_T_ENUM_NULL, enumtype);
  give<int>(MPI_T_BIND_NO_OBJECT, bind);
  give(1, readonly);
  give(1, continuous);
  give(0, atomic);
  return MPI_SUCCESS;
}

int MPI_T_pvar_get_index(const char* name, int var_class, int* pvar_index) {
  int first = 0;
  if (const int code = first_own(first); code != MPI_SUCCESS) return code;
  for (int k = 0; k < own_count() && name != nullptr && pvar_index != nullptr; ++k) {
    const Variable& v = variables()[static_cast<std::size_t>(k)];
    if (v.name != name || class_of(v.kind) != var_class) continue;
    *pvar_index = first + k;
    return MPI_SUCCESS;
  }
  const int code = MPI(get_index)(name, var_class, pvar_index);
  if (code == MPI_SUCCESS && *pvar_index >= first) *pvar_index += own_count();
  return code;
}

int MPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void* obj_handle, MPI_T_pvar_handle* handle,
                            int* count) {
  Place place;
  if (const int code = find(pvar_index, place); code != MPI_SUCCESS) return code;
  if (!place.own) return MPI(handle_alloc)(session, place.index, obj_handle, handle, count);
  if (session == MPI_T_PVAR_SESSION_NULL) return MPI_T_ERR_INVALID_SESSION;
  *handle = handles().add(session, static_cast<std::size_t>(place.index));
  give(1, count);
  return MPI_SUCCESS;
}

int MPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) {
  const auto* const own = handle == nullptr ? nullptr : handles().find(*handle);
  if (own == nullptr) return MPI(handle_free)(session, handle);
  if (own->session != session) return MPI_T_ERR_INVALID_HANDLE;
  handles().remove(*handle);
  *handle = MPI_T_PVAR_HANDLE_NULL;
  return MPI_SUCCESS;
}

int MPI_T_pvar_session_free(MPI_T_pvar_session* session) {
  if (session != nullptr) handles().remove_all_of(*session);
  return MPI(session_free)(session);
}

int MPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
  const auto* const own = handles().find(handle);
  if (own == nullptr) return MPI(read)(session, handle, buf);
  if (own->session != session) return MPI_T_ERR_INVALID_HANDLE;
  std::visit([buf](auto value) { std::memcpy(buf, &value, sizeof value); },
             value_of(own->variable, laconic::preload::tally_of_process()));
  return MPI_SUCCESS;
}

// Laconic's variables always run, and nobody sets them.
int MPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return handles().find(handle) != nullptr ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI(start)(session, handle);
}

int MPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return handles().find(handle) != nullptr ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI(stop)(session, handle);
}

int MPI_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void* buf) {
  return handles().find(handle) != nullptr ? MPI_T_ERR_PVAR_NO_WRITE : MPI(write)(session, handle, buf);
}

int MPI_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return handles().find(handle) != nullptr ? MPI_T_ERR_PVAR_NO_WRITE : MPI(reset)(session, handle);
}

int MPI_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
  return handles().find(handle) != nullptr ? MPI_T_ERR_PVAR_NO_WRITE : MPI(readreset)(session, handle, buf);
}

}  // extern "C"
