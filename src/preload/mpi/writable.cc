#include "preload/mpi/writable.h"

#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <string>
#include <system_error>

#include "preload/mpi/datatypes.h"
#include "preload/mpi/device_memory.h"

namespace laconic::preload {
namespace {

/// Bytes of the program's, from `first` up to `end`.
struct Reach {
  std::uintptr_t first, end;
};

/// All that a block of so many elements at `buffer` may touch.
Reach reach_of(const Side& side) {
  MPI_Count lowest = 0, span = 0;
  PMPI_Type_get_true_extent_x(side.type, &lowest, &span);
  const MPI_Count last = (side.counts[0] - 1) * info_of(side.type).extent;  // where the last element begins
  const auto at = [&](MPI_Count offset) {
    return reinterpret_cast<std::uintptr_t>(side.buffer) + static_cast<std::uintptr_t>(offset);
  };
  return {at(lowest + std::min<MPI_Count>(last, 0)), at(lowest + span + std::max<MPI_Count>(last, 0))};
}

bool populates(std::uintptr_t first, std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = first / page * page;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return ::madvise(reinterpret_cast<void*>(begin), first - begin + bytes, MADV_POPULATE_WRITE) == 0;
#else
  static_cast<void>(first);
  static_cast<void>(bytes);
  return false;
#endif
}

/// A line of /proc/self/maps, "first-end perms ...": what it says may be written. Otherwise nothing: {0, 0}.
Reach writable_part(const std::string& line) {
  Reach part{0, 0};
  const char* const last = line.data() + line.size();
  const auto [dash, no_first] = std::from_chars(line.data(), last, part.first, 16);
  if (no_first != std::errc{} || dash == last) return {0, 0};
  const auto [blank, no_end] = std::from_chars(dash + 1, last, part.end, 16);
  const bool writable = no_end == std::errc{} && last - blank > 2 && blank[2] == 'w';
  return writable ? part : Reach{0, 0};
}

/// Whether mappings that may be written cover it; they come in ascending order.
bool is_covered(Reach reach) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; reach.first < reach.end && std::getline(maps, line);) {
    const Reach part = writable_part(line);
    if (part.end <= reach.first) continue;
    if (part.first > reach.first) return false;
    reach.first = part.end;
  }
  return reach.first >= reach.end;
}

}  // namespace

bool is_writable(const Side& side) {
  const TypeInfo& type = info_of(side.type);
  if (side.counts[0] == 0 || type.bytes == 0) return true;
  const Reach reach = reach_of(side);
  if (is_device_memory(reach.first)) return true;  // of which the kernel knows nothing
  int known = 0;
  // A kernel before Linux 5.14, or one that is forbidden to, cannot tell: then its list of mappings must do.
  if (!type.dense || !populates(reinterpret_cast<std::uintptr_t>(&known), sizeof known)) return is_covered(reach);
  return populates(reach.first, reach.end - reach.first);
}

}  // namespace laconic::preload
