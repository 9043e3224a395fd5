// Growth of one region of a .thalia file, in place: other regions are neither read nor moved.
//
//   thalia::grow_file(path, "cortex", 32, {.seed = 7});
//
// docs/format/growth.md, "Growth"; docs/format/writing.md, "In-place append".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/append.h"
#include "thalia/growth.h"

namespace thalia {

struct GrowFileResult {
  GrowthResult growth;
  AppendResult append;  ///< all zero where nothing was done
  /// Names of tensors that were quantized and have grown: they are dense now.
  std::vector<std::string> restored;
};

/// grow_output() of a region of a file, which is read, grown and appended with the connections that
/// touch it; the growth history in the metadata gets an event. Works on any file of version 1, a
/// tensor that no state names having the path that it is loaded under: COMPONENT.NAME, as a rule.
/// Tensors that do not grow are taken over as they are stored. Those that do keep element type and
/// encoding, but for quantized ones, which become dense; where the region's are compressed, they
/// are too, unless the options name a codec. A crash leaves the old state or the new one.
/// GrowthOptions::grow_targets is refused.
/// @throws as Appender and grow_output().
GrowFileResult grow_file(const std::filesystem::path& path, std::string_view region,
                         std::uint32_t n_new, const GrowthOptions& growth = {},
                         const AppendOptions& options = {});

/// The same of grow_source(), by `n_new` more inputs.
GrowFileResult grow_file_source(const std::filesystem::path& path, std::string_view region,
                                std::string_view source, std::uint32_t n_new,
                                const GrowthOptions& growth = {},
                                const AppendOptions& options = {});

}  // namespace thalia
