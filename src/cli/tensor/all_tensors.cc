// Patterns know a tensor by its path in a state and by REGION/NAME, or the end of either, as
// everywhere.
#include "cli/tensor/all_tensors.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/tensor/file_format.h"
#include "cli/tensor/packed_file.h"
#include "model/value/path_names.h"
#include "thalia/brain_region.h"
#include "thalia/reader.h"
#include "thalia/safetensors.h"
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
      const std::string in_state =
          model::path_in_region(region.name(), component_of_role(view.role()), view.name());
      visit({.path = in_state, .region = region.name(), .name = view.name()},
            [&] { return open(view); });
    }
  }
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    const ConnectionView connection = reader.connection(i);
    const auto visit_matrix = [&](const TensorView& view, const char* matrix) {
      const std::string in_state =
          model::path_in_connection(connection.source, connection.target, matrix);
      visit({.path = in_state, .region = {}, .name = {}}, [&] {
        TensorSource source = open(view);
        source.region.clear();
        source.name = in_state.substr(in_state.find('.') + 1);  // without "connections"
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
    visit({.path = tensor.name, .region = {}, .name = tensor.name},
          [&] { return source_of(file, tensor); });
  }
}

void visit_original(const std::filesystem::path& path, const ReadOptions& read,
                    const VisitTensor& visit) {
  const V01File file = read_v01(path, read);
  for (const V01Entry& entry : file.document.entries) {
    // The names in a 0.1 file are paths already.
    for_each_tensor(entry.state, [&](const std::string& name, const Tensor& tensor) {
      const std::string in_state = fmt::format("regions.{}.{}", entry.name, name);
      visit({.path = in_state, .region = entry.name, .name = name},
            [&] { return source_of(tensor, entry.name, name); });
    });
  }
}

}  // namespace

void visit_tensors(const std::filesystem::path& path, const char* option,
                   const std::vector<std::string>& patterns, const ChainOptions& options,
                   const std::function<void(const TensorSource&)>& visit) {
  model::PatternUse use(option, patterns);
  const VisitTensor visit_fitting = [&](const model::TensorNames& names,
                                        const std::function<TensorSource()>& open) {
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
