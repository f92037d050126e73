#include "collective/background.h"

#include <utility>

namespace laconic {

Background::Background(std::unique_ptr<Transport> transport) : comm_(std::move(transport)) {}

std::future<Report> Background::submit(Work work) {
  if (!usable_) Communicator::refuse_further_calls();
  const auto task =
      std::make_shared<std::packaged_task<Report(Communicator&)>>([this, work = std::move(work)](Communicator& on) {
        try {
          return work(on);
        } catch (const Error&) {
          if (!on.usable()) usable_ = false;
          throw;
        } catch (...) {
          usable_ = false;
          throw;
        }
      });
  std::future<Report> result = task->get_future();
  worker_.submit([this, task] { (*task)(comm_); });
  return result;
}

}  // namespace laconic
