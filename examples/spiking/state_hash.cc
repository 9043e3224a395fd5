#include "spiking/state_hash.h"

#include <algorithm>
#include <cstring>

#include "spiking/state_fields.h"

namespace spiking {
namespace {

void add(std::uint64_t& hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x100000001b3;
}

void add(std::uint64_t& hash, std::span<const std::byte> bytes) {
  add(hash, bytes.size());
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i));
    add(hash, word);
  }
}

}  // namespace

std::uint64_t state_hash(Network& network) {
  std::uint64_t hash = 0xcbf29ce484222325;
  add(hash, network.seed);
  add(hash, network.step);
  for (std::size_t r = 0; r < network.regions.size(); ++r) {
    add(hash, network.regions[r].recurrent.weights.bytes());
    for (const StateField& field : state_fields(network, r)) add(hash, field.bytes);
  }
  for (const Pathway& pathway : network.pathways) {
    add(hash, pathway.sparse.weights.bytes());
    add(hash, pathway.sparse.delays->bytes());
  }
  return hash;
}

}  // namespace spiking
