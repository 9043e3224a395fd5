// What is known about the original program's deltas without opening their pickle:
// thalia/formats/v01.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/fail.h"
#include "format/delta.h"
#include "format/v01.h"
#include "formats/v01/file_start.h"
#include "formats/v01/header.h"
#include "formats/v01/wrapper.h"
#include "state/value/value_json.h"
#include "thalia/formats/v01.h"

namespace thalia {
namespace {

template <typename Header>
void take_header(ByteSpan file, V01DeltaInfo& info) {
  Header header;
  if (file.size() < sizeof header) {
    throw FormatError(ErrorCode::truncated, "no room for the header of a delta",
                      {.section = "header",
                       .offset = 0,
                       .value = fmt::format("{} bytes", file.size()),
                       .bound = fmt::format("at least {}", sizeof header)});
  }
  std::memcpy(&header, file.data(), sizeof header);
  info.delta_version = header.delta_version;
  info.base_hash = header.base_checkpoint_hash;
  info.base_step = header.base_step;
  info.current_step = header.current_step;
}

// The JSON text at the end of `bytes`, after its length. The pickle before it does not tell
// where it ends, and is never opened. So the text is searched from the end: a length field that
// says how far it is from the end, followed by a brace.
std::optional<Value> metadata_at_end(ByteSpan bytes, const ReadLimits& limits) {
  // Each attempt parses a text that may be long; a crafted file could offer very many.
  constexpr unsigned kMostAttempts = 16;
  constexpr std::size_t kLengthField = sizeof(format::le32);
  if (bytes.empty() || bytes.back() != std::byte{'}'}) return std::nullopt;
  const std::size_t most = std::min<std::uint64_t>(bytes.size(), limits.max_json_bytes);
  unsigned attempts = 0;
  for (std::size_t length = 2; length + kLengthField <= most && attempts < kMostAttempts;
       ++length) {
    const ByteSpan text = bytes.last(length);
    format::le32 claimed;
    std::memcpy(&claimed, text.data() - kLengthField, sizeof claimed);
    if (claimed != length || text.front() != std::byte{'{'}) continue;
    ++attempts;
    try {
      return state::parse_json_object({reinterpret_cast<const char*>(text.data()), length}, limits,
                                      json::Dialect::python);
    } catch (const FormatError&) {
      // Bytes of the pickle that look like a length: a longer text may be the right one.
    }
  }
  return std::nullopt;
}

formats::V01Contents contents_of(const io::InputFile& input, const ReadOptions& options) {
  const auto& file = input.whole(options.input.access, options.work.cancel);
  return formats::open_v01_wrapper(file->bytes(), file, options.input.limits);
}

}  // namespace

bool is_v01_delta(const std::filesystem::path& path, const ReadOptions&) {
  return with_path(path.native(),
                   [&] { return formats::begins_as_v01_delta(formats::read_file_start(path)); });
}

V01DeltaInfo read_v01_delta_info(const std::filesystem::path& path, const ReadOptions& options) {
  return formats::v01_delta_info(path, options);
}

V01DeltaInfo formats::v01_delta_info(const io::InputFile& input, const ReadOptions& options) {
  return with_path(input.path().native(), [&] {
    const auto contents = contents_of(input, options);
    if (!formats::begins_as_v01_delta(contents.bytes)) {
      throw FormatError(ErrorCode::bad_magic, "no delta of the original program",
                        {.section = "header", .field = "magic", .offset = 0});
    }
    V01DeltaInfo info;
    info.wrapper = contents.wrapper;
    // The early magic has four bytes: the version follows where the later one has its fifth.
    info.early_header = contents.bytes[4] != std::byte{format::kDeltaMagic[4]};
    if (info.early_header) {
      take_header<format::V01EarlyDeltaHeader>(contents.bytes, info);
    } else {
      take_header<format::DeltaHeader>(contents.bytes, info);
    }
    const ByteSpan body = contents.bytes.subspan(sizeof(format::DeltaHeader));
    info.metadata = metadata_at_end(body, options.input.limits);
    // Some files end in a checksum, which the last version of the original asks for.
    if (!info.metadata && !contents.wrapper && body.size() > formats::kV01TrailerBytes)
      info.metadata = metadata_at_end(body.first(body.size() - formats::kV01TrailerBytes),
                                      options.input.limits);
    return info;
  });
}

}  // namespace thalia
