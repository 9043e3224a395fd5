// What a source tells beside its tensors is what its sink needs to write the same files again:
// texts, the headers of other writers, the index and which file each tensor was in.
#include "formats/safetensors/opened.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "formats/safetensors/kept_header.h"
#include "formats/safetensors/opened_model.h"
#include "formats/safetensors/source_metadata.h"
#include "state/tensor/slice.h"

namespace thalia::formats {
namespace {

using safetensors::ModelFile;
using safetensors::OpenedModel;
using safetensors::SourceModel;
using safetensors::SourceModelFile;

SafetensorsSourceMetadata source_metadata_of(const OpenedModel& model) {
  SafetensorsSourceMetadata source{.metadata = {}, .other_keys = {}};
  if (!model.files.empty()) source.metadata = model.files.front().parsed.metadata;
  if (!model.index_text) {
    source.header = safetensors::header_to_keep(model.files.front().parsed);
    return source;
  }
  source.model =
      SourceModel{.index_name = model.path.filename().string(), .index_text = *model.index_text};
  std::uint64_t bytes = 0;
  for (const ModelFile& file : model.files)
    for (const NamedArray& tensor : file.parsed.tensors) bytes += tensor.bytes.size();
  if (model.index.total_size && *model.index.total_size != bytes)
    source.model->tensor_bytes = bytes;
  for (const ModelFile& file : model.files) {
    SourceModelFile one{.name = file.name,
                        .metadata = file.parsed.metadata,
                        .header = safetensors::header_to_keep(file.parsed)};
    if (one.metadata != source.metadata || !one.header.empty())
      source.model->files.push_back(std::move(one));
  }
  return source;
}

class OpenedSafetensors : public OpenedFile {
 public:
  explicit OpenedSafetensors(OpenedModel model) : model_(std::move(model)) {
    if (model_.index_text) facts_.file_bytes = model_.index_text->size();
    for (const ModelFile& file : model_.files) {
      const ByteSpan bytes = file.bytes->bytes();
      facts_.file_bytes += bytes.size();
      for (const NamedArray& tensor : file.parsed.tensors) {
        AnyTensor& reported = facts_.tensors.emplace_back();
        reported.name = tensor.name;
        reported.layout = {.dtype = tensor.dtype, .shape = tensor.shape};
        reported.stored_bytes = tensor.bytes.size();
        reported.in_place = true;
        // With several files, an offset alone tells nothing.
        if (!model_.index_text)
          reported.offset = static_cast<std::uint64_t>(tensor.bytes.data() - bytes.data());
        tensors_.emplace_back(&file, &tensor);
      }
    }
    facts_.metadata = source_metadata_to_json(source_metadata_of(model_));
    if (model_.files.empty()) return;
    for (const auto& [key, text] :
         model_.files.front().parsed.metadata.value_or(SafetensorsMetadata{}))
      if (key == kEmbeddedMetadata) facts_.embedded = text;
  }

  std::vector<std::filesystem::path> files() const override {
    std::vector<std::filesystem::path> files{model_.path};
    for (const ModelFile& file : model_.files) files.push_back(file.path);
    return files;
  }

  Tensor read(std::size_t i) const override {
    return safetensors::tensor_of(*tensors_.at(i).first, *tensors_.at(i).second);
  }

  // In memory is what was asked for, where the file is not mapped.
  TensorElements elements(std::size_t i) const override {
    const auto& [file, tensor] = tensors_.at(i);
    if (file->bytes->access() != Access::copied)
      return elements_of(safetensors::tensor_of(*file, *tensor));
    return {.layout = facts_.tensors[i].layout,
            .read = [file = file->bytes, tensor = *tensor](std::span<const SliceRange> ranges,
                                                           MutableByteSpan out) {
              const auto offset =
                  static_cast<std::uint64_t>(tensor.bytes.data() - file->bytes().data());
              const std::uint64_t bits = dtype_bits(tensor.dtype);
              state::for_each_run(
                  tensor.shape, ranges, [&](std::uint64_t first, std::uint64_t count) {
                    const std::uint64_t begin = first * bits / 8;
                    file->touch(offset + begin, ((first + count) * bits + 7) / 8 - begin);
                  });
              state::copy_slice(tensor.dtype, tensor.shape, tensor.bytes, ranges, out);
            }};
  }

  bool is_mapped(std::size_t i) const override {
    return tensors_[i].first->bytes->access() != Access::copied;
  }
  void visit(std::size_t i, const PieceSink& sink) const override {
    safetensors::visit_tensor(*tensors_.at(i).first, *tensors_.at(i).second, sink);
  }
  void check(std::size_t i) const override {
    visit(i, [](ByteSpan) {});
  }

 private:
  OpenedModel model_;
  std::vector<std::pair<const ModelFile*, const NamedArray*>> tensors_;
};

SafetensorsModelOptions model_options(const OpenOptions& options) {
  return {.chain = options.chain, .max_header_bytes = options.max_safetensors_header_bytes};
}

}  // namespace

std::shared_ptr<const OpenedFile> open_safetensors_file(const io::InputFile& input,
                                                        const OpenOptions& options) {
  return std::make_shared<OpenedSafetensors>(
      safetensors::open_model(input, model_options(options)));
}

VerifyReport verify_safetensors(const io::InputFile& input, const OpenOptions& options,
                                const VerifyOptions& verify, bool /*resolve*/) {
  container::Findings findings(verify.max_findings);
  findings.find([&] {
    OpenedModel model = safetensors::open_faulty(input, model_options(options));
    for (SafetensorsFinding& found : safetensors::findings_of(model)) {
      if (!model.index_text) break;  // its fault, which is thrown below, tells more
      found.section = found.file.empty() ? "index" : "file";
      findings.add(std::move(found));
    }
    if (!findings.ok()) return;  // the first of them would be thrown
    safetensors::require_whole(model);
    check_tensors(OpenedSafetensors(std::move(model)), verify, findings);
  });
  return std::move(findings).finish();
}

}  // namespace thalia::formats
