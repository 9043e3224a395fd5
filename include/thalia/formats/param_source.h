// ParamSource: the tensors of a file, of any format that is read, one at a time and when they are
// needed, with a part of them kept in memory. The idea of gpt.rs's streaming of weights: a model
// that does not fit is run through, layer by layer, and what comes again soon stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/detail/held.h"
#include "thalia/formats/param_id.h"
#include "thalia/options.h"
#include "thalia/tensor_layout.h"
#include "thalia/tensor_value.h"

namespace thalia {

/// What stays in memory. By itself nothing does.
struct ParamSourceOptions {
  /// Bytes of tensors that stay. The smallest of the limits that are set counts; where none is,
  /// there is no limit, and only pinned tensors stay.
  std::optional<std::uint64_t> budget_bytes{};
  /// The same as a share of all tensors' bytes, 0 to 1.
  std::optional<double> budget_share{};
  std::optional<std::uint64_t> budget_cap_bytes{};  ///< what the machine allows, whatever is asked
  /// Tensors of layers below this number are pinned: once loaded they stay as long as the source.
  /// prefetch() loads them.
  std::uint64_t prefetch_layers = 0;
  /// Tensors of at most so many bytes are pinned. nullopt: none for being small.
  std::optional<std::uint64_t> small_bytes{};
  /// Whose keys the parameters have; nullopt: next_model_namespace().
  std::optional<ModelNamespaceId> model{};
};

struct ParamInfo {
  std::string name;
  TensorLayout layout{};
  std::uint64_t bytes = 0;
  std::uint64_t stored_bytes = 0;   ///< of the file, that it is made of: at most the whole file
  std::optional<BaseParamId> id{};  ///< of an ASCII name
  std::optional<ParamKey> key{};    ///< of that in the source's namespace
  /// The first part of the name, cut at '.', that is a number and not the last part: 3 of
  /// "blocks.3.ln_1.gamma", "model.layers.3.mlp.0.weight".
  std::optional<std::uint64_t> layer{};
  bool pinned = false;  ///< stays once it was loaded, where the budget has room
};

struct ParamStatistics {
  std::uint64_t hits = 0;    ///< loads that read nothing: kept, or being read for another
  std::uint64_t misses = 0;  ///< loads that read the file
  std::uint64_t loaded_bytes = 0;
  std::uint64_t evictions = 0;  ///< tensors that went to make room
  std::uint64_t resident_tensors = 0;
  std::uint64_t resident_bytes = 0;  ///< kept now; at most the budget
  std::uint64_t pinned_bytes = 0;    ///< of these, pinned
};

/// A tensor that was read is kept if it is pinned, or if there is a budget; but not if it is
/// larger than what the budget leaves after pinned ones. To make room those that were used longest
/// ago go, never pinned ones. What load() has handed out lives as long as somebody holds it, and
/// counts no more. A cheap handle whose copies share what is kept. Any number of threads: several
/// tensors are read at once, and one that several ask for is read once.
class ParamSource {
 public:
  struct Impl;
  /// For functions of the library that open files.
  explicit ParamSource(std::shared_ptr<Impl> impl) noexcept;

  const std::vector<ParamInfo>& params() const noexcept;  ///< in the order of the file
  /// nullptr if there is none. Valid as long as the source.
  const ParamInfo* find(std::string_view name) const noexcept;
  const ParamInfo* find(BaseParamId id) const noexcept;

  ModelNamespaceId model() const noexcept;
  std::uint64_t total_bytes() const noexcept;
  std::optional<std::uint64_t> budget_bytes() const noexcept;  ///< nullopt: no limit

  /// With bytes of its own, aligned for its type, whatever becomes of the file.
  /// @throws UsageError (not_found); what reading the tensor throws: FormatError, IntegrityError,
  /// IoError that name file and tensor. The next call tries again.
  Tensor load(std::string_view name) const;
  Tensor load(BaseParamId id) const;

  /// Loads the tensors of the first `prefetch_layers` layers, layer by layer, as far as they fit;
  /// what is kept already is not read. @throws as load(); CancelledError.
  void prefetch(const Work& work = {}) const;

  ParamStatistics statistics() const;

 private:
  detail::Shared<Impl> impl_;
};

}  // namespace thalia
