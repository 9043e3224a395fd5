// What was written is read back, through every view, bit for bit.
#include <string>

#include "boost_test.h"
#include "container/write/same_as_sample.h"
#include "support/bytes.h"
#include "support/files.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(round_trip)

namespace {

// Extents whose product stays small at any rank and is odd, so that packed rows end inside bytes.
Shape shape_of_rank(unsigned rank) {
  constexpr std::uint64_t kExtents[] = {3, 5, 1, 3, 2, 1, 2, 3};
  return Shape(std::span(kExtents, rank));
}

std::string name_of(DType dtype, unsigned rank) {
  return std::string(dtype_name(dtype)) + "." + std::to_string(rank);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_dtype_comes_back_dense_at_every_rank) {
  for (unsigned rank = 0; rank <= 8; ++rank) {
    SampleRegion region{.spec = {.name = "r"}, .tensors = {}};
    for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
      const DType dtype{code};
      region.tensors.push_back(
          dense_tensor(name_of(dtype, rank), dtype, shape_of_rank(rank), Role::weights, code));
    }
    check_round_trip({.regions = {std::move(region)}, .connections = {}});
  }
}

BOOST_AUTO_TEST_CASE(every_dtype_of_whole_bytes_comes_back_sparse) {
  SampleRegion region{.spec = {.name = "r"}, .tensors = {}};
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    const DType dtype{code};
    if (dtype_is_packed(dtype)) continue;
    for (const bool wide : {false, true}) {
      const std::string name = std::string(dtype_name(dtype)) + (wide ? ".u64" : ".u32");
      // An odd and an even number of row pointers: the values of both need padding or none.
      region.tensors.push_back(csr_tensor("csr." + name, dtype, {4, 7}, wide, code));
      region.tensors.push_back(csr_tensor("csr5." + name, dtype, {5, 3}, wide, code));
      for (unsigned rank = 1; rank <= 8; ++rank) {
        region.tensors.push_back(coo_tensor("coo." + name + "." + std::to_string(rank), dtype,
                                            shape_of_rank(rank), wide, code));
      }
    }
  }
  check_round_trip({.regions = {std::move(region)}, .connections = {}});
}

BOOST_AUTO_TEST_CASE(empty_tensors_come_back_in_every_encoding) {
  SampleRegion region{.spec = {.name = "r"}, .tensors = {}};
  region.tensors = {dense_tensor("a", DType::f32, {0}),
                    dense_tensor("b", DType::i4, {3, 0, 5}, Role::region_state),
                    dense_tensor("c", DType::f64, {0, 1ull << 63, 1ull << 63}, Role::homeostatic),
                    csr_tensor("d", DType::f32, {0, 4}),
                    csr_tensor("e", DType::f64, {4, 0}),
                    csr_tensor("f", DType::f64, {0, 0}, true),
                    coo_tensor("g", DType::f32, {0}),
                    coo_tensor("h", DType::c128, {2, 0, 2}, true)};
  // All rows empty, though there are elements that could be stored.
  region.tensors.push_back(
      {{.name = "i", .dtype = DType::f64, .shape = {4, 4}, .encoding = Encoding::csr},
       std::vector<std::byte>(24)});
  region.tensors.push_back(
      {{.name = "j", .dtype = DType::f64, .shape = {4, 4}, .encoding = Encoding::coo}, {}});
  check_round_trip({.regions = {std::move(region)}, .connections = {}});
}

BOOST_AUTO_TEST_CASE(files_without_regions_or_without_tensors_come_back) {
  check_round_trip({.regions = {}, .connections = {}});
  check_round_trip({.regions = {{{.name = "a"}, {}}, {{.name = "b"}, {}}}, .connections = {}});
  check_round_trip({.regions = {{{.name = "a"}, {}},
                                {{.name = "b"}, {dense_tensor("t", DType::f32, {})}},
                                {{.name = "c"}, {}}},
                    .connections = {}});
  // A connection after regions that hold nothing.
  check_round_trip(
      {.regions = {{{.name = "a"}, {}}, {{.name = "b"}, {}}},
       .connections = {{"b", "a", dense_tensor("", DType::f32, {2, 2}), std::nullopt}}});
}

BOOST_AUTO_TEST_CASE(every_role_and_neuron_type_comes_back) {
  Sample sample;
  for (const NeuronType type : {NeuronType::lif, NeuronType::conductance_lif, NeuronType::none}) {
    SampleRegion region{.spec = {.name = std::string(neuron_type_name(type)),
                                 .n_neurons = 0xFFFFFFFF,
                                 .n_inputs = 0xFFFFFFFF,
                                 .neuron_type = type,
                                 .homeostatic_updated = ~0ull},
                        .tensors = {}};
    // Declared against the order in which roles are in the file.
    for (std::uint8_t role = kRoleCount; role-- > 0;) {
      for (const char* prefix : {"z", "a"}) {
        region.tensors.push_back(dense_tensor(std::string(prefix) + std::to_string(role),
                                              DType::i16, {5u + role}, Role{role}, role));
      }
    }
    sample.regions.push_back(std::move(region));
  }
  check_round_trip(sample);
}

BOOST_AUTO_TEST_CASE(json_texts_are_kept_verbatim) {
  const std::string text =
      " {\n\t\"b\" : 1.50 , \"a\":[ ],\"a\\u0000\\/\":\"\\ud83d\\ude00 \xF0\x9F\x98\x80\", "
      "\"n\":-0.0e-7,\"d\":{\"d\":{}}}\r\n ";
  std::string deep = "{\"a\":";
  for (int i = 0; i < 200; ++i) deep += '[';
  deep += std::string(200, ']') + "}";
  check_round_trip({.metadata = text,
                    .training_steps = ~0ull,
                    .regions = {{{.name = "a", .config_json = text, .metadata_json = text}, {}},
                                {{.name = "b", .config_json = deep, .metadata_json = "{}"}, {}}},
                    .connections = {}});
  // Two megabytes: more than a block, and than what a parser takes at once.
  const std::string large = "{\"x\":\"" + std::string(2 << 20, 'x') + "\"}";
  check_round_trip({.metadata = large, .regions = {{{.name = "a"}, {}}}, .connections = {}});
}

BOOST_AUTO_TEST_CASE(files_with_everything_come_back) {
  check_round_trip(small_sample());
  check_round_trip(varied_sample());
}

BOOST_AUTO_TEST_CASE(equal_input_gives_equal_bytes) {
  SaveOptions options = steady_options();
  const std::string once = check_round_trip(varied_sample(), options);
  options.work.threads = 3;
  BOOST_TEST(bool(check_round_trip(varied_sample(), options) == once));
  options.timestamp = 1;
  BOOST_TEST(bool(check_round_trip(varied_sample(), options) != once));
}

BOOST_AUTO_TEST_SUITE_END()
