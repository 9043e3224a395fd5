// What differs between two checkpoints: from tables and content hashes, or value by value.
//
//   thalia::Diff diff = thalia::diff(thalia::Reader::open(a), thalia::Reader::open(b));
//   for (const thalia::RegionDiff& region : diff.regions) report(region.name);
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/options.h"
#include "thalia/reader.h"
#include "thalia/region.h"
#include "thalia/state/delta.h"
#include "thalia/state/tensor_value.h"
#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia {

enum class Change { added, removed, changed };

/// "added", "removed", "changed". Static storage.
std::string_view change_name(Change change) noexcept;

/// A number, a text or a member of a JSON object that differs. Both sides as JSON texts, empty
/// if there is none.
struct FieldDiff {
  /// For a member of a member, the keys with dots between them: "training.step". A key that has
  /// dots or quotation marks of its own, or is empty, is a JSON text: training."lr.max".
  std::string field;
  std::string before;
  std::string after;
  Change change() const noexcept {
    return before.empty() ? Change::added : after.empty() ? Change::removed : Change::changed;
  }
};

/// What the directory says of a tensor.
struct TensorFacts {
  TensorLayout layout{};
  std::optional<Role> role{};  ///< nullopt: the file's format has none
  std::uint64_t logical_bytes = 0;
  std::optional<Digest128> content_hash{};  ///< the same
  /// Whether the file has codes, and these facts describe the elements restored from them; diff()
  /// of two Readers compares the hashes of the codes instead.
  bool restored = false;
};

/// How the elements of two tensors differ. Complex numbers differ by a magnitude, sparse tensors
/// have zeros where they store nothing, quantized ones are restored, and -0 is 0. NaN is the same
/// as a NaN of the same bits, widened to f64 where the types differ, and no other. Integers of 64
/// bits are compared exactly among themselves, else as f64.
struct ValueDiff {
  std::string skipped{};         ///< why nothing was compared; empty if it was
  Shape compared{};              ///< the shape, or where shapes differ their common corner
  std::uint64_t elements = 0;    ///< of that
  std::uint64_t differing = 0;   ///< of which, by more than the tolerance
  std::uint64_t not_finite = 0;  ///< of these: the difference is no finite f64, as one is NaN
  double max_difference = 0;     ///< of the others, absolute
  double rms_difference = 0;     ///< over all elements but the not finite
  // Over pairs of finite elements, taken as one vector each.
  /// The norm of the difference over the norm of the tensor before; nullopt if that is 0.
  std::optional<double> relative_difference{};
  std::optional<double> cosine{};  ///< of the angle between them; nullopt where one is all zeros
};

struct TensorDiff {
  std::string name;  ///< of a connection's matrix "weights" or "delays"
  Change change = Change::changed;
  std::optional<TensorFacts> before{};
  std::optional<TensorFacts> after{};
  std::optional<ValueDiff> values{};  ///< of changed tensors, where DiffOptions asked for it

  // Only for changed tensors.
  bool dtype_changed() const noexcept { return before->layout.dtype != after->layout.dtype; }
  bool shape_changed() const noexcept { return before->layout.shape != after->layout.shape; }
  bool role_changed() const noexcept { return before->role != after->role; }
  /// Also from narrow to wide indices.
  bool encoding_changed() const noexcept {
    return before->layout.encoding != after->layout.encoding ||
           before->layout.wide_indices != after->layout.wide_indices;
  }
  /// The logical bytes, by their hashes; those of a tensor with another encoding always differ.
  /// If there are no hashes, the elements by the values.
  bool content_changed() const noexcept;
};

struct RegionDiff {
  std::string name;
  Change change = Change::changed;
  /// n_neurons, n_inputs, neuron_type, homeostatic_updated.
  std::vector<FieldDiff> facts{};
  std::vector<FieldDiff> config{};    ///< by the keys of the object
  std::vector<FieldDiff> metadata{};  ///< the same
  std::vector<TensorDiff> tensors{};  ///< by name
  std::uint64_t tensor_count = 0;     ///< that one side or both have
  std::uint64_t logical_bytes = 0;    ///< of the side that has it, or the later one
};

struct ConnectionDiff {
  std::string source;  ///< as ConnectionView has them
  std::string target;
  Change change = Change::changed;
  std::vector<TensorDiff> matrices{};
};

struct Diff {
  /// version, training_steps, total_neurons, total_synapses, base_checksum, base_step.
  std::vector<FieldDiff> header{};
  /// What two saves of one state differ in: timestamp, generation, file_uuid, checksum_type. No
  /// difference by itself.
  std::vector<FieldDiff> storage{};
  std::vector<FieldDiff> metadata{};  ///< by the keys of the object
  std::vector<RegionDiff> regions{};  ///< in the order of the earlier file, then those added
  std::vector<ConnectionDiff> connections{};
  /// The tensors of files that are compared by the names of tensors alone; diff() leaves it empty.
  std::vector<TensorDiff> tensors{};
  std::uint64_t same_regions = 0;
  std::uint64_t same_connections = 0;
  std::uint64_t same_tensors = 0;  ///< that `tensors` might have had

  /// Whether nothing differs but the storage.
  bool same() const noexcept {
    return header.empty() && metadata.empty() && regions.empty() && connections.empty() &&
           tensors.empty();
  }
};

struct DiffOptions {
  bool values = false;  ///< also compare the elements of changed tensors, which reads them
  /// Patterns as in a PrecisionPattern: if there are some, tensors and matrices that fit one are
  /// compared, and nothing else; counts are of these, and of regions and connections that have
  /// some.
  std::vector<std::string> tensors{};
  /// Elements that differ by at most absolute_tolerance + relative_tolerance x the size of the one
  /// before are no difference. Where one is not 0, elements are compared as with `values`, and a
  /// tensor is changed only by elements that are further apart, by its shape or its role: another
  /// type or encoding does not exist.
  double absolute_tolerance = 0;
  double relative_tolerance = 0;
  InputOptions input{};  ///< the limits
  Work work{};  ///< all but memory_bytes; progress is of the elements' bytes, of both sides
};

/// Without values no payload is read, and differences in content are those of the content hashes in
/// the directories. With values, tensors whose bytes differ are read a piece at a time, on all
/// threads; in memory are 1 MiB a thread and sparse tensors that are stored compressed.
/// Names of JSON objects are compared as texts, their values by meaning: white space, escapes and
/// the order of keys are no difference, but 1 and 1.0 are.
/// @throws FormatError, IntegrityError, IoError; CancelledError; UsageError (not_found) for a
/// pattern that fits no tensor of either; (bad_argument) for a tolerance that is no finite number
/// from 0 on.
Diff diff(const Reader& before, const Reader& after, const DiffOptions& options = {});
/// The same of the states of deltas, or of full files: elements are read through the chains, in
/// parts where a tensor is dense, else whole, one a thread at most. What a file says of its base is
/// left out.
Diff diff(const ChainReader& before, const ChainReader& after, const DiffOptions& options = {});

/// What differs between two JSON objects, as in Diff::metadata; an empty text is one without
/// members.
/// @throws FormatError (bad_json, limit_exceeded).
std::vector<FieldDiff> diff_metadata(std::string_view before, std::string_view after,
                                     const ReadLimits& limits = {});

/// A tensor of any file, or in memory, whose elements are compared.
struct ComparedTensor {
  DType dtype = DType::f32;
  Shape shape{};
  SliceReader read{};  ///< as statistics_of() takes it
  /// In place of read(): all of it, dense or sparse. Called once; let go once compared.
  std::function<Tensor()> load{};
  bool sparse = false;           ///< what load() returns
  std::uint64_t entries = 0;     ///< of it, if that is sparse
  std::uint64_t read_bytes = 0;  ///< about, for progress
};

/// Compares the elements of two tensors. Among the options, tolerances, input and work count.
/// @throws what reading them throws; UsageError (bad_argument) for a tolerance that is no finite
/// number from 0 on; CancelledError.
ValueDiff diff_values(const ComparedTensor& before, const ComparedTensor& after,
                      const DiffOptions& options = {});

}  // namespace thalia
