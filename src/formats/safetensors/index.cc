// An index names files, so it is read like an untrusted text: every name is held against what a
// name in this folder may look like before anything is opened.
#include "formats/safetensors/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/safetensors/place.h"
#include "io/file/file_bytes.h"
#include "io/memory/allocation_limit.h"
#include "json/copy.h"
#include "json/reader.h"
#include "thalia/files.h"

namespace thalia::formats::safetensors {
namespace {

// An index nests two deep; what its metadata hold beyond is the writer's own.
constexpr unsigned kIndexDepth = 64;
constexpr std::size_t kLongestName = 255;

[[noreturn]] void fail_index(ErrorCode code, std::string_view field, std::string_view tensor,
                             std::string value, std::string bound, std::string message = {}) {
  throw FormatError(code, std::move(message),
                    {.section = "index",
                     .field = std::string(field),
                     .tensor = printable(tensor),
                     .value = std::move(value),
                     .bound = std::move(bound)});
}

void require_index_kind(const json::Value& value, json::Kind kind, std::string_view field,
                        std::string_view tensor = {}) {
  if (value.kind() == kind) return;
  fail_index(ErrorCode::bad_value, field, tensor, std::string(json::kind_name(value.kind())),
             std::string(json::kind_name(kind)));
}

class WeightMap {
 public:
  WeightMap(const ReadLimits& limits, std::uint64_t max_files, std::optional<ShardKind> only)
      : limits_(limits), max_files_(max_files), kind_(only) {}

  void read(json::Value& value, ModelIndex& index) {
    require_index_kind(value, json::Kind::object, "weight_map");
    value.for_each_member([&](std::string_view tensor, json::Value& file) {
      if (index.tensors.size() == limits_.max_tensors)
        fail_limit("index", "max_tensors", index.tensors.size() + 1, limits_.max_tensors);
      require_index_kind(file, json::Kind::string, "weight_map", tensor);
      index.tensors.push_back({.name = std::string(tensor), .file = place_of(file, tensor, index)});
    });
    check_names(index);
    sort_files(index);
    index.kind = kind_.value_or(ShardKind::safetensors);
  }

 private:
  std::size_t place_of(json::Value& file, std::string_view tensor, ModelIndex& index) {
    const std::string name(file.string());
    const auto [place, is_new] = places_.emplace(name, index.files.size());
    if (!is_new) return place->second;
    check_file(name, tensor);
    if (index.files.size() == max_files_)
      fail_limit("index", "max_files", index.files.size() + 1, max_files_);
    index.files.push_back(name);
    return place->second;
  }

  // Where nothing is demanded, the first file says of which kind all are.
  void check_file(const std::string& name, std::string_view tensor) {
    if (name.ends_with(".bin")) {
      fail_index(ErrorCode::bad_value, "weight_map", tensor, printable(name), "a .safetensors file",
                 "the index of a PyTorch model's files, which are opened one by one");
    }
    for (const ShardKind kind : {ShardKind::safetensors, ShardKind::thalia}) {
      if (!is_plain_name(name, kind) || kind_.value_or(kind) != kind) continue;
      kind_ = kind;
      return;
    }
    const std::string suffixes =
        kind_ ? std::string(file_suffix(*kind_)) : std::string(".thalia or .safetensors");
    fail_index(ErrorCode::bad_name, "weight_map", tensor, printable(name),
               fmt::format("the name of a {} file in the index's folder", suffixes));
  }

  static void check_names(const ModelIndex& index) {
    std::unordered_set<std::string_view> names;
    for (const IndexedTensor& tensor : index.tensors) {
      if (!names.insert(tensor.name).second) {
        fail_index(ErrorCode::inconsistent, "weight_map", tensor.name, "", "",
                   "the name is there twice");
      }
    }
  }

  static void sort_files(ModelIndex& index) {
    std::vector<std::size_t> order(index.files.size()), place(index.files.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {},
                      [&](std::size_t i) -> const std::string& { return index.files[i]; });
    std::vector<std::string> sorted;
    for (const std::size_t i : order) {
      place[i] = sorted.size();
      sorted.push_back(std::move(index.files[i]));
    }
    index.files = std::move(sorted);
    for (IndexedTensor& tensor : index.tensors) tensor.file = place[tensor.file];
  }

  const ReadLimits& limits_;
  std::uint64_t max_files_;
  std::optional<ShardKind> kind_;
  std::unordered_map<std::string, std::size_t> places_;
};

// As Python's json.dumps() writes it: what is no printable ASCII is escaped.
void append_escaped(std::string& out, std::string_view text) {
  out += '"';
  const auto escape = [&](unsigned unit) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", unit);
  };
  while (!text.empty()) {
    const Character character = first_character(text);
    const auto code = static_cast<std::uint32_t>(character.code);
    constexpr std::string_view kShort = "\"\"\\\\\nn\rr\tt\ff\bb";
    std::size_t known = 0;
    while (known < kShort.size() && static_cast<unsigned char>(kShort[known]) != code) known += 2;
    if (known < kShort.size()) {
      out += '\\';
      out += kShort[known + 1];
    } else if (code >= 0x10000) {
      escape(0xd800 + ((code - 0x10000) >> 10));
      escape(0xdc00 + ((code - 0x10000) & 0x3ff));
    } else if (code < 0x20 || code > 0x7e) {
      escape(code);
    } else {
      out += static_cast<char>(code);
    }
    // Callers have checked that it is UTF-8; of a byte that is not, nothing comes out wrong.
    text.remove_prefix(std::max<std::size_t>(1, character.length));
  }
  out += '"';
}

}  // namespace

bool is_plain_name(std::string_view name, ShardKind kind) noexcept {
  const std::string_view suffix = file_suffix(kind);
  const auto is_barred = [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return code < 0x20 || code == 0x7f || c == '/' || c == '\\';
  };
  return name.size() > suffix.size() && name.size() <= kLongestName && name.ends_with(suffix) &&
         !name.starts_with('.') && std::ranges::none_of(name, is_barred);
}

ModelIndex parse_index(std::string_view text, const ReadLimits& limits, std::uint64_t max_files,
                       std::optional<ShardKind> only) {
  io::check_json_length("index", text.size(), limits, text.size());
  ModelIndex index;
  bool has_map = false, has_metadata = false, has_object = false;
  const auto once = [](bool& seen, std::string_view key) {
    if (std::exchange(seen, true))
      fail_index(ErrorCode::inconsistent, key, "", "", "", "the key is there twice");
  };
  try {
    json::walk_object(text, kIndexDepth, [&](std::string_view key, json::Value& value) {
      if (key == "weight_map") {
        once(has_map, key);
        WeightMap(limits, max_files, only).read(value, index);
      } else if (key == "metadata") {
        once(has_metadata, key);
        // Anything may be there. If it is null, it says nothing.
        if (value.kind() == json::Kind::null) return;
        has_object = value.kind() == json::Kind::object;
        index.metadata = json::copied(value);
      }
    });
  } catch (Error& error) {
    error.add_section("index");
    throw;
  }
  if (!has_map) fail_index(ErrorCode::bad_value, "weight_map", "", "", "", "the key is missing");
  if (has_object) {
    json::walk_object(index.metadata, kIndexDepth, [&](std::string_view key, json::Value& value) {
      if (key == "total_size") index.total_size = value.unsigned_integer();
    });
  }
  return index;
}

// A number can only be that member of the metadata, or of an object in them: weight_map has texts.
std::string with_total_size(std::string text, std::uint64_t total_size) {
  constexpr std::string_view kKey = "\"total_size\"", kSpace = " \t\r\n", kDigits = "0123456789";
  for (std::size_t at = text.find(kKey); at != std::string::npos; at = text.find(kKey, at)) {
    at += kKey.size();
    const std::size_t colon = text.find_first_not_of(kSpace, at);
    if (colon == std::string::npos || text[colon] != ':') continue;
    const std::size_t begin = std::min(text.find_first_not_of(kSpace, colon + 1), text.size());
    const std::size_t end = std::min(text.find_first_not_of(kDigits, begin), text.size());
    if (begin == end) continue;
    text.replace(begin, end - begin, std::to_string(total_size));
  }
  return text;
}

// A copy: the file may change under a mapping.
std::string read_text(const io::FileBytes& file, const ReadLimits& limits) {
  io::check_json_length("index", file.bytes().size(), limits, file.bytes().size());
  const ByteSpan bytes = file.touched(0, file.bytes().size());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string read_text(const std::filesystem::path& path, const ReadLimits& limits) {
  return read_text(*io::FileBytes::open(path, Access::copied), limits);
}

std::vector<std::string> files_named_by(const std::filesystem::path& index, ShardKind kind) {
  if (!is_file(index)) return {};
  try {
    return parse_index(read_text(index), {}, UINT64_MAX, kind).files;
  } catch (const Error&) {
    return {};
  }
}

std::string write_index(std::vector<std::pair<std::string, std::string>> weights,
                        std::uint64_t total_size) {
  std::ranges::sort(weights);
  std::string text = fmt::format(
      "{{\n  \"metadata\": {{\n    \"total_size\": {}\n  }},\n  \"weight_map\": {{", total_size);
  const char* before = "\n    ";
  for (const auto& [tensor, file] : weights) {
    text += before;
    append_escaped(text, tensor);
    text += ": ";
    append_escaped(text, file);
    before = ",\n    ";
  }
  // Python writes an empty object without a line end.
  text += weights.empty() ? "}\n}\n" : "\n  }\n}\n";
  return text;
}

}  // namespace thalia::formats::safetensors

namespace thalia {

ModelIndex read_model_index(const std::filesystem::path& path, const ReadLimits& limits) {
  return formats::safetensors::read_index(*io::FileBytes::open(path, Access::copied), limits);
}

ModelIndex formats::safetensors::read_index(const io::FileBytes& file, const ReadLimits& limits) {
  return with_path(file.path().native(), [&] {
    return parse_index(read_text(file, limits), limits, kMostModelFiles, std::nullopt);
  });
}

}  // namespace thalia
