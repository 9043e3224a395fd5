// A file through its source and a sink, as conversions bring it to another file.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "interop/loom/source.h"

namespace thalia::test {

/// What the sink wrote of all that the source has. `edit` may change what the sink is told.
std::string through(const interop::OpenedFile& source, interop::WriteTensors write,
                    const std::function<void(interop::SinkInput&)>& edit = {},
                    std::vector<std::string>* losses = nullptr);

}  // namespace thalia::test
