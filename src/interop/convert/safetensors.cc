// Tensors of a safetensors file are borrowed from the open file and never copied as a whole. A
// tensor that keeps its dtype is handed to the writer as it lies in the file; one that changes is
// streamed through the conversion before the commit.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "format/constants.h"
#include "interop/convert/conversions.h"
#include "interop/convert/precision_run.h"
#include "interop/convert/region_ids.h"
#include "interop/safetensors/origin.h"
#include "interop/safetensors/parse.h"
#include "interop/safetensors/writer.h"
#include "interop/shared/dtype_names.h"
#include "thalia/error.h"
#include "thalia/writer.h"

namespace thalia::interop {
namespace {

SafetensorsWriteOptions write_options(const ConvertOptions& options) {
  return {.max_header_bytes = options.max_safetensors_header_bytes,
          .output = options.save.output,
          .work = options.save.work};
}

std::optional<SafetensorsMetadata> metadata_of(const SafetensorsFile& file) {
  return file.has_metadata() ? std::optional(file.metadata()) : std::nullopt;
}

// A tensor whose payload is converted on its way.
struct Streamed {
  std::uint32_t region;
  TensorId id;
  const SafetensorsTensor* tensor;
  DType dtype;
};

}  // namespace

void safetensors_to_safetensors(const path& input, const path& output,
                                const ConvertOptions& options, ConvertResult& result) {
  const SafetensorsFile file =
      SafetensorsFile::open(input, options.read, options.max_safetensors_header_bytes);
  result.input_bytes = file.file_bytes();
  result.tensors = static_cast<std::uint32_t>(file.tensors().size());
  PrecisionRun precision(options.precision, result);
  std::vector<SafetensorsTensor> tensors = file.tensors();
  for (SafetensorsTensor& tensor : tensors) {
    tensor.dtype = precision.choose(options.grouping, spec_of(tensor));
  }
  precision.check_patterns();
  std::optional<SafetensorsMetadata> metadata = metadata_of(file);
  precision.note_in(metadata);
  result.output_bytes = write_safetensors(
      output, tensors, metadata, write_options(options), [&](std::size_t i, const PieceSink& sink) {
        const SafetensorsTensor& tensor = file.tensors()[i];
        if (tensor.dtype == tensors[i].dtype) {
          sink(tensor.bytes);
        } else {
          precision.convert(tensor.name, spec_of(tensor), tensor.bytes, tensors[i].dtype, sink);
        }
      });
}

void safetensors_to_thalia(const path& input, const path& output, const ConvertOptions& options,
                           ConvertResult& result) {
  const SafetensorsFile file =
      SafetensorsFile::open(input, options.read, options.max_safetensors_header_bytes);
  Writer writer(output, options.save);
  PrecisionRun precision(options.precision, result);
  writer.set_metadata(precision.note_in(origin_to_json(metadata_of(file)),
                                        options.read.input.limits.max_json_depth));
  RegionIds regions;
  std::vector<Streamed> streamed;
  for (const SafetensorsTensor& tensor : file.tensors()) {
    // Checked here for a message that names the input.
    if (tensor.name.size() > format::kMaxNameLength) {
      throw UnsupportedError(ErrorCode::unsupported_feature, "the name is too long for .thalia",
                             {.path = input.string(),
                              .tensor = printable(tensor.name),
                              .value = fmt::format("{} bytes", tensor.name.size()),
                              .bound = std::to_string(format::kMaxNameLength)});
    }
    const std::string region_name = region_for_name(tensor.name, options.grouping);
    const RegionId region = regions.of(writer, region_name);
    TensorSpec spec = spec_of(tensor);
    spec.dtype = precision.choose(region_name, spec);
    if (spec.dtype == tensor.dtype) {
      writer.add_tensor(region, std::move(spec), tensor.bytes);
      continue;
    }
    const DType dtype = spec.dtype;
    streamed.push_back({.region = region.value,
                        .id = writer.add_tensor(region, std::move(spec)),
                        .tensor = &tensor,
                        .dtype = dtype});
  }
  precision.check_patterns();
  // Tensors are written in the order of the output. A compressing writer takes them in no other,
  // and regions may have been declared in between.
  std::stable_sort(streamed.begin(), streamed.end(),
                   [](const Streamed& a, const Streamed& b) { return a.region < b.region; });
  for (const Streamed& one : streamed) {
    precision.convert(one.tensor->name, spec_of(*one.tensor), one.tensor->bytes, one.dtype,
                      [&](ByteSpan piece) { writer.write(one.id, piece); });
  }
  result.input_bytes = file.file_bytes();
  result.tensors = static_cast<std::uint32_t>(file.tensors().size());
  result.output_bytes = writer.commit().file_bytes;
}

}  // namespace thalia::interop
