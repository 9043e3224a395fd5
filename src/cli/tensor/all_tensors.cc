// Patterns know a tensor by its path in a state, by REGION/NAME and by its bare name, as
// everywhere.
#include "cli/tensor/all_tensors.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/tensor/file_format.h"
#include "cli/tensor/packed_file.h"
#include "model/precision/glob.h"
#include "thalia/brain_region.h"
#include "thalia/reader.h"
#include "thalia/safetensors.h"
#include "thalia/tensor_role.h"
#include "thalia/v01.h"

namespace thalia::cli {
namespace {

void visit_thalia(const std::filesystem::path& path, const ChainOptions& options,
                  const VisitTensor& visit) {
  const Reader reader = Reader::open(path, options.read);
  std::optional<ChainReader> chain;
  if (reader.delta_base()) chain = ChainReader::open(reader, options);
  const auto open = [&](const TensorView& view) {
    return chain ? source_of(*chain, view) : source_of(view, options.read.input.limits);
  };
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
      const TensorView view = region.tensor(i);
      visit(region.name(), view.name(), view.role(), [&] { return open(view); });
    }
  }
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    const ConnectionView connection = reader.connection(i);
    const auto visit_matrix = [&](const TensorView& view, const char* matrix) {
      const std::string name =
          fmt::format("{}->{}.{}", connection.source, connection.target, matrix);
      visit({}, name, view.role(), [&] {
        TensorSource source = open(view);
        source.region.clear();
        source.name = name;
        return source;
      });
    };
    visit_matrix(connection.weights, "weights");
    if (connection.delays) visit_matrix(*connection.delays, "delays");
  }
}

void visit_safetensors(const std::filesystem::path& path, const ReadOptions& read,
                       const VisitTensor& visit) {
  const SafetensorsFile file = SafetensorsFile::open(path, read);
  for (const SafetensorsTensor& tensor : file.tensors()) {
    visit({}, tensor.name, role_of_name(tensor.name, tensor.shape.rank()),
          [&] { return source_of(file, tensor); });
  }
}

void visit_original(const std::filesystem::path& path, const ReadOptions& read,
                    const VisitTensor& visit) {
  const V01File file = read_v01(path, read);
  for (const V01Entry& entry : file.document.entries) {
    for_each_tensor(entry.state, [&](const std::string& name, const Tensor& tensor) {
      visit(entry.name, name, role_of_name(name, tensor.shape().rank()),
            [&] { return source_of(tensor, entry.name, name); });
    });
  }
}

}  // namespace

void visit_tensors(const std::filesystem::path& path, const char* option,
                   const std::vector<std::string>& patterns, const ChainOptions& options,
                   const std::function<void(const TensorSource&)>& visit) {
  model::PatternUse use(option, patterns);
  const VisitTensor visit_fitting = [&](std::string_view region, std::string_view name, Role role,
                                        const std::function<TensorSource()>& open) {
    const std::string in_state =
        region.empty() ? std::string(name)
                       : fmt::format("regions.{}.{}.{}", region, component_of_role(role), name);
    const model::TensorNames names{.path = in_state, .region = region, .name = name};
    use.see(names);
    const bool fits = patterns.empty() ||
                      std::any_of(patterns.begin(), patterns.end(),
                                  [&](const std::string& pattern) { return names.fit(pattern); });
    if (fits) visit(open());
  };
  const FileFormat format = format_of(path);
  if (is_packed(format)) {
    visit_packed(path, format, options, visit_fitting);
  } else if (format == FileFormat::safetensors) {
    visit_safetensors(path, options.read, visit_fitting);
  } else if (format == FileFormat::thalia_0_1) {
    visit_original(path, options.read, visit_fitting);
  } else {
    visit_thalia(path, options, visit_fitting);
  }
  use.check();
}

}  // namespace thalia::cli
