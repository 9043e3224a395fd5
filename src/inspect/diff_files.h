// What differs between two files of any formats: of two .thalia files their states, else their
// tensors, paired by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "inspect/opened_tensor.h"
#include "thalia/formats/convert.h"
#include "thalia/state/delta.h"
#include "thalia/state/diff.h"

namespace thalia::inspect {

struct FilesDiff {
  FileFormat before_format = FileFormat::thalia;
  FileFormat after_format = FileFormat::thalia;
  /// If not both are .thalia files, with tensors, and metadata if both have one format.
  Diff diff{};
  /// Whether metadata were compared: formats lay them out in different ways, and patterns ask for
  /// tensors alone.
  bool metadata_compared = false;
  /// Tensors that one of several names of the other file may belong to: paired with none of them.
  std::uint64_t ambiguous = 0;
  /// As AnyFile::lacks().
  std::optional<std::string> before_lacks{};
  std::optional<std::string> after_lacks{};
};

/// What diff_values() takes of an opened tensor. @param bytes about what reading it reads.
ComparedTensor compared(const OpenedTensor& source, std::uint64_t bytes);

/// Compares two .thalia files as diff() of thalia/state/diff.h: without values or tolerances no
/// payload is read. If one has another format, tensors are paired by REGION/NAME, in which '.' and
/// '/' are the same; one that finds none so, by its name without the region, where one of each file
/// has it. All pairs are read then, whatever options.values says, and quantized tensors and deltas
/// restored: it is their elements that differ, not how they are stored. In memory is a pair at a
/// time, and of it what its formats cannot read in parts. One of options.tensors that is the name
/// of a region, typed as it is or as it is shown, stands for all of that region.
/// @throws what opening the files throws; UsageError (not_found, with the field "tensors") for one
/// of options.tensors that fits nothing in either.
FilesDiff diff_files(const std::filesystem::path& before, const std::filesystem::path& after,
                     const ChainOptions& open, const DiffOptions& options);

}  // namespace thalia::inspect
