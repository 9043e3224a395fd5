// Each format becomes a OpenedTensor, whose functions hold the file open for as long as they live.
// What can be read in parts is; quantized tensors, and what else is decoded, are restored whole and
// cut afterwards.
#include "inspect/opened_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "inspect/block_cursor.h"
#include "inspect/copy_slice.h"
#include "inspect/flat_file.h"
#include "inspect/shown_name.h"
#include "io/allocation_limit.h"
#include "thalia/brain_region.h"
#include "thalia/delta.h"
#include "thalia/error.h"
#include "thalia/formats/file_format.h"
#include "thalia/formats/model_index.h"
#include "thalia/reader.h"
#include "thalia/tensor_value.h"

namespace thalia::inspect {
namespace {

bool is_separator(char c) {
  return c == '.' || c == '/';
}

// A path in the state, as policies spell it and growth prints it: REGION.COMPONENT.NAME with dots
// or slashes, or SOURCE->TARGET.weights of a connection, either behind its kind or without that.
std::optional<TensorView> find_by_path(const Reader& reader, std::string_view path) {
  for (const std::string_view kind : {"regions", "connections"}) {
    if (path.starts_with(kind) && path.size() > kind.size() && is_separator(path[kind.size()]))
      path.remove_prefix(kind.size() + 1);
  }
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    const ConnectionView connection = reader.connection(i);
    const std::string pair = fmt::format("{}->{}", connection.source, connection.target);
    if (!path.starts_with(pair) || path.size() == pair.size() || !is_separator(path[pair.size()]))
      continue;
    const std::string_view matrix = path.substr(pair.size() + 1);
    if (matrix == "weights") return connection.weights;
    if (matrix == "delays" && connection.delays) return connection.delays;
  }
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (!is_separator(path[i])) continue;
    const auto region = reader.find_region(path.substr(0, i));
    if (!region) continue;
    const std::string_view rest = path.substr(i + 1);
    if (auto tensor = region->find(rest)) return tensor;
    const std::size_t end = rest.find_first_of("./");
    if (end == std::string_view::npos) continue;
    auto tensor = region->find(rest.substr(end + 1));
    if (tensor && tensor->role() == role_of_component(rest.substr(0, end))) return tensor;
  }
  return std::nullopt;
}

// The name as it was typed comes first, as it may look like an escape, or a path.
TensorView find_tensor(const Reader& reader, std::string_view name) {
  try {
    return reader.tensor(name);
  } catch (const UsageError& error) {
    if (error.code() != ErrorCode::not_found) throw;
    const std::string unescaped = unescape_name(name);
    if (const auto found = find_by_path(reader, unescaped)) return *found;
    if (unescaped == name) throw;
    return reader.tensor(unescaped);
  }
}

// Restores the rows that the ranges take and no others. Elements that do not fill bytes are
// restored whole, since a row of them may begin within a byte.
void read_rows(const ChainReader& chain, const TensorView& view, const TensorLayout& layout,
               std::span<const SliceRange> ranges, const ReadLimits& limits, MutableByteSpan out) {
  if (layout.shape.rank() == 0 || dtype_is_packed(layout.dtype)) {
    const Tensor whole = chain.read(view);
    return copy_slice(layout.dtype, layout.shape, whole.bytes(), ranges, out);
  }
  std::vector<std::uint64_t> extents;
  for (unsigned d = 0; d < layout.shape.rank(); ++d) extents.push_back(layout.shape[d]);
  extents[0] = ranges[0].end - ranges[0].begin;
  const Shape shape{std::span<const std::uint64_t>(extents)};
  if (*shape.element_count() == 0) return;
  // Whole rows, however little of each is wanted.
  io::MemoryBudget budget(limits, chain.reader().file_bytes());
  auto rows =
      budget.vector<std::byte>("payload", packed_bytes(layout.dtype, *shape.element_count()));
  chain.read_part(view, rows.size() / extents[0] * ranges[0].begin, rows);
  std::vector<SliceRange> within(ranges.begin(), ranges.end());
  within[0] = {0, extents[0]};
  copy_slice(layout.dtype, shape, rows, within, out);
}

void add_entries(OpenedTensor& source, const Tensor& tensor) {
  source.entries = std::make_shared<SparseEntries>(tensor);
  source.read = [entries = source.entries](std::span<const SliceRange> ranges,
                                           MutableByteSpan out) {
    entries->read_dense(ranges, out);
  };
}

}  // namespace

OpenedTensor source_of(const ChainReader& chain, const TensorView& view, const ReadLimits& limits) {
  const TensorLayout layout = chain.describe(view).layout;
  OpenedTensor source{.region = std::string(Reader::region_name(view)),
                      .name = std::string(view.name()),
                      .layout = layout};
  if (layout.encoding != Encoding::dense) {
    add_entries(source, chain.read(view));
  } else {
    source.read = [chain, view, layout, limits](std::span<const SliceRange> ranges,
                                                MutableByteSpan out) {
      read_rows(chain, view, layout, ranges, limits, out);
    };
  }
  return source;
}

OpenedTensor source_of(const Tensor& tensor, std::string region, std::string name,
                       const BeforeRead& before_read) {
  OpenedTensor source{.region = std::move(region),
                      .name = std::move(name),
                      .layout = {.dtype = tensor.dtype(),
                                 .shape = tensor.shape(),
                                 .encoding = tensor.encoding(),
                                 .nnz = tensor.nnz()}};
  if (!tensor.is_dense()) {
    add_entries(source, tensor);
  } else {
    source.read = [tensor, before_read](std::span<const SliceRange> ranges, MutableByteSpan out) {
      if (const auto part = consecutive(tensor.dtype(), tensor.shape(), tensor.bytes(), ranges);
          part && before_read)
        before_read(tensor, *part);
      copy_slice(tensor.dtype(), tensor.shape(), tensor.bytes(), ranges, out);
    };
  }
  return source;
}

OpenedTensor source_of(const TensorView& view, const ReadLimits& limits) {
  std::string region(Reader::region_name(view));
  std::string name(view.name());
  if (view.encoding() == Encoding::quantized)
    return source_of(Tensor::from(view, limits), std::move(region), std::move(name));
  OpenedTensor source{
      .region = std::move(region), .name = std::move(name), .layout = view.layout()};
  if (is_sparse(view.encoding())) {
    add_entries(source, Tensor::from(view, limits));
  } else {
    source.read = [view](std::span<const SliceRange> ranges, MutableByteSpan out) {
      view.read_slice(ranges, out);
    };
  }
  return source;
}

namespace {

OpenedTensor from_thalia(const std::filesystem::path& path, std::string_view name,
                         const ChainOptions& options) {
  const Reader reader = Reader::open(path, options.read);
  const TensorView view = find_tensor(reader, name);
  if (reader.delta_base())
    return source_of(ChainReader::open(reader, options), view, options.read.input.limits);
  return source_of(view, options.read.input.limits);
}

}  // namespace

OpenedTensor open_tensor(const std::filesystem::path& named, std::string_view name,
                         const ChainOptions& options) {
  const std::filesystem::path path = find_model(named);
  const FileFormat format = input_format(path, options.read.input.access);
  if (format == FileFormat::thalia || format == FileFormat::thalia_0_1)
    return from_thalia(path, name, options);
  return open_flat(path, format, std::string(name), options);
}

}  // namespace thalia::inspect
