#include "thalia/state/diff.h"

#include <functional>
#include <string>
#include <vector>

#include "boost_test.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(diff)

namespace {

// Two files of one writing function, of which the second is told to differ.
class Pair {
 public:
  using Write = std::function<void(Writer& writer, bool later)>;

  explicit Pair(const Write& write) {
    for (const bool later : {false, true}) {
      Writer writer(path(later), {.output = {.durability = Durability::none}});
      write(writer, later);
      writer.commit();
    }
  }
  Diff diff(const DiffOptions& options = {}) const {
    return thalia::diff(Reader::open(path(false)), Reader::open(path(true)), options);
  }
  std::filesystem::path path(bool later) const {
    return folder_ / (later ? "b.thalia" : "a.thalia");
  }

 private:
  TemporaryFolder folder_;
};

std::string text_of(const std::vector<FieldDiff>& fields) {
  std::string text;
  for (const FieldDiff& field : fields) {
    text += std::string(change_name(field.change())) + " " + field.field + " " + field.before +
            " " + field.after + "\n";
  }
  return text;
}

void add(Writer& writer, RegionId region, const std::string& name,
         const std::vector<float>& values) {
  writer.write(writer.add_tensor(region, {.name = name, .shape = {values.size()}}),
               as_byte_span(values));
}

const std::vector<float> kOnes(4, 1.0f);
const std::vector<float> kTwos(4, 2.0f);

}  // namespace

BOOST_AUTO_TEST_CASE(two_saves_of_one_state_are_the_same) {
  const Pair pair([](Writer& writer, bool later) {
    writer.set_metadata(later ? R"({"b":[1,{"y":0,"x":1}],"a":"A"})"
                              : R"({"a" : "\u0041", "b" : [1, {"x":1, "y":0}]})");
    const RegionId region = writer.add_region({.name = "r", .config_json = R"({"k":1})"});
    const ConnectionId loop = writer.add_connection("r", "r");
    writer.add_connection_weights(loop, {.shape = {4}}, as_byte_span(kOnes));
    add(writer, region, "w", kOnes);
  });
  const Diff diff = pair.diff({.values = true});
  BOOST_TEST(diff.same());
  BOOST_TEST(diff.same_regions == 1u);
  BOOST_TEST(diff.same_connections == 1u);
  BOOST_TEST(text_of(diff.storage).find("changed file_uuid \"") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(compression_and_checksums_are_no_difference) {
  const TemporaryFolder folder;
  const std::vector<float> values(10'000, 0.5f);
  for (const bool later : {false, true}) {
    SaveOptions options;
    options.compression.codec = later ? Codec::zstd : Codec::none;
    options.checksum = later ? ChecksumType::crc32 : ChecksumType::block_tree;
    Writer writer(folder / (later ? "b" : "a"), options);
    writer.add_tensor(writer.add_region({.name = "r"}), {.name = "w", .shape = {10'000}},
                      as_byte_span(values));
    writer.commit();
  }
  const Diff diff = thalia::diff(Reader::open(folder / "a"), Reader::open(folder / "b"));
  BOOST_TEST(diff.same());
  BOOST_TEST(text_of(diff.storage).find("changed checksum_type 3 2\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(header_and_metadata_are_compared_field_by_field) {
  const Pair pair([](Writer& writer, bool later) {
    writer.set_training_steps(later ? 20 : 10);
    writer.set_metadata(later ? R"({"same":{"a":1},"changed":1.0,"new":null})"
                              : R"({"old":"x","same":{"a": 1},"changed":1})");
    writer.add_region({.name = "r", .n_neurons = 3});
  });
  const Diff diff = pair.diff();
  BOOST_TEST(!diff.same());
  BOOST_TEST(text_of(diff.header) == "changed training_steps 10 20\n");
  BOOST_TEST(text_of(diff.metadata) ==
             "removed old \"x\" \nchanged changed 1 1.0\nadded new  null\n");
  BOOST_TEST(diff.regions.empty());
}

BOOST_AUTO_TEST_CASE(metadata_are_compared_down_to_their_innermost_members) {
  const auto text = [](std::string_view before, std::string_view after) {
    return text_of(diff_metadata(before, after));
  };
  BOOST_TEST(text(R"({"training":{"step":3,"lr":{"max":1,"min":0}},"same":{"a":[1]}})",
                  R"({"same":{"a": [1]},"training":{"lr":{"min":0,"max":2},"step":7,"new":{}}})") ==
             "changed training.step 3 7\nchanged training.lr.max 1 2\nadded training.new  {}\n");
  BOOST_TEST(text(R"({"a.b":{"":1},"c":{"x":1}})", R"({"a.b":{"":2},"c":[1]})") ==
             "changed \"a.b\".\"\" 1 2\nchanged c {\"x\":1} [1]\n");
  BOOST_TEST(text("", "{}") == "");
  BOOST_CHECK_THROW(diff_metadata("{", "{}"), FormatError);
}

BOOST_AUTO_TEST_CASE(patterns_narrow_what_is_compared) {
  const Pair pair([](Writer& writer, bool later) {
    const ByteSpan changing = as_byte_span(later ? kTwos : kOnes);
    writer.set_training_steps(later ? 20 : 10);
    const RegionId r = writer.add_region({.name = "r", .config_json = later ? R"({"a":1})" : "{}"});
    writer.add_tensor(r, {.name = "w", .shape = {4}}, changing);
    writer.add_tensor(r, {.name = "b", .shape = {4}}, changing);
    const RegionId s = writer.add_region({.name = "s"});
    writer.add_tensor(s, {.name = "b", .shape = {4}}, as_byte_span(kOnes));
    if (later) {
      writer.add_tensor(writer.add_region({.name = "t"}), {.name = "w", .shape = {4}}, changing);
    }
    writer.add_connection_weights(writer.add_connection("r", "s"), {.shape = {4}}, changing);
  });
  const Diff some = pair.diff({.values = true, .tensors = {"r/w"}});
  BOOST_TEST((some.header.empty() && some.metadata.empty() && some.connections.empty()));
  BOOST_REQUIRE(some.regions.size() == 1u);
  BOOST_TEST(some.regions[0].config.empty());
  BOOST_TEST(some.regions[0].tensor_count == 1u);
  BOOST_REQUIRE(some.regions[0].tensors.size() == 1u);
  BOOST_TEST(some.regions[0].tensors[0].values->max_difference == 1);

  const Diff in_both = pair.diff({.tensors = {"b", "connections/*"}});
  BOOST_TEST(in_both.regions.size() == 1u);
  BOOST_TEST(in_both.same_regions == 1u);
  BOOST_TEST(in_both.connections.size() == 1u);
  const Diff added = pair.diff({.tensors = {"t/*"}});
  BOOST_REQUIRE(added.regions.size() == 1u);
  BOOST_TEST((added.regions[0].change == Change::added && added.regions[0].tensor_count == 1u));
  BOOST_TEST(added.regions[0].tensors.size() == 1u);
  BOOST_CHECK_EXCEPTION(pair.diff({.tensors = {"w", "x*"}}), UsageError, [](const auto& error) {
    return error.code() == ErrorCode::not_found && error.context().field == "tensors";
  });
}

BOOST_AUTO_TEST_CASE(regions_are_added_removed_and_changed_in_what_they_say) {
  const Pair pair([](Writer& writer, bool later) {
    writer.add_region({.name = later ? "new" : "old", .n_neurons = 1});
    writer.add_region(
        {.name = "same", .config_json = later ? R"({"a":1,"b":2})" : R"({"b":2,"a":1})"});
    writer.add_region({.name = "changed",
                       .config_json = later ? R"({"tau":20,"dt":1})" : R"({"tau":10})",
                       .metadata_json = later ? R"({"note":"x"})" : "",
                       .n_neurons = later ? 7u : 5u,
                       .n_inputs = later ? 3u : 2u,
                       .neuron_type = later ? NeuronType::lif : NeuronType::none});
  });
  const Diff diff = pair.diff();
  BOOST_TEST(text_of(diff.header) == "changed total_neurons 6 8\n");
  BOOST_REQUIRE(diff.regions.size() == 3u);
  BOOST_TEST(diff.same_regions == 1u);
  BOOST_TEST((diff.regions[0].name == "old" && diff.regions[0].change == Change::removed));
  BOOST_TEST((diff.regions[2].name == "new" && diff.regions[2].change == Change::added));
  const RegionDiff& changed = diff.regions[1];
  BOOST_TEST((changed.name == "changed" && changed.change == Change::changed));
  BOOST_TEST(text_of(changed.facts) ==
             "changed n_neurons 5 7\nchanged n_inputs 2 3\n"
             "changed neuron_type \"" +
                 std::string(neuron_type_name(NeuronType::none)) + "\" \"" +
                 std::string(neuron_type_name(NeuronType::lif)) + "\"\n");
  BOOST_TEST(text_of(changed.config) == "changed tau 10 20\nadded dt  1\n");
  BOOST_TEST(text_of(changed.metadata) == "added note  \"x\"\n");
}

BOOST_AUTO_TEST_CASE(tensors_differ_in_each_of_their_facts) {
  const std::vector<std::uint16_t> bits(4, 0x3C00);
  const std::vector<std::uint32_t> rows{0, 1};
  const std::vector<std::uint32_t> columns{0};
  const std::vector<std::uint64_t> wide_rows{0, 1};
  const std::vector<std::uint64_t> wide_columns{0};
  const ByteSpan one = as_byte_span(kOnes).first(4);
  const Pair pair([&](Writer& writer, bool later) {
    const RegionId r = writer.add_region({.name = "r"});
    const ByteSpan ones = as_byte_span(kOnes);
    writer.add_tensor(r, {.name = "content", .shape = {4}}, as_byte_span(later ? kTwos : kOnes));
    if (later) {
      writer.add_tensor(r, {.name = "dtype", .dtype = DType::bf16, .shape = {4}},
                        as_byte_span(bits));
      writer.add_csr(r, {.name = "encoding", .shape = {1, 1}},
                     CsrArrays<std::uint32_t>{rows, columns, one});
      writer.add_csr(r, {.name = "indices", .shape = {1, 1}},
                     CsrArrays<std::uint64_t>{wide_rows, wide_columns, one});
    } else {
      writer.add_tensor(r, {.name = "dtype", .dtype = DType::f16, .shape = {4}},
                        as_byte_span(bits));
      writer.add_tensor(r, {.name = "encoding", .shape = {1, 1}}, one);
      writer.add_csr(r, {.name = "indices", .shape = {1, 1}},
                     CsrArrays<std::uint32_t>{rows, columns, one});
    }
    writer.add_tensor(r, {.name = later ? "new" : "old", .shape = {4}}, ones);
    writer.add_tensor(
        r, {.name = "role", .shape = {4}, .role = later ? Role::buffer : Role::weights}, ones);
    writer.add_tensor(r, {.name = "same", .shape = {4}}, ones);
    writer.add_tensor(r, {.name = "shape", .shape = later ? Shape{2, 2} : Shape{4}}, ones);
  });
  const Diff diff = pair.diff();
  BOOST_REQUIRE(diff.regions.size() == 1u);
  BOOST_TEST(diff.regions[0].tensor_count == 9u);
  std::string text;
  for (const TensorDiff& tensor : diff.regions[0].tensors) {
    text += std::string(change_name(tensor.change)) + " " + tensor.name;
    BOOST_TEST(!tensor.values.has_value());
    BOOST_TEST(tensor.before.has_value() == (tensor.change != Change::added));
    BOOST_TEST(tensor.after.has_value() == (tensor.change != Change::removed));
    if (tensor.change == Change::changed) {
      if (tensor.dtype_changed()) text += " dtype";
      if (tensor.shape_changed()) text += " shape";
      if (tensor.role_changed()) text += " role";
      if (tensor.encoding_changed()) text += " encoding";
      if (tensor.content_changed()) text += " content";
    }
    text += "\n";
  }
  BOOST_TEST(text ==
             "changed content content\n"
             "changed dtype dtype\n"
             "changed encoding encoding content\n"
             "changed indices encoding content\n"
             "added new\n"
             "removed old\n"
             "changed role role\n"
             "changed shape shape\n");
}

BOOST_AUTO_TEST_CASE(connections_are_compared_by_their_regions) {
  const Pair pair([](Writer& writer, bool later) {
    for (const char* name : {"a", "b"}) writer.add_region({.name = name});
    const auto connect = [&](const char* from, const char* to, const std::vector<float>& weights,
                             bool delayed) {
      const ConnectionId id = writer.add_connection(from, to);
      writer.add_connection_weights(id, {.shape = {4}}, as_byte_span(weights));
      if (delayed) writer.add_connection_delays(id, {.shape = {4}}, as_byte_span(kOnes));
    };
    // In another order, and with other numbers.
    if (later) connect("a", "a", kOnes, true);
    connect("a", "b", later ? kTwos : kOnes, true);
    connect("b", "b", kOnes, later);
    if (!later) connect("b", "a", kOnes, false);
  });
  const Diff diff = pair.diff({.values = true});
  BOOST_REQUIRE(diff.connections.size() == 4u);
  const auto is = [&](std::size_t i, std::string_view from, std::string_view to, Change change) {
    const ConnectionDiff& connection = diff.connections[i];
    return connection.source == from && connection.target == to && connection.change == change;
  };
  BOOST_TEST(is(0, "a", "b", Change::changed));
  BOOST_REQUIRE(diff.connections[0].matrices.size() == 1u);
  BOOST_TEST(diff.connections[0].matrices[0].name == "weights");
  BOOST_TEST(diff.connections[0].matrices[0].values->max_difference == 1);
  BOOST_TEST(is(1, "b", "a", Change::removed));
  BOOST_TEST(is(2, "b", "b", Change::changed));
  BOOST_REQUIRE(diff.connections[2].matrices.size() == 1u);
  BOOST_TEST(diff.connections[2].matrices[0].name == "delays");
  BOOST_TEST((diff.connections[2].matrices[0].change == Change::added));
  BOOST_TEST(is(3, "a", "a", Change::added));
}

BOOST_AUTO_TEST_CASE(without_values_no_payload_is_read) {
  const std::vector<float> large(1 << 20, 1.0f);
  const Pair pair([&](Writer& writer, bool later) {
    std::vector<float> values = large;
    values[7] = later ? 2 : 1;
    add(writer, writer.add_region({.name = "r"}), "w", values);
  });
  const ReadOptions unverified{.verification = Verification::off};
  const Reader a = Reader::open(
      pair.path(false), {.input = {.access = Access::copied}, .verification = Verification::off});
  const Reader b = Reader::open(pair.path(true), unverified);
  BOOST_TEST(thalia::diff(a, b).regions.size() == 1u);
  BOOST_TEST(a.resident_bytes() < 1u << 20);
  thalia::diff(a, b, {.values = true});
  BOOST_TEST(a.resident_bytes() > 4u << 20);
}

BOOST_AUTO_TEST_CASE(a_stop_ends_it) {
  const Pair pair([](Writer& writer, bool later) {
    add(writer, writer.add_region({.name = "r"}), "w", later ? kTwos : kOnes);
  });
  std::stop_source stop;
  stop.request_stop();
  BOOST_CHECK_THROW(pair.diff({.values = true, .work = {.cancel = stop.get_token()}}),
                    CancelledError);
}

BOOST_AUTO_TEST_SUITE_END()
