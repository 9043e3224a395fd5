// thalia version
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command/command.h"
#include "cli/command/compression_arguments.h"
#include "json/writer.h"
#include "thalia/convert.h"
#include "thalia/format/constants.h"
#include "thalia/tensor.h"
#include "thalia/version.h"

namespace thalia::cli {
namespace {

void print_version(Output& out, bool as_json) {
  const std::string format =
      fmt::format("{}.{}.{}", format::kMajorVersion, format::kMinorVersion, format::kPatchVersion);
  std::vector<std::string_view> codecs;
  for (const format::Codec codec : all_codecs()) codecs.push_back(codec_name(codec));
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
  return [](const Session& session) -> int {
    print_version(session.out, session.common.json);
    return kDone;
  };
}

}  // namespace thalia::cli
