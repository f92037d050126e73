#include "collective/communicator.h"

#include <utility>

#include "collective/pool.h"
#include "collective/routing.h"
#include "core/error.h"

namespace laconic {
namespace {

/// What ranks of a node send each other as it is stays on their GPUs if the transport can fetch it there.
std::unique_ptr<BufferPool> make_pool(Memory& memory, const Transport& transport) {
  return std::make_unique<BufferPool>(memory, !memory.on_host() && transport.takes_device_memory());
}

}  // namespace

Communicator::Communicator(std::unique_ptr<Transport> transport, Options defaults, Memory& memory)
    : owned_(std::move(transport)),
      transport_(owned_.get()),
      memory_(&memory),
      defaults_(defaults),
      pool_(make_pool(memory, *transport_)),
      routing_(std::make_unique<Routing>()) {}

Communicator::Communicator(Transport& transport, Options defaults, Memory& memory)
    : transport_(&transport),
      memory_(&memory),
      defaults_(defaults),
      pool_(make_pool(memory, *transport_)),
      routing_(std::make_unique<Routing>()) {}

Communicator::~Communicator() = default;

void Communicator::use(Memory& memory) {
  memory_ = &memory;
  pool_ = make_pool(memory, *transport_);
}

void Communicator::refuse_further_calls() {
  throw Error(Code::transport, "this communicator failed before and cannot be used any more; make a new one");
}

void Communicator::set_defaults(const Options& options) {
  defaults_ = options;
  routing_->shortcuts().forget();
}

void Communicator::record(const Report& call) {
  last_ = call;
  last_is_plain_ = false;
  total_.merge(call.stats);
}

// All that is written here is what changes from one such call to the next.
void Communicator::record_plain(std::uint64_t bytes, double seconds, double result_bound) {
  Stats& s = last_.stats;
  if (!last_is_plain_) {
    last_ = {};
    last_.route = Route::plain;
    s.calls = s.plain_calls = 1;
    last_is_plain_ = true;
  }
  count_unasked();
  last_.result_bound = result_bound;
  s.original_bytes = s.wire_bytes = bytes;
  s.wire_seconds = seconds;
  ++total_.calls;
  ++total_.plain_calls;
  total_.original_bytes += bytes;
  total_.wire_bytes += bytes;
  total_.wire_seconds += seconds;
}

}  // namespace laconic
