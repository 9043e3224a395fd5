#include "crash/content.h"

#include <fmt/format.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "crash/operation.h"
#include "integrity/content_hash.h"
#include "support/bytes.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/reader.h"
#include "thalia/recover.h"
#include "thalia/verify.h"

namespace thalia::crash {
namespace {

using test::bytes_of;

std::atomic<std::size_t> recovered = 0;

class ContentDigest {
 public:
  void add(std::string_view text) { add(bytes_of(text)); }
  void add(ByteSpan bytes) {
    const std::uint64_t size = bytes.size();
    hasher_.update(as_byte_span(std::span(&size, 1)));
    hasher_.update(bytes);
  }
  void add(const TensorView& tensor) {
    add(tensor.name());
    add(fmt::format("{} {} {}", int(tensor.dtype()), int(tensor.encoding()), tensor.nnz()));
    add(tensor.shape().to_string());
    std::vector<std::byte> bytes(tensor.logical_bytes());
    tensor.read(bytes);
    add(bytes);
  }
  std::string text() const { return test::hex(hasher_.finish()); }

 private:
  integrity::Xxh3 hasher_;
};

std::string digest_of(const Reader& reader) {
  ContentDigest digest;
  digest.add(reader.metadata_json());
  digest.add(std::to_string(reader.header().training_steps));
  for (std::uint32_t i = 0; i < reader.region_count(); ++i) {
    const RegionView region = reader.region(i);
    digest.add(region.name());
    digest.add(region.config_json());
    digest.add(region.metadata_json());
    digest.add(std::to_string(region.n_neurons()));
    for (std::uint32_t j = 0; j < region.tensor_count(); ++j) digest.add(region.tensor(j));
  }
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    const ConnectionView connection = reader.connection(i);
    digest.add(connection.source);
    digest.add(connection.target);
    digest.add(connection.weights);
    if (connection.delays) digest.add(*connection.delays);
  }
  return digest.text();
}

}  // namespace

test::Sample network(unsigned step) {
  test::Sample sample = test::small_sample();
  sample.metadata = fmt::format(R"({{"step":{}}})", step);
  sample.training_steps = step;
  sample.regions[0].tensors.push_back(
      test::dense_tensor("weights", DType::f32, {40, 80}, Role::weights, step));
  sample.regions[1].tensors.push_back(
      test::dense_tensor("state", DType::f16, {3000}, Role::region_state, step + 100));
  return sample;
}

test::Sample large_network(unsigned step) {
  test::Sample sample = network(step);
  sample.regions.push_back(
      {{.name = "large"}, {test::dense_tensor("w", DType::u8, {160, 1024}, Role::weights, step)}});
  return sample;
}

std::string content_of(const std::filesystem::path& path) {
  if (!is_file(path)) return kAbsent;
  ReadOptions options;
  options.work.threads = 1;
  const std::string content = digest_of(Reader::open(path, options));
  VerifyOptions verification;
  verification.work.threads = 1;
  for (const Finding& finding : verify(path, verification).findings)
    if (finding.severity == Severity::error)
      throw std::logic_error("was read without an error, but verify() says: " + finding.message);
  return content;
}

std::string recovered_content_of(const std::filesystem::path& path) {
  try {
    return content_of(path);
  } catch (const Error&) {
    // As the manual says to do. Who may only read gets the same.
    ReadOptions reading;
    reading.use_commit_record = true;
    reading.work.threads = 1;
    const std::string seen = digest_of(Reader::open(path, reading));
    RecoverOptions options;
    options.work.threads = 1;
    recover(path, options);
    ++recovered;
    if (content_of(path) != seen)
      throw std::logic_error("recover() restored another state than a reader saw");
    return seen;
  }
}

std::size_t recoveries() {
  return recovered;
}

}  // namespace thalia::crash
