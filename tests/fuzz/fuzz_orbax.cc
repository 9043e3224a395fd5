// Reads any bytes as the metadata of a folder that looks like Orbax's, and as metadata that such a
// folder is made with. What is accepted survives being written and read again.

#include <string>
#include <string_view>

#include "formats/orbax/metadata.h"
#include "formats/orbax/source_metadata.h"
#include "fuzz/fuzz_target.h"
#include "thalia/error.h"

using namespace thalia;

namespace {
namespace orbax_target {

constexpr unsigned kDepth = 64;

void run(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ReadLimits limits;
  limits.max_json_depth = kDepth;
  try {
    const formats::orbax::Metadata metadata = formats::orbax::parse_metadata(text, limits);
    for (const auto& array : metadata.arrays) {
      const auto names = *formats::orbax::array_path(array.name);
      for (const std::string& name : names)
        FUZZ_REQUIRE(!name.empty() && name != ".." && name.find('/') == std::string::npos);
    }
    const std::string once = formats::orbax::make_metadata(metadata, kDepth);
    const auto again = formats::orbax::parse_metadata(once, limits);
    FUZZ_REQUIRE(formats::orbax::make_metadata(again, kDepth) == once);
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
  try {
    const auto source = formats::orbax::source_metadata_from_json(text, kDepth);
    for (const auto& [key, value] : source.others) FUZZ_REQUIRE(key != "arrays");
  } catch (const FormatError&) {
  }
}

}  // namespace orbax_target
}  // namespace

FUZZ_TARGET(orbax)
