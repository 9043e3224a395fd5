// A file of version 0.1 as one of all formats: it has no index, so opening reads and checks all of
// it, and what is asked for later comes from memory.
#include "convert/original_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "convert/thalia_file.h"
#include "formats/v01/file_start.h"
#include "formats/v01/wrapper.h"
#include "json/writer.h"
#include "thalia/files.h"
#include "thalia/formats/v01.h"
#include "thalia/state/brain.h"
#include "thalia/state/value.h"
#include "thalia/text.h"

namespace thalia::formats {
namespace {

std::string as_utf8(const std::string& text) {
  return is_valid_utf8(text) ? text : printable(text, std::string::npos);
}

// NaN and infinities become strings, which JSON has no numbers for; their texts end in 'N' or 'y'.
// A tensor becomes null: metadata have none.
void add_value(JsonWriter& json, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null:
    case Value::Kind::tensor:
      json.null();
      break;
    case Value::Kind::boolean:
      json.value(value.as_bool());
      break;
    case Value::Kind::number: {
      const std::string& text = value.number_text();
      const bool known = text.back() != 'N' && text.back() != 'y';
      known ? json.raw(text) : json.value(text);
      break;
    }
    case Value::Kind::string:
      json.value(as_utf8(value.as_string()));
      break;
    case Value::Kind::array:
      json.begin_array();
      for (const Value& element : value.elements()) add_value(json, element);
      json.end_array();
      break;
    case Value::Kind::object:
      json.begin_object();
      for (const auto& [name, member] : value.members()) {
        json.key(as_utf8(name));
        add_value(json, member);
      }
      json.end_object();
      break;
  }
}

std::string shown_json(const Value& value) {
  std::string text;
  JsonWriter json(text);
  add_value(json, value);
  return text;
}

// By the component that it is in, if that is one of those that every state has.
std::optional<Role> role_of_path(std::string_view path) {
  const std::string_view component = path.substr(0, path.find('.'));
  const Role role = role_of_component(component);
  if (role == Role::other && component != component::kOther) return std::nullopt;
  return role;
}

class OriginalFile final : public OpenedFile {
 public:
  OriginalFile(V01File file, bool as_stored) : file_(std::move(file)), as_stored_(as_stored) {
    const V01Header& header = file_.document.header;
    facts_.version = header.version.to_string();
    facts_.training_steps = header.training_steps;
    facts_.file_bytes = file_.file_bytes;
    if (file_.wrapper) {
      facts_.wrapper =
          WrapperFacts{.codec = *file_.wrapper, .checksum_inside = file_.checksum_inside};
    }
    facts_.regions = file_.document.entries.size();
    facts_.neurons = header.total_neurons;
    facts_.synapses = header.total_synapses;
    if (as_stored) facts_.metadata = shown_json(file_.document.metadata);
    facts_.timestamp = header.timestamp;
    facts_.checksum = ChecksumFacts{.type = "sha256"};
    facts_.warnings = file_.warnings;
    for (const V01Entry& entry : file_.document.entries) {
      RegionFacts& region = regions_.emplace_back();
      region.name = entry.name;
      for_each_tensor(entry.state, [&](const std::string& path, const Tensor& tensor) {
        add(entry.name, path, tensor);
        ++region.tensor_count;
        region.logical_bytes += tensor.bytes().size();
      });
    }
  }

  /// REGION/PATH, a path in the state, or the end of one, if no other has that.
  std::optional<std::size_t> find(std::string_view name) const override {
    if (!as_stored_) return OpenedFile::find(name);
    const std::vector<AnyTensor>& tensors = facts_.tensors;
    const auto is_called = [&](const AnyTensor& tensor) {
      return fmt::format("{}/{}", tensor.region, tensor.name) == name || tensor.path == name ||
             tensor.path.substr(std::string_view("regions.").size()) == name;
    };
    const auto found = std::ranges::find_if(tensors, is_called);
    if (found != tensors.end()) return found - tensors.begin();
    std::optional<std::size_t> ending;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::string& path = tensors[i].path;
      if (!path.ends_with(name) || path[path.size() - name.size() - 1] != '.') continue;
      if (ending) {
        fail_argument(ErrorCode::bad_argument, "tensor", printable(name),
                      "the name of one tensor, as several have this one");
      }
      ending = i;
    }
    return ending;
  }

  bool has_regions() const override { return as_stored_; }
  std::size_t region_count() const override { return regions_.size(); }
  std::string_view region_name(std::size_t i) const override { return regions_[i].name; }
  RegionFacts region(std::size_t i) const override { return regions_[i]; }

  Tensor read(std::size_t i) const override { return tensors_[i]; }

 private:
  void add(const std::string& region, const std::string& path, const Tensor& tensor) {
    AnyTensor& reported = facts_.tensors.emplace_back();
    reported.layout = tensor.layout();
    reported.in_place = true;
    reported.checksum = "sha256";
    reported.name = path;
    if (as_stored_) {
      reported.region = region;
      reported.path = fmt::format("regions.{}.{}", region, path);
      reported.role = role_of_path(path);
    } else {
      reported.name = fmt::format("{}.{}", region, path);
      const unsigned before = seen_[reported.name]++;
      if (before > 0) reported.name += fmt::format("#{}", before + 1);
    }
    tensors_.push_back(tensor);
  }

  V01File file_;
  bool as_stored_;
  std::vector<RegionFacts> regions_;
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string, unsigned> seen_;  ///< a region's name may occur twice
};

// A Python pickle, which could run code: it is never opened, and only what comes before it is
// read.
class OriginalDelta final : public OpenedFile {
 public:
  OriginalDelta(const io::InputFile& input, const ReadOptions& read) : input_(input), read_(read) {
    const V01DeltaInfo info = v01_delta_info(input, read);
    facts_.is_delta = true;
    facts_.lists_tensors = false;
    facts_.file_bytes = input.bytes(read.input.access)->bytes().size();
    if (info.wrapper) facts_.wrapper = WrapperFacts{.codec = *info.wrapper};
    if (info.metadata) facts_.metadata = shown_json(*info.metadata);
    facts_.training_steps = info.current_step;
    facts_.base =
        BaseFacts{.checksum = hex(info.base_hash.bytes), .training_steps = info.base_step};
  }

  // Anybody who asks for more is told why there is none.
  std::size_t tensor_count() const override { return refused(); }
  bool has_regions() const override { return true; }
  std::size_t region_count() const override { return refused(); }
  std::optional<std::size_t> find(std::string_view) const override { return refused(); }
  Tensor read(std::size_t) const override {
    refused();
    return {};
  }

 private:
  std::size_t refused() const { return read_v01(input_, read_).document.entries.size(); }

  io::InputFile input_;
  ReadOptions read_;
};

bool is_delta(const io::InputFile& input, const ReadOptions& read) {
  const int fd = input.bytes(read.input.access)->fd();
  return with_path(input.path().native(),
                   [&] { return begins_as_v01_delta(read_file_start(fd, input.path())); });
}

}  // namespace

std::shared_ptr<const OpenedFile> open_original(const io::InputFile& input,
                                                const OpenOptions& options) {
  if (options.as_stored && is_delta(input, options.chain.read))
    return std::make_shared<const OriginalDelta>(input, options.chain.read);
  return std::make_shared<const OriginalFile>(read_v01(input, options.chain.read),
                                              options.as_stored);
}

// Reading it finds what can be wrong with it: all is read, the checksum first.
VerifyReport verify_original(const io::InputFile& input, const OpenOptions& options,
                             const VerifyOptions& verify, bool resolve) {
  if (is_delta(input, options.chain.read)) return verify_thalia(input, options, verify, resolve);
  container::Findings findings(verify.max_findings);
  findings.find([&] {
    const V01File original = read_v01(input, options.chain.read);
    VerifyReport& counts = findings.counts();
    counts.regions = static_cast<std::uint32_t>(original.document.entries.size());
    counts.bytes_checked = original.file_bytes;
    for (const V01Entry& entry : original.document.entries)
      for_each_tensor(entry.state, [&](const std::string&, const Tensor&) { ++counts.tensors; });
    counts.tensors_compared = counts.tensors;  // the checksum is that of the whole file
    for (const std::string& warning : original.warnings)
      findings.add(container::finding_of_file(Severity::warning, ErrorCode::bad_value, warning));
  });
  return std::move(findings).finish();
}

}  // namespace thalia::formats
