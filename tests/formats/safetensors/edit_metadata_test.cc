// Texts of a header changed, and everything else as it was.
#include <sys/stat.h>

#include <string>

#include "boost_test.h"
#include "formats/safetensors/metadata_slot.h"
#include "formats/safetensors/model_samples.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "thalia/error.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/safetensors.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(safetensors_edit_metadata)

namespace {

std::uint64_t inode(const std::filesystem::path& path) {
  struct stat status {};
  BOOST_REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_ino;
}

std::string header_of(const std::filesystem::path& path) {
  const std::string file = read_file(path);
  std::uint64_t length = 0;
  for (unsigned i = 0; i < 8; ++i)
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(file[i])) << (8 * i);
  return file.substr(8, length);
}

// Clones where the file system has them: the same promise at no cost.
bool is_kept(SafetensorsEdit edit) {
  return edit == SafetensorsEdit::in_place || edit == SafetensorsEdit::cloned;
}

const std::string kTensors =
    R"("b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"F32","shape":[1],"data_offsets":[2,6]})";

}  // namespace

BOOST_AUTO_TEST_CASE(texts_are_added_changed_and_removed) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  const std::vector<OwnedTensor> owned{make_tensor("w", DType::f32, {3})};
  const auto tensors = borrow(owned);
  save_safetensors(path, tensors);
  BOOST_TEST((edit_safetensors_metadata(path, {{"k", "v"}}) == SafetensorsEdit::rewritten));
  // With so few bytes, the result is what the reference would have written.
  save_safetensors(folder / "expected", tensors, SafetensorsMetadata{{"k", "v"}});
  BOOST_TEST((read_file(path) == read_file(folder / "expected")));
  BOOST_TEST(is_kept(edit_safetensors_metadata(path, {{"k", "w"}})));
  BOOST_TEST((edit_safetensors_metadata(path, {{"k", "w"}}) == SafetensorsEdit::unchanged));
  BOOST_TEST((edit_safetensors_metadata(path, {}) == SafetensorsEdit::unchanged));
  BOOST_TEST(
      (edit_safetensors_metadata(path, {{"x", std::nullopt}}) == SafetensorsEdit::unchanged));
  edit_safetensors_metadata(path, {{"l", "1"}, {"k", std::nullopt}, {"\"\n", "\\"}});
  SafetensorsFile file = SafetensorsFile::open(path);
  BOOST_TEST((file.metadata() == SafetensorsMetadata{{"l", "1"}, {"\"\n", "\\"}}));
  BOOST_TEST(same_bytes(file.tensors()[0].bytes, tensors[0].bytes));
  const std::uint64_t before = file.file_bytes();
  BOOST_TEST(
      is_kept(edit_safetensors_metadata(path, {{"l", std::nullopt}, {"\"\n", std::nullopt}})));
  file = SafetensorsFile::open(path);
  BOOST_TEST((file.has_metadata() && file.metadata().empty()));
  BOOST_TEST(file.file_bytes() == before);
}

// As the reference reads it.
BOOST_AUTO_TEST_CASE(null_in_place_of_the_texts_is_none) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  for (const std::string& header : {R"({"__metadata__": null ,)" + kTensors + "}",
                                    "{" + kTensors + R"(,"__metadata__":null})"}) {
    const std::string bytes = safetensors_bytes(header, 6);
    write_file(path, bytes);
    BOOST_TEST(!SafetensorsFile::open(path).has_metadata());
    convert(path, folder / "a.thalia", {});
    convert(folder / "a.thalia", folder / "again.safetensors", {});
    BOOST_TEST((read_file(folder / "again.safetensors") == bytes));
    edit_safetensors_metadata(path, {{"k", "v"}});
    const SafetensorsFile file = SafetensorsFile::open(path);
    BOOST_TEST((file.metadata() == SafetensorsMetadata{{"k", "v"}}));
    BOOST_TEST(file.tensors().size() == 2u);
  }
}

BOOST_AUTO_TEST_CASE(what_fits_is_written_without_the_tensors) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  save_safetensors(path, borrow(model_tensors()), SafetensorsMetadata{{"k", "v"}}, {}, 512);
  const std::uint64_t node = inode(path);
  const auto edit = edit_safetensors_metadata(path, {{"k", std::string(50, 'x')}, {"l", "m"}});
  BOOST_TEST(is_kept(edit));
  if (edit == SafetensorsEdit::in_place) BOOST_TEST(inode(path) == node);
  BOOST_TEST(header_of(path).size() == 504u);
  BOOST_TEST(check_safetensors_model(path).empty());
  // If that is not wanted, a new file takes the old one's place.
  BOOST_TEST((edit_safetensors_metadata(path, {{"k", "v"}},
                                        {.in_place = false, .output = {.replace = false}}) !=
              SafetensorsEdit::in_place));
  BOOST_TEST(inode(path) != node);
  BOOST_TEST(header_of(path).size() == 504u);
  for (const OwnedTensor& tensor : model_tensors())
    BOOST_TEST(same_bytes(open_any(path).read(tensor.name).bytes(), tensor.bytes));
}

// Shorter texts leave spaces after them, so that what follows need not move into other sectors.
BOOST_AUTO_TEST_CASE(a_long_header_is_edited_in_one_sector) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  std::vector<OwnedTensor> tensors;
  for (int i = 0; i < 100; ++i)
    tensors.push_back(make_tensor("tensor" + std::to_string(i), DType::u8, {5}));
  save_safetensors(path, borrow(tensors), SafetensorsMetadata{{"k", std::string(100, 'v')}});
  const std::string before = read_file(path);
  BOOST_TEST(is_kept(edit_safetensors_metadata(path, {{"k", "short"}})));
  BOOST_TEST(is_kept(edit_safetensors_metadata(path, {{"k", std::string(99, 'w')}})));
  BOOST_TEST(is_kept(edit_safetensors_metadata(path, {{"k", std::string(100, 'v')}})));
  BOOST_TEST((read_file(path) == before));
  const auto longer = edit_safetensors_metadata(path, {{"k", std::string(101, 'v')}});
  BOOST_TEST((longer != SafetensorsEdit::in_place));
  for (const OwnedTensor& tensor : tensors)
    BOOST_TEST(same_bytes(open_any(path).read(tensor.name).bytes(), tensor.bytes));
}

BOOST_AUTO_TEST_CASE(the_rest_of_another_writers_header_stays) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  const struct {
    std::string header, edited;
  } kCases[] = {
      {"{ " + kTensors + " , \"__metadata__\" : { \"k\" : \"v\" } }",
       "{ " + kTensors + " , \"__metadata__\" : {\"k\":\"wwwww\"}}  "},
      {"{\"__metadata__\": {\"k\": \"v {}\\\"\"},\n" + kTensors + "\n}\n   ",
       "{\"__metadata__\": {\"k\":\"wwwww\"},\n" + kTensors + "\n}\n     "},
      {"{\"__metadata__\":{},\n" + kTensors + "}            ",
       "{\"__metadata__\":{\"k\":\"wwwww\"},\n" + kTensors + "}"},
      {"{" + kTensors + "}" + std::string(30, ' '),
       "{\"__metadata__\":{\"k\":\"wwwww\"}," + kTensors + "}"},
      {"{ " + kTensors + "}" + std::string(31, ' '),
       "{\"__metadata__\":{\"k\":\"wwwww\"}, " + kTensors + "} "},
  };
  for (const auto& one : kCases) {
    write_file(path, safetensors_bytes(one.header, 6));
    BOOST_TEST_CONTEXT(one.header) {
      const auto edit = edit_safetensors_metadata(path, {{"k", "wwwww"}});
      BOOST_TEST((edit != SafetensorsEdit::unchanged));
      BOOST_TEST((SafetensorsFile::open(path).metadata() == SafetensorsMetadata{{"k", "wwwww"}}));
      const std::string header = header_of(path);
      BOOST_TEST(header.substr(0, header.find_last_not_of(' ') + 1) ==
                 one.edited.substr(0, one.edited.find_last_not_of(' ') + 1));
      BOOST_TEST((read_file(path).substr(8 + header.size()) == std::string("\0\1\2\3\4\5", 6)));
    }
  }
  // A key in escapes, and no tensors.
  write_file(path, safetensors_bytes("{\"\\u005f_metadata__\":{\"k\":\"v\"}," + kTensors + "}", 6));
  edit_safetensors_metadata(path, {{"l", "w"}});
  BOOST_TEST(
      (SafetensorsFile::open(path).metadata() == SafetensorsMetadata{{"k", "v"}, {"l", "w"}}));
  BOOST_TEST(text_of(open_any(path).read("a").bytes()) == "\2\3\4\5");
  write_file(path, safetensors_bytes("{ }"));
  edit_safetensors_metadata(path, {{"l", "w"}});
  BOOST_TEST((SafetensorsFile::open(path).metadata() == SafetensorsMetadata{{"l", "w"}}));
}

BOOST_AUTO_TEST_CASE(a_header_that_grows_keeps_the_alignment) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  for (const std::uint64_t align : {64, 512, 4096}) {
    save_safetensors(path, borrow(model_tensors()), std::nullopt, {}, align);
    BOOST_TEST((edit_safetensors_metadata(path, {{"k", std::string(5000, 'x')}}) ==
                SafetensorsEdit::rewritten));
    BOOST_TEST((8 + header_of(path).size()) % align == 0u);
    BOOST_TEST(check_safetensors_model(path).empty());
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_written_is_refused_and_changes_nothing) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  save_safetensors(path, borrow(model_tensors()), SafetensorsMetadata{{"k", "v"}});
  const std::string before = read_file(path);
  BOOST_CHECK_EXCEPTION(edit_safetensors_metadata(path, {{"a", "1"}, {"a", "2"}}), UsageError,
                        has_code(ErrorCode::duplicate));
  BOOST_CHECK_EXCEPTION(edit_safetensors_metadata(path, {{"a", "\xff"}}), UsageError,
                        has_code(ErrorCode::bad_argument));
  BOOST_CHECK_EXCEPTION(edit_safetensors_metadata(path, {{"\xff", std::nullopt}}), UsageError,
                        has_code(ErrorCode::bad_argument));
  BOOST_CHECK_EXCEPTION(
      edit_safetensors_metadata(path, {{"a", std::string(1000, 'x')}}, {.max_header_bytes = 1000}),
      UnsupportedError, has_code(ErrorCode::unsupported_feature));
  std::stop_source stop;
  stop.request_stop();
  SafetensorsEditOptions cancelled;
  cancelled.work.cancel = stop.get_token();
  BOOST_CHECK_THROW(edit_safetensors_metadata(path, {{"a", "1"}}, cancelled), CancelledError);
  BOOST_TEST((read_file(path) == before));
  BOOST_TEST(list_folder(folder.path()).size() == 1u);
  write_file(path, before.substr(0, before.size() - 1));
  BOOST_CHECK_THROW(edit_safetensors_metadata(path, {{"a", "1"}}), FormatError);
}

BOOST_AUTO_TEST_CASE(the_slot_is_found_whatever_stands_around_it) {
  const auto slot = [](std::string_view header) {
    const auto found = formats::safetensors::find_metadata_slot(header);
    return found ? std::string(header.substr(found->begin, found->end - found->begin)) : "none";
  };
  BOOST_TEST(slot("{}") == "none");
  BOOST_TEST(slot(R"({"__metadata__":{}})") == "{}");
  BOOST_TEST(slot(R"({"a":{"__metadata__":[1]},"__metadata__" : {"x":"}\\\""} , "b":{}})") ==
             R"({"x":"}\\\""} )");
  BOOST_TEST(slot(R"({"a":{"x":"__metadata__"}})") == "none");
  // No header, and survived.
  for (const char* const broken :
       {"", "{", "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\\", "{\"a\":{", "{1"})
    BOOST_TEST(slot(broken) == "none");
}

BOOST_AUTO_TEST_SUITE_END()
