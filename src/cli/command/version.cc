// thalia version
#include <string>
#include <string_view>
#include <vector>

#include "cli/command/command.h"
#include "cli/options/compression_arguments.h"
#include "cli/print/json_result.h"
#include "thalia/formats/file_facts.h"
#include "thalia/tensor.h"
#include "thalia/version.h"

namespace thalia::cli {
namespace {

void print_version(Output& out, bool as_json) {
  const std::string format = FormatVersion{}.to_string();
  std::vector<std::string_view> codecs;
  for (const Codec codec : all_codecs()) codecs.push_back(codec_name(codec));
  std::vector<std::string_view> formats;
  for (const FileFormat one : file_formats()) formats.push_back(file_format_name(one));
  if (!as_json) {
    out.print("thalia {}\nformat  {}\nfiles   {}\ncodecs  {}\n", library_version(), format,
              fmt::join(formats, ", "), fmt::join(codecs, ", "));
    return;
  }
  print_object(out, "thalia.version.1", [&](JsonWriter& json) {
    json.member("library", library_version()).member("format_version", format);
    add_list(json, "formats", formats);
    add_list(json, "codecs", codecs);
  });
}

}  // namespace

Run declare_version(CLI::App& app) {
  app.description(
      "Prints the versions of the library and of the file format, and what was built in.");
  return [](const Session& session) -> int {
    print_version(session.out, session.common.json);
    return kDone;
  };
}

}  // namespace thalia::cli
