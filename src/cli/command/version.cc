// thalia version
#include <array>
#include <string>
#include <string_view>

#include "cli/command/command.h"
#include "json/writer.h"
#include "thalia/convert.h"
#include "thalia/format/constants.h"
#include "thalia/version.h"

namespace thalia::cli {
namespace {

void print_version(Output& out, bool as_json) {
  const std::string format =
      fmt::format("{}.{}.{}", format::kMajorVersion, format::kMinorVersion, format::kPatchVersion);
  const std::array codecs{"store", "zstd", "lz4", "plane_entropy", "packed_exponents"};
  const std::array formats{file_format_name(FileFormat::thalia),
                           file_format_name(FileFormat::safetensors),
                           file_format_name(FileFormat::thalia_0_1),
                           file_format_name(FileFormat::mckp), file_format_name(FileFormat::mst)};
  if (!as_json) {
    out.print("thalia {}\nformat  {}\nfiles   {}\ncodecs  {}\n", library_version(), format,
              fmt::join(formats, ", "), fmt::join(codecs, ", "));
    return;
  }
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("library", library_version()).member("format", format);
  json.key("formats").begin_array();
  for (const std::string_view name : formats) json.value(name);
  json.end_array().key("codecs").begin_array();
  for (const std::string_view name : codecs) json.value(name);
  json.end_array().end_object();
  out.write(text + "\n");
}

}  // namespace

Run declare_version(CLI::App& app) {
  app.description(
      "Prints the versions of the library and of the file format, and what was built in.");
  const auto as_json = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json, "As a JSON object");
  return [as_json](const Session& session) -> int {
    print_version(session.out, *as_json);
    return kDone;
  };
}

}  // namespace thalia::cli
