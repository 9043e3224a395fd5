// Tensors are numbered region by region, as the directory has them, matrices of connections last.
// Nothing is read of a table before somebody asks for what is in it: a look-up of one tensor
// among a million passes a few entries.
#include "convert/thalia_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "container/file/open_bytes.h"
#include "container/read/reader_of.h"
#include "container/verify/verify_bytes.h"
#include "convert/conversions.h"
#include "convert/flat_thalia.h"
#include "convert/thalia_facts.h"
#include "io/memory/allocation_limit.h"
#include "state/delta/file_chain.h"
#include "state/tensor/slice.h"
#include "state/value/path_names.h"
#include "thalia/files.h"
#include "thalia/reader.h"
#include "thalia/state/brain.h"
#include "thalia/state/delta.h"

namespace thalia::formats {
namespace {

bool is_separator(char c) {
  return c == '.' || c == '/';
}

// Restores the rows that the ranges take and no others. Elements that do not fill bytes are
// restored whole, since a row of them may begin within a byte.
void read_rows(const ChainReader& chain, const TensorView& view, const TensorLayout& layout,
               std::span<const SliceRange> ranges, const ReadLimits& limits, MutableByteSpan out) {
  if (layout.shape.rank() == 0 || dtype_is_packed(layout.dtype)) {
    const Tensor whole = chain.read(view);
    return state::copy_slice(layout.dtype, layout.shape, whole.bytes(), ranges, out);
  }
  std::vector<std::uint64_t> extents;
  for (unsigned d = 0; d < layout.shape.rank(); ++d) extents.push_back(layout.shape[d]);
  extents[0] = ranges[0].end - ranges[0].begin;
  const Shape shape{std::span<const std::uint64_t>(extents)};
  if (*shape.element_count() == 0) return;
  // Whole rows, however little of each is wanted.
  io::MemoryBudget budget(limits, chain.reader().file_bytes());
  auto rows = budget.vector<std::byte>("payload", *shape.byte_length(layout.dtype));
  chain.read_part(view, rows.size() / extents[0] * ranges[0].begin, rows);
  std::vector<SliceRange> within(ranges.begin(), ranges.end());
  within[0] = {0, extents[0]};
  state::copy_slice(layout.dtype, shape, rows, within, out);
}

class ThaliaFile final : public OpenedFile {
 public:
  ThaliaFile(const io::InputFile& input, const OpenOptions& options)
      : input_(input),
        options_(options.chain),
        reader_(container::open_reader(input_, options_.read)) {}

  const OpenedFacts& facts() const override {
    facts_known_.run(
        [&] { reported_ = facts_of(reader_, *input_.bytes(options_.read.input.access)); });
    return reported_;
  }
  std::vector<std::filesystem::path> files() const override {
    std::vector<std::filesystem::path> files = chain().paths();
    files.erase(files.begin());
    return files;
  }

  std::size_t tensor_count() const override { return reader_.tensor_count(); }

  AnyTensor stored(std::size_t i) const override {
    const Place at = place_of(i);
    AnyTensor tensor{.name = std::string(at.view.name()),
                     .layout = at.view.layout(),
                     .offset = at.view.stored_offset(),
                     .stored_bytes = at.view.stored_bytes(),
                     .in_place = at.view.is_raw() && at.view.encoding() <= Encoding::coo,
                     .codecs = at.view.codecs(),
                     .checksum = "crc32",
                     .logical_bytes = at.view.logical_bytes(),
                     .role = at.view.role(),
                     .chunks = at.view.chunk_count(),
                     .crc32 = at.view.crc32(),
                     .content_hash = at.view.content_hash(),
                     .quantization = quantization_of(at.view)};
    if (tensor.quantization) tensor.bits = tensor.quantization->mean_bits;
    if (at.connection) {
      tensor.path =
          state::path_in_connection(at.connection->source, at.connection->target, at.matrix);
      tensor.name = tensor.path.substr(tensor.path.find('.') + 1);
    } else {
      tensor.region = Reader::region_name(at.view);
      tensor.path =
          state::path_in_region(tensor.region, component_of_role(at.view.role()), tensor.name);
    }
    return tensor;
  }

  // A path is one in the state, as policies spell it and growth prints it: REGION.COMPONENT.NAME
  // with dots or slashes, or SOURCE->TARGET.weights of a connection, after its kind or without it.
  std::optional<std::size_t> find(std::string_view name) const override {
    try {
      return number_of(reader_.tensor(name));
    } catch (const UsageError& error) {
      if (error.code() != ErrorCode::not_found) throw;
    }
    for (const std::string_view kind : {"regions", "connections"}) {
      if (name.starts_with(kind) && name.size() > kind.size() && is_separator(name[kind.size()]))
        name.remove_prefix(kind.size() + 1);
    }
    if (const auto matrix = find_matrix(name)) return matrix;
    for (std::size_t i = 0; i < name.size(); ++i) {
      if (!is_separator(name[i])) continue;
      const auto region = reader_.find_region(name.substr(0, i));
      if (!region) continue;
      const std::string_view rest = name.substr(i + 1);
      if (const auto tensor = region->find(rest)) return number_of(*tensor);
      const std::size_t end = rest.find_first_of("./");
      if (end == std::string_view::npos) continue;
      const auto tensor = region->find(rest.substr(end + 1));
      if (tensor && tensor->role() == role_of_component(rest.substr(0, end)))
        return number_of(*tensor);
    }
    return std::nullopt;
  }

  std::size_t at(std::string_view name) const override {
    if (const auto found = find(name)) return *found;
    return number_of(reader_.tensor(name));  // says what it may have been meant to be
  }

  std::optional<ChainReader> state(const ChainOptions& options) const override {
    return ChainReader::open(container::open_reader(input_, options.read), options);
  }

  std::vector<LinkFacts> links(const std::string&) const override {
    std::vector<LinkFacts> links;
    const state::FileChain& files = state::files_of(chain());
    for (std::size_t i = 0; i < files.size(); ++i) {
      const Reader reader = container::reader_over(files.link(i).file());
      const FileHeader header = reader.header();
      links.push_back({{.is_delta = reader.delta_base().has_value(),
                        .training_steps = header.training_steps,
                        .timestamp = header.timestamp,
                        .disk_bytes = files.file(i).mapping().disk_bytes()},
                       reader.path().string()});
    }
    return links;
  }

  bool has_regions() const override { return true; }
  std::size_t region_count() const override { return reader_.region_count(); }
  std::string_view region_name(std::size_t i) const override { return region_view(i).name(); }
  bool has_region(std::string_view name) const override {
    return reader_.find_region(name).has_value();
  }
  RegionFacts region(std::size_t i) const override {
    const RegionView region = region_view(i);
    return {.name = region.name(),
            .tensor_count = region.tensor_count(),
            .n_neurons = region.n_neurons(),
            .n_inputs = region.n_inputs(),
            .neuron_type = region.neuron_type(),
            .logical_bytes = region.logical_bytes(),
            .stored_bytes = region.stored_bytes(),
            .offset = region.offset(),
            .length = region.length(),
            .config = region.config_json(),
            .metadata = region.metadata_json()};
  }
  std::vector<ConnectionFacts> connections() const override {
    std::vector<ConnectionFacts> connections;
    std::size_t number = starts().back();
    for (std::uint32_t i = 0; i < reader_.connection_count(); ++i) {
      const ConnectionView connection = reader_.connection(i);
      ConnectionFacts& reported = connections.emplace_back();
      reported.source = connection.source;
      reported.target = connection.target;
      reported.weights = number++;
      if (connection.delays) reported.delays = number++;
    }
    return connections;
  }

  Tensor read(std::size_t i) const override {
    const TensorView view = place_of(i).view;
    return reader_.delta_base() ? chain().read(view)
                                : Tensor::from(view, options_.read.input.limits);
  }

  TensorElements elements(std::size_t i) const override {
    const TensorView view = place_of(i).view;
    if (!reader_.delta_base()) {
      if (view.encoding() != Encoding::dense) return elements_of(read(i));
      return {.layout = view.layout(),
              .read = [view](std::span<const SliceRange> ranges, MutableByteSpan out) {
                view.read_slice(ranges, out);
              }};
    }
    const ChainReader& files = chain();
    const TensorLayout layout = files.describe(view).layout;
    if (layout.encoding != Encoding::dense) return elements_of(files.read(view));
    return {.layout = layout,
            .read = [files, view, layout, limits = options_.read.input.limits](
                        std::span<const SliceRange> ranges, MutableByteSpan out) {
              read_rows(files, view, layout, ranges, limits, out);
            }};
  }

  bool is_mapped(std::size_t i) const override { return stored(i).in_place; }
  void check_all() const override {}  // the reader has

 private:
  struct Place {
    TensorView view;
    std::optional<ConnectionView> connection{};
    const char* matrix = "";
  };
  struct Matrix {
    std::uint32_t connection;
    bool is_delays;
  };

  RegionView region_view(std::size_t i) const {
    return reader_.region(static_cast<std::uint32_t>(i));
  }

  Place place_of(std::size_t i) const {
    if (i < starts().back()) {
      const auto above = std::ranges::upper_bound(starts(), i);
      const auto region = static_cast<std::uint32_t>(above - starts().begin() - 1);
      return {.view =
                  reader_.region(region).tensor(static_cast<std::uint32_t>(i - starts()[region]))};
    }
    const Matrix& matrix = matrices().at(i - starts().back());
    ConnectionView connection = reader_.connection(matrix.connection);
    TensorView view = matrix.is_delays ? *connection.delays : connection.weights;
    return {.view = std::move(view),
            .connection = std::move(connection),
            .matrix = matrix.is_delays ? "delays" : "weights"};
  }

  const std::vector<Matrix>& matrices() const {
    matrices_known_.run([&] {
      for (std::uint32_t i = 0; i < reader_.connection_count(); ++i) {
        matrices_.push_back({i, false});
        if (reader_.connection(i).delays) matrices_.push_back({i, true});
      }
    });
    return matrices_;
  }

  std::size_t number_of(const TensorView& view) const {
    const detail::OpenFile& file = container::file_of(reader_);
    const auto region = file.find_region(Reader::region_name(view));
    if (region && *region < reader_.region_count())
      return starts()[*region] + file.find_tensor(*region, view.name()).value() -
             file.directory_region(*region).first_tensor;
    std::size_t number = starts().back();
    while (place_of(number).view.stored_offset() != view.stored_offset()) ++number;
    return number;
  }

  std::optional<std::size_t> find_matrix(std::string_view path) const {
    for (const ConnectionFacts& connection : connections()) {
      const std::string pair = fmt::format("{}->{}", connection.source, connection.target);
      if (!path.starts_with(pair) || path.size() == pair.size() || !is_separator(path[pair.size()]))
        continue;
      const std::string_view matrix = path.substr(pair.size() + 1);
      if (matrix == "weights") return connection.weights;
      if (matrix == "delays" && connection.delays) return connection.delays;
    }
    return std::nullopt;
  }

  const std::vector<std::size_t>& starts() const {
    starts_known_.run([&] {
      starts_.push_back(0);
      for (std::uint32_t r = 0; r < reader_.region_count(); ++r)
        starts_.push_back(starts_.back() + reader_.region(r).tensor_count());
    });
    return starts_;
  }

  const ChainReader& chain() const {
    chain_known_.run([&] { chain_.emplace(ChainReader::open(reader_, options_)); });
    return *chain_;
  }

  io::InputFile input_;
  ChainOptions options_;
  Reader reader_;
  mutable io::Once starts_known_, facts_known_, matrices_known_, chain_known_;
  /// Numbers of the first tensors of regions, and of matrices.
  mutable std::vector<std::size_t> starts_;
  mutable OpenedFacts reported_;
  mutable std::vector<Matrix> matrices_;
  mutable std::optional<ChainReader> chain_;
};

}  // namespace

std::shared_ptr<const OpenedFile> open_thalia(const io::InputFile& input,
                                              const OpenOptions& options) {
  if (options.as_stored) return std::make_shared<const ThaliaFile>(input, options);
  return std::make_shared<const FlatThalia>(resolve_input(input, {}, options.chain).reader,
                                            RegionGrouping{}, options.chain.read);
}

VerifyReport verify_thalia(const io::InputFile& input, const OpenOptions& options,
                           const VerifyOptions& verify, bool resolve) {
  return resolve ? state::verify_chain(input, verify, options.chain.search, options.chain.bases)
                 : container::verify_input(input, verify);
}

}  // namespace thalia::formats
