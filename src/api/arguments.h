// From the C interface's arguments to those of the collectives.
#pragma once

#include <laconic/laconic.h>

#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "api/handle.h"
#include "collective/call.h"
#include "core/array.h"

namespace laconic::api {

inline Communicator& required(laconic_comm* comm) {
  if (comm == nullptr) throw Error(Code::invalid_argument, "comm is null");
  return comm->comm;
}
inline const Communicator& required(const laconic_comm* comm) { return required(const_cast<laconic_comm*>(comm)); }

/// What a caller's number says, checked, with the others, by the call. C takes any number for one of an enumeration's,
/// an MPI's handle too: what does not fit must not become another that does.
template <typename Known, typename Given>
Known as_known(Given given) {
  const auto number = static_cast<unsigned>(given);
  constexpr unsigned none = 0xff;
  return static_cast<Known>(number < none ? number : none);
}
inline DType as_dtype(laconic_dtype dtype) { return as_known<DType>(dtype); }
inline Op as_op(laconic_op op) { return as_known<Op>(op); }

/// Of a call (calls.h) that cannot be begun: all but its bytes.
template <typename Arguments>
CallShape shape_of(const Arguments& call) {
  CallShape shape{.collective = Arguments::collective, .dtype = as_dtype(call.dtype)};
  if constexpr (requires { call.op; }) shape.op = as_op(call.op);
  return shape;
}

/// The options of a call, understood when it is made. Where they cannot be, the call itself fails, so that the other
/// ranks hear of it and fail too.
class Chosen {
 public:
  Chosen(const laconic_options* given, const Communicator& comm) : options_(comm.defaults()) {
    check([&] { read_options(given, options_); });
  }
  void refuse_with(const Error& why) { wrong_ = why; }
  /// What belongs to the call: where that fails, so does it. Nothing is done for one that has failed already.
  template <typename Work>
  void check(Work&& work) {
    if (wrong_) return;
    try {
      work();
    } catch (const Error& e) {
      wrong_ = e;
    }
  }
  [[nodiscard]] const Options& of(const CallShape& shape, Communicator& comm) const {
    if (wrong_) refuse(shape, comm, options_, *wrong_);
    return options_;
  }

 private:
  Options options_;
  std::optional<Error> wrong_;
};

/// Throws unless an array can have the elements of `ranks` such counts. `name`: of the argument.
void require_long_count(const char* name, std::size_t count, DType dtype, int ranks);
inline void require_count(const char* name, std::size_t count, DType dtype, int ranks = 1) {
  constexpr int no_matter = 29;  // bits that leave 31 for the ranks and 3 for the bytes of an element
  if (count >> no_matter != 0) require_long_count(name, count, dtype, ranks);
}
/// The same of the array that parts lie in, whose counts there must be.
void require_counts(const char* counts, const char* displs, const Parts& parts, DType dtype);

/// Throws unless the numbers are those of a dtype and of an operation: here they are still the caller's.
void require_dtype(laconic_dtype dtype);
void require_op(laconic_op op);
template <typename Arguments>
void require_known(const Arguments& call) {
  require_dtype(call.dtype);
  if constexpr (requires { call.op; }) require_op(call.op);
}

/// Makes the call. Where its counts cannot be, nothing is computed from them: the others hear of it and fail too.
template <typename Arguments>
const Report& make(const Arguments& call, Communicator& on, const Options& options) {
  try {
    require_known(call);
    call.require_counts(on);
  } catch (const Error& e) {
    refuse(shape_of(call), on, options, e);
  }
  return on.whole([&]() -> const Report& { return call.run(on, options); });
}

/// Runs a call (calls.h).
template <typename Arguments>
int now(laconic_comm* comm, const laconic_options* options, const Arguments& call) noexcept {
  return guarded([&] {
    Communicator& c = required(comm);
    comm->notice_failure();
    if (options == nullptr) {
      make(call, c, c.defaults());
    } else {
      const Chosen chosen(options, c);
      make(call, c, chosen.of(shape_of(call), c));
    }
  });
}

/// The thread for non-blocking calls, made with the first where that takes long. Throws Error(unsupported).
void require_background(laconic_comm& comm);

/// The call, submitted to the communicator's thread. A call that cannot be is refused by that thread: the others hear.
template <typename Arguments>
std::unique_ptr<laconic_request> submitted(laconic_comm* comm, Chosen chosen, const Arguments& call) {
  auto made = std::make_unique<laconic_request>();
  made->comm = comm->self;
  Memory::After after;
  if (comm->memory != nullptr) chosen.check([&] { after = comm->memory->after_all_so_far(); });
  made->result =
      comm->background->submit([call, chosen = std::move(chosen), after = std::move(after)](Communicator& on) mutable {
        if (after) chosen.check([&] { after(on.memory()); });
        return make(call, on, chosen.of(shape_of(call), on));
      });
  return made;
}

/// Leaves it to the communicator's thread, which has a communicator of its own over the same ranks.
template <typename Arguments>
int later(laconic_comm* comm, const laconic_options* options, laconic_request** request,
          const Arguments& call) noexcept {
  return guarded([&] {
    if (request != nullptr) *request = nullptr;
    const Communicator& c = required(comm);
    comm->require_usable();
    require_background(*comm);
    comm->background->whole([&] {
      Chosen chosen(options, c);
      if (request == nullptr) chosen.refuse_with({Code::invalid_argument, "request is null"});
      auto made = submitted(comm, std::move(chosen), call);
      if (request == nullptr) made->result.get();  // throws
      *request = made.release();
    });
  });
}

/// A buffer for which LACONIC_IN_PLACE means nothing: it is as good as none.
template <typename Data>
Data* buffer(Data* given) {
  return given == LACONIC_IN_PLACE ? nullptr : given;
}

/// A number for each rank: the caller's own array; what is copied has one of its own, since a call that runs later
/// cannot look at the caller's.
class Numbers {
 public:
  /// Null: none, which the call refuses if it needs them.
  Numbers(const size_t* given, const laconic_comm* comm)
      : get_(given, given == nullptr || comm == nullptr ? 0 : static_cast<std::size_t>(comm->comm.size())) {}
  /// The root's; none elsewhere, where nothing is looked at.
  Numbers(const size_t* given, int root, const laconic_comm* comm)
      : Numbers(laconic_comm_rank(comm) == root ? given : nullptr, comm) {}
  Numbers(const Numbers& o) : kept_(o.get_.begin(), o.get_.end()), get_(kept_) {}
  Numbers(Numbers&&) = default;  // the vector's memory comes along
  Numbers& operator=(const Numbers&) = delete;
  Numbers& operator=(Numbers&&) = delete;
  ~Numbers() = default;

  [[nodiscard]] std::span<const std::size_t> get() const { return get_; }
  /// Of this rank; 0 where there are none.
  [[nodiscard]] std::size_t own(const Communicator& comm) const {
    return get_.empty() ? 0 : get_[static_cast<std::size_t>(comm.rank())];
  }

 private:
  std::vector<std::size_t> kept_;
  std::span<const std::size_t> get_;
};

/// What the parts of all ranks are, and where.
struct Placed {
  Numbers counts;
  Numbers displs;

  Placed(const size_t* counts_given, const size_t* displs_given, const laconic_comm* comm)
      : counts(counts_given, comm), displs(displs_given, comm) {}
  /// Of the root; none elsewhere.
  Placed(const size_t* counts_given, const size_t* displs_given, int root, const laconic_comm* comm)
      : counts(counts_given, root, comm), displs(displs_given, root, comm) {}

  [[nodiscard]] Parts parts() const { return {.counts = counts.get(), .displs = displs.get()}; }
  [[nodiscard]] std::size_t extent() const { return extent_of(parts()); }
  /// Where the part of this rank lies in the array of all; null where nothing is known of that.
  [[nodiscard]] void* part_of(void* all, DType dtype, const Communicator& comm) const {
    if (counts.get().empty() || all == nullptr) return nullptr;
    const auto of = counts.get().first(static_cast<std::size_t>(comm.rank()));
    if (counts.own(comm) == 0) return all;  // nobody looks at its displacement
    const std::size_t before =
        displs.get().empty() ? std::accumulate(of.begin(), of.end(), std::size_t{0}) : displs.own(comm);
    return static_cast<std::uint8_t*>(all) + before * size_of(dtype);
  }
};

inline const void* in_place_or(const void* buffer, const void* place) {
  return buffer == LACONIC_IN_PLACE ? place : buffer;
}

/// Where the part of this rank lies in an array of parts of `count` elements.
inline void* part_of(void* all, std::size_t count, DType dtype, const Communicator& comm) {
  if (all == nullptr) return nullptr;
  return static_cast<std::uint8_t*>(all) + static_cast<std::size_t>(comm.rank()) * count * size_of(dtype);
}

}  // namespace laconic::api
