// The pickle is made first, so that nothing is written of what cannot be. Then each payload goes
// through once, as it comes.
#include "formats/pt/sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/pickle/pickler.h"
#include "formats/pt/plan.h"
#include "formats/zip/writer.h"
#include "thalia/files.h"
#include "thalia/formats/pt.h"

namespace thalia::formats::pt {
namespace {

// As torch aligns all records.
constexpr std::uint32_t kAlignment = 64;

// Indices of u32 become those of i64; i64 has them if they are wide.
class SparseWriter {
 public:
  struct Record {
    std::string name;
    std::uint64_t count;  ///< of indices, or of the values' bytes
    bool indices;
  };

  SparseWriter(ZipWriter& zip, const TensorLayout& layout, std::vector<Record> records)
      : zip_(zip), wide_(layout.wide_indices), records_(std::move(records)) {
    std::uint64_t indices = 0;
    for (const Record& record : records_) indices += record.indices ? record.count : 0;
    const std::uint64_t bytes = indices * (wide_ ? 8 : 4);
    const std::uint64_t alignment = dtype_alignment(layout.dtype);
    padding_ = (alignment - bytes % alignment) % alignment;
    begin();
  }

  void write(ByteSpan piece) {
    while (!piece.empty()) {
      if (current_ == records_.size()) return;  // checked by what emits
      const Record& record = records_[current_];
      if (record.indices) {
        piece = take_indices(piece);
      } else if (padding_ > 0) {
        const std::size_t skipped = std::min<std::uint64_t>(padding_, piece.size());
        padding_ -= skipped;
        piece = piece.subspan(skipped);
      } else {
        const std::size_t taken = std::min<std::uint64_t>(left_, piece.size());
        zip_.write(piece.first(taken));
        left_ -= taken;
        piece = piece.subspan(taken);
      }
      finish_records();
    }
  }

 private:
  void begin() {
    if (current_ == records_.size()) return;
    const Record& record = records_[current_];
    left_ = record.count;
    zip_.begin(record.name, record.indices ? 8 * record.count : record.count,
               {.alignment = kAlignment});
    finish_records();
  }
  void finish_records() {
    while (current_ < records_.size() && left_ == 0) {
      zip_.end();
      ++current_;
      if (current_ < records_.size()) return begin();
    }
  }
  ByteSpan take_indices(ByteSpan piece) {
    const std::size_t width = wide_ ? 8 : 4;
    std::vector<std::byte> out;
    while (!piece.empty() && left_ > 0) {
      partial_.push_back(piece.front());
      piece = piece.subspan(1);
      if (partial_.size() < width) continue;
      partial_.resize(8);
      out.insert(out.end(), partial_.begin(), partial_.end());
      partial_.clear();
      --left_;
    }
    zip_.write(out);
    return piece;
  }

  ZipWriter& zip_;
  bool wide_;
  std::vector<Record> records_;
  std::size_t current_ = 0;
  std::uint64_t left_ = 0, padding_ = 0;
  std::vector<std::byte> partial_;
};

// torch puts a hash of the records there. This one depends on the object alone.
std::string make_id(std::string_view pickle) {
  std::string id;
  for (std::uint64_t hash : {0xcbf29ce484222325u, 0x9ae16a3b2f90404fu}) {
    for (const char byte : pickle) {
      hash ^= static_cast<unsigned char>(byte);
      hash *= 0x100000001b3u;
    }
    id += fmt::format("{:020}", hash);
  }
  return id;
}

class PtWriter {
 public:
  PtWriter(OutputFile& out, const PtPlan& plan, const Pickled& pickled, const SinkInput& input,
           const SinkOptions& options)
      : zip_(out, kPyTorchZip), plan_(plan), pickled_(pickled), input_(input), options_(options) {
    for (const SinkTensor& tensor : input.tensors) total_ += logical_bytes(tensor.layout);
  }

  std::uint64_t write(const EmitPayload& emit) {
    add("data.pkl", pickled_.bytes);
    if (plan_.format_version) add(".format_version", "1");
    if (plan_.storage_alignment) add(".storage_alignment", std::to_string(kAlignment));
    if (plan_.byte_order) add("byteorder", "little");
    for (std::size_t key = 0; key < pickled_.storages.size(); ++key) {
      const PtPayload& payload = plan_.payloads[pickled_.storages[key]];
      // The other records of a sparse tensor follow its indices.
      if (payload.part == PayloadPart::whole) {
        write_whole(key, payload.tensor, emit);
      } else if (payload.part == PayloadPart::indices) {
        write_sparse(key, payload.tensor, emit);
      }
    }
    add("version", plan_.version + '\n');
    if (plan_.with_id) {
      add(".data/serialization_id",
          plan_.serialization_id.empty() ? make_id(pickled_.bytes) : plan_.serialization_id);
    }
    return zip_.finish();
  }

  static std::uint64_t logical_bytes(const TensorLayout& layout);

 private:
  std::string name_of(std::string_view record) const {
    return plan_.folder + '/' + std::string(record);
  }
  void add(std::string_view record, std::string_view text) {
    zip_.add(name_of(record), as_byte_span(text), {.alignment = kAlignment});
  }
  void pass(ByteSpan piece) {
    done_ += piece.size();
    const Progress& progress = options_.save.work.progress;
    if (progress) progress(std::min(done_, total_), total_);
  }
  void write_whole(std::size_t key, std::size_t i, const EmitPayload& emit) {
    const TensorLayout& layout = input_.tensors[i].layout;
    zip_.begin(name_of(fmt::format("data/{}", key)), *layout.shape.byte_length(layout.dtype),
               {.alignment = kAlignment});
    emit(i, [&](ByteSpan piece) {
      zip_.write(piece);
      pass(piece);
    });
    zip_.end();
  }
  void write_sparse(std::size_t key, std::size_t i, const EmitPayload& emit) {
    const TensorLayout& layout = input_.tensors[i].layout;
    std::vector<SparseWriter::Record> records;
    for (std::size_t k = key; k < pickled_.storages.size(); ++k) {
      const std::uint32_t place = pickled_.storages[k];
      const PtPayload& payload = plan_.payloads[place];
      if (payload.tensor != i) break;
      const Storage& storage = plan_.graph.storages[place];
      const bool values = payload.part == PayloadPart::values;
      records.push_back({.name = name_of(fmt::format("data/{}", k)),
                         .count = values ? storage.bytes : storage.count,
                         .indices = !values});
    }
    SparseWriter writer(zip_, layout, std::move(records));
    emit(i, [&](ByteSpan piece) {
      writer.write(piece);
      pass(piece);
    });
  }

  ZipWriter zip_;
  const PtPlan& plan_;
  const Pickled& pickled_;
  const SinkInput& input_;
  const SinkOptions& options_;
  std::uint64_t done_ = 0, total_ = 0;
};

std::uint64_t PtWriter::logical_bytes(const TensorLayout& layout) {
  if (!is_sparse(layout.encoding)) return *layout.shape.byte_length(layout.dtype);
  const std::uint64_t indices = layout.encoding == Encoding::coo ? layout.shape.rank() * layout.nnz
                                                                 : layout.shape[0] + 1 + layout.nnz;
  return indices * (layout.wide_indices ? 8 : 4) + layout.nnz * (dtype_bits(layout.dtype) / 8);
}

}  // namespace

std::uint64_t write_pt(const std::filesystem::path& output, const SinkInput& input,
                       const SinkOptions& options, const EmitPayload& emit) {
  PtPlan plan;
  Pickled pickled;
  with_path(output.native(), [&] {
    plan = make_plan(input, options.limits);
    pickled = write_pickle(plan.graph);
  });
  if (options.announce) options.announce(plan.losses);
  OutputFile out(output, options.save.output, options.save.work.cancel);
  const std::uint64_t bytes = PtWriter(out, plan, pickled, input, options).write(emit);
  out.commit();
  return bytes;
}

}  // namespace thalia::formats::pt

namespace thalia {

std::uint64_t save_pt(const std::filesystem::path& path, const std::vector<NamedArray>& tensors,
                      const OutputOptions& output) {
  formats::SinkInput input;
  std::unordered_set<std::string_view> names;
  for (const NamedArray& tensor : tensors) {
    const ErrorContext context{.path = path.string(), .tensor = printable(tensor.name)};
    if (!names.insert(tensor.name).second)
      throw UsageError(ErrorCode::duplicate, "the name is there twice", context);
    if (!is_valid_utf8(tensor.name))
      throw UsageError(ErrorCode::bad_argument, "a name that is no UTF-8", context);
    if (tensor.shape.byte_length(tensor.dtype) != tensor.bytes.size()) {
      throw UsageError(ErrorCode::size_mismatch,
                       "payload of another size than dtype and shape ask for", context);
    }
    input.tensors.push_back(
        {.name = tensor.name, .layout = {.dtype = tensor.dtype, .shape = tensor.shape}});
  }
  formats::SinkOptions options;
  options.save.output = output;
  return formats::pt::write_pt(
      path, input, options,
      [&](std::size_t i, const formats::PieceSink& sink) { sink(tensors[i].bytes); });
}

}  // namespace thalia
