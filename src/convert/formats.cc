// The table of formats: one row for each, with all that is done to its files. A row without `write`
// is of a format that is only read; who asks for a format asks here, so that no command knows one
// that another does not.
#include "convert/formats.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <iterator>
#include <string>

#include "convert/original_file.h"
#include "convert/thalia_file.h"
#include "convert/thalia_shards.h"
#include "formats/gguf/opened.h"
#include "formats/gptrs/opened.h"
#include "formats/gptrs/sink.h"
#include "formats/hugging_face/write_decoder.h"
#include "formats/loom/opened.h"
#include "formats/mckp/opened.h"
#include "formats/mckp/sink.h"
#include "formats/mithril_quantized/opened.h"
#include "formats/mithril_quantized/sink.h"
#include "formats/mst/opened.h"
#include "formats/mst/sink.h"
#include "formats/npz/opened.h"
#include "formats/npz/sink.h"
#include "formats/onnx/opened.h"
#include "formats/onnx/sink.h"
#include "formats/orbax/opened.h"
#include "formats/orbax/sink.h"
#include "formats/pt/opened.h"
#include "formats/pt/sink.h"
#include "formats/safetensors/opened.h"
#include "formats/safetensors/place.h"
#include "formats/safetensors/sink.h"
#include "formats/weight_sync/opened_weights.h"

namespace thalia {
namespace formats {
namespace {

constexpr std::array kFormats{
    FormatRow{.format = FileFormat::thalia,
              .name = "thalia",
              .words = "a .thalia file",
              .extensions = ".thalia",
              .open = open_thalia,
              .verify = verify_thalia,
              .names_files = true,
              .holds_sparse = true,
              .holds_views = true},
    FormatRow{.format = FileFormat::safetensors,
              .name = "safetensors",
              .words = "a safetensors file",
              .extensions = ".safetensors",
              .open = open_safetensors_file,
              .write = write_safetensors_tensors,
              .verify = verify_safetensors,
              .names_files = true,
              .holds_texts = true,
              .is_made_of = is_safetensors_made_of,
              .is_note_only = is_safetensors_note_only},
    FormatRow{.format = FileFormat::thalia_0_1,
              .name = "thalia-0.1",
              .words = "a .thalia file of version 0.1",
              .extensions = "",
              .open = open_original,
              .verify = verify_original,
              .holds_sparse = true},
    FormatRow{.format = FileFormat::mckp,
              .name = "mckp",
              .words = "an MCKP file",
              .extensions = ".mckp",
              .open = open_mckp_file,
              .write = write_mckp,
              .verify = verify_mckp,
              .names_files = true,
              .takes_whole = true,
              .holds_sparse = true},
    FormatRow{.format = FileFormat::mst,
              .name = "mst",
              .words = "a mithril .mst file",
              .extensions = ".mst",
              .open = open_mst_file,
              .write = write_mst,
              .takes_whole = true,
              .holds_texts = true,
              .is_made_of = is_mst_made_of},
    FormatRow{.format = FileFormat::mithril_quantized,
              .name = "mithril-quantized",
              .words = "a quantized tensor of mithril",
              .extensions = "",
              .open = open_mithril_quantized_file,
              .write = write_mithril_quantized},
    FormatRow{.format = FileFormat::orbax,
              .name = "mithril-orbax",
              .words = "a folder of arrays, as mithril lays out for Orbax",
              .extensions = "",
              .open = open_orbax_file,
              .write = write_orbax,
              .holds_texts = true,
              .is_made_of = is_orbax_made_of},
    FormatRow{.format = FileFormat::gptrs,
              .name = "gptrs",
              .words = "a model of gpt.rs",
              .extensions = ".gptrs.gptrschk.chk",
              .open = open_gptrs_file,
              .write = write_gptrs,
              .is_made_of = is_gptrs_made_of},
    FormatRow{.format = FileFormat::gptrsten,
              .name = "gptrsten",
              .words = "an archive of tensors of gpt.rs",
              .extensions = ".gptrsten",
              .open = open_gptrs_file,
              .write = write_gptrsten},
    FormatRow{.format = FileFormat::entity,
              .name = "entity",
              .words = "a network of Loom",
              .extensions = ".entity",
              .open = open_entity_file,
              .write = write_entity_of_model,
              .takes_config = true},
    FormatRow{.format = FileFormat::loom_json,
              .name = "loom-json",
              .words = "a network of Loom, as JSON",
              .extensions = ".json",
              .open = open_loom_json_file,
              .write = write_loom_json},
    FormatRow{.format = FileFormat::pt,
              .name = "pt",
              .words = "a PyTorch file",
              .extensions = ".pt.pth.ckpt",
              .open = pt::open_pt_file,
              .write = pt::write_pt,
              .holds_sparse = true,
              .holds_views = true},
    FormatRow{.format = FileFormat::npz,
              .name = "npz",
              .words = "a NumPy archive",
              .extensions = ".npz",
              .open = open_npz_file,
              .write = write_npz,
              .is_note_only = is_npz_note_only},
    FormatRow{.format = FileFormat::npy,
              .name = "npy",
              .words = "a NumPy array",
              .extensions = ".npy",
              .open = open_npy_file,
              .write = write_npy},
    FormatRow{.format = FileFormat::gguf,
              .name = "gguf",
              .words = "a GGUF file",
              .extensions = ".gguf",
              .open = gguf::open_gguf_file,
              .write = gguf::write_gguf,
              .tells_part = true,
              .holds_texts = true,
              .is_made_of = gguf::is_gguf_made_of},
    FormatRow{.format = FileFormat::onnx,
              .name = "onnx",
              .words = "an ONNX model",
              .extensions = ".onnx",
              .open = open_onnx_file,
              .write = write_onnx,
              .names_files = true,
              .holds_sparse = true,
              .holds_texts = true,
              .is_made_of = is_onnx_made_of},
    FormatRow{.format = FileFormat::thalia_shards,
              .name = "thalia-shards",
              .words = "a model in several .thalia files",
              .extensions = "",
              .open = open_thalia_shards,
              .verify = verify_thalia_shards,
              .names_files = true,
              .holds_sparse = true},
    FormatRow{.format = FileFormat::slime,
              .name = "slime",
              .words = "a version of weights in slime's folder",
              .extensions = "",
              .open = or_as_stored<open_slime_delta>,
              .names_files = true,
              .holds_texts = true,
              .is_made_of = is_safetensors_made_of},
    FormatRow{.format = FileFormat::trl,
              .name = "trl",
              .words = "a version of weights as TRL publishes them",
              .extensions = "",
              .open = or_as_stored<open_trl_delta>,
              .names_files = true,
              .holds_texts = true,
              .is_made_of = is_safetensors_made_of},
};

constexpr auto kNumbers = [] {
  std::array<FileFormat, kFormats.size()> numbers{};
  for (std::size_t i = 0; i < kFormats.size(); ++i) numbers[i] = kFormats[i].format;
  return numbers;
}();

constexpr bool rows_are_in_order() {
  for (std::size_t i = 0; i < kFormats.size(); ++i)
    if (static_cast<std::size_t>(kFormats[i].format) != i) return false;
  return true;
}
static_assert(rows_are_in_order());

}  // namespace

const FormatRow& format_row(FileFormat format) noexcept {
  const auto i = static_cast<std::size_t>(format);
  assert(i < kFormats.size());
  return kFormats[i];
}

std::optional<FileFormat> format_of_name(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  if (safetensors::index_prefix(name, ShardKind::safetensors)) return FileFormat::safetensors;
  if (safetensors::index_prefix(name, ShardKind::thalia)) return FileFormat::thalia_shards;
  const std::string extension = path.extension().string();
  if (extension.empty()) return std::nullopt;
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  for (const FormatRow& row : kFormats) {
    // Each begins with its dot.
    for (std::size_t at = 0; at < row.extensions.size();) {
      const std::size_t end = std::min(row.extensions.find('.', at + 1), row.extensions.size());
      if (std::ranges::equal(row.extensions.substr(at, end - at), extension, same))
        return row.format;
      at = end;
    }
  }
  return std::nullopt;
}

bool is_note_only(std::string_view metadata, unsigned max_json_depth) {
  return std::ranges::any_of(kFormats, [&](const FormatRow& row) {
    return row.is_note_only != nullptr && row.is_note_only(metadata, max_json_depth);
  });
}

std::string written_formats() {
  std::string names;
  for (const FormatRow& row : kFormats) {
    if (!file_format_is_written(row.format)) continue;
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

}  // namespace formats

std::string_view file_format_name(FileFormat format) noexcept {
  return formats::format_row(format).name;
}

std::string_view file_format_words(FileFormat format) noexcept {
  return formats::format_row(format).words;
}

std::optional<FileFormat> file_format_from_name(std::string_view name) noexcept {
  const auto found = std::ranges::find(formats::kFormats, name, &formats::FormatRow::name);
  return found == formats::kFormats.end() ? std::nullopt : std::optional(found->format);
}

std::span<const FileFormat> file_formats() noexcept {
  return formats::kNumbers;
}

bool file_format_is_written(FileFormat format) noexcept {
  return format == FileFormat::thalia || format == FileFormat::thalia_0_1 ||
         formats::format_row(format).write != nullptr;
}

}  // namespace thalia
