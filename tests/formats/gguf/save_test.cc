// Writing GGUF files: byte for byte as the Python package does, or not at all.
#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/gguf/files.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/gguf.h"

BOOST_AUTO_TEST_SUITE(gguf_save)

namespace {

using namespace thalia;
using test::gguf::vector_path;

constexpr float kNumbers[] = {1, 2, 3, 4};

GgufTensor numbers(std::string name = "w", Shape shape = {2, 2}) {
  return {.name = std::move(name), .shape = shape, .bytes = as_byte_span(kNumbers)};
}

// What save_gguf() says of these; nothing may appear.
template <typename E>
void refused(const std::vector<GgufTensor>& tensors, const GgufKeyValues& key_values,
             ErrorCode code, const char* says) {
  const test::TemporaryFolder folder;
  BOOST_TEST_CONTEXT(says)
  BOOST_CHECK_EXCEPTION(save_gguf(folder / "out.gguf", tensors, key_values), E,
                        test::says(code, says, "out.gguf"));
  BOOST_TEST(test::list_folder(folder.path()).empty());
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_of_the_reference_are_written_again_byte_for_byte) {
  const test::TemporaryFolder folder;
  for (const char* const name : {"key_values.gguf", "blocks.gguf"}) {
    const GgufFile file = GgufFile::open(vector_path(name));
    const std::uint64_t bytes = save_gguf(folder / name, file.tensors(), file.key_values());
    const std::string written = test::read_file(folder / name);
    BOOST_TEST(bytes == written.size());
    BOOST_TEST((written == test::read_file(vector_path(name))), name);
  }
}

BOOST_AUTO_TEST_CASE(a_file_of_nothing_is_padded_too) {
  const test::TemporaryFolder folder;
  BOOST_TEST(save_gguf(folder / "none.gguf", {}, {}) == 32u);
  BOOST_TEST((test::read_file(folder / "none.gguf") == test::gguf::start(0, 0).pad().bytes));
}

BOOST_AUTO_TEST_CASE(what_no_file_can_hold_is_refused_before_anything_is_written) {
  const GgufKeyValues none;
  refused<UsageError>({numbers(), numbers()}, none, ErrorCode::duplicate, "'w'");
  refused<UsageError>({numbers("\xff")}, none, ErrorCode::bad_argument, "UTF-8");
  refused<UsageError>({numbers(std::string("a\0", 2))}, none, ErrorCode::bad_argument, "zero byte");
  refused<UsageError>({numbers("w", {3, 2})}, none, ErrorCode::size_mismatch, "24");
  refused<UsageError>({numbers("w", {1ull << 62})}, none, ErrorCode::size_mismatch, "'w'");
  refused<UnsupportedError>({numbers("w", {1ull << 63, 0})}, none, ErrorCode::unsupported_feature,
                            "2^63");
  refused<UnsupportedError>({numbers("w", {1, 1, 1, 2, 2})}, none, ErrorCode::unsupported_feature,
                            "at most 4");
  refused<UnsupportedError>({numbers(std::string(64, 'n'))}, none, ErrorCode::unsupported_feature,
                            "at most 63");
  GgufTensor blocks = numbers();
  blocks.type = GgmlType::q8_0;
  refused<UsageError>({blocks}, none, ErrorCode::size_mismatch, "multiple of 32");
  blocks.type = GgmlType{31};
  refused<UsageError>({blocks}, none, ErrorCode::bad_argument, "31");
  const std::uint32_t one = 1;
  refused<UsageError>({}, {{"k", one}, {"k", one}}, ErrorCode::duplicate, "two of this key");
  refused<UsageError>({}, {{"", one}}, ErrorCode::bad_argument, "not empty");
  refused<UsageError>({}, {{"\xff", one}}, ErrorCode::bad_argument, "UTF-8");
  refused<UsageError>({}, {{"general.alignment", std::uint32_t{12}}}, ErrorCode::bad_argument,
                      "power of two");
  refused<UsageError>({}, {{"general.alignment", std::int32_t{32}}}, ErrorCode::bad_argument,
                      "i32");
  refused<UnsupportedError>({}, {{"general.alignment", std::uint32_t{1u << 30}}},
                            ErrorCode::unsupported_feature, "1048576");
}

BOOST_AUTO_TEST_CASE(long_names_are_written_where_they_are_asked_for) {
  const test::TemporaryFolder folder;
  const std::string name(100, 'n');
  save_gguf(folder / "out.gguf", {numbers(name)}, {}, {.long_names = true});
  BOOST_TEST(GgufFile::open(folder / "out.gguf").read(name).as<float>()[3] == 4.0f);
  save_gguf(folder / "out.gguf", {numbers(std::string(63, 'n'))}, {});
}

BOOST_AUTO_TEST_CASE(progress_is_told_and_a_stop_leaves_what_was_there) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "out.gguf", "old");
  std::stop_source stop;
  std::uint64_t last = 0;
  GgufSaveOptions options;
  options.work.cancel = stop.get_token();
  options.work.progress = [&](std::uint64_t done, std::uint64_t total) {
    BOOST_TEST(total == 32u);
    last = done;
    stop.request_stop();
  };
  BOOST_CHECK_THROW(save_gguf(folder / "out.gguf", {numbers("a"), numbers("b")}, {}, options),
                    CancelledError);
  BOOST_TEST(last == 16u);
  BOOST_TEST(test::read_file(folder / "out.gguf") == "old");
  BOOST_TEST(test::list_folder(folder.path()).size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
