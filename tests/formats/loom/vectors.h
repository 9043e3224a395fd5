// Files that the original program wrote, and what it said of them.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/formats/loom.h"

namespace thalia::test {

/// A JSON value of an expectation.
struct Expected {
  std::string token;  ///< of a number, boolean or null
  std::string text;
  std::vector<Expected> elements;
  std::map<std::string, Expected> members;

  bool has(const std::string& name) const { return members.contains(name); }
  const Expected& at(const std::string& name) const { return members.at(name); }
  std::uint64_t number() const { return std::stoull(token); }
};
Expected read_expected(const std::filesystem::path& path);

/// The f32 that eight hexadecimal digits spell, and all of a list.
float float_of(const std::string& bits);
std::vector<float> floats_of(const Expected& list);
/// Little-endian elements of {"kind":…,"v":[…]}.
std::vector<std::byte> elements_of(const Expected& native);

/// What did not agree, a line each; none of a vector that agrees in everything.
/// @param stem path of a vector without its ending.
std::vector<std::string> check_network_vector(const std::filesystem::path& stem);
std::vector<std::string> check_legacy_vector(const std::filesystem::path& stem);
std::vector<std::string> check_architecture_vector(const std::filesystem::path& stem);

/// The paths of all vectors of a folder, without their endings, sorted.
std::vector<std::filesystem::path> vector_stems(const std::filesystem::path& folder);

}  // namespace thalia::test
