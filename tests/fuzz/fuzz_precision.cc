// Reads any text as a precision policy, and takes what follows its first line for the path of
// a tensor. What is accepted survives being written and read again, and decides for every type.

#include <algorithm>
#include <string>
#include <string_view>

#include "fuzz/fuzz_target.h"
#include "thalia/error.h"
#include "thalia/state/precision.h"

using namespace thalia;

namespace {
namespace precision_target {

bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}

void run(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view text = input.substr(0, input.find('\n'));
  const std::string_view path = input.substr(std::min(text.size() + 1, size));
  PrecisionPolicy policy;
  try {
    policy = parse_precision_policy(text);
  } catch (const UsageError& error) {
    FUZZ_REQUIRE(error.context().field == "precision");
    return;
  }
  FUZZ_REQUIRE(parse_precision_policy(to_string(policy)) == policy);
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    const auto role = static_cast<Role>(size % kRoleCount);
    const DType stored = stored_dtype(policy, path, role, dtype, size << 12);
    FUZZ_REQUIRE(is_floating(dtype) ? is_floating(stored) : stored == dtype);
    FUZZ_REQUIRE(!policy.keeps_all() || stored == dtype);
  }
}

}  // namespace precision_target
}  // namespace

FUZZ_TARGET(precision)
