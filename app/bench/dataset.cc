#include "bench/dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "exit_code.h"
#include "io/array_file.h"
#include "report/quality.h"

namespace laconic::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* manifest_name = "MANIFEST.json";

std::vector<std::string> places() {
  const char* const from_environment = std::getenv("LACONIC_DATA");
  if (from_environment != nullptr && *from_environment != '\0') return {from_environment};
  std::vector<std::string> out;
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  if (!ignored) out.push_back((self.parent_path().parent_path() / "share/laconic/data").string());
  out.emplace_back(LACONIC_SOURCE_DATA);
  return out;
}

Field parse_field(const nlohmann::json& j, const std::string& folder) {
  Field f;
  f.name = j.at("name").get<std::string>();
  f.path = (fs::path(folder) / j.at("file").get<std::string>()).string();
  f.shape.dtype = parse_dtype(j.at("dtype").get<std::string>());
  f.shape.dims = j.at("dims").get<Dims>();
  const auto tags = j.value("tags", std::vector<std::string>{});  // the other way to say it
  f.stack = j.value("stack", false) || std::find(tags.begin(), tags.end(), "stack") != tags.end();
  if (const auto fill = j.find("fill_value"); fill != j.end() && !fill->is_null())
    f.fill = rounded_to(f.shape.dtype, fill->is_array() ? fill->at(0).get<double>() : fill->get<double>());
  return f;
}

}  // namespace

std::string find_data_folder(const std::string& wanted) {
  const std::vector<std::string> candidates = wanted.empty() ? places() : std::vector<std::string>{wanted};
  std::string looked;
  for (const std::string& c : candidates) {
    std::error_code ignored;  // as of a folder that may not be looked into
    if (fs::exists(fs::path(c) / manifest_name, ignored)) return c;
    looked += fmt::format("{}{}", looked.empty() ? "" : ", ", c);
  }
  throw Failure(Exit::no_input,
                fmt::format("no sample fields ({}) in: {}; name their folder with --data or LACONIC_DATA",
                            manifest_name, looked));
}

std::vector<Field> list_fields(const std::string& folder) {
  const InputFile file((fs::path(folder) / manifest_name).string());
  std::string text(file.size(), '\0');
  file.read_at(0, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  std::vector<Field> fields;
  try {
    const nlohmann::json manifest = nlohmann::json::parse(text);
    for (const auto& j : manifest.at("files")) fields.push_back(parse_field(j, folder));
  } catch (const nlohmann::json::exception& e) {
    throw Failure(Exit::bad_data, fmt::format("'{}': {}", file.path(), e.what()));
  } catch (const Error& e) {  // of a type's name
    throw Failure(Exit::bad_data, fmt::format("'{}': {}", file.path(), e.what()));
  }
  return fields;
}

LoadedField load(const Field& field) {
  const ArrayReader in(field.path, {field.shape.dtype, field.shape.dims});
  LoadedField out{field, std::vector<std::uint8_t>(in.bytes())};
  in.read(0, {out.bytes.data(), static_cast<std::size_t>(in.count()), field.shape.dtype});
  return out;
}

void FieldOptions::add_to(CommandSyntax command) {
  command.arguments("files", files, "Array files (default: the sample fields)");
  hint.add_to(command, "files");
  command.option("--data", data, "Folder with sample fields and MANIFEST.json");
  command.option("--only", only, "Only fields whose name contains this");
  command.excludes("--data", "files");
}

std::vector<Field> FieldOptions::choose() const {
  std::vector<Field> fields;
  if (files.empty()) {
    fields = list_fields(find_data_folder(data));
    std::erase_if(fields, [](const Field& f) { return count_of(f.shape, f.path) == 0; });
  } else {
    for (const std::string& path : files) {
      const ArrayReader in(path, hint.hint());
      if (in.count() == 0)
        throw Failure(Exit::bad_data, fmt::format("'{}' is empty: there is nothing to measure", path));
      fields.push_back({path, path, in.shape(), std::nullopt});
    }
  }
  std::erase_if(fields, [&](const Field& f) { return f.name.find(only) == std::string::npos; });
  if (fields.empty()) throw Failure(Exit::usage, "no field is left to measure");
  return fields;
}

LoadedField load_any(const Field& field) {
  const ArrayReader in(field.path, {field.shape.dtype, field.shape.dims});
  if (in.kind() == FileKind::raw) return load(field);
  LoadedField out{field, std::vector<std::uint8_t>(in.bytes())};
  in.read(0, {out.bytes.data(), static_cast<std::size_t>(in.count()), field.shape.dtype});
  return out;
}

Bound without_fill(const Bound& bound, const LoadedField& field) {
  if (!field.field.fill || !bound.needs_range()) return bound;
  const double width = scan_without(field.array(), field.field.fill).width();
  return {BoundKind::absolute, bound.scope, bound.absolute_for(width), bound.sigmas};
}

}  // namespace laconic::app
