// What a file says beside its tensors is what the sink of the same format needs to
// write that file again.
#include "formats/npz/opened.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/npz/archive.h"
#include "formats/npz/array.h"
#include "formats/npz/source_metadata.h"
#include "formats/source/list_names.h"
#include "io/file/file_bytes.h"
#include "io/memory/allocation_limit.h"

namespace thalia::formats::npz {
namespace {

AnyTensor source_tensor(const NpyArray& array, const NpyHeader& header) {
  AnyTensor tensor{.name = array.name,
                   .layout = {.dtype = array.dtype, .shape = array.shape},
                   .offset = array.offset,
                   .stored_bytes = array.stored_bytes,
                   .in_place = !array.deflated && !is_converted(header)};
  if (header.type.opaque != 0) tensor.type = header.descr;
  return tensor;
}

class OpenedNpz final : public OpenedFile {
 public:
  OpenedNpz(std::string path, StoredBytes bytes, const ReadOptions& options)
      : path_(std::move(path)), archive_(std::move(bytes), options) {
    facts_.file_bytes = archive_.file_bytes();
    for (std::size_t i = 0; i < archive_.arrays().size(); ++i) {
      facts_.tensors.push_back(source_tensor(archive_.arrays()[i], archive_.header(i)));
      facts_.tensors.back().checksum = "crc32";
    }
    facts_.metadata = source_metadata_to_json("npz", source_metadata_of(archive_));
    if (!archive_.others().empty())
      facts_.losses.push_back(
          fmt::format("members that are no arrays: {}", list_names(archive_.others())));
    if (!archive_.comment().empty()) facts_.losses.push_back("the comment of the archive");
  }

  Tensor read(std::size_t i) const override {
    return with_path(path_, [&] { return archive_.read(i); });
  }
  void visit(std::size_t i, const PieceSink& sink) const override {
    with_path(path_, [&] { archive_.visit(i, sink); });
  }
  void check(std::size_t i) const override {
    with_path(path_, [&] { archive_.check(i); });
  }

 private:
  std::string path_;
  NpzArchive archive_;
};

class OpenedNpy final : public OpenedFile {
 public:
  OpenedNpy(std::string path, StoredBytes bytes, std::string name, const ReadLimits& limits)
      : path_(std::move(path)), bytes_(std::move(bytes)), limits_(limits) {
    const ByteSpan file = bytes_.bytes;
    io::check_file_bytes("npy header", file.size(), limits);
    header_ = parse_npy_header(file.first(std::min(file.size(), kMostNpyHeader)), file.size());
    NpyArray array = describe_array(std::move(name), header_);
    array.offset = header_.header_bytes;
    array.stored_bytes = file.size() - header_.header_bytes;
    facts_.version = fmt::format("{}.0", header_.version);
    facts_.file_bytes = file.size();
    facts_.tensors.push_back(source_tensor(array, header_));
    NpzSourceMetadata source;
    source.arrays.push_back(source_array(array, header_, file.first(header_.header_bytes)));
    facts_.metadata = source_metadata_to_json("npy", source);
  }

  Tensor read(std::size_t) const override {
    return with_path(path_, [&] {
      return view_elements(header_, bytes_.bytes.subspan(header_.header_bytes), bytes_.owner,
                           limits_);
    });
  }

 private:
  std::string path_;
  StoredBytes bytes_;
  ReadLimits limits_;
  NpyHeader header_;
};

}  // namespace
}  // namespace thalia::formats::npz

namespace thalia::formats {
namespace {

StoredBytes whole_file(const io::InputFile& input, const OpenOptions& options) {
  const auto& file = input.whole(options.chain.read.input.access, options.chain.read.work.cancel);
  return {.bytes = file->bytes(), .owner = file};
}

}  // namespace

std::shared_ptr<const OpenedFile> open_npz_bytes(StoredBytes bytes,
                                                 const std::filesystem::path& path,
                                                 const OpenOptions& options) {
  return with_path(path.native(), [&] {
    return std::make_shared<const npz::OpenedNpz>(path.string(), std::move(bytes),
                                                  options.chain.read);
  });
}

std::shared_ptr<const OpenedFile> open_npy_bytes(StoredBytes bytes,
                                                 const std::filesystem::path& path,
                                                 const OpenOptions& options) {
  const std::string name = npz::array_name(path.filename().string());
  return with_path(path.native(), [&] {
    return std::make_shared<const npz::OpenedNpy>(
        path.string(), std::move(bytes),
        // A name of the file system may be any bytes, and one of a tensor is text.
        is_valid_utf8(name) ? name : printable(name), options.chain.read.input.limits);
  });
}

std::shared_ptr<const OpenedFile> open_npz_file(const io::InputFile& input,
                                                const OpenOptions& options) {
  return open_npz_bytes(whole_file(input, options), input.path(), options);
}

std::shared_ptr<const OpenedFile> open_npy_file(const io::InputFile& input,
                                                const OpenOptions& options) {
  return open_npy_bytes(whole_file(input, options), input.path(), options);
}

}  // namespace thalia::formats
