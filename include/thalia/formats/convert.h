// From each format to each: conversion, extraction, merging, migration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/formats/file_facts.h"
#include "thalia/options.h"
#include "thalia/result.h"
#include "thalia/state/precision.h"
#include "thalia/version.h"

namespace thalia {

// Conversion between checkpoint formats, lossless unless told otherwise. docs/format/states.md,
// "Precision", for what `precision` does.

struct ConvertOptions {
  std::optional<FileFormat> from{};  ///< nullopt: detected
  std::optional<FileFormat> to{};
  RegionGrouping grouping{};
  SaveOptions save{};
  ChainOptions chain{};  ///< of the input
  /// Which tensors are stored in another floating point type, sparse ones too; noted in the
  /// output's metadata. By default: none. A pattern that fits no tensor is a UsageError
  /// (not_found), but between .thalia files of 0.1 and 1.0.
  PrecisionPolicy precision{};
  /// Writes all elements of sparse tensors; not to .thalia files. Else such a tensor is refused
  /// where the target has no sparse encodings (docs/use/formats.md says which have them).
  bool dense = false;
  /// Elements in place of the codes of formats with types of their own, as GGUF's blocks.
  bool dequantize = false;
  /// For safetensors: the bytes of tensors in one file. The output is as many files as that takes,
  /// and an index of them. nullopt: one file, unless the output is the index of a model.
  std::optional<std::uint64_t> shard_bytes{};
  /// For mckp: the file that the output is a delta against. Its own bases are looked for as the
  /// input's.
  std::optional<std::filesystem::path> base{};
  /// Also types that the target has and its original program does not read.
  bool all_types = false;
  /// Called once before anything is written, with ConvertResult::losses if there are any. What
  /// it throws ends the conversion.
  std::function<void(const std::vector<std::string>& losses)> on_losses{};
  /// Bytes that a safetensors header may have; the reference refuses more than 100 MB.
  std::uint64_t max_safetensors_header_bytes = 100'000'000;
};

struct ConvertResult : RewriteResult {
  /// What was written; for shards that were asked for as a file, the index.
  std::filesystem::path output{};
  std::vector<std::string> losses{};    ///< what the target cannot hold, one sentence each
  PrecisionStatistics precision{};      ///< of the output's tensors
  std::uint32_t converted_tensors = 0;  ///< to another type
  RoundingLoss rounding{};
  /// What was done otherwise than asked for, a sentence each: a precision policy that changed
  /// nothing.
  std::vector<std::string> warnings{};
};

/// A .thalia delta is converted as its state: a full file of it without a name takes space on the
/// output's file system meanwhile.
/// For an mckp output, compression, leaves, durability and work of SaveOptions count, and the
/// default codec is plane_entropy. An output named NAME.meta is the side file of a .thalia file
/// (thalia/side_file.h), and no option but those of reading and durability counts.
/// @throws FormatError, IntegrityError, IoError; UnsupportedError where the target cannot hold a
/// tensor (dtype, encoding, two tensors of one name), naming it; UsageError (bad_argument) for a
/// codec, shards or a file of SHA-256 where the target has none, an output that is read. Between
/// 0.1 files and the formats without regions, and where a policy converts a 0.1 file, a temporary
/// .thalia file next to the output is in between. On an error nothing is left at `output`.
ConvertResult convert(const std::filesystem::path& input, const std::filesystem::path& output,
                      const ConvertOptions& options = {});

/// Copies the named regions, and connections among them, into a new .thalia file; for a delta as
/// convert(). @throws UsageError (not_found).
ConvertResult extract(const std::filesystem::path& input, const std::vector<std::string>& regions,
                      const std::filesystem::path& output, const ConvertOptions& options = {});

// Several checkpoints in one.

/// Whose content is taken where several inputs have a region, a connection or a member of the
/// metadata of one name, and not the same one.
struct MergePreference {
  enum class Kind {
    none,   ///< such a conflict is an error
    first,  ///< of the inputs that have it
    last,
    input,  ///< that of `number`; if it has none, and others differ, that is an error
  };
  Kind kind = Kind::none;
  std::size_t number = 0;  ///< among the inputs
};

struct MergeOptions {
  MergePreference preference{};
  /// One for each input, or none at all. With them each input is a brain of an ensemble, and apart
  /// from the others: docs/format/states.md, "Ensembles".
  std::vector<std::string> prefixes{};
  /// The output's own metadata where there are prefixes, a JSON object; empty: none.
  std::string metadata_json{};
};

/// Copies the regions and connections of several .thalia files into a new one, in the order of the
/// inputs. A delta, or a model in several files, gives its state, as a ResolvedFile.
///
/// With prefixes, everything is kept: region R of an input is the region PREFIX + R of the output,
/// and extract_brain() gives the input back. An input may be an ensemble itself, or be there twice.
///
/// Without, what two inputs have alike (by facts, texts and content hashes, as diff() tells) is
/// taken once. Metadata: the first's, with the members that only others have, and no conflict in
/// version, thalia_version and created, which say something of one file; growth histories one after
/// the other in the order of their steps, an event without a step after the one before it, and an
/// event that several files have once.
///
/// Training steps are the greatest. No file is read whole: one payload at most is in memory,
/// besides compressed matrices of connections. Precision and formats of the options are not used.
/// @return as convert(); losses tell what gave way to what was preferred.
/// @throws UsageError (duplicate) naming what is in conflict, and the files, or two prefixes of
/// which one begins with the other; (bad_argument) without an input, for an empty prefix or another
/// number of them, a prefix that makes a name that the format leaves, and a preference beside
/// prefixes. FormatError, IntegrityError, IoError; UnsupportedError as extract(). On an error
/// nothing is left at `output`.
ConvertResult merge(const std::vector<std::filesystem::path>& inputs,
                    const std::filesystem::path& output, const MergeOptions& merging = {},
                    const ConvertOptions& options = {});

/// Copies one brain of an ensemble into a new .thalia file, with the names, the metadata, the
/// growth history and the training steps that it had alone; for a delta as convert().
/// @throws UsageError (wrong_state) where the input is no ensemble, (not_found) for a prefix that
/// it does not have; FormatError, IntegrityError, IoError; UnsupportedError as extract(). On an
/// error nothing is left at `output`.
ConvertResult extract_brain(const std::filesystem::path& input, std::string_view prefix,
                            const std::filesystem::path& output,
                            const ConvertOptions& options = {});

// From one version of the format to another: a new file, the old one stays.
//
//   thalia::MigrateResult done = thalia::migrate("old.thalia", "new.thalia", {1, 0});
//   const auto losses =
//       thalia::migrate("new.thalia", "old.thalia", {0, 1}, {.across_major = true}).losses;
//
// docs/format/format.md, "Versions".

struct Migration {
  bool possible = false;
  bool lossy = false;  ///< the target has no place for some of what a source may hold
  /// True where nobody has to ask for it beyond naming the target: to the same version or a newer
  /// one. Otherwise MigrateOptions::across_major.
  bool automatic = false;
  std::string reason;  ///< one sentence
};

/// Between 0.1 and 1.0, and from each to itself. Files of other minor versions of these are read
/// too. Any thread.
Migration can_migrate(const FormatVersion& from, const FormatVersion& to);

struct MigrateOptions {
  /// Called once before anything is written, with MigrateResult::losses if there are any. What
  /// it throws ends the migration.
  std::function<void(const std::vector<std::string>& losses)> on_losses{};
  /// Down across a major version, with what it loses.
  bool across_major = false;
  ChainOptions chain{};  ///< of the input
  /// For a 1.0 target, whose timestamp is by default the source's; durability counts for all.
  SaveOptions save{};
};

struct MigrateResult : RewriteResult {
  FormatVersion from;
  FormatVersion to;
  std::vector<std::string> losses;    ///< what the target has no place for, one sentence each
  std::vector<std::string> warnings;  ///< about the source
};

/// Writes the state of `source` to `target`, whole or not at all, as a file of another version. A
/// target whose name ends in .zst or .lz4 is compressed as a whole.
/// @throws UnsupportedError (unsupported_version) where can_migrate() says no, with its reason;
/// (unsupported_feature) for what neither version has a place for, naming it, and for a delta;
/// UsageError (bad_argument) if it is not automatic and was not asked for, or where source and
/// target are one file; IoError, FormatError, IntegrityError.
MigrateResult migrate(const std::filesystem::path& source, const std::filesystem::path& target,
                      const FormatVersion& target_version, const MigrateOptions& options = {});

}  // namespace thalia
