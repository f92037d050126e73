// What an MPI datatype is made of, and copying between a program's layout and plain arrays.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>

#include "core/dtype.h"
#include "core/op.h"

namespace laconic::preload {

/// One element of an MPI datatype, as far as Laconic understands it. What ranks must have in common in a collective,
/// the type signature, decides `base`; the layout may differ between them.
struct TypeInfo {
  std::optional<DType> base;  ///< what all its numbers are; nothing: not understood, the call is left to MPI
  std::size_t numbers = 0;    ///< of them in one element: a complex number has two
  std::size_t bytes = 0;      ///< of data, without gaps; where not understood see bytes_in()
  MPI_Aint extent = 0;        ///< from one element to the next
  bool dense = false;         ///< elements are their numbers in order and nothing else
  bool reducible = false;     ///< sum, minimum and maximum are defined for it
  bool usable = true;         ///< MPI takes it in a call: there is one, and it has been committed
  bool empty = false;         ///< elements have nothing in them: any number of them is none
};

/// Learned once a type, when it has been committed, and kept with it (as an MPI attribute). Valid until the type is
/// freed. Thread safe.
const TypeInfo& info_of(MPI_Datatype type);

/// Bytes of data in an element of whatever type: the same on ranks whose type signatures are.
std::size_t bytes_in(MPI_Datatype type);

/// Whether a program made it, of others, and may free it.
bool is_derived(MPI_Datatype type);

/// sum, min and max; nothing for others, those that a program made among them. A minimum of complex numbers is none.
std::optional<Op> op_of(MPI_Op op);

/// The numbers of `count` elements at `buffer` (which may be MPI_BOTTOM), one after the other, to `out`; and back: gaps
/// are not touched. By MPI itself, so any layout will do. Thread safe. They return MPI's error code.
int gather_numbers(const void* buffer, MPI_Count count, MPI_Datatype type, void* out);
int scatter_numbers(const void* in, void* buffer, MPI_Count count, MPI_Datatype type);

/// Before any of the others, after MPI has been initialised; and when nothing of it will be used any more.
void prepare_datatypes();
void release_datatypes();

}  // namespace laconic::preload
