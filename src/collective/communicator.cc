#include "collective/communicator.h"

#include <utility>

#include "collective/pool.h"
#include "collective/routing.h"
#include "core/error.h"

namespace laconic {

Communicator::Communicator(std::unique_ptr<Transport> transport, Options defaults)
    : owned_(std::move(transport)),
      transport_(owned_.get()),
      defaults_(defaults),
      pool_(std::make_unique<BufferPool>()),
      routing_(std::make_unique<Routing>()) {}

Communicator::Communicator(Transport& transport, Options defaults)
    : transport_(&transport),
      defaults_(defaults),
      pool_(std::make_unique<BufferPool>()),
      routing_(std::make_unique<Routing>()) {}

Communicator::~Communicator() = default;

void Communicator::require_usable() const {
  if (usable_) return;
  throw Error(Code::transport, "this communicator failed before and cannot be used any more; make a new one");
}

void Communicator::record(const Report& call) {
  last_ = call;
  total_.merge(call.stats);
}

}  // namespace laconic
