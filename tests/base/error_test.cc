#include "thalia/error.h"

#include <cerrno>
#include <string>

#include "boost_test.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(error)

BOOST_AUTO_TEST_CASE(names_path_section_field_offset_value_and_bound) {
  const FormatError error(ErrorCode::out_of_bounds, "",
                          {.path = "a.thalia",
                           .section = "header",
                           .field = "file_length",
                           .offset = 0x68,
                           .value = "99",
                           .bound = "at most 50"});
  BOOST_TEST(std::string(error.what()) ==
             "a.thalia: header.file_length at offset 104: got 99, expected at most 50");
}

BOOST_AUTO_TEST_CASE(context_added_while_unwinding_keeps_what_is_known) {
  FormatError error(ErrorCode::bad_value, "no", {.region = "inner"});
  error.add_region("outer");
  error.add_tensor("w");
  error.add_path("p");
  BOOST_TEST(std::string(error.what()) == "p: region 'inner', tensor 'w': no");
}

BOOST_AUTO_TEST_CASE(io_error_carries_operation_and_errno) {
  const IoError error("fsync", ENOSPC, {.path = "f"});
  BOOST_TEST(error.errno_value() == ENOSPC);
  BOOST_TEST(std::string(error.what()) == "f: fsync failed: No space left on device (errno 28)");
}

BOOST_AUTO_TEST_CASE(kinds_carry_their_facts) {
  const MissingBaseError missing("step_9", {.path = "step_10", .value = "'step_9'"});
  BOOST_TEST(missing.base() == "step_9");
  BOOST_TEST(missing.errno_value() == ENOENT);
  BOOST_TEST((missing.code() == ErrorCode::io));

  const StorageError storage("get", "step_9", EIO, {.path = "local:///a"});
  BOOST_TEST(storage.key() == "step_9");
  BOOST_TEST((storage.code() == ErrorCode::storage));
  BOOST_TEST(std::string(storage.what()) == "local:///a: get failed: Input/output error (errno 5)");

  const CompressionError compression("zstd", "broken", {.field = "frame"});
  BOOST_TEST(compression.codec() == "zstd");
  BOOST_TEST((compression.code() == ErrorCode::bad_compression));

  const UnsupportedDtypeError dtype("F128");
  BOOST_TEST(dtype.dtype() == "F128");
  BOOST_TEST((dtype.code() == ErrorCode::unsupported_dtype));

  const ShapeMismatchError shape({2, 3}, {3, 2}, "turned", {.tensor = "w"});
  BOOST_TEST((shape.expected() == Shape{2, 3}));
  BOOST_TEST((shape.actual() == Shape{3, 2}));
  BOOST_TEST((shape.code() == ErrorCode::shape_mismatch));
  BOOST_TEST(std::string(shape.what()) == "tensor 'w': turned: got [3, 2], expected [2, 3]");

  const IntegrityError checksum(ErrorCode::checksum_mismatch, "", {.value = "ab", .bound = "cd"});
  BOOST_TEST(checksum.expected() == "cd");
  BOOST_TEST(checksum.actual() == "ab");
}

// Code that throws may forget it; code that prints what() to a terminal is safe all the same.
BOOST_AUTO_TEST_CASE(text_shows_nothing_that_moves_the_cursor_or_reorders) {
  const std::string bad = "\xc2\x9b\xe2\x80\xae\x1b\n\xff";
  const std::string good = "\\u009b\\u202e\\x1b\\n\\xff";
  const FormatError error(
      ErrorCode::bad_value, "m" + bad,
      {.path = "p" + bad, .region = bad, .tensor = bad, .value = bad, .bound = "b" + bad});
  BOOST_TEST(std::string(error.what()) == "p" + good + ": region '" + good + "', tensor '" + good +
                                              "': m" + good + ": got " + good + ", expected b" +
                                              good);
  BOOST_TEST(error.message() == "m" + good);
  BOOST_TEST(error.context().value == good);
  BOOST_TEST(error.context().region == bad);  // the name itself, to look it up by
}

BOOST_AUTO_TEST_CASE(codes_are_pinned) {
  BOOST_TEST(static_cast<int>(ErrorCode::io) == 100);
  BOOST_TEST(static_cast<int>(ErrorCode::storage) == 101);
  BOOST_TEST(static_cast<int>(ErrorCode::inconsistent) == 207);
  BOOST_TEST(static_cast<int>(ErrorCode::bad_compression) == 208);
  BOOST_TEST(static_cast<int>(ErrorCode::checksum_mismatch) == 300);
  BOOST_TEST(static_cast<int>(ErrorCode::unsupported_feature) == 401);
  BOOST_TEST(static_cast<int>(ErrorCode::unsupported_dtype) == 402);
  BOOST_TEST(static_cast<int>(ErrorCode::wrong_state) == 505);
  BOOST_TEST(static_cast<int>(ErrorCode::shape_mismatch) == 506);
  BOOST_TEST(static_cast<int>(ErrorCode::cancelled) == 600);
  BOOST_TEST(error_code_name(ErrorCode::limit_exceeded) == "limit_exceeded");
}

BOOST_AUTO_TEST_SUITE_END()
