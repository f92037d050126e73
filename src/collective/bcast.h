// Every rank gets the root's array.
#pragma once

#include "collective/communicator.h"
#include "core/array.h"

namespace laconic {

/// data of every rank = data of rank `root`, which must be the same number on every rank, as count, dtype and bound
/// must: else Error(mismatch) on every rank, naming one that differs and both values.
///
/// Compressed once and forwarded unopened: |data[i] - the root's| <= bound. Every rank holds the same bytes: also the
/// root, whose array then holds what the others decode. Lossless (the default) keeps every bit. NaN and infinities pass
/// through. An error on any rank is an error on all (Options::confirm); data then holds unspecified values.
const Report& bcast(const MutArray& data, int root, Communicator& comm, const Options& options);

}  // namespace laconic
