#include "preload/mpi/presence.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "transport/timeout.h"

namespace laconic::preload {
namespace {

// Some launchers cut such texts at blanks, some at 256 characters.
constexpr std::size_t longest_text = 200;
constexpr std::size_t longest_wishes = longest_text / 2;  // two digits a character
constexpr std::string_view consent = "yes";

std::string encoded(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, longest_wishes)) {
    out += digits[static_cast<unsigned char>(c) >> 4];
    out += digits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

std::string decoded(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    out += static_cast<char>(std::strtol(text.substr(i, 2).c_str(), nullptr, 16));
  return out;
}

/// One launcher may run several programs.
std::string key_of(const std::string& what) {
  for (const char* job : {"PMIX_NAMESPACE", "PMI_JOBID"}) {
    const char* const id = std::getenv(job);  // NOLINT(concurrency-mt-unsafe): nothing here changes the environment
    if (id != nullptr) return "laconic-" + encoded(id) + "-" + what;
  }
  return "laconic-" + what;
}

/// What goes wrong here is an answer, not the end of the program. By a handler of our own, since Intel MPI's library of
/// the standard ABI (2021.18) takes MPI_ERRORS_RETURN for MPI_ERRORS_ARE_FATAL. MPICH 5 returns MPI_SUCCESS after one.
class ErrorsReturn {
 public:
  ErrorsReturn() {
    MPI_Errhandler noting = MPI_ERRHANDLER_NULL;
    PMPI_Comm_create_errhandler(note, &noting);
    for (Kept& kept : kept_) {
      PMPI_Comm_get_errhandler(kept.comm, &kept.before);
      PMPI_Comm_set_errhandler(kept.comm, noting);
    }
    PMPI_Errhandler_free(&noting);
  }
  ErrorsReturn(const ErrorsReturn&) = delete;
  ErrorsReturn& operator=(const ErrorsReturn&) = delete;
  ~ErrorsReturn() {
    for (Kept& kept : kept_) {
      PMPI_Comm_set_errhandler(kept.comm, kept.before);
      PMPI_Errhandler_free(&kept.before);
    }
  }

  /// Whether a call of MPI succeeds.
  template <typename Call>
  static bool succeeds(Call&& call) {
    noted_ = false;
    return call() == MPI_SUCCESS && !noted_;
  }

 private:
  static void note(MPI_Comm* /*comm*/, int* /*error*/, ...) { noted_ = true; }

  static inline bool noted_ = false;  // MPI_Init is for one thread
  struct Kept {
    MPI_Comm comm;
    MPI_Errhandler before = MPI_ERRHANDLER_NULL;
  };
#ifdef OPEN_MPI
  Kept kept_[2] = {{MPI_COMM_WORLD}, {MPI_COMM_SELF}};
#else
  // As long as nobody has given MPI_COMM_SELF a handler, MPICH takes that of MPI_COMM_WORLD. That must stay so.
  Kept kept_[1] = {{MPI_COMM_WORLD}};
#endif
};

bool publish(const std::string& what, std::string_view text) {
  const std::string key = key_of(what), value = encoded(text);
  return ErrorsReturn::succeeds([&] { return PMPI_Publish_name(key.c_str(), MPI_INFO_NULL, value.c_str()); });
}

/// Nothing: nobody has published it in time.
std::optional<std::string> look_up(const std::string& what, const Deadline& deadline) {
  const std::string key = key_of(what);
  std::vector<char> text(MPI_MAX_PORT_NAME + 1);
  std::chrono::milliseconds nap{1};
  while (!ErrorsReturn::succeeds([&] { return PMPI_Lookup_name(key.c_str(), MPI_INFO_NULL, text.data()); })) {
    if (deadline.passed()) return std::nullopt;
    std::this_thread::sleep_for(nap);
    nap = std::min(nap * 2, std::chrono::milliseconds{50});
  }
  return decoded(text.data());
}

/// On rank 0: what keeps the ranks from agreeing; empty if nothing does.
std::string judge(const std::string& wishes, int size, const Deadline& deadline) {
  std::string absent;
  for (int r = 1; r < size; ++r) {
    const auto theirs = look_up(std::to_string(r), deadline);
    if (!theirs) {
      absent += (absent.empty() ? "" : ", ") + std::to_string(r);
    } else if (*theirs != wishes.substr(0, longest_wishes)) {
      const char* const rest = theirs->size() < longest_wishes ? "" : "...";
      return "rank 0 has " + wishes + ", rank " + std::to_string(r) + " has " + *theirs + rest;
    }
  }
  return absent.empty() ? "" : "it is not loaded in rank " + absent;
}

/// Whether no lower rank is here: then this one speaks for all.
bool is_first(int rank) {
  const Deadline now(1e-9);
  for (int r = 1; r < rank; ++r) {
    if (look_up(std::to_string(r), now)) return false;
  }
  return true;
}

}  // namespace

Presence agree_on_presence(const std::string& wishes, double timeout) {
  int rank = 0, size = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  const ErrorsReturn errors_return;
  const Deadline deadline(timeout);
  if (rank == 0) {
    const Deadline late(1.5 * timeout);
    std::string why_not = judge(wishes, size, deadline);
    // Who has given up by then, see below, would not hear a yes.
    if (why_not.empty() && late.passed()) why_not = "the launcher takes too long to say who is here";
    // Stays until the program ends: nobody says when the last rank has read it.
    if (!publish("verdict", why_not.empty() ? consent : "no"))
      return {false, "the launcher has no MPI_Publish_name, by which ranks would find each other"};
    return {why_not.empty(), why_not};
  }
  publish(std::to_string(rank), wishes);
  // Rank 0 may wait as long for the last of the others, before it says so.
  const auto verdict = look_up("verdict", Deadline(2 * timeout));
  // Without rank 0 somebody must speak. Names stay then: a later rank must see that an earlier one is here.
  if (!verdict) return {false, is_first(rank) ? "it is not loaded in rank 0" : ""};
  PMPI_Unpublish_name(key_of(std::to_string(rank)).c_str(), MPI_INFO_NULL, encoded(wishes).c_str());
  return {verdict == consent, ""};
}

}  // namespace laconic::preload
