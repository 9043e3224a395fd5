// Files of version 0.1 there and back. Known answers: the files that the original program wrote.
#include <filesystem>
#include <string>

#include "boost_test.h"
#include "formats/v01/files.h"
#include "formats/v01/wrapper.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/formats/v01.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(v01_identity)

namespace {

V01WriteOptions as_read(const V01File& file) {
  return {.compression = {.codec = file.wrapper},
          .aligned = file.aligned,
          .checksum_inside = file.checksum_inside,
          .output = {.durability = Durability::none}};
}

std::string body_of(const std::string& file) {
  return text_of(
      formats::verified_v01_body(formats::open_v01_wrapper(bytes_of(file), nullptr, {})).bytes);
}

const Value& state_of(const V01File& file, std::string_view name) {
  for (const V01Entry& entry : file.document.entries)
    if (entry.name == name) return entry.state;
  BOOST_FAIL("no entry " << name);
  throw;  // not reached
}

}  // namespace

BOOST_AUTO_TEST_CASE(bodies_of_the_original_come_back_byte_for_byte) {
  const auto files = v01_positives();
  BOOST_TEST(files.size() >= 4u);
  for (const auto& path : files) {
    BOOST_TEST_CONTEXT(path) {
      const V01File file = read_v01(path);
      const std::string written = v01_text(encode_v01(file.document, as_read(file)));
      const std::string original = read_file(path);
      BOOST_TEST((body_of(written) == body_of(original)));
      if (!file.wrapper) BOOST_TEST((written == original));
    }
  }
}

BOOST_AUTO_TEST_CASE(frames_are_as_the_original_wrote_them) {
  // Frames need not be equal bytes, other versions of the codecs compress otherwise. The LZ4
  // frame's descriptor has to be: version 1, independent blocks of 64 KiB, content size, no
  // checksums.
  const std::string original = read_file(v01_data("full.thalia.lz4"));
  const V01File file = read_v01(v01_data("full.thalia.lz4"));
  const std::string written = v01_text(encode_v01(file.document, as_read(file)));
  BOOST_TEST((written.substr(0, 15) == original.substr(0, 15)));
  BOOST_TEST(written[4] == '\x68');
  BOOST_TEST(written[5] == '\x40');
}

BOOST_AUTO_TEST_CASE(large_lz4_frames_have_linked_blocks_of_64_kib) {
  V01Document document = v01_sample();
  document.entries[0].state["weights"]["large"] = Tensor::zeros(DType::f32, {100, 1000});
  const auto bytes = encode_v01(document, {.compression = {.codec = Codec::lz4}});
  BOOST_TEST(std::to_integer<int>(bytes[4]) == 0x48);
  BOOST_TEST(std::to_integer<int>(bytes[5]) == 0x40);
  BOOST_TEST((encode_v01(decode_v01(bytes).document) == encode_v01(document)));
}

BOOST_AUTO_TEST_CASE(full_file_has_what_the_original_put_in) {
  const V01File file = read_v01(v01_data("full.thalia"));
  BOOST_TEST(file.warnings.empty());
  BOOST_TEST(file.document.header.total_neurons == 10u);
  BOOST_TEST(file.document.header.total_synapses == 458u);
  BOOST_TEST(file.document.header.training_steps == 1000u);
  BOOST_TEST(file.document.metadata.at("experiment").as_string() == "vectors");
  std::vector<std::string> names;
  for (const V01Entry& entry : file.document.entries) names.push_back(entry.name);
  const std::vector<std::string> expected{"cortex", "striatum", "empty_region",
                                          "a_region_name_longer_than_31_by",
                                          "pathway:cortex_to_striatum"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
  const Value& cortex = state_of(file, "cortex");
  BOOST_TEST(cortex.at("config").at("name").as_string() == "cortex L2/3 Δ é");
  BOOST_TEST(cortex.at("weights").at("missing").is_null());
  const Tensor& sparse = cortex.at("weights").at("w_rec_sparse").as_tensor();
  BOOST_TEST((sparse.encoding() == Encoding::coo));
  BOOST_TEST(sparse.nnz() == 5u);
  BOOST_TEST((sparse.shape() == Shape{20, 20}));
}

BOOST_AUTO_TEST_CASE(tags_of_classes_stay_plain_objects) {
  const V01File file = read_v01(v01_data("full.thalia"));
  const Value& striatum = state_of(file, "striatum");
  BOOST_TEST(striatum.at("device").at("_value").as_string() == "cpu");
  BOOST_TEST(striatum.at("state_dc").at("_dataclass").as_string() == "thalia_vec.RegionState");
  BOOST_TEST(striatum.at("state_dc").at("_fields").at("spikes").is_tensor());
  BOOST_TEST(striatum.at("obj").at("_dict").at("phase").is_tensor());
}

BOOST_AUTO_TEST_CASE(every_wrapper_holds_the_same_document) {
  const V01Document document = v01_sample();
  for (const Codec wrapper : {Codec::none, Codec::zstd, Codec::lz4}) {
    for (const bool inside : {false, true}) {
      for (const bool aligned : {false, true}) {
        const auto bytes = encode_v01(
            document,
            {.compression = {.codec = wrapper}, .aligned = aligned, .checksum_inside = inside});
        const V01File file = decode_v01(bytes);
        BOOST_TEST((file.wrapper.value_or(Codec::none) == wrapper));
        BOOST_TEST(file.checksum_inside == (inside && wrapper != Codec::none));
        BOOST_TEST(file.aligned == aligned);
        BOOST_TEST(file.warnings.empty());
        BOOST_TEST((file.document.metadata == document.metadata));
        BOOST_TEST((encode_v01(file.document, as_read(file)) == bytes));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(sparse_tensors_of_any_kind_become_coordinates) {
  const V01File file = decode_v01(encode_v01(v01_sample()));
  const V01Document sample = v01_sample();
  for (const char* name : {"weights.w_rec", "learning_state.sparse"}) {
    const std::string group = std::string(name).substr(0, std::string(name).find('.'));
    const std::string member = std::string(name).substr(group.size() + 1);
    const Tensor& before = sample.entries[0].state.at(group).at(member).as_tensor();
    const Tensor& after = state_of(file, "cortex").at(group).at(member).as_tensor();
    BOOST_TEST((after.encoding() == Encoding::coo));
    BOOST_TEST(after.layout().wide_indices);
    BOOST_TEST((after.to_dense() == before.to_dense()));
  }
}

BOOST_AUTO_TEST_CASE(aligned_tensors_stay_in_the_mapping) {
  const TemporaryFolder folder;
  const auto path = folder / "aligned.thalia";
  write_v01(path, v01_sample(), {.aligned = true, .output = {.durability = Durability::none}});
  const V01File file = read_v01(path);
  const Tensor& w = state_of(file, "cortex").at("weights").at("w_ff").as_tensor();
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(w.bytes().data()) % 64 == 0u);
  BOOST_TEST(w.as<float>()[5] == 6.0f);
  // Overwritten in place, the file shows through: it was not copied.
  std::string bytes = read_file(path);
  const float seven = 7;
  const std::size_t at =
      bytes.find(std::string(reinterpret_cast<const char*>(w.bytes().data()), 24));
  BOOST_TEST_REQUIRE(at != std::string::npos);
  std::FILE* raw = std::fopen(path.c_str(), "r+b");
  BOOST_TEST_REQUIRE(raw != nullptr);
  std::fseek(raw, static_cast<long>(at), SEEK_SET);
  std::fwrite(&seven, sizeof seven, 1, raw);
  std::fclose(raw);
  BOOST_TEST(w.as<float>()[0] == 7.0f);
}

BOOST_AUTO_TEST_CASE(tensors_of_packed_files_can_be_used_at_any_offset) {
  for (const Access access : {Access::mapped, Access::copied}) {
    const V01File file = read_v01(v01_data("full.thalia"), {.input = {.access = access}});
    for (const V01Entry& entry : file.document.entries) {
      if (entry.name != "cortex") continue;
      const Value& stp = entry.state.at("learning_state").at("stp");
      BOOST_TEST(stp.at("u").as_tensor().as<float>().size() == 3u);
      BOOST_TEST(entry.state.at("weights").at("w_ff").as_tensor().as<float>()[0] == -1.0f);
      entry.state.at("weights").at("w_rec_sparse").as_tensor().coo();
    }
  }
}

BOOST_AUTO_TEST_CASE(tensors_outlive_the_file) {
  Tensor kept;
  {
    const auto bytes = encode_v01(v01_sample());
    const V01File file = decode_v01(bytes);
    kept = state_of(file, "cortex").at("weights").at("w_ff").as_tensor();
  }
  BOOST_TEST(kept.as<float>()[3] == 4.0f);
}

BOOST_AUTO_TEST_CASE(totals_are_counted_as_the_original_counts) {
  for (const char* name : {"full.thalia", "full.thalia.lz4", "eraA_full.thalia.zst"}) {
    V01Document document = read_v01(v01_data(name)).document;
    const V01Header header = document.header;
    document.header.total_neurons = 0;
    document.header.total_synapses = 0;
    count_v01_totals(document);
    BOOST_TEST(document.header.total_neurons == header.total_neurons);
    BOOST_TEST(document.header.total_synapses == header.total_synapses);
  }
}

BOOST_AUTO_TEST_CASE(a_save_that_fails_leaves_the_old_file) {
  const TemporaryFolder folder;
  const auto path = folder / "state.thalia";
  write_file(path, "old");
  V01Document document = v01_sample();
  document.entries[1].state["bad"] = Tensor::zeros(DType::i8, {2});
  BOOST_CHECK_THROW(write_v01(path, document), UnsupportedError);
  BOOST_TEST(read_file(path) == "old");
  BOOST_TEST(list_folder(folder.path()).size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
