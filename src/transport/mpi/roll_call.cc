#include "transport/mpi/roll_call.h"

#include "transport/mpi/in_mpi.h"
#include "transport/timeout.h"

namespace laconic {

RollCall::RollCall(MPI_Comm comm, int tag) : comm_(comm), tag_(tag) {}

// What MPI cannot send or receive any more is a rank of which nothing is heard.
std::optional<int> RollCall::given_up(int who) const {
  int found = 0;
  MPI_Status status;
  const int code = in_mpi([&] { return PMPI_Iprobe(who, tag_, comm_, &found, &status); });
  if (code != MPI_SUCCESS || found == 0) return {};
  return status.MPI_SOURCE;
}

void RollCall::give_up(Why why) const {
  static constexpr Why words[] = {Why::nothing_came, Why::another_did};  // there for as long as MPI may read them
  int rank = 0, size = 1;
  PMPI_Comm_rank(comm_, &rank);
  PMPI_Comm_size(comm_, &size);
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    const Why* const word = &words[static_cast<int>(why)];
    const int code = in_mpi([&] { return PMPI_Isend(word, sizeof *word, MPI_BYTE, peer, tag_, comm_, &request); });
    if (code == MPI_SUCCESS && request != MPI_REQUEST_NULL) PMPI_Request_free(&request);
  }
}

RollCall::Answers RollCall::listen(double seconds) const {
  int rank = 0, size = 1;
  PMPI_Comm_rank(comm_, &rank);
  PMPI_Comm_size(comm_, &size);
  Answers answers;
  for (int r = 0; r < size; ++r)
    if (r != rank) answers.silent.push_back(r);
  const auto all_answered = [&] {
    while (const auto who = given_up(MPI_ANY_SOURCE)) {
      Why why{};
      const auto take = [&] { return PMPI_Recv(&why, sizeof why, MPI_BYTE, *who, tag_, comm_, MPI_STATUS_IGNORE); };
      if (in_mpi(take) != MPI_SUCCESS) return false;
      std::erase(answers.silent, *who);
      if (why == Why::nothing_came && !answers.first) answers.first = who;
    }
    return answers.silent.empty();
  };
  static_cast<void>(done_in_time(all_answered, seconds));
  return answers;
}

}  // namespace laconic
