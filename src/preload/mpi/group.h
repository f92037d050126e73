// What the drop-in library keeps for one of the program's communicators.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/asking.h"
#include "collective/call_kind.h"
#include "collective/communicator.h"
#include "core/worker.h"
#include "preload/mpi/call.h"
#include "transport/mpi/mpi.h"

namespace laconic::preload {

/// While there is one, errors of MPI's own over Laconic's communicators are not the program's on this thread: it will
/// hear of what came of them, once.
class Unheard {
 public:
  Unheard() { ++depth(); }
  ~Unheard() { --depth(); }
  Unheard(const Unheard&) = delete;
  Unheard& operator=(const Unheard&) = delete;
  static bool is_now() { return depth() != 0; }

 private:
  static int& depth();
};

/// The ranks of one communicator, ready for calls made one after the other.
class Line {
 public:
  /// Collective over `mpi`, which must outlive it. Messages go over `own`, by a lane of their own. `program`: what the
  /// errors of calls are those of, if not of `mpi`.
  Line(MPI_Comm mpi, std::shared_ptr<OwnComm> own, int lane, const std::atomic<MPI_Comm>* program = nullptr);
  [[nodiscard]] Communicator& comm() { return comm_; }
  [[nodiscard]] MPI_Comm mpi() const { return mpi_; }
  /// The communicator whose error handler is to hear of what goes wrong now.
  [[nodiscard]] MPI_Comm program() const { return program_ != nullptr ? program_->load() : mpi_; }
  /// Rank 0's, when this was made: the name decides about rules, so it must be the same everywhere.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Whether an irregular call is not asked about, but left to MPI, and if so, counted; also in the report, where a
  /// rule asked for the last one that was asked about. The same on all ranks. Throws if the communicator is unusable.
  bool passes_over(const Call& call);
  /// make() has MPI make such a call. What one in a few of them takes is noted.
  template <typename MakeCall>
  int timed(const Call& call, MakeCall&& make) {
    if (!is_like_the_last(call) || like(call).passed++ % 8 != 0) return make();
    const auto start = std::chrono::steady_clock::now();
    const int code = make();
    note_plain(call, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    return code;
  }
  /// Every rank's value. After an error the communicator is unusable. Collective.
  template <typename T>
  std::vector<T> exchange(const T& mine) {
    comm_.require_usable();
    try {
      return allgather_value(comm_.transport(), mine);
    } catch (...) {
      comm_.mark_unusable();
      throw;
    }
  }
  /// What an irregular call is; nothing: it is left to MPI. Throws where ranks are at different calls. Collective.
  std::optional<Shape> agree(const Call& call);
  /// No rule asks for one that was agreed on.
  void learned_nothing(const Call& call);
  /// One does: what is known of the call beside its arguments, before it is made; and what has come of that.
  [[nodiscard]] InAdvance in_advance(const Call& call, const Shape& shape);
  void learned(const Call& call, const InAdvance& outcome);

 private:
  MPI_Comm mpi_;
  const std::atomic<MPI_Comm>* program_;
  std::string name_;
  Communicator comm_;
  struct Irregular {
    Asking asking;
    std::uint64_t plain_bytes = 0;  ///< of the last that was asked about, where a rule asked for it but MPI is faster
    std::uint64_t part = 0;         ///< what of that was this rank's
    std::optional<CallKind> kind;   ///< and its kind
    unsigned passed = 0;            ///< calls like it that were not asked about
  };
  /// Whether what the call takes tells what the last one would have taken that was asked about, as far as a rank can
  /// see.
  [[nodiscard]] bool is_like_the_last(const Call& call) {
    const Irregular& calls = like(call);
    return calls.plain_bytes != 0 && calls.kind && std::bit_width(part_of(call)) == std::bit_width(calls.part);
  }
  void note_plain(const Call& call, double seconds);
  Irregular& like(const Call& call) { return irregular_[static_cast<std::size_t>(call.collective)]; }
  [[nodiscard]] std::uint64_t part_of(const Call& call) const {
    return bytes_of_part(call, comm_.rank(), comm_.size());
  }
  std::array<Irregular, 16> irregular_;  ///< by collective
};

/// The same for calls that run while the program does something else: over a communicator of Laconic's, on a thread of
/// their own.
class BackgroundLine {
 public:
  /// Local. `own`: of the same ranks as `program`.
  BackgroundLine(MPI_Comm program, std::shared_ptr<OwnComm> own);
  /// Waits for what has been submitted.
  ~BackgroundLine();
  BackgroundLine(const BackgroundLine&) = delete;
  BackgroundLine& operator=(const BackgroundLine&) = delete;
  /// Gets the line, or null and why there is none. Must not throw.
  using Job = std::function<void(Line* line, const std::string& why_none)>;
  void submit(Job job);
  /// Waits for what has been submitted. What is submitted from now on its caller does at once.
  void retire() { worker_.reset(); }
  /// Errors of MPI's own, also of what is under way, go where the program has them go now.
  void renew_errors();
  /// The program frees its communicator while there are calls over it: their errors have this one's from now on.
  void outlive_program();
  /// As Group::revoke().
  void revoke(int (*mpi)(MPI_Comm)) { mpi(own_->get()); }
  /// The program's communicator; when that has been freed, Laconic's, which has its handler then.
  [[nodiscard]] MPI_Comm program() const { return program_; }
  /// The line, if all that was submitted is done and it is there; else null. It is the caller's until the next
  /// submit().
  Line* if_idle();
  [[nodiscard]] bool is_idle() { return !worker_ || worker_->is_idle(); }
  /// Whether a call that was submitted calls this.
  [[nodiscard]] bool runs_here() { return worker_ && worker_->runs_here(); }

 private:
  void begin();
  void hand_errors_to(MPI_Errhandler errors);

  std::atomic<MPI_Comm> program_;
  std::shared_ptr<OwnComm> own_;
  MPI_Errhandler errors_;  ///< of own_
  std::optional<Line> line_;
  std::string why_none_;
  std::optional<Worker> worker_;
};

/// Why some calls are left to MPI: of one of these a communicator of Laconic's is not there.
inline constexpr const char* too_many_communicators =
    "communicators and persistent calls, of which there were too many";
inline constexpr const char* duplicated_later = "communicators that Open MPI duplicates without blocking";
inline constexpr const char* beside_others =
    "communicators and persistent calls that were made, or first used, while Open MPI was making other communicators";

inline constexpr const char* after_a_failure = "persistent calls over communicators of which ranks had given up a call";

/// A communicator of Laconic's for the ranks of one of the program's; or why there is none, the same on all ranks.
struct Company {
  std::shared_ptr<OwnComm> own;
  const char* why_none = too_many_communicators;
};

/// What there is for one of the program's communicators. The first use of the foreground is collective.
class Group {
 public:
  Group(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  /// Of the calls over it, blocking or not, that are large enough to be served, also those that are not: as many on all
  /// ranks of a program that makes the same calls.
  void count_call() { ++calls_; }
  [[nodiscard]] std::uint8_t calls() const { return calls_; }
  /// Makes what messages need, where that has not been tried, or was not possible then. Collective, where the program
  /// may wait for other ranks. Throws Error(transport) where it waited in vain (LACONIC_TIMEOUT), and from then on at
  /// once.
  void accompany();
  /// Whether that is there: if not, what does not wait for other ranks is MPI's own. The same on all ranks.
  [[nodiscard]] bool is_accompanied() const { return own_ != nullptr; }
  /// For calls that block. Null: they are MPI's own, too; why_none() says why. Throws as accompany() does.
  Line* foreground();
  [[nodiscard]] const char* why_none() const { return duplicated_later_ ? duplicated_later : why_none_; }
  /// A communicator for one persistent call. Collective, as above.
  Company company() noexcept;
  /// The program begins MPI_Comm_idup() over it, under Open MPI (4 and 5), which does that by collectives that do not
  /// block, over this communicator, each when it has seen the end of the one before: wherever a rank happens to be.
  /// Nothing else that does not block, and nothing that makes communicators, may come between, as ranks would have them
  /// in different orders. When it is over only the program knows. So what Laconic does over the communicator itself
  /// ends here, on all ranks after the same call.
  void set_duplicated_later(bool yes) { duplicated_later_ = yes; }
  [[nodiscard]] bool is_duplicated_later() const { return duplicated_later_; }
  /// Only if accompanied.
  BackgroundLine& background();
  void renew_errors();
  /// The program has revoked its communicator, by `mpi`: what waits over Laconic's ends with an error, too, on all
  /// ranks.
  void revoke(int (*mpi)(MPI_Comm));
  /// Whether all calls in the background are over.
  [[nodiscard]] bool is_idle() { return !background_ || background_->is_idle(); }
  /// As BackgroundLine's.
  [[nodiscard]] bool runs_here() { return background_ && background_->runs_here(); }
  void outlive_program() {
    if (background_) background_->outlive_program();
  }
  /// As BackgroundLine::retire().
  void retire() {
    if (background_) background_->retire();
  }

 private:
  /// What work() throws is thrown whenever this communicator is to be used.
  template <typename Work>
  void or_never(Work&& work);

  MPI_Comm comm_;
  int rank_, size_;
  std::uint8_t calls_ = 0;  ///< modulo 256: one more or less is to be noticed
  bool tried_ = false, duplicated_later_ = false;
  Asking trying_{1};  ///< again
  std::shared_ptr<OwnComm> own_;
  const char* why_none_ = too_many_communicators;
  std::string failure_;  ///< why there will be none
  std::optional<Line> foreground_;
  std::optional<BackgroundLine> background_;
};

/// Before there are groups, on all ranks; and when there are none any more.
void prepare_groups();
void release_groups();

}  // namespace laconic::preload
