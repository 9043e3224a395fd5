#include "cli/options/compression_arguments.h"

#include <array>
#include <string_view>
#include <vector>

#include "cli/terminal/option.h"
#include "thalia/tensor.h"

namespace thalia::cli {
namespace {

constexpr std::array kCodecs{Codec::none, Codec::zstd, Codec::lz4, Codec::plane_entropy,
                             Codec::packed_exponents};
// A codec that is added to the library must be offered here as well.
static_assert(kCodecs.size() == kCodecCount);

std::string_view praise(Codec codec) {
  if (codec == Codec::plane_entropy) return " (small and fast, for floats)";
  return codec == Codec::packed_exponents ? " (fastest, for floats)" : "";
}

}  // namespace

std::span<const Codec> all_codecs() {
  return kCodecs;
}

void CompressionArguments::declare(CLI::App& app, std::span<const Codec> codecs,
                                   const std::string& by_default, bool with_auto) {
  std::vector<Choice<Named>> choices;
  std::string help;
  for (const Codec codec : codecs) {
    choices.push_back({codec_name(codec), {.codec = codec}});
    help += fmt::format("{}{}{}", help.empty() ? "" : ", ", codec_name(codec), praise(codec));
  }
  if (with_auto) {
    choices.push_back({"auto", {.codec = {}, .automatic = true}});
    help += ", or auto: what makes the save faster";
  }
  add_choice(app, "--codec CODEC", named, choices,
             fmt::format("{}; by default {}", help, by_default));
  add_option(app, "--compression-level N", level,
             "1 to 22 for zstd (default 3), 1 to 12 for lz4 (default 1)");
}

Compression CompressionArguments::compression(std::optional<Codec> otherwise) const {
  const std::optional<Codec> codec = named.codec ? named.codec : otherwise;
  if (codec || named.automatic) {
    const int most = named.automatic ? 0 : codec == Codec::zstd ? 22 : codec == Codec::lz4 ? 12 : 0;
    // 0 means that no level was given: the codec's default. Codecs without levels take no other.
    if (level < 0 || level > most) {
      throw UsageError(
          ErrorCode::bad_argument, {},
          {.field = "--compression-level",
           .value = std::to_string(level),
           .bound = most == 0 ? "a codec to set the level of" : fmt::format("1 to {}", most)});
    }
  }
  return {.codec = named.codec, .level = level};
}

}  // namespace thalia::cli
