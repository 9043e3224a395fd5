// What names tell: regions, roles, versions. And how they are shown.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "base/suggestion.h"
#include "python/bindings.h"
#include "python/objects.h"
#include "thalia/error.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/safetensors.h"
#include "thalia/options.h"
#include "thalia/tensor.h"
#include "thalia/text.h"
#include "thalia/types.h"
#include "thalia/version.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;

std::optional<std::string> format_of(const std::filesystem::path& path) {
  if (const auto format = detect_format(path)) return std::string(file_format_name(*format));
  return std::nullopt;
}

void set_limit(std::optional<std::int64_t> bytes) {
  if (bytes && *bytes < 1) {
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = "bytes", .value = std::to_string(*bytes), .bound = "1 or more"});
  }
  set_default_allocation_limit(static_cast<std::uint64_t>(bytes.value_or(0)));
}

}  // namespace

void bind_names(nb::module_& module) {
  module.attr("__version__") = library_version();
  module.def("region_for_name",
             [](const std::string& name) { return region_for_name(name, RegionGrouping{}); });
  module.def("role_of_name", [](const std::string& name, unsigned rank) {
    return role_name(role_of_name(name, rank));
  });
  module.def("detect_format", format_of);
  module.def("find_model", find_model);
  module.def("set_default_allocation_limit", set_limit, nb::arg().none(),
             "What one call may allocate, in bytes, for what a file says that it holds; None: what "
             "fits the file and the machine (docs/contribute/security.md, Limits). Of this process "
             "from now on, "
             "for any thread. Raises UsageError for 0 and less.");
  module.def("suggestion", [](const std::string& mistyped, const std::vector<std::string>& names) {
    return suggestion_among(mistyped, names);
  });
  module.def("printable",
             [](const std::string& text) { return printable(text, std::string_view::npos); });
}

}  // namespace thalia::python
