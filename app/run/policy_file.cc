#include "run/policy_file.h"

#include "core/error.h"
#include "exit_code.h"

namespace laconic::app {

preload::Policy read_policy(const std::string& path) {
  try {
    return preload::load_policy(path);
  } catch (const Error& e) {
    throw Failure(e.code() == Code::io ? Exit::no_input : Exit::bad_data, e.what());
  }
}

}  // namespace laconic::app
