// Regions and connections of open .thalia files as those of a new one: what extract() and merge()
// are made of.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert/conversions.h"
#include "convert/precision_run.h"
#include "thalia/writer.h"

namespace thalia::formats {

/// Everything is copied between set_metadata() and finish(), regions before connections. The files
/// that views come from have to stay open until finish() returns. Externally synchronised.
class ThaliaCopy {
 public:
  ThaliaCopy(const path& output, const ConvertOptions& options, ConvertResult& result);

  /// An empty text: the file has no metadata.
  void set_metadata(std::string metadata_json) { metadata_ = std::move(metadata_json); }
  void set_training_steps(std::uint64_t steps) { writer_.set_training_steps(steps); }
  /// `change` may rename the region, and change its metadata.
  void copy_region(const Reader& reader, std::uint32_t number,
                   const std::function<void(RegionSpec&)>& change = {});
  /// One without tensors.
  void add_region(RegionSpec region) { writer_.add_region(std::move(region)); }
  /// Left out if one of its regions was not copied, which finish() notes as a loss. @return whether
  /// it was copied.
  bool copy_connection(const ConnectionView& connection);
  /// Connections that follow name regions that follow, and none of those so far.
  void begin_brain() { full_names_.clear(); }
  /// Puts the output in its place, and sets its bytes and tensors in the result.
  void finish();

 private:
  struct Streamed {
    TensorId id;
    TensorView view;
    DType dtype;  ///< to be stored in
  };

  /// `label` is what a result calls the tensor.
  ByteSpan borrowed(std::string_view label, const TensorView& tensor, DType dtype);

  const ReadOptions& read_;
  ConvertResult& result_;
  PrecisionRun precision_;
  std::string metadata_;
  std::vector<std::byte> scratch_;
  std::list<std::vector<std::byte>> held_;
  std::vector<Streamed> streamed_;
  std::map<std::string, std::string> full_names_;  ///< by what connections know regions by
  std::vector<std::string> dropped_;
  Writer writer_;
};

}  // namespace thalia::formats
