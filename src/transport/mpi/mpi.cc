#include "transport/mpi/mpi.h"

#include <algorithm>
#include <climits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "transport/mpi/in_mpi.h"
#include "transport/mpi/plain.h"
#include "transport/mpi/roll_call.h"

namespace laconic {
namespace {

[[noreturn]] void fail(int rank, const std::string& call, int status, const std::string& missing = "") {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  PMPI_Error_string(status, text, &length);
  throw Error(Code::transport, "rank " + std::to_string(rank) + ": " + call + " failed: " + text + missing);
}

/// A count and type that describe `bytes` bytes, also more than an int can count.
class ByteType {
 public:
  explicit ByteType(std::size_t bytes) {
    if (bytes <= static_cast<std::size_t>(INT_MAX)) {
      count_ = static_cast<int>(bytes);
      return;
    }
    constexpr std::size_t unit = std::size_t{1} << 30;
    MPI_Datatype units = MPI_DATATYPE_NULL;
    PMPI_Type_contiguous(static_cast<int>(unit), MPI_BYTE, &units);
    int lengths[2] = {static_cast<int>(bytes / unit), static_cast<int>(bytes % unit)};
    MPI_Aint places[2] = {0, static_cast<MPI_Aint>(bytes - bytes % unit)};
    MPI_Datatype types[2] = {units, MPI_BYTE};
    PMPI_Type_create_struct(2, lengths, places, types, &type_);
    PMPI_Type_commit(&type_);
    PMPI_Type_free(&units);
    count_ = 1;
  }
  ByteType(const ByteType&) = delete;
  ByteType& operator=(const ByteType&) = delete;
  ~ByteType() {
    if (type_ != MPI_BYTE) PMPI_Type_free(&type_);  // MPI keeps it for the operations that still use it
  }
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] MPI_Datatype type() const { return type_; }

 private:
  int count_ = 0;
  MPI_Datatype type_ = MPI_BYTE;
};

// Above all that callers have; MPI has them up to 32767 at least.
constexpr int plain_tag = 32762;
constexpr int roll_call_tag = 32764;
// While nobody has given up: about 10 ms.
constexpr int tests_between_calls = 128;

[[noreturn]] void throw_given_up(int rank, int who, const std::string& missing) {
  throw Error(Code::transport, "rank " + std::to_string(rank) + " cannot end its call: rank " + std::to_string(who) +
                                   " has given up waiting" + missing + "; raise LACONIC_TIMEOUT if one is only slow");
}

/// What MPI fails on may be the fault of a rank that only others wait for.
[[noreturn]] void fail(RollCall& roll_call, int rank, int peer, const std::string& call, int status, double timeout) {
  roll_call.give_up(RollCall::Why::nothing_came, peer);
  fail(rank, call, status, roll_call.missing(patience_after(timeout)));
}

std::string send_to(int rank) { return "a send to rank " + std::to_string(rank); }
std::string receive_from(int rank) { return "a receive from rank " + std::to_string(rank); }

class MpiState final : public Request::State {
 public:
  /// Of what begin() begins.
  MpiState(bool is_send, int rank, int peer, double timeout, std::shared_ptr<RollCall> roll_call)
      : is_send_(is_send), rank_(rank), peer_(peer), timeout_(timeout), roll_call_(std::move(roll_call)) {}
  MpiState(const MpiState&) = delete;
  MpiState& operator=(const MpiState&) = delete;

  // After an error the peer may be gone, so nothing here may wait for it.
  ~MpiState() override {
    int finalized = 0;
    PMPI_Finalized(&finalized);
    if (finalized != 0 || request_ == MPI_REQUEST_NULL) return;
    roll_call_->own().give_up();
    if (!is_send_) PMPI_Cancel(&request_);
    PMPI_Request_free(&request_);
  }

  /// mpi(&request), which gives MPI's code, begins it.
  template <typename Mpi>
  void begin(Mpi&& mpi) {
    MPI_Request request = MPI_REQUEST_NULL;
    require(in_mpi([&] { return mpi(&request); }));
    request_ = request;
  }

  bool test() override {
    int done = 0;
    MPI_Status status;
    require(in_mpi([&] { return PMPI_Test(&request_, &done, &status); }));
    if (done == 0) return false;
    if (!is_send_) {
      MPI_Count bytes = 0;
      PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
      received = static_cast<std::size_t>(bytes);
    }
    return true;
  }

  void wait() override {
    int tests = 0;
    const auto done = [&] {
      if (test()) return true;
      const bool listens = roll_call_->somebody_gave_up() || ++tests % tests_between_calls == 0;
      return listens && done_or_peer_gave_up();
    };
    if (done_in_time(done, timeout_) || done_or_peer_gave_up()) return;
    throw_too_late();
  }

  bool await(bool patient) override {
    if (patient || !until_) until_.emplace(timeout_);
    if (test()) return true;
    const bool late = until_->passed();
    const bool listens = late || roll_call_->somebody_gave_up() || ++awaited_ % tests_between_calls == 0;
    if (listens && done_or_peer_gave_up()) return true;
    if (late) throw_too_late();
    return false;
  }

 private:
  void require(int code) {
    if (code == MPI_SUCCESS) return;
    fail(*roll_call_, rank_, peer_, is_send_ ? send_to(peer_) : receive_from(peer_), code, timeout_);
  }

  [[noreturn]] void throw_too_late() {
    const std::string missing = missing_after(RollCall::Why::nothing_came);
    const std::string peer = std::to_string(peer_);
    throw_timeout(rank_, (is_send_ ? "rank " + peer + " to take a message" : "a message from rank " + peer) + missing,
                  timeout_);
  }

  /// Throws where the peer has given up; what it did before counts.
  bool done_or_peer_gave_up() {
    roll_call_->hear();
    if (!roll_call_->gave_up(peer_)) {
      if (roll_call_->somebody_gave_up()) roll_call_->answer(peer_);
      return false;
    }
    if (test()) return true;
    throw_given_up(rank_, peer_, missing_after(RollCall::Why::another_did));
  }

  std::string missing_after(RollCall::Why why) {
    roll_call_->give_up(why, peer_);
    return roll_call_->missing(patience_after(timeout_));
  }

  MPI_Request request_ = MPI_REQUEST_NULL;
  bool is_send_;
  int rank_;
  int peer_;
  double timeout_;
  std::optional<Deadline> until_{};  ///< of await()
  unsigned awaited_ = 0;
  std::shared_ptr<RollCall> roll_call_;
};

std::string library_name() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  PMPI_Get_library_version(text, &length);
  std::string name(text, static_cast<std::size_t>(length));
  name = name.substr(0, name.find_first_of("\n,"));
  if (name.rfind("MPICH Version:", 0) == 0) {
    const auto digits = name.find_first_of("0123456789");
    name = "MPICH " + (digits == std::string::npos ? "" : name.substr(digits));
  } else if (name.rfind("Open MPI v", 0) == 0) {
    name = "Open MPI " + name.substr(10);
  }
  return "MPI (" + name + ")";
}

std::unique_ptr<Transport> transport_over(const std::shared_ptr<OwnComm>& own, double timeout, std::vector<int> nodes);

constexpr const char* needs_threads =
    "MPI must have been initialised for several threads: MPI_Init_thread with MPI_THREAD_MULTIPLE";

bool has_threads() {
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  return level >= MPI_THREAD_MULTIPLE;
}

class MpiTransport final : public Transport {
 public:
  /// lanes: of all transports over `own`.
  MpiTransport(std::shared_ptr<OwnComm> own, int lane, int lanes, MPI_Comm meeting, double timeout,
               std::vector<int> nodes)
      : own_(std::move(own)),
        comm_(own_->get()),
        meeting_(meeting),
        lane_(lane),
        lanes_(lanes),
        timeout_(timeout),
        nodes_(std::move(nodes)),
        roll_call_(std::make_shared<RollCall>(own_, roll_call_tag + lane)),
        name_(library_name()),
        plain_(make_plain_mpi(meeting, comm_, plain_tag + lane)) {
    PMPI_Comm_rank(comm_, &rank_);
    PMPI_Comm_size(comm_, &size_);
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] const std::vector<int>& nodes() const override { return nodes_; }
  [[nodiscard]] std::string description() const override { return name_; }
  [[nodiscard]] bool takes_device_memory() const override { return plain_->takes_device_arrays(); }
  PlainCollectives* plain() override { return plain_.get(); }

  Request isend(std::span<const std::uint8_t> data, int to, int tag) override {
    const ByteType bytes(data.size());
    return begin(true, to, [&](MPI_Request* request) {
      return PMPI_Isend(data.data(), bytes.count(), bytes.type(), to, tag_of(tag), comm_, request);
    });
  }

  Request irecv(std::span<std::uint8_t> buffer, int from, int tag) override {
    const ByteType bytes(buffer.size());
    return begin(false, from, [&](MPI_Request* request) {
      return PMPI_Irecv(buffer.data(), bytes.count(), bytes.type(), from, tag_of(tag), comm_, request);
    });
  }

  void allgather_small(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) override {
    // Its next collective would be taken for the one that it has left.
    if (gave_up_) throw Error(Code::transport, "rank " + std::to_string(rank_) + ": a call before ended in its middle");
    small_->mine.assign(mine.begin(), mine.end());
    small_->all.resize(all.size());
    MPI_Request request = MPI_REQUEST_NULL;
    const int bytes = static_cast<int>(mine.size());
    const int code = in_mpi([&] {
      return PMPI_Iallgather(small_->mine.data(), bytes, MPI_BYTE, small_->all.data(), bytes, MPI_BYTE, meeting_,
                             &request);
    });
    int tests = 0;
    const auto require = [&](int status) {
      if (status == MPI_SUCCESS) return;
      if (meeting_ != comm_) error_of_meeting() = status;
      fail(*roll_call_, rank_, Signs::everybody, "MPI_Iallgather", status, timeout_);
    };
    const auto done = [&] {
      int flag = 0;
      require(in_mpi([&] { return PMPI_Test(&request, &flag, MPI_STATUS_IGNORE); }));
      if (flag == 0 && ++tests % tests_between_calls == 0) require_nobody_gave_up();
      return flag != 0;
    };
    try {
      require(code);
      if (!done_in_time(done, timeout_)) {
        throw_timeout(rank_, all_to_call + missing_after(RollCall::Why::nothing_came), timeout_);
      }
      require_nobody_gave_up();  // the exchange may have ended by what they had sent before, and they are gone
    } catch (...) {
      give_up();
      throw;
    }
    std::copy(small_->all.begin(), small_->all.end(), all.begin());
  }

  std::unique_ptr<Transport> duplicate() override {
    const std::uint8_t mine = has_threads() ? 1 : 0;
    std::vector<std::uint8_t> all(static_cast<std::size_t>(size_));
    allgather_small({&mine, 1}, all);
    if (std::find(all.begin(), all.end(), 0) != all.end()) throw Error(Code::unsupported, needs_threads);
    return transport_over(std::make_shared<OwnComm>(comm_), timeout_, nodes_);
  }

  std::unique_ptr<Transport> companion() override {
    if (!has_threads()) throw Error(Code::unsupported, needs_threads);
    auto made = std::make_unique<MpiTransport>(own_, lane_, lanes_, meeting_, timeout_, nodes_);
    made->roll_call_ = roll_call_;
    return made;
  }

  // Progress in both libraries comes from any call that looks for messages.
  void poll() override {
    roll_call_->hear();
    if (roll_call_->somebody_gave_up()) roll_call_->answer(Signs::nobody);
  }

 private:
  /// Its state is there before it is under way: nothing may be lost between.
  template <typename Mpi>
  Request begin(bool is_send, int peer, Mpi&& mpi) {
    auto state = std::make_unique<MpiState>(is_send, rank_, peer, timeout_, roll_call_);
    state->begin(mpi);
    return Request(std::move(state));
  }

  struct Small {
    std::vector<std::uint8_t> mine, all;
  };

  std::string missing_after(RollCall::Why why) {
    roll_call_->give_up(why, Signs::everybody);
    return roll_call_->missing(patience_after(timeout_));
  }

  void require_nobody_gave_up() {
    roll_call_->hear();
    if (!roll_call_->somebody_gave_up()) return;
    const std::string missing = missing_after(RollCall::Why::another_did);
    throw_given_up(rank_, *roll_call_->first(), missing);
  }

  // A collective request can be neither cancelled nor freed: MPI may write to its buffers until the end.
  void give_up() {
    static std::mutex mutex;
    static std::vector<std::unique_ptr<Small>> kept;
    const std::lock_guard lock(mutex);
    kept.push_back(std::exchange(small_, std::make_unique<Small>()));
    own_->give_up();
    gave_up_ = true;
  }

  [[nodiscard]] int tag_of(int tag) const { return tag * lanes_ + lane_; }

  std::shared_ptr<OwnComm> own_;
  MPI_Comm comm_, meeting_;
  int lane_, lanes_;
  int rank_ = 0;
  int size_ = 1;
  double timeout_;
  bool gave_up_ = false;
  std::vector<int> nodes_;
  std::shared_ptr<RollCall> roll_call_;
  std::unique_ptr<Small> small_ = std::make_unique<Small>();
  std::string name_;
  std::unique_ptr<PlainCollectives> plain_;
};

std::unique_ptr<Transport> transport_over(const std::shared_ptr<OwnComm>& own, double timeout, std::vector<int> nodes) {
  return std::make_unique<MpiTransport>(own, 0, 1, own->get(), timeout, std::move(nodes));
}

}  // namespace

int& error_of_meeting() {
  thread_local int error = MPI_SUCCESS;
  return error;
}

// No duplicate: that would have the attributes, and call what the program has for copying them. Of a Cartesian or graph
// communicator with fewer ranks than its parent MPICH 5.0 gives the parent's group, whose first ranks are the right
// ones. And MPICH counts its collectives over a communicator (MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD): after some it takes
// another algorithm, whose sums are rounded differently. To make one from a group counts as none.
OwnComm::OwnComm(MPI_Comm comm) {
  int rank = 0, size = 1;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  MPI_Group all = MPI_GROUP_NULL, its = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &all);
  int range[1][3] = {{0, size - 1, 1}};
  PMPI_Group_range_incl(all, 1, range, &its);
#ifdef OPEN_MPI
  const int code = PMPI_Comm_create(comm, its, &comm_);
#else
  constexpr int tag = 32767;  // the largest that every MPI has
  const int code = PMPI_Comm_create_group(comm, its, tag, &comm_);
#endif
  PMPI_Group_free(&its);
  PMPI_Group_free(&all);
  if (code != MPI_SUCCESS) fail(rank, "making a communicator", code);
  PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
}

OwnComm::~OwnComm() {
  int finalized = 0, unread = 0;
  PMPI_Finalized(&finalized);
  if (finalized != 0 || gave_up_) return;
  // What others have sent who have given this rank up. MPICH 5 ends a program that frees a communicator with such.
  constexpr int looks = 16;  // at what has come, but not been taken in yet
  for (int i = 0; i < looks && unread == 0; ++i)
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &unread, MPI_STATUS_IGNORE);
  if (unread == 0) PMPI_Comm_free(&comm_);
}

std::unique_ptr<Transport> make_mpi_transport(MPI_Comm comm, double timeout_seconds) {
  const auto own = std::make_shared<OwnComm>(comm);
  return transport_over(own, timeout_seconds, find_mpi_nodes(own->get()));
}

std::unique_ptr<Transport> share_mpi_transport(std::shared_ptr<OwnComm> own, int lane, MPI_Comm meeting,
                                               double timeout_seconds, std::vector<int> nodes) {
  return std::make_unique<MpiTransport>(std::move(own), lane, 2, meeting, timeout_seconds, std::move(nodes));
}

std::vector<int> find_mpi_nodes(MPI_Comm comm) {
  int rank = 0, size = 1;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  MPI_Comm node = MPI_COMM_NULL;
  int code = PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  if (code != MPI_SUCCESS) fail(rank, "MPI_Comm_split_type", code);
  int lowest = rank;  // of the node's rank 0, since the split keeps the order
  PMPI_Bcast(&lowest, 1, MPI_INT, 0, node);
  PMPI_Comm_free(&node);
  std::vector<int> nodes(static_cast<std::size_t>(size));
  code = PMPI_Allgather(&lowest, 1, MPI_INT, nodes.data(), 1, MPI_INT, comm);
  if (code != MPI_SUCCESS) fail(rank, "MPI_Allgather", code);
  return nodes;
}

}  // namespace laconic
