// Files that PyTorch 2.13 wrote, in tests/data/formats/pt: their tensors are those that torch.load
// gave make.py, by their SHA-256. And the same files damaged.
#include "thalia/formats/pt.h"

#include <string>

#include "boost_test.h"
#include "formats/pt/archives.h"
#include "integrity/sha256.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/convert.h"
#include "thalia/state/value.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(pt)

namespace {

std::string digest(const Tensor& tensor) {
  const Tensor dense = tensor.to_dense();
  return test::hex(integrity::sha256(dense.bytes()));
}

Value expected() {
  return parse_json(read_file(pt_path("expected.json")));
}

// As torch.serialization.set_crc32_options(False) leaves an archive: in its directory, and after
// each record.
std::string without_checksums(std::string bytes) {
  for (const auto& [signature, place] :
       {std::pair{"PK\x01\x02", 16u}, std::pair{"PK\x07\x08", 4u}}) {
    for (std::size_t at = bytes.find(signature); at != std::string::npos;
         at = bytes.find(signature, at + 1))
      bytes.replace(at + place, 4, 4, '\0');
  }
  return bytes;
}

// Opens, reads and checks everything; false if that is refused.
bool reads_all(const std::string& bytes) {
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 20;
  try {
    const PtTensors file = pt_from(bytes, limits);
    bool sound = true;
    for (const AnyTensor& tensor : file.tensors()) {
      try {
        static_cast<void>(file.read(tensor.name));
        file.check(tensor.name);
      } catch (const Error&) {
        sound = false;
      }
    }
    return sound;
  } catch (const FormatError&) {
  } catch (const IntegrityError&) {
  } catch (const UnsupportedError&) {
  }
  return false;
}

}  // namespace

BOOST_AUTO_TEST_CASE(tensors_are_those_that_torch_loads) {
  std::size_t count = 0;
  const Value files = expected();
  for (const Value::Member& entry : files.members()) {
    const PtTensors file = pt_open(pt_path(entry.name));
    for (const Value& tensor : entry.value.elements()) {
      const std::string& name = tensor.at("name").as_string();
      BOOST_TEST_CONTEXT(entry.name << " " << name) {
        const Tensor read = file.read(name);
        BOOST_TEST(dtype_name(read.dtype()) == tensor.at("dtype").as_string());
        std::vector<std::uint64_t> shape;
        for (const Value& extent : tensor.at("shape").elements())
          shape.push_back(extent.as_uint64());
        BOOST_TEST((read.shape() == Shape(std::span<const std::uint64_t>(shape))));
        BOOST_TEST(digest(read) == tensor.at("sha256").as_string());
        ++count;
      }
    }
  }
  BOOST_TEST(count > 100u);
}

BOOST_AUTO_TEST_CASE(contiguous_tensors_lie_in_the_file) {
  const std::string bytes = read_file(pt_path("train.pt"));
  const PtTensors file = pt_from(bytes);
  const Tensor weight = file.read("model.0.weight");
  const Tensor again = file.read("model.0.weight");
  BOOST_TEST(weight.bytes().data() == again.bytes().data());
  BOOST_TEST(bytes.find(text_of(weight.bytes())) % 64 == 0u);
  // A view of a larger tensor is gathered, a row of it is not.
  const PtTensors views = pt_open(pt_path("views.pt"));
  const Tensor whole = views.read("whole");
  BOOST_TEST(views.read("row").bytes().data() == whole.bytes().data() + 24);
  BOOST_TEST(views.read("col").bytes().data() != views.read("col").bytes().data());
}

BOOST_AUTO_TEST_CASE(views_and_shared_storages_are_told) {
  BOOST_TEST(pt_open(pt_path("shared.pt")).tensors().size() == 7u);
  const auto tells = [](const char* name, const std::string& part) {
    return pt_tree(pt_path(name)).find(part) != std::string::npos;
  };
  BOOST_TEST(tells("shared.pt", R"(["embed",{"tensor":"embed","parameter":true}])"));
  BOOST_TEST(tells("shared.pt", R"(["head",{"tensor":"embed","parameter":true}])"));
  BOOST_TEST(tells(
      "shared.pt",
      R"(["b",{"tensor":"a","view":{"dtype":"int32","offset":1,"shape":[2],"stride":[1]}}])"));
  BOOST_TEST(tells("shared.pt", R"(["grad",{"tensor":"grad","requires_grad":true}])"));
  BOOST_TEST(tells("shared.pt", R"(["frozen",{"tensor":"frozen","parameter":false}])"));
  BOOST_TEST(tells("views.pt", R"("offset":0,"shape":[6,4],"stride":[1,6])"));
}

BOOST_AUTO_TEST_CASE(the_tree_is_that_of_thalia_checkpoint) {
  const Value tree = parse_json(pt_tree(pt_path("leaves.pt")));
  const auto value = [&](std::size_t place) {
    return to_json(tree.at("dict").elements()[place].elements()[1]);
  };
  BOOST_TEST(value(0) == R"({"device":"cuda:1"})");
  BOOST_TEST(value(1) == R"({"dtype":"float16"})");
  BOOST_TEST(value(2) == R"({"size":[3,4]})");
  BOOST_TEST(value(3) == R"({"bytes":"YWL/"})");
  BOOST_TEST(value(5) == R"({"set":[1,2]})");
  BOOST_TEST(value(7) == R"({"int":"1180591620717411303424"})");
  BOOST_TEST(value(8) == R"({"int":"-1180591620717411303424"})");
  BOOST_TEST(value(9) == R"({"int":"-9223372036854775808"})");
  BOOST_TEST(value(10) == "1099511627776");
  BOOST_TEST(value(11) == R"({"complex":["1.0","-2.0"]})");
  BOOST_TEST(value(12) == R"({"float":"nan"})");
  BOOST_TEST(value(14) == R"({"ordered":[["x",1]]})");
  BOOST_TEST(to_json(tree.at("dict").elements()[15].elements()[0]) == R"({"tuple":[1,"t"]})");
}

BOOST_AUTO_TEST_CASE(quantized_tensors_give_codes_with_their_parameters) {
  const PtTensors file = pt_open(pt_path("quantized.pt"));
  BOOST_TEST(file.tensors()[0].type == "qint8");
  BOOST_TEST((file.read("u").dtype() == DType::u8 && file.read("i").dtype() == DType::i32));
  BOOST_TEST(file.read("c.scales").as<double>()[1] == 0.25);
  BOOST_TEST(file.read("c.zero_points").as<std::int64_t>()[1] == 2);
  const std::string tree = pt_tree(pt_path("quantized.pt"));
  BOOST_TEST(tree.find(R"("quantized":{"dtype":"qint8","scale":"0.5","zero_point":3})") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(modules_of_torchscript_are_walked_and_their_code_is_lost) {
  const PtTensors file = pt_open(pt_path("script.pt"));
  BOOST_TEST((file.read("0.weight").shape() == Shape({1, 2})));
  BOOST_TEST(file.losses().size() == 1u);
  BOOST_TEST(file.losses()[0].find("code of the TorchScript program") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(other_objects_are_refused_by_name_and_older_files_with_advice) {
  const auto refusal = [](const char* name, ErrorCode code, const char* part) {
    BOOST_CHECK_EXCEPTION(pt_open(pt_path(name)), UnsupportedError, says(code, name, part));
  };
  refusal("namespace.pt", ErrorCode::unsupported_feature, "'argparse.Namespace'");
  refusal("module.pt", ErrorCode::unsupported_feature,
          "'torch.nn.modules.linear.Linear', which is not loaded; save model.state_dict()");
  refusal("legacy.pt", ErrorCode::unsupported_version, "save it again with torch.save");
  BOOST_CHECK_EXCEPTION(pt_from("\x80\x02N."), UnsupportedError,
                        says(ErrorCode::unsupported_version, "a Python pickle"));
  BOOST_CHECK_EXCEPTION(pt_from(""), FormatError, has_code(ErrorCode::truncated));
  BOOST_CHECK_EXCEPTION(pt_open(pt_path("bare.pt")).read("w"), UsageError,
                        has_code(ErrorCode::not_found));
}

BOOST_AUTO_TEST_CASE(no_truncated_file_is_read) {
  for (const char* const name : {"bare.pt", "sparse.pt"}) {
    const std::string whole = read_file(pt_path(name));
    BOOST_TEST(reads_all(whole));
    for (std::size_t length = 0; length < whole.size(); ++length)
      BOOST_TEST(!reads_all(whole.substr(0, length)), name << " of " << length);
  }
}

// What no checksum covers may be another file after a flip, but never more than a refusal.
BOOST_AUTO_TEST_CASE(a_flip_is_found_or_changes_no_payload) {
  for (const char* const name : {"quantized.pt", "protocol5.pt"}) {
    std::string bytes = read_file(pt_path(name));
    for (char& byte : bytes) {
      for (const char mask : {'\x01', '\x80', '\xff'}) {
        byte = static_cast<char>(byte ^ mask);
        static_cast<void>(reads_all(bytes));
        byte = static_cast<char>(byte ^ mask);
      }
    }
  }
  std::string bytes = read_file(pt_path("bare.pt"));
  const PtTensors sound = pt_open(pt_path("bare.pt"));
  const std::size_t at = bytes.find(text_of(sound.read("tensor").bytes()));
  bytes[at] = '\x01';
  BOOST_CHECK_EXCEPTION(pt_from(bytes).check("tensor"), IntegrityError,
                        says(ErrorCode::checksum_mismatch, "tensor"));
}

BOOST_AUTO_TEST_CASE(a_damaged_storage_is_found_before_it_is_read) {
  std::string bytes = read_file(pt_path("train.pt"));
  const AnyTensor tensor = pt_from(bytes).tensors()[0];
  const std::string payload = text_of(pt_from(bytes).read(tensor.name).bytes());
  bytes[bytes.find(payload)] ^= 1;
  BOOST_CHECK_THROW(pt_from(bytes).read(tensor.name), IntegrityError);
  const TemporaryFolder folder;
  write_file(folder / "a.pt", bytes);
  const auto read = [&](Verification verification) {
    return open_any(folder / "a.pt", {.chain = {.read = {.verification = verification}}})
        .read(tensor.name);
  };
  BOOST_CHECK_THROW(read(Verification::on_first_touch), IntegrityError);
  BOOST_TEST(text_of(read(Verification::off).bytes()) != payload);
  BOOST_CHECK_THROW(
      open_any(folder / "a.pt", {.chain = {.read = {.verification = Verification::at_open}}}),
      IntegrityError);
  BOOST_CHECK_THROW(convert(folder / "a.pt", folder / "a.thalia"), IntegrityError);
  BOOST_TEST(!std::filesystem::exists(folder / "a.thalia"));
}

BOOST_AUTO_TEST_CASE(an_archive_without_checksums_is_read) {
  const std::string bytes = without_checksums(read_file(pt_path("train.pt")));
  BOOST_TEST(bytes != read_file(pt_path("train.pt")));
  BOOST_TEST(reads_all(bytes));
  const PtTensors file = pt_from(bytes), whole = pt_open(pt_path("train.pt"));
  BOOST_TEST(file.tensors().size() == whole.tensors().size());
  for (const AnyTensor& tensor : whole.tensors())
    BOOST_TEST(digest(file.read(tensor.name)) == digest(whole.read(tensor.name)));
}

BOOST_AUTO_TEST_CASE(limits_hold) {
  const std::string bytes = read_file(pt_path("train.pt"));
  BOOST_CHECK_EXCEPTION(pt_from(bytes, {.max_tensors = 3}), FormatError,
                        says(ErrorCode::limit_exceeded, "max_tensors"));
  BOOST_CHECK_EXCEPTION(pt_from(bytes, {.max_allocation_bytes = 1000}), FormatError,
                        says(ErrorCode::limit_exceeded, "max_allocation_bytes"));
  BOOST_CHECK_EXCEPTION(pt_from(bytes, {.max_json_bytes = 100}), FormatError,
                        says(ErrorCode::limit_exceeded, "max_json_bytes"));
}

BOOST_AUTO_TEST_SUITE_END()
