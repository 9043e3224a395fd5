// Each region and connection is handed on as soon as it is written, so that a long list of
// differences is not in memory as text. JsonWriter allows its string to be cleared between
// two calls.
#include "cli/print/diff_json.h"

#include "cli/print/json_result.h"
#include "cli/terminal/escape.h"
#include "json/writer.h"

namespace thalia::cli {
namespace {

class DiffJson {
 public:
  explicit DiffJson(Output& out) : out_(out), json_(text_) {}

  void write(const DiffedFiles& files, const Diff& diff) {
    json_.begin_object().member("schema", "thalia.diff.1");
    json_.member("before", as_utf8(files.before)).member("after", as_utf8(files.after));
    json_.member("before_format", file_format_name(files.before_format));
    json_.member("after_format", file_format_name(files.after_format));
    json_.member("same", diff.same()).member("metadata_compared", files.metadata_compared);
    add_fields("header", diff.header);
    add_fields("storage", diff.storage);
    add_fields("metadata", diff.metadata);
    json_.member("same_regions", diff.same_regions).key("regions").begin_array();
    for (const RegionDiff& region : diff.regions) add_region(region);
    json_.end_array().member("same_connections", diff.same_connections);
    json_.key("connections").begin_array();
    for (const ConnectionDiff& connection : diff.connections) add_connection(connection);
    json_.end_array().member("ambiguous_names", files.ambiguous_names);
    json_.member("same_tensors", diff.same_tensors);
    add_tensors("tensors", diff.tensors);
    json_.end_object();
    text_ += "\n";
    hand_on();
  }

 private:
  void hand_on() {
    out_.write(text_);
    text_.clear();
  }

  // Values are JSON texts already; an empty one says that there is none.
  void add_json(std::string_view key, const std::string& value) {
    json_.key(key).raw(value.empty() ? "null" : value);
  }

  void add_fields(std::string_view key, const std::vector<FieldDiff>& fields) {
    json_.key(key).begin_array();
    for (const FieldDiff& field : fields) {
      json_.begin_object().member("field", as_utf8(field.field));
      json_.member("change", change_name(field.change()));
      if (!field.before.empty()) add_json("before", field.before);
      if (!field.after.empty()) add_json("after", field.after);
      json_.end_object();
    }
    json_.end_array();
  }

  void add_region(const RegionDiff& region) {
    json_.begin_object().member("name", as_utf8(region.name));
    json_.member("change", change_name(region.change)).member("tensor_count", region.tensor_count);
    json_.member("logical_bytes", region.logical_bytes);
    add_fields("facts", region.facts);
    add_fields("config", region.config);
    add_fields("metadata", region.metadata);
    add_tensors("tensors", region.tensors);
    json_.end_object();
    hand_on();
  }

  void add_connection(const ConnectionDiff& connection) {
    json_.begin_object().member("source", as_utf8(connection.source));
    json_.member("target", as_utf8(connection.target));
    json_.member("change", change_name(connection.change));
    add_tensors("matrices", connection.matrices);
    json_.end_object();
    hand_on();
  }

  void add_tensors(std::string_view key, const std::vector<TensorDiff>& tensors) {
    json_.key(key).begin_array();
    for (const TensorDiff& tensor : tensors) {
      json_.begin_object().member("name", as_utf8(tensor.name));
      json_.member("change", change_name(tensor.change));
      if (tensor.change == Change::changed) add_differing(tensor);
      if (tensor.before) add_facts("before", *tensor.before);
      if (tensor.after) add_facts("after", *tensor.after);
      if (tensor.values) add_values(*tensor.values);
      json_.end_object();
    }
    json_.end_array();
  }

  void add_differing(const TensorDiff& tensor) {
    json_.key("differing").begin_array();
    if (tensor.dtype_changed()) json_.value("dtype");
    if (tensor.shape_changed()) json_.value("shape");
    if (tensor.role_changed()) json_.value("role");
    if (tensor.encoding_changed()) json_.value("encoding");
    if (tensor.content_changed()) json_.value("content");
    json_.end_array();
  }

  void add_facts(std::string_view key, const TensorFacts& facts) {
    const auto& [dtype, shape, encoding, nnz, wide_indices] = facts.layout;
    json_.key(key).begin_object().member("dtype", dtype_name(dtype));
    add_shape("shape", shape);
    json_.key("role");
    facts.role ? json_.value(role_name(*facts.role)) : json_.null();
    json_.member("encoding", encoding_name(encoding));
    json_.key("nnz");
    is_sparse(encoding) ? json_.value(nnz) : json_.null();
    json_.member("wide_indices", wide_indices);
    json_.member("logical_bytes", facts.logical_bytes);
    json_.member("restored", facts.restored).end_object();
  }

  void add_shape(std::string_view key, const Shape& shape) {
    json_.key(key).begin_array();
    for (const std::uint64_t extent : shape.extents()) json_.value(extent);
    json_.end_array();
  }

  void add_values(const ValueDiff& values) {
    json_.key("values").begin_object();
    if (!values.skipped.empty()) {
      json_.member("skipped", values.skipped).end_object();
      return;
    }
    add_shape("compared", values.compared);
    json_.member("elements", values.elements).member("differing", values.differing);
    json_.member("not_finite", values.not_finite);
    json_.member("max_difference", values.max_difference);
    json_.member("rms_difference", values.rms_difference);
    add_known(json_, "relative_difference", values.relative_difference);
    add_known(json_, "cosine", values.cosine);
    json_.end_object();
  }

  Output& out_;
  std::string text_;
  JsonWriter json_;
};

}  // namespace

void print_diff_json(Output& out, const DiffedFiles& files, const Diff& diff) {
  DiffJson(out).write(files, diff);
}

}  // namespace thalia::cli
