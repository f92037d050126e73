// What a thread has of its own until it ends, and beyond: programs make calls in destructors of their own thread-local
// objects, of which some run after those of a library's.
#pragma once

#include <cstddef>
#include <new>

namespace laconic {

/// What compilers call to have a thread-local object destroyed, which they do but once in a thread.
void at_thread_end(void (*destroy)(void*), void* object);

/// Room for one T of a thread; to be thread_local. The T is made when it is first asked for, and again when it is asked
/// for after its destruction.
template <typename T>
class OfThread {
 public:
  T& get() {
    if (object_ == nullptr) {
      object_ = new (room_) T();
      at_thread_end(&destroy, this);
    }
    return *object_;
  }

 private:
  static void destroy(void* self) {
    auto& of = *static_cast<OfThread*>(self);
    T* const object = of.object_;
    of.object_ = nullptr;
    object->~T();
  }

  alignas(T) std::byte room_[sizeof(T)]{};
  T* object_ = nullptr;
};

}  // namespace laconic
