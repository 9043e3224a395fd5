// What differs between two files of which not both are .thalia files: their tensors, paired by
// name.
#pragma once

#include <cstdint>
#include <filesystem>

#include "cli/tensor/tensor_source.h"
#include "thalia/delta.h"
#include "thalia/diff.h"

namespace thalia::cli {

struct FilesDiff {
  Diff diff;  ///< with tensors, and metadata where both files have one format
  /// Whether metadata were compared: formats lay them out in different ways.
  bool metadata_compared = false;
  /// Tensors that one of several names of the other file may belong to: paired with none of them.
  std::uint64_t ambiguous = 0;
};

/// What diff_values() takes of an opened tensor. @param bytes about what reading it reads.
ComparedTensor compared(const TensorSource& source, std::uint64_t bytes);

/// Tensors are paired by REGION/NAME, in which '.' and '/' are the same; one that finds none so, by
/// its name without the region, where one of each file has it. All pairs are read, whatever
/// options.values says, and quantized tensors and deltas restored: it is their elements that
/// differ, not how they are stored. In memory is a pair at a time, and of it what its formats
/// cannot read in parts.
/// @throws what opening the files throws; UsageError (not_found) for one of options.tensors that
/// fits nothing in either.
FilesDiff diff_files(const std::filesystem::path& before, const std::filesystem::path& after,
                     const ChainOptions& open, const DiffOptions& options);

}  // namespace thalia::cli
