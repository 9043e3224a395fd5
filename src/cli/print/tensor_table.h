// How a tensor of a file is shown: one table and one JSON object for every format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/print/print.h"
#include "json/writer.h"
#include "thalia/formats/file_facts.h"
#include "thalia/types.h"

namespace thalia::cli {

/// REGION/NAME, escaped; the name alone if there is no region.
std::string shown_name(std::string_view region, std::string_view name);

/// The members "region", "name", "dtype" and "shape" of an object that is open.
void add_identity(JsonWriter& json, std::string_view region, std::string_view name,
                  const TensorLayout& layout);
void add_shape(JsonWriter& json, const Shape& shape);
/// An object, as docs/use/json.md has it.
void add_tensor(JsonWriter& json, const AnyTensor& tensor);

/// Columns that say nothing of any tensor are left out.
class TensorTable {
 public:
  /// `qualified`: names with their regions.
  explicit TensorTable(bool qualified) : qualified_(qualified) {}
  void add(const AnyTensor& tensor);
  void print(Output& out) const;

 private:
  bool qualified_;
  bool has_roles_ = false;
  bool has_codecs_ = false;
  bool has_stored_ = false;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace thalia::cli
