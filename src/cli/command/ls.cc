// thalia ls: regions or tensors, from the directory alone. JSON of tensors is handed on piece by
// piece where the order is the file's, so that a file with very many of them needs little memory;
// tables must know their widest cell and are held whole.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/complaint.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/print/tensor_table.h"
#include "cli/terminal/escape.h"
#include "inspect/file_tensors.h"
#include "thalia/error.h"
#include "thalia/formats/file_facts.h"
#include "thalia/state/delta.h"

namespace thalia::cli {
namespace {

enum class Order { file, size, name };
constexpr std::array kOrders{Choice<Order>{"size", Order::size},
                             Choice<Order>{"name", Order::name}};

struct LsArguments {
  std::string file;
  std::vector<std::string> patterns;
  bool recursive = false;
  Order order = Order::file;
};

bool is_named_before(const AnyTensor& a, const AnyTensor& b) {
  return std::tie(a.region, a.name) < std::tie(b.region, b.name);
}
bool is_named_before(const RegionFacts& a, const RegionFacts& b) {
  return a.name < b.name;
}

template <typename Listed>
void put_in_order(std::vector<Listed>& listed, Order order) {
  if (order == Order::file) return;
  std::ranges::stable_sort(listed, [&](const Listed& a, const Listed& b) {
    return order == Order::size ? a.size() > b.size() : is_named_before(a, b);
  });
}

void print_regions(Output& out, const AnyFile& file, const std::vector<RegionFacts>& regions) {
  using enum Table::Align;
  const bool has_neurons = std::ranges::any_of(regions, [](const RegionFacts& region) {
    return region.n_neurons.value_or(0) != 0 || region.n_inputs.value_or(0) != 0;
  });
  const bool has_stored = std::ranges::any_of(
      regions, [](const RegionFacts& region) { return region.stored_bytes.has_value(); });
  std::vector<Table::Column> columns{{"region"}, {"tensors", right}};
  if (has_neurons) columns.insert(columns.end(), {{"neurons", right}, {"inputs", right}, {"type"}});
  columns.push_back({"in memory", right});
  if (has_stored) columns.push_back({"stored", right});
  Table table(std::move(columns));
  std::uint64_t tensors = 0;
  for (const RegionFacts& region : regions) {
    std::vector<std::string> cells{escape_name(region.name), grouped(region.tensor_count)};
    if (has_neurons) {
      cells.insert(cells.end(),
                   {grouped(region.n_neurons.value_or(0)), grouped(region.n_inputs.value_or(0)),
                    std::string(neuron_type_name(region.neuron_type.value_or(NeuronType::none)))});
    }
    cells.push_back(human_bytes(region.logical_bytes));
    if (has_stored) cells.push_back(human_bytes(region.size()));
    table.add_row(std::move(cells));
    tensors += region.tensor_count;
  }
  table.print(out);
  const std::vector<ConnectionFacts> connections = file.connections();
  if (!connections.empty()) {
    out.write("\n");
    TensorTable matrices(true);
    for (const ConnectionFacts& connection : connections) {
      matrices.add(file.stored(connection.weights));
      if (connection.delays) matrices.add(file.stored(*connection.delays));
      tensors += connection.delays ? 2 : 1;
    }
    matrices.print(out);
  }
  if (tensors == 0) return;
  out.print("\n-r lists {}; the name of a region, or a pattern, lists those that it fits\n",
            tensors == 1 ? "the tensor" : fmt::format("all {} tensors", grouped(tensors)));
}

void add_json(JsonWriter& json, const RegionFacts& region) {
  json.begin_object().member("name", as_utf8(region.name));
  json.member("tensor_count", region.tensor_count);
  add_known(json, "n_neurons", region.n_neurons);
  add_known(json, "n_inputs", region.n_inputs);
  json.key("neuron_type");
  region.neuron_type ? json.value(neuron_type_name(*region.neuron_type)) : json.null();
  json.member("logical_bytes", region.logical_bytes);
  add_known(json, "stored_bytes", region.stored_bytes);
  add_known(json, "offset", region.offset);
  add_known(json, "length", region.length);
  json.key("config").raw(region.config.empty() ? "null" : region.config);
  json.key("metadata").raw(region.metadata.empty() ? "null" : region.metadata);
  json.end_object();
}

void print_regions_json(const LsArguments& arguments, Output& out, const AnyFile& file,
                        const std::vector<RegionFacts>& regions) {
  print_object(out, "thalia.ls.1", [&](JsonWriter& json) {
    json.member("path", as_utf8(arguments.file)).member("format", file_format_name(file.format()));
    json.key("regions").begin_array();
    for (const RegionFacts& region : regions) add_json(json, region);
    json.end_array().key("connections").begin_array();
    for (const ConnectionFacts& connection : file.connections()) {
      json.begin_object().member("source", as_utf8(connection.source));
      json.member("target", as_utf8(connection.target)).key("weights");
      add_tensor(json, file.stored(connection.weights));
      json.key("delays");
      if (connection.delays) {
        add_tensor(json, file.stored(*connection.delays));
      } else {
        json.null();
      }
      json.end_object();
    }
    json.end_array();
  });
}

int list_regions(const LsArguments& arguments, const AnyFile& file, const Session& session) {
  std::vector<RegionFacts> regions;
  for (std::size_t i = 0; i < file.region_count(); ++i) regions.push_back(file.region(i));
  put_in_order(regions, arguments.order);
  session.common.json ? print_regions_json(arguments, session.out, file, regions)
                      : print_regions(session.out, file, regions);
  return kDone;
}

// Hands on what is written after each tensor.
class TensorsJson {
 public:
  TensorsJson(Output& out, const LsArguments& arguments, FileFormat format) : out_(out) {
    json_.begin_object().member("schema", "thalia.ls.1").member("path", as_utf8(arguments.file));
    json_.member("format", file_format_name(format)).key("tensors").begin_array();
  }
  void add(const AnyTensor& tensor) {
    add_tensor(json_, tensor);
    hand_on();
  }
  void end() {
    json_.end_array().end_object();
    text_ += "\n";
    hand_on();
  }

 private:
  void hand_on() {
    out_.write(text_);
    text_.clear();
  }

  Output& out_;
  std::string text_;
  JsonWriter json_{text_};
};

int list_tensors(const LsArguments& arguments, const AnyFile& file, const Session& session) {
  inspect::Selection selection("PATTERN", arguments.patterns);
  std::vector<AnyTensor> kept;
  const auto visit = [&](const inspect::VisitTensor& visit_one) {
    inspect::visit_tensors(file, selection, visit_one);
  };
  const auto keep = [&](const inspect::ShownTensor& tensor) { kept.push_back(tensor.list()); };
  if (session.common.json) {
    TensorsJson json(session.out, arguments, file.format());
    if (arguments.order == Order::file) {
      visit([&](const inspect::ShownTensor& tensor) { json.add(tensor.list()); });
    } else {
      visit(keep);
      put_in_order(kept, arguments.order);
      for (const AnyTensor& tensor : kept) json.add(tensor);
    }
    json.end();
    return kDone;
  }
  visit(keep);
  put_in_order(kept, arguments.order);
  TensorTable table(!selection.is_one_region());
  for (const AnyTensor& tensor : kept) table.add(tensor);
  table.print(session.out);
  return kDone;
}

int run_ls(const LsArguments& arguments, const Session& session) {
  if (arguments.recursive && !arguments.patterns.empty()) {
    throw UsageError(ErrorCode::bad_argument, "patterns look into all regions anyhow",
                     {.field = "--recursive", .bound = "either the option or patterns"});
  }
  auto options = session.options<ChainOptions>();
  // Checking blocks of the tree would read the payloads that share these blocks.
  options.read.verification = Verification::off;
  const AnyFile file = inspect::open_stored(arguments.file, options);
  const bool lists_regions =
      file.has_regions() && arguments.patterns.empty() && !arguments.recursive;
  const int status = lists_regions ? list_regions(arguments, file, session)
                                   : list_tensors(arguments, file, session);
  complain_of_lack(arguments.file, file.lacks());
  return status;
}

}  // namespace

Run declare_ls(CLI::App& app) {
  app.description(
      "Lists the regions and connections of a file; with -r all tensors, and with patterns those "
      "that match one: name, dtype, shape, role, encoding (and stored entries of sparse "
      "ones), bytes in the file. Formats without regions: their tensors. A delta: what "
      "it stores itself. Reads no payload.");
  app.footer(std::string(kPatternHelp) +
             "\n\nExamples:\n  thalia ls run.thalia -r --sort size\n  thalia ls run.thalia "
             "cortex\n  thalia ls run.thalia 'cortex/w_*' bias");
  const auto arguments = std::make_shared<LsArguments>();
  add_model(app, "FILE", arguments->file, "A checkpoint of any format");
  offer(app.add_option("PATTERN", arguments->patterns,
                       "Names of tensors or regions, or patterns of them"),
        std::string(kRegion) + "|" + kTensor);
  app.add_flag("-r,--recursive", arguments->recursive, "List the tensors of all regions");
  add_choice(app, "--sort BY", arguments->order, kOrders,
             "size: the largest first; or name. By default the order of the file");
  return [arguments](const Session& session) { return run_ls(*arguments, session); };
}

}  // namespace thalia::cli
