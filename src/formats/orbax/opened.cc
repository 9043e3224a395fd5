#include "formats/orbax/opened.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/orbax/metadata.h"
#include "formats/orbax/source_metadata.h"
#include "formats/source/npy_header.h"
#include "io/folder/inner_file.h"
#include "io/memory/allocation_limit.h"
#include "json/reader.h"

namespace thalia::formats {
namespace orbax {
namespace {

// Thousands of arrays are thousands of files, so none stays open.
class OpenedOrbax final : public OpenedFile {
 public:
  OpenedOrbax(const std::filesystem::path& path, const OpenOptions& options)
      : folder_(path), options_(options) {
    const auto file = io::open_inner_file(folder_, std::array{std::string(kMetadataFile)},
                                          options.chain.read.input.access);
    Metadata metadata = with_path(file->path().native(), [&] {
      io::check_json_length("header", file->bytes().size(), options.chain.read.input.limits,
                            file->bytes().size());
      file->touch_whole(options.chain.read.work.cancel);
      const ByteSpan text = file->bytes();
      return parse_metadata({reinterpret_cast<const char*>(text.data()), text.size()},
                            options.chain.read.input.limits);
    });
    arrays_ = std::move(metadata.arrays);
    facts_.version = "1";
    facts_.metadata = source_metadata_to_json(metadata.others);
    for (const auto& [key, text] : metadata.others) {
      if (key != kEmbeddedMetadata) continue;
      json::walk_value(text, options.chain.read.input.limits.max_json_depth,
                       [&](json::Value& value) {
                         if (value.kind() == json::Kind::string) facts_.embedded = value.string();
                       });
    }
    facts_.file_bytes = file->bytes().size();
    for (const Array& array : arrays_) {
      const std::uint64_t bytes = opened(array).file->bytes().size();
      facts_.file_bytes += bytes;
      facts_.tensors.push_back({.name = array.name,
                                .layout = {.dtype = array.dtype, .shape = array.shape},
                                .stored_bytes = array.shape.byte_length(array.dtype)});
    }
  }

  std::vector<std::filesystem::path> files() const override {
    std::vector<std::filesystem::path> files{folder_.path() / kMetadataFile};
    for (const Array& array : arrays_) {
      std::filesystem::path& file = files.emplace_back(folder_.path());
      const auto names = array_path(array.name);
      for (const std::string& name : *names) file /= name;
    }
    return files;
  }

  Tensor read(std::size_t i) const override {
    const Array& array = arrays_[i];
    const Opened from = opened(array);
    from.file->touch_whole(options_.chain.read.work.cancel);
    return Tensor::adopt({.dtype = array.dtype, .shape = array.shape},
                         from.file->bytes().subspan(from.begin), from.file);
  }

 private:
  struct Opened {
    std::shared_ptr<const io::FileBytes> file;
    std::uint64_t begin;
  };

  // The file of an array whose header says what the metadata say.
  Opened opened(const Array& array) const {
    stop_if_cancelled(options_.chain.read.work.cancel);
    const auto names = array_path(array.name);
    auto file = io::open_inner_file(folder_, *names, options_.chain.read.input.access);
    try {
      const std::uint64_t size = file->bytes().size();
      const ByteSpan start = file->touched(0, std::min<std::uint64_t>(size, kMostNpyHeader));
      const NpyHeader header = parse_npy_header(start, size);
      check_header(array, header);
      return {std::move(file), header.header_bytes};
    } catch (Error& error) {
      error.add_path(file->path().native());
      error.add_tensor(printable(array.name));
      throw;
    }
  }

  static void check_header(const Array& array, const NpyHeader& header) {
    const auto refuse = [](std::string field, std::string value, std::string bound) {
      throw FormatError(ErrorCode::inconsistent, "not what the folder's metadata say",
                        {.section = "npy header",
                         .field = std::move(field),
                         .value = std::move(value),
                         .bound = std::move(bound)});
    };
    // NumPy has no bf16: the original calls it two bytes of anything.
    const bool is_bf16 = array.dtype == DType::bf16 && header.type.opaque == 2;
    const bool is_plain = header.type.opaque == 0 && header.type.dtype == array.dtype;
    if ((!is_bf16 && !is_plain) || header.type.swapped)
      refuse("descr", printable(header.descr), std::string(orbax_dtype_name(array.dtype)));
    if (header.shape != array.shape)
      refuse("shape", header.shape.to_string(), array.shape.to_string());
    if (header.fortran_order && array.shape.rank() > 1) refuse("fortran_order", "True", "False");
  }

  io::Folder folder_;
  OpenOptions options_;
  std::vector<Array> arrays_;
};

}  // namespace
}  // namespace orbax

bool is_orbax_folder(const std::filesystem::path& path) {
  const auto folder = io::Folder::find(path);
  return folder && folder->facts(std::string(orbax::kMetadataFile)) &&
         folder->facts(std::string(orbax::kMarkerFile));
}

std::shared_ptr<const OpenedFile> open_orbax_file(const io::InputFile& input,
                                                  const OpenOptions& options) {
  return std::make_shared<orbax::OpenedOrbax>(input.path(), options);
}

}  // namespace thalia::formats
