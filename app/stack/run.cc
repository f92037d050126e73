#include "stack/run.h"

#include <fmt/core.h>

#include "stack/pictures.h"
#include "stack/report.h"

namespace laconic::app {
namespace {

/// Rank 0's verdict, for everyone.
int agree(Transport& t, int mine) {
  std::vector<int> all(static_cast<std::size_t>(t.size()));
  t.allgather_small({reinterpret_cast<const std::uint8_t*>(&mine), sizeof mine},
                    {reinterpret_cast<std::uint8_t*>(all.data()), all.size() * sizeof mine});
  return all[0];
}

}  // namespace

int run_stack_rank(const StackOptions& options, bool json, bool quiet, Transport& transport,
                   const PlainAllreduce& plain) {
  const ImageSet set = load_images(options);
  Communicator comm(transport);
  const StackResult result = measure_stack(options, set, comm, plain);
  if (transport.rank() != 0) return agree(transport, 0);
  std::vector<std::string> pictures;
  if (!options.out.empty()) pictures = write_pictures(result, set, options.out);
  if (json) {
    nlohmann::json j = to_json(result);
    j["pictures"] = pictures;
    fmt::print("{}\n", j.dump(2));
  } else if (!quiet) {
    fmt::print("{}", to_text(result));
    if (!pictures.empty()) fmt::print("pictures: {}\n", pictures.back());
  }
  return agree(transport, exit_code_for(result));
}

}  // namespace laconic::app
