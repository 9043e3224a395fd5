// Conversions to and from mckp files, and from mst files. A tensor is in memory as a whole, because
// a block of these formats is decoded as a whole; never more than one at a time is decoded, apart
// from what a writer has in its queue.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "interop/convert/conversions.h"
#include "interop/convert/flat_export.h"
#include "interop/convert/payload_pieces.h"
#include "interop/convert/precision_run.h"
#include "interop/convert/region_ids.h"
#include "interop/convert/tensor_list.h"
#include "interop/safetensors/writer.h"
#include "interop/shared/list_names.h"
#include "io/allocation_limit.h"
#include "thalia/error.h"
#include "thalia/mckp.h"
#include "thalia/writer.h"

namespace thalia::interop {
namespace {

// The tensor in another dtype; the tensor itself, not a copy, where the dtype stays.
Tensor converted(PrecisionRun& precision, const SafetensorsTensor& from, const Tensor& tensor,
                 DType to) {
  if (to == tensor.dtype()) return tensor;
  return Tensor::filled({.dtype = to, .shape = tensor.shape()}, [&](MutableByteSpan out) {
    precision.convert(from.name, spec_of(from), tensor.bytes(), to, [&](ByteSpan piece) {
      std::ranges::copy(piece, out.begin());
      out = out.subspan(piece.size());
    });
  });
}

MckpWriteOptions mckp_options(const ConvertOptions& options) {
  return {.compression = options.save.compression,
          .content_digests = options.save.leaves,
          .output = options.save.output,
          .work = options.save.work};
}

void list_to_mckp(const TensorList& list, const path& output, const ConvertOptions& options,
                  ConvertResult& result) {
  PrecisionRun precision(options.precision, result);
  MckpWriteOptions write = mckp_options(options);
  write.training_step = list.training_step;
  write.metadata = precision.note_in(list.metadata, options.read.input.limits.max_json_depth);
  MckpWriter writer(output, write);
  for (std::size_t i = 0; i < list.tensors.size(); ++i) {
    const SafetensorsTensor& tensor = list.tensors[i];
    const DType dtype = precision.choose(options.grouping, spec_of(tensor));
    writer.add(tensor.name, converted(precision, tensor, list.read(i), dtype));
  }
  precision.check_patterns();
  result.output_bytes = writer.commit().file_bytes;
}

void list_to_thalia(const TensorList& list, const path& input, const path& output,
                    const ConvertOptions& options, ConvertResult& result) {
  struct Declared {
    std::uint32_t region;
    TensorId id;
    std::size_t position;
    DType dtype;
  };
  Writer writer(output, options.save);
  PrecisionRun precision(options.precision, result);
  writer.set_metadata(precision.note_in(list.metadata, options.read.input.limits.max_json_depth));
  if (list.training_step) writer.set_training_steps(*list.training_step);
  RegionIds regions;
  std::vector<Declared> declared;
  for (std::size_t i = 0; i < list.tensors.size(); ++i) {
    const SafetensorsTensor& tensor = list.tensors[i];
    // mckp and mst files may name a tensor "".
    if (tensor.name.empty()) {
      throw UnsupportedError(ErrorCode::unsupported_feature,
                             "a tensor without a name, which .thalia has not",
                             {.path = input.string(), .field = "name"});
    }
    const std::string region_name = region_for_name(tensor.name, options.grouping);
    const RegionId region = regions.of(writer, region_name);
    TensorSpec spec = spec_of(tensor);
    spec.dtype = precision.choose(region_name, spec);
    const DType dtype = spec.dtype;
    declared.push_back({.region = region.value,
                        .id = writer.add_tensor(region, std::move(spec)),
                        .position = i,
                        .dtype = dtype});
  }
  precision.check_patterns();
  // Tensors are written in the order of the output. A compressing writer takes them in no other,
  // and regions may have been declared in between.
  std::ranges::stable_sort(declared, {}, &Declared::region);
  for (const Declared& one : declared) {
    const SafetensorsTensor& tensor = list.tensors[one.position];
    writer.write(one.id, converted(precision, tensor, list.read(one.position), one.dtype).bytes());
  }
  result.output_bytes = writer.commit().file_bytes;
}

// safetensors has texts as metadata and no count of steps; everything else is listed as lost.
void list_to_safetensors(const TensorList& list, const path& output, const ConvertOptions& options,
                         ConvertResult& result) {
  PrecisionRun precision(options.precision, result);
  std::vector<SafetensorsTensor> tensors = list.tensors;
  for (SafetensorsTensor& tensor : tensors) {
    tensor.dtype = precision.choose(options.grouping, spec_of(tensor));
  }
  precision.check_patterns();
  TextMembers members = text_members(list.metadata, options.read.input.limits.max_json_depth);
  if (!members.others.empty())
    result.losses.push_back(fmt::format("metadata: {}", list_names(members.others)));
  if (list.training_step.value_or(0) != 0) result.losses.push_back("the count of training steps");
  std::optional<SafetensorsMetadata> metadata;
  if (!members.texts.empty()) metadata = std::move(members.texts);
  precision.note_in(metadata);
  result.output_bytes = write_safetensors(
      output, tensors, metadata,
      {.max_header_bytes = options.max_safetensors_header_bytes,
       .output = options.save.output,
       .work = options.save.work},
      [&](std::size_t i, const PieceSink& sink) {
        sink(converted(precision, list.tensors[i], list.read(i), tensors[i].dtype).bytes());
      });
}

}  // namespace

void thalia_to_mckp(const Reader& reader, const path& output, const ConvertOptions& options,
                    ConvertResult& result) {
  with_path(reader.path().native(), [&] {
    PrecisionRun precision(options.precision, result);
    const FlatExport out =
        plan_flat_export(reader, FileFormat::mckp, options, precision, result.losses);
    MckpWriteOptions write = mckp_options(options);
    // 0 is how a .thalia file says nothing of steps; mckp has null for that.
    if (reader.header().training_steps != 0) write.training_step = reader.header().training_steps;
    const std::string_view metadata = reader.metadata_json();
    write.metadata = precision.note_in(metadata.empty() ? "{}" : std::string(metadata),
                                       options.read.input.limits.max_json_depth);
    MckpWriter writer(output, write);
    for (std::size_t i = 0; i < out.views.size(); ++i) {
      const TensorView& view = out.views[i];
      const ReadLimits& limits = options.read.input.limits;
      // A sparse tensor of few bytes may claim any shape.
      if (is_sparse(view.encoding()))
        io::check_allocation("payload", view.dense_bytes(), limits, view.stored_bytes());
      const Tensor tensor = Tensor::from(view, limits).to_dense();
      SafetensorsTensor before = out.tensors[i];
      // A quantized tensor comes out of Tensor::from() with its elements restored.
      before.dtype = tensor.dtype();
      writer.add(out.tensors[i].name, converted(precision, before, tensor, out.tensors[i].dtype));
    }
    result.input_bytes = reader.file_bytes();
    result.tensors = static_cast<std::uint32_t>(out.tensors.size());
    result.output_bytes = writer.commit().file_bytes;
  });
}

void convert_mckp(const path& input, FileFormat from, const path& output, FileFormat to,
                  const ConvertOptions& options, ConvertResult& result) {
  const TensorList list = open_tensor_list(input, from, options);
  result.input_bytes = list.file_bytes;
  result.tensors = static_cast<std::uint32_t>(list.tensors.size());
  if (to == FileFormat::mckp) return list_to_mckp(list, output, options, result);
  if (to == FileFormat::safetensors) return list_to_safetensors(list, output, options, result);
  list_to_thalia(list, input, output, options, result);
}

}  // namespace thalia::interop
