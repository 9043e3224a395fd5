// What the commands print that change a file in place by an edit.
#pragma once

#include <string>
#include <string_view>

#include "cli/terminal/session.h"
#include "thalia/state/edit.h"

namespace thalia::cli {

/// "run.thalia: 2 tensors removed; ...", or JSON. @param what was done, as "removed".
void print_edit(const Session& session, std::string_view schema, const std::string& file,
                std::string_view what, const EditFileResult& result);

}  // namespace thalia::cli
