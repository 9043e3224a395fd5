// A handle around the source of the format that a file has. Files of version 0.1 are read whole, as
// their format wants it.
#include "thalia/formats/any_file.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "format/payload.h"
#include "interop/convert/conversions.h"
#include "interop/convert/formats.h"
#include "interop/convert/original_source.h"
#include "interop/convert/thalia_source.h"
#include "interop/params/make_param_source.h"
#include "thalia/delta.h"

namespace thalia {
namespace {

std::shared_ptr<const interop::TensorSource> open_source(const std::filesystem::path& path,
                                                         FileFormat format,
                                                         const OpenOptions& options) {
  if (format == FileFormat::thalia_0_1) return interop::open_original_source(path, options);
  if (format != FileFormat::thalia) return interop::format_row(format).open(path, options);
  const ResolvedFile file(path, {},
                          {.read = options.read, .search = options.search, .bases = options.bases});
  return std::make_shared<interop::ThaliaSource>(file.reader(), RegionGrouping{}, options.read);
}

void check_number(std::size_t i, std::size_t count) {
  if (i < count) return;
  fail_argument(ErrorCode::not_found, "tensor", std::to_string(i),
                "below " + std::to_string(count));
}

}  // namespace

struct AnyFile::Impl {
  std::string path;
  FileFormat format = FileFormat::thalia;
  std::shared_ptr<const interop::TensorSource> source;
  std::unordered_map<std::string_view, std::size_t> places;
};

AnyFile open_any(const std::filesystem::path& path, const OpenOptions& options,
                 std::optional<FileFormat> format) {
  auto impl = std::make_shared<AnyFile::Impl>();
  impl->path = path.string();
  impl->format = format ? *format : interop::input_format(path);
  with_path(impl->path, [&] { impl->source = open_source(path, impl->format, options); });
  const auto& tensors = impl->source->facts().tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) impl->places.emplace(tensors[i].name, i);
  AnyFile file;
  file.impl_ = std::move(impl);
  return file;
}

ParamSource stream_params(const AnyFile& file, const ParamSourceOptions& options) {
  return interop::make_param_source(file.impl_->source, options);
}

FileFormat AnyFile::format() const noexcept {
  return impl_->format;
}

std::string_view AnyFile::version() const noexcept {
  return impl_->source->facts().version;
}

const std::vector<AnyTensor>& AnyFile::tensors() const noexcept {
  return impl_->source->facts().tensors;
}

std::optional<std::size_t> AnyFile::find(std::string_view name) const {
  const auto found = impl_->places.find(name);
  return found == impl_->places.end() ? std::nullopt : std::optional(found->second);
}

std::string_view AnyFile::metadata_json() const noexcept {
  return impl_->source->facts().metadata;
}

std::optional<std::uint64_t> AnyFile::training_steps() const noexcept {
  return impl_->source->facts().training_steps;
}

std::uint64_t AnyFile::file_bytes() const noexcept {
  return impl_->source->facts().file_bytes;
}

const std::vector<std::string>& AnyFile::losses() const noexcept {
  return impl_->source->facts().losses;
}

std::uint64_t AnyFile::logical_bytes(std::size_t i) const noexcept {
  return format::payload_length(tensors()[i].layout).value_or(UINT64_MAX);
}

Tensor AnyFile::read(std::size_t i) const {
  check_number(i, tensors().size());
  return with_path(impl_->path, [&] { return impl_->source->read(i); });
}

Tensor AnyFile::read(std::string_view name) const {
  if (const auto i = find(name)) return read(*i);
  throw UsageError(ErrorCode::not_found,
                   "no such tensor" + suggestion_among(name, tensors(), &AnyTensor::name),
                   {.path = impl_->path, .tensor = printable(name)});
}

void AnyFile::check(std::size_t i) const {
  check_number(i, tensors().size());
  with_path(impl_->path, [&] { impl_->source->check(i); });
}

}  // namespace thalia
