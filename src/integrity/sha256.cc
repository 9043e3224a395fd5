// SHA-256 from libcrypto, whose context is hidden behind a void pointer so that no other file
// includes its headers. A library in a restricted mode may refuse: hence the check of every call.
#include "integrity/sha256.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <new>

#include "integrity/vector_state.h"
#include "thalia/error.h"

namespace thalia::integrity {
namespace {

EVP_MD_CTX* as_context(void* context) {
  return static_cast<EVP_MD_CTX*>(context);
}

// If libcrypto lacks an algorithm it says so, and if it lacks memory only that something
// could not be made ready.
void require(int result) {
  if (result == 1) return;
  bool is_unsupported = false;
  while (const unsigned long error = ERR_get_error())
    is_unsupported = is_unsupported || ERR_GET_REASON(error) == ERR_R_UNSUPPORTED ||
                     ERR_GET_REASON(error) == EVP_R_UNSUPPORTED_ALGORITHM;
  if (!is_unsupported) throw std::bad_alloc();
  throw UnsupportedError(ErrorCode::unsupported_feature,
                         "the cryptographic library offers no SHA-256");
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (!context_) throw std::bad_alloc();
  require(EVP_DigestInit_ex(as_context(context_.get()), EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Free::operator()(void* context) const noexcept {
  EVP_MD_CTX_free(as_context(context));
}

Sha256& Sha256::update(ByteSpan bytes) {
  // The caller's code may have left them in use.
  clear_upper_vectors();
  require(EVP_DigestUpdate(as_context(context_.get()), bytes.data(), bytes.size()));
  return *this;
}

Digest256 Sha256::finish() {
  Digest256 digest;
  EVP_MD_CTX* const context = as_context(context_.get());
  require(EVP_DigestFinal_ex(context, digest.bytes, nullptr));
  // Starts over. A null algorithm keeps the one of the constructor and spares looking it up by
  // name.
  require(EVP_DigestInit_ex(context, nullptr, nullptr));
  return digest;
}

Digest256 sha256(ByteSpan bytes) {
  return Sha256().update(bytes).finish();
}

}  // namespace thalia::integrity
