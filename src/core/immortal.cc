// Nothing of a shared library that this file is linked into is destroyed when the program exits. Programs end MPI, and
// make calls, in exit handlers and in destructors of static objects of their own, which often run after those of a
// library whose objects are made when they are first needed. Here ends what compilers call to have an object destroyed
// (Itanium C++ ABI, 3.3.6); hidden, so that it is that library's calls alone. (Nor can such a library be unloaded: -z
// nodelete.) Part of no static library: programs that link those keep their destructors.
#include <sys/syscall.h>
#include <unistd.h>

#define LACONIC_HIDDEN __attribute__((visibility("hidden")))

extern "C" {

/// Of threads that are not the first; the C library's.
int __cxa_thread_atexit_impl(void (*destroy)(void*), void* object, void* library);

LACONIC_HIDDEN int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }

/// The first thread's objects go before all handlers.
LACONIC_HIDDEN int __cxa_thread_atexit(void (*destroy)(void*), void* object, void* library) {
  if (syscall(SYS_gettid) == getpid()) return 0;
  return __cxa_thread_atexit_impl(destroy, object, library);
}

}  // extern "C"
