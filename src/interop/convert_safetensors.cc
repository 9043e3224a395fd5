#include <fmt/format.h>

#include <string>
#include <unordered_map>
#include <utility>

#include "base/utf8.h"
#include "interop/conversions.h"
#include "interop/safetensors_dtype.h"
#include "interop/safetensors_origin.h"
#include "interop/safetensors_parse.h"
#include "interop/safetensors_writer.h"
#include "thalia/error.h"
#include "thalia/format/constants.h"
#include "thalia/writer.h"

namespace thalia::interop {
namespace {

SafetensorsWriteOptions write_options(const ConvertOptions& options) {
  return {.max_header_bytes = options.max_safetensors_header_bytes,
          .durability = options.save.durability,
          .progress = options.save.progress};
}

std::optional<SafetensorsMetadata> metadata_of(const SafetensorsFile& file) {
  return file.has_metadata() ? std::optional(file.metadata()) : std::nullopt;
}

}  // namespace

void safetensors_to_safetensors(const path& input, const path& output,
                                const ConvertOptions& options, ConvertResult& result) {
  const SafetensorsFile file = SafetensorsFile::open(input, options.max_safetensors_header_bytes);
  result.input_bytes = file.file_bytes();
  result.tensors = static_cast<std::uint32_t>(file.tensors().size());
  result.output_bytes =
      write_safetensors(output, file.tensors(), metadata_of(file), write_options(options),
                        [&](std::size_t i) { return file.tensors()[i].bytes; });
}

void safetensors_to_thalia(const path& input, const path& output, const ConvertOptions& options,
                           ConvertResult& result) {
  const SafetensorsFile file = SafetensorsFile::open(input, options.max_safetensors_header_bytes);
  Writer writer(output, options.save);
  writer.set_metadata(origin_to_json(metadata_of(file)));
  std::unordered_map<std::string, RegionId> regions;
  for (const SafetensorsTensor& tensor : file.tensors()) {
    if (tensor.name.size() > format::kMaxNameLength) {
      throw UnsupportedError(ErrorCode::unsupported_feature, "the name is too long for .thalia",
                             {.path = input.string(),
                              .tensor = printable(tensor.name),
                              .value = fmt::format("{} bytes", tensor.name.size()),
                              .bound = std::to_string(format::kMaxNameLength)});
    }
    std::string name = region_for_name(tensor.name, options.grouping);
    auto region = regions.find(name);
    if (region == regions.end()) {
      const RegionId id = writer.add_region({.name = name});
      region = regions.emplace(std::move(name), id).first;
    }
    writer.add_tensor(region->second,
                      {.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape},
                      tensor.bytes);
  }
  result.input_bytes = file.file_bytes();
  result.tensors = static_cast<std::uint32_t>(file.tensors().size());
  result.output_bytes = writer.commit().file_bytes;
}

}  // namespace thalia::interop
