// Sources and sinks of the formats that have none of their own yet.
#include "interop/convert/interim.h"

#include <fmt/format.h>
#include "base/fail.h"
#include "interop/convert/tensor_list.h"
#include "interop/safetensors/origin.h"
#include "interop/safetensors/parse.h"
#include "interop/safetensors/writer.h"
#include "interop/shared/list_names.h"
#include "json/reader.h"
#include "thalia/mckp.h"
#include "thalia/mst.h"

namespace thalia::interop {
namespace {
class ListSource final : public TensorSource {
 public:
  ListSource(const std::filesystem::path& path, FileFormat format, const SourceOptions& options) {
    ConvertOptions convert;
    convert.read = options.read;
    convert.search = options.search;
    convert.bases = options.bases;
    convert.save.work.cancel = options.read.work.cancel;
    convert.max_safetensors_header_bytes = options.max_safetensors_header_bytes;
    list_ = open_tensor_list(path, format, convert);
    if (format == FileFormat::safetensors) {
      const SafetensorsFile file =
          SafetensorsFile::open(path, options.read, options.max_safetensors_header_bytes);
      list_.metadata =
          origin_to_json(file.has_metadata() ? std::optional(file.metadata()) : std::nullopt);
    }
    for (const SafetensorsTensor& t : list_.tensors)
      facts_.tensors.push_back({.name = t.name,
                                .layout = {.dtype = t.dtype, .shape = t.shape},
                                .in_place = format == FileFormat::safetensors});
    facts_.metadata = list_.metadata;
    facts_.training_steps = list_.training_step;
    facts_.file_bytes = list_.file_bytes;
  }
  Tensor read(std::size_t i) const override { return list_.read(i); }

 private:
  TensorList list_;
};
}  // namespace

std::shared_ptr<const TensorSource> open_safetensors_source(const std::filesystem::path& path,
                                                            const SourceOptions& options) {
  return std::make_shared<ListSource>(path, FileFormat::safetensors, options);
}
std::shared_ptr<const TensorSource> open_mckp_source(const std::filesystem::path& path,
                                                     const SourceOptions& options) {
  return std::make_shared<ListSource>(path, FileFormat::mckp, options);
}
std::shared_ptr<const TensorSource> open_mst_source(const std::filesystem::path& path,
                                                    const SourceOptions& options) {
  return std::make_shared<ListSource>(path, FileFormat::mst, options);
}

std::uint64_t write_safetensors_tensors(const std::filesystem::path& output, const SinkInput& input,
                                        const SinkOptions& options, const EmitPayload& emit) {
  SafetensorsOrigin origin = origin_from_json(input.metadata, options.limits.max_json_depth);
  std::vector<std::string> losses;
  TextMembers members = text_members(input.metadata, options.limits.max_json_depth);
  for (auto& [k, v] : members.texts) {
    if (k == "format") continue;
    if (std::erase(origin.other_keys, k) == 0) continue;
    if (!origin.metadata) origin.metadata.emplace();
    std::erase_if(*origin.metadata, [&](const auto& m) { return m.first == k; });
    origin.metadata->emplace_back(k, v);
  }
  if (!origin.other_keys.empty())
    losses.push_back(fmt::format("metadata: {}", list_names(origin.other_keys)));
  if (input.training_steps.value_or(0) != 0) losses.push_back("the count of training steps");
  std::vector<SafetensorsTensor> tensors;
  for (const auto& t : input.tensors)
    tensors.push_back(
        {.name = t.name, .dtype = t.layout.dtype, .shape = t.layout.shape, .bytes = {}});
  if (options.announce) options.announce(losses);
  return write_safetensors(output, tensors, origin.metadata,
                           {.max_header_bytes = options.max_safetensors_header_bytes,
                            .output = options.save.output,
                            .work = options.save.work},
                           emit);
}

std::uint64_t write_mckp(const std::filesystem::path& output, const SinkInput& input,
                         const SinkOptions& options, const EmitPayload& emit) {
  if (options.announce) options.announce({});
  MckpWriteOptions write{.compression = options.save.compression,
                         .content_digests = options.save.leaves,
                         .output = options.save.output,
                         .work = options.save.work};
  write.training_step = input.training_steps;
  write.metadata = input.metadata;
  MckpWriter writer(output, write);
  for (std::size_t i = 0; i < input.tensors.size(); ++i) {
    const Tensor tensor = Tensor::filled(input.tensors[i].layout, [&](MutableByteSpan out) {
      emit(i, [&](ByteSpan piece) {
        std::copy(piece.begin(), piece.end(), out.begin());
        out = out.subspan(piece.size());
      });
    });
    writer.add(input.tensors[i].name, tensor);
  }
  return writer.commit().file_bytes;
}
}  // namespace thalia::interop
