// Non-blocking and persistent calls behind requests of MPI's own: a receive from this very rank, which a thread of
// Laconic's answers when the call is done. The program's MPI_Wait and MPI_Test need not know.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>

#include "preload/mpi/call.h"
#include "preload/mpi/runtime.h"

namespace laconic::preload {

/// The call as MPI itself would make it, blocking, over another communicator of the same ranks.
using PlainCall = std::function<int(MPI_Comm)>;
/// The same begun, not blocking.
using PlainStart = std::function<int(MPI_Comm, MPI_Request*)>;
/// Makes one that can be called when the program's call has returned; the call then refers to nothing that the program
/// may take away, as long as there is the one that was made.
using KeepCall = std::function<PlainCall(Call&)>;
using KeepStart = std::function<PlainStart(Call&)>;

/// One call over a line: decides about it, makes it, counts it. Returns MPI's code. Throws what the program's error
/// handlers throw, as MPI itself lets it pass.
int perform(Runtime& runtime, Line& line, const Call& call, const std::string& label, const PlainCall& plain);
/// Over the communicator's own line, now.
int perform(Runtime& runtime, Group& group, const Call& call, const PlainCall& plain);

/// *request is complete when the call is done. `group` is accompanied. Returns at once. A call that is known to be
/// MPI's own becomes a request of its own, by `now`.
int begin(Runtime& runtime, Group& group, Call call, const PlainStart& now, const KeepStart& keep,
          MPI_Request* request);

/// *request is inactive; each MPI_Start begins the call, over a communicator for this one alone, since persistent calls
/// may be started in any order. Collective, as MPI allows. What becomes MPI's own is made by `now`.
int make_persistent(Runtime& runtime, Group& group, Call call, const std::function<int()>& now, const KeepCall& keep,
                    MPI_Request* request);
/// For MPI_Start: `start` starts the request, and if it is one of ours, the call begins.
int start_persistent(MPI_Request* request, int (*start)(MPI_Request*));
/// Whether the program's MPI_Start() and its relatives are this library's. In front of it there may be a tool that
/// knows no persistent collectives, and calls MPI's own functions: what is made here would never begin.
bool hears_of_requests();
/// Whether there are any. Cheap.
bool has_persistent();
/// For MPI_Request_free: forgets it, if it is one of ours.
void forget_persistent(MPI_Request request);

/// When the program has set a communicator's error handler: persistent calls over it follow.
void renew_persistent_errors(MPI_Comm comm);
/// When the program has revoked a communicator, by `mpi`: persistent calls over it end with errors.
void revoke_persistent(MPI_Comm comm, int (*mpi)(MPI_Comm));
/// When the program frees a communicator, before MPI does: persistent calls over it stay.
void outlive_communicator(MPI_Comm comm);
/// Waits for those under way. A call that is started from now on its MPI_Start makes, as far as it is ours.
void retire_persistent();
/// For MPI_Cancel, which `mpi` is: an error for what is one of ours and not done, as MPI itself has it for collectives.
int cancel(MPI_Request* request, int (*mpi)(MPI_Request*));

void prepare_requests();
/// Waits for what is under way.
void release_requests();

}  // namespace laconic::preload
