// Files of version 0.1 for tests: those that the original program wrote, edits of them, and
// documents made here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/formats/v01.h"

namespace thalia::test {

/// A file of tests/data/v01.
std::filesystem::path v01_data(std::string_view name);
/// Files there and, if they are to be had, of the folder of vectors, whose names do not begin
/// with "neg_" and that are no deltas.
std::vector<std::filesystem::path> v01_positives();
/// Those whose names begin with "neg_".
std::vector<std::filesystem::path> v01_negatives();
std::vector<std::filesystem::path> v01_deltas();

std::string v01_text(const std::vector<std::byte>& bytes);
/// Puts the right checksum at the end of a file without wrapper.
void finalize_v01(std::string& file);
/// A body with this metadata and one region of this JSON, and the checksum.
std::string v01_file_of(std::string_view metadata, std::string_view region_json,
                        std::string_view tensors = {});

/// Something of everything: regions, a pathway, every element type, sparse tensors, numbers that
/// only Python's JSON has.
V01Document v01_sample();

}  // namespace thalia::test
