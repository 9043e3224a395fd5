// An open file is immutable; copies share the mapping and the parsed header. Tensors borrow their
// bytes from it, so they live as long as any copy of the SafetensorsFile does.
#include <utility>

#include "base/fail.h"
#include "interop/safetensors/parse.h"
#include "io/file_bytes.h"
#include "thalia/error.h"
#include "thalia/safetensors.h"

namespace thalia {

struct SafetensorsFile::Impl {
  std::shared_ptr<const io::FileBytes> file;
  interop::ParsedSafetensors parsed;
};

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path,
                                      std::uint64_t max_header_bytes) {
  return open(path, ReadOptions{}, max_header_bytes);
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path, const ReadOptions& options,
                                      std::uint64_t max_header_bytes) {
  auto impl = std::make_shared<Impl>();
  impl->file = io::FileBytes::open_whole(path, options.input.access, options.work.cancel);
  with_path(path.native(), [&] {
    impl->parsed =
        interop::parse_safetensors(impl->file->bytes(), max_header_bytes, options.input.limits);
  });
  SafetensorsFile file;
  file.impl_ = std::move(impl);
  return file;
}

const std::vector<SafetensorsTensor>& SafetensorsFile::tensors() const noexcept {
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
