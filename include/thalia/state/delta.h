// Deltas, exact and of low rank: what changed since another checkpoint, chains of them, and the
// full file again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/reader.h"
#include "thalia/region.h"
#include "thalia/result.h"
#include "thalia/state/low_rank.h"
#include "thalia/state/tensor_value.h"
#include "thalia/stream.h"
#include "thalia/tensor.h"
#include "thalia/types.h"
#include "thalia/verify.h"
#include "thalia/writer.h"

namespace thalia {

// Deltas: what changed since another checkpoint, chains of them, and the full file again.
//
//   thalia::ChainReader base = thalia::ChainReader::open("stage0.thalia");
//   thalia::write_delta(state, base, "stage1.delta.thalia",
//                      {.loss = {.threshold = 1e-5}});
//
//   thalia::ChainReader chain = thalia::ChainReader::open("stage1.delta.thalia");
//   thalia::Tensor w = chain.read(chain.reader().region("cortex").at("w_rec"));
//
//   thalia::StreamReader all = chain.stream();  // every tensor, made ahead on all cores
//
//   thalia::resolve("stage1.delta.thalia", "stage1.thalia");
//
// docs/format/deltas.md, "Delta files".

namespace state {
class FileChain;
}

/// What a tensor of a state is, whatever of it each file of the chain stores.
struct ChainTensor {
  TensorLayout layout;
  std::uint64_t logical_bytes = 0;
  Digest128 content_hash;  ///< of the logical bytes
};

/// A checkpoint with all that it is based on; a full file has no base. A cheap handle; copies share
/// the open files. Immutable; any number of threads may use one.
class ChainReader {
 public:
  /// Opens the file and all of its bases. @throws as Reader::open, naming the file;
  /// MissingBaseError with every path that was tried; IntegrityError where what lies at one is not
  /// the file that the delta was taken against, of which it tells nothing; FormatError where the
  /// chain is not as deep as it should be, or too deep.
  static ChainReader open(const std::filesystem::path& path, const ChainOptions& options = {});

  /// The same of a file that is open already, with the bases found by its path; `options.read` is
  /// for these.
  static ChainReader open(const Reader& top, const ChainOptions& options = {});

  /// The checkpoint's own file. It lists every region, tensor and connection of the state, and
  /// holds all of its texts; what read() is given comes from here.
  const Reader& reader() const noexcept { return reader_; }
  /// Deltas from here down to the full file; 0 if this is one.
  unsigned depth() const noexcept;
  /// The checkpoint's own file first, the full one last.
  std::vector<std::filesystem::path> paths() const;
  /// Bytes of all these files together.
  std::uint64_t disk_bytes() const;

  /// What the tensor is; nothing is read but tables. @throws FormatError; UsageError (not_found)
  /// for a view of another reader whose tensor this one does not have.
  ChainTensor describe(const TensorView& tensor) const;
  /// The tensor of the state: a view that keeps the files open where it lies raw in one of them,
  /// else made of what the files store, on as many threads as ReadOptions say, without a copy of
  /// any stage in between. What is made is checked against its content hash, unless ReadOptions
  /// verify nothing. @throws IntegrityError, FormatError, naming file, region and tensor.
  Tensor read(const TensorView& tensor) const;
  /// The same into memory of describe().logical_bytes. @throws UsageError (size_mismatch).
  void read(const TensorView& tensor, MutableByteSpan out) const;
  /// The logical bytes [begin, begin + out.size()) alone, of any tensor: what they are made of is
  /// read and decoded, chunk by chunk, and nothing else. They are checked as the files' bytes are,
  /// but not against the tensor's content hash. @throws as read(); UsageError (bad_argument) beyond
  /// the tensor's end.
  void read_part(const TensorView& tensor, std::uint64_t begin, MutableByteSpan out) const;

  /// The tensors of the state, of views of reader(), in the order asked for: each piece of 1 MiB is
  /// taken through all files of the chain while it is in the cache, on all cores, and held against
  /// the content hash; quantized tensors are restored. Memory is limited as StreamOptions say,
  /// whatever the depth. Without a list everything, connections included. A full file is read as
  /// StreamReader reads it; a delta's files are read through their mappings, with prefetching.
  /// @throws as StreamReader and read(); UsageError (bad_argument) for codes of a delta.
  StreamReader stream(const StreamOptions& options = {}) const;
  StreamReader stream(std::span<const RegionView> regions, const StreamOptions& options = {}) const;
  StreamReader stream(std::span<const TensorView> tensors, const StreamOptions& options = {}) const;

 private:
  friend struct detail::Inside;
  ChainReader(std::shared_ptr<const state::FileChain> chain, Reader reader);
  detail::Shared<const state::FileChain> chain_;
  Reader reader_;
};

/// Reads a part of a tensor: logical bytes [begin, begin + out.size()).
using PartReader = std::function<void(std::uint64_t begin, MutableByteSpan out)>;

/// A tensor of a state that is to be stored.
struct TensorSource {
  TensorSpec spec;
  /// Called once, and not at all where the content hash tells that nothing changed. Its layout is
  /// the spec's. Called by the thread that saves; the tensor is let go before the next one's.
  std::function<Tensor()> load;
  /// The hash of the logical bytes, if it is known; they are compared with it when they are stored.
  std::optional<Digest128> content_hash{};
  /// In place of load(), if it is better not held whole: called once, too. What it returns fills
  /// `out` with the logical bytes from `begin` on; several threads call it, any number of times,
  /// and it is let go before the next tensor's.
  std::function<PartReader()> open{};
};

struct RegionSource {
  RegionSpec spec;
  std::vector<TensorSource> tensors;
};

struct ConnectionSource {
  std::string source;  ///< names of regions of the state
  std::string target;
  TensorSource weights;  ///< names and roles of the specs do not matter
  std::optional<TensorSource> delays{};
};

/// A whole state, as a file would hold it.
struct StateSource {
  std::string metadata_json = "{}";
  std::uint64_t training_steps = 0;
  std::vector<RegionSource> regions;
  std::vector<ConnectionSource> connections{};
};

/// The state of a file, or of a chain, which it keeps open.
StateSource state_source(const ChainReader& chain);

/// A state that was saved and is still in memory, as training has its previous snapshot.
struct SavedState {
  /// Its file, as resolving the delta will look for it. It is not opened, and need not be there.
  std::filesystem::path path;
  FileIdentity identity;  ///< as the save's result has it
  StateSource state;      ///< as it was saved
  /// As the save's result has them, in the order of the state: the regions' tensors, then each
  /// connection's weights and delays. By them memory that was changed since is found.
  std::vector<TensorDigest> digests{};
};

/// What a delta may lose: nothing, by itself.
struct DeltaLossOptions {
  /// 0: exact. Else an element of a dense floating point tensor of weights, or of embeddings
  /// (likely_role() of thalia/types.h), that moved by less keeps the base's value. NaN,
  /// infinities, and elements that became zero or no longer are, are always stored. The distance is
  /// to what the base's chain reconstructs, so it stays below the threshold however long a chain
  /// becomes.
  double threshold = 0;
  /// Patterns as in a PrecisionPattern: tensors that fit one are stored exactly, whatever
  /// `threshold` and `low_rank` say.
  std::vector<std::string> exclude{};
  /// Changes of matrices as a few products of vectors, if that is asked for: lossy. Such a
  /// matrix, its base, its result and its change in f32 are in memory whole, in addition to
  /// the work's memory_bytes. The state's metadata describes the loss.
  std::optional<LowRankOptions> low_rank{};
};

struct DeltaOptions {
  DeltaLossOptions loss{};
  /// As every save's, but for this:
  ///
  /// Steps of elements of 8 and 16 bits are coded by themselves, and are stored without a codec.
  ///
  /// The codec of all else is by default plane_entropy, or with a level zstd; with automatic_codec
  /// plane_entropy, too. Differences of weights that all moved a little are what it is good at,
  /// both in size and in speed; it leaves what repeats to zstd. With the codec none, nothing else
  /// is compressed: if a list of elements is not smaller, a tensor is stored whole.
  ///
  /// Writes go through the page cache, as they are few beside what is read: where `io` asks for
  /// direct ones, SaveResult::io_fallback says so.
  ///
  /// The memory is for chunks and lists, whatever the size of a tensor. Beside them there is what a
  /// source's load() makes, one tensor at a time. Progress is in logical bytes of the state.
  SaveOptions save{};
  /// A small delta is stored without what follows from the rest of it, where that makes the file
  /// smaller: docs/format/packed.md. Readers take it as any delta; false asks for the plain form,
  /// with every byte where docs/format/format.md has it, which decompress_checkpoint() gives later,
  /// too. Plain all the same where the save asks for a SHA-256, or for a checksum of another type
  /// than the block tree, and of a state of more bytes than save.work.memory_bytes, by default
  /// 512 MiB: the delta is in memory before it is packed.
  bool pack = true;
};

/// The file that was saved, and how it differs from its base. `payload_bytes` are those of the
/// state's tensors; `digests` are those of the restored tensors, in the order of SavedState;
/// `identity` has the depth.
struct DeltaResult : SaveResult {
  std::uint64_t base_bytes = 0;  ///< of the base's file
  unsigned depth = 0;            ///< deltas down to the full file, this one among them
  // Tensors by what is stored of them:
  std::uint32_t same = 0;         ///< nothing
  std::uint32_t differences = 0;  ///< xor_base
  std::uint32_t lists = 0;        ///< sparse_delta
  std::uint32_t steps = 0;        ///< step_delta
  std::uint32_t whole = 0;
  /// Tensors of `whole` that the base has too, but in a form that nothing can be taken from: csr or
  /// coo of another type, shape or count of elements, another encoding or rank, or a packed type.
  std::uint32_t unlike = 0;
  /// Tensors, of all these kinds, whose base has another floating point type. Its values were
  /// converted before they were compared, and are again when the tensor is restored.
  std::uint32_t converted = 0;
  bool packed = false;                    ///< the file is
  std::uint64_t listed_elements = 0;      ///< of all lists
  std::vector<LowRankReport> low_rank{};  ///< of matrices that were stored so, in the file's order
  /// The regions of the state, in its order, that have a tensor, or a connection at either end,
  /// that differs from the base's, or that lack one that the base has.
  std::vector<std::string> changed_regions{};
  std::vector<std::string> removed_regions{};  ///< that the base has

  /// Base to delta; more than 1 where the delta is the smaller one.
  double ratio() const noexcept {
    return file_bytes == 0 ? 0 : static_cast<double>(base_bytes) / static_cast<double>(file_bytes);
  }
};

/// Saves what the state has that the base has not, in one pass, as every save does: a crash leaves
/// the old file at the path, or the new one. The delta finds its base by its path from the delta's
/// folder, and refuses any other file there.
/// @throws UsageError for options out of bounds, a pattern that fits no tensor (not_found), an
/// invalid state (as Writer), or a target that is a file of the base's chain; what reading the base
/// throws; IoError; CancelledError.
DeltaResult write_delta(const StateSource& state, const ChainReader& base,
                        const std::filesystem::path& target, const DeltaOptions& options = {});

/// The same against a base in memory: no file but the target is touched. A threshold, or
/// products of low rank, store another state than the caller has, so what was saved with one cannot
/// be a base in memory.
/// @throws as above; UsageError (bad_argument) for a tensor of the base that is needed and is not
/// what its digest says, or for digests that are not one a tensor.
DeltaResult write_delta(const StateSource& state, const SavedState& base,
                        const std::filesystem::path& target, const DeltaOptions& options = {});

/// `input_bytes` are those of all files of the chain.
struct ResolveResult : RewriteResult {
  unsigned depth = 0;  ///< of the chain
  std::uint32_t regions = 0;
  Digest256 closing_checksum{};
};

/// Writes the state of a chain as a full file: equal texts, and tensors that are equal byte for
/// byte. @param input also an index of .thalia files, or its folder. @throws as state_source() of
/// that path, and Writer.
ResolveResult resolve(const std::filesystem::path& input, const std::filesystem::path& target,
                      const ChainOptions& options = {}, const SaveOptions& save = {});

struct RebaseOptions {
  ChainOptions chain{};  ///< how files are found and read; its max_depth is what may be read
  /// How each file is written. The compression is that of full files; a delta has that of every
  /// delta. NAME.sha256 is written where there was one, too.
  SaveOptions save{};
  /// Deltas of these files that lie in other folders: they are kept whole as those are that lie
  /// beside them.
  std::vector<std::filesystem::path> others{};
  /// A file that would be deeper is a full one, and what is older a delta of that. 1 to 255.
  unsigned max_depth = 64;
  bool pack = true;  ///< small deltas, as of DeltaOptions
};

/// A file that rebase() wrote anew.
struct RebasedFile {
  std::filesystem::path path;
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes = 0;
  unsigned depth_before = 0;
  unsigned depth = 0;  ///< 0: it is full
};

/// Bytes of all files that were written anew, before and after.
struct RebaseResult {
  std::vector<RebasedFile> files;  ///< in the order of their depths; none where nothing was to do
  std::uint64_t input_bytes = 0;
  std::uint64_t output_bytes = 0;
  double seconds = 0;
};

/// Turns a chain: the newest file becomes full, each older one an exact delta of the next newer.
/// Names, states and texts stay as they are. @param files one, with all that it is based on; or
/// several, the newest first, full files or deltas.
///
/// Each file is written beside the old one and takes its name when it is on the disk; at each
/// moment, and after a crash at any, every file can be restored. So a call that ended early can be
/// made again, with all files named. Deltas of these files that lie in the same folders, or are
/// among `others`, are written anew with them; one that lies elsewhere loses its base. A reader
/// that is opening a file meanwhile may find its base replaced: it opens the file again. A
/// checkpoint of a run is for RunWriter::rebase().
///
/// One call at a time changes a folder; others wait. @throws MissingBaseError, IntegrityError,
/// FormatError for what cannot be read, UnsupportedError for quantized tensors, UsageError
/// (bad_argument): all before anything is changed; IoError; CancelledError.
RebaseResult rebase(const std::vector<std::filesystem::path>& files,
                    const RebaseOptions& options = {});

/// What verify() finds of a file and, if it is a delta without errors, what it finds of all that
/// it is based on, in words that name the file, and whether each tensor comes out as it was saved.
/// A base that is missing, or another one, is a finding. @throws as verify().
VerifyReport verify_chain(const std::filesystem::path& path, const VerifyOptions& options = {},
                          const std::vector<std::filesystem::path>& search = {},
                          const BasePolicy& bases = {});

}  // namespace thalia
