// MCKP files: tensors under names with compressed blocks, each on its own or as a difference to a
// tensor of a previous checkpoint. docs/format/mckp.md is normative.
//
//   thalia::MckpWriter writer("model.mckp");
//   writer.add("w", tensor);
//   writer.commit();
//   const thalia::MckpFile file = thalia::MckpFile::open("model.mckp");
//   const thalia::Tensor w = file.read("w");   // reads and checks the block of w alone
//
// thalia/formats/compressor.h saves and loads whole checkpoints by key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/state/delta.h"
#include "thalia/state/tensor_value.h"
#include "thalia/storage.h"
#include "thalia/types.h"

namespace thalia {

/// How a block's payload was made of a tensor's bytes. docs/format/mckp.md, "Methods".
struct MckpMethod {
  Codec codec = Codec::none;
  bool delta = false;        ///< made from that of the previous checkpoint, mostly by XOR
  unsigned plane_width = 0;  ///< bytes of an element that was cut up; 0: not cut
  bool quantized = false;    ///< codes in place of numbers: lossy
  bool sparse = false;       ///< of indices and values
  bool low_rank = false;     ///< a delta that is a sum of products: lossy
  bool steps = false;        ///< a delta of steps in the order of values
  friend bool operator==(const MckpMethod&, const MckpMethod&) = default;
};

/// A restored number is minimum + code * scale, computed in double precision and rounded.
struct MckpQuantization {
  unsigned bits = 8;
  double minimum = 0;
  double scale = 0;
  friend bool operator==(const MckpQuantization&, const MckpQuantization&) = default;
};

struct MckpSparse {
  Encoding encoding = Encoding::csr;  ///< or coo
  std::uint64_t nnz = 0;              ///< stored elements
  bool wide_indices = false;          ///< of 64 bits, else of 32
  friend bool operator==(const MckpSparse&, const MckpSparse&) = default;
};

/// What the header says of a tensor; `offset` is that of its block.
struct MckpTensor : ArrayEntry {
  std::uint64_t original_size = 0;    ///< bytes of the tensor, in its encoding
  std::uint64_t compressed_size = 0;  ///< bytes of the payload
  MckpMethod method{};
  std::optional<MckpQuantization> quantization{};  ///< where method.quantized
  std::uint64_t xxh64 = 0;                         ///< of the payload
  std::optional<MckpSparse> sparse{};              ///< where method.sparse

  TensorLayout layout() const {
    return {.dtype = dtype,
            .shape = shape,
            .encoding = sparse ? sparse->encoding : Encoding::dense,
            .nnz = sparse ? sparse->nnz : 0,
            .wide_indices = sparse && sparse->wide_indices};
  }
};

/// What a delta was taken against.
struct MckpPrevious {
  std::string key;
  Digest256 content_hash;
  friend bool operator==(const MckpPrevious&, const MckpPrevious&) = default;
};

/// What a checkpoint's header says of it besides its tensors, as its writer was told.
struct MckpDescription {
  std::optional<std::uint64_t> training_step{};
  std::string metadata = "{}";             ///< a JSON object: the user's
  std::optional<MckpPrevious> previous{};  ///< what deltas are of
  /// What digests each tensor; the content hash is made of these digests. SHA-256 proves a
  /// checkpoint against a content hash that is known from elsewhere, and takes longer than
  /// compressing. A file that does not say has SHA-256.
  LeafAlgorithm content_digests = LeafAlgorithm::xxh3_128;
};

/// `previous` is set where any tensor is a delta.
struct MckpHeader : MckpDescription {
  std::uint64_t original_size = 0;          ///< bytes of all tensors
  std::optional<Digest256> content_hash{};  ///< of the checkpoint as it is restored
  std::string compression_params = "{}";    ///< a JSON object: what the writer was asked for
};

/// What the tensors of a checkpoint are together.
struct MckpTotals {
  std::uint64_t original_size = 0;  ///< bytes of all tensors
  std::uint32_t tensors = 0;
  std::uint32_t delta_tensors = 0;
  std::uint32_t quantized_tensors = 0;
  std::uint32_t low_rank_tensors = 0;  ///< of the deltas
  double largest_error = 0;            ///< |number - restored|, of both of these
};

struct MckpReadOptions {
  /// Check the whole file's checksum before open() returns, and not only if that is the only one
  /// of the header.
  bool verify = false;
  /// With copied access the whole file is read into memory by open(). Threads decode one tensor.
  /// Where to look for previous checkpoints, and which, counts for a chain that is opened by a
  /// path.
  ChainOptions chain{};
};

/// An open file, mapped. Header, index and layout are checked at opening, with their checksum, or
/// if the file has none for them, that of the whole file; block header and payload when a tensor is
/// read. A cheap handle; immutable; any number of threads.
class MckpFile {
 public:
  /// @throws IoError; FormatError naming field, value and bound; IntegrityError; UnsupportedError
  /// for another version, unknown flags or methods, rank above 8; UnsupportedDtypeError.
  static MckpFile open(const std::filesystem::path& path, const MckpReadOptions& options = {});
  /// The same of a file's bytes. `name` is for messages.
  static MckpFile from_bytes(StoredBytes bytes, std::string name = {},
                             const MckpReadOptions& options = {});

  const MckpHeader& header() const noexcept;
  const std::vector<MckpTensor>& tensors() const noexcept;       ///< in the order of their blocks
  const MckpTensor* find(std::string_view name) const noexcept;  ///< nullptr if there is none
  std::uint64_t file_bytes() const noexcept;
  const std::string& name() const noexcept;  ///< the path that was opened, or the name for messages

  /// @throws UsageError (not_found); MissingBaseError naming the previous checkpoint's key where
  /// the tensor is a delta; IntegrityError where its checksum is wrong; FormatError
  /// (bad_compression, inconsistent, limit_exceeded), of hostile sizes before anything is
  /// allocated, (bad_value) of an index of a sparse tensor.
  Tensor read(std::string_view name) const;
  /// The same of a delta. `base` is the tensor of that name in the previous checkpoint, and is
  /// believed to be. @throws ShapeMismatchError, UsageError (dtype_mismatch) where it cannot be.
  Tensor read(std::string_view name, const Tensor& base) const;
  /// As read(), and without a copy where the payload is the tensor's bytes: in the mapping, at an
  /// address that is perhaps no multiple of an element, so that as<T>() throws.
  Tensor view(std::string_view name) const;

  /// Reads the whole file: its checksum, every block header and payload checksum. Decodes nothing.
  /// @throws IntegrityError, FormatError.
  void verify() const;

 private:
  friend struct detail::Inside;
  struct Impl;
  detail::Shared<const Impl> impl_;
};

/// A file and those that it was taken against, the newest first: what restores a delta. As
/// MckpFile.
class MckpChain {
 public:
  MckpChain(const MckpChain&) = default;  // a move too: newest() is always there
  MckpChain& operator=(const MckpChain&) = default;
  ~MckpChain() = default;

  /// Previous checkpoints are looked up by key, and used where their content hash is the one that
  /// the delta asks for. @throws as MckpFile::open(); StorageError; MissingBaseError with the key
  /// of one that is not there; IntegrityError, which tells nothing of what is there, for another
  /// one; FormatError (inconsistent) for a cycle, (limit_exceeded) for more than 1,024 files.
  static MckpChain open(const StorageBackend& storage, std::string_view key,
                        const MckpReadOptions& options = {});
  /// The same of a file that is not stored.
  static MckpChain open(const StorageBackend& storage, const MckpFile& newest,
                        const MckpReadOptions& options = {});
  /// Previous checkpoints are regular files in the file's own folder, or one to search: KEY or
  /// KEY.mckp from there, or the last name of the key in the same two ways.
  static MckpChain open(const std::filesystem::path& path, const MckpReadOptions& options = {});
  /// The same of the file of that path that is open already.
  static MckpChain open(const std::filesystem::path& path, const MckpFile& newest,
                        const MckpReadOptions& options = {});

  const std::vector<MckpFile>& files() const& noexcept { return files_; }
  /// By value: a loop over the files of a chain that was just opened would outlive the chain.
  std::vector<MckpFile> files() && { return std::move(files_); }
  const MckpFile& newest() const noexcept { return files_.front(); }
  /// A tensor of the newest file, restored. @throws as MckpFile::read(); FormatError (inconsistent)
  /// where a previous file lacks a tensor that a delta needs.
  Tensor read(std::string_view name) const;
  /// The same on so many threads; 0: one a core.
  Tensor read(std::string_view name, unsigned threads) const;
  /// Restores every tensor, one at a time, and compares the content hash, where the file has one.
  /// @throws IntegrityError where it differs.
  void verify_content() const;

 private:
  MckpChain() = default;
  std::vector<MckpFile> files_;
};

/// Tensors become codes of a few bits: those whose names say that they are weights or embeddings
/// (thalia/types.h).
struct MckpQuantizationOptions {
  unsigned bits = 8;  ///< 1 to 8
  /// Other numbers of bits for single tensors, by name. A name that is not added is an error of
  /// commit().
  std::map<std::string, unsigned, std::less<>> bits_of{};
  /// Tensors whose names match one stay as they are: '*' any characters, '?' one, '.' and '/' the
  /// same.
  std::vector<std::string> exclude{};
};

struct MckpWriteOptions {
  /// By default plane_entropy. That and packed_exponents code exponents: with them, deltas and
  /// sparse tensors are zstd, and the level is zstd's. There are no chunks, so chunk_bytes does not
  /// count.
  Compression compression{};
  bool byte_grouping =
      true;  ///< cut elements of f16, bf16, f32 and f64 into planes for zstd and lz4
  std::optional<MckpQuantizationOptions> quantization{};  ///< of f32, f16, bf16 and f64
  /// Matrices whose deltas may be sums of a few products, where that takes fewer bytes than what
  /// changed: lossy. Names of tensors are looked at, and the generation is one more than that of
  /// the metadata in `header`.
  std::optional<LowRankOptions> low_rank{};
  MckpDescription header{};                  ///< `previous` is what bases given to add() are of
  OutputOptions output{};                    ///< of a writer of a path
  std::filesystem::path temporary_folder{};  ///< empty: the file's own, else the system's
  /// All but progress; memory_bytes is 256 MiB by default. A thread takes 20 MiB of it, so there
  /// are no more threads than it has room for, and one at least. The rest is for compressed bytes;
  /// those beyond go to a temporary file, as the header is first in the file, and known last.
  Work work{};
};

struct MckpWriteResult : MckpTotals {
  std::uint64_t file_bytes = 0;
  Digest256 content_hash{};  ///< of the checkpoint as it will be restored
};

/// Compresses while tensors are added, the pieces of one and of several on several threads, within
/// memory_bytes. Externally synchronised. Destroyed before commit(), or after a call that failed,
/// it leaves nothing.
class MckpWriter {
 public:
  /// Writes the file in commit(), atomically. @throws UsageError (bad_argument) for options.
  explicit MckpWriter(std::filesystem::path path, MckpWriteOptions options = {});
  /// Hands the file to a sink in commit().
  explicit MckpWriter(ByteSink sink, MckpWriteOptions options = {});
  /// Puts the file in place of what is in `out`, which is complete after commit() and stays where
  /// it is until then: no other memory holds compressed bytes, and no temporary file. Where its
  /// capacity is the tensors' bytes and a little more, nothing moves.
  explicit MckpWriter(std::vector<std::byte>& out, MckpWriteOptions options = {});
  ~MckpWriter();
  MckpWriter(MckpWriter&&) noexcept;
  MckpWriter& operator=(MckpWriter&&) noexcept;

  /// A tensor, dense or sparse, that borrows its bytes: they have to stay until commit() returns.
  /// With a base of the same layout, and options.previous, it is stored as a difference if that
  /// is not larger than the tensor, or of low rank; any other base is not looked at. Numbers that
  /// are not finite, and those of sparse tensors, are not quantized, and nothing quantized is a
  /// difference.
  /// @throws UsageError (duplicate; bad_argument for a name that is no UTF-8 or of more than 65,535
  /// bytes, and for sparse arrays that break the rules); CancelledError; IoError.
  void add(std::string name, Tensor tensor, std::optional<Tensor> base = std::nullopt);
  /// Whether any tensor that was added will be restored to something else: one that is quantized,
  /// or a delta of low rank.
  bool is_lossy() const;
  /// In place of the options'. @throws UsageError (bad_argument) for what is no JSON object.
  void set_metadata(std::string metadata);
  /// @throws IoError; CancelledError; what the sink throws. UsageError (wrong_state) a second time.
  MckpWriteResult commit();

 private:
  struct Impl;
  detail::Owned<Impl> impl_;
};

// Steps of a block, for who stores a tensor's bytes himself. `out` has as many bytes as `data` and
// does not overlap it. docs/format/mckp.md, "Methods".

/// Byte 0 of each element of `width` bytes, then byte 1 of each, and so on. @param width 2, 4 or 8.
/// @throws UsageError (bad_argument) for another width, (size_mismatch) for bytes that are no whole
/// elements, and another size of `out`.
void group_bytes(ByteSpan data, unsigned width, MutableByteSpan out);
/// The inverse of group_bytes(). @throws as that.
void ungroup_bytes(ByteSpan data, unsigned width, MutableByteSpan out);
/// Each byte XORed with that of `previous`, which makes a delta, and makes it undone. @throws
/// UsageError (size_mismatch) where the two, or `out`, have another size.
void xor_bytes(ByteSpan data, ByteSpan previous, MutableByteSpan out);

}  // namespace thalia
