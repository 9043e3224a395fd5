// The network's whole state to a .thalia file, and back.
#pragma once

#include <filesystem>

#include "spiking/network.h"
#include "thalia/state/checkpoint.h"

namespace spiking {

/// Lends the network's arrays to the library: nothing is copied on the way to the file.
thalia::BrainSaveResult save(Network& network, const std::filesystem::path& path,
                             thalia::BrainSaveOptions options = {});

/// Copies a saved network back into memory, checking each byte against the file's checksum.
/// @throws thalia::Error; std::runtime_error for a file that holds another network than this
/// program's.
Network load(const std::filesystem::path& path, const thalia::ReadOptions& options = {});

}  // namespace spiking
