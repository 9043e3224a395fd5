// An open model is immutable and its copies share it. Bytes that lie in a file as they are, are
// handed out in its mapping, those of a sparse tensor and of typed fields are put together.
#include "formats/onnx/file.h"

#include <set>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "formats/onnx/data_folder.h"
#include "formats/onnx/elements.h"
#include "formats/onnx/model.h"
#include "formats/onnx/sparse.h"
#include "io/file/file_bytes.h"
#include "io/memory/allocation_limit.h"
#include "thalia/files.h"

namespace thalia::formats::onnx {
namespace {

// Where a model's name is a link, as in the Hugging Face cache, its data may be links into the
// folder that it leads to.
std::vector<std::filesystem::path> data_folders(const std::filesystem::path& folder,
                                                const std::filesystem::path& model,
                                                const OnnxReadOptions& options) {
  if (!options.data_folder.empty()) return {options.data_folder};
  std::vector<std::filesystem::path> folders{folder};
  if (!folder.empty()) folders.push_back(folder_of(resolved_path(model)));
  return folders;
}

std::uint64_t bytes_on_disk(const TensorProto& tensor) noexcept {
  return tensor.message.length + tensor.bytes;
}

}  // namespace

struct OnnxFile::Impl {
  Impl(StoredBytes bytes, std::string named, const std::filesystem::path& folder,
       const OnnxReadOptions& options)
      : stored(std::move(bytes)),
        name(std::move(named)),
        limits(options.input.limits),
        data(folder, data_folders(folder, name, options), options.input) {
    with_path(name, [&] {
      io::check_file_bytes("ModelProto", stored.bytes.size(), limits);
      parsed = parse_model(stored.bytes, options.constants, limits);
    });
    for (std::size_t i = 0; i < parsed.tensors.size(); ++i)
      places.emplace(parsed.tensors[i].name, i);
  }

  Tensor read(const TensorProto& tensor, io::MemoryBudget& budget) const {
    const TensorLayout layout{.dtype = tensor.type->dtype, .shape = tensor.shape};
    if (tensor.external) {
      DataFolder::Part part = data.part(*tensor.external, tensor.bytes);
      return Tensor::adopt(layout, part.bytes, std::move(part.owner));
    }
    if (tensor.raw) {
      return Tensor::adopt(layout, stored.bytes.subspan(tensor.raw->offset, tensor.raw->length),
                           stored.owner);
    }
    return read_typed(stored.bytes, tensor, budget);
  }

  StoredBytes stored;
  std::string name;
  ReadLimits limits;
  DataFolder data;
  ParsedModel parsed;
  std::unordered_map<std::string_view, std::size_t> places;
};

OnnxFile OnnxFile::open(const io::InputFile& input, const OnnxReadOptions& options) {
  const auto& bytes = input.whole(options.input.access, options.cancel);
  OnnxFile file;
  file.impl_ =
      std::make_shared<const Impl>(StoredBytes{.bytes = bytes->bytes(), .owner = bytes},
                                   input.path().string(), folder_of(input.path()), options);
  return file;
}

OnnxFile OnnxFile::from_bytes(StoredBytes bytes, std::string name, const OnnxReadOptions& options) {
  OnnxFile file;
  file.impl_ = std::make_shared<const Impl>(std::move(bytes), std::move(name),
                                            std::filesystem::path{}, options);
  return file;
}

const std::vector<OnnxTensor>& OnnxFile::tensors() const noexcept {
  return impl_->parsed.tensors;
}

const OnnxModel& OnnxFile::model() const noexcept {
  return impl_->parsed.model;
}

const OnnxMetadata& OnnxFile::metadata() const noexcept {
  return impl_->parsed.metadata;
}

const OnnxGraph& OnnxFile::graph() const noexcept {
  return impl_->parsed.graph;
}

std::uint64_t OnnxFile::file_bytes() const {
  std::uint64_t bytes = impl_->stored.bytes.size();
  std::set<std::string_view> seen;
  for (const OnnxTensor& tensor : tensors())
    if (!tensor.location.empty() && seen.insert(tensor.location).second)
      bytes += impl_->data.size(tensor.location);
  return bytes;
}

Tensor OnnxFile::read(std::string_view name) const {
  const auto found = impl_->places.find(name);
  if (found == impl_->places.end()) {
    throw UsageError(ErrorCode::not_found,
                     "no such tensor" + suggestion_among(name, tensors(), &OnnxTensor::name),
                     {.path = impl_->name, .tensor = printable(name)});
  }
  return read(found->second);
}

Tensor OnnxFile::read(std::size_t i) const {
  const OnnxTensor& tensor = tensors()[i];
  const OnnxStored& stored = impl_->parsed.stored[i];
  try {
    return with_path(impl_->name, [&] {
      if (!stored.indices) {
        io::MemoryBudget budget(impl_->limits, stored.values.message.length);
        return impl_->read(stored.values, budget);
      }
      io::MemoryBudget budget(impl_->limits,
                              bytes_on_disk(stored.values) + bytes_on_disk(*stored.indices));
      return coo_of(tensor.layout, impl_->read(stored.values, budget),
                    impl_->read(*stored.indices, budget), budget);
    });
  } catch (Error& error) {
    error.add_tensor(printable(tensor.name));
    throw;
  }
}

void OnnxFile::check(std::size_t i) const {
  static_cast<void>(read(i));
  const OnnxStored& stored = impl_->parsed.stored[i];
  if (stored.values.external) impl_->data.check_sum(*stored.values.external);
  if (stored.indices && stored.indices->external) impl_->data.check_sum(*stored.indices->external);
}

}  // namespace thalia::formats::onnx
