// An open .entity file. Opening touches what comes before the blobs, and a call those blobs
// that it is about.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/fail.h"
#include "formats/loom/entity_prefix.h"
#include "formats/loom/load.h"
#include "thalia/formats/loom.h"

namespace thalia {
namespace loom = formats::loom;

struct EntityFile::Impl {
  std::shared_ptr<const io::FileBytes> file;  ///< null where the bytes are the caller's
  StoredBytes stored;                         ///< of the section
  std::uint64_t begin = 0;                    ///< of the section in the file
  std::string name;
  ReadLimits limits;
  loom::ParsedEntity parsed;
  std::vector<EntityBlob> blobs;

  ByteSpan touched(std::uint64_t offset, std::uint64_t length) const {
    if (file != nullptr) file->touch(begin + offset, length);
    return stored.bytes.subspan(offset, length);
  }
  StoredBytes blob(std::size_t i) const {
    const loom::BlobRecord& record = parsed.document.blobs[i];
    return {.bytes = touched(parsed.payload + record.offset, record.length), .owner = stored.owner};
  }
  void parse() {
    with_path(name, [&] {
      parsed = loom::parse_entity(
          stored.bytes.size(),
          [&](std::uint64_t offset, std::uint64_t length) { return touched(offset, length); },
          limits);
    });
    for (const loom::BlobRecord& record : parsed.document.blobs) {
      blobs.push_back({.path = record.path,
                       .dtype = record.dtype,
                       .scale = record.scale,
                       .native = record.native,
                       .offset = begin + parsed.payload + record.offset,
                       .length = record.length});
    }
  }
};

EntityFile EntityFile::open(const std::filesystem::path& path, const ReadOptions& options,
                            const EntitySection& section) {
  return EntityAccess::open(path, options, section);
}

EntityFile EntityAccess::open(const io::InputFile& input, const ReadOptions& options,
                              const EntitySection& section) {
  auto impl = std::make_shared<EntityFile::Impl>();
  impl->file = input.bytes(options.input.access);
  const std::uint64_t size = impl->file->bytes().size();
  if (section.offset > size || section.length.value_or(0) > size - section.offset) {
    fail_argument(ErrorCode::bad_argument, "section",
                  fmt::format("{} bytes at {}", section.length.value_or(0), section.offset),
                  fmt::format("a part of {} bytes", size));
  }
  impl->begin = section.offset;
  impl->stored = {.bytes = impl->file->bytes().subspan(
                      section.offset, section.length.value_or(size - section.offset)),
                  .owner = impl->file};
  impl->name = input.path().string();
  impl->limits = options.input.limits;
  impl->parse();
  EntityFile file;
  file.impl_ = std::move(impl);
  return file;
}

EntityFile EntityFile::from_bytes(StoredBytes bytes, std::string name, const ReadLimits& limits) {
  auto impl = std::make_shared<Impl>();
  impl->stored = std::move(bytes);
  impl->name = std::move(name);
  impl->limits = limits;
  impl->parse();
  EntityFile file;
  file.impl_ = std::move(impl);
  return file;
}

const LoomNetwork& EntityFile::header() const noexcept {
  return impl_->parsed.document.network;
}

const std::vector<EntityBlob>& EntityFile::blobs() const noexcept {
  return impl_->blobs;
}

std::uint64_t EntityFile::file_bytes() const noexcept {
  return impl_->stored.bytes.size();
}

std::uint64_t EntityFile::payload_offset() const noexcept {
  return impl_->begin + impl_->parsed.payload;
}

const std::vector<std::string>& EntityFile::unknown_keys() const noexcept {
  return impl_->parsed.document.unknown;
}

StoredBytes EntityFile::blob_bytes(std::size_t blob) const {
  if (blob >= impl_->blobs.size()) {
    throw UsageError(ErrorCode::not_found, "no such blob",
                     {.path = impl_->name,
                      .field = "blob",
                      .value = std::to_string(blob),
                      .bound = fmt::format("less than {}", impl_->blobs.size())});
  }
  return with_path(impl_->name, [&] { return impl_->blob(blob); });
}

LoomNetwork EntityFile::network(const std::optional<std::vector<std::uint64_t>>& layers) const {
  const auto wanted = [&](std::uint64_t layer) {
    return !layers || std::find(layers->begin(), layers->end(), layer) != layers->end();
  };
  const auto bytes_of = [&](std::size_t i) { return impl_->blob(i); };
  return with_path(impl_->name, [&] {
    LoomNetwork network = loom::load_entity(impl_->parsed.document, impl_->limits,
                                            impl_->stored.bytes.size(), wanted, bytes_of);
    // Only a whole network can be written again.
    if (network.transformer && !layers)
      network.transformer = loom::load_transformer(impl_->parsed.document, bytes_of, false);
    return network;
  });
}

LoomWeights EntityFile::layer_weights(std::uint64_t layer) const {
  const std::string path = fmt::format("layers.{}", layer);
  for (std::size_t i = 0; i < impl_->blobs.size(); ++i) {
    const EntityBlob& blob = impl_->blobs[i];
    if (blob.path != path) continue;
    LoomWeights weights{.dtype = parse_loom_dtype(blob.dtype), .scale = blob.scale};
    (blob.native ? weights.native : weights.master) = blob_bytes(i);
    return weights;
  }
  throw UsageError(ErrorCode::not_found, "the layer has no blob of weights",
                   {.path = impl_->name, .tensor = path});
}

LoomTransformer EntityFile::transformer() const {
  if (!impl_->parsed.document.network.transformer) {
    throw UsageError(ErrorCode::not_found, "the file is no transformer's",
                     {.path = impl_->name, .field = "transformer"});
  }
  return with_path(impl_->name, [&] {
    return loom::load_transformer(
        impl_->parsed.document, [&](std::size_t i) { return impl_->blob(i); }, true);
  });
}

}  // namespace thalia
