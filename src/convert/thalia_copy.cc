// Copies views into a Writer. Declaring comes first and writing last: copy_region() and
// copy_connection() declare and hand over what can be borrowed, finish() streams the rest. So
// everything borrowed has to live until finish() returns: mappings through the views, decoded
// matrices in held_. held_ is a list because its elements must not move.
#include "convert/thalia_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/append/copied_tensor.h"
#include "container/file/short_name.h"
#include "convert/payload_pieces.h"
#include "formats/source/legal_elements.h"
#include "formats/source/list_names.h"
#include "thalia/error.h"

namespace thalia::formats {
namespace {

// In the order of their bytes in the file, which is that of their declaration. The directory may
// sort them by name.
std::vector<TensorView> tensors_of(const RegionView& region) {
  std::vector<TensorView> tensors;
  tensors.reserve(region.tensor_count());
  for (std::uint32_t i = 0; i < region.tensor_count(); ++i) tensors.push_back(region.tensor(i));
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorView& a, const TensorView& b) {
    return a.stored_offset() < b.stored_offset();
  });
  return tensors;
}

void check_encoding(const TensorView& tensor) {
  if (tensor.encoding() <= Encoding::quantized) return;
  throw UnsupportedError(ErrorCode::unsupported_feature, "cannot copy this encoding",
                         {.field = "encoding",
                          .region = printable(Reader::region_name(tensor)),
                          .tensor = printable(tensor.name()),
                          .value = std::string(encoding_name(tensor.encoding()))});
}

// A copy has elements that its own check takes.
template <typename Call>
auto with_legal_elements(const TensorView& tensor, const Call& call) {
  try {
    return call();
  } catch (Error& error) {
    error.add_region(printable(Reader::region_name(tensor)));
    error.add_tensor(printable(tensor.name()));
    throw;
  }
}

ByteSpan legal_bytes(const TensorView& tensor) {
  return with_legal_elements(tensor, [&] {
    const ByteSpan bytes = tensor.bytes();
    check_legal(tensor.layout(), bytes);
    return bytes;
  });
}

// Whether the bytes of the tensor are in the file as they are written. For a quantized tensor the
// file has codes only: its elements are restored and written.
bool is_in_place(const TensorView& tensor) {
  return tensor.is_raw() && tensor.encoding() != Encoding::quantized;
}

}  // namespace

ThaliaCopy::ThaliaCopy(const path& output, const ConvertOptions& options, ConvertResult& result)
    : read_(options.chain.read),
      result_(result),
      precision_(options.precision, result),
      writer_(output, options.save) {}

// Raw payloads that keep their dtype are borrowed from the mapping. Others are streamed by
// finish(), so that at most one decoded payload, or one converted piece, is in memory.
void ThaliaCopy::copy_region(const Reader& reader, std::uint32_t number,
                             const std::function<void(RegionSpec&)>& change) {
  const RegionView region = reader.region(number);
  const auto of_file = [&](const auto& call) { return with_path(reader.path().native(), call); };
  RegionSpec written = of_file([&] { return container::region_to_write(region); });
  if (change) change(written);
  full_names_.emplace(container::short_name_string(region.name()), written.name);
  const std::string name = written.name;
  const RegionId id = writer_.add_region(std::move(written));
  for (const TensorView& tensor : tensors_of(region)) {
    check_encoding(tensor);
    TensorSpec spec = spec_of(tensor);
    spec.name = of_file([&] { return container::name_to_write(tensor); });
    const DType dtype = spec.dtype = precision_.choose(name, spec);
    if (is_in_place(tensor) && dtype == tensor.dtype()) {
      writer_.add_tensor(id, std::move(spec), legal_bytes(tensor));
    } else {
      streamed_.push_back({writer_.add_tensor(id, std::move(spec)), tensor, dtype});
    }
  }
}

bool ThaliaCopy::copy_connection(const ConnectionView& connection) {
  const auto source = full_names_.find(connection.source);
  const auto target = full_names_.find(connection.target);
  if (source == full_names_.end() || target == full_names_.end()) {
    dropped_.push_back(fmt::format("{}->{}", connection.source, connection.target));
    return false;
  }
  const ConnectionId id = writer_.add_connection(source->second, target->second);
  const auto take = [&](std::string_view matrix, const TensorView& view, const auto& add) {
    check_encoding(view);
    TensorSpec spec = spec_of(view);
    spec.dtype = precision_.choose(connection, matrix, spec);
    const std::string label =
        fmt::format("{}->{}.{}", connection.source, connection.target, matrix);
    const ByteSpan payload = borrowed(label, view, spec.dtype);
    add(std::move(spec), payload);
  };
  take("weights", connection.weights, [&](TensorSpec spec, ByteSpan payload) {
    writer_.add_connection_weights(id, std::move(spec), payload);
  });
  if (!connection.delays) return true;
  take("delays", *connection.delays, [&](TensorSpec spec, ByteSpan payload) {
    writer_.add_connection_delays(id, std::move(spec), payload);
  });
  return true;
}

// The writer takes matrices of connections at their declaration only. So decoded and converted ones
// stay in memory until the commit.
ByteSpan ThaliaCopy::borrowed(std::string_view label, const TensorView& tensor, DType dtype) {
  if (dtype == tensor.dtype()) {
    if (is_in_place(tensor)) return legal_bytes(tensor);
    return with_legal_elements(tensor, [&] {
      const ByteSpan payload = fetch_payload(tensor, held_.emplace_back(), read_.input.limits);
      check_legal(spec_of(tensor).layout(), payload);
      return payload;
    });
  }
  const ByteSpan payload = fetch_payload(tensor, scratch_, read_.input.limits);
  std::vector<std::byte>& converted = held_.emplace_back();
  precision_.convert(label, spec_of(tensor), payload, dtype, [&](ByteSpan piece) {
    converted.insert(converted.end(), piece.begin(), piece.end());
  });
  return converted;
}

void ThaliaCopy::finish() {
  precision_.check_effect();
  std::string metadata =
      precision_.note_in(std::move(metadata_), read_.input.limits.max_json_depth);
  if (!metadata.empty()) writer_.set_metadata(std::move(metadata));
  for (const Streamed& one : streamed_) {
    const TensorSpec spec = spec_of(one.view);
    const std::string label = fmt::format("{}/{}", Reader::region_name(one.view), spec.name);
    const auto write = [&](ByteSpan piece) {
      if (!piece.empty()) writer_.write(one.id, piece);
    };
    LegalElements elements(spec.layout());
    visit_payload(one.view, scratch_, read_, [&](ByteSpan piece) {
      with_legal_elements(one.view, [&] { elements.pass(piece); });
      if (one.dtype == spec.dtype) {
        write(piece);
      } else {
        precision_.convert(label, spec, piece, one.dtype, write);
      }
    });
  }
  if (!dropped_.empty()) {
    result_.losses.push_back(
        fmt::format("connections to regions left out: {}", list_names(dropped_)));
  }
  const SaveResult saved = writer_.commit();
  result_.output_bytes = saved.file_bytes;
  result_.tensors = saved.tensors;
}

}  // namespace thalia::formats
