#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <map>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "container/carried_tensor.h"
#include "container/short_name.h"
#include "interop/conversions.h"
#include "thalia/error.h"
#include "thalia/writer.h"

namespace thalia::interop {
namespace {

TensorSpec spec_of(const TensorView& tensor) {
  return {.name = std::string(tensor.name()),
          .dtype = tensor.dtype(),
          .shape = tensor.shape(),
          .role = tensor.role(),
          .encoding = tensor.encoding(),
          .nnz = tensor.nnz(),
          .wide_indices = tensor.wide_indices()};
}

// In the order of their bytes, which is that of their declaration.
std::vector<TensorView> tensors_of(const RegionView& region) {
  std::vector<TensorView> tensors;
  tensors.reserve(region.tensor_count());
  for (std::uint32_t i = 0; i < region.tensor_count(); ++i) tensors.push_back(region.tensor(i));
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorView& a, const TensorView& b) {
    return a.stored_offset() < b.stored_offset();
  });
  return tensors;
}

// The copied regions by the name that connections know them by.
class RegionNames {
 public:
  void add(std::string_view full_name) {
    full_names_.emplace(container::short_name_string(full_name), full_name);
  }
  const std::string* find(const std::string& stored) const {
    const auto found = full_names_.find(stored);
    return found == full_names_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, std::string> full_names_;
};

class Copy {
 public:
  Copy(const Reader& reader, const path& output, const ConvertOptions& options,
       ConvertResult& result)
      : reader_(reader),
        limits_(options.read.limits),
        result_(result),
        writer_(output, options.save) {}

  void run(const std::vector<std::uint32_t>& regions) {
    if (!reader_.metadata_json().empty())
      writer_.set_metadata(std::string(reader_.metadata_json()));
    writer_.set_training_steps(reader_.header().training_steps);
    for (const std::uint32_t i : regions) copy_region(reader_.region(i));
    copy_connections();
    for (const auto& [id, view] : streamed_) {
      const ByteSpan payload = fetch_payload(view, scratch_, limits_);
      if (!payload.empty()) writer_.write(id, payload);
    }
    const SaveResult saved = writer_.commit();
    result_.input_bytes = reader_.file_bytes();
    result_.output_bytes = saved.file_bytes;
    result_.tensors = saved.tensors;
  }

 private:
  // Raw payloads are borrowed from the mapping. As soon as one has to be decompressed it and all
  // behind it are streamed instead, in the order of declaration, so that one of them at a time is
  // in memory.
  void copy_region(const RegionView& region) {
    const RegionId id = writer_.add_region(container::region_spec(region));
    names_.add(region.name());
    for (const TensorView& tensor : tensors_of(region)) {
      check_encoding(tensor);
      if (tensor.is_raw() && streamed_.empty()) {
        writer_.add_tensor(id, spec_of(tensor), tensor.bytes());
      } else {
        streamed_.emplace_back(writer_.add_tensor(id, spec_of(tensor)), tensor);
      }
    }
  }

  void copy_connections() {
    std::vector<std::string> dropped;
    for (std::uint32_t i = 0; i < reader_.connection_count(); ++i) {
      const ConnectionView connection = reader_.connection(i);
      const std::string* source = names_.find(connection.source);
      const std::string* target = names_.find(connection.target);
      if (!source || !target) {
        dropped.push_back(fmt::format("{}->{}", connection.source, connection.target));
        continue;
      }
      const std::uint32_t id = writer_.add_connection(*source, *target);
      writer_.add_connection_weights(id, spec_of(connection.weights), borrowed(connection.weights));
      if (connection.delays) {
        writer_.add_connection_delays(id, spec_of(*connection.delays),
                                      borrowed(*connection.delays));
      }
    }
    if (!dropped.empty()) {
      result_.losses.push_back(
          fmt::format("connections to regions left out: {}", list_names(dropped)));
    }
  }

  // Matrices of connections cannot be streamed: decompressed ones wait for the commit in memory.
  ByteSpan borrowed(const TensorView& tensor) {
    check_encoding(tensor);
    if (tensor.is_raw()) return tensor.bytes();
    return fetch_payload(tensor, held_.emplace_back(), limits_);
  }

  static void check_encoding(const TensorView& tensor) {
    if (tensor.encoding() <= Encoding::coo) return;
    throw UnsupportedError(ErrorCode::unsupported_feature, "cannot copy this encoding",
                           {.field = "encoding",
                            .region = printable(Reader::region_name(tensor)),
                            .tensor = printable(tensor.name()),
                            .value = std::string(encoding_name(tensor.encoding()))});
  }

  const Reader& reader_;
  const ReadLimits& limits_;
  ConvertResult& result_;
  std::vector<std::byte> scratch_;
  std::list<std::vector<std::byte>> held_;
  std::vector<std::pair<TensorId, TensorView>> streamed_;
  RegionNames names_;
  Writer writer_;
};

}  // namespace

void copy_thalia(const Reader& reader, const std::vector<std::uint32_t>& regions,
                 const path& output, const ConvertOptions& options, ConvertResult& result) {
  Copy(reader, output, options, result).run(regions);
}

}  // namespace thalia::interop
