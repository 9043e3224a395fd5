// Regions: named groups of tensors with a config, the unit of lazy loading.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "thalia/detail/held.h"
#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia {

std::string_view neuron_type_name(NeuronType type) noexcept;

struct RegionSpec {
  /// 1 to 65,535 bytes of UTF-8 without NUL, unique in the file.
  std::string name;
  std::string config_json = "{}";  ///< a JSON object, kept verbatim
  std::string metadata_json{};     ///< a JSON object, kept verbatim; empty: none
  std::uint32_t n_neurons = 0;
  std::uint32_t n_inputs = 0;
  NeuronType neuron_type = NeuronType::none;
  /// Seconds since 1970; written if there are homeostatic tensors.
  std::uint64_t homeostatic_updated = 0;
};

/// One region of an open file. A cheap handle that keeps the file's mapping alive. Immutable; any
/// number of threads may use one. Tensors are ordered by the bytes of their names and found by
/// binary search in the mapping. docs/format/format.md, "Region".
class RegionView {
 public:
  std::string_view name() const noexcept { return name_; }
  std::uint32_t index() const noexcept { return index_; }
  std::uint64_t offset() const noexcept { return offset_; }  ///< of its extent in the file
  std::uint64_t length() const noexcept { return length_; }
  std::uint32_t tensor_count() const noexcept;
  std::uint64_t logical_bytes() const noexcept;  ///< of its tensors together
  std::uint64_t stored_bytes() const noexcept;

  /// These read the region's first bytes. @throws FormatError, IntegrityError.
  std::uint32_t n_neurons() const;
  std::uint32_t n_inputs() const;
  NeuronType neuron_type() const;
  /// In the mapping; `{}` if there is none. Checked as JSON within the limits.
  std::string_view config_json() const;
  std::string_view metadata_json() const;  ///< the same; empty if there is none
  std::optional<std::uint64_t> homeostatic_updated() const;

  /// @throws UsageError (not_found) where i >= tensor_count(); FormatError.
  TensorView tensor(std::uint32_t i) const;
  std::optional<TensorView> find(std::string_view tensor_name) const;
  /// @throws UsageError (not_found) naming the region and the tensor.
  TensorView at(std::string_view tensor_name) const;

  /// Asks the kernel to read the region ahead, and returns at once.
  void prefetch() const;
  /// Reads the region into memory, on as many threads as ReadOptions say, and returns when it is
  /// there: its views then cause no page faults until memory runs short. Verifies nothing. (On
  /// Linux before 5.14 it does what prefetch() does.) @throws IoError, with EFAULT, where the file
  /// has become shorter or its disk fails, and a touch would raise SIGBUS; for a copied file the
  /// errors of its views.
  void populate() const;
  /// Gives the region's pages back to the system; they are read again when touched. Spans stay
  /// valid. Does nothing to a copied or writable file, whose bytes may exist nowhere else.
  void release() const;

 private:
  friend struct detail::Inside;
  RegionView(std::shared_ptr<const detail::OpenFile> file, std::uint32_t index);

  detail::Shared<const detail::OpenFile> file_;
  const format::DirectoryRegion* record_;
  std::string_view name_;
  std::uint32_t index_;
  std::uint64_t offset_ = 0;
  std::uint64_t length_ = 0;
};

}  // namespace thalia
