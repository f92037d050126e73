#include "collective/cost_cache.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <locale>
#include <map>
#include <mutex>
#include <sstream>
#include <system_error>
#include <thread>
#include <vector>

#include "collective/metadata.h"

namespace laconic {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::hours fresh(24);
constexpr const char* file_format = "costs 2";  // another layout of the files, or other units, are another number

fs::path users_folder() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing in Laconic changes the environment
    return value == nullptr ? "" : value;
  };
  // A relative one is to be ignored, says the specification.
  if (const fs::path cache = variable("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "laconic";
  // What a user who has no home has here is not to be made: /nonexistent.
  std::error_code error;
  const fs::path home = variable("HOME");
  if (home.is_absolute() && fs::is_directory(home, error)) return home / ".cache" / "laconic";
  return {};
}

std::string title_of(const std::string& what) {
  return std::string(file_format) + " | " + what + " | " + LACONIC_VERSION;
}

fs::path file_for(const fs::path& folder, const std::string& title) {
  std::ostringstream name;
  name.imbue(std::locale::classic());  // a program's may put points between the digits
  name << "costs-" << std::hex << digest({title.begin(), title.end()});
  return folder / name.str();
}

/// What this process keeps. Never destroyed: communicators may outlive whatever is.
class Kept {
 public:
  static Kept& of_process() {
    static Kept& kept = *new Kept;
    return kept;
  }
  bool read(const std::string& title, std::span<double> numbers) {
    const std::lock_guard lock(mutex_);
    const auto at = measured_.find(title);
    if (at == measured_.end() || Clock::now() - at->second.when > fresh) return false;
    std::ranges::copy(at->second.numbers, numbers.begin());
    return true;
  }
  void write(const std::string& title, std::span<const double> numbers) {
    const std::lock_guard lock(mutex_);
    measured_[title] = {Clock::now(), {numbers.begin(), numbers.end()}};
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    measured_.clear();
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Measured {
    Clock::time_point when;
    std::vector<double> numbers;
  };
  std::mutex mutex_;
  std::map<std::string, Measured> measured_;  ///< as many as there are kinds of links and elements
};

}  // namespace

CostCache::CostCache(const std::string& folder) {
  if (folder != "off") folder_ = folder.empty() ? users_folder() : fs::path(folder);
}

void CostCache::forget() { Kept::of_process().forget(); }

bool CostCache::read_numbers(const std::string& what, std::span<double> numbers) const {
  const std::string title = title_of(what);
  return read_file(title, numbers) || Kept::of_process().read(title, numbers);
}

void CostCache::write_numbers(const std::string& what, std::span<const double> numbers) const {
  const std::string title = title_of(what);
  if (!write_file(title, numbers)) Kept::of_process().write(title, numbers);
}

bool CostCache::read_file(const std::string& title, std::span<double> numbers) const {
  if (folder_.empty()) return false;
  const fs::path file = file_for(folder_, title);
  std::error_code error;
  constexpr std::uintmax_t most_bytes = 65536;  // a line and a few numbers
  if (!fs::is_regular_file(file, error) || fs::file_size(file, error) > most_bytes || error) return false;
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(file, error);
  if (error || age > fresh || age < -fresh) return false;  // a clock that was wrong must not make it last for ever
  std::ifstream in(file);
  in.imbue(std::locale::classic());
  std::string line;
  if (!std::getline(in, line) || line != title) return false;
  for (double& number : numbers) in >> number;
  return in && std::ranges::all_of(numbers, [](double v) { return std::isfinite(v) && v > 0; });
}

// Whole or not at all: ranks of several programs may write the same file, and several of one where they are threads.
bool CostCache::write_file(const std::string& title, std::span<const double> numbers) const {
  if (folder_.empty()) return false;
  const fs::path file = file_for(folder_, title);
  std::error_code error;
  fs::create_directories(folder_, error);
  std::ostringstream name;
  name.imbue(std::locale::classic());
  name << file.string() << '.' << ::getpid() << '.' << std::this_thread::get_id() << ".part";
  const fs::path temporary = name.str();
  std::ofstream out(temporary);
  out.imbue(std::locale::classic());
  out << title << '\n';
  for (const double number : numbers) out << number << ' ';
  out << '\n';
  out.close();
  if (out) fs::rename(temporary, file, error);
  if (out && !error) return true;
  fs::remove(temporary, error);
  return false;
}

}  // namespace laconic
