// The rules of gpt.rs by which names become ids. docs/format/gptrs.md, "Ids".
#include "thalia/formats/param_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/fail.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "format/little_endian.h"
#include "integrity/blake3.h"

namespace thalia::formats {
namespace {

constexpr std::string_view kParamKeyDomain = "gpt-rs:param-key:v1";

template <typename Id>
Id digest_prefix(ByteSpan input) noexcept {
  const Digest256 digest = integrity::blake3(input);
  return Id::from_disk_bytes(as_byte_span(digest.bytes).template first<16>());
}

}  // namespace
}  // namespace thalia::formats

namespace thalia {

template <typename Kind>
std::string Id128<Kind>::to_string() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

template <typename Kind>
std::optional<Id128<Kind>> Id128<Kind>::from_string(std::string_view digits) noexcept {
  if (digits.size() != 32) return std::nullopt;
  const auto upper = parse_hex(digits.substr(0, 16), 16), lower = parse_hex(digits.substr(16), 16);
  if (!upper || !lower) return std::nullopt;
  return Id128{*upper, *lower};
}

template <typename Kind>
std::array<std::byte, 16> Id128<Kind>::disk_bytes() const noexcept {
  const std::array<format::le64, 2> words = {low, high};
  std::array<std::byte, 16> bytes;
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

template <typename Kind>
Id128<Kind> Id128<Kind>::from_disk_bytes(std::span<const std::byte, 16> bytes) noexcept {
  std::array<format::le64, 2> words;
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return {words[1], words[0]};
}

template struct Id128<BaseParamIdKind>;
template struct Id128<ModelNamespaceIdKind>;
template struct Id128<ParamKeyKind>;

BaseParamId base_param_id(std::string_view name) {
  if (std::any_of(name.begin(), name.end(), [](char c) { return (c & 0x80) != 0; }))
    fail_argument(ErrorCode::bad_argument, "name", printable(name), "ASCII",
                  "a parameter's name has an id only if it is ASCII");
  return formats::digest_prefix<BaseParamId>(as_byte_span(name));
}

ParamKey param_key(ModelNamespaceId model, BaseParamId id) noexcept {
  std::array<std::byte, formats::kParamKeyDomain.size() + 32> input;
  std::memcpy(input.data(), formats::kParamKeyDomain.data(), formats::kParamKeyDomain.size());
  const auto model_bytes = model.disk_bytes(), id_bytes = id.disk_bytes();
  std::copy(model_bytes.begin(), model_bytes.end(),
            input.begin() + formats::kParamKeyDomain.size());
  std::copy(id_bytes.begin(), id_bytes.end(), input.end() - 16);
  return formats::digest_prefix<ParamKey>(input);
}

ModelNamespaceId next_model_namespace() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return {0, last.fetch_add(1, std::memory_order_relaxed) + 1};
}

}  // namespace thalia
