// An open file is immutable; copies share the mapping and the parsed index. Nothing of a payload is
// touched before it is asked for.
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "formats/gptrs/config.h"
#include "formats/gptrs/parse.h"
#include "io/file/file_bytes.h"
#include "io/memory/allocation_limit.h"
#include "thalia/formats/gptrs.h"

namespace thalia {

struct GptrsFile::Impl {
  StoredBytes stored;
  std::string name;
  formats::gptrs::ParsedFile parsed;
  std::unordered_map<std::string_view, std::size_t> by_name;
  std::unordered_map<BaseParamId, std::size_t> by_id;
};

GptrsFile GptrsFile::from_bytes(StoredBytes bytes, std::string name,
                                const GptrsReadOptions& options) {
  auto impl = std::make_shared<Impl>();
  impl->stored = std::move(bytes);
  impl->name = std::move(name);
  with_path(impl->name,
            [&] { impl->parsed = formats::gptrs::parse_file(impl->stored.bytes, options); });
  // If several entries have one name, the last stays, as in the original's table.
  const bool has_ids = impl->parsed.format == GptrsFormat::checkpoint;
  for (std::size_t i = 0; i < impl->parsed.tensors.size(); ++i) {
    const GptrsTensor& tensor = impl->parsed.tensors[i];
    impl->by_name.insert_or_assign(tensor.name, i);
    if (has_ids) impl->by_id.insert_or_assign(tensor.id, i);
  }
  GptrsFile file;
  file.impl_ = std::move(impl);
  return file;
}

GptrsFile GptrsFile::open(const std::filesystem::path& path, const GptrsReadOptions& options) {
  const auto file = io::FileBytes::open_whole(path, options.input.access, options.work.cancel);
  return from_bytes({.bytes = file->bytes(), .owner = file}, path.string(), options);
}

GptrsFormat GptrsFile::format() const noexcept {
  return impl_->parsed.format;
}

unsigned GptrsFile::version() const noexcept {
  return impl_->parsed.version;
}

const std::vector<GptrsTensor>& GptrsFile::tensors() const noexcept {
  return impl_->parsed.tensors;
}

std::uint64_t GptrsFile::file_bytes() const noexcept {
  return impl_->stored.bytes.size();
}

std::string_view GptrsFile::config_text() const noexcept {
  return impl_->parsed.config_text;
}

const GptrsModelConfig& GptrsFile::model_config() const {
  if (format() == GptrsFormat::checkpoint) return impl_->parsed.config;
  throw UsageError(ErrorCode::wrong_state, "an archive has no config", {.path = impl_->name});
}

bool GptrsFile::config_was_untagged() const noexcept {
  return impl_->parsed.untagged;
}

const GptrsTensor* GptrsFile::find(std::string_view name) const noexcept {
  const auto found = impl_->by_name.find(name);
  return found == impl_->by_name.end() ? nullptr : &impl_->parsed.tensors[found->second];
}

const GptrsTensor* GptrsFile::find(BaseParamId id) const noexcept {
  const auto found = impl_->by_id.find(id);
  return found == impl_->by_id.end() ? nullptr : &impl_->parsed.tensors[found->second];
}

Tensor GptrsFile::read_entry(std::size_t i) const {
  const GptrsTensor& tensor = impl_->parsed.tensors.at(i);
  with_path(impl_->name, [&] { formats::gptrs::check_place(tensor, file_bytes()); });
  return Tensor::adopt({.dtype = tensor.dtype, .shape = tensor.shape},
                       impl_->stored.bytes.subspan(tensor.offset, tensor.stored_bytes),
                       impl_.pointer());
}

Tensor GptrsFile::read(std::string_view name) const {
  if (const GptrsTensor* const found = find(name))
    return read_entry(static_cast<std::size_t>(found - tensors().data()));
  throw UsageError(ErrorCode::not_found,
                   "no such tensor" + suggestion_among(name, tensors(), &GptrsTensor::name),
                   {.path = impl_->name, .tensor = printable(name)});
}

Tensor GptrsFile::read(BaseParamId id) const {
  if (const GptrsTensor* const found = find(id))
    return read_entry(static_cast<std::size_t>(found - tensors().data()));
  throw UsageError(ErrorCode::not_found, "no tensor has this id",
                   {.path = impl_->name, .field = "id", .value = id.to_string()});
}

}  // namespace thalia
