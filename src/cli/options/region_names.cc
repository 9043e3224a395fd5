#include "cli/options/region_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/suggestion.h"
#include "cli/terminal/escape.h"
#include "cli/terminal/option.h"
#include "state/precision/glob.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/formats/file_facts.h"
#include "thalia/formats/safetensors.h"
#include "thalia/reader.h"

namespace thalia::cli {
namespace {

bool is_region_pattern(std::string_view name) {
  return name.find_first_of("*?") != std::string_view::npos;
}

void add_regions(const std::filesystem::path& path, const ReadOptions& options,
                 std::vector<std::string>& known) {
  const Reader reader = Reader::open(path, options);
  for (std::uint32_t i = 0; i < reader.region_count(); ++i) {
    std::string name(reader.region(i).name());
    if (std::ranges::find(known, name) == known.end()) known.push_back(std::move(name));
  }
}

// The regions of a file; for a model in several files, those of all of them.
std::vector<std::string> regions_in(const std::string& path, const ReadOptions& options) {
  std::vector<std::string> known;
  if (detect_format(path, options.input.access) != FileFormat::thalia_shards) {
    add_regions(path, options, known);
    return known;
  }
  for (const std::string& file : read_model_index(path, options.input.limits).files)
    add_regions(folder_of(path) / file, options, known);
  return known;
}

// Each once, whatever else named it before.
void add_fitting(const std::vector<std::string>& known, const std::string& path,
                 const std::string& pattern, std::vector<std::string>& found) {
  bool fits = false;
  for (const std::string& name : known) {
    if (!state::matches_path(pattern, name)) continue;
    fits = true;
    if (std::ranges::find(found, name) == found.end()) found.push_back(name);
  }
  if (fits) return;
  const std::string hint = suggestion_among(pattern, known, std::identity());
  throw UsageError(ErrorCode::not_found,
                   fmt::format("no region fits '{}'{}", escape(pattern), hint),
                   {.path = path, .field = "--regions"});
}

}  // namespace

CLI::Option* add_region_names(CLI::App& app, std::string& list, const char* offers) {
  return offer(
      add_option(app, "--regions A,B", list,
                 "Names of regions, or patterns of them, separated by commas; a comma in a name "
                 "is \\x2c"),
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
  const std::vector<std::string> known = regions_in(path, options);
  const auto is_known = [&](const std::string& name) {
    return std::ranges::find(known, name) != known.end();
  };
  std::vector<std::string> found;
  for (const std::string& name : names) {
    // The name as it was typed comes first, as it may look like an escape, or a pattern.
    const std::string unescaped = unescape_name(name);
    if (is_known(name)) {
      found.push_back(name);
    } else if (is_known(unescaped) || !is_region_pattern(name)) {
      found.push_back(unescaped);
    } else {
      add_fitting(known, path, unescaped, found);
    }
  }
  return found;
}

}  // namespace thalia::cli
