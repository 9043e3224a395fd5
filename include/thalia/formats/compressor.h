// CheckpointCompressor: whole checkpoints saved and loaded by key, compressed, each as a difference
// to a previous one if that is smaller. Stored objects are MCKP files (docs/format/mckp.md).
//
//   thalia::CheckpointCompressor compressor({}, thalia::open_storage("local:///var/checkpoints"));
//   const auto meta = compressor.save(checkpoint, "step_1000", "step_900");
//   meta.ratio();
//   const thalia::Checkpoint loaded = compressor.load("step_1000");
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/async_save.h"
#include "thalia/detail/held.h"
#include "thalia/formats/mckp.h"
#include "thalia/state/tensor_value.h"
#include "thalia/state/value.h"
#include "thalia/storage.h"
#include "thalia/types.h"

namespace thalia {

struct Checkpoint {
  std::map<std::string, Tensor, std::less<>> tensors;  ///< dense
  Value metadata = Value::object();                    ///< an object without tensors
  std::optional<std::uint64_t> training_step{};
};

/// What identifies a checkpoint's content, however it is stored.
struct CheckpointSignature {
  Digest256 hash;          ///< docs/format/mckp.md, "Content hash"
  std::uint64_t size = 0;  ///< bytes of all tensors
  std::optional<std::uint64_t> step{};
  friend bool operator==(const CheckpointSignature&, const CheckpointSignature&) = default;
};

struct QuantizationConfig {
  unsigned bits = 8;                   ///< 1 to 8; with sensitivities the mean of all weights
  std::vector<std::string> exclude{};  ///< patterns of tensors that stay exact: "optimizer.*"
  /// The sensitivity of each weight of a tensor, as a tensor of f32, f16, bf16 or f64 with as many
  /// elements; signs are not looked at. nullopt: all its weights count alike. Each quantized tensor
  /// then gets its own number of bits, 1 to 8, so that the sum of sensitivity² × error² over the
  /// checkpoint is the least that their mean allows. Errors are measured for every width, so that
  /// saving takes several times as long.
  std::function<std::optional<Tensor>(std::string_view name, const Tensor& tensor)> sensitivity{};
  /// How often a checkpoint may be stored quantized, restored and stored quantized again.
  std::uint64_t max_generations = 10;
};

struct CompressorConfig {
  bool delta_enabled = true;  ///< else previous keys are not looked at
  bool byte_grouping = true;
  Compression compression{};  ///< as MckpWriteOptions
  std::optional<QuantizationConfig> quantization{};
  /// Deltas of weights as sums of a few products: lossy, as MckpWriteOptions.
  std::optional<LowRankOptions> low_rank_deltas{};
  LeafAlgorithm content_digests = LeafAlgorithm::xxh3_128;  ///< as MckpWriteOptions
  unsigned max_chain = 16;     ///< deltas in a row; then a checkpoint is stored by itself
  bool verify_content = true;  ///< loading compares the content hash of what was restored
  std::size_t cached_signatures = 128;
  /// Copies of saved checkpoints that are kept for the next delta, so that it need not read what it
  /// is taken against. 0: none.
  std::uint64_t cached_bytes = 0;
  InputOptions input{};  ///< of previous checkpoints, and of those that are loaded
  /// As MckpWriteOptions and MckpReadOptions; memory_bytes is 256 MiB by default, in addition to
  /// what is kept of saved checkpoints and what compress() returns.
  Work work{};
};

struct CheckpointMeta : MckpTotals {
  std::string key{};  ///< empty of what is not stored
  CheckpointSignature signature{};
  std::uint64_t compressed_size = 0;          ///< of the whole file
  std::optional<std::string> previous_key{};  ///< where any tensor is a delta
  std::uint64_t lossy_generation = 0;         ///< 0 of what never lost anything
  /// original_size / compressed_size.
  double ratio() const noexcept {
    return compressed_size == 0
               ? 0
               : static_cast<double>(original_size) / static_cast<double>(compressed_size);
  }
};

struct CompressedCheckpoint {
  CheckpointMeta meta;
  std::vector<std::byte> bytes;  ///< an MCKP file
};

/// Any number of threads may call everything. Copies share storage and caches.
///
/// A checkpoint whose previous one is `previous_key` is a delta, but where the chain would become
/// longer than max_chain; tensors that are new, or of another dtype or shape, are stored by
/// themselves. Anybody who erases or replaces a stored checkpoint loses those taken against it.
class CheckpointCompressor {
 public:
  /// @param storage where save() and load() and previous keys look; null: a new MemoryStorage.
  /// @throws UsageError (bad_argument) for a level, count of bits or codec that does not exist.
  explicit CheckpointCompressor(CompressorConfig config = {},
                                std::shared_ptr<StorageBackend> storage = nullptr);

  const CompressorConfig& config() const noexcept;
  StorageBackend& storage() const noexcept;

  /// @param previous_key empty: none. @throws MissingBaseError with a previous key that is not
  /// there; what reading it throws; UsageError (bad_argument) for metadata that are no plain
  /// object, (wrong_state) where the checkpoint lost something too often.
  CompressedCheckpoint compress(const Checkpoint& checkpoint,
                                std::string_view previous_key = {}) const;
  /// Previous checkpoints are looked up in the storage. @throws as MckpChain; IntegrityError where
  /// the content hash differs; FormatError (limit_exceeded).
  Checkpoint decompress(const CompressedCheckpoint& compressed) const;

  /// compress() straight into the storage; nothing is replaced before all is written. @throws as
  /// compress(); StorageError; UsageError (bad_argument) where a previous checkpoint would be
  /// replaced by its own delta.
  CheckpointMeta save(const Checkpoint& checkpoint, std::string_view key,
                      std::string_view previous_key = {}) const;
  /// @throws as decompress(); StorageError with the key if there is none.
  Checkpoint load(std::string_view key) const;

  /// The metadata of a stored checkpoint: as it was saved here or seen last, else from its header,
  /// or computed if that has none. @throws as load().
  CheckpointSignature signature(std::string_view key) const;

  /// The same on a thread of their own; the destructor of a future waits. What tensors borrow is
  /// copied before this is back, or stays as it is until the future is ready; those with bytes of
  /// their own are shared, and have new ones once they are changed.
  std::future<CompressedCheckpoint> compress_async(Checkpoint checkpoint,
                                                   std::string previous_key = {},
                                                   Snapshot snapshot = Snapshot::copy) const;
  std::future<Checkpoint> decompress_async(CompressedCheckpoint compressed) const;
  std::future<CheckpointMeta> save_async(Checkpoint checkpoint, std::string key,
                                         std::string previous_key = {},
                                         Snapshot snapshot = Snapshot::copy) const;
  std::future<Checkpoint> load_async(std::string key) const;

 private:
  struct Impl;
  detail::Shared<Impl> impl_;
};

}  // namespace thalia
