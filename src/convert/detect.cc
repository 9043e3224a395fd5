// Tells formats apart by their first bytes, and by the name only where these say nothing. The order
// matters: formats with a magic come first; then archives and texts, which have to be looked into;
// then those without any, which are guessed from what they begin with: safetensors from a plausible
// length and the brace after it, ONNX from the field that its models begin with.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "container/file/delta_prefix.h"
#include "container/file/meta_file.h"
#include "container/wrap/packed.h"
#include "container/wrap/seek_table.h"
#include "convert/conversions.h"
#include "convert/formats.h"
#include "format/foreign_file.h"
#include "format/little_endian.h"
#include "formats/mckp/format.h"
#include "formats/mst/parse.h"
#include "formats/orbax/opened.h"
#include "formats/safetensors/parse.h"
#include "formats/safetensors/place.h"
#include "formats/v01/file_start.h"
#include "formats/v01/header.h"
#include "formats/v01/wrapper.h"
#include "formats/zip/directory.h"
#include "io/file/input_file.h"
#include "io/file/posix_file.h"
#include "io/folder/folder.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/formats/safetensors.h"
#include "thalia/tensor.h"

namespace thalia {
namespace {

using Path = std::filesystem::path;
using namespace std::string_view_literals;

// Where nothing is expected before these bytes.
struct Magic {
  std::string_view bytes;
  FileFormat format;
};
constexpr Magic kMagics[] = {
    {formats::kMckpMagic, FileFormat::mckp}, {formats::kMstMagic, FileFormat::mst},
    {"GPTRSCHK"sv, FileFormat::gptrs},       {"GPTRSTEN"sv, FileFormat::gptrsten},
    {"ENTITY\0\0"sv, FileFormat::entity},    {"GGUF"sv, FileFormat::gguf},
    {"\x93NUMPY"sv, FileFormat::npy},
};
constexpr std::string_view kZipMagic = "PK\3\4";
constexpr std::string_view kEmptyZipMagic = "PK\5\6";
// The bytes of a JSON text that are read to see what it is.
constexpr std::size_t kTextStart = 64 << 10;

bool begins_with(ByteSpan start, std::string_view magic) {
  return start.size() >= magic.size() && std::memcmp(start.data(), magic.data(), magic.size()) == 0;
}

bool is_of_version_0_1(ByteSpan start) {
  return formats::begins_as_v01(start) || formats::begins_as_v01_delta(start);
}

bool begins_as_thalia(ByteSpan start) {
  return begins_with(start, "THAL") || container::is_delta(start) ||
         container::begins_packed(start) || container::begins_side_file(start);
}

[[noreturn]] void refuse(const Path& path, std::string what) {
  throw UnsupportedError(ErrorCode::unsupported_feature, std::move(what), {.path = path.string()});
}

// Saying what a file is helps more than "not a checkpoint".
void refuse_foreign(const Path& path, ByteSpan start) {
  const std::string_view what = format::foreign_file(start);
  if (!what.empty()) refuse(path, std::string(what));
}

// The content is a Python pickle, which nothing here opens.
void refuse_wrapped(const Path& path, ByteSpan start) {
  const auto wrapper = mithril_wrapper(start);
  if (!wrapper) return;
  refuse(path, *wrapper == MithrilWrapper::dcp
                   ? "a file of PyTorch's distributed checkpoints that mithril wrapped: a Python "
                     "pickle"
                   : "what torch.save wrote, wrapped by mithril: a Python pickle");
}

// Archives one after the other, a tensor or an object each, without a directory of them all.
constexpr std::string_view kDistributedPart =
    "a part of a distributed checkpoint of PyTorch, whose index is the file .metadata beside it; "
    "load the folder with torch.distributed.checkpoint";

FileFormat format_in_zip(const io::InputFile& input, Access access) {
  const Path& path = input.path();
  if (path.extension() == ".distcp") refuse(path, std::string(kDistributedPart));
  const auto directory = formats::ZipDirectory::parse(input.whole(access, {})->bytes());
  // An archive without members is what numpy.savez() writes of no arrays. Beside arrays anything
  // may be there: it is named as lost.
  bool arrays = directory.members().empty() ||
                formats::format_of_name(path) == std::optional(FileFormat::npz);
  for (const formats::ZipMember& member : directory.members()) {
    if (member.name == "data.pkl" || member.name.ends_with("/data.pkl")) return FileFormat::pt;
    arrays = arrays || member.name.ends_with(".npy");
  }
  if (arrays) return FileFormat::npz;
  refuse(path, "a zip archive of other things than PyTorch's or NumPy's; unpack it first");
}

// mithril's quantized tensors begin with how many codes there are: with five bytes of a count and
// three of zeros.
bool begins_with_count(ByteSpan start) {
  if (start.size() < sizeof(format::le64)) return false;
  format::le64 count;
  std::memcpy(&count, start.data(), sizeof count);
  return count < (std::uint64_t{1} << 40);
}

// The format of what a frame holds, for formats whose files have no frames, but which people put
// into one. Some begin with what a count may be; the text of the header has to tell safetensors
// from codes.
std::optional<FileFormat> unframed_format(ByteSpan start) {
  for (const Magic& magic : kMagics)
    if (begins_with(start, magic.bytes)) return magic.format;
  if (begins_with(start, kZipMagic)) return FileFormat::npz;
  if (start.size() < formats::kSafetensorsPrefix + 2) return std::nullopt;
  const ByteSpan text = start.subspan(formats::kSafetensorsPrefix);
  const bool is_text = std::ranges::all_of(
      text, [](std::byte c) { return c >= std::byte{' '} && c < std::byte{127}; });
  if (is_text && begins_with(text, "{\"")) return FileFormat::safetensors;
  return std::nullopt;
}

// What a frame holds. A broken frame is no answer here: the reader that the file goes to refuses it
// with a better message.
FileFormat format_in_frame(const Path& path, int fd, Codec codec) {
  try {
    const std::vector<std::byte> start = formats::read_file_start(fd, path);
    if (is_of_version_0_1(start)) return FileFormat::thalia_0_1;
    if (begins_as_thalia(start)) return FileFormat::thalia;
    if (const auto format = unframed_format(start)) {
      refuse(path,
             fmt::format("{} in a frame of {}; unpack it first",
                         *format == FileFormat::npz ? "a zip archive" : file_format_words(*format),
                         codec_name(codec)));
    }
    if (codec == Codec::zstd && begins_with_count(start)) return FileFormat::mithril_quantized;
  } catch (const FormatError&) {
  }
  return FileFormat::thalia;
}

// The text after the JSON string that `text` begins with, and that string as it is escaped.
std::optional<std::string_view> take_json_string(std::string_view& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n{:");
  if (begin == std::string_view::npos || text[begin] != '"') return std::nullopt;
  std::size_t end = begin + 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  if (end >= text.size()) return std::nullopt;
  const std::string_view found = text.substr(begin + 1, end - begin - 1);
  text.remove_prefix(end + 1);
  return found;
}

// Whether the metadata are those of one of slime's deltas. A tensor may have the name
// of that key, and then the value is the name of a file.
bool is_slime_index(std::string_view text) {
  constexpr std::string_view kKey = "\"delta_encoding\"";
  for (std::size_t at = text.find(kKey); at != std::string_view::npos;
       at = text.find(kKey, at + 1)) {
    std::string_view rest = text.substr(at + kKey.size());
    const auto value = take_json_string(rest);
    if (value && !value->ends_with(".safetensors")) return true;
  }
  return false;
}

// By the first file that it names; if that is not in what was read of it, by its own name.
FileFormat format_of_index(const Path& path, std::string_view weight_map) {
  take_json_string(weight_map);  // "weight_map"
  take_json_string(weight_map);  // the first tensor
  const auto file = take_json_string(weight_map);
  if (file ? file->ends_with(".thalia")
           : formats::format_of_name(path) == std::optional(FileFormat::thalia_shards))
    return FileFormat::thalia_shards;
  return FileFormat::safetensors;
}

// Loom's networks and the indexes of models are objects, whose members tell which of them it is.
std::optional<FileFormat> format_of_text(const Path& path, int fd, std::uint64_t size) {
  std::string text(std::min<std::uint64_t>(size, kTextStart), '\0');
  io::pread_all(fd, 0, std::as_writable_bytes(std::span(text)), path);
  if (const auto map = text.find("\"weight_map\""); map != std::string::npos) {
    if (is_slime_index(text)) return FileFormat::slime;
    return format_of_index(path, std::string_view(text).substr(map));
  }
  if (text.find("\"layers_per_cell\"") != std::string::npos) return FileFormat::loom_json;
  // Many things are called .json, and Loom reads a network of no layers in each.
  const bool is_by_name = formats::format_of_name(path) == std::optional(FileFormat::loom_json);
  if (is_by_name && text.find("\"network\"") == std::string::npos &&
      text.find("\"blobs\"") == std::string::npos) {
    refuse(path, "a JSON text, but neither the index of a model nor a network of Loom");
  }
  return std::nullopt;
}

bool is_safetensors(ByteSpan start, std::uint64_t size) {
  if (start.size() <= formats::kSafetensorsPrefix) return false;
  format::le64 header_length;
  std::memcpy(&header_length, start.data(), sizeof header_length);
  return start[formats::kSafetensorsPrefix] == std::byte{'{'} &&
         header_length <= size - formats::kSafetensorsPrefix;
}

// The texts of a header come first, and a quotation mark in one of them would be escaped.
bool is_trl_delta(int fd, const Path& path, std::uint64_t size) {
  constexpr std::string_view kSparse = "\"sparse\"";
  std::string text(std::min<std::uint64_t>(size, kTextStart), '\0');
  io::pread_all(fd, 0, std::as_writable_bytes(std::span(text)), path);
  const std::string_view header = std::string_view(text).substr(formats::kSafetensorsPrefix);
  const std::size_t key = header.find(kSparse);
  if (key == std::string_view::npos || !header.starts_with("{\"__metadata__\"") ||
      header.find("\"sparse_weight_patch\"") == std::string_view::npos)
    return false;
  std::string_view rest = header.substr(key + kSparse.size());
  return take_json_string(rest) == "True";
}

std::vector<std::byte> first_bytes(int fd, const Path& path, std::uint64_t size) {
  std::vector<std::byte> start(std::min<std::uint64_t>(size, format::kForeignStart));
  io::pread_all(fd, 0, start, path);
  return start;
}

// The format of a folder that is one checkpoint: find_model().
FileFormat format_of_folder(const Path& path) {
  const bool is_trl =
      !formats::is_orbax_folder(path) && formats::safetensors::is_folder_of_patches(path);
  return is_trl ? FileFormat::trl : FileFormat::orbax;
}

std::optional<FileFormat> format_of_content(const io::InputFile& input, Access access) {
  const Path& path = input.path();
  const int fd = input.bytes(access)->fd();
  const std::uint64_t size = io::file_size(fd, path);
  const std::vector<std::byte> start = first_bytes(fd, path, size);

  if (is_of_version_0_1(start)) return FileFormat::thalia_0_1;
  if (begins_as_thalia(start)) return FileFormat::thalia;
  for (const Magic& magic : kMagics)
    if (begins_with(start, magic.bytes)) return magic.format;
  refuse_wrapped(path, start);
  // First: the length of a header may be the bytes of zip's magic, and no archive has a brace
  // there.
  if (is_safetensors(start, size))
    return is_trl_delta(fd, path, size) ? FileFormat::trl : FileFormat::safetensors;
  if (begins_with(start, kZipMagic) || begins_with(start, kEmptyZipMagic))
    return with_path(path.native(), [&] { return format_in_zip(input, access); });
  if (const auto front = container::find_wrapper(fd, path, size))
    return format_in_frame(path, fd, front->codec);
  const auto first = std::ranges::find_if(
      start, [](std::byte byte) { return !std::strchr(" \t\r\n", static_cast<char>(byte)); });
  if (first != start.end() && *first == std::byte{'{'}) {
    if (const auto format = format_of_text(path, fd, size)) return format;
  }
  if (format::begins_as_onnx(start)) return FileFormat::onnx;
  // One that is cut: its reader says so, where the name leads there.
  if (!format::begins_as_safetensors(start)) refuse_foreign(path, start);
  return std::nullopt;
}

}  // namespace

std::optional<FileFormat> detect_format(const std::filesystem::path& path, Access access) {
  // If there is no file yet, or its content says nothing, the name has to do.
  if (is_file(path)) {
    if (const auto format = format_of_content(path, access)) return format;
  } else if (io::Folder::find(path)) {
    try {
      const Path model = find_model(path);
      return model == path ? format_of_folder(path) : detect_format(model, access);
    } catch (const IoError& error) {
      if (error.errno_value() != ENOENT) throw;
      // It holds no model; one may be written there.
    } catch (const UnsupportedError&) {
      // A checkpoint of several ranks: the same, and who opens it is told.
    } catch (const UsageError&) {
      return FileFormat::safetensors;  // several, or parts of one: who opens it is told
    }
  }
  return formats::format_of_name(path);
}

FileFormat input_format(const std::filesystem::path& path, Access access) {
  return formats::format_of(find_model(path), access);
}

std::optional<FileFormat> formats::detect(const io::InputFile& input, Access access) {
  std::optional<FileFormat> format;
  // That there is no file, who opens it says.
  if (is_file(input.path())) {
    format = format_of_content(input, access);
  } else if (io::Folder::find(input.path())) {
    return format_of_folder(input.path());
  }
  return format ? format : format_of_name(input.path());
}

FileFormat formats::format_of(const io::InputFile& input, Access access) {
  if (const auto format = detect(input, access)) return *format;
  const Path& path = input.path();
  const int fd = input.bytes(access)->fd();
  const std::vector<std::byte> start = first_bytes(fd, path, io::file_size(fd, path));
  throw FormatError(ErrorCode::bad_magic,
                    start.empty() ? std::string(format::kEmptyFile)
                    : format::is_plain_text(start)
                        ? "not a checkpoint of a format that is known: a text"
                        : "not a checkpoint of a format that is known",
                    {.path = path.string()});
}

}  // namespace thalia
