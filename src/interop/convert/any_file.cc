// A handle around the source of the format that a file has. Files of version 0.1 are read whole, as
// their format wants it.
#include "thalia/formats/any_file.h"

#include <algorithm>
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
#include "interop/shared/part_name.h"
#include "io/read_ahead.h"
#include "thalia/delta.h"
#include "thalia/formats/model_index.h"
#include "thalia/formats/resolved_file.h"

namespace thalia {
namespace {

std::shared_ptr<const interop::OpenedFile> open_source(const std::filesystem::path& path,
                                                       FileFormat format,
                                                       const OpenOptions& options) {
  if (format == FileFormat::thalia_0_1) return interop::open_original_source(path, options);
  if (format != FileFormat::thalia) return interop::format_row(format).open(path, options);
  const ResolvedFile file(path, {}, options.chain);
  return std::make_shared<interop::ThaliaSource>(file.reader(), RegionGrouping{},
                                                 options.chain.read);
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
  std::shared_ptr<const interop::OpenedFile> source;
  std::unordered_map<std::string_view, std::size_t> places;
  mutable io::ReadAhead ahead;  ///< by addresses
};

std::filesystem::path interop::opened_path(const std::filesystem::path& input,
                                           std::optional<FileFormat> from) {
  return from && *from != FileFormat::thalia ? input : find_model(input);
}

AnyFile open_any(const std::filesystem::path& named, const OpenOptions& options,
                 std::optional<FileFormat> format) {
  const std::filesystem::path path = interop::opened_path(named, format);
  auto impl = std::make_shared<AnyFile::Impl>();
  impl->path = path.string();
  impl->format = format ? *format : input_format(path, options.chain.read.input.access);
  with_path(impl->path, [&] {
    impl->source = open_source(path, impl->format, options);
    if (options.chain.read.verification != Verification::at_open) return;
    for (std::size_t i = 0; i < impl->source->facts().tensors.size(); ++i) impl->source->check(i);
  });
  const auto& tensors = impl->source->facts().tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) impl->places.emplace(tensors[i].name, i);
  AnyFile file;
  file.impl_ = std::move(impl);
  return file;
}

std::vector<std::filesystem::path> files_read(const std::filesystem::path& named,
                                              const OpenOptions& options,
                                              std::optional<FileFormat> format) {
  const std::filesystem::path path = interop::opened_path(named, format);
  if (!format) format = input_format(path, options.chain.read.input.access);
  std::vector<std::filesystem::path> files, more;
  with_path(path.native(), [&] {
    if (*format == FileFormat::thalia) {
      more = ChainReader::open(path, options.chain).paths();
    } else if (const auto open = interop::format_row(*format).open) {
      more = open(path, options)->files();
    }
  });
  // A model lists what its folder leads to itself.
  if (*format != FileFormat::safetensors && *format != FileFormat::thalia_shards)
    files.push_back(path);
  files.insert(files.end(), more.begin(), more.end());
  return files;
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

std::optional<std::string> AnyFile::lacks() const {
  return interop::lacking_parts(impl_->path, impl_->source->part());
}

std::optional<std::string> lacks_of_file(const std::filesystem::path& path, FileFormat format,
                                         const OpenOptions& options) {
  if (format == FileFormat::gguf) return open_any(path, options, format).lacks();
  return interop::lacking_parts(path, std::nullopt);
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

void AnyFile::read_ahead(const Tensor& tensor, ByteSpan part) const noexcept {
  const ByteSpan bytes = tensor.bytes();
  const auto address = [](const std::byte* byte) { return reinterpret_cast<std::uintptr_t>(byte); };
  const io::ReadAhead::Extent ahead = impl_->ahead.before(address(part.data()), part.size());
  const std::uint64_t begin = std::max<std::uint64_t>(ahead.begin, address(bytes.data()));
  const std::uint64_t end =
      std::min<std::uint64_t>(ahead.end, address(bytes.data()) + bytes.size());
  if (begin < end) io::will_need(bytes.subspan(begin - address(bytes.data()), end - begin));
}

void AnyFile::check(std::size_t i) const {
  check_number(i, tensors().size());
  with_path(impl_->path, [&] { impl_->source->check(i); });
}

}  // namespace thalia
