// What the drop-in library keeps for one of the program's communicators.
#pragma once

#include <mpi.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "collective/communicator.h"
#include "preload/mpi/call.h"

namespace laconic::preload {

/// Runs jobs one after the other on a thread of its own, which begins with the first. Thread safe.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  /// Waits for what has been submitted.
  ~Worker();
  /// Jobs must not throw.
  void submit(std::function<void()> job);
  [[nodiscard]] bool is_idle();

 private:
  void run();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool closing_ = false, busy_ = false;
  std::thread thread_;
};

/// How often irregular calls of one kind are agreed on: where nothing comes of it, rarer and rarer. The same decisions
/// on all ranks, as they make the same calls.
class Asking {
 public:
  bool is_due();
  void learned(bool served);

 private:
  unsigned left_ = 0, interval_ = 0;
};

/// The ranks of one communicator, ready for calls made one after the other.
class Line {
 public:
  /// Collective over `mpi`, which must outlive it. `tag`: the same on all its ranks, and no other Line's.
  Line(MPI_Comm mpi, int tag);
  [[nodiscard]] Communicator& comm() { return comm_; }
  [[nodiscard]] MPI_Comm mpi() const { return mpi_; }
  /// Rank 0's, when this was made: the name decides about rules, so it must be the same everywhere.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Whether an irregular call is not asked about, but left to MPI, and if so, counted. The same on all ranks.
  bool passes_over(Collective collective);
  /// What becomes of an irregular call; nothing: it is left to MPI. Collective.
  std::optional<Shape> agree(Collective collective, const Word& mine);

 private:
  MPI_Comm mpi_;
  std::string name_;
  Communicator comm_;
  std::array<Asking, 16> asking_;  ///< by collective
};

/// The same for calls that run while the program does something else: over a communicator of their own, on a thread of
/// their own.
///
/// MPI_Comm_idup would be the obvious way to that communicator, but Open MPI carries it out by several non-blocking
/// collectives over the program's communicator, begun one after the other whenever it gets round to it: those of
/// another duplication, or the program's own, then meet them in another order on each rank. So only one is made there,
/// at once, by which the ranks learn that all have come; then they meet in a place where the program is not.
class BackgroundLine {
 public:
  /// Returns at once; in the order of the other collectives over `mpi`. Throws Error(transport).
  explicit BackgroundLine(MPI_Comm mpi);
  /// Waits for what has been submitted. Collective.
  ~BackgroundLine();
  BackgroundLine(const BackgroundLine&) = delete;
  BackgroundLine& operator=(const BackgroundLine&) = delete;
  /// Gets the line, or null and why there is none. Must not throw.
  using Job = std::function<void(Line* line, const std::string& why_none)>;
  void submit(Job job);
  /// Errors of MPI's own from now on go where the program has them go now.
  void renew_errors();
  /// The program's communicator.
  [[nodiscard]] MPI_Comm program() const { return program_; }
  /// The line, if all that was submitted is done and it is there; else null. It is the caller's until the next
  /// submit().
  Line* if_idle();

 private:
  void begin();

  MPI_Comm program_;
  MPI_Comm mpi_ = MPI_COMM_NULL;
  MPI_Group ranks_ = MPI_GROUP_NULL;
  MPI_Errhandler errors_ = MPI_ERRHANDLER_NULL;  ///< of mpi_
  std::string name_;                             ///< of the program's communicator
  int tag_ = 0;                                  ///< of the meeting
  MPI_Request arrival_ = MPI_REQUEST_NULL;       ///< until all ranks know it
  std::optional<Line> line_;
  std::string why_none_;
  std::optional<Worker> worker_;
};

/// What there is for one of the program's communicators. The first use of each line is collective.
class Group {
 public:
  Group(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  Line& foreground();
  BackgroundLine& background();
  void renew_errors();

 private:
  MPI_Comm comm_;
  int rank_, size_;
  std::optional<Line> foreground_;
  std::optional<BackgroundLine> background_;
};

/// Until all ranks have come, in the order of the other collectives over `comm`; no thread of Laconic's is held up.
void wait_for_all(MPI_Comm comm);

/// Before background lines are made, on all ranks; and when there are none any more.
void prepare_groups();
void release_groups();

}  // namespace laconic::preload
