// A report as one HTML page that needs nothing but itself.
#pragma once

#include "cli/report/file_report.h"
#include "cli/terminal/output.h"

namespace thalia::cli {

/// Writes the page. `growth` is a picture of the growth history for a page; empty: there is none.
void write_page(Output& out, const PageReport& report, const std::string& growth);

}  // namespace thalia::cli
