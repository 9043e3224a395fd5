// Findings of verify: made of an error of a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "thalia/error.h"
#include "thalia/verify.h"

namespace thalia::inspect {

Finding finding_of(const Error& error);
/// About the file as a whole.
Finding finding_of_file(Severity severity, ErrorCode code, std::string message);
/// At the end of the report's, or counted where it has `most`.
void add_finding(VerifyReport& report, Finding finding, std::uint64_t most);

/// "error", "warning".
std::string_view severity_name(Severity severity);

}  // namespace thalia::inspect
