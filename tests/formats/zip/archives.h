// Zip archives of tests: written, taken apart, and with numbers changed.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/zip/writer.h"
#include "thalia/options.h"

namespace thalia::test {

/// Names and contents.
using ArchiveMembers = std::vector<std::pair<std::string, std::string>>;

std::string archive_of(const ArchiveMembers& members, const formats::ZipStyle& style,
                       const formats::ZipNewMember& options = {});
/// Everything of an archive, read in each way that there is, or an exception.
ArchiveMembers archive_contents(const std::string& archive);
/// Whether reading all of it ends in an error that a file may cause.
bool archive_is_refused(const std::string& archive);

/// `archive` with a number of `width` bytes at `offset`.
std::string with_number(std::string archive, std::size_t offset, std::uint64_t value,
                        std::size_t width);
std::string number(std::uint64_t value, std::size_t width);

}  // namespace thalia::test
