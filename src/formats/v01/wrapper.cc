// A 0.1 file is a body with a SHA-256 after it, and perhaps one zstd or lz4 frame around it. In
// older files the checksum is inside the frame, in later ones after it. Both are read: 32 bytes
// after the frame are the checksum, of the frame; nothing after it means that the last 32 bytes
// inside are the checksum, of the body.
#include "formats/v01/wrapper.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/fail.h"
#include "codec/chunk/codec.h"
#include "codec/frame/lz4_frame.h"
#include "codec/frame/zstd_frame.h"
#include "container/wrap/seek_table.h"
#include "container/wrap/unwrap.h"
#include "format/delta.h"
#include "format/overlay.h"
#include "format/v01.h"
#include "formats/v01/header.h"
#include "integrity/sha256.h"
#include "thalia/tensor.h"
#include "thalia/text.h"

namespace thalia::formats {
namespace {

void append_checksum(std::vector<std::byte>& bytes) {
  const Digest256 digest = integrity::sha256(bytes);
  const ByteSpan trailer = as_byte_span(digest.bytes);
  bytes.insert(bytes.end(), trailer.begin(), trailer.end());
}

}  // namespace

V01Contents open_v01_wrapper(ByteSpan file, std::shared_ptr<const void> owner,
                             const ReadLimits& limits) {
  const auto front = container::find_wrapper(file);
  if (!front) return {file, std::move(owner), std::nullopt, {}, {}, nullptr};
  file = file.subspan(front->offset);
  // Decodes no more than a header first: a frame of something else is refused at once.
  const auto start =
      container::start_of_front_frame(file, front->codec, sizeof(format::V01FileHeader));
  if (!begins_as_v01_delta(start)) require_v01_start(start);
  auto unwrapped =
      std::make_shared<container::Unwrapped>(container::unwrap_front_frame(file, limits));
  V01Contents contents;
  contents.bytes = unwrapped->bytes;
  contents.wrapper = front->codec;
  contents.frame = unwrapped->frame;
  contents.trailing = unwrapped->trailing;
  // Decoded bytes own themselves; the frame and what is after it still lie in the file.
  contents.owner = std::move(unwrapped);
  contents.file_owner = std::move(owner);
  return contents;
}

V01Body v01_body(const V01Contents& contents) {
  const bool wrapped = contents.wrapper.has_value();
  if (wrapped && contents.trailing.size() == kV01TrailerBytes)
    return {contents.bytes, false, contents.frame, contents.trailing};
  if (!contents.trailing.empty()) {
    throw FormatError(ErrorCode::inconsistent, "what follows the frame is no checksum",
                      {.section = "file",
                       .offset = contents.frame.size(),
                       .value = fmt::format("{} bytes", contents.trailing.size()),
                       .bound = fmt::format("none or {}", kV01TrailerBytes)});
  }
  if (contents.bytes.size() < kV01TrailerBytes) {
    throw FormatError(ErrorCode::truncated, "no room for the checksum",
                      {.section = "file",
                       .value = fmt::format("{} bytes", contents.bytes.size()),
                       .bound = fmt::format("at least {}", kV01TrailerBytes)});
  }
  const ByteSpan body = contents.bytes.first(contents.bytes.size() - kV01TrailerBytes);
  return {body, wrapped, body, contents.bytes.last(kV01TrailerBytes)};
}

V01Body verified_v01_body(const V01Contents& contents) {
  const V01Body body = v01_body(contents);
  const Digest256 digest = integrity::sha256(body.covered);
  const auto& stored = format::overlay<Digest256>(body.checksum, 0, "checksum");
  if (stored == digest) return body;
  throw IntegrityError(
      ErrorCode::checksum_mismatch, "the file is damaged",
      {.section = "checksum",
       .field = "sha256",
       .offset = body.covered.size(),
       .value = hex(stored.bytes),
       .bound = fmt::format("{}, of the {} bytes before", hex(digest.bytes), body.covered.size())});
}

bool begins_as_v01_delta(ByteSpan contents) noexcept {
  // The version follows a magic of five bytes, or of the first four of them.
  // Longest first; version 1 after it tells a magic from other bytes that begin alike.
  for (const std::size_t magic : {sizeof format::kDeltaMagic, sizeof format::kDeltaMagic - 1}) {
    format::le32 version;
    if (contents.size() < magic + sizeof version) continue;
    std::memcpy(&version, contents.data() + magic, sizeof version);
    if (std::memcmp(contents.data(), format::kDeltaMagic, magic) == 0 && version == 1) return true;
  }
  return false;
}

void refuse_v01_delta(std::string path) {
  throw UnsupportedError(
      ErrorCode::unsupported_version,
      "a delta of the original program: its body is a Python pickle, which is "
      "never opened; load it with that program and save the brain without a base",
      {.path = std::move(path),
       .section = "delta",
       .field = "delta_version",
       .value = "1",
       .bound = std::to_string(format::kDeltaVersion)});
}

std::optional<V01Frame> wanted_v01_frame(const V01WriteOptions& options) {
  const Codec codec = options.compression.codec.value_or(Codec::none);
  if (codec != Codec::none && codec != Codec::zstd && codec != Codec::lz4) {
    fail_argument(ErrorCode::bad_argument, "codec", std::string(codec_name(codec)),
                  "none, zstd or lz4");
  }
  const int level = codec::checked_level(codec, options.compression.level);
  if (codec == Codec::none) return std::nullopt;
  return V01Frame{codec, level};
}

std::vector<std::byte> wrap_v01_body(std::vector<std::byte> body,
                                     const std::optional<V01Frame>& frame, bool checksum_inside) {
  if (!frame) {
    append_checksum(body);
    return body;
  }
  if (checksum_inside) append_checksum(body);
  std::vector<std::byte> file;
  if (frame->codec == Codec::zstd) {
    codec::zstd_encode(frame->level, body, file);
  } else {
    // Blocks of 64 KiB and no checksum, as in the original's frames.
    codec::lz4_encode(frame->level, body, file, /*with_checksum=*/false,
                      codec::Lz4BlockSize::kib64);
  }
  if (!checksum_inside) append_checksum(file);
  return file;
}

}  // namespace thalia::formats
