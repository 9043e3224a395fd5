// The published vectors, as tests/data/vectors/manifest.json says that they are: what a reader
// finds in the valid ones, and what verify and readers say of the others.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "boost_test.h"
#include "container/read/damage_check.h"
#include "format/chunk.h"
#include "integrity/sha256.h"
#include "state/tensor/element_decoder.h"
#include "support/damage.h"
#include "support/files.h"
#include "thalia/reader.h"
#include "thalia/state/delta.h"
#include "thalia/state/value.h"
#include "thalia/text.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(vectors)

namespace {

namespace fs = std::filesystem;

const fs::path kFolder = THALIA_VECTORS_FOLDER;
constexpr std::uint64_t kMostBytes = 96 << 10;

const Value& manifest() {
  static const Value value = parse_json(read_file(kFolder / "manifest.json"));
  return value;
}

std::string sha256_of(ByteSpan bytes) {
  return hex(integrity::sha256(bytes).bytes);
}

std::string sha256_of_file(const fs::path& path) {
  const std::string bytes = read_file(path);
  BOOST_TEST(bytes.size() <= kMostBytes, path);
  return sha256_of(std::as_bytes(std::span(bytes)));
}

const std::string& text(const Value& of, std::string_view name) {
  return of.at(name).as_string();
}

std::string_view or_empty(const Value& value) {
  return value.is_null() ? std::string_view() : std::string_view(value.as_string());
}

double number_of(const Value& value) {
  if (value.kind() == Value::Kind::boolean) return value.as_bool() ? 1 : 0;
  if (value.kind() != Value::Kind::string) return value.as_double();
  const std::string& text = value.as_string();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  return text == "Infinity" ? infinity : -infinity;
}

// A NaN is any; -0.0 is not 0.0.
void check_values(DType dtype, ByteSpan bytes, const Value& expected) {
  std::vector<double> found(expected.elements().size());
  state::decode_elements<double>(dtype, bytes, 0, found);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double wanted = number_of(expected.elements()[i]);
    const bool same = std::isnan(wanted)
                          ? std::isnan(found[i])
                          : found[i] == wanted && std::signbit(found[i]) == std::signbit(wanted);
    BOOST_TEST(same, "element " << i << ": " << found[i] << ", expected " << wanted);
  }
}

void check_tensor(const TensorView& tensor, const Value& expected) {
  BOOST_TEST(role_name(tensor.role()) == text(expected, "role"));
  BOOST_TEST(encoding_name(tensor.encoding()) == text(expected, "encoding"));
  BOOST_TEST(dtype_name(tensor.dtype()) == text(expected, "dtype"));
  const auto& shape = expected.at("shape").elements();
  BOOST_TEST_REQUIRE(tensor.shape().rank() == shape.size());
  for (unsigned d = 0; d < shape.size(); ++d) BOOST_TEST(tensor.shape()[d] == shape[d].as_uint64());
  BOOST_TEST(tensor.nnz() == expected.at("nnz").as_uint64());
  BOOST_TEST(tensor.wide_indices() == expected.at("wide_indices").as_bool());
  BOOST_TEST(tensor.logical_bytes() == expected.at("logical_length").as_uint64());
  BOOST_TEST(tensor.crc32() == expected.at("crc32").as_uint64());
  const Digest128 hash = tensor.content_hash();
  BOOST_TEST(hex(hash.bytes) == text(expected, "content_hash"));
  // The stored bytes of a tensor that needs a base are not handed out.
  if (expected.find("result") != nullptr) return;
  std::vector<std::byte> bytes(tensor.logical_bytes());
  tensor.read(bytes);
  BOOST_TEST(sha256_of(bytes) == text(expected, "sha256"));
  if (const Value* values = expected.find("values")) check_values(tensor.dtype(), bytes, *values);
}

unsigned bits_of(const FileFlags& flags) {
  unsigned bits = 0;
  unsigned bit = 1;
  for (const bool is_set : {flags.compressed, flags.lz4, flags.homeostatic, flags.neuromodulators,
                            flags.sparse, flags.mixed_precision, flags.delta}) {
    if (is_set) bits += bit;
    bit *= 2;
  }
  return bits;
}

void check_file(const Reader& reader, const Value& expected) {
  BOOST_TEST(reader.header().generation == expected.at("generation").as_uint64());
  BOOST_TEST(bits_of(reader.header().flags) == expected.at("flags").as_uint64());
  BOOST_TEST(reader.header().training_steps == expected.at("training_steps").as_uint64());
  BOOST_TEST(reader.header().total_neurons == expected.at("total_neurons").as_uint64());
  BOOST_TEST(reader.header().total_synapses == expected.at("total_synapses").as_uint64());
  BOOST_TEST(reader.metadata_json() == or_empty(expected.at("metadata")));
  const auto& regions = expected.at("regions").elements();
  BOOST_TEST_REQUIRE(reader.region_count() == regions.size());
  for (std::uint32_t r = 0; r < regions.size(); ++r) {
    const RegionView region = reader.region(r);
    BOOST_TEST(region.name() == text(regions[r], "name"));
    BOOST_TEST(region.n_neurons() == regions[r].at("n_neurons").as_uint64());
    BOOST_TEST(region.n_inputs() == regions[r].at("n_inputs").as_uint64());
    const Value& config = regions[r].at("config");
    BOOST_TEST(region.config_json() == (config.is_null() ? "{}" : or_empty(config)));
    BOOST_TEST(region.metadata_json() == or_empty(regions[r].at("metadata")));
  }
  const auto& connections = expected.at("connections").elements();
  BOOST_TEST_REQUIRE(reader.connection_count() == connections.size());
  std::size_t matrices = 0;
  for (const Value& tensor : expected.at("tensors").elements()) {
    BOOST_TEST_CONTEXT("tensor " << text(tensor, "name")) {
      if (tensor.at("region").is_null()) {
        const std::string& name = text(tensor, "name");
        const std::size_t dot = name.find('.');
        const ConnectionView connection =
            reader.connection(static_cast<std::uint32_t>(std::stoul(name.substr(0, dot))));
        check_tensor(name.substr(dot) == ".delays" ? *connection.delays : connection.weights,
                     tensor);
        ++matrices;
      } else {
        check_tensor(reader.region(text(tensor, "region")).at(text(tensor, "name")), tensor);
      }
    }
  }
  BOOST_TEST(reader.region_count() == regions.size());
  BOOST_TEST((matrices != 0) == !connections.empty());
}

// What comes out of codes, or of a chain.
void check_results(const fs::path& path, const Value& expected) {
  const ChainReader chain = ChainReader::open(path);
  const Value* depth = expected.find("depth");
  BOOST_TEST(chain.depth() == (depth == nullptr ? 0 : depth->as_uint64()));
  for (const Value& tensor : expected.at("tensors").elements()) {
    const Value* result = tensor.find("result");
    if (result == nullptr || tensor.at("region").is_null()) continue;
    BOOST_TEST_CONTEXT("tensor " << text(tensor, "name")) {
      const TensorView view =
          chain.reader().region(text(tensor, "region")).at(text(tensor, "name"));
      std::vector<std::byte> bytes(result->at("bytes").as_uint64());
      if (view.encoding() == Encoding::quantized) {
        view.read_dense(bytes);
      } else {
        BOOST_TEST_REQUIRE(chain.describe(view).logical_bytes == bytes.size());
        chain.read(view, bytes);
      }
      BOOST_TEST(sha256_of(bytes) == text(*result, "sha256"));
    }
  }
}

const Value& described(const std::string& file) {
  for (const Value& valid : manifest().at("valid").elements()) {
    if (text(valid, "file") == file) return valid;
  }
  throw std::runtime_error("not in the manifest: " + file);
}

// Errors of verify with the bases of a delta, as `thalia verify --resolve` reports them.
std::vector<Walk::Met> errors_of_chain(const fs::path& path) {
  std::vector<Walk::Met> met;
  const auto note = [&](auto action) {
    try {
      action();
    } catch (const Error& error) {
      met.push_back({error.code(), error.context().section, error.context().field});
    }
  };
  note([&] {
    const ChainReader chain = ChainReader::open(path);
    for (std::uint32_t r = 0; r < chain.reader().region_count(); ++r) {
      const RegionView region = chain.reader().region(r);
      for (std::uint32_t t = 0; t < region.tensor_count(); ++t)
        note([&] { chain.read(region.tensor(t)); });
    }
  });
  return met;
}

bool has(const std::vector<Walk::Met>& met, const Value& expected) {
  return std::any_of(met.begin(), met.end(), [&](const Walk::Met& one) {
    return error_code_name(one.code) == text(expected, "code") &&
           one.section == text(expected, "section") && one.field == text(expected, "field");
  });
}

// Whether the checklist has a row that says what the finding says.
bool has_row(const Finding& finding) {
  const std::string name =
      finding.field.empty() ? finding.section : finding.section + "." + finding.field;
  for (const auto& [number, rule] : manifest().at("rules").members()) {
    if (text(rule, "code") != error_code_name(finding.code)) continue;
    if ((text(rule, "severity") == "error") != (finding.severity == Severity::error)) continue;
    for (const Value& found : rule.at("findings").elements())
      if (found.as_string() == name) return true;
  }
  return false;
}

std::string list(const std::vector<Walk::Met>& met) {
  std::string out;
  for (const Walk::Met& one : met)
    out += one.section + "." + one.field + " " + std::string(error_code_name(one.code)) + "\n";
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_are_those_of_the_manifest) {
  std::set<std::string> named{"refused/small_base.thalia",
                              "refused/steps_base.thalia"};  // of those that are refused with it
  for (const char* kind : {"valid", "refused", "bases"}) {
    for (const Value& entry : manifest().at(kind).elements()) {
      const std::string name = std::string(kind) + "/" + text(entry, "file");
      BOOST_TEST(sha256_of_file(kFolder / name) == text(entry, "sha256"), name);
      named.insert(name);
    }
    for (const auto& file : fs::directory_iterator(kFolder / kind)) {
      const std::string name = std::string(kind) + "/" + file.path().filename().string();
      BOOST_TEST(named.contains(name), name << " is not in the manifest");
    }
  }
  BOOST_TEST(named.size() > 200u);
}

BOOST_AUTO_TEST_CASE(valid_files_are_what_the_manifest_says) {
  for (const Value& expected : manifest().at("valid").elements()) {
    const fs::path path = kFolder / "valid" / text(expected, "file");
    const std::string& kind = text(expected, "kind");
    BOOST_TEST_CONTEXT(path.filename()) {
      if (kind == "recoverable") {
        BOOST_TEST(!verify_damaged(path).ok());
        check_file(Reader::open(path, {.use_commit_record = true}),
                   described(text(expected, "of")));
        continue;
      }
      const VerifyReport report = verify_damaged(path);
      BOOST_TEST(report.findings.empty(), describe(report));
      const Value& contents =
          kind == "full" || kind == "delta" ? expected : described(text(expected, "of"));
      if (kind == "side_file") {
        BOOST_TEST(Reader::open(path).metadata_json() == or_empty(contents.at("metadata")));
        continue;
      }
      check_file(Reader::open(path), contents);
      check_results(path, contents);
    }
  }
}

BOOST_AUTO_TEST_CASE(refused_files_are_reported_by_verify) {
  for (const Value& expected : manifest().at("refused").elements()) {
    const fs::path path = kFolder / "refused" / text(expected, "file");
    BOOST_TEST_CONTEXT(path.filename()) {
      const VerifyReport report = verify_damaged(path);
      const bool error = text(expected, "severity") == "error";
      if (expected.at("with_base").as_bool()) {
        BOOST_TEST(report.ok(), describe(report));
        const std::vector<Walk::Met> met = errors_of_chain(path);
        BOOST_TEST(has(met, expected), list(met));
        continue;
      }
      std::vector<Walk::Met> met;
      for (const Finding& finding : report.findings) {
        BOOST_TEST(has_row(finding), finding.section << "." << finding.field << " "
                                                     << error_code_name(finding.code)
                                                     << " is in no row of the checklist");
        if ((finding.severity == Severity::error) == error)
          met.push_back({finding.code, finding.section, finding.field});
      }
      BOOST_TEST(has(met, expected), "expected " << text(expected, "section") << "."
                                                 << text(expected, "field") << " "
                                                 << text(expected, "code") << ", got\n"
                                                 << list(met));
      BOOST_TEST(report.ok() == !error);
    }
  }
}

BOOST_AUTO_TEST_CASE(refused_files_are_refused_by_readers_that_have_to) {
  for (const Value& expected : manifest().at("refused").elements()) {
    if (!expected.at("reader_refuses").as_bool() || expected.at("with_base").as_bool()) continue;
    const fs::path path = kFolder / "refused" / text(expected, "file");
    BOOST_TEST_CONTEXT(path.filename()) {
      for (const Access access : {Access::mapped, Access::copied}) {
        std::vector<Walk::Met> met = walk_file(path, Verification::off, access).met;
        for (Walk::Met& one : errors_of_chain(path)) met.push_back(std::move(one));
        const std::string& code = text(expected, "code");
        BOOST_TEST(std::any_of(met.begin(), met.end(),
                               [&](const Walk::Met& one) {
                                 return error_code_name(one.code) == code &&
                                        one.section == text(expected, "section");
                               }),
                   "expected " << code << ", got\n"
                               << list(met));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_valid_files_have_every_code_of_the_format) {
  std::set<std::string> encodings, dtypes, codecs, filters, checksums, kinds;
  for (const Value& valid : manifest().at("valid").elements()) {
    kinds.insert(text(valid, "kind"));
    if (valid.find("tensors") == nullptr) continue;
    checksums.insert(text(valid, "checksum_type"));
    for (const Value& tensor : valid.at("tensors").elements()) {
      encodings.insert(text(tensor, "encoding"));
      dtypes.insert(text(tensor, "dtype"));
      for (const Value& chunk : tensor.at("chunks").elements()) {
        codecs.insert(chunk.elements()[0].as_string());
        filters.insert(chunk.elements()[1].as_string());
      }
    }
  }
  BOOST_TEST(encodings.size() == kEncodingCount);
  BOOST_TEST(dtypes.size() == kDTypeCount);
  BOOST_TEST(codecs.size() == kCodecCount);
  BOOST_TEST(filters.size() == format::kFilterCount);
  BOOST_TEST(checksums.size() == 4u);
  BOOST_TEST(kinds.size() == 5u);
}

BOOST_AUTO_TEST_SUITE_END()
