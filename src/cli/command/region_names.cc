#include "cli/command/region_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggestion.h"
#include "cli/terminal/escape.h"
#include "cli/terminal/option.h"
#include "model/precision/glob.h"
#include "thalia/error.h"
#include "thalia/reader.h"

namespace thalia::cli {
namespace {

bool is_region_pattern(std::string_view name) {
  return name.find_first_of("*?") != std::string_view::npos;
}

// Each once, whatever else named it before.
void add_fitting(const Reader& reader, const std::string& path, const std::string& pattern,
                 std::vector<std::string>& found) {
  bool fits = false;
  for (std::uint32_t i = 0; i < reader.region_count(); ++i) {
    const std::string name(reader.region(i).name());
    if (!model::matches_path(pattern, name)) continue;
    fits = true;
    if (std::ranges::find(found, name) == found.end()) found.push_back(name);
  }
  if (fits) return;
  const std::string hint = suggestion_text(pattern, [&](Suggestion& suggestion) {
    for (std::uint32_t i = 0; suggestion.is_open() && i < reader.region_count(); ++i)
      suggestion.offer(reader.region(i).name());
  });
  throw UsageError(ErrorCode::not_found,
                   fmt::format("no region fits '{}'{}", escape(pattern), hint),
                   {.path = path, .field = "--regions"});
}

}  // namespace

void add_region_names(CLI::App& app, std::string& list, const char* offers) {
  offer(add_option(app, "--regions A,B", list,
                   "Names of regions, or patterns of them, separated by commas; a comma in a name "
                   "is \\x2c")
            ->required(),
        offers);
}

std::vector<std::string> region_names(std::string_view list, const std::string& path,
                                      ReadOptions options) {
  std::vector<std::string> names;
  std::string_view rest = list;
  for (std::size_t comma; (comma = rest.find(',')) != std::string_view::npos;) {
    names.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(comma + 1);
  }
  names.emplace_back(rest);
  // Without escapes and patterns the names are final, and the file need not be opened.
  if (unescape_name(list) == list && !is_region_pattern(list)) return names;
  options.verification = Verification::off;
  const Reader reader = Reader::open(path, options);
  std::vector<std::string> found;
  for (const std::string& name : names) {
    // The name as it was typed comes first, as it may look like an escape, or a pattern.
    const std::string unescaped = unescape_name(name);
    if (reader.find_region(name)) {
      found.push_back(name);
    } else if (reader.find_region(unescaped) || !is_region_pattern(name)) {
      found.push_back(unescaped);
    } else {
      add_fitting(reader, path, unescaped, found);
    }
  }
  return found;
}

}  // namespace thalia::cli
