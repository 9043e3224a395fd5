// What files of all formats say about themselves and their tensors, which formats there are, and
// how such files are opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/options.h"
#include "thalia/state/quantization.h"
#include "thalia/state/tensor_value.h"
#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia {

// The formats of files that the library knows, and how it tells them apart. docs/use/formats.md
// says what each can hold.

enum class FileFormat {
  thalia,
  safetensors,  ///< a file, an index of shards, or the folder of a model
  thalia_0_1,   ///< "thalia-0.1": what the original program wrote, thalia/formats/v01.h; deltas too
  mckp,         ///< docs/format/mckp.md; the previous files of a delta are looked for next to it
  mst,          ///< the original mithril program's, thalia/formats/mithril.h
  mithril_quantized,  ///< "mithril-quantized": a tensor of codes, as that program wrote it
  orbax,          ///< "mithril-orbax": a folder of .npy files, as that program laid out for Orbax
  gptrs,          ///< GPTRSCHK, a model of gpt.rs; docs/format/gptrs.md
  gptrsten,       ///< GPTRSTEN, an archive of tensors
  entity,         ///< ENTITY, a network of Loom; docs/format/loom.md
  loom_json,      ///< "loom-json": the same as JSON
  pt,             ///< what torch.save and torch.jit.save write; docs/format/pt.md
  npz,            ///< numpy.savez; docs/format/npz.md
  npy,            ///< numpy.save: one tensor
  gguf,           ///< docs/format/gguf.md
  onnx,           ///< the weights of a model; docs/format/onnx.md
  thalia_shards,  ///< "thalia-shards": an index of .thalia files; save_model() writes it
  slime,          ///< a version of slime's weights; write_weight_delta() writes deltas
  trl,            ///< a version of TRL's weights; the same
};

/// Static storage, as all names here.
std::string_view file_format_name(FileFormat format) noexcept;
std::optional<FileFormat> file_format_from_name(std::string_view name) noexcept;
/// In the user's words: "a PyTorch file".
std::string_view file_format_words(FileFormat format) noexcept;
/// All that there are.
std::span<const FileFormat> file_formats() noexcept;
/// Whether convert() writes it.
bool file_format_is_written(FileFormat format) noexcept;

/// By content (the first bytes), and if there is none or it tells nothing by the name's ending;
/// nullopt where neither tells. For a folder, the format of the file that opens its model:
/// find_model(). `access` is how an archive is looked into. @throws IoError where
/// the file exists and cannot be read; UnsupportedError for what is known and not a file of
/// tensors, in words that say what it is.
std::optional<FileFormat> detect_format(const std::filesystem::path& path,
                                        Access access = Access::mapped);
/// The same of a file that is to be read. @throws as detect_format(); FormatError where neither
/// tells, in words that say what it looks like; IoError if there is no such file.
FileFormat input_format(const std::filesystem::path& path, Access access = Access::mapped);

// In which regions the tensors of formats without regions are.

/// How tensors of a format without regions are grouped.
struct RegionGrouping {
  enum class Kind {
    automatic,  ///< the dotted name up to and with its first numeric part ("model.layers.3");
                ///< without one, all but the last part
    none,       ///< one region, "model"
    depth,      ///< the first `depth` dotted parts, never the last one
  };
  Kind kind = Kind::automatic;
  unsigned depth = 0;
};

/// The region for a dotted tensor name. A name without a prefix, or with one that no region may
/// have, goes to "model".
std::string region_for_name(std::string_view tensor_name, const RegionGrouping& grouping);

// What files of all formats say about themselves, next to their tensors.

/// A frame around the whole file, or a packed delta.
struct WrapperFacts {
  Codec codec = Codec::zstd;
  bool packed = false;
  bool has_seek_table = false;
  std::optional<std::uint64_t> frames{};
  std::optional<bool> checksum_inside{};  ///< of version 0.1
};

struct ChecksumFacts {
  std::string type = "none";
  std::optional<std::uint64_t> tensors{};  ///< that it covers, if it does not cover all
  std::optional<std::string> leaves{};
  std::optional<std::uint64_t> block_bytes{};
  std::optional<std::string> digest{};
};

/// What a delta says of the file that it was taken against.
struct BaseFacts {
  std::optional<std::string> path{};  ///< or key
  std::string checksum;
  std::optional<std::uint64_t> training_steps{};
  std::optional<unsigned> depth{};
};

/// nullopt: the format does not say.
struct StateFacts {
  bool is_delta = false;
  std::optional<std::uint64_t> training_steps{};  ///< not those that metadata alone tell
  std::optional<std::uint64_t> timestamp{};
  std::uint64_t disk_bytes = 0;
};

/// nullopt: the format does not say. `disk_bytes` are those of a file that may be wrapped, or have
/// debris; else 0.
struct FileFacts : StateFacts {
  std::string version{};  ///< of the format; empty: the file does not say
  bool is_side_file = false;
  /// Its tensors are listed. Those of a delta of version 0.1 are in a Python pickle, which is
  /// never opened.
  bool lists_tensors = true;
  std::uint64_t file_bytes = 0;  ///< unwrapped and without debris; for a model, of all its files
  std::optional<WrapperFacts> wrapper{};
  std::uint64_t dead_bytes = 0;
  std::uint64_t debris_bytes = 0;
  std::optional<std::uint64_t> regions{};
  std::optional<std::uint64_t> connections{};
  std::optional<std::uint64_t> neurons{};
  std::optional<std::uint64_t> synapses{};
  std::optional<std::uint64_t> generation{};
  std::optional<Uuid> uuid{};
  std::vector<std::string_view> flags{};    ///< that are set: "compressed", "sparse"
  std::optional<ChecksumFacts> checksum{};  ///< nullopt: AnyTensor::checksum is all there is
  std::optional<std::string> content_hash{};
  std::optional<BaseFacts> base{};
  std::vector<std::string> warnings{};
  /// What the file holds beside tensors and metadata, a sentence each: conversions lose it.
  std::vector<std::string> losses{};
  /// A JSON object. For most formats it is {"format":NAME,NAME:{…}}: what a .thalia file made of
  /// this one holds, with all that it takes to write the file again.
  std::string metadata = "{}";
};

/// A region of a file that has some. Texts are valid as long as the file is open.
struct RegionFacts {
  std::string_view name;
  std::uint64_t tensor_count = 0;
  std::optional<std::uint32_t> n_neurons{};
  std::optional<std::uint32_t> n_inputs{};
  std::optional<NeuronType> neuron_type{};
  std::uint64_t logical_bytes = 0;
  std::optional<std::uint64_t> stored_bytes{};
  std::optional<std::uint64_t> offset{};
  std::optional<std::uint64_t> length{};
  std::string_view config{};    ///< a JSON object; empty: none
  std::string_view metadata{};  ///< the same

  /// What its tensors take of the file, or in memory where the format does not say.
  std::uint64_t size() const noexcept { return stored_bytes.value_or(logical_bytes); }
};

/// A checkpoint, or one that it is based on.
struct LinkFacts : StateFacts {
  std::string name{};  ///< a path, or the key of a checkpoint in a store

  std::string_view kind() const noexcept { return is_delta ? "delta" : "full"; }
};

struct ConnectionFacts {
  std::string source;
  std::string target;
  std::size_t weights = 0;  ///< the number of the tensor
  std::optional<std::size_t> delays{};
};

// What files of all formats say of their tensors, and how they are opened.

/// What a file's tables say of a tensor.
struct AnyTensor {
  /// Different from all others of the file, or, with OpenOptions::as_stored, of the region.
  std::string name;
  TensorLayout layout{};  ///< of what read() gives
  /// The format's own name of the element type, where the layout does not tell it: "Q4_K".
  std::string type{};
  /// Where its stored bytes lie in the file, and how many they are; nullopt if they do not lie
  /// together.
  std::optional<std::uint64_t> offset{};
  std::optional<std::uint64_t> stored_bytes{};
  /// The bytes lie in the file as read() gives them: it copies nothing.
  bool in_place = false;
  /// How elements are stored if that is not as read() gives them: quantized, or as a difference
  /// (xor_base).
  std::optional<Encoding> stored_encoding{};
  std::vector<Codec> codecs{};        ///< of the stored bytes; empty: the format does not say
  std::optional<bool> byte_planes{};  ///< whether bytes of elements are grouped by their place
  std::optional<double> bits{};       ///< of a code, if it is stored quantized
  /// The checksum that the file has of the stored bytes, and that AnyFile::check() compares:
  /// "crc32", "sha1", "sha256" or "xxh64". Empty: the file has none, and changed bytes look like
  /// others.
  std::string_view checksum{};

  // What AnyFile::stored() tells as well.
  std::string region{};             ///< empty: it is in none
  std::string path{};               ///< in a state, by which patterns know it
  std::uint64_t logical_bytes = 0;  ///< decompressed; those of the codes if it is stored quantized
  std::optional<Role> role{};
  std::optional<std::uint32_t> chunks{};
  std::optional<std::uint32_t> crc32{};
  std::optional<Digest128> content_hash{};
  std::optional<TensorQuantization> quantization{};  ///< where the file says what it lost

  /// What it takes of the file, or in memory where the format does not say.
  std::uint64_t size() const noexcept { return stored_bytes.value_or(logical_bytes); }
  /// Stored elements: for csr and coo those that exist, else all of the shape; at most 2^64 - 1.
  std::uint64_t elements() const noexcept;
  bool is_compressed() const noexcept;
};

/// A tensor that is read in parts. What its format decodes as a whole was decoded once, and is kept
/// as long as this. Holds the file open; any number of threads may read.
struct TensorElements {
  TensorLayout layout{};  ///< of what comes out
  /// Reads a slice of a dense tensor. @throws UsageError (bad_argument, size_mismatch); as
  /// AnyFile::read().
  SliceReader read{};
  std::optional<Tensor> all{};  ///< if it is in memory as a whole, as every sparse one is
};

/// The elements of a tensor in memory, or in a mapping.
TensorElements elements_of(Tensor tensor);

struct OpenOptions {
  ChainOptions chain{};
  /// Elements in place of the codes of formats with types of their own.
  bool dequantize = false;
  /// For PyTorch files: tensors that share memory are one tensor, and a tree in the metadata says
  /// which part of it each of them is (docs/format/pt.md, "Views and shared storages"). Else each
  /// is a tensor of its own.
  bool shared_memory = false;
  /// For files with regions: the tensors as they are in the file, named within their regions, in
  /// the order of the tables. For a delta: what it stores itself is listed, and its bases are
  /// opened with the first tensor that is read. If not set, names say the region if they have
  /// to, and a delta is its whole state.
  bool as_stored = false;
  /// Bytes that a safetensors header may have; the reference refuses more than 100 MB.
  std::uint64_t max_safetensors_header_bytes = 100'000'000;
};

}  // namespace thalia
