// Tensors of an open file as tensors of a plan: left where they lie, or taken along as they are
// stored.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "container/file/open_file.h"
#include "container/plan/file_plan.h"
#include "format/header.h"
#include "thalia/region.h"

namespace thalia::container {

/// @throws UnsupportedError if the file has what a writer of this version could not keep: a
/// newer minor version, feature bits, a base.
void check_can_be_rewritten(const format::Header& header);

/// What the directory says of tensor `number`, checked; no payload is read. Its plan region is for
/// the caller to set. @throws FormatError, IntegrityError; UnsupportedError for an encoding that
/// needs more than its payload.
TensorPlan tensor_in_place(const detail::OpenFile& file, std::uint32_t region,
                           std::uint32_t number);

/// The same with its stored bytes, borrowed from the mapping, to be stored elsewhere. They are
/// verified as the file's options say; with verification off, against the digests in the directory.
TensorPlan tensor_to_copy(const detail::OpenFile& file, std::uint32_t region, std::uint32_t number);

/// A region's headers and texts; an empty object if it has no config.
RegionSpec region_spec(const RegionView& region);
/// The same for another file. @throws FormatError (bad_name) for a name that none may have.
RegionSpec region_to_write(const RegionView& region);
/// A tensor's name for another file. @throws as region_to_write().
std::string name_to_write(const TensorView& tensor);

/// Everything that is alive in a file, with payloads borrowed from its mapping. @param change may
/// put another tensor in the place of a region's. @throws as check_can_be_rewritten() and
/// tensor_to_copy().
FilePlan copied_file(const detail::OpenFile& file,
                     const std::function<void(const RegionView&, TensorPlan&)>& change = {});

/// The tensors of a region; add_copied() adds them to a region of a plan. Two calls, because
/// reading may fail and must come first.
std::vector<TensorPlan> region_to_copy(const detail::OpenFile& file, const RegionView& region);
void add_copied(FilePlan& plan, std::uint32_t region, std::vector<TensorPlan> tensors);

/// Appends connection `number` of a file, with its matrices as `take` gives them: tensor_in_place
/// or tensor_to_copy.
using TakeTensor = TensorPlan(const detail::OpenFile&, std::uint32_t, std::uint32_t);
void add_stored_connection(FilePlan& plan, const detail::OpenFile& file, std::uint32_t number,
                           TakeTensor& take);

/// The matrices of the plan's last connection, under the names that its number gives them.
void set_matrices(FilePlan& plan, TensorPlan weights, std::optional<TensorPlan> delays);

}  // namespace thalia::container
