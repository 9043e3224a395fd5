// The options of every command that compresses: one list of codecs, one check of the level.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <string>

#include "thalia/options.h"

namespace thalia::cli {

struct CompressionArguments {
  struct Named {
    std::optional<Codec> codec;  ///< nullopt: not named
    bool automatic = false;      ///< it is to be chosen
  };
  Named named;
  int level = 0;

  /// `by_default` is what help says about saving without --codec.
  void declare(CLI::App& app, std::span<const Codec> codecs, const std::string& by_default,
               bool with_auto = false);
  /// @throws UsageError if the codec has no such level. If none is named, `otherwise` counts,
  /// and of nullopt the library, which chooses, checks the level.
  Compression compression(std::optional<Codec> otherwise) const;
};

/// All that a checkpoint's payloads can be stored in.
std::span<const Codec> all_codecs();

}  // namespace thalia::cli
