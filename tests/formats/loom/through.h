// A file through its source and a sink, as conversions bring it to another file.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "formats/loom/opened.h"

namespace thalia::test {

/// What the sink wrote of all that the source has. `edit` may change what the sink is told.
std::string through(const formats::OpenedFile& source, formats::WriteTensors write,
                    const std::function<void(formats::SinkInput&)>& edit = {},
                    std::vector<std::string>* losses = nullptr);

}  // namespace thalia::test
