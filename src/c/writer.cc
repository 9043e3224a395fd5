// New files. The writer holds pointers to the caller's memory until it has committed.
#include "thalia/c/writer.h"

#include <algorithm>
#include <array>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

#include "base/fail.h"
#include "c/arguments.h"
#include "c/choice.h"
#include "c/guard.h"
#include "c/handles.h"
#include "c/sized.h"
#include "thalia/options.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::c;

namespace {

RegionSpec region_spec(const thalia_region_spec* given) {
  const thalia_region_spec from = taken(&required(given, "spec"), "spec");
  check_option("reserved", from.reserved, 0, 0);
  RegionSpec spec;
  spec.name = required_text(from.name, "name");
  if (from.config_json != nullptr) spec.config_json = from.config_json;
  if (from.metadata_json != nullptr) spec.metadata_json = from.metadata_json;
  spec.n_neurons = from.n_neurons;
  spec.n_inputs = from.n_inputs;
  spec.neuron_type = chosen(kNeuronTypes, from.neuron_type, "neuron_type");
  return spec;
}

TensorSpec tensor_spec(const thalia_tensor_spec* given) {
  const thalia_tensor_spec from = taken(&required(given, "spec"), "spec");
  check_option("reserved", from.reserved, 0, 0);
  check_option("rank", from.rank, 0, THALIA_MAX_RANK);
  TensorSpec spec;
  spec.name = required_text(from.name, "name");
  spec.dtype = code<DType>(from.dtype, kDTypeCount, "dtype");
  spec.shape = Shape(std::span(from.shape, from.rank));
  spec.role = code<Role>(from.role, kRoleCount, "role");
  spec.encoding = code<Encoding>(from.encoding, kEncodingCount, "encoding");
  spec.nnz = from.nnz;
  spec.wide_indices = flag(from.wide_indices, "wide_indices");
  return spec;
}

}  // namespace

SaveOptions thalia::c::save_options(const thalia_save_options* given, std::stop_token cancel) {
  const thalia_save_options from = taken(given, "options");
  SaveOptions options;
  options.automatic_codec = flag(from.automatic_codec, "automatic_codec");
  if (from.codec != THALIA_CODEC_NONE)
    options.compression.codec = code<Codec>(from.codec, kCodecCount, "codec");
  options.compression.level = from.compression_level;
  set_unless_zero(options.compression.chunk_bytes, from.chunk_bytes);
  options.checksum = chosen(kChecksums, from.checksum, "checksum");
  options.sha256 = flag(from.sha256, "sha256");
  options.output.durability = chosen(kDurabilities, from.durability, "durability");
  options.output.replace = !flag(from.keep_existing, "keep_existing");
  options.output.link = OutputLink::followed;
  options.output.reproducible = flag(from.reproducible, "reproducible");
  options.io = chosen(kIoModes, from.io, "io");
  options.work.threads = from.threads;
  options.work.cancel = std::move(cancel);
  set_unless_zero(options.queue_depth, from.queue_depth);
  set_unless_zero(options.work.memory_bytes, from.memory_bytes);
  return options;
}

void thalia::c::check_result(const thalia_save_result* out) {
  if (out != nullptr) checked_size(*out, "result");
}

void thalia::c::give_result(thalia_save_result* out, const SaveResult& result) {
  if (out == nullptr) return;
  const Digest256 sha256 = result.sha256.value_or(Digest256());
  thalia_save_result info{};
  info.file_bytes = result.file_bytes;
  info.payload_bytes = result.payload_bytes;
  info.regions = result.regions;
  info.tensors = result.tensors;
  info.codec = static_cast<thalia_codec>(result.codec);
  info.io = number_of(kIoModes, result.io);
  info.seconds = result.seconds;
  info.sync_seconds = result.sync_seconds;
  std::ranges::copy(result.closing_checksum.bytes, info.closing_checksum);
  std::ranges::copy(sha256.bytes, info.sha256);
  give(*out, info, "result");
}

thalia_status thalia_writer_open(const char* path, const thalia_save_options* options,
                                 thalia_writer** writer) {
  return guarded([&] {
    thalia_writer*& place = emptied(writer, "writer");
    const std::stop_source stop;
    place = new thalia_writer{
        stop, Writer(required_text(path, "path"), save_options(options, stop.get_token()))};
  });
}

thalia_status thalia_writer_set_metadata(thalia_writer* writer, const char* json) {
  return guarded([&] { writing(writer).set_metadata(std::string(required_text(json, "json"))); });
}

thalia_status thalia_writer_set_training_steps(thalia_writer* writer, uint64_t steps) {
  return guarded([&] { writing(writer).set_training_steps(steps); });
}

thalia_status thalia_writer_add_region(thalia_writer* writer, const thalia_region_spec* spec,
                                       uint32_t* region) {
  return guarded([&] {
    const RegionId id = writing(writer).add_region(region_spec(spec));
    if (region != nullptr) *region = id.value;
  });
}

thalia_status thalia_writer_add_tensor(thalia_writer* writer, uint32_t region,
                                       const thalia_tensor_spec* spec, const void* data,
                                       size_t bytes) {
  return guarded([&] {
    writing(writer).add_tensor({region}, tensor_spec(spec), memory_at(data, bytes, "data"));
  });
}

thalia_status thalia_writer_declare_tensor(thalia_writer* writer, uint32_t region,
                                           const thalia_tensor_spec* spec, uint32_t* tensor) {
  return guarded([&] {
    std::uint32_t& place = required(tensor, "tensor");
    place = writing(writer).add_tensor({region}, tensor_spec(spec)).value;
  });
}

thalia_status thalia_writer_write(thalia_writer* writer, uint32_t tensor, const void* data,
                                  size_t bytes) {
  return guarded([&] { writing(writer).write({tensor}, memory_at(data, bytes, "data")); });
}

thalia_status thalia_writer_commit(thalia_writer* writer, thalia_save_result* result) {
  return guarded([&] {
    check_result(result);
    give_result(result, writing(writer).commit());
  });
}

thalia_status thalia_writer_cancel(thalia_writer* writer) {
  return guarded([&] { required(writer, "writer").stop.request_stop(); });
}

void thalia_writer_close(thalia_writer* writer) {
  delete writer;
}
