// Compares the kernels of codec.cu that nvcc made, translated from PTX to C++ (translate.py), with the CPU: where the
// chunks of a frame begin, a frame's checksum, and whether it is the one that the frame names; of damaged frames, too.
// Prints what differs, and a sum.
#include <algorithm>
#include <memory>
#include <vector>

#include "codec/slice_cases.h"
#include "core/error.h"
#include "frame/frame.h"
#include "gpu/checksum.h"
#include "gpu/operations.h"
#include "launch.h"

// The kernels: parameters as PTX has them, pointers to where they lie.
void locate_kernel(Lane&, u8*, u8* location);
void checksum_kernel(Lane&, u8*, u8* frame, u8* readable, u8* powers, u8* crc);
void compare_kernel(Lane&, u8*, u8* frame, u8* readable, u8* crc, u8* report);

namespace laconic::test {
namespace {

namespace device = gpu::emulated;  // the types that kernels take are the emulation's, too

/// What kernels are called with; a lane's function has no way to capture it.
struct Arguments {
  device::Location location;
  const u8* frame;
  u64 readable;
  device::ChecksumPowers powers = device::checksum_powers();
  u32* crc;
  gpu::Report* report;
};
Arguments arguments;

struct Located {
  u32 faults;
  std::vector<u64> offsets;
  friend bool operator==(const Located&, const Located&) = default;
};

/// run(location, tiles) of a frame that is announced as one of `count` elements on this grid.
template <class Run>
Located located(const Memory& frame, const Grid& grid, std::size_t count, Run run) {
  const u64 tiles = std::max<u64>(1, (slice::chunks_of(count) + device::located_by_tile - 1) / device::located_by_tile);
  std::vector<u64> states(tiles);
  gpu::Report report;
  Located found{0, std::vector<u64>(slice::chunks_of(count) + 1)};
  run(device::Location{frame.get(), frame.bytes(), count, slice::params_for(grid, 1), found.offsets.data(),
                       states.data(), &report},
      tiles);
  found.faults = report.faults;
  return found;
}

Located located_by_kernel(const Memory& frame, const Grid& grid, std::size_t count) {
  return located(frame, grid, count, [](const device::Location& at, u64 tiles) {
    arguments.location = at;
    launch(tiles, 0, [](Lane& lane) { locate_kernel(lane, nullptr, at_argument(arguments.location)); });
  });
}

/// The source that gpu_emulated_test compares with the CPU.
Located located_by_source(const Memory& frame, const Grid& grid, std::size_t count) {
  return located(frame, grid, count, [](const device::Location& at, u64 tiles) {
    device::TileShared shared{};
    for (u64 t = 0; t < tiles; t++) device::run_locate(device::Tile(), t, at, shared);
  });
}

/// Where they begin by the frame's table.
std::vector<u64> places_in(const std::vector<u8>& frame, std::size_t count) {
  std::vector<u64> places{frame::header_bytes + slice::table_bytes(count)};
  for (u64 c = 0; c < slice::chunks_of(count); c++) {
    u16 words;
    std::memcpy(&words, &frame[frame::header_bytes + 2 * c], 2);
    places.push_back(places.back() + u64{4} * words);
  }
  return places;
}

/// Faults of the kernels that check a frame, by so many thread blocks.
u32 checked_by_kernels(const Memory& frame, u64 blocks) {
  u32 crc = 0;
  gpu::Report report;
  arguments.frame = frame.get();
  arguments.readable = frame.bytes();
  arguments.crc = &crc;
  arguments.report = &report;
  launch(blocks, 0, [](Lane& lane) {
    checksum_kernel(lane, nullptr, at_argument(arguments.frame), at_argument(arguments.readable),
                    at_argument(arguments.powers), at_argument(arguments.crc));
  });
  constexpr int one = 1;
  launch(
      1, 0,
      [](Lane& lane) {
        compare_kernel(lane, nullptr, at_argument(arguments.frame), at_argument(arguments.readable),
                       at_argument(arguments.crc), at_argument(arguments.report));
      },
      one);
  return report.faults;
}

bool is_good(const std::vector<u8>& frame) {
  try {
    frame::check(frame);
    return true;
  } catch (const Error&) {
    return false;
  }
}

class Checker {
 public:
  void whole(const Array& x, const Grid& grid, const std::string& what) {
    const std::vector<u8> frame = encoded(x, grid).frame;
    const Memory held(frame);
    expect(located_by_kernel(held, grid, x.count) == Located{0, places_in(frame, x.count)}, "locate", what);
    for (const u64 blocks : {1, 3}) expect(checked_by_kernels(held, blocks) == 0, "checksum", what);
    Random random(x.count);
    for (int i = 0; i < 12; i++) damaged(frame, grid, x.count, random, what);
    expect(located_by_kernel(held, grid, x.count + 1).faults != 0, "locate in another frame", what);
  }
  /// More than one thread block finds.
  void long_frame() {
    const std::size_t count = std::size_t{2} * device::located_by_tile * slice::chunk_values + 5000;
    Array x(DType::f16, count);
    for (std::size_t i = 0; i < count; i++) x.set_bits(i, 0x3C00 + i / 3000 % 7);
    const Grid grid = make_grid(DType::f16, 1e-3, 1.3);
    const std::vector<u8> frame = encoded(x, grid).frame;
    const Memory held(frame);
    expect(located_by_kernel(held, grid, count) == Located{0, places_in(frame, count)}, "locate", "a long frame");
    expect(checked_by_kernels(held, 2) == 0, "checksum", "a long frame");
  }
  int finish() const {
    std::printf("%d cases, %d bad\n", cases_, bad_);
    return bad_ == 0 ? 0 : 1;
  }

 private:
  /// In the header and the table often, where it matters most.
  void damaged(std::vector<u8> frame, const Grid& grid, std::size_t count, Random& random, const std::string& what) {
    const std::size_t front = std::min(frame.size(), frame::header_bytes + slice::table_bytes(count));
    const std::size_t place = random.below(random.below(3) == 0 ? frame.size() : front);
    frame[place] ^= static_cast<u8>(1U << random.below(8));
    if (random.below(4) == 0)
      frame.resize(frame.size() - 4 * random.below((frame.size() - frame::header_bytes) / 4 + 1));
    const Memory held(frame);
    const std::string where = what + ", damaged at " + std::to_string(place);
    expect(located_by_kernel(held, grid, count) == located_by_source(held, grid, count), "locate", where);
    expect(!is_good(frame) && checked_by_kernels(held, 2) != 0, "checksum", where);
  }
  void expect(bool right, const char* kernel, const std::string& what) {
    cases_++;
    if (right) return;
    bad_++;
    std::printf("%s: %s\n", kernel, what.c_str());
  }

  int cases_ = 0, bad_ = 0;
};

int run() {
  Checker checker;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    for (const double bound : {1e-3, 0.0}) {
      const Grid grid = make_grid(dtype, bound, 1.3);
      for (const Kind kind : {Kind::smooth, Kind::mixed, Kind::random_bits}) {
        for (const std::size_t count : {1U, 2048U, 16500U, 300000U}) {  // the last: a checksum of several spans
          checker.whole(sample(dtype, kind, count), grid, describe(dtype, grid, kind, count));
        }
      }
    }
  }
  checker.long_frame();
  return checker.finish();
}

}  // namespace
}  // namespace laconic::test

int main() { return laconic::test::run(); }
