// Networks of tests, in text and in memory.
#pragma once

#include <string>

#include "thalia/formats/loom.h"

namespace thalia::test {

/// A grid of 2x1x1x2: layers within layers, escapes, rules, mixed element types, one cell without
/// weights.
LoomNetwork nested_network();
/// Attention, norms and SwiGLU with Q4_0 components, embeddings and a tied head.
LoomNetwork transformer_network();
/// The file of a network, and the open file of a text.
std::string entity_text(const LoomNetwork& network);
EntityFile open_entity(const std::string& text, const ReadLimits& limits = {});
/// A file of any header, and the header of one layer, of whose members `layer` is the text.
std::string entity_with_header(const std::string& header, const std::string& payload = {});
std::string blob_header(const std::string& blobs, const std::string& layer = {});

/// One Dense layer of 5 to 3 with native int8 weights, as text; `edit` is put in for what it names.
std::string dense_json(const std::string& from = {}, const std::string& to = {});

}  // namespace thalia::test
