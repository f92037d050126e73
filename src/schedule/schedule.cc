#include "schedule/schedule.h"

#include <utility>

namespace laconic::schedule {

Program concatenate(Program first, const Program& second) {
  first.result = second.result;
  first.steps.insert(first.steps.end(), second.steps.begin(), second.steps.end());
  return first;
}

}  // namespace laconic::schedule
