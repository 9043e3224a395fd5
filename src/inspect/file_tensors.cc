// Patterns know a tensor by its path in a state and by REGION/NAME, or the end of either, as
// everywhere. The bases of a delta are opened with the first tensor that is: its tables need none.
#include "inspect/file_tensors.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "inspect/flat_file.h"
#include "model/value/path_names.h"
#include "thalia/brain_region.h"
#include "thalia/error.h"
#include "thalia/formats/file_format.h"
#include "thalia/formats/model_index.h"
#include "thalia/reader.h"
#include "thalia/v01.h"

namespace thalia::inspect {
namespace {

// A file and, where it is a delta that somebody reads, its chain.
struct OpenThalia {
  Reader reader;
  ReadLimits limits;
  std::function<ChainReader(const Reader& reader)> open_chain;
  std::optional<ChainReader> chain{};

  OpenedTensor open(const TensorView& view) {
    if (!reader.delta_base()) return source_of(view, limits);
    if (!chain) chain = open_chain(reader);
    return source_of(*chain, view, limits);
  }
};

ListedTensor listed_view(const TensorView& view, const model::TensorNames& names) {
  ListedTensor tensor{.region = std::string(names.region),
                      .name = std::string(names.name),
                      .layout = view.layout(),
                      .role = view.role(),
                      .logical_bytes = view.logical_bytes(),
                      .stored_bytes = view.stored_bytes(),
                      .offset = view.stored_offset(),
                      .chunks = view.chunk_count(),
                      .codecs = view.codecs(),
                      .crc32 = view.crc32(),
                      .content_hash = view.content_hash(),
                      .quantization = quantization_of(view)};
  if (tensor.quantization) tensor.bits = tensor.quantization->mean_bits;
  return tensor;
}

// The path of a connection's matrix in a state, and its name, which points into that.
struct MatrixNames {
  std::string path;
  MatrixNames(const ConnectionView& connection, const char* matrix)
      : path(model::path_in_connection(connection.source, connection.target, matrix)) {}
  model::TensorNames names() const {
    return {.path = path, .region = {}, .name = std::string_view(path).substr(path.find('.') + 1)};
  }
};

class ThaliaTensor : public FileTensor {
 public:
  ThaliaTensor(std::shared_ptr<OpenThalia> file, TensorView view, const model::TensorNames& names)
      : FileTensor(names), file_(std::move(file)), view_(std::move(view)) {}

  ListedTensor list() const override { return listed_view(view_, names()); }
  OpenedTensor open() const override {
    OpenedTensor source = file_->open(view_);
    source.region = names().region;
    source.name = names().name;
    return source;
  }
  std::shared_ptr<const FileTensor> keep() const override {
    return std::make_shared<ThaliaTensor>(*this);
  }

 private:
  std::shared_ptr<OpenThalia> file_;
  TensorView view_;
};

void visit_thalia(const std::filesystem::path& path, Selection& selection,
                  const ChainOptions& options, const VisitTensor& visit) {
  const auto file =
      std::make_shared<OpenThalia>(OpenThalia{.reader = Reader::open(path, options.read),
                                              .limits = options.read.input.limits,
                                              .open_chain = [options](const Reader& reader) {
                                                return ChainReader::open(reader, options);
                                              }});
  const Reader& reader = file->reader;
  selection.know_regions(reader);
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
      const TensorView view = region.tensor(i);
      const std::string in_state =
          model::path_in_region(region.name(), component_of_role(view.role()), view.name());
      visit(ThaliaTensor(file, view,
                         {.path = in_state, .region = region.name(), .name = view.name()}));
    }
  }
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    const ConnectionView connection = reader.connection(i);
    const auto visit_matrix = [&](const TensorView& view, const char* matrix) {
      const MatrixNames names(connection, matrix);
      visit(ThaliaTensor(file, view, names.names()));
    };
    visit_matrix(connection.weights, "weights");
    if (connection.delays) visit_matrix(*connection.delays, "delays");
  }
}

// By the component that it is in, where that is one of those that every state has.
std::optional<Role> original_role(std::string_view path) {
  const std::string_view component = path.substr(0, path.find('.'));
  const Role role = role_of_component(component);
  if (role == Role::other && component != component::kOther) return std::nullopt;
  return role;
}

class OriginalTensor : public FileTensor {
 public:
  OriginalTensor(const Tensor& tensor, const model::TensorNames& names)
      : FileTensor(names), tensor_(tensor) {}

  ListedTensor list() const override {
    return {.region = std::string(names().region),
            .name = std::string(names().name),
            .layout = tensor_.layout(),
            .role = original_role(names().name),
            .logical_bytes = tensor_.bytes().size(),
            .codecs = {Codec::none}};
  }
  OpenedTensor open() const override {
    return source_of(tensor_, std::string(names().region), std::string(names().name));
  }
  std::shared_ptr<const FileTensor> keep() const override {
    return std::make_shared<OriginalTensor>(*this);
  }

 private:
  Tensor tensor_;
};

void visit_original(const std::filesystem::path& path, Selection& selection,
                    const ReadOptions& read, const VisitTensor& visit) {
  const V01File file = read_v01(path, read);
  selection.know_regions(file.document);
  for (const V01Entry& entry : file.document.entries) {
    // The names in a 0.1 file are paths already.
    for_each_tensor(entry.state, [&](const std::string& name, const Tensor& tensor) {
      const std::string in_state = fmt::format("regions.{}.{}", entry.name, name);
      visit(OriginalTensor(tensor, {.path = in_state, .region = entry.name, .name = name}));
    });
  }
}

}  // namespace

ListedTensor listed_matrix(const ConnectionView& connection, const TensorView& view,
                           const char* matrix) {
  const MatrixNames names(connection, matrix);
  return listed_view(view, names.names());
}

void visit_every_tensor(const std::filesystem::path& named, Selection& selection,
                        const ChainOptions& options, bool shared_memory, const VisitTensor& visit) {
  const std::filesystem::path path = find_model(named);
  const FileFormat format = input_format(path, options.read.input.access);
  if (format == FileFormat::thalia_0_1) {
    visit_original(path, selection, options.read, visit);
  } else if (format == FileFormat::thalia) {
    visit_thalia(path, selection, options, visit);
  } else {
    visit_flat(path, format, options, shared_memory, visit);
  }
}

void visit_tensors(const std::filesystem::path& path, Selection& selection,
                   const ChainOptions& options, const VisitTensor& visit) {
  visit_every_tensor(path, selection, options, false, [&](const FileTensor& tensor) {
    if (selection.takes(tensor.names())) visit(tensor);
  });
  with_path(path.string(), [&] { selection.check(); });
}

}  // namespace thalia::inspect
