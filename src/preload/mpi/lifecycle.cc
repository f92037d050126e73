// Where a program begins and ends with MPI, and ends with a communicator.
#include <mpi.h>

#include <algorithm>
#include <string>

#include "preload/mpi/creations.h"
#include "preload/mpi/next.h"
#include "preload/mpi/process.h"
#include "preload/mpi/requests.h"
#include "preload/mpi/runtime.h"

extern "C" {
void laconic_label(const char* label);
/// Of MPI 1, which headers no longer let in, though libraries have it.
int set_errhandler_as_before(MPI_Comm comm, MPI_Errhandler handler) __asm__("MPI_Errhandler_set");
}

using laconic::preload::next;
using laconic::preload::Runtime;

namespace {

// What the program asked for, where it got more.
int asked_level = -1;

/// begin() as the program has it, or one that lets in more threads than it asked for.
template <typename Begin>
int initialize(int* argc, char*** argv, int required, int* provided, Begin&& begin) {
  static const auto with_threads = next<decltype(&PMPI_Init_thread)>("MPI_Init_thread");
  laconic::preload::note_begin();
  if (laconic::preload::is_foreign_mpi()) return begin();
  const bool raise = required < MPI_THREAD_MULTIPLE && laconic::preload::may_raise_thread_level();
  int got = MPI_THREAD_SINGLE;
  const int code = raise ? with_threads(argc, argv, MPI_THREAD_MULTIPLE, &got) : begin();
  if (code != MPI_SUCCESS) return code;
  if (raise) asked_level = std::min(required, got);
  if (raise && provided != nullptr) *provided = asked_level;
  Runtime::start();
  return code;
}

/// The program's communicator ends, by a function of MPI's.
int let_go(MPI_Comm* comm, int (*mpi)(MPI_Comm*)) {
  if (comm == nullptr || *comm == MPI_COMM_NULL) return mpi(comm);
  Runtime::forget_early(*comm);
  if (Runtime::get() == nullptr) return mpi(comm);
  laconic::preload::Duplication::is_over(*comm);
  Runtime::get()->end_group(*comm);
  laconic::preload::outlive_communicator(*comm);
  const laconic::preload::Freeing freeing(*comm);
  return mpi(comm);
}

/// By a function of MPI's that does so: requests of Laconic's follow.
template <typename Mpi>
int set_errhandler(MPI_Comm comm, MPI_Errhandler handler, Mpi mpi) {
  const int code = mpi(comm, handler);
  if (code == MPI_SUCCESS && Runtime::get() != nullptr) {
    Runtime::get()->renew_errors(comm);
    laconic::preload::renew_persistent_errors(comm);
  }
  return code;
}

}  // namespace

extern "C" {

// Not by MPI_Init_thread where nobody needs that: what the user says of MPI_Init's threads would be lost, and a tool
// may wrap the one alone.
int MPI_Init(int* argc, char*** argv) {
  static const auto mpi = next<decltype(&PMPI_Init)>("MPI_Init");
  return initialize(argc, argv, MPI_THREAD_SINGLE, nullptr, [&] { return mpi(argc, argv); });
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  static const auto mpi = next<decltype(&PMPI_Init_thread)>("MPI_Init_thread");
  return initialize(argc, argv, required, provided, [&] { return mpi(argc, argv, required, provided); });
}

int MPI_Query_thread(int* provided) {
  static const auto mpi = next<decltype(&PMPI_Query_thread)>("MPI_Query_thread");
  if (asked_level < 0 || provided == nullptr) return mpi(provided);
  *provided = asked_level;
  return MPI_SUCCESS;
}

int MPI_Finalize(void) {
  static const auto mpi = next<decltype(&PMPI_Finalize)>("MPI_Finalize");
  Runtime::before_finalize();
  return mpi();
}

int MPI_Comm_free(MPI_Comm* comm) {
  static const auto mpi = next<decltype(&PMPI_Comm_free)>("MPI_Comm_free");
  return let_go(comm, mpi);
}

int MPI_Comm_disconnect(MPI_Comm* comm) {
  static const auto mpi = next<decltype(&PMPI_Comm_disconnect)>("MPI_Comm_disconnect");
  return let_go(comm, mpi);
}

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
  static const auto mpi = next<decltype(&PMPI_Comm_set_errhandler)>("MPI_Comm_set_errhandler");
  return set_errhandler(comm, handler, mpi);
}

int set_errhandler_as_before(MPI_Comm comm, MPI_Errhandler handler) {
  static const auto mpi = next<decltype(&PMPI_Comm_set_errhandler)>("MPI_Errhandler_set");
  return set_errhandler(comm, handler, mpi != nullptr ? mpi : &PMPI_Comm_set_errhandler);
}

/// For programs that know of Laconic (declare it weak): the calls of this thread have this label from now on; null:
/// that of their call site again.
void laconic_label(const char* label) {
  laconic::preload::label_of_thread() = label == nullptr ? std::string() : std::string(label);
}

}  // extern "C"
