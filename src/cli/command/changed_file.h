// What happens when a mapped file loses bytes that are being read.
#pragma once

namespace thalia::cli {

/// From here on, a SIGBUS that a mapped file raises ends the program with a line that names the
/// file, and with status kUnreadable. It is raised where another process shortened the file, or its
/// disk fails. A file that the command was writing disappears with the process as long as it has no
/// name yet; where the file system has no unnamed files, a temporary file stays.
/// `as_json`: the line is that of an error, docs/use/json.md.
void report_changed_files(bool as_json);

}  // namespace thalia::cli
