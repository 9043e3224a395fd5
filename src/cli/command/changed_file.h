// What happens when a mapped file loses bytes that are being read.
#pragma once

namespace thalia::cli {

/// From here on a SIGBUS that a mapped file raises, shortened by another process or on a disk that
/// fails, ends the program with a line that names the file, and status kUnreadable. What a command
/// was writing goes with the process where it has no name yet; where the file system has no unnamed
/// files, a temporary stays.
void report_changed_files();

}  // namespace thalia::cli
