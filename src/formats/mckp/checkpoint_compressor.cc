// Named checkpoints in a storage, each as a delta against an earlier one where the caller names
// one. Impl is shared by all copies of a compressor and by calls that run in the background. The
// configuration and the storage never change, the two caches have their own locks, and no other
// state exists: so any number of threads may call.
//
// A cache is never trusted for content. Kept tensors serve as the base of a delta only if their
// content hash is that of the file which is in the storage now, no matter who replaced it
// meanwhile.
#include "thalia/formats/compressor.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "base/hex.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "formats/mckp/bit_shares.h"
#include "formats/mckp/content_hash_list.h"
#include "formats/mckp/lru_cache.h"
#include "io/memory/allocation_limit.h"
#include "io/memory/huge_pages.h"
#include "state/value/value_json.h"

namespace thalia {
namespace {

constexpr std::string_view kGeneration = "lossy_generation";

using Tensors = std::map<std::string, Tensor, std::less<>>;

// A checkpoint in memory that deltas are taken against: bytes of its own, which nobody changes.
struct KeptCheckpoint {
  Digest256 hash;
  std::shared_ptr<const Tensors> tensors;
};

// A checkpoint that a delta is taken against, from the storage or from the cache.
struct Base {
  MckpPrevious previous;
  MckpChain chain;
  std::shared_ptr<const Tensors> kept;  ///< null if it has to be read

  std::optional<Tensor> find(const std::string& name, const Tensor& next) const {
    if (kept) {
      const auto found = kept->find(name);
      return found == kept->end() ? std::nullopt : std::optional(found->second);
    }
    // What cannot be a base is not worth reading.
    const MckpTensor* const tensor = chain.newest().find(name);
    if (tensor == nullptr || tensor->layout() != next.layout()) return std::nullopt;
    return chain.read(name);
  }
};

std::uint64_t generation_of(const Value& metadata) {
  const Value* const found = metadata.find(kGeneration);
  if (found == nullptr || found->kind() != Value::Kind::number) return 0;
  try {
    return found->as_uint64();
  } catch (const UsageError&) {
    return 0;  // somebody else's member of that name
  }
}

// What the compressed file takes at most, unless its metadata are very long: tensors that do not
// shrink, what codecs add to them, and what the header says of each.
std::uint64_t most_bytes(const Checkpoint& checkpoint) {
  constexpr std::uint64_t kHeader = 4096;
  std::uint64_t most = kHeader;
  for (const auto& [name, tensor] : checkpoint.tensors)
    most += tensor.bytes().size() + tensor.bytes().size() / 1024 + 4 * name.size() + kHeader;
  return most;
}

Digest256 hash_of(const MckpFile& file, const std::vector<Digest256>& digests) {
  const std::vector<MckpTensor>& tensors = file.tensors();
  formats::ContentHashList list(file.header().content_digests);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    list.add(tensors[i].name, tensors[i].layout(), tensors[i].original_size, digests[i]);
  }
  return list.finish();
}

void take(Snapshot snapshot, Checkpoint& checkpoint) {
  if (snapshot == Snapshot::borrowed) return;
  for (auto& [name, tensor] : checkpoint.tensors) tensor = tensor.owned();
}

}  // namespace

struct CheckpointCompressor::Impl {
  Impl(CompressorConfig wanted, std::shared_ptr<StorageBackend> where)
      : config(std::move(wanted)),
        storage(std::move(where)),
        signatures(config.cached_signatures),
        kept(config.cached_bytes) {}

  MckpReadOptions read_options() const {
    // The header is checked by opening and each tensor by reading it, so no pass over whole files
    // is made.
    return {.chain = {.read = {.input = {.limits = config.input.limits}, .work = config.work}}};
  }
  MckpWriteOptions write_options(const Checkpoint& checkpoint,
                                 const std::optional<Base>& base) const;
  CheckpointSignature signature_of(const MckpChain& chain) const;
  std::optional<Base> open_base(std::string_view key, std::string_view target);
  CheckpointMeta write(const Checkpoint& checkpoint, const std::optional<Base>& base,
                       MckpWriter writer) const;
  Checkpoint restore(const MckpChain& chain, bool check) const;
  void keep(std::string_view key, const Checkpoint& checkpoint, const CheckpointMeta& meta);

  CompressorConfig config;
  std::shared_ptr<StorageBackend> storage;
  formats::LruCache<CheckpointSignature> signatures;
  formats::LruCache<KeptCheckpoint> kept;
};

MckpWriteOptions CheckpointCompressor::Impl::write_options(const Checkpoint& checkpoint,
                                                           const std::optional<Base>& base) const {
  MckpWriteOptions options{.compression = config.compression,
                           .byte_grouping = config.byte_grouping,
                           .header = {.training_step = checkpoint.training_step,
                                      .content_digests = config.content_digests},
                           .work = config.work};
  if (config.quantization) {
    options.quantization = MckpQuantizationOptions{.bits = config.quantization->bits,
                                                   .exclude = config.quantization->exclude};
    if (config.quantization->sensitivity) {
      options.quantization->bits_of = formats::bits_by_sensitivity(
          checkpoint, *options.quantization, config.quantization->sensitivity, config.work.threads);
    }
  }
  options.low_rank = config.low_rank_deltas;
  // Products are of the generation after this one.
  if (config.low_rank_deltas) options.header.metadata = to_json(checkpoint.metadata);
  if (base) options.header.previous = base->previous;
  return options;
}

CheckpointSignature CheckpointCompressor::Impl::signature_of(const MckpChain& chain) const {
  const MckpHeader& header = chain.newest().header();
  CheckpointSignature signature{
      .hash = {}, .size = header.original_size, .step = header.training_step};
  if (header.content_hash) {
    signature.hash = *header.content_hash;
    return signature;
  }
  const std::vector<MckpTensor>& tensors = chain.newest().tensors();
  std::vector<Digest256> digests(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i)
    digests[i] = formats::tensor_digest(header.content_digests, chain.read(tensors[i].name).bytes(),
                                        config.work.threads);
  signature.hash = hash_of(chain.newest(), digests);
  return signature;
}

std::optional<Base> CheckpointCompressor::Impl::open_base(std::string_view key,
                                                          std::string_view target) {
  if (key.empty() || !config.delta_enabled) return std::nullopt;
  if (!storage->exists(key)) {
    throw MissingBaseError(std::string(key), {.field = "previous_key", .value = printable(key)});
  }
  MckpChain chain = MckpChain::open(*storage, key, read_options());
  // The keys of a chain are those in the headers: the first file's is the one it was opened by.
  std::string at(key);
  for (const MckpFile& file : chain.files()) {
    if (at == target) {
      fail_argument(ErrorCode::bad_argument, "key", printable(target),
                    "a key that its previous checkpoints do not have");
    }
    if (file.header().previous) at = file.header().previous->key;
  }
  // A chain of n files has n - 1 deltas; this one would be the next.
  // Too long: this one is stored whole and begins a new chain.
  if (chain.files().size() > config.max_chain) return std::nullopt;
  const CheckpointSignature signature = signature_of(chain);
  signatures.put(key, signature, 1);
  Base base{.previous = {.key = std::string(key), .content_hash = signature.hash},
            .chain = chain,
            .kept = nullptr};
  const auto known = kept.find(key);
  if (known && known->hash == signature.hash) base.kept = known->tensors;
  return base;
}

CheckpointMeta CheckpointCompressor::Impl::write(const Checkpoint& checkpoint,
                                                 const std::optional<Base>& base,
                                                 MckpWriter writer) const {
  // Before the tensors are compressed, which takes long.
  if (!checkpoint.metadata.is_object()) {
    fail_argument(ErrorCode::bad_argument, "metadata",
                  std::string(kind_name(checkpoint.metadata.kind())), "object");
  }
  for (const auto& [name, tensor] : checkpoint.tensors)
    writer.add(name, tensor, base ? base->find(name, tensor) : std::nullopt);

  Value metadata = checkpoint.metadata;
  std::uint64_t generation = generation_of(metadata);
  // Each lossy generation adds an error, so they are counted. This is known only after all
  // tensors were planned, and before anything is put in place.
  if (writer.is_lossy()) {
    if (config.quantization && generation >= config.quantization->max_generations) {
      throw UsageError(ErrorCode::wrong_state,
                       "the checkpoint was quantized and restored too often",
                       {.field = std::string(kGeneration),
                        .value = std::to_string(generation),
                        .bound = std::to_string(config.quantization->max_generations)});
    }
    metadata[kGeneration] = ++generation;
  }
  writer.set_metadata(to_json(metadata));
  const MckpWriteResult result = writer.commit();
  CheckpointMeta meta{result};
  meta.signature = {
      .hash = result.content_hash, .size = result.original_size, .step = checkpoint.training_step};
  meta.compressed_size = result.file_bytes;
  meta.lossy_generation = generation;
  // A file none of whose tensors fit its base names none.
  if (result.delta_tensors != 0) meta.previous_key = base->previous.key;
  return meta;
}

Checkpoint CheckpointCompressor::Impl::restore(const MckpChain& chain, bool check) const {
  const std::vector<MckpTensor>& tensors = chain.newest().tensors();
  const MckpHeader& header = chain.newest().header();
  io::MemoryBudget(config.input.limits, chain.newest().file_bytes())
      .take("header", header.original_size);
  check = check && header.content_hash.has_value();
  std::vector<Tensor> restored(tensors.size());
  std::vector<Digest256> digests(tensors.size());
  // Large tensors first and on more threads, so that all threads end at about the same time.
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t i) { return tensors[i].original_size; });
  const unsigned threads = resolve_threads(config.work.threads);
  parallel_for(tensors.size(), threads, [&](std::size_t n) {
    const MckpTensor& tensor = tensors[order[n]];
    const double part = static_cast<double>(tensor.original_size) /
                        static_cast<double>(std::max<std::uint64_t>(header.original_size, 1));
    Tensor& to = restored[order[n]];
    const unsigned own = std::max(1u, static_cast<unsigned>(std::ceil(part * threads)));
    to = chain.read(tensor.name, own);
    if (check) digests[order[n]] = formats::tensor_digest(header.content_digests, to.bytes(), own);
  });
  if (check) {
    const Digest256 actual = hash_of(chain.newest(), digests);
    if (actual != *header.content_hash) {
      throw IntegrityError(ErrorCode::checksum_mismatch, "the content hash",
                           {.section = "header",
                            .field = "content_hash",
                            .value = hex(actual.bytes),
                            .bound = hex(header.content_hash->bytes)});
    }
  }
  Checkpoint checkpoint{.tensors = {},
                        .metadata = state::parse_json_object(header.metadata, config.input.limits),
                        .training_step = header.training_step};
  for (std::size_t i = 0; i < tensors.size(); ++i)
    checkpoint.tensors.emplace(tensors[i].name, std::move(restored[i]));
  return checkpoint;
}

// Keeps copies. The caller may change the memory that it lent, and a delta taken against changed
// bytes could never be undone.
void CheckpointCompressor::Impl::keep(std::string_view key, const Checkpoint& checkpoint,
                                      const CheckpointMeta& meta) {
  signatures.put(key, meta.signature, 1);
  kept.erase(key);
  // Lossy tensors come back as something else than what was given, so these are no base.
  const bool is_lossy = meta.quantized_tensors != 0 || meta.low_rank_tensors != 0;
  if (meta.original_size > config.cached_bytes || is_lossy) return;
  auto copies = std::make_shared<Tensors>();
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const ByteSpan lent = tensor.bytes();
    copies->emplace(name, Tensor::filled(tensor.layout(), [&](MutableByteSpan own) {
                      std::ranges::copy(lent, own.begin());
                    }));
  }
  kept.put(key, {.hash = meta.signature.hash, .tensors = std::move(copies)}, meta.original_size);
}

CheckpointCompressor::CheckpointCompressor(CompressorConfig config,
                                           std::shared_ptr<StorageBackend> storage) {
  if (!storage) storage = std::make_shared<MemoryStorage>();
  impl_ = std::make_shared<Impl>(std::move(config), std::move(storage));
  // A writer checks what concerns it.
  MckpWriteOptions options = impl_->write_options({}, std::nullopt);
  options.work.threads = 1;
  // A writer that writes nothing checks the options now rather than at the first save.
  const MckpWriter checked(ByteSink([](ByteSpan) {}), options);
}

const CompressorConfig& CheckpointCompressor::config() const noexcept {
  return impl_->config;
}

StorageBackend& CheckpointCompressor::storage() const noexcept {
  return *impl_->storage;
}

CompressedCheckpoint CheckpointCompressor::compress(const Checkpoint& checkpoint,
                                                    std::string_view previous_key) const {
  const std::optional<Base> base = impl_->open_base(previous_key, {});
  CompressedCheckpoint compressed;
  // Reserved memory that is never written to takes no pages, so a generous guess costs nothing.
  compressed.bytes.reserve(most_bytes(checkpoint));
  io::prefer_huge_pages({compressed.bytes.data(), compressed.bytes.capacity()});
  compressed.meta = impl_->write(
      checkpoint, base, MckpWriter(compressed.bytes, impl_->write_options(checkpoint, base)));
  if (compressed.bytes.size() < compressed.bytes.capacity() / 2) compressed.bytes.shrink_to_fit();
  return compressed;
}

Checkpoint CheckpointCompressor::decompress(const CompressedCheckpoint& compressed) const {
  const MckpReadOptions options = impl_->read_options();
  const MckpFile file =
      MckpFile::from_bytes({.bytes = compressed.bytes, .owner = nullptr}, {}, options);
  return impl_->restore(MckpChain::open(*impl_->storage, file, options),
                        impl_->config.verify_content);
}

CheckpointMeta CheckpointCompressor::save(const Checkpoint& checkpoint, std::string_view key,
                                          std::string_view previous_key) const {
  check_storage_key(key);
  const std::optional<Base> base = impl_->open_base(previous_key, key);
  CheckpointMeta meta;
  impl_->storage->put_stream(key, [&](const ByteSink& sink) {
    meta = impl_->write(checkpoint, base, MckpWriter(sink, impl_->write_options(checkpoint, base)));
  });
  meta.key = key;
  impl_->keep(key, checkpoint, meta);
  return meta;
}

Checkpoint CheckpointCompressor::load(std::string_view key) const {
  const MckpChain chain = MckpChain::open(*impl_->storage, key, impl_->read_options());
  return impl_->restore(chain, impl_->config.verify_content);
}

CheckpointSignature CheckpointCompressor::signature(std::string_view key) const {
  if (const auto known = impl_->signatures.find(key)) return *known;
  const CheckpointSignature signature =
      impl_->signature_of(MckpChain::open(*impl_->storage, key, impl_->read_options()));
  impl_->signatures.put(key, signature, 1);
  return signature;
}

std::future<CompressedCheckpoint> CheckpointCompressor::compress_async(Checkpoint checkpoint,
                                                                       std::string previous_key,
                                                                       Snapshot snapshot) const {
  take(snapshot, checkpoint);
  return std::async(std::launch::async, [self = *this, checkpoint = std::move(checkpoint),
                                         previous_key = std::move(previous_key)] {
    return self.compress(checkpoint, previous_key);
  });
}

std::future<Checkpoint> CheckpointCompressor::decompress_async(
    CompressedCheckpoint compressed) const {
  return std::async(std::launch::async, [self = *this, compressed = std::move(compressed)] {
    return self.decompress(compressed);
  });
}

std::future<CheckpointMeta> CheckpointCompressor::save_async(Checkpoint checkpoint, std::string key,
                                                             std::string previous_key,
                                                             Snapshot snapshot) const {
  take(snapshot, checkpoint);
  return std::async(std::launch::async,
                    [self = *this, checkpoint = std::move(checkpoint), key = std::move(key),
                     previous_key = std::move(previous_key)] {
                      return self.save(checkpoint, key, previous_key);
                    });
}

std::future<Checkpoint> CheckpointCompressor::load_async(std::string key) const {
  return std::async(std::launch::async,
                    [self = *this, key = std::move(key)] { return self.load(key); });
}

}  // namespace thalia
