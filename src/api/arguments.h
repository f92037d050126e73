// From the C interface's arguments to those of the collectives.
#pragma once

#include <laconic/laconic.h>

#include <numeric>
#include <optional>
#include <vector>

#include "api/handle.h"
#include "collective/call.h"
#include "core/array.h"

namespace laconic::api {

inline Communicator& required(laconic_comm* comm) {
  if (comm == nullptr) throw Error(Code::invalid_argument, "comm is null");
  return comm->comm;
}

/// The options of a call, understood when it is made. Where they cannot be, the call itself fails, so that the other
/// ranks hear of it and fail too.
class Chosen {
 public:
  Chosen(const laconic_options* given, const Communicator& comm) {
    try {
      options_ = options_from(given, comm.defaults());
    } catch (const Error& e) {
      wrong_ = e;
    }
  }
  [[nodiscard]] const Options& of(Collective collective, Communicator& comm) const {
    if (wrong_) refuse(collective, comm, *wrong_);
    return options_;
  }

 private:
  Options options_;
  std::optional<Error> wrong_;
};

/// A call with its arguments, to be run over this communicator or, in the background, over another of the same ranks.
using Work = Background::Work;

/// Makes the call and runs it. make(communicator) returns the Work.
template <typename Make>
int now(laconic_comm* comm, Make&& make) noexcept {
  return guarded([&] {
    Communicator& c = required(comm);
    make(c)(c);
  });
}

/// Makes the call and leaves it to the communicator's thread.
template <typename Make>
int later(laconic_comm* comm, laconic_request** request, Make&& make) noexcept {
  return guarded([&] {
    if (request == nullptr) throw Error(Code::invalid_argument, "request is null");
    *request = nullptr;
    const Communicator& c = required(comm);
    if (comm->background == nullptr) {
      throw Error(Code::unsupported, "non-blocking calls: " + comm->no_background);
    }
    auto made = std::make_unique<laconic_request>();
    made->comm = comm;
    made->result = comm->background->submit(make(c));
    *request = made.release();
  });
}

inline DType as_dtype(laconic_dtype dtype) {
  return static_cast<DType>(dtype);
}  // checked, with the others, by the call
inline Op as_op(laconic_op op) { return static_cast<Op>(op); }

/// The counts of all ranks; empty where they are null, which the call then refuses.
inline std::vector<std::size_t> counts_from(const size_t* counts, const Communicator& comm) {
  if (counts == nullptr) return {};
  return {counts, counts + comm.size()};
}

inline std::vector<std::size_t> same_counts(std::size_t count, const Communicator& comm) {
  return std::vector<std::size_t>(static_cast<std::size_t>(comm.size()), count);
}

/// Of interest on the root only.
inline std::vector<std::size_t> counts_at(int root, const size_t* counts, const Communicator& comm) {
  return comm.rank() == root ? counts_from(counts, comm) : std::vector<std::size_t>{};
}
inline std::vector<std::size_t> same_counts_at(int root, std::size_t count, const Communicator& comm) {
  return comm.rank() == root ? same_counts(count, comm) : std::vector<std::size_t>{};
}

/// Elements of the ranks before this one.
inline std::size_t before(const std::vector<std::size_t>& counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
}
inline std::size_t total(const std::vector<std::size_t>& counts) {
  return before(counts, static_cast<int>(counts.size()));
}
inline std::size_t own(const std::vector<std::size_t>& counts, const Communicator& comm) {
  return counts.empty() ? 0 : counts[static_cast<std::size_t>(comm.rank())];
}

inline const void* in_place_or(const void* buffer, const void* place) {
  return buffer == LACONIC_IN_PLACE ? place : buffer;
}

/// Where the part of this rank lies in an array of all parts.
inline void* part_of(void* all, const std::vector<std::size_t>& counts, DType dtype, const Communicator& comm) {
  if (counts.empty()) return nullptr;
  return slice_of(MutArray{all, total(counts), dtype}, before(counts, comm.rank()), own(counts, comm)).data;
}

}  // namespace laconic::api
