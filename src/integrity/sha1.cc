#include "integrity/sha1.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include "integrity/vector_state.h"
#include "thalia/error.h"
#include "thalia/text.h"

namespace thalia::integrity {

std::string sha1_hex(ByteSpan bytes) {
  // The caller's code may have left them in use.
  clear_upper_vectors();
  std::uint8_t digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_sha1(), nullptr) != 1) {
    ERR_clear_error();
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "the cryptographic library offers no SHA-1");
  }
  return hex({digest, length});
}

}  // namespace thalia::integrity
