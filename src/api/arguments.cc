#include "api/arguments.h"

#include <string>

namespace laconic::api {

void require_dtype(laconic_dtype dtype) {
  if (is_valid(as_dtype(dtype))) return;
  throw Error(Code::invalid_argument, "dtype " + std::to_string(static_cast<int>(dtype)) +
                                          " is none that Laconic knows: want one of laconic_dtype");
}

void require_op(laconic_op op) {
  if (op >= LACONIC_SUM && op <= LACONIC_PRODUCT) return;
  throw Error(Code::unsupported,
              "op " + std::to_string(static_cast<int>(op)) + ": want sum, average, min, max or product");
}

void require_long_count(const char* name, std::size_t count, DType dtype, int ranks) {
  if (!is_valid(dtype)) return;  // refused for that
  const std::size_t most = most_elements_of(dtype) / static_cast<std::size_t>(ranks);
  if (count <= most) return;
  throw Error(Code::invalid_argument,
              std::string(name) + " is " + std::to_string(count) + ": want at most " + std::to_string(most));
}

void require_counts(const char* counts, const char* displs, const Parts& parts, DType dtype) {
  if (!is_valid(dtype)) return;
  if (parts.counts.empty()) throw Error(Code::invalid_argument, std::string(counts) + " is null");
  const std::size_t most = most_elements_of(dtype);
  std::size_t sum = 0;
  for (std::size_t r = 0; r < parts.counts.size(); ++r) {
    const std::size_t count = parts.counts[r];
    if (count > most - sum) {
      throw Error(Code::invalid_argument, std::string(counts) + "[" + std::to_string(r) +
                                              "] = " + std::to_string(count) + ": want at most " +
                                              std::to_string(most) + " in all");
    }
    sum += count;
    if (parts.displs.empty() || count == 0 || parts.displs[r] <= most - count) continue;
    throw Error(Code::invalid_argument, std::string(displs) + "[" + std::to_string(r) +
                                            "] = " + std::to_string(parts.displs[r]) + " and " + counts + "[" +
                                            std::to_string(r) + "] lead beyond " + std::to_string(most));
  }
}

}  // namespace laconic::api
