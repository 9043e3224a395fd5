#include "cli/command/region_names.h"

#include "cli/terminal/escape.h"
#include "cli/terminal/option.h"
#include "thalia/reader.h"

namespace thalia::cli {

void add_region_names(CLI::App& app, std::string& list, const char* offers) {
  offer(add_option(app, "--regions A,B", list,
                   "Names of regions, separated by commas; a comma in a name is \\x2c")
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
  // Without escapes the names are final, and the file need not be opened.
  if (unescape_name(list) == list) return names;
  options.verification = Verification::off;
  const Reader reader = Reader::open(path, options);
  for (std::string& name : names) {
    // The name as it was typed comes first, as it may look like an escape.
    if (!reader.find_region(name)) name = unescape_name(name);
  }
  return names;
}

}  // namespace thalia::cli
