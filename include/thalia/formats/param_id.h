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
#include <optional>
#include <span>
#include <string>
#include <string_view>

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
