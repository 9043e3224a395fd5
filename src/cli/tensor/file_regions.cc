#include "cli/tensor/file_regions.h"

#include <utility>

#include "inspect/file_tensors.h"
#include "thalia/brain_region.h"
#include "thalia/formats/file_format.h"
#include "thalia/reader.h"
#include "thalia/v01.h"

namespace thalia::cli {
namespace {

FileRegions regions_of_thalia(const std::filesystem::path& path, const ReadOptions& read) {
  FileRegions file;
  const Reader reader = Reader::open(path, read);
  for (std::uint32_t i = 0; i < reader.region_count(); ++i) {
    const RegionView region = reader.region(i);
    file.regions.push_back({.name = std::string(region.name()),
                            .tensor_count = region.tensor_count(),
                            .n_neurons = region.n_neurons(),
                            .n_inputs = region.n_inputs(),
                            .neuron_type = region.neuron_type(),
                            .logical_bytes = region.logical_bytes(),
                            .stored_bytes = region.stored_bytes(),
                            .offset = region.offset(),
                            .length = region.length(),
                            .config = std::string(region.config_json()),
                            .metadata = std::string(region.metadata_json())});
  }
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    ConnectionView connection = reader.connection(i);
    ListedConnection listed{
        .source = connection.source,
        .target = connection.target,
        .weights = inspect::listed_matrix(connection, connection.weights, "weights")};
    if (connection.delays)
      listed.delays = inspect::listed_matrix(connection, *connection.delays, "delays");
    file.connections.push_back(std::move(listed));
  }
  return file;
}

FileRegions regions_of_original(const std::filesystem::path& path, const ReadOptions& read) {
  FileRegions file{.format = FileFormat::thalia_0_1};
  const V01File original = read_v01(path, read);
  for (const V01Entry& entry : original.document.entries) {
    ListedRegion region{.name = entry.name};
    for_each_tensor(entry.state, [&](const std::string&, const Tensor& tensor) {
      ++region.tensor_count;
      region.logical_bytes += tensor.bytes().size();
    });
    file.regions.push_back(std::move(region));
  }
  return file;
}

}  // namespace

FileRegions regions_of(const std::filesystem::path& path, const ReadOptions& read) {
  return input_format(path, read.input.access) == FileFormat::thalia_0_1
             ? regions_of_original(path, read)
             : regions_of_thalia(path, read);
}

}  // namespace thalia::cli
