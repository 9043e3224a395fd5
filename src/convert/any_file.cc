// A handle around the open file of the format that it has. Files of version 0.1 are read whole, as
// their format wants it.
#include "thalia/formats/any_file.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/inside.h"
#include "container/read/reader_of.h"
#include "convert/conversions.h"
#include "convert/formats.h"
#include "format/payload.h"
#include "formats/params/make_param_source.h"
#include "formats/source/part_name.h"
#include "io/file/read_ahead.h"
#include "io/system/process.h"
#include "state/tensor/slice.h"
#include "thalia/formats/safetensors.h"

namespace thalia {
namespace {

void check_number(std::size_t i, std::size_t count) {
  if (i < count) return;
  fail_argument(ErrorCode::not_found, "tensor", std::to_string(i),
                "below " + std::to_string(count));
}

}  // namespace

struct AnyFile::Impl {
  Impl(const io::InputFile& input, const OpenOptions& options, FileFormat file_format)
      : path(input.path().string()), format(file_format) {
    with_path(path, [&] {
      source = formats::format_row(format).open(input, options);
      if (options.chain.read.verification == Verification::at_open) source->check_all();
    });
  }

  std::string path;
  FileFormat format;
  std::shared_ptr<const formats::OpenedFile> source;
  mutable io::ReadAhead ahead;  ///< by addresses
  mutable io::Once all_listed;
  mutable std::vector<AnyTensor> listed;  ///< of a file that tells its tensors one at a time
};

std::filesystem::path formats::opened_path(const std::filesystem::path& input,
                                           std::optional<FileFormat> from) {
  return from && *from != FileFormat::thalia ? input : find_model(input);
}

AnyFile open_any(const std::filesystem::path& named, const OpenOptions& options,
                 std::optional<FileFormat> format) {
  const io::InputFile input(formats::opened_path(named, format));
  return detail::Inside::make_impl<AnyFile>(
      input, options,
      format ? *format : formats::format_of(input, options.chain.read.input.access));
}

std::variant<Reader, AnyFile> formats::open_as_found(const std::filesystem::path& path,
                                                     const OpenOptions& options) {
  const io::InputFile input(path);
  const auto format = detect(input, options.chain.read.input.access);
  if (format.value_or(FileFormat::thalia) == FileFormat::thalia)
    return container::open_reader(input, options.chain.read);
  return detail::Inside::make_impl<AnyFile>(input, options, *format);
}

AnyFile::AnyFile(std::unique_ptr<const Impl> impl)
    : impl_(std::shared_ptr<const Impl>(std::move(impl))) {}

std::vector<std::filesystem::path> files_read(const std::filesystem::path& named,
                                              const OpenOptions& options,
                                              std::optional<FileFormat> format) {
  const io::InputFile input(formats::opened_path(named, format));
  return formats::files_read(
      input, options,
      format ? *format : formats::format_of(input, options.chain.read.input.access));
}

std::vector<std::filesystem::path> formats::files_read(const io::InputFile& input,
                                                       const OpenOptions& options,
                                                       FileFormat format) {
  const std::filesystem::path& path = input.path();
  std::vector<std::filesystem::path> files, more;
  OpenOptions own = options;
  own.as_stored = true;
  const formats::FormatRow& row = formats::format_row(format);
  if (row.names_files) with_path(path.native(), [&] { more = row.open(input, own)->files(); });
  // A model lists what its folder leads to itself.
  if (format != FileFormat::safetensors && format != FileFormat::thalia_shards)
    files.push_back(path);
  files.insert(files.end(), more.begin(), more.end());
  return files;
}

ParamSource stream_params(const AnyFile& file, const ParamSourceOptions& options) {
  return formats::make_param_source(file.impl_->source, options);
}

const std::string& AnyFile::path() const noexcept {
  return impl_->path;
}

FileFormat AnyFile::format() const noexcept {
  return impl_->format;
}

const FileFacts& AnyFile::facts() const {
  return with_path(impl_->path, [&]() -> const FileFacts& { return impl_->source->facts(); });
}

std::string_view AnyFile::version() const {
  return facts().version;
}

std::string_view AnyFile::metadata_json() const {
  return facts().metadata;
}

std::optional<std::uint64_t> AnyFile::training_steps() const {
  return facts().training_steps;
}

std::uint64_t AnyFile::file_bytes() const {
  return facts().file_bytes;
}

const std::vector<std::string>& AnyFile::losses() const {
  return facts().losses;
}

const std::vector<AnyTensor>& AnyFile::tensors() const {
  const std::vector<AnyTensor>& tensors = impl_->source->facts().tensors;
  const std::size_t count = tensor_count();
  if (tensors.size() == count) return tensors;
  impl_->all_listed.run([&] {
    for (std::size_t i = 0; i < count; ++i) impl_->listed.push_back(stored(i));
  });
  return impl_->listed;
}

std::size_t AnyFile::tensor_count() const {
  return with_path(impl_->path, [&] { return impl_->source->tensor_count(); });
}

AnyTensor AnyFile::stored(std::size_t i) const {
  check_number(i, tensor_count());
  return with_path(impl_->path, [&] { return impl_->source->stored(i); });
}

std::optional<std::size_t> AnyFile::find(std::string_view name) const {
  return with_path(impl_->path, [&] { return impl_->source->find(name); });
}

std::size_t AnyFile::at(std::string_view name) const {
  return with_path(impl_->path, [&] { return impl_->source->at(name); });
}

bool AnyFile::has_regions() const noexcept {
  return impl_->source->has_regions();
}

std::optional<ChainReader> AnyFile::state(const ChainOptions& options) const {
  return with_path(impl_->path, [&] { return impl_->source->state(options); });
}

std::vector<LinkFacts> AnyFile::links() const {
  return with_path(impl_->path, [&] { return impl_->source->links(impl_->path); });
}

std::size_t AnyFile::region_count() const {
  return with_path(impl_->path, [&] { return impl_->source->region_count(); });
}

std::string_view AnyFile::region_name(std::size_t i) const {
  check_number(i, region_count());
  return with_path(impl_->path, [&] { return impl_->source->region_name(i); });
}

bool AnyFile::has_region(std::string_view name) const {
  return with_path(impl_->path, [&] { return impl_->source->has_region(name); });
}

RegionFacts AnyFile::region(std::size_t i) const {
  check_number(i, region_count());
  return with_path(impl_->path, [&] { return impl_->source->region(i); });
}

std::vector<ConnectionFacts> AnyFile::connections() const {
  return with_path(impl_->path, [&] { return impl_->source->connections(); });
}

std::vector<std::filesystem::path> AnyFile::files() const {
  return with_path(impl_->path, [&] { return impl_->source->files(); });
}

std::uint64_t AnyFile::logical_bytes(std::size_t i) const {
  return format::payload_length(tensors()[i].layout).value_or(UINT64_MAX);
}

std::optional<std::string> AnyFile::lacks() const {
  return formats::lacking_parts(impl_->path, impl_->source->part());
}

Tensor AnyFile::read(std::size_t i) const {
  check_number(i, tensor_count());
  return with_path(impl_->path, [&] { return impl_->source->read(i); });
}

Tensor AnyFile::read(std::string_view name) const {
  return read(at(name));
}

TensorElements AnyFile::elements(std::size_t i) const {
  check_number(i, tensor_count());
  TensorElements elements = with_path(impl_->path, [&] { return impl_->source->elements(i); });
  if (!elements.read) return elements;
  elements.read = [file = *this, layout = elements.layout, read = std::move(elements.read),
                   whole = elements.all](std::span<const SliceRange> ranges, MutableByteSpan out) {
    state::check_slice(layout.dtype, layout.shape, ranges, out.size());
    if (whole) {
      if (const auto part =
              state::consecutive(whole->dtype(), whole->shape(), whole->bytes(), ranges))
        file.read_ahead(*whole, *part);
    }
    with_path(file.impl_->path, [&] { read(ranges, out); });
  };
  return elements;
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
  check_number(i, tensor_count());
  with_path(impl_->path, [&] { impl_->source->check(i); });
}

}  // namespace thalia
