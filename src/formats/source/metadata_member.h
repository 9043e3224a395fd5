// What a .thalia file made of another format's remembers of it is in its metadata, in a member
// of that format's name that "format" announces: {"format":NAME,NAME:{…}}. Anybody may have edited
// it since: a member that is not wholly of the form that its room gives it is untrusted.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/reader.h"
#include "json/writer.h"

namespace thalia::formats {

/// The key that announces source metadata.
inline constexpr std::string_view kFormatKey = "format";

/// {"format":NAME,NAME:{…}}, the members of the inner object as `write` writes them.
std::string source_metadata_json(std::string_view name,
                                 const std::function<void(JsonWriter&)>& write);

/// Where source metadata lie among the members of metadata.
struct SourceMetadataPlace {
  std::optional<std::size_t> own{};     ///< nullopt: there is none
  std::optional<std::size_t> format{};  ///< of "format", where it announces these

  explicit operator bool() const noexcept { return own.has_value(); }
};

/// Searches the metadata of any source. Calls `read` with each object called `name`, until it says
/// that one is of the form. No text at all has none. @throws FormatError for what is not a JSON
/// object.
SourceMetadataPlace find_source_metadata(std::string_view metadata, std::string_view name,
                                         unsigned max_depth,
                                         const std::function<bool(json::Value& object)>& read);

/// Visits all other members: "format" is one of them unless there are source metadata that it
/// announces.
void visit_others(std::string_view metadata, const SourceMetadataPlace& source, unsigned max_depth,
                  const json::MemberVisitor& visit);

// Both are false for a value that is no object, or has a key twice.

/// Whether `read` says of each member that it is of the form. The first that is not is the last
/// that it is asked of.
bool read_members(json::Value& value,
                  const std::function<bool(std::string_view key, json::Value& member)>& read);
/// Appends the members, which are texts.
bool read_texts(json::Value& value, std::vector<std::pair<std::string, std::string>>& texts);

}  // namespace thalia::formats
