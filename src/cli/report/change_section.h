// The part of a page that tells what changed since another file.
#pragma once

#include "cli/report/file_report.h"
#include "cli/report/html.h"

namespace thalia::cli {

void write_changes(Html& html, const Comparison& comparison);

}  // namespace thalia::cli
