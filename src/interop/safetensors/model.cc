// An open model is immutable; copies share the mappings and the parsed headers. Tensors hold the
// mapping of their own file, and so outlive the model.
#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "interop/safetensors/opened_model.h"
#include "interop/safetensors/slice.h"
#include "thalia/error.h"
#include "thalia/formats/safetensors_model.h"

namespace thalia {

struct SafetensorsModel::Impl {
  interop::safetensors::OpenedModel model;
  ReadLimits limits;
  std::vector<SafetensorsModelFile> files;
  std::vector<SafetensorsModelTensor> tensors;
  std::vector<const SafetensorsTensor*> parsed;  ///< of the same positions
  std::unordered_map<std::string_view, std::size_t> places;
  std::uint64_t file_bytes = 0;

  std::size_t place(std::string_view name) const {
    const auto found = places.find(name);
    if (found != places.end()) return found->second;
    throw UsageError(
        ErrorCode::not_found,
        "no such tensor" + suggestion_among(name, tensors, &SafetensorsModelTensor::name),
        {.path = model.path.string(), .field = "name", .value = printable(name)});
  }
  void check_place(std::size_t i) const {
    if (i < tensors.size()) return;
    throw UsageError(ErrorCode::not_found, "no such tensor",
                     {.path = model.path.string(),
                      .field = "i",
                      .value = std::to_string(i),
                      .bound = fmt::format("less than {}", tensors.size())});
  }
};

SafetensorsModel SafetensorsModel::open(const std::filesystem::path& path,
                                        const SafetensorsModelOptions& options) {
  auto impl = std::make_shared<Impl>();
  impl->model = interop::safetensors::open_model(path, options);
  impl->limits = options.chain.read.input.limits;
  if (impl->model.index_text) impl->file_bytes = impl->model.index_text->size();
  for (const auto& file : impl->model.files) {
    const ByteSpan bytes = file.bytes->bytes();
    for (const SafetensorsTensor& tensor : file.parsed.tensors) {
      impl->parsed.push_back(&tensor);
      impl->tensors.push_back(
          {.name = tensor.name,
           .dtype = tensor.dtype,
           .shape = tensor.shape,
           .file = impl->files.size(),
           .offset = static_cast<std::uint64_t>(tensor.bytes.data() - bytes.data()),
           .bytes = tensor.bytes.size()});
    }
    impl->files.push_back({.name = file.name,
                           .metadata = file.parsed.metadata.value_or(SafetensorsMetadata()),
                           .has_metadata = file.parsed.metadata.has_value(),
                           .file_bytes = bytes.size()});
    impl->file_bytes += bytes.size();
  }
  for (std::size_t i = 0; i < impl->tensors.size(); ++i)
    impl->places.emplace(impl->tensors[i].name, i);
  SafetensorsModel model;
  model.impl_ = std::move(impl);
  return model;
}

const std::vector<SafetensorsModelTensor>& SafetensorsModel::tensors() const noexcept {
  return impl_->tensors;
}

const std::vector<SafetensorsModelFile>& SafetensorsModel::files() const noexcept {
  return impl_->files;
}

const std::filesystem::path& SafetensorsModel::path() const noexcept {
  return impl_->model.path;
}

const std::optional<std::string>& SafetensorsModel::index_text() const noexcept {
  return impl_->model.index_text;
}

std::uint64_t SafetensorsModel::file_bytes() const noexcept {
  return impl_->file_bytes;
}

std::optional<std::size_t> SafetensorsModel::find(std::string_view name) const noexcept {
  const auto found = impl_->places.find(name);
  return found == impl_->places.end() ? std::nullopt : std::optional(found->second);
}

Tensor SafetensorsModel::read(std::size_t i) const {
  impl_->check_place(i);
  return interop::safetensors::tensor_of(impl_->model.files[impl_->tensors[i].file],
                                         *impl_->parsed[i]);
}

Tensor SafetensorsModel::read(std::string_view name) const {
  return read(impl_->place(name));
}

Tensor SafetensorsModel::read_range(std::size_t i, std::span<const SliceRange> ranges) const {
  impl_->check_place(i);
  const SafetensorsModelTensor& tensor = impl_->tensors[i];
  const auto& file = impl_->model.files[tensor.file];
  try {
    return interop::safetensors::slice_of({.dtype = tensor.dtype,
                                           .shape = tensor.shape,
                                           .bytes = impl_->parsed[i]->bytes,
                                           .owner = file.bytes,
                                           .touch =
                                               [&](std::uint64_t begin, std::uint64_t length) {
                                                 file.bytes->touch(tensor.offset + begin, length);
                                                 file.bytes->read_ahead(tensor.offset + begin,
                                                                        length);
                                               }},
                                          ranges, impl_->limits);
  } catch (Error& error) {
    error.add_tensor(printable(tensor.name));
    throw;
  }
}

Tensor SafetensorsModel::read_range(std::string_view name,
                                    std::span<const SliceRange> ranges) const {
  return read_range(impl_->place(name), ranges);
}

Tensor SafetensorsModel::read_rows(std::string_view name, std::uint64_t begin,
                                   std::uint64_t end) const {
  const std::size_t i = impl_->place(name);
  std::vector<SliceRange> ranges;
  for (const std::uint64_t extent : impl_->tensors[i].shape.extents())
    ranges.push_back({.begin = 0, .end = extent});
  // A scalar has no rows: the range in front makes one too many, which is refused.
  if (ranges.empty()) ranges.emplace_back();
  ranges[0] = {.begin = begin, .end = end};
  return read_range(i, ranges);
}

}  // namespace thalia
