// Collectives of the real fields in data/: the bound holds for every element of each, and no schedule changes a bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/reference.h"
#include "collective/world.h"
#include "core/range.h"
#include "support/sanitized.h"

namespace laconic::sample_fields_test {
namespace {

using world::view;

constexpr int ranks = 4;
constexpr double share = 1e-3;  // of the range

std::vector<std::filesystem::path> files(const std::string& dtype) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator("data"))
    if (entry.path().extension() == "." + dtype) found.push_back(entry.path());
  return found;
}

/// A rank's: the field from another place on, some hundred thousand elements (fewer under sanitizers).
template <typename T>
std::vector<std::vector<T>> operands_from(const std::filesystem::path& file) {
  std::vector<T> field(std::filesystem::file_size(file) / sizeof(T));
  std::ifstream in(file, std::ios::binary);
  in.read(reinterpret_cast<char*>(field.data()), static_cast<std::streamsize>(field.size() * sizeof(T)));
  EXPECT_TRUE(in) << file;
  const std::size_t count = std::min<std::size_t>(field.size(), test::sanitized ? 20000 : 200000);
  std::vector<std::vector<T>> operands;
  for (std::size_t r = 0; r < ranks; ++r) {
    std::vector<T> mine(count);
    for (std::size_t i = 0; i < count; ++i) mine[i] = field[(i + r * 1009) % field.size()];
    operands.push_back(std::move(mine));
  }
  return operands;
}

template <typename T>
double width_of(const std::vector<std::vector<T>>& operands) {
  Range all;
  for (const auto& x : operands) all = merge(all, scan(view(x)));
  return all.width();
}

Options within(Schedule schedule = Schedule::automatic) {
  Options o;
  o.bound = Bound::parse("1e-3rel");
  o.mode = Mode::compressed;
  o.schedule = schedule;
  return o;
}

template <typename T>
world::Run<T> reduced(const std::vector<std::vector<T>>& operands, Op op, Schedule schedule) {
  return world::run<T>(ranks,
                       [&](int rank, Communicator& comm) {
                         const auto& mine = operands[static_cast<std::size_t>(rank)];
                         std::vector<T> sum(mine.size());
                         const Report report = allreduce(view(mine), view(sum), op, comm, within(schedule));
                         return std::pair(std::move(sum), report);
                       },
                       {0, 0, 1, 1});
}

template <typename T>
void expect_sums(const std::vector<std::vector<T>>& operands, const std::string& name) {
  const double bound = share * width_of(operands);
  const auto sums = reduced(operands, Op::sum, Schedule::ring);
  EXPECT_EQ(sums.reports[0].route, Route::on_grid) << name;
  reference::expect_sum(sums.results[0], operands, bound);
  for (const auto& other : sums.results) EXPECT_TRUE(world::same_bytes(other, sums.results[0])) << name;
  for (const Schedule s : {Schedule::recursive_doubling, Schedule::rabenseifner, Schedule::two_level, Schedule::direct})
    EXPECT_TRUE(world::same_bytes(reduced(operands, Op::sum, s).results[ranks - 1], sums.results[0]))
        << name << ", " << name_of(s);
  reference::expect_sum(reduced(operands, Op::average, Schedule::automatic).results[1], operands, bound, ranks);
}

template <typename T>
void expect_largest(const std::vector<std::vector<T>>& operands, const std::string& name) {
  const double bound = share * width_of(operands);
  const auto got = reduced(operands, Op::max, Schedule::automatic);
  for (std::size_t i = 0; i < operands[0].size(); ++i) {
    T exact = operands[0][i];
    for (const auto& x : operands) exact = std::max(exact, x[i]);
    ASSERT_LE(std::abs(static_cast<long double>(got.results[2][i]) - static_cast<long double>(exact)), bound)
        << name << ", element " << i;
  }
}

template <typename T>
void expect_moved(const std::vector<std::vector<T>>& operands, const std::string& name) {
  const double bound = share * width_of(operands);
  const std::size_t count = operands[0].size();
  const auto got = world::run<T>(ranks, [&](int rank, Communicator& comm) {
    std::vector<T> all(count * ranks);
    const Report report = allgather_equal(view(operands[static_cast<std::size_t>(rank)]), view(all), comm, within());
    return std::pair(std::move(all), report);
  });
  EXPECT_TRUE(world::same_bytes(got.results[0], got.results[3])) << name;
  for (std::size_t i = 0; i < count * ranks; ++i)
    ASSERT_LE(std::abs(static_cast<long double>(got.results[1][i]) -
                       static_cast<long double>(operands[i / count][i % count])),
              bound)
        << name << ", element " << i;
}

template <typename T>
void expect_all(const std::string& dtype, std::size_t least) {
  const auto all = files(dtype);
  EXPECT_GE(all.size(), least);
  for (const auto& file : all) {
    const auto operands = operands_from<T>(file);
    const std::string name = file.filename().string();
    expect_sums(operands, name);
    expect_largest(operands, name);
    expect_moved(operands, name);
  }
}

TEST(SampleFields, KeepTheBoundInCollectivesOfFloats) { expect_all<float>("f32", 10); }
TEST(SampleFields, KeepTheBoundInCollectivesOfDoubles) { expect_all<double>("f64", 1); }

}  // namespace
}  // namespace laconic::sample_fields_test
