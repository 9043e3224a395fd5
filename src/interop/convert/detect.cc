// Tells formats apart by the first bytes, and by the name only where these say nothing. The order
// matters: formats with a magic come first, and safetensors, which has none, comes last. It is
// guessed from a plausible header length and the brace behind it.
#include <algorithm>
#include <array>
#include <cstring>

#include "container/file/delta_prefix.h"
#include "container/file/meta_file.h"
#include "container/wrap/seek_table.h"
#include "format/foreign_file.h"
#include "format/header.h"
#include "format/little_endian.h"
#include "interop/convert/conversions.h"
#include "interop/convert/formats.h"
#include "interop/mckp/format.h"
#include "interop/mst/parse.h"
#include "interop/safetensors/parse.h"
#include "interop/v01/file_start.h"
#include "interop/v01/header.h"
#include "interop/v01/wrapper.h"
#include "io/posix_file.h"
#include "thalia/error.h"
#include "thalia/paths.h"

namespace thalia {
namespace {

bool is_of_version_0_1(ByteSpan start) {
  return interop::begins_as_v01(start) || interop::begins_as_v01_delta(start);
}

// A broken frame is no answer here: the reader that the file goes to refuses it with a better
// message.
bool holds_version_0_1(const std::filesystem::path& path) {
  try {
    return is_of_version_0_1(interop::read_file_start(path));
  } catch (const FormatError&) {
    return false;
  }
}

bool begins_with(ByteSpan start, std::string_view magic) {
  return start.size() >= magic.size() && std::memcmp(start.data(), magic.data(), magic.size()) == 0;
}

// Saying what a file is helps more than "not a checkpoint".
void refuse_foreign(const std::filesystem::path& path, ByteSpan start) {
  const std::string_view what = format::foreign_file(start);
  if (!what.empty())
    throw UnsupportedError(ErrorCode::unsupported_feature, std::string(what),
                           {.path = path.string()});
}

// The content is a Python pickle, which nothing here opens.
void refuse_wrapped(const std::filesystem::path& path, ByteSpan start) {
  const auto wrapper = mithril_wrapper(start);
  if (!wrapper) return;
  throw UnsupportedError(
      ErrorCode::unsupported_feature,
      *wrapper == MithrilWrapper::dcp
          ? "a file of PyTorch's distributed checkpoints that mithril wrapped: a Python pickle"
          : "what torch.save wrote, wrapped by mithril: a Python pickle",
      {.path = path.string()});
}

std::optional<FileFormat> format_of_content(const std::filesystem::path& path) {
  const io::UniqueFd fd = io::open_for_reading(path);
  const std::uint64_t size = io::file_size(fd.get(), path);
  std::array<std::byte, format::kForeignStart> start{};
  const std::size_t known = std::min<std::uint64_t>(size, start.size());
  io::pread_all(fd.get(), 0, MutableByteSpan(start).first(known), path);

  if (is_of_version_0_1(ByteSpan(start).first(known))) return FileFormat::thalia_0_1;
  if (known >= sizeof format::kMagic &&
      std::memcmp(start.data(), format::kMagic, sizeof format::kMagic) == 0) {
    return FileFormat::thalia;
  }
  if (begins_with(ByteSpan(start).first(known), interop::kMckpMagic)) return FileFormat::mckp;
  if (begins_with(ByteSpan(start).first(known), interop::kMstMagic)) return FileFormat::mst;
  refuse_wrapped(path, ByteSpan(start).first(known));
  if (container::is_delta(ByteSpan(start).first(known))) return FileFormat::thalia;
  if (container::begins_side_file(ByteSpan(start).first(known))) return FileFormat::thalia;
  // A frame says only that there is something inside. A reader finds out what, unless it is 0.1.
  if (container::find_wrapper(fd.get(), path, size))
    return holds_version_0_1(path) ? FileFormat::thalia_0_1 : FileFormat::thalia;
  if (known > interop::kSafetensorsPrefix) {
    format::le64 header_length;
    std::memcpy(&header_length, start.data(), sizeof header_length);
    if (start[interop::kSafetensorsPrefix] == std::byte{'{'} &&
        header_length <= size - interop::kSafetensorsPrefix)
      return FileFormat::safetensors;
  }
  refuse_foreign(path, ByteSpan(start).first(known));
  return std::nullopt;
}

}  // namespace

std::optional<FileFormat> detect_format(const std::filesystem::path& path) {
  // Where there is no file yet, or its content says nothing, the name has to do.
  if (is_file(path)) {
    if (const auto format = format_of_content(path)) return format;
  }
  return interop::format_of_extension(path.extension().string());
}

namespace interop {

FileFormat input_format(const std::filesystem::path& input) {
  if (const auto format = detect_format(input)) return *format;
  static_cast<void>(io::open_for_reading(input));  // that there is none is what is to be said first
  throw FormatError(ErrorCode::bad_magic, "not a file of a format that is known",
                    {.path = input.string()});
}

}  // namespace interop

}  // namespace thalia
