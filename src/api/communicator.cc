// What there is to know of a communicator.
#include "api/arguments.h"

namespace laconic::api {

void fill(laconic_stats* out, const Stats& stats, const Report& last) {
  if (out == nullptr) throw Error(Code::invalid_argument, "stats is null");
  // A program compiled against an older header knows fewer fields; none of them was ever removed.
  if (out->struct_size < offsetof(laconic_stats, result_bound) + sizeof out->result_bound) {
    throw Error(Code::invalid_argument, "stats: set struct_size to sizeof(laconic_stats)");
  }
  out->calls = stats.calls;
  out->original_bytes = stats.original_bytes;
  out->wire_bytes = stats.wire_bytes;
  out->codec_seconds = stats.codec_seconds;
  out->wire_seconds = stats.wire_seconds;
  out->compute_seconds = stats.compute_seconds;
  out->other_seconds = stats.other_seconds;
  out->operand_bound = last.operand_bound;
  out->result_bound = last.result_bound;
  if (out->struct_size < offsetof(laconic_stats, verified) + sizeof out->verified) return;
  out->achieved_error = last.achieved_error;
  out->verified = last.verified;
  if (out->struct_size < offsetof(laconic_stats, plain_calls) + sizeof out->plain_calls) return;
  out->plain_calls = stats.plain_calls;
}

}  // namespace laconic::api

namespace lac = laconic;
using lac::api::guarded;

extern "C" {

int laconic_comm_rank(const laconic_comm* comm) { return comm == nullptr ? -1 : comm->comm.rank(); }

int laconic_comm_size(const laconic_comm* comm) { return comm == nullptr ? -1 : comm->comm.size(); }

int laconic_comm_set_options(laconic_comm* comm, const laconic_options* options) {
  return guarded([&] {
    lac::Communicator& c = lac::api::required(comm);
    const lac::Options o = lac::api::options_from(options, lac::api::options_from_environment());
    lac::require_threads(o.threads);
    c.set_defaults(o);
  });
}

int laconic_comm_last(const laconic_comm* comm, laconic_stats* stats) {
  return guarded([&] {
    const lac::Communicator& c = lac::api::required(comm);
    lac::api::fill(stats, c.last().stats, c.last());
  });
}

int laconic_comm_total(const laconic_comm* comm, laconic_stats* stats) {
  return guarded([&] {
    const lac::Communicator& c = lac::api::required(comm);
    lac::api::fill(stats, c.total(), c.last());
  });
}

void laconic_comm_free(laconic_comm* comm) { delete comm; }

}  // extern "C"
