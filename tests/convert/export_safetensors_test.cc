// What a safetensors file cannot hold.
#include <algorithm>
#include <string>

#include "boost_test.h"
#include "checkpoint/checkpoints.h"
#include "convert/precision_samples.h"
#include "formats/samples.h"
#include "state/tensor/conversion.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/formats/convert.h"
#include "thalia/state/tensor_value.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(export_safetensors)

namespace {

const std::vector<std::byte> kEight(8);

struct Written {
  std::string region;
  std::string name;
  Role role = Role::weights;
};

void write_checkpoint(const std::filesystem::path& path, const std::vector<Written>& tensors) {
  Writer writer(path, fixed_identity());
  std::vector<std::pair<std::string, RegionId>> regions;
  for (const Written& tensor : tensors) {
    auto found =
        std::ranges::find(regions, tensor.region, &std::pair<std::string, RegionId>::first);
    if (found == regions.end()) {
      regions.emplace_back(tensor.region, writer.add_region({.name = tensor.region}));
      found = regions.end() - 1;
    }
    writer.add_tensor(found->second, {.name = tensor.name, .shape = {2}, .role = tensor.role},
                      kEight);
  }
  writer.commit();
}

struct Exported {
  std::vector<std::string> names;
  std::vector<std::string> losses;
  std::string refusal;
};

Exported exported(const TemporaryFolder& folder) {
  Exported out;
  try {
    out.losses = convert(folder / "a.thalia", folder / "out.safetensors", {}).losses;
    const SafetensorsFile file = SafetensorsFile::open(folder / "out.safetensors");
    for (const NamedArray& tensor : file.tensors()) out.names.push_back(tensor.name);
  } catch (const UnsupportedError& error) {
    BOOST_TEST(!std::filesystem::exists(folder / "out.safetensors"));
    BOOST_TEST(error.context().path == (folder / "a.thalia").string());
    out.refusal = error.message() + ": " + error.context().region + "/" + error.context().tensor +
                  " " + error.context().value;
  }
  return out;
}

using Strings = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(a_name_in_several_regions_gets_the_region_in_front) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.thalia", {{"x", "w"}, {"y", "w"}, {"y", "y.b"}});
  const Exported out = exported(folder);
  BOOST_TEST((out.names == Strings{"x.w", "y.b", "y.w"}));
  BOOST_TEST((out.losses ==
              Strings{"tensors of one name in several regions are renamed to REGION.NAME: 'x.w', "
                      "'y.w'",
                      "regions that their tensors' names do not tell: 'x', 'y'"}));
}

BOOST_AUTO_TEST_CASE(names_that_collide_all_the_same_are_refused) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.thalia", {{"x", "w"}, {"y", "w"}, {"z", "x.w"}});
  BOOST_TEST(exported(folder).refusal == "without regions another tensor has this name: z/x.w ");
  write_checkpoint(folder / "a.thalia", {{"x", "__metadata__"}});
  BOOST_TEST(exported(folder).refusal == "safetensors keeps this name for itself: x/__metadata__ ");
}

BOOST_AUTO_TEST_CASE(roles_are_listed_and_long_lists_are_cut) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.thalia", {{"r", "r.a", Role::optimizer},
                                         {"r", "r.b", Role::optimizer},
                                         {"r", "r.c", Role::optimizer},
                                         {"r", "r.d", Role::optimizer},
                                         {"r", "r.e", Role::oscillator},
                                         {"r", "r.f", Role::weights}});
  BOOST_TEST((exported(folder).losses ==
              Strings{"role oscillator of tensors, which their names do not tell: 'r/r.e'",
                      "role optimizer of tensors, which their names do not tell: 'r/r.a', 'r/r.b', "
                      "'r/r.c' and 1 more"}));
}

BOOST_AUTO_TEST_CASE(sparse_tensors_become_dense_where_that_is_asked_for) {
  const TemporaryFolder folder;
  const std::vector<float> dense{0, 3, 0, 0, 0, 4};
  const Tensor tensor = Tensor::copy_of<float>({2, 3}, dense);
  for (const Tensor& sparse : {tensor.to_csr(), tensor.to_coo()}) {
    Writer writer(folder / "a.thalia", fixed_identity());
    const RegionId region = writer.add_region({.name = "r"});
    writer.add_tensor(region, TensorSpec::of("r.w", sparse.layout()), sparse.bytes());
    const ConnectionId connection = writer.add_connection("r", "r");
    writer.add_connection_weights(connection, TensorSpec::of("", sparse.layout()), sparse.bytes());
    writer.commit();
    BOOST_TEST(exported(folder).refusal.starts_with("safetensors has no such encoding"));
    for (const char* policy : {"keep", "bf16"}) {
      ConvertOptions options = with_precision(policy);
      options.dense = true;
      convert(folder / "a.thalia", folder / "b.safetensors", options);
      convert(folder / "b.safetensors", folder / "c.thalia");
      const Reader back = Reader::open(folder / "c.thalia");
      for (const char* name : {"r.w", "r->r.weights"}) {
        const Tensor read = Tensor::from(back.tensor(name), {});
        BOOST_TEST((read.encoding() == Encoding::dense));
        BOOST_TEST((read.dtype() == (policy[0] == 'k' ? DType::f32 : DType::bf16)));
        BOOST_TEST((state::convert_tensor(read, DType::f32, 1) == tensor));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(everything_about_regions_and_the_file_is_listed) {
  const TemporaryFolder folder;
  {
    Writer writer(folder / "a.thalia");
    writer.set_metadata(R"({"format":"safetensors","safetensors":{"metadata":{"k":"v"}},"own":1})");
    writer.set_training_steps(7);
    const RegionId r = writer.add_region({.name = "r",
                                          .config_json = R"({"a":1})",
                                          .metadata_json = R"({"b":1})",
                                          .n_neurons = 2,
                                          .homeostatic_updated = 5});
    writer.add_region({.name = "hollow", .config_json = " {  } "});
    writer.add_tensor(r, {.name = "r.w", .shape = {2}}, kEight);
    writer.add_tensor(r, {.name = "r.h", .shape = {2}, .role = Role::homeostatic}, kEight);
    const ConnectionId connection = writer.add_connection("r", "hollow");
    writer.add_connection_weights(connection, {.shape = {2}}, kEight);
    writer.commit();
  }
  const Exported out = exported(folder);
  BOOST_TEST((out.names == Strings{"r->hollow.weights", "r.h", "r.w"}));
  BOOST_TEST(
      (out.losses == Strings{"connections become tensors with nothing to tell them from others: "
                             "'r->hollow'",
                             "config of regions: 'r'", "metadata of regions: 'r'",
                             "neurons, inputs and neuron type of regions: 'r'",
                             "time of the last homeostatic update of regions: 'r'",
                             "regions without tensors: 'hollow'",
                             "role homeostatic of tensors, which their names do not tell: 'r/r.h'",
                             "metadata: 'own'", "the count of training steps"}));
  BOOST_TEST((SafetensorsFile::open(folder / "out.safetensors").metadata() ==
              SafetensorsMetadata{{"k", "v"}}));
}

BOOST_AUTO_TEST_CASE(metadata_of_another_shape_under_the_same_key_come_back) {
  const TemporaryFolder folder;
  for (const std::string own :
       {R"(1)", R"({"metadata":{"a":1}})", R"({"metadata":{"a":"1"},"more":1})",
        R"({"metadata":[]})", R"({"metadata":{"a":"1","a":"2"}})"}) {
    for (const bool is_named : {false, true}) {
      const std::string json =
          (is_named ? R"({"format":"safetensors","safetensors":)" : R"({"safetensors":)") + own +
          "}";
      {
        Writer writer(folder / "a.thalia");
        writer.set_metadata(json);
        writer.commit();
      }
      BOOST_TEST_CONTEXT(json) {
        // Without the format's name it is metadata like any other, and is carried.
        const Strings lost = {"metadata: 'safetensors'"};
        BOOST_TEST((exported(folder).losses == (is_named ? lost : Strings{})));
        if (is_named) continue;
        convert(folder / "out.safetensors", folder / "back.thalia");
        BOOST_TEST(Reader::open(folder / "back.thalia").metadata_json() == json);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(sparse_tensors_are_refused) {
  const TemporaryFolder folder;
  write_rich_checkpoint(folder / "a.thalia", fixed_identity());
  BOOST_TEST(exported(folder).refusal == "safetensors has no such encoding: v1/csr csr");
}

BOOST_AUTO_TEST_CASE(dtypes_that_safetensors_lacks_are_refused) {
  const TemporaryFolder folder;
  for (const DType dtype :
       {DType::i4, DType::u4, DType::i2, DType::u2, DType::ternary, DType::binary, DType::c128}) {
    const std::vector<std::byte> zeros(Shape{8}.byte_length(dtype).value());
    Writer writer(folder / "a.thalia");
    writer.add_tensor(writer.add_region({.name = "r"}), {.name = "w", .dtype = dtype, .shape = {8}},
                      zeros);
    writer.commit();
    BOOST_TEST(exported(folder).refusal ==
               "safetensors has no such dtype: r/w " + std::string(dtype_name(dtype)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
