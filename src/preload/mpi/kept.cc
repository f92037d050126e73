#include "preload/mpi/kept.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "preload/mpi/datatypes.h"

namespace laconic::preload {

Kept::Kept(Call& call, int rank, int size) {
  const Sides meant = sides_of(call, rank);  // the others may be anything
  for (Side* side : {&call.send, &call.recv}) {
    if (std::find(meant.begin(), meant.end(), side) == meant.end()) continue;
    keep(side->type);
    side->type = type(side->type);
    keep(side->counts, size);
    keep(side->displacements, size);
  }
}

Kept::~Kept() {
  for (auto& [given, kept] : types_) PMPI_Type_free(&kept);
}

/// Not by MPI_Type_dup, which would call the program back for each attribute of the type.
void Kept::keep(MPI_Datatype given) {
  if (!is_derived(given) || type(given) != given) return;
  MPI_Datatype kept = MPI_DATATYPE_NULL;
  if (PMPI_Type_contiguous(1, given, &kept) != MPI_SUCCESS || PMPI_Type_commit(&kept) != MPI_SUCCESS)
    throw Error(Code::transport, "MPI could not copy a derived datatype");
  types_.emplace_back(given, kept);
}

void Kept::keep(Counts& counts, int size) {
  if (!counts.differ()) return;
  if (array(counts.array()) == counts.array()) {
    const std::size_t bytes = counts.bytes(size);
    auto copy = std::make_unique<char[]>(bytes);
    std::memcpy(copy.get(), counts.array(), bytes);
    arrays_.emplace_back(counts.array(), std::move(copy));
  }
  counts = counts.at(array(counts.array()));
}

MPI_Datatype Kept::type(MPI_Datatype given) const {
  const auto at = std::find_if(types_.begin(), types_.end(), [&](const auto& t) { return t.first == given; });
  return at == types_.end() ? given : at->second;
}

const void* Kept::array(const void* given) const {
  const auto at = std::find_if(arrays_.begin(), arrays_.end(), [&](const auto& a) { return a.first == given; });
  return at == arrays_.end() ? given : at->second.get();
}

}  // namespace laconic::preload
