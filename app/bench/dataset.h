// The sample fields: a folder with bare arrays and a MANIFEST.json that describes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "core/array.h"
#include "core/bound.h"
#include "io/array_file.h"
#include "io/shape.h"

namespace laconic::app {

struct Field {
  std::string name;
  std::string path;
  Shape shape;
  std::optional<double> fill;  ///< marks missing data; not part of the value range
  bool stack = false;          ///< axis 0 counts images of the same thing
};

/// A field with its values in memory.
struct LoadedField {
  Field field;
  std::vector<std::uint8_t> bytes;

  [[nodiscard]] ConstArray array() const {
    return {bytes.data(), bytes.size() / size_of(field.shape.dtype), field.shape.dtype};
  }
};

/// The bound for this field: values that mark missing data are not part of the range that a relative bound refers to.
Bound without_fill(const Bound& bound, const LoadedField& field);

/// Where the sample fields are: `wanted` if not empty, else $LACONIC_DATA if set, else the installed folder or the
/// source tree's data/. Throws Failure(no_input) that lists where it looked.
std::string find_data_folder(const std::string& wanted);

/// Reads the manifest. Throws Failure: no_input or bad_data.
std::vector<Field> list_fields(const std::string& folder);

LoadedField load(const Field& field);

/// The fields that a benchmark runs over, as options.
struct FieldOptions {
  std::vector<std::string> files;
  HintOptions hint;
  std::string data;
  std::string only;  ///< part of a field's name

  void add_to(CommandSyntax command);
  /// The files, or else the sample fields of the folder that are not empty; only those whose name contains `only`.
  /// Throws Failure: usage when none is left, bad_data for a file without elements.
  [[nodiscard]] std::vector<Field> choose() const;
};

/// As load(), of any file that FieldOptions::choose() takes.
LoadedField load_any(const Field& field);

}  // namespace laconic::app
