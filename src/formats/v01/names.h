// Names that the index of a 0.1 file has room for.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace thalia::formats {

inline constexpr std::string_view kPathwayPrefix = "pathway:";
inline constexpr std::string_view kStateRegion = "brain:state";
inline constexpr std::string_view kConnectivityRegion = "brain:connectivity";

/// Gives entries their names, each once. Names of up to 31 bytes stay. Longer ones become as many
/// whole characters as fit, '~', and 8 hex digits of their SHA-256.
class V01Names {
 public:
  /// The name for a region. pathway() puts the prefix of a pathway before it. @throws
  /// UnsupportedError (unsupported_feature) where the name is taken, also by what it would be read
  /// as.
  std::string region(std::string_view name);
  std::string pathway(std::string_view name);
  /// The name of the entry that a connection's end has.
  std::string known(std::string_view name) const;
  /// One sentence for each that was cut.
  std::vector<std::string> sentences() const;

 private:
  std::string give(const std::string& name);

  std::map<std::string, std::string, std::less<>> given_;  ///< by whole name
  std::unordered_set<std::string> taken_;                  ///< what was given
};

}  // namespace thalia::formats
