#include "integrity/sha256.h"

#include <string>
#include <utility>

#include "boost_test.h"
#include "support/bytes.h"
#include "support/files.h"

using namespace thalia;
using integrity::Sha256;
using integrity::sha256;
using test::bytes_of;
using test::hex;

BOOST_AUTO_TEST_SUITE(sha256_suite)

// NIST, "Secure Hashing: SHA-256 examples" to FIPS 180-4, and FIPS 180-2 appendix B.3 (the
// million).
BOOST_AUTO_TEST_CASE(known_answers) {
  BOOST_TEST(hex(sha256({})) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  BOOST_TEST(hex(sha256(bytes_of("abc"))) ==
             "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  BOOST_TEST(hex(sha256(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))) ==
             "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  BOOST_TEST(hex(sha256(bytes_of(std::string(1000000, 'a')))) ==
             "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

BOOST_AUTO_TEST_CASE(pieces_give_what_the_whole_gives) {
  Sha256 hasher;
  hasher.update(bytes_of("a")).update({}).update(bytes_of("bc"));
  BOOST_TEST(hex(hasher.finish()) == hex(sha256(bytes_of("abc"))));
}

BOOST_AUTO_TEST_CASE(finishing_starts_over) {
  Sha256 hasher;
  hasher.update(bytes_of("something else")).finish();
  BOOST_TEST(hex(hasher.finish()) == hex(sha256({})));
  BOOST_TEST(hex(hasher.update(bytes_of("abc")).finish()) == hex(sha256(bytes_of("abc"))));
}

BOOST_AUTO_TEST_CASE(a_moved_computation_goes_on) {
  Sha256 first;
  first.update(bytes_of("ab"));
  Sha256 second = std::move(first);
  BOOST_TEST(hex(second.update(bytes_of("c")).finish()) == hex(sha256(bytes_of("abc"))));
}

BOOST_AUTO_TEST_SUITE_END()
