// One file written through the public Writer, and beside it, as NAME.expected.json, what was
// written: the witness has to find the same.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "json/writer.h"
#include "thalia/writer.h"

namespace witness {

using Bytes = std::vector<std::byte>;

/// A fixed timestamp and uuid, SHA-256 leaves: equal bytes in every run, and nothing but the
/// standard library needed to verify them.
thalia::SaveOptions plain_options();
/// The same without gaps between sections, which are no example of anything.
thalia::SaveOptions example_options();

/// Pseudo-random bytes, the same for the same seed.
Bytes noise(std::size_t length, std::uint64_t seed);

/// Logical bytes of a dense tensor that hold legal elements only.
Bytes dense_payload(thalia::DType dtype, const thalia::Shape& shape, std::uint64_t seed);

/// A sparse matrix with up to two elements a row.
struct CsrMatrix {
  std::vector<std::uint64_t> row_pointers{0};
  std::vector<std::uint64_t> columns;
};
CsrMatrix csr_matrix(std::uint64_t rows, std::uint64_t columns);

class Sample {
 public:
  Sample(const std::filesystem::path& folder, const std::string& name,
         const thalia::SaveOptions& options = plain_options());

  void metadata(std::string json);
  void training_steps(std::uint64_t steps);
  thalia::RegionId region(thalia::RegionSpec spec);
  /// Given whole, as a span.
  void dense(thalia::RegionId region, thalia::TensorSpec spec);
  void dense(thalia::RegionId region, thalia::TensorSpec spec, Bytes payload);
  /// Declared now, given in pieces by stream().
  void streamed(thalia::RegionId region, thalia::TensorSpec spec);
  /// All streamed payloads, interleaved in pieces of `piece` bytes, or one after the other.
  void stream(std::size_t piece, bool interleaved);
  /// nnz, the encoding and the width of indices follow from the arrays. Through add_csr.
  void csr(thalia::RegionId region, thalia::TensorSpec spec, const CsrMatrix& matrix, bool wide);
  /// coordinates: dimension-major. Through add_coo.
  void coo(thalia::RegionId region, thalia::TensorSpec spec,
           const std::vector<std::uint64_t>& coordinates, bool wide);
  std::uint32_t connection(const std::string& source, const std::string& target);
  void weights(std::uint32_t connection, thalia::TensorSpec spec);
  void delays(std::uint32_t connection, thalia::TensorSpec spec);
  /// Commits, and writes down what was said.
  void finish();
  /// The same as a file that came to be by two appends: the first region replaced another, one is
  /// gone, the rest was added. There is at least one region, and no matrix is compressed.
  void finish_by_appends();

 private:
  struct Noted {
    std::string region;
    thalia::TensorSpec spec;
    Bytes payload;
    thalia::TensorId id{};
    bool streamed = false;
  };
  Noted& note(std::string region, thalia::TensorSpec spec, Bytes payload);
  void add_connection_matrix(std::uint32_t connection, thalia::TensorSpec spec, bool delays);
  void write_expectation(const thalia::SaveResult& result) const;
  static void describe(thalia::JsonWriter& json, const Noted& tensor);

  std::filesystem::path path_;
  thalia::SaveOptions options_;
  thalia::Writer writer_;
  std::string metadata_ = "{}";
  std::uint64_t training_steps_ = 0;
  std::vector<thalia::RegionSpec> regions_;
  std::vector<std::pair<std::string, std::string>> connections_;
  std::vector<std::unique_ptr<Noted>> tensors_;
  std::deque<Bytes> borrowed_;  ///< index arrays and values, until commit
};

}  // namespace witness
