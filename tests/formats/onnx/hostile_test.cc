// Models that lie: each is refused with an error that says where, and none takes memory for what it
// only claims to hold.
#include <limits>
#include <string>

#include "boost_test.h"
#include "formats/onnx/file.h"
#include "formats/onnx/models.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/onnx.h"

using namespace thalia;
using test::onnx_model;
using test::onnx_model_of;
using test::onnx_tensor;
using test::Proto;

BOOST_AUTO_TEST_SUITE(onnx_hostile)

namespace {

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

// True if all of it is read; everything else than these errors is a failure.
bool reads_whole(const std::string& bytes) {
  formats::onnx::OnnxReadOptions options;
  options.input.limits.max_allocation_bytes = 1 << 20;
  try {
    const formats::onnx::OnnxFile file = test::onnx_from(bytes, options);
    for (std::size_t i = 0; i < file.tensors().size(); ++i) static_cast<void>(file.read(i));
    return true;
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
  return false;
}

void refuses(const std::string& bytes, ErrorCode code, const char* says) {
  BOOST_TEST_CONTEXT(says) {
    const auto read = [&] {
      const formats::onnx::OnnxFile file = test::onnx_from(bytes);
      for (std::size_t i = 0; i < file.tensors().size(); ++i) static_cast<void>(file.read(i));
    };
    BOOST_CHECK_EXCEPTION(read(), Error, test::says(code, says, "test.onnx"));
  }
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(128 | (value & 127));
  return bytes + static_cast<char>(value);
}

Proto sparse(const std::vector<std::int64_t>& dims, const Proto& values, const Proto& indices) {
  Proto tensor;
  tensor.message(1, values).message(2, indices);
  for (const std::int64_t extent : dims) tensor.varint(3, static_cast<std::uint64_t>(extent));
  return tensor;
}

std::string sparse_model(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& of,
                         const std::vector<std::uint64_t>& indices) {
  Proto places = onnx_tensor("", 7, of);
  for (const std::uint64_t index : indices) places.varint(7, index);
  const auto nnz = static_cast<std::size_t>(of[0]);
  const Proto values = onnx_tensor("s", 3, {of[0]}).text(9, std::string(nnz, 'x'));
  return onnx_model(Proto().message(15, sparse(dims, values, places)));
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_truncated_model_is_read) {
  for (const char* const name : {"raw.onnx", "typed.onnx", "sparse.onnx", "computing.onnx"}) {
    const std::string whole = test::read_file(test::onnx_vector(name));
    BOOST_TEST(reads_whole(whole));
    // After the graph are the opset imports and properties: without them it is a whole message.
    unsigned read = 0;
    for (std::size_t length = 0; length < whole.size(); ++length)
      read += reads_whole(whole.substr(0, length)) ? 1u : 0u;
    BOOST_TEST(read == (std::string(name) == "computing.onnx" ? 3u : 1u), name);
  }
}

// There are no checksums, so a flip may go unseen: nothing worse may come of it.
BOOST_AUTO_TEST_CASE(every_flipped_byte_is_survived) {
  for (const char* const name :
       {"raw.onnx", "typed.onnx", "sparse.onnx", "computing.onnx", "external.onnx"}) {
    const std::string whole = test::read_file(test::onnx_vector(name));
    unsigned read = 0;
    for (std::size_t i = 0; i < whole.size(); ++i)
      for (const int bit : {0, 2, 7}) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
        read += reads_whole(damaged) ? 1u : 0u;
      }
    BOOST_TEST(read < 3 * whole.size());
  }
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_model_are_refused) {
  refuses("", ErrorCode::bad_value, "ir_version");
  refuses(Proto().varint(1, 8).bytes(), ErrorCode::bad_value, "graph");
  refuses(Proto().message(7, Proto()).bytes(), ErrorCode::bad_value, "ir_version");
  refuses(std::string(3, '\0'), ErrorCode::bad_value, "tag");
  refuses("\x0c", ErrorCode::bad_value, "tag");                      // the end of a group
  refuses(std::string("\x0f\x00", 2), ErrorCode::bad_value, "tag");  // a kind that does not exist
  refuses("\x08" + std::string(10, '\xff'), ErrorCode::truncated, "does not end");
  refuses("\x0b\x08\x01", ErrorCode::truncated, "a group");
  refuses(Proto().varint(1, 8).message(7, Proto()).message(7, Proto()).bytes(),
          ErrorCode::inconsistent, "graph");
  refuses(Proto().text(1, "8").bytes(), ErrorCode::bad_value, "ir_version");
  refuses(Proto().text(2, "\xff").bytes(), ErrorCode::bad_value, "producer_name");
  refuses(Proto().varint(7, 1).bytes(), ErrorCode::bad_value, "GraphProto");
  const Proto property = Proto().text(1, "k").text(2, "v");
  refuses(Proto().message(14, property).message(14, property).bytes(), ErrorCode::inconsistent,
          "twice");
}

BOOST_AUTO_TEST_CASE(lengths_past_the_end_are_refused) {
  for (const std::uint64_t length : {std::uint64_t{1}, std::uint64_t{1} << 31, kHuge}) {
    refuses("\x3a" + varint(length), ErrorCode::truncated, "field 7");
    refuses(onnx_model(Proto().raw("\x2a" + varint(length))), ErrorCode::truncated, "field 5");
    refuses(onnx_model_of(onnx_tensor("w", 3, {1}).raw("\x4a" + varint(length))),
            ErrorCode::truncated, "field 9");
  }
}

BOOST_AUTO_TEST_CASE(shapes_that_lie_are_refused) {
  refuses(onnx_model_of(onnx_tensor("w", 1, {-1})), ErrorCode::bad_value, "got -1");
  refuses(onnx_model_of(onnx_tensor("w", 1, {1ll << 62, 1ll << 62})), ErrorCode::out_of_bounds,
          "2^64 bytes");
  refuses(onnx_model_of(onnx_tensor("w", 1, {1ll << 40})), ErrorCode::inconsistent, "none");
  refuses(onnx_model_of(onnx_tensor("w", 1, {4}).text(9, "too few")), ErrorCode::inconsistent,
          "got 7 bytes, expected 16");
  refuses(onnx_model_of(onnx_tensor("w", 1, {0}).text(9, "some")), ErrorCode::inconsistent,
          "raw_data");
  refuses(onnx_model_of(onnx_tensor("w", 1, {1, 1, 1, 1, 1, 1, 1, 1, 1})),
          ErrorCode::unsupported_feature, "dimensions");
  // Packed extents are extents, too.
  refuses(onnx_model_of(Proto().text(1, varint(1) + varint(kHuge)).varint(2, 1)),
          ErrorCode::bad_value, "dims");
  refuses(onnx_model_of(Proto().text(1, "\x81").varint(2, 1)), ErrorCode::bad_value, "dims");
}

BOOST_AUTO_TEST_CASE(elements_that_lie_are_refused) {
  const auto typed = [](int type, unsigned field, const std::vector<std::uint64_t>& numbers) {
    Proto tensor = onnx_tensor("w", type, {2});
    for (const std::uint64_t number : numbers) tensor.varint(field, number);
    return onnx_model_of(tensor);
  };
  BOOST_TEST(reads_whole(typed(3, 5, {127, kHuge})));
  refuses(typed(3, 5, {1}), ErrorCode::inconsistent, "int32_data");
  refuses(typed(3, 5, {1, 2, 3}), ErrorCode::inconsistent, "3 numbers or more");
  refuses(typed(3, 5, {1, 256}), ErrorCode::bad_value, "INT8");
  refuses(typed(3, 5, {1, kHuge - 128}), ErrorCode::bad_value, "got -129");
  refuses(typed(9, 5, {1, 2}), ErrorCode::bad_value, "BOOL");
  refuses(typed(12, 11, {1, 1ull << 32}), ErrorCode::bad_value, "UINT32");
  refuses(typed(27, 5, {1, 64}), ErrorCode::bad_value, "FLOAT6E2M3");
  refuses(typed(1, 5, {1, 2}), ErrorCode::inconsistent, "float_data or raw_data of FLOAT");
  refuses(typed(1, 4, {1, 2}), ErrorCode::bad_value, "float_data");
  refuses(typed(6, 7, {1, 2}), ErrorCode::inconsistent, "int64_data");
  const Proto both = onnx_tensor("w", 6, {1}).varint(5, 1).text(9, "1234");
  refuses(onnx_model_of(both), ErrorCode::inconsistent, "more than one field");
  const Proto twice = onnx_tensor("w", 6, {2}).text(9, "1234").text(9, "1234");
  refuses(onnx_model_of(twice), ErrorCode::inconsistent, "repeats");
  refuses(onnx_model_of(onnx_tensor("w", 3, {2}).text(5, "\x01\x81")), ErrorCode::bad_value,
          "does not end");
  refuses(onnx_model_of(onnx_tensor("w", 1, {1}).text(4, "12345")), ErrorCode::inconsistent,
          "float_data");
  refuses(onnx_model_of(onnx_tensor("w", 8, {1}).text(6, "text")), ErrorCode::unsupported_dtype,
          "STRING");
  refuses(onnx_model_of(onnx_tensor("w", 29, {1})), ErrorCode::unsupported_dtype, "29");
  refuses(onnx_model_of(onnx_tensor("w", 0, {1})), ErrorCode::unsupported_dtype, "got 0");
  refuses(onnx_model_of(Proto().text(8, "w")), ErrorCode::bad_value, "data_type");
  refuses(onnx_model_of(onnx_tensor("w", 3, {1}).text(9, "x").message(3, Proto().varint(1, 0))),
          ErrorCode::unsupported_feature, "segment");
  refuses(onnx_model_of(onnx_tensor("w", 3, {1}).text(9, "x").varint(14, 2)), ErrorCode::bad_value,
          "data_location");
}

// A few bytes of numbers claim to be many: refused before memory is asked for.
BOOST_AUTO_TEST_CASE(decoding_asks_for_no_more_memory_than_the_limit) {
  const std::string wide =
      onnx_model_of(onnx_tensor("w", 7, {200'000}).text(7, std::string(200'000, '\1')));
  formats::onnx::OnnxReadOptions options;
  options.input.limits.max_allocation_bytes = 1'599'999;
  BOOST_CHECK_EXCEPTION(test::onnx_from(wide, options).read("w"), FormatError,
                        test::has_code(ErrorCode::limit_exceeded));
  options.input.limits.max_allocation_bytes = 1'600'000;
  BOOST_TEST(test::onnx_from(wide, options).read("w").bytes().size() == 1'600'000u);
  options = {};
  options.input.limits.max_tensors = 1;
  const Proto tensor = onnx_tensor("a", 3, {0});
  const std::string two =
      onnx_model(Proto().message(5, tensor).message(5, onnx_tensor("b", 3, {0})));
  BOOST_CHECK_EXCEPTION(test::onnx_from(two, options), FormatError,
                        test::says(ErrorCode::limit_exceeded, "max_tensors"));
}

BOOST_AUTO_TEST_CASE(names_that_are_empty_or_repeat_are_refused) {
  const Proto tensor = onnx_tensor("w", 3, {0});
  refuses(onnx_model(Proto().message(5, tensor).message(5, tensor)), ErrorCode::bad_name,
          "repeats");
  refuses(onnx_model_of(onnx_tensor("", 3, {0})), ErrorCode::bad_name, "no name");
  refuses(onnx_model_of(onnx_tensor("\xff", 3, {0})), ErrorCode::bad_value, "name");
  refuses(onnx_model_of(Proto(tensor).text(8, "v")), ErrorCode::inconsistent, "name");
}

BOOST_AUTO_TEST_CASE(graphs_in_graphs_end_at_a_depth) {
  const auto around = [](Proto graph, unsigned depth) {
    for (unsigned i = 0; i < depth; ++i) {
      const Proto attribute = Proto().text(1, "body").message(6, graph);
      graph = Proto().message(1, Proto().text(3, "n").message(5, attribute));
    }
    return onnx_model(graph);
  };
  const auto nested = [&](unsigned depth) {
    return around(Proto().message(5, onnx_tensor("w", 3, {1}).text(9, "x")), depth);
  };
  // A graph in a graph is three messages deeper; the model is one, its tensor another: 99.
  const formats::onnx::OnnxFile file = test::onnx_from(nested(32));
  BOOST_TEST(file.tensors().size() == 1u);
  BOOST_TEST(file.tensors()[0].name.size() == 32 * std::string("n/body/").size() + 1);
  // A sparse tensor's values are the hundredth; what they would hold is one too many.
  const auto sparse_at = [&](const Proto& values) {
    return around(Proto().message(15, sparse({4}, values, onnx_tensor("", 7, {1}).varint(7, 0))),
                  32);
  };
  const Proto values = onnx_tensor("s", 3, {1});
  BOOST_TEST(test::onnx_from(sparse_at(Proto(values).text(9, "x"))).tensors().size() == 1u);
  refuses(
      sparse_at(Proto(values).message(13, Proto().text(1, "location").text(2, "x")).varint(14, 1)),
      ErrorCode::limit_exceeded, "100 messages");
  refuses(nested(33), ErrorCode::limit_exceeded, "100 messages");
  refuses(nested(10'000), ErrorCode::limit_exceeded, "100 messages");
  BOOST_TEST(test::onnx_from(nested(10'000), {.constants = false}).tensors().empty());
  // Groups in groups, which protobuf counts itself.
  refuses(std::string(100'000, '\x0b'), ErrorCode::truncated, "a group");
}

// Each tensor is named after all nodes around it: long names are cut.
BOOST_AUTO_TEST_CASE(names_of_nested_tensors_do_not_grow_with_the_file) {
  const std::string name(100'000, 'n');
  Proto attribute = Proto().text(1, name);
  for (unsigned i = 0; i < 1000; ++i) attribute.message(10, onnx_tensor("w", 3, {0}));
  const formats::onnx::OnnxFile file =
      test::onnx_from(onnx_model(Proto().message(1, Proto().text(3, name).message(5, attribute))));
  BOOST_TEST(file.tensors().size() == 1000u);
  BOOST_TEST(file.tensors()[999].name.size() == 256 + 1 + 256 + std::string("/999").size());
  // Nor with the depth.
  const std::string part = name.substr(0, 256);
  Proto graph = Proto().message(5, onnx_tensor("w", 3, {0})).message(5, onnx_tensor("w", 3, {0}));
  for (unsigned depth = 0; depth < 32; ++depth) {
    const Proto body = Proto().text(1, part).message(6, graph);
    graph = Proto().message(1, Proto().text(3, part).message(5, body));
  }
  const formats::onnx::OnnxFile deep = test::onnx_from(onnx_model(graph));
  BOOST_TEST(deep.tensors().size() == 2u);
  BOOST_TEST(deep.tensors()[0].name.size() < 2000u);
  BOOST_TEST(deep.tensors()[1].name == deep.tensors()[0].name + "#2");
}

BOOST_AUTO_TEST_CASE(sparse_tensors_that_lie_are_refused) {
  BOOST_TEST(reads_whole(sparse_model({2, 3}, {2}, {0, 5})));
  BOOST_TEST(reads_whole(sparse_model({2, 3}, {2, 2}, {0, 0, 1, 2})));
  refuses(sparse_model({2, 3}, {2}, {0, 6}), ErrorCode::out_of_bounds, "less than 6");
  refuses(sparse_model({2, 3}, {2}, {0, kHuge}), ErrorCode::out_of_bounds, "indices");
  refuses(sparse_model({2, 3}, {2}, {5, 0}), ErrorCode::out_of_bounds, "more than 5");
  refuses(sparse_model({2, 3}, {2}, {1, 1}), ErrorCode::out_of_bounds, "more than 1");
  refuses(sparse_model({2, 3}, {2, 2}, {0, 3, 1, 0}), ErrorCode::out_of_bounds, "less than 3");
  refuses(sparse_model({2, 3}, {2, 3}, {0, 0, 0, 1, 1, 1}), ErrorCode::inconsistent, "indices");
  refuses(sparse_model({2, 3}, {2}, {0}), ErrorCode::inconsistent, "int64_data");
  refuses(sparse_model({1ll << 62, 1ll << 62}, {1}, {0}), ErrorCode::inconsistent, "dims");
  refuses(sparse_model({}, {1}, {0}), ErrorCode::unsupported_feature, "scalar");
  const Proto values = onnx_tensor("s", 3, {1}).text(9, "x");
  const Proto narrow = onnx_tensor("", 6, {1}).varint(5, 0);
  refuses(onnx_model(Proto().message(15, sparse({4}, values, narrow))), ErrorCode::bad_value,
          "INT64");
  refuses(onnx_model(Proto().message(15, Proto().message(1, values).varint(3, 4))),
          ErrorCode::bad_value, "indices");
}

BOOST_AUTO_TEST_SUITE_END()
