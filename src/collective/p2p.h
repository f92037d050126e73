// Compressed messages between two ranks that both use this library.
#pragma once

#include <optional>

#include "collective/communicator.h"
#include "collective/mail.h"
#include "core/array.h"
#include "core/error.h"

namespace laconic {

/// Sends and receives, and waits for both: what the calls below do.
Received exchange(const Letter& letter, Communicator& comm, const Options& options,
                  const std::optional<Error>& refused = {});

/// Sends x to rank `to`, another one, which must call recv (or sendrecv) with the same tag. With Options::verify it
/// opens what it sends and tells the achieved error; the exact elements follow, and the receiver compares with them.
/// Returns when x may be changed. A relative bound is relative to x's own range. Options::confirm means nothing here:
/// what goes wrong on the receiver is known there only. Wrong arguments are an error on both.
/// `refused`, here and below: why this rank cannot take part. It is thrown when the other rank has been told instead of
/// being sent something, and what it sends has been taken.
Report send(ConstArray x, int to, int tag, Communicator& comm, const Options& options,
            const std::optional<Error>& refused = {});

/// Receives what rank `from`, another one, sends: at most room.count elements of the same dtype, |room[i] - sent| <=
/// the sender's bound. Where the sender verifies, the report has the achieved error, and an element outside of the
/// bound is Error(internal) here. Another dtype is Error(mismatch), more elements than there is room for
/// Error(too_small), each with both values; a damaged message is Error(corrupt). The whole message has been taken then,
/// so the next one can be received.
Received recv(MutArray room, int from, int tag, Communicator& comm, const Options& options,
              const std::optional<Error>& refused = {});

/// Both at the same time: no order of ranks can block. to and from may be the same rank, this one too. x and room must
/// not overlap.
Received sendrecv(ConstArray x, int to, int send_tag, MutArray room, int from, int recv_tag, Communicator& comm,
                  const Options& options, const std::optional<Error>& refused = {});

}  // namespace laconic
