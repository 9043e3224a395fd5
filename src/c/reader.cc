// Open files and their regions. All checks of the file are the Reader's.
#include "thalia/c/reader.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "c/arguments.h"
#include "c/choice.h"
#include "c/guard.h"
#include "c/handles.h"
#include "c/sized.h"
#include "thalia/options.h"
#include "thalia/reader.h"
#include "thalia/region.h"

// The functions of C are in no namespace.
using namespace thalia;
using namespace thalia::c;

namespace {

constexpr std::array kVerifications{Verification::on_first_touch, Verification::off,
                                    Verification::at_open, Verification::by_tensor};

ReadOptions read_options(const thalia_read_options* given) {
  const thalia_read_options from = taken(given, "options");
  ReadOptions options;
  options.verification = chosen(kVerifications, from.verification, "verification");
  options.use_commit_record = flag(from.use_commit_record, "use_commit_record");
  options.work.threads = from.threads;
  options.input.access = chosen(kAccesses, from.access, "access");
  ReadLimits& limits = options.input.limits;
  limits.max_file_bytes = from.max_file_bytes;
  set_unless_zero(limits.max_regions, from.max_regions);
  set_unless_zero(limits.max_tensors, from.max_tensors);
  set_unless_zero(limits.max_json_bytes, from.max_json_bytes);
  set_unless_zero(limits.max_allocation_bytes, from.max_allocation_bytes);
  return options;
}

thalia_file_info info_of(const Reader& reader) {
  const FileHeader header = reader.header();
  const Digest256 checksum = reader.closing_checksum();
  thalia_file_info info{};
  info.file_bytes = reader.file_bytes();
  info.logical_bytes = reader.logical_bytes();
  info.region_count = reader.region_count();
  info.tensor_count = reader.tensor_count();
  info.connection_count = reader.connection_count();
  info.is_delta = header.flags.delta ? 1 : 0;
  info.training_steps = header.training_steps;
  info.timestamp = header.timestamp;
  info.total_neurons = header.total_neurons;
  info.total_synapses = header.total_synapses;
  info.generation = header.generation;
  info.checksum = number_of(kChecksums, header.checksum);
  info.format_major = header.version.major;
  info.format_minor = header.version.minor;
  info.format_patch = header.version.patch;
  std::copy(header.file_uuid.begin(), header.file_uuid.end(), info.uuid);
  std::copy(std::begin(checksum.bytes), std::end(checksum.bytes), info.closing_checksum);
  return info;
}

thalia_region_info info_of(const RegionView& region) {
  thalia_region_info info{};
  info.name = to_text(region.name());
  info.config_json = to_text(region.config_json());
  info.metadata_json = to_text(region.metadata_json());
  info.tensor_count = region.tensor_count();
  info.n_neurons = region.n_neurons();
  info.n_inputs = region.n_inputs();
  info.neuron_type = number_of(kNeuronTypes, region.neuron_type());
  info.logical_bytes = region.logical_bytes();
  info.stored_bytes = region.stored_bytes();
  return info;
}

}  // namespace

thalia_status thalia_reader_open(const char* path, const thalia_read_options* options,
                                 thalia_reader** reader) {
  return guarded([&] {
    thalia_reader*& place = emptied(reader, "reader");
    place = new thalia_reader{Reader::open(required_text(path, "path"), read_options(options))};
  });
}

void thalia_reader_close(thalia_reader* reader) {
  delete reader;
}

thalia_status thalia_reader_describe(const thalia_reader* reader, thalia_file_info* info) {
  return guarded([&] { give(required(info, "info"), info_of(opened(reader)), "info"); });
}

thalia_status thalia_reader_metadata(const thalia_reader* reader, thalia_text* json) {
  return guarded([&] { required(json, "json") = to_text(opened(reader).metadata_json()); });
}

thalia_status thalia_reader_verify(const thalia_reader* reader) {
  return guarded([&] { opened(reader).verify_all(); });
}

thalia_status thalia_reader_region(const thalia_reader* reader, uint32_t region,
                                   thalia_region_info* info) {
  return guarded(
      [&] { give(required(info, "info"), info_of(opened(reader).region(region)), "info"); });
}

thalia_status thalia_reader_find_region(const thalia_reader* reader, const char* name,
                                        uint32_t* region) {
  return guarded([&] {
    required(region, "region") = opened(reader).region(required_text(name, "name")).index();
  });
}

thalia_status thalia_reader_tensor(const thalia_reader* reader, const char* name,
                                   thalia_tensor** tensor) {
  return guarded([&] {
    thalia_tensor*& place = emptied(tensor, "tensor");
    place = new thalia_tensor{opened(reader).tensor(required_text(name, "name"))};
  });
}

thalia_status thalia_reader_tensor_at(const thalia_reader* reader, uint32_t region, uint32_t index,
                                      thalia_tensor** tensor) {
  return guarded([&] {
    thalia_tensor*& place = emptied(tensor, "tensor");
    place = new thalia_tensor{opened(reader).region(region).tensor(index)};
  });
}
