// An open file is immutable; copies share the mapping and the parsed header. Tensors borrow their
// bytes from it, so they live as long as any copy of the SafetensorsFile does.
#include <utility>

#include "base/fail.h"
#include "formats/safetensors/parse.h"
#include "io/file/file_bytes.h"
#include "thalia/error.h"
#include "thalia/formats/safetensors.h"

namespace thalia {

struct SafetensorsFile::Impl {
  std::shared_ptr<const io::FileBytes> file;
  formats::ParsedSafetensors parsed;
};

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path,
                                      std::uint64_t max_header_bytes) {
  return open(path, ReadOptions{}, max_header_bytes);
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path, const ReadOptions& options,
                                      std::uint64_t max_header_bytes) {
  SafetensorsFile file = open_header(path, options, max_header_bytes);
  file.impl_->file->touch_whole(options.work.cancel);
  return file;
}

SafetensorsFile SafetensorsFile::open_header(const std::filesystem::path& path,
                                             const ReadOptions& options,
                                             std::uint64_t max_header_bytes) {
  auto impl = std::make_shared<Impl>();
  impl->file = io::FileBytes::open(path, options.input.access);
  with_path(path.native(), [&] {
    const io::FileBytes& bytes = *impl->file;
    impl->parsed = formats::parse_safetensors(
        bytes.bytes(), max_header_bytes, options.input.limits,
        [&](std::uint64_t offset, std::uint64_t length) { bytes.touch(offset, length); });
  });
  SafetensorsFile file;
  file.impl_ = std::move(impl);
  return file;
}

void SafetensorsFile::touch(ByteSpan part) const {
  const auto offset = static_cast<std::uint64_t>(part.data() - impl_->file->bytes().data());
  impl_->file->touch(offset, part.size());
}

const std::vector<NamedArray>& SafetensorsFile::tensors() const noexcept {
  return impl_->parsed.tensors;
}

const SafetensorsMetadata& SafetensorsFile::metadata() const noexcept {
  static const SafetensorsMetadata none;
  return impl_->parsed.metadata ? *impl_->parsed.metadata : none;
}

bool SafetensorsFile::has_metadata() const noexcept {
  return impl_->parsed.metadata.has_value();
}

std::uint64_t SafetensorsFile::file_bytes() const noexcept {
  return impl_->file->bytes().size();
}

void SafetensorsFile::read_ahead(ByteSpan part) const noexcept {
  const auto offset = static_cast<std::uint64_t>(part.data() - impl_->file->bytes().data());
  impl_->file->read_ahead(offset, part.size());
}

}  // namespace thalia
