// An open file is immutable and its copies share it. Tensors are views of the mapping and keep it
// open by its owner.
#include <utility>

#include "base/fail.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "formats/gguf/name_index.h"
#include "formats/gguf/parse.h"
#include "formats/gguf/stored_tensor.h"
#include "io/file/file_bytes.h"
#include "thalia/formats/gguf.h"

namespace thalia {

struct GgufFile::Impl {
  StoredBytes stored;
  std::string name;
  ReadLimits limits;
  formats::gguf::Parsed parsed;
  formats::gguf::NameIndex keys;
  formats::gguf::NameIndex names;

  template <typename Call>
  Tensor of_tensor(const GgufTensor& tensor, const Call& call) const {
    try {
      return call();
    } catch (Error& error) {
      error.add_path(name);
      error.add_tensor(printable(tensor.name));
      throw;
    }
  }
};

GgufFile GgufFile::from_bytes(StoredBytes bytes, std::string name, const ReadLimits& limits) {
  auto impl = std::make_shared<Impl>();
  impl->stored = std::move(bytes);
  impl->name = std::move(name);
  impl->limits = limits;
  with_path(impl->name,
            [&] { impl->parsed = formats::gguf::parse_file(impl->stored.bytes, limits); });
  impl->keys = formats::gguf::NameIndex(impl->parsed.key_values,
                                        [](const auto& one) { return std::string_view(one.key); });
  impl->names = formats::gguf::NameIndex(
      impl->parsed.tensors, [](const auto& one) { return std::string_view(one.name); });
  GgufFile file;
  file.impl_ = std::move(impl);
  return file;
}

GgufFile GgufFile::open(const std::filesystem::path& path, const ReadOptions& options) {
  const auto file = io::FileBytes::open_whole(path, options.input.access, options.work.cancel);
  return from_bytes({.bytes = file->bytes(), .owner = file}, path.string(), options.input.limits);
}

unsigned GgufFile::version() const noexcept {
  return impl_->parsed.version;
}

std::uint32_t GgufFile::alignment() const noexcept {
  return impl_->parsed.alignment;
}

const GgufKeyValues& GgufFile::key_values() const noexcept {
  return impl_->parsed.key_values;
}

const GgufValue* GgufFile::find(std::string_view key) const noexcept {
  const auto found = impl_->keys.find(key);
  return found ? &impl_->parsed.key_values[*found].value : nullptr;
}

const std::vector<GgufTensor>& GgufFile::tensors() const noexcept {
  return impl_->parsed.tensors;
}

const GgufTensor& GgufFile::tensor(std::string_view name) const {
  if (const auto found = impl_->names.find(name)) return impl_->parsed.tensors[*found];
  throw UsageError(
      ErrorCode::not_found,
      "no such tensor" + suggestion_among(name, impl_->parsed.tensors, &GgufTensor::name),
      {.path = impl_->name, .tensor = printable(name)});
}

std::uint64_t GgufFile::file_bytes() const noexcept {
  return impl_->stored.bytes.size();
}

std::uint64_t GgufFile::unused_bytes() const noexcept {
  return impl_->parsed.unused_bytes;
}

Tensor GgufFile::read(std::string_view name) const {
  const GgufTensor& found = tensor(name);
  return impl_->of_tensor(found, [&] {
    return formats::gguf::stored_tensor(found, impl_->stored.owner, impl_->limits);
  });
}

Tensor GgufFile::dequantize(std::string_view name, unsigned threads) const {
  const GgufTensor& found = tensor(name);
  if (ggml_type_facts(found.type)->dtype) return read(name);
  return impl_->of_tensor(
      found, [&] { return formats::gguf::dequantized_tensor(found, impl_->limits, threads); });
}

}  // namespace thalia
