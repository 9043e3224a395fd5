// Hostile and damaged .entity files: whatever they say, they are read or refused.
#include "boost_test.h"
#include "formats/loom/networks.h"
#include "support/errors.h"
#include "thalia/formats/loom.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(loom_hostile)

namespace {

// All that can be asked of a file.
bool reads_whole(const std::string& text) {
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 20;
  try {
    const EntityFile file = test::open_entity(text, limits);
    for (std::size_t i = 0; i < file.blobs().size(); ++i)
      BOOST_TEST(file.blob_bytes(i).bytes.size() == file.blobs()[i].length);
    const LoomNetwork network = file.network();
    for (const LoomLayer& layer : network.layers) static_cast<void>(loom_master(layer, limits));
    static_cast<void>(entity_bytes(network));
    return true;
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  } catch (const UsageError&) {
    // A number that JSON does not have comes of weights that are not numbers.
  }
  return false;
}

}  // namespace

BOOST_AUTO_TEST_CASE(hostile_files_are_refused) {
  const auto refused = [](const std::string& text, ErrorCode code, const char* says) {
    BOOST_CHECK_EXCEPTION(test::open_entity(text).network(), Error,
                          test::says(code, says, "test.entity"));
  };
  const std::string good = test::entity_with_header(test::blob_header(""));
  BOOST_TEST(reads_whole(good));
  const auto changed = [&](std::size_t at, const std::string& bytes) {
    std::string text = good;
    return text.replace(at, bytes.size(), bytes);
  };
  refused("", ErrorCode::truncated, "empty");
  refused(good.substr(0, 19), ErrorCode::truncated, "19");
  refused(changed(0, "X"), ErrorCode::bad_magic, "magic");
  refused(changed(7, "x"), ErrorCode::bad_magic, "magic");
  refused(changed(8, "\2"), ErrorCode::unsupported_version, "version");
  refused(changed(9, "\1"), ErrorCode::unsupported_version, "version");
  refused(changed(12, std::string(8, '\xff')), ErrorCode::bad_value, "header_length");
  refused(changed(14, "\x0f"), ErrorCode::truncated, "header_length");
  refused(good.substr(0, good.size() - 1), ErrorCode::truncated, "header_length");
  refused(test::entity_with_header("[]"), ErrorCode::bad_json, "header");
  refused(test::entity_with_header("{} x"), ErrorCode::bad_json, "");
  const struct {
    const char* blob;
    ErrorCode code;
    const char* says;
  } kBlobs[] = {
      {R"({"path":"layers.0","offset":0,"length":5})", ErrorCode::out_of_bounds, "length"},
      {R"({"path":"layers.0","offset":5,"length":0})", ErrorCode::out_of_bounds, "offset"},
      {R"({"path":"layers.0","offset":18446744073709551615,"length":1})", ErrorCode::out_of_bounds,
       "offset"},
      {R"({"path":"layers.0","offset":4,"length":18446744073709551615})", ErrorCode::out_of_bounds,
       "length"},
      {R"({"path":"layers.0","offset":9223372036854775807,"length":9223372036854775807})",
       ErrorCode::out_of_bounds, "offset"},
      {R"({"path":"layers.0","offset":18446744073709551616,"length":1})", ErrorCode::bad_value,
       "offset"},
      {R"({"path":"layers.0","offset":-1,"length":1})", ErrorCode::bad_value, "offset"},
      {R"({"path":"layers.0","offset":0,"length":1.5})", ErrorCode::bad_value, "length"},
      {R"({"path":"layers.0"},{"path":"layers.0"})", ErrorCode::bad_name, "repeats"},
      {R"({"path":""})", ErrorCode::bad_name, "path"},
      {R"({"path":"layers.1","native":true})", ErrorCode::inconsistent, "layers.1"},
      {R"({"path":"layers.0.what","native":true})", ErrorCode::inconsistent, "what"},
      {R"({"path":"layers.0.parallel_branches.0","native":true})", ErrorCode::inconsistent,
       "branches"},
      {R"({"path":"layers.18446744073709551616","native":true})", ErrorCode::inconsistent, ""},
      {R"({"path":"layers.0","length":3,"native":true,"dtype":"float32"})", ErrorCode::bad_value,
       "multiple of 4"},
      {R"({"path":"layers.0.q4_0.100","length":4,"dtype":"Q4_0","native":true})",
       ErrorCode::truncated, "q4_0"},
      {R"({"path":"layers.0.bitnet_ternary.10000","length":4,"native":true})", ErrorCode::truncated,
       "bitnet"},
      {"7", ErrorCode::bad_value, "blobs"},
  };
  for (const auto& one : kBlobs) {
    BOOST_TEST_CONTEXT(one.blob)
    refused(test::entity_with_header(test::blob_header(one.blob), "abcd"), one.code, one.says);
  }
  const std::string outside =
      R"({"network":{"depth":1,"rows":1,"cols":1,"layers_per_cell":1,"layers":[{"l":1}]}})";
  refused(test::entity_with_header(outside), ErrorCode::out_of_bounds, "l");
  const std::string vast =
      R"({"network":{"depth":2147483647,"rows":2147483647,"cols":2147483647,"layers_per_cell":9}})";
  refused(test::entity_with_header(vast), ErrorCode::limit_exceeded, "layers");
  std::string deep = "{}";
  for (int i = 0; i < 126; ++i) deep = "{\"sequential_layers\":[" + deep + "]}";
  refused(test::entity_with_header(R"({"network":{"layers":[)" + deep + "]}}"),
          ErrorCode::limit_exceeded, "");
  // A layer that counts more weights than its blob has is found when they are wanted.
  const LoomNetwork few =
      test::open_entity(
          test::entity_with_header(
              test::blob_header(R"({"path":"layers.0","length":4,"dtype":"int8","native":true})",
                                R"("input_height":3037000500,"output_height":1500000000)"),
              "abcd"))
          .network();
  BOOST_CHECK_EXCEPTION(loom_master(few.layers[0]), FormatError,
                        test::has_code(ErrorCode::inconsistent));
  ReadLimits tight;
  tight.max_tensors = 1;
  BOOST_CHECK_EXCEPTION(
      test::open_entity(test::entity_with_header(test::blob_header(R"({"path":"a"},{"path":"b"})")),
                        tight),
      FormatError, test::says(ErrorCode::limit_exceeded, "max_tensors"));
  tight.max_json_bytes = 10;
  BOOST_CHECK_EXCEPTION(test::open_entity(good, tight), FormatError,
                        test::says(ErrorCode::limit_exceeded, "max_json_bytes"));
}

BOOST_AUTO_TEST_CASE(weights_that_lie_in_each_other_take_no_memory_without_end) {
  // Four layers, each with all 4,000 bytes, as 1,000 f32 that become f64.
  std::string layers, blobs;
  for (const char i : {'0', '1', '2', '3'}) {
    layers += std::string(i == '0' ? "" : ",") + R"({"l":)" + i + '}';
    blobs += std::string(i == '0' ? "" : ",") + R"({"path":"layers.)" + i +
             R"(","length":4000,"dtype":"float64"})";
  }
  const std::string text = test::entity_with_header(
      R"({"network":{"depth":1,"rows":1,"cols":1,"layers_per_cell":4,"layers":[)" + layers +
          R"(]},"blobs":[)" + blobs + "]}",
      std::string(4000, '\0'));
  BOOST_TEST(test::open_entity(text, {.max_allocation_bytes = 32000}).network().layers.size() ==
             4u);
  const EntityFile file = test::open_entity(text, {.max_allocation_bytes = 31999});
  BOOST_TEST(file.network({{2}}).layers[2].weights->native.bytes.size() == 8000u);
  BOOST_CHECK_EXCEPTION(file.network(), FormatError,
                        test::says(ErrorCode::limit_exceeded, "max_allocation_bytes", "blobs"));
}

BOOST_AUTO_TEST_CASE(no_truncated_file_is_read_whole) {
  const std::string text = test::entity_text(test::nested_network());
  for (std::size_t length = 0; length < text.size(); ++length)
    BOOST_TEST(!reads_whole(text.substr(0, length)), length);
}

// There are no checksums, so a flip may go unseen: nothing worse may come of it.
BOOST_AUTO_TEST_CASE(every_flipped_byte_is_survived) {
  const std::string text = test::entity_text(test::nested_network());
  unsigned read = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const int bit : {0, 5}) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      read += reads_whole(damaged) ? 1u : 0u;
    }
  BOOST_TEST(read < 2 * text.size());
}

BOOST_AUTO_TEST_SUITE_END()
