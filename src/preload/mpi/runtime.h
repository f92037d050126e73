// What the drop-in library knows in a running program: begun by MPI_Init, ended by MPI_Finalize.
#pragma once

#include <mpi.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/config.h"
#include "preload/mpi/group.h"
#include "preload/policy.h"
#include "preload/tally.h"

namespace laconic::preload {

/// What this rank's calls gained so far; there before MPI_Init and after MPI_Finalize too, for MPI_T.
Tally& tally_of_process();

class Runtime {
 public:
  /// Null before MPI_Init, after MPI_Finalize, and where nothing is served: one rank, a mistake in the environment,
  /// ranks that lack Laconic. Cheap.
  static Runtime* get() { return active_; }

  /// After MPI has been initialised: agrees with the other ranks and, if all are of one mind, becomes active. Otherwise
  /// one rank says on standard error why not. Never throws.
  static void start() noexcept;
  /// Collective, while MPI is finalised: waits for what is under way, writes the report if one was asked for. By itself
  /// when MPI deletes the attributes of MPI_COMM_SELF, of which Laconic's is the last: for the program's own functions
  /// that are called then MPI still is as ever. By before_finalize() where it has none.
  static void stop() noexcept;
  /// MPI_Finalize comes next. Throws what the program's functions throw that delete attributes.
  static void before_finalize();

  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] const Policy& policy() const { return policy_; }
  /// Calls with smaller arrays are never served.
  [[nodiscard]] std::uint64_t least_bytes() const { return least_bytes_; }
  /// Policy::serves_some().
  [[nodiscard]] bool serves_some(Collective c) const { return serves_some_[static_cast<std::size_t>(c)]; }

  /// What Laconic keeps for a communicator. Local. Null for those that are not served: between two groups, of one rank,
  /// with ranks of another program, of a session or a stream, or being freed. `refused` becomes what MPI says of what
  /// is no communicator.
  Group* group_of(MPI_Comm comm, std::optional<int>* refused = nullptr);
  /// When the program has made it from `parent`, on all its ranks: non-blocking calls over it can be served. Not over
  /// those of sessions (parent MPI_COMM_NULL, and what is made from them), where other threads can be let in: sessions
  /// go on when MPI_Finalize has ended this, and what one rank begins before that another may begin after it.
  void accompany(MPI_Comm comm, MPI_Comm parent);
  /// Nothing is served over it, nor over what is made from it.
  void leave_alone(MPI_Comm comm);
  /// As accompany(), before MPI_Init: what comes from a session is remembered, until it is freed.
  static void note_early(MPI_Comm comm, MPI_Comm parent);
  static void forget_early(MPI_Comm comm);
  /// When the program frees it (collective). Waits for what is under way, unless that is what frees it: an error
  /// handler.
  void end_group(MPI_Comm comm);
  /// When the program has set its error handler.
  void renew_errors(MPI_Comm comm);
  /// Whether MPI lets several threads in, on all ranks: without that nothing can be done in the background. No longer
  /// when MPICH is finalised.
  [[nodiscard]] bool has_threads() const { return has_threads_; }
  /// Whether this library is called when the program starts or frees a request, on all ranks: without that persistent
  /// calls would never begin.
  [[nodiscard]] bool has_starts() const { return has_starts_; }

  /// The rule under which a call is served; null, and counted: it is left to MPI.
  const Rule* rule_for(Collective collective, const Shape& shape, std::string_view communicator, int ranks,
                       std::string_view label);
  /// What can be told without asking the other ranks: false if the call is certainly left to MPI.
  bool may_serve(const Call& call, const Group& group);
  /// Of the call that is being made, for rules; empty where none looks at it: what laconic_label() said, else who makes
  /// it, see caller.h.
  [[nodiscard]] std::string label_of(const Call& call, const Group& group) const;
  /// Whether the rule for such a call depends on its label, which is each rank's own. The same on all ranks.
  [[nodiscard]] bool depends_on_label(Collective collective, const Shape& shape, std::string_view communicator,
                                      int ranks) const;
  /// As rule_for(), for all ranks of the line: where it depends on labels, they tell each other which rule theirs leads
  /// to, and the call is MPI's, and counted, if that is not the same. Collective then.
  const Rule* common_rule_for(Collective collective, const Shape& shape, Line& line, std::string_view label);

  /// As MPI reports errors: calls the communicator's error handler with a code that says `what`, or MPI's own where it
  /// has one for that; returns the code. Not again where MPI has done so (error_of_meeting()).
  int raise(MPI_Comm comm, const std::string& what);
  /// The same with an error class of MPI's own.
  static int raise(MPI_Comm comm, int error_class);

 private:
  std::unique_ptr<Group> take_group(MPI_Comm comm);
  explicit Runtime(const Config& config);
  [[nodiscard]] bool is_served(MPI_Comm comm) const;
  [[nodiscard]] std::string wishes() const;
  int code_of(const std::string& what);
  void come_to_one_thread();
  void report();
  void report_nothing();
  std::unique_ptr<Group> take(const void* group);
  void release_idle();
  static int is_over(MPI_Comm self, int keyval, void* none, void* extra);
  [[nodiscard]] bool is_left_alone(MPI_Comm comm) const;
  /// For MPI_Comm_dup: what is made from one that is left alone is so, too; nothing else is handed on.
  static int hand_on(MPI_Comm comm, int keyval, void* extra, void* group, void* copy, int* is_copied);
  static int has_been_freed(MPI_Comm comm, int keyval, void* group, void* extra);

  static Runtime* active_;

  Config config_;
  Policy policy_;
  std::uint64_t least_bytes_ = 0;
  std::array<bool, 16> serves_some_{};  ///< by collective
  bool has_threads_ = false, has_starts_ = false;
  bool stops_by_itself_ = false;
  std::unique_ptr<OwnComm> end_;     ///< of all ranks, for the report
  int keyval_ = MPI_KEYVAL_INVALID;  ///< of the attribute that is a communicator's Group
  int error_class_ = MPI_ERR_OTHER;
  std::map<std::string, int> codes_;  ///< of errors, by their texts
  std::mutex mutex_;
  std::vector<std::pair<MPI_Comm, std::unique_ptr<Group>>> groups_;  ///< in the order in which they were made
  /// Of communicators that were freed past this library: by a tool in front of it, say.
  std::vector<std::unique_ptr<Group>> deserted_;
};

/// While there is one, the program frees a communicator: what its functions that delete attributes call over it is
/// MPI's own. An error handler may leave MPI_Comm_free by longjmp: then it stays, until another has the handle.
class Freeing {
 public:
  explicit Freeing(MPI_Comm comm);
  ~Freeing();
  Freeing(const Freeing&) = delete;
  Freeing& operator=(const Freeing&) = delete;
  /// On this thread.
  static bool is_under_way(MPI_Comm comm);
  /// There is a new communicator of this handle.
  static void is_over(MPI_Comm comm);

 private:
  MPI_Comm comm_;
};

/// What laconic_label() said last on this thread.
std::string& label_of_thread();

}  // namespace laconic::preload
