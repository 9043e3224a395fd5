// The JSON text in a GPTRSCHK file. docs/format/gptrs.md, "Config".
#pragma once

#include <string_view>

#include "thalia/formats/gptrs.h"

namespace thalia::formats::gptrs {

/// @param take_untagged whether an object without a string `kind` that has the members of a GPT's
/// config is taken for one; `untagged` tells whether it was.
/// @throws FormatError as parse_gptrs_config(), without the section.
GptrsModelConfig read_config(std::string_view text, bool take_untagged, unsigned max_depth,
                             bool& untagged);

/// The text with a kind around it.
std::string tagged_gpt_config(std::string_view untagged_text);

}  // namespace thalia::formats::gptrs
