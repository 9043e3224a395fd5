// The public faces of an open .npy or .npz file: copies share the mapping and what was parsed.
#include <utility>

#include "base/fail.h"
#include "interop/npz/archive.h"
#include "interop/npz/array.h"
#include "io/allocation_limit.h"
#include "io/file_bytes.h"
#include "thalia/formats/npz.h"

namespace thalia {
namespace interop::npz {
namespace {

StoredBytes whole_file(const std::filesystem::path& path, const ReadOptions& options) {
  const auto file = io::FileBytes::open_whole(path, options.input.access, options.work.cancel);
  return {.bytes = file->bytes(), .owner = file};
}

}  // namespace
}  // namespace interop::npz

struct NpyFile::Impl {
  StoredBytes stored;
  std::string name;
  ReadLimits limits;
  interop::NpyHeader header;
  NpyArray array;
};

NpyFile NpyFile::from_bytes(StoredBytes bytes, std::string name, const ReadOptions& options) {
  auto impl = std::make_shared<Impl>();
  impl->stored = std::move(bytes);
  impl->name = std::move(name);
  impl->limits = options.input.limits;
  with_path(impl->name, [&] {
    const ByteSpan file = impl->stored.bytes;
    io::check_file_bytes("npy header", file.size(), impl->limits);
    impl->header = interop::parse_npy_header(
        file.first(std::min(file.size(), interop::kMostNpyHeader)), file.size());
    impl->array = interop::npz::describe_array(
        interop::npz::array_name(std::filesystem::path(impl->name).filename().string()),
        impl->header);
    impl->array.offset = impl->header.header_bytes;
    impl->array.stored_bytes = file.size() - impl->header.header_bytes;
  });
  NpyFile file;
  file.impl_ = std::move(impl);
  return file;
}

NpyFile NpyFile::open(const std::filesystem::path& path, const ReadOptions& options) {
  return from_bytes(interop::npz::whole_file(path, options), path.string(), options);
}

const NpyArray& NpyFile::array() const noexcept {
  return impl_->array;
}

std::uint64_t NpyFile::file_bytes() const noexcept {
  return impl_->stored.bytes.size();
}

Tensor NpyFile::read() const {
  return with_path(impl_->name, [&] {
    return interop::npz::view_elements(impl_->header,
                                       impl_->stored.bytes.subspan(impl_->header.header_bytes),
                                       impl_->stored.owner, impl_->limits);
  });
}

struct NpzFile::Impl {
  Impl(StoredBytes bytes, std::string file_name, const ReadOptions& options)
      : name(std::move(file_name)), archive(std::move(bytes), options) {}
  std::string name;
  interop::npz::Archive archive;
};

NpzFile NpzFile::from_bytes(StoredBytes bytes, std::string name, const ReadOptions& options) {
  NpzFile file;
  with_path(name, [&] { file.impl_ = std::make_shared<Impl>(std::move(bytes), name, options); });
  return file;
}

NpzFile NpzFile::open(const std::filesystem::path& path, const ReadOptions& options) {
  return from_bytes(interop::npz::whole_file(path, options), path.string(), options);
}

const std::vector<NpyArray>& NpzFile::arrays() const noexcept {
  return impl_->archive.arrays();
}

const std::vector<std::string>& NpzFile::others() const noexcept {
  return impl_->archive.others();
}

std::uint64_t NpzFile::file_bytes() const noexcept {
  return impl_->archive.file_bytes();
}

Tensor NpzFile::read(std::string_view name) const {
  return with_path(impl_->name, [&] { return impl_->archive.read(impl_->archive.place(name)); });
}

}  // namespace thalia
