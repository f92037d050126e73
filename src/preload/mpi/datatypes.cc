#include "preload/mpi/datatypes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace laconic::preload {
namespace {

/// Copies go through messages to oneself, which is how MPI itself reads and writes any layout.
MPI_Comm self = MPI_COMM_NULL;
int copy_tags = 0;
int keyval = MPI_KEYVAL_INVALID;

struct Named {
  MPI_Datatype type;
  TypeInfo info;
};
/// The predefined types, filled once.
std::vector<Named> named;  // NOLINT(cert-err58-cpp)
const TypeInfo nothing;
const TypeInfo unusable = [] {
  TypeInfo none;
  none.usable = false;
  return none;
}();

void add(MPI_Datatype type, DType base, std::size_t numbers = 1, bool reducible = true) {
  if (type == MPI_DATATYPE_NULL) return;
  int size = 0;
  PMPI_Type_size(type, &size);
  const std::size_t bytes = numbers * size_of(base);
  if (static_cast<std::size_t>(size) != bytes) return;  // a compiler's REAL may be anything
  named.push_back({type, {base, numbers, bytes, static_cast<MPI_Aint>(bytes), true, reducible}});
}

/// Floating-point and complex types of whatever width they happen to have here.
void add_real(MPI_Datatype type) {
  add(type, DType::f32);
  add(type, DType::f64);
}
void add_complex(MPI_Datatype type) {
  add(type, DType::f32, 2);
  add(type, DType::f64, 2);
}
void add_signed(MPI_Datatype type) {
  add(type, DType::i32);
  add(type, DType::i64);
}
void add_unsigned(MPI_Datatype type) {
  add(type, DType::u32);
  add(type, DType::u64);
}
/// For MPI_MINLOC and its like, otherwise two numbers, of whatever width they have here. The second is an index, also
/// where it is a real one: its bits move, as those of integers do.
void add_pair(MPI_Datatype type) {
  add(type, DType::i32, 2, false);
  add(type, DType::i64, 2, false);
}

void add_named() {
  for (const MPI_Datatype t : {MPI_FLOAT, MPI_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8})
    add_real(t);
  for (const MPI_Datatype t : {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX8,
                               MPI_COMPLEX16, MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX})
    add_complex(t);
  for (const MPI_Datatype t :
       {MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_INT32_T, MPI_INT64_T, MPI_INTEGER, MPI_INTEGER4, MPI_INTEGER8})
    add_signed(t);
  for (const MPI_Datatype t : {MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UINT32_T, MPI_UINT64_T})
    add_unsigned(t);
  for (const MPI_Datatype t : {MPI_2INT, MPI_2INTEGER, MPI_2REAL, MPI_2DOUBLE_PRECISION}) add_pair(t);
#ifdef MPIX_C_FLOAT16
  add(MPIX_C_FLOAT16, DType::f16);
#endif
#ifdef MPI_REAL2  // with which not every MPI can calculate
  add(MPI_REAL2, DType::f16, 1, false);
#endif
#ifdef MPIX_BFLOAT16
  add(MPIX_BFLOAT16, DType::bf16);
#endif
}

/// How many arguments of each kind a type was made with.
struct Envelope {
  MPI_Count ints = 0, addresses = 0, counts = 0, types = 0;  ///< counts: of MPI-4's constructors for large ones
  int combiner = MPI_COMBINER_NAMED;
};

/// MPI ends a program that asks for a type of large counts by the function for others.
Envelope envelope_of(MPI_Datatype type) {
  Envelope e;
#if MPI_VERSION >= 4
  PMPI_Type_get_envelope_c(type, &e.ints, &e.addresses, &e.counts, &e.types, &e.combiner);
#else
  int ints = 0, addresses = 0, types = 0;
  PMPI_Type_get_envelope(type, &ints, &addresses, &types, &e.combiner);
  e.ints = ints;
  e.addresses = addresses;
  e.types = types;
#endif
  return e;
}

/// How a type was made, by whichever function: as the one without large counts would have it.
struct Recipe {
  int combiner = MPI_COMBINER_NAMED;
  std::vector<MPI_Count> numbers;
  std::vector<MPI_Count> addresses;
  std::vector<MPI_Datatype> types;  ///< to be released by release()
};

Recipe recipe_of(MPI_Datatype type) {
  const Envelope e = envelope_of(type);
  std::vector<int> ints(static_cast<std::size_t>(e.ints));
  std::vector<MPI_Aint> addresses(static_cast<std::size_t>(e.addresses));
  std::vector<MPI_Count> counts(static_cast<std::size_t>(e.counts));
  std::vector<MPI_Datatype> types(static_cast<std::size_t>(e.types), MPI_DATATYPE_NULL);
#if MPI_VERSION >= 4
  PMPI_Type_get_contents_c(type, e.ints, e.addresses, e.counts, e.types, ints.data(), addresses.data(), counts.data(),
                           types.data());
#else
  PMPI_Type_get_contents(type, static_cast<int>(e.ints), static_cast<int>(e.addresses), static_cast<int>(e.types),
                         ints.data(), addresses.data(), types.data());
#endif
  if (e.counts == 0) return {e.combiner, {ints.begin(), ints.end()}, {addresses.begin(), addresses.end()}, types};
  // What the others have as ints comes first among large counts, then what they have as addresses.
  std::ptrdiff_t split = e.counts;
  if (e.combiner == MPI_COMBINER_RESIZED) split = 0;
  if (e.combiner == MPI_COMBINER_HVECTOR) split = 2;
  return {e.combiner, {counts.begin(), counts.begin() + split}, {counts.begin() + split, counts.end()}, types};
}

void release(Recipe& r) {
  for (MPI_Datatype& t : r.types) {
    if (is_derived(t)) PMPI_Type_free(&t);
  }
}

/// Elements of the i-th part of a struct; others have one part.
MPI_Count part_count(const Recipe& r, std::size_t i) {
  return r.combiner == MPI_COMBINER_STRUCT && i + 1 < r.numbers.size() ? r.numbers[i + 1] : 1;
}

/// Whether an element is its one part, so many times, without gaps.
bool is_dense(const Recipe& r, const TypeInfo& part) {
  if (!part.dense) return false;
  switch (r.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_CONTIGUOUS:
      return true;
    case MPI_COMBINER_RESIZED:
      return r.addresses[0] == 0 && r.addresses[1] == part.extent;
    case MPI_COMBINER_VECTOR:  // count, block length, stride
      return r.numbers[0] == 1 || r.numbers[1] == r.numbers[2];
    case MPI_COMBINER_HVECTOR:
      return r.numbers[0] == 1 || r.addresses[0] == r.numbers[1] * part.extent;
    default:
      return false;
  }
}

TypeInfo examine(MPI_Datatype type);

bool is_empty(MPI_Datatype type) {
  MPI_Count bytes = 0;
  PMPI_Type_size_x(type, &bytes);
  return bytes == 0;
}

/// Of a type that was made of others: what all its parts agree on that have anything in them.
TypeInfo examine_parts(MPI_Datatype type) {
  Recipe recipe = recipe_of(type);
  TypeInfo all;
  bool understood = true;
  for (std::size_t i = 0; i < recipe.types.size() && understood; ++i) {
    if (part_count(recipe, i) == 0 || is_empty(recipe.types[i])) continue;
    const TypeInfo part = examine(recipe.types[i]);
    understood = part.base && (!all.base || all.base == part.base);
    all.base = part.base;
    all.dense = recipe.types.size() == 1 && is_dense(recipe, part);
  }
  release(recipe);
  if (!understood) return {};
  return all;
}

/// MPI_Type_create_f90_real and its like.
TypeInfo examine_f90(int combiner, MPI_Count bytes) {
  TypeInfo info;
  if (combiner == MPI_COMBINER_F90_REAL && (bytes == 4 || bytes == 8)) info.base = bytes == 4 ? DType::f32 : DType::f64;
  if (combiner == MPI_COMBINER_F90_COMPLEX && (bytes == 8 || bytes == 16))
    info.base = bytes == 8 ? DType::f32 : DType::f64;
  if (combiner == MPI_COMBINER_F90_INTEGER && (bytes == 4 || bytes == 8))
    info.base = bytes == 4 ? DType::i32 : DType::i64;
  info.dense = true;
  info.reducible = true;
  return info;
}

TypeInfo examine(MPI_Datatype type) {
  const auto known = std::find_if(named.begin(), named.end(), [&](const Named& n) { return n.type == type; });
  if (known != named.end()) return known->info;
  const Envelope made = envelope_of(type);
  if (made.combiner == MPI_COMBINER_NAMED) return {};
  MPI_Count bytes = 0, lower = 0, extent = 0;
  PMPI_Type_size_x(type, &bytes);
  PMPI_Type_get_extent_x(type, &lower, &extent);
  TypeInfo info;
  info.empty = bytes == 0;
  if (info.empty) return info;
  info = made.types == 0 ? examine_f90(made.combiner, bytes) : examine_parts(type);
  if (!info.base || bytes < 0) return {};
  info.bytes = static_cast<std::size_t>(bytes);
  info.numbers = info.bytes / size_of(*info.base);
  info.extent = static_cast<MPI_Aint>(extent);
  info.dense = info.dense && lower == 0 && extent == bytes;
  return info;
}

/// MPI itself can only be asked by a message, of more than nothing.
bool is_committed(MPI_Datatype type) {
  const char none = 0;  // and not looked at
  return PMPI_Send(&none, 1, type, MPI_PROC_NULL, 0, self) == MPI_SUCCESS;
}

int forget(MPI_Datatype, int, void* info, void*) {
  delete static_cast<TypeInfo*>(info);
  return MPI_SUCCESS;
}

MPI_Datatype number_type(DType base) {
  switch (size_of(base)) {
    case 2:
      return MPI_UINT16_T;
    case 4:
      return base == DType::f32 ? MPI_FLOAT : MPI_INT32_T;
    default:
      return base == DType::f64 ? MPI_DOUBLE : MPI_INT64_T;
  }
}

/// So many numbers, as MPI's calls take them: an int of a type, which is made for that where they are more.
class Numbers {
 public:
  Numbers(MPI_Count n, MPI_Datatype number) : count_(static_cast<int>(n)), type_(number) {
    constexpr MPI_Count most = MPI_Count{1} << 30;
    if (n <= most) return;
    count_ = 1;
    MPI_Count lower = 0, bytes = 0;
    PMPI_Type_get_extent_x(number, &lower, &bytes);
    MPI_Datatype block = MPI_DATATYPE_NULL;
    PMPI_Type_contiguous(static_cast<int>(most), number, &block);
    const std::array<int, 2> counts{static_cast<int>(n / most), static_cast<int>(n % most)};
    const std::array<MPI_Aint, 2> places{0, static_cast<MPI_Aint>(n / most * most * bytes)};
    const std::array<MPI_Datatype, 2> types{block, number};
    PMPI_Type_create_struct(2, counts.data(), places.data(), types.data(), &made_);
    PMPI_Type_free(&block);
    PMPI_Type_commit(&made_);
    type_ = made_;
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  ~Numbers() {
    if (made_ != MPI_DATATYPE_NULL) PMPI_Type_free(&made_);
  }
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] MPI_Datatype type() const { return type_; }

 private:
  int count_;
  MPI_Datatype type_;
  MPI_Datatype made_ = MPI_DATATYPE_NULL;
};

/// Pieces whose elements an int can count.
MPI_Count elements_a_piece(const TypeInfo& info) {
  return std::max<MPI_Count>(1, (MPI_Count{1} << 30) / static_cast<MPI_Count>(std::max<std::size_t>(info.numbers, 1)));
}

/// copy(offset of the piece in the layout, its elements, offset of its numbers, how many) for each piece.
template <typename Copy>
int in_pieces(MPI_Count count, const TypeInfo& info, Copy&& copy) {
  const MPI_Count most = elements_a_piece(info);
  for (MPI_Count first = 0; first < count; first += most) {
    const MPI_Count n = std::min(most, count - first);
    const int code = copy(first * info.extent, static_cast<int>(n), static_cast<std::size_t>(first) * info.bytes,
                          n * static_cast<MPI_Count>(info.numbers));
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

/// So many bytes behind a buffer.
void* at(const void* buffer, MPI_Aint offset) {
  // Not by pointer arithmetic: MPI_BOTTOM may be null.  NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(buffer) + static_cast<std::uintptr_t>(offset));
}

/// Threads copy at the same time: each copy has a tag of its own.
int next_copy_tag() {
  static std::atomic<unsigned> used{0};
  return static_cast<int>(used.fetch_add(1, std::memory_order_relaxed) % static_cast<unsigned>(copy_tags));
}

}  // namespace

const TypeInfo& info_of(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return unusable;
  const auto known = std::find_if(named.begin(), named.end(), [&](const Named& n) { return n.type == type; });
  if (known != named.end()) return known->info;
  // First of all: whatever else MPI is asked about what is no type, the program's error handler hears of.
  if (!is_committed(type)) return unusable;
  if (envelope_of(type).combiner == MPI_COMBINER_NAMED) return nothing;
  void* kept = nullptr;
  int found = 0;
  // Before the look, too: an MPI may say where another thread's description is before that thread's writes are seen.
  static std::mutex learning;
  const std::lock_guard lock(learning);
  PMPI_Type_get_attr(type, keyval, static_cast<void*>(&kept), &found);
  if (found != 0) return *static_cast<TypeInfo*>(kept);
  auto info = std::make_unique<TypeInfo>(examine(type));
  const TypeInfo& result = *info;
  PMPI_Type_set_attr(type, keyval, info.release());
  return result;
}

std::size_t bytes_in(MPI_Datatype type) {
  const TypeInfo& info = info_of(type);
  if (info.base || info.empty || !info.usable) return info.bytes;
  MPI_Count bytes = 0;
  PMPI_Type_size_x(type, &bytes);
  return static_cast<std::size_t>(std::max<MPI_Count>(bytes, 0));
}

bool is_derived(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return false;
  const Envelope made = envelope_of(type);
  return made.combiner != MPI_COMBINER_NAMED &&
         made.types != 0;  // those without parts: MPI_Type_create_f90_real and its like
}

std::optional<Op> op_of(MPI_Op op) {
  if (op == MPI_SUM) return Op::sum;
  if (op == MPI_MIN) return Op::min;
  if (op == MPI_MAX) return Op::max;
  return std::nullopt;
}

int gather_numbers(const void* buffer, MPI_Count count, MPI_Datatype type, void* out) {
  const TypeInfo& info = info_of(type);
  const MPI_Datatype number = number_type(*info.base);
  return in_pieces(count, info, [&](MPI_Aint from, int n, std::size_t to, MPI_Count many) {
    const int tag = next_copy_tag();
    const Numbers numbers(many, number);
    return PMPI_Sendrecv(at(buffer, from), n, type, 0, tag, static_cast<char*>(out) + to, numbers.count(),
                         numbers.type(), 0, tag, self, MPI_STATUS_IGNORE);
  });
}

int scatter_numbers(const void* in, void* buffer, MPI_Count count, MPI_Datatype type) {
  const TypeInfo& info = info_of(type);
  const MPI_Datatype number = number_type(*info.base);
  return in_pieces(count, info, [&](MPI_Aint to, int n, std::size_t from, MPI_Count many) {
    const int tag = next_copy_tag();
    const Numbers numbers(many, number);
    return PMPI_Sendrecv(static_cast<const char*>(in) + from, numbers.count(), numbers.type(), 0, tag, at(buffer, to),
                         n, type, 0, tag, self, MPI_STATUS_IGNORE);
  });
}

void prepare_datatypes() {
  add_named();
  PMPI_Comm_dup(MPI_COMM_SELF, &self);
  PMPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);  // those of the program's communicators hear of it
  int* most = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(self, MPI_TAG_UB, static_cast<void*>(&most), &found);
  copy_tags = found != 0 ? std::max(1, *most) : 32767;
  PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget, &keyval, nullptr);
}

void release_datatypes() {
  PMPI_Type_free_keyval(&keyval);  // types that still have the attribute keep what it needs
  PMPI_Comm_free(&self);
}

}  // namespace laconic::preload
