// Measurements that are kept for a day at most: in the user's cache folder, one small file for each. Where there is
// none, or it cannot be written, the process keeps them, so that another communicator need not measure again.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace laconic {

class CostCache {
 public:
  /// `folder`: empty for the user's cache folder, "off" for none.
  explicit CostCache(const std::string& folder);

  /// `what` has been measured: all that another measurement could differ by. T is nothing but doubles, all of them
  /// positive and finite; a file with others is as good as none.
  template <typename T>
  [[nodiscard]] std::optional<T> read(const std::string& what) const {
    Numbers<T> numbers{};
    return read_numbers(what, numbers) ? std::optional(std::bit_cast<T>(numbers)) : std::nullopt;
  }
  template <typename T>
  void write(const std::string& what, const T& measured) const {
    write_numbers(what, std::bit_cast<Numbers<T>>(measured));
  }

  /// What the process keeps, of all caches without a folder. For tests of how something is measured.
  static void forget();

 private:
  template <typename T>
  using Numbers = std::array<double, sizeof(T) / sizeof(double)>;
  [[nodiscard]] bool read_numbers(const std::string& what, std::span<double> numbers) const;
  void write_numbers(const std::string& what, std::span<const double> numbers) const;
  [[nodiscard]] bool read_file(const std::string& title, std::span<double> numbers) const;
  [[nodiscard]] bool write_file(const std::string& title, std::span<const double> numbers) const;

  std::filesystem::path folder_;  ///< empty: none
};

}  // namespace laconic
