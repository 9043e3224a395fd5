#include "container/verify_consistency.h"

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/region_facts.h"
#include "container/tensor_reading.h"
#include "container/verify_region.h"
#include "format/fixed_name.h"
#include "thalia/format/connectivity.h"

namespace thalia::container {
namespace {

// Field and offset of a struct's member, for messages.
#define AT(Type, field) #field, offsetof(format::Type, field)

class ConsistencyCheck {
 public:
  ConsistencyCheck(const detail::OpenFile& file, const Structure& structure, Findings& findings)
      : file_(file), findings_(findings), facts_(file.directory().region_count) {
    for (const SoundTensor& tensor : structure.tensors) {
      facts_[tensor.region].add(file.tensor_entry(tensor.number), elements(tensor.number));
    }
  }

  void run(const Structure& structure) {
    bool complete = true;
    std::uint64_t neurons = 0;
    std::uint64_t synapses = 0;
    for (std::uint32_t r = 0; r < facts_.size(); ++r) {
      if (!is_complete(r)) {
        complete = false;
        continue;
      }
      findings_.check([&] { check_sums(r); }, name(r));
      synapses += facts_[r].synapses;
      if (r == file_.region_count()) continue;
      neurons += file_.region_headers(r).header.n_neurons;
      findings_.check([&] { verify_region(file_, r, facts_[r]); }, name(r));
    }
    findings_.check([&] { check_header(complete, neurons, synapses); });
    check_encodings(structure);
    if (file_.header().connectivity_length != 0) findings_.check([&] { check_connections(); });
  }

 private:
  std::uint64_t elements(std::uint32_t number) const {
    const format::TensorEntry& entry = file_.tensor_entry(number);
    if (is_delta() && needs_base(static_cast<Encoding>(entry.encoding))) {
      const format::DeltaTensor& result = file_.delta_tensor(number);
      if (result.encoding != static_cast<std::uint8_t>(Encoding::dense)) return result.nnz;
    }
    return RegionFacts::stored_elements(entry);
  }

  bool is_delta() const { return (file_.header().flags & format::kFlagDelta) != 0; }

  // Base and difference have a meaning in a delta only.
  void check_encodings(const Structure& structure) {
    if (is_delta()) return;
    for (const SoundTensor& tensor : structure.tensors) {
      const format::TensorEntry& entry = file_.tensor_entry(tensor.number);
      if (entry.encoding < static_cast<std::uint8_t>(Encoding::same_as_base)) continue;
      findings_.check(
          [&] {
            Place("directory", file_.tensor_entry_offset(tensor.number))
                .fail(AT(TensorEntry, encoding), std::to_string(entry.encoding),
                      "0 to 3 in a file that is no delta");
          },
          name(tensor.region), file_.name(entry.name_offset, entry.name_length));
    }
  }

  std::string_view name(std::uint32_t r) const {
    const format::DirectoryRegion& record = file_.directory_region(r);
    return file_.name(record.name_offset, record.name_length);
  }

  // All tensors of the region are sound, and so are its headers.
  bool is_complete(std::uint32_t r) const {
    if (facts_[r].tensors != file_.directory_region(r).tensor_count) return false;
    if (r == file_.region_count()) return true;
    try {
      file_.region_headers(r);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  void check_sums(std::uint32_t r) const {
    const format::DirectoryRegion& record = file_.directory_region(r);
    const Place place("directory", file_.header().directory_offset +
                                       file_.directory().regions_offset + r * sizeof record);
    place.equal(AT(DirectoryRegion, logical_bytes), record.logical_bytes, facts_[r].logical_bytes);
    place.equal(AT(DirectoryRegion, stored_bytes), record.stored_bytes, facts_[r].stored_bytes);
  }

  void check_header(bool complete, std::uint64_t neurons, std::uint64_t synapses) const {
    const format::Header& header = file_.header();
    const Place place("header", 0);
    if (complete) {
      place.equal(AT(Header, total_neurons), header.total_neurons, neurons);
      place.equal(AT(Header, total_synapses), header.total_synapses, synapses);
    }
    if (!is_delta()) {
      place.zero(AT(Header, base_checksum), header.base_checksum);
      place.equal(AT(Header, base_step), header.base_step, 0);
    }
  }

  void check_connections() const {
    const std::uint64_t start = file_.header().connectivity_offset;
    const auto& header = file_.structure<format::ConnectivityHeader>(start, "connectivity");
    const Place place("connectivity", start);
    place.equal(AT(ConnectivityHeader, zero_04), header.zero_04, 0);
    place.zero(AT(ConnectivityHeader, zero_08), header.zero_08);
    const std::uint32_t connections = file_.connection_count();
    std::set<std::string_view> names;
    for (std::uint32_t r = 0; r < file_.region_count(); ++r) {
      names.insert(format::fixed_name(file_.region_index_entry(r).region_name));
    }
    std::set<std::pair<std::string_view, std::string_view>> pairs;
    for (std::uint32_t i = 0; i < connections; ++i) {
      const format::ConnectionEntry& entry = file_.connection_entry(i);
      const Place at("connectivity", start + sizeof header + i * sizeof entry);
      const std::string_view source = format::fixed_name(entry.source_region);
      const std::string_view target = format::fixed_name(entry.target_region);
      if (!names.contains(source)) {
        at.fail(AT(ConnectionEntry, source_region), printable(source), "the name of a region");
      }
      if (!names.contains(target)) {
        at.fail(AT(ConnectionEntry, target_region), printable(target), "the name of a region");
      }
      if (!pairs.emplace(source, target).second) {
        at.fail(AT(ConnectionEntry, source_region),
                fmt::format("{} to {}", printable(source), printable(target)),
                "one connection a pair of regions");
      }
    }
  }

  const detail::OpenFile& file_;
  Findings& findings_;
  std::vector<RegionFacts> facts_;
};

#undef AT

}  // namespace

void verify_consistency(const detail::OpenFile& file, const Structure& structure,
                        Findings& findings) {
  for (std::uint32_t r = 0; r < file.directory().region_count; ++r) {
    try {
      file.directory_region(r);
    } catch (const Error&) {
      return;
    }
  }
  ConsistencyCheck(file, structure, findings).run(structure);
}

}  // namespace thalia::container
