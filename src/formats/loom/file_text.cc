#include "formats/loom/file_text.h"

#include <fmt/format.h>

#include <cstring>
#include <unordered_map>

#include "base/fail.h"
#include "formats/loom/entity_prefix.h"
#include "formats/loom/spec_writer.h"
#include "formats/source/base64.h"

namespace thalia::formats::loom {
namespace {

// Text is handed on when there is so much of it.
constexpr std::size_t kTextPiece = 1 << 16;

}  // namespace

std::string entity_start(const LoomNetwork& network, std::vector<BlobRecord>& blobs,
                         bool short_sequences) {
  std::uint64_t offset = 0;
  for (BlobRecord& blob : blobs) {
    blob.offset = offset;
    offset += blob.length;
  }
  std::string text(sizeof(EntityPrefix), '\0');
  GoJson json(text, false);
  json.begin_object().key("format_version").number(std::int64_t{kEntityVersion});
  json.key("network");
  write_network(json, network, {.short_sequences = short_sequences, .weights = {}});
  if (network.transformer) {
    json.key("transformer");
    write_transformer(json, *network.transformer);
  }
  json.key("blobs");
  write_blobs(json, blobs, true);
  json.end_object();
  const std::uint64_t length = text.size() - sizeof(EntityPrefix);
  if (length > kMaxEntityHeader) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "a header longer than .entity files have",
                           {.section = "header",
                            .value = fmt::format("{} bytes", length),
                            .bound = std::to_string(kMaxEntityHeader)});
  }
  EntityPrefix prefix{};
  std::memcpy(prefix.magic, kEntityMagic.data(), sizeof(prefix.magic));
  prefix.version = kEntityVersion;
  prefix.header_length = length;
  std::memcpy(text.data(), &prefix, sizeof(prefix));
  return text;
}

void write_checkpoint(const LoomNetwork& network, const std::vector<BlobRecord>& blobs,
                      const EmitBlob& emit, const PieceSink& out) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < blobs.size(); ++i) places.emplace(blobs[i].path, i);
  std::string text;
  const auto hand_on = [&] {
    out(as_byte_span(text));
    text.clear();
  };
  const auto weights = [&](GoJson& json, const std::string& path, const LoomLayer&) {
    const auto found = places.find(path);
    if (found == places.end()) return;
    const BlobRecord& blob = blobs[found->second];
    if (blob.length > 0) {
      json.key("weights").begin_text();
      Base64Encoder encoder;
      emit(found->second, [&](ByteSpan piece) {
        for (; !piece.empty(); piece = piece.subspan(std::min(piece.size(), kTextPiece))) {
          encoder.put(piece.first(std::min(piece.size(), kTextPiece)), text);
          if (text.size() >= kTextPiece) hand_on();
        }
      });
      encoder.finish(text);
      json.end_text();
    }
    if (blob.native) json.key("native").boolean(true);
    if (blob.scale != 0) json.key("scale").number(blob.scale);
    if (text.size() >= kTextPiece) hand_on();
  };
  GoJson json(text, true);
  write_network(json, network, {.short_sequences = false, .weights = weights});
  hand_on();
}

}  // namespace thalia::formats::loom
