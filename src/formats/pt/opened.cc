// What does not lie in the file as it is read is counted for all tensors together when the file is
// opened, and checked before each read: a caller who takes one after the other must not be made to
// work for hours by a small file.
#include "formats/pt/opened.h"

#include <fmt/format.h>

#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "format/payload.h"
#include "formats/pt/contents.h"
#include "formats/source/metadata_member.h"
#include "io/file/file_bytes.h"
#include "json/writer.h"

namespace thalia::formats::pt {
namespace {

class OpenedPt final : public OpenedFile {
  struct Item {
    const Part* part;
    const Stored* stored;
  };

  template <typename Call>
  auto naming(std::size_t i, const Call& call) const {
    try {
      return call(items_[i]);
    } catch (Error& error) {
      error.add_path(path_);
      error.add_tensor(printable(facts_.tensors[i].name));
      throw;
    }
  }

 public:
  OpenedPt(StoredBytes file, const std::filesystem::path& path, const OpenOptions& options)
      : path_(path.string()),
        listing_{.dequantize = options.dequantize, .shared_memory = options.shared_memory},
        limits_(options.chain.read.input.limits) {
    with_path(path_, [&] {
      io::MemoryBudget budget(options.chain.read.input.limits, file.bytes.size());
      contents_ = Contents::read(std::move(file), options.chain.read, budget);
      fill(budget);
    });
  }

  Tensor read(std::size_t i) const override {
    return naming(i, [&](const Item& item) {
      check_views(i);
      return item.stored->span
                 ? contents_->read(*item.part, *item.stored->span)
                 : contents_->read(*item.part, item.stored->node, listing_.dequantize);
    });
  }

  Tensor restored(std::size_t i) const override {
    if (facts_.tensors[i].type.empty()) return read(i);
    return naming(i, [&](const Item& item) {
      check_views(i);
      return contents_->read(*item.part, item.stored->node, true);
    });
  }

  void check(std::size_t i) const override {
    naming(i, [&](const Item& item) {
      check_views(i);
      if (item.stored->span) {
        contents_->check(*item.part, *item.stored->span);
      } else {
        contents_->check(*item.part, item.stored->node);
      }
    });
  }

 private:
  void fill(io::MemoryBudget& budget);
  void add(const Part& part, const Stored& stored);
  void check_views(std::size_t i) const;
  std::string metadata() const;

  std::string path_;
  ListingOptions listing_;
  std::shared_ptr<const Contents> contents_;
  PtListing state_, constants_;
  std::vector<Item> items_;
  ReadLimits limits_;
  std::uint64_t record_bytes_ = 0;  ///< inflated
  std::uint64_t view_bytes_ = 0;    ///< of all tensors that do not lie in the file as they are
};

void OpenedPt::fill(io::MemoryBudget& budget) {
  state_ = list_stored(contents_->state().graph, contents_->state().tree, listing_, budget);
  constants_ =
      list_stored(contents_->constants().graph, contents_->constants().tree, listing_, budget);
  for (const Stored& stored : state_.stored) add(contents_->state(), stored);
  for (const Stored& stored : constants_.stored) add(contents_->constants(), stored);
  facts_.version = contents_->archive().version();
  facts_.metadata = metadata();
  facts_.file_bytes = contents_->archive().file_bytes();
  for (const ZipMember& member : contents_->archive().zip().members())
    record_bytes_ += member.raw_bytes;
  facts_.losses = contents_->losses();
  if (const std::uint64_t count = state_.strides_lost; count > 0) {
    facts_.losses.push_back(
        fmt::format("the strides of {}, as elements are kept row by row",
                    count == 1 ? "1 tensor" : fmt::format("{} tensors", count)));
  }
  if (!state_.apart.empty()) facts_.losses.push_back(shared_memory_loss(state_));
}

void OpenedPt::add(const Part& part, const Stored& stored) {
  AnyTensor tensor{.name = stored.name, .layout = stored.layout};
  if (stored.span) {
    const ZipMember& member = *part.members[stored.span->storage];
    if (member.method == ZipMethod::stored) tensor.offset = member.offset + stored.span->begin;
    if (tensor.offset) tensor.stored_bytes = stored.span->length;
  } else if (const Node& node = part.graph.at(stored.node); node.kind == NodeKind::tensor) {
    const TensorRecord& record = part.graph.tensors[node.index];
    if (!listing_.dequantize) tensor.type = quantum_name(record.quantum);
    if (const ZipMember* const member =
            contents_->raw_member(part, stored.node, listing_.dequantize)) {
      tensor.stored_bytes = *record.shape.byte_length(record.dtype);
      tensor.offset = member->offset;
      if (*tensor.stored_bytes != 0)
        *tensor.offset += record.offset * (dtype_bits(record.dtype) / 8);
    }
  }
  tensor.in_place = tensor.offset.has_value() && !contents_->archive().big_endian();
  if (contents_->archive().zip().has_checksums()) tensor.checksum = "crc32";
  if (!tensor.in_place) {
    const std::uint64_t bytes = format::payload_length(tensor.layout).value_or(UINT64_MAX);
    if (__builtin_add_overflow(view_bytes_, bytes, &view_bytes_)) view_bytes_ = UINT64_MAX;
  }
  facts_.tensors.push_back(std::move(tensor));
  items_.push_back({&part, &stored});
}

// A view of one byte may claim a gibibyte, and a small file may have thousands of these: anybody
// who reads one tensor after the other would work for hours.
void OpenedPt::check_views(std::size_t i) const {
  if (!facts_.tensors[i].in_place) io::check_work("data", view_bytes_, limits_, record_bytes_);
}

std::string OpenedPt::metadata() const {
  const PtArchive& archive = contents_->archive();
  std::string text;
  JsonWriter json(text);
  json.begin_object().member(kFormatKey, kPtMember).key(kPtMember).begin_object();
  json.member("folder", archive.folder()).member("version", archive.version());
  if (const std::string id = archive.text_of(".data/serialization_id"); is_valid_utf8(id))
    if (!id.empty()) json.member("serialization_id", id);
  if (archive.big_endian()) json.member("byteorder", "big");
  if (archive.is_script()) json.member("torchscript", true);
  json.key("records").begin_array();
  for (const ZipMember& member : archive.zip().members()) {
    const std::string_view record = archive.record_name(member);
    if (record.starts_with('.') || record == "version" || record == "byteorder") json.value(record);
  }
  json.end_array();
  if (!contents_->state().tree.attributes.empty()) {
    // The attributes of dictionaries, by their paths: what torch calls _metadata.
    json.key("attributes").begin_array();
    for (const auto& [path, node] : contents_->state().tree.attributes)
      json.begin_array().value(path).raw(node).end_array();
    json.end_array();
  }
  json.end_object().key(kTreeMember).begin_object();
  json.member("version", kTreeVersion).key("tree").raw(state_.tree).end_object().end_object();
  return text;
}

}  // namespace

std::shared_ptr<const OpenedFile> open_pt_file(const io::InputFile& input,
                                               const OpenOptions& options) {
  const auto& file = input.whole(options.chain.read.input.access, options.chain.read.work.cancel);
  return open_pt_bytes({.bytes = file->bytes(), .owner = file}, input.path(), options);
}

std::shared_ptr<const OpenedFile> open_pt_bytes(StoredBytes bytes,
                                                const std::filesystem::path& path,
                                                const OpenOptions& options) {
  return std::make_shared<const OpenedPt>(std::move(bytes), path, options);
}

}  // namespace thalia::formats::pt
