// Facts of a file as a JSON object.
#pragma once

#include <string>

#include "inspect/file_facts.h"

namespace thalia::inspect {

/// The object that docs/use/json.md calls info.
std::string facts_json(const DescribedFile& facts);

}  // namespace thalia::inspect
