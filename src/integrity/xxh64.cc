// Hides xxhash.h, whose state is a void pointer to all other files.
#include "integrity/xxh64.h"

#include <xxhash.h>

#include <new>

namespace thalia::integrity {
namespace {

XXH64_state_t* as_xxh64(void* state) {
  return static_cast<XXH64_state_t*>(state);
}

}  // namespace

std::uint64_t xxh64(ByteSpan bytes) noexcept {
  return XXH64(bytes.data(), bytes.size(), 0);
}

Xxh64::Xxh64() : state_(XXH64_createState()) {
  if (!state_) throw std::bad_alloc();
  reset();
}

Xxh64::~Xxh64() = default;
Xxh64::Xxh64(Xxh64&&) noexcept = default;
Xxh64& Xxh64::operator=(Xxh64&&) noexcept = default;

void Xxh64::Free::operator()(void* state) const noexcept {
  XXH64_freeState(as_xxh64(state));
}

void Xxh64::reset() noexcept {
  XXH64_reset(as_xxh64(state_.get()), 0);
}

void Xxh64::update(ByteSpan bytes) noexcept {
  XXH64_update(as_xxh64(state_.get()), bytes.data(), bytes.size());
}

std::uint64_t Xxh64::finish() const noexcept {
  return XXH64_digest(as_xxh64(state_.get()));
}

}  // namespace thalia::integrity
