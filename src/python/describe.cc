// What a file says of itself, as JSON.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/vector.h>

#include "inspect/describe_file.h"
#include "inspect/facts_json.h"
#include "python/bindings.h"
#include "python/calls.h"
#include "python/objects.h"
#include "python/options.h"
#include "thalia/state/delta.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

std::string run_info(const Path& path, const std::string& access, std::vector<Path> search,
                     bool legacy) {
  ChainOptions options = chain_options(access, std::move(search), 0, legacy);
  // Checking blocks of the tree would read the payloads that share these blocks.
  options.read.verification = Verification::off;
  const inspect::DescribedFile facts = interruptible([&](const std::stop_token& stop) {
    options.read.work.cancel = stop;
    return inspect::describe_file(path, options);
  });
  return inspect::facts_json(facts);
}

}  // namespace

void bind_describe(nb::module_& module) {
  module.def("info", run_info, nb::arg("path"), nb::arg("access"), nb::arg("search"),
             nb::arg("legacy"));
}

}  // namespace thalia::python
