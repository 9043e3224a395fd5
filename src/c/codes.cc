// Names and widths of the format's codes. They take any number, as C has no type that holds only
// valid ones.
#include "thalia/c/codes.h"

#include <string>
#include <string_view>

#include "base/fail.h"
#include "base/suggestion.h"
#include "c/arguments.h"
#include "c/guard.h"
#include "thalia/tensor.h"
#include "thalia/text.h"
#include "thalia/types.h"
#include "thalia/version.h"

using namespace thalia;
using namespace thalia::c;

namespace {

// All names are literals, and so end with NUL.
template <typename Code>
const char* name_of(std::uint32_t number, std::uint32_t count,
                    std::string_view (*name)(Code) noexcept) {
  return number < count ? name(static_cast<Code>(number)).data() : "unknown";
}

DType dtype_named(std::string_view name) {
  if (const auto dtype = dtype_from_name(name)) return *dtype;
  const std::string hint = suggestion_text(name, [](Suggestion& suggestion) {
    for (std::uint8_t i = 0; i < kDTypeCount; ++i)
      suggestion.offer(dtype_name(static_cast<DType>(i)));
  });
  throw UsageError(ErrorCode::not_found, "no such dtype" + hint,
                   {.field = "name", .value = "'" + printable(name) + "'"});
}

}  // namespace

const char* thalia_version(void) {
  return library_version().data();
}

const char* thalia_dtype_name(thalia_dtype dtype) {
  return name_of(dtype, kDTypeCount, dtype_name);
}
const char* thalia_role_name(thalia_role role) {
  return name_of(role, kRoleCount, role_name);
}
const char* thalia_encoding_name(thalia_encoding encoding) {
  return name_of(encoding, kEncodingCount, encoding_name);
}
const char* thalia_codec_name(thalia_codec codec) {
  return name_of(codec, kCodecCount, codec_name);
}

uint32_t thalia_dtype_bits(thalia_dtype dtype) {
  if (dtype >= kDTypeCount) return 0;
  return dtype_bits(static_cast<DType>(dtype));
}

thalia_status thalia_dtype_from_name(const char* name, thalia_dtype* dtype) {
  return guarded([&] {
    required(dtype, "dtype") = static_cast<thalia_dtype>(dtype_named(required_text(name, "name")));
  });
}
