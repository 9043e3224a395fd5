// .pt files of tests: the published ones, and archives of records made up.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/pt/opened.h"
#include "formats/zip/writer.h"
#include "support/files.h"
#include "thalia/formats/pt.h"
#include "thalia/state/value.h"

namespace thalia::test {

inline std::filesystem::path pt_path(std::string_view name) {
  return std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats/pt" / name;
}

/// An open file whose tensors are asked for by name.
class PtTensors {
 public:
  explicit PtTensors(std::shared_ptr<const formats::OpenedFile> file) : file_(std::move(file)) {}

  const std::vector<AnyTensor>& tensors() const { return file_->facts().tensors; }
  const std::vector<std::string>& losses() const { return file_->facts().losses; }
  Tensor read(std::string_view name) const { return file_->read(file_->at(name)); }
  void check(std::string_view name) const { file_->check(file_->at(name)); }
  /// The saved object, as thalia_checkpoint keeps it: docs/use/python.md, "What a tree looks like".
  std::string tree() const {
    return to_json(parse_json(file_->facts().metadata).at("thalia_checkpoint").at("tree"));
  }

 private:
  std::shared_ptr<const formats::OpenedFile> file_;
};

/// Each tensor of the object by itself; `shared`: those that share memory as one.
inline PtTensors pt_from(const std::string& bytes, const ReadLimits& limits = {},
                         bool shared = false) {
  const auto owner = std::make_shared<const std::string>(bytes);
  OpenOptions options{.shared_memory = shared};
  options.chain.read.input.limits = limits;
  return PtTensors(
      formats::pt::open_pt_bytes({.bytes = bytes_of(*owner), .owner = owner}, "test.pt", options));
}
inline PtTensors pt_open(const std::filesystem::path& path, bool shared = false) {
  return PtTensors(formats::pt::open_pt_file(path, {.shared_memory = shared}));
}
inline std::string pt_tree(const std::filesystem::path& path) {
  return pt_open(path, true).tree();
}

using PtRecords = std::vector<std::pair<std::string, std::string>>;

/// A record "data/…:z" is deflated, under the name before the colon.
inline std::string pt_archive(const PtRecords& records) {
  const TemporaryFolder folder;
  OutputFile out(folder / "a.pt", {.durability = Durability::none});
  formats::ZipWriter zip(out, formats::kPyTorchZip);
  for (const auto& [name, content] : records) {
    const bool deflated = name.ends_with(":z");
    zip.add("a/" + (deflated ? name.substr(0, name.size() - 2) : name), bytes_of(content),
            {.alignment = deflated ? 0u : 64u, .deflated = deflated});
  }
  zip.finish();
  out.commit();
  return read_file(folder / "a.pt");
}

// --- Pickles, by their opcodes -------------------------------------------

inline std::string op_text(std::string_view text) {
  return std::string("\x8c") + static_cast<char>(text.size()) + std::string(text);
}
inline std::string op_global(std::string_view module, std::string_view name) {
  return 'c' + std::string(module) + '\n' + std::string(name) + '\n';
}
inline std::string op_int(std::int64_t number) {
  std::string op = "\x8a\x08";
  for (unsigned i = 0; i < 8; ++i)
    op += static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i));
  return op;
}
inline std::string op_tuple(const std::vector<std::int64_t>& numbers) {
  std::string op = "(";
  for (const std::int64_t number : numbers) op += op_int(number);
  return op + 't';
}
/// A storage in the record data/KEY.
inline std::string op_storage(std::string_view type, std::string_view key, std::int64_t count) {
  return '(' + op_text("storage") + op_global("torch", type) + op_text(key) + op_text("cpu") +
         op_int(count) + "tQ";
}
/// A tensor of such a storage.
inline std::string op_tensor(const std::string& storage, std::int64_t offset,
                             const std::vector<std::int64_t>& shape,
                             const std::vector<std::int64_t>& stride) {
  return op_global("torch._utils", "_rebuild_tensor_v2") + '(' + storage + op_int(offset) +
         op_tuple(shape) + op_tuple(stride) + '\x89' + op_global("collections", "OrderedDict") +
         ")RtR";
}
inline std::string pickle_of(std::string_view body) {
  return "\x80\x02" + std::string(body) + '.';
}
/// An archive of one pickle and the record data/0.
inline std::string pt_of(std::string_view body, std::string_view data = "") {
  return pt_archive(
      {{"data.pkl", pickle_of(body)}, {"data/0", std::string(data)}, {"version", "3\n"}});
}

}  // namespace thalia::test
