// Identities of parameters, as gpt.rs has them: 128 bits that follow from a name, and from a name
// in a namespace.
//
//   const thalia::BaseParamId id = thalia::base_param_id("blocks.0.ln_1.gamma");
//   const std::string text = id.to_string();   // cdd70aa52b70c653c42052aa0617003b
//   const std::string key = thalia::param_key(thalia::next_model_namespace(), id).to_string();
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/state/tensor_value.h"
#include "thalia/types.h"

namespace thalia {

/// A 128-bit number as a type of its own: ids of one kind are not taken for those of another.
template <typename Kind>
struct Id128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  /// 32 lower-case hexadecimal digits, the most significant first.
  std::string to_string() const;
  /// nullopt for all that to_string() does not give.
  static std::optional<Id128> from_string(std::string_view digits) noexcept;
  /// 16 bytes in the order of a file, the least significant first: for a BaseParamId the beginning
  /// of the digest.
  std::array<std::byte, 16> disk_bytes() const noexcept;
  static Id128 from_disk_bytes(std::span<const std::byte, 16> bytes) noexcept;

  friend auto operator<=>(const Id128&, const Id128&) = default;
};

/// Identifies a parameter, whichever model it is in. 0 means "not stored" in a file.
using BaseParamId = Id128<struct BaseParamIdKind>;
/// Identifies a model among those that a process has loaded; in no file.
using ModelNamespaceId = Id128<struct ModelNamespaceIdKind>;
/// Identifies a parameter of one model: the key of caches.
using ParamKey = Id128<struct ParamKeyKind>;

extern template struct Id128<BaseParamIdKind>;
extern template struct Id128<ModelNamespaceIdKind>;
extern template struct Id128<ParamKeyKind>;

/// The first 16 bytes of the BLAKE3 digest of the name, as a little-endian number.
/// @throws UsageError (bad_argument) for a name with a byte that is not ASCII: it has no id.
BaseParamId base_param_id(std::string_view name);

/// The same of "gpt-rs:param-key:v1", the namespace and the id, 16 bytes each in disk order.
ParamKey param_key(ModelNamespaceId model, BaseParamId id) noexcept;

/// 1, 2, 3, …: a different one at each call in this process. Any thread.
ModelNamespaceId next_model_namespace() noexcept;

}  // namespace thalia

/// @cond that doxygen looks for in namespace std
// The low half is as good as random where the id is a digest's.
template <typename Kind>
struct std::hash<thalia::Id128<Kind>> {
  std::size_t operator()(const thalia::Id128<Kind>& id) const noexcept {
    return static_cast<std::size_t>(id.low ^ (id.high * 0x9e3779b97f4a7c15u));
  }
};
/// @endcond

namespace thalia {

// ParamSource: the tensors of a file, of any format that is read, one at a time and when they are
// needed, with a part of them kept in memory. The idea of gpt.rs's streaming of weights: a model
// that does not fit is run through, layer by layer, and what comes again soon stays.

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
  const ParamInfo* find(ParamKey key) const noexcept;

  ModelNamespaceId model() const noexcept;
  std::uint64_t total_bytes() const noexcept;
  std::optional<std::uint64_t> budget_bytes() const noexcept;  ///< nullopt: no limit

  /// With bytes of its own, aligned for its type, whatever becomes of the file.
  /// @throws UsageError (not_found); what reading the tensor throws: FormatError, IntegrityError,
  /// IoError that name file and tensor. The next call tries again.
  Tensor load(std::string_view name) const;
  Tensor load(BaseParamId id) const;
  Tensor load(ParamKey key) const;

  /// Loads the tensors of the first `prefetch_layers` layers, layer by layer, as far as they fit;
  /// what is kept already is not read. @throws as load(); CancelledError.
  void prefetch(const Work& work = {}) const;

  ParamStatistics statistics() const;

 private:
  detail::Shared<Impl> impl_;
};

/// Forms that are derived from parameters, packed, transposed, of another type: each is made once,
/// and kept by the parameter's key and its own name, so that one resolver serves all models of a
/// process. gpt.rs's ParamResolver.
///
///   const auto packed = resolver.resolve<Packed>(*info.key, "packed",
///                                                [&] { return pack(source.load(*info.key)); });
///
/// Nothing goes by itself: forget() and clear() let go, and who holds a form keeps it. A cheap
/// handle whose copies share what is kept. Any number of threads: different forms are made at once,
/// and one that several ask for is made once.
class ParamResolver {
 public:
  ParamResolver();

  /// What make() returned when this form of this parameter was first asked for. Forms of the same
  /// name and of different types are different. make() may resolve other forms, but none that waits
  /// for this one.
  /// @throws what make() throws, and then nothing is kept; UsageError (wrong_state) where make()
  /// asks for what it makes.
  template <typename T, typename Make>
  std::shared_ptr<const T> resolve(ParamKey key, std::string_view form, const Make& make) const {
    return std::static_pointer_cast<const T>(resolve_any(
        key, form, typeid(T),
        [&]() -> std::shared_ptr<const void> { return std::make_shared<const T>(make()); }));
  }

  std::size_t size() const;  ///< forms that are kept
  /// All forms of a parameter, as after its numbers were changed. @return their number. A form that
  /// is being made meanwhile is given to those who wait for it, and not kept.
  std::size_t forget(ParamKey key) const;
  std::size_t clear() const;  ///< the same of all parameters

 private:
  struct Impl;
  std::shared_ptr<const void> resolve_any(
      ParamKey key, std::string_view form, const std::type_info& type,
      const std::function<std::shared_ptr<const void>()>& make) const;
  detail::Shared<Impl> impl_;
};

}  // namespace thalia
