// Fields that repeat what the directory says, for programs that read no directory. Totals and flags
// are compared only where all tensors they are made of are sound; otherwise each damaged tensor
// would be reported a second time as a wrong sum. In a delta some fields describe the tensors that
// come out and others the stored bytes; result() tells the encoding and the elements of the former.
#include "container/verify/consistency.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/checked_sum.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "container/file/short_name.h"
#include "container/read/tensor_reading.h"
#include "container/verify/connections.h"
#include "container/verify/region.h"
#include "container/verify/region_facts.h"
#include "format/constants.h"
#include "format/delta.h"
#include "format/directory.h"
#include "format/header.h"
#include "format/region.h"
#include "format/tensor.h"
#include "thalia/options.h"

namespace thalia::container {
namespace {

// Field and offset of a struct's member, for messages.
#define AT(Type, field) #field, offsetof(format::Type, field)

// Bits of the header's flags that the directory determines. kFlagDelta is not among them.
constexpr unsigned kDerivedFlags = format::kFlagCompressed | format::kFlagLz4 |
                                   format::kFlagHomeostatic | format::kFlagNeuromodulators |
                                   format::kFlagSparse | format::kFlagMixedPrecision;

// Collects what these bits have to be, from the tensors that were seen.
class FlagFacts {
 public:
  /// @param encoding of the tensor that a reader gets.
  void add(const detail::OpenFile& file, const format::TensorEntry& entry, Encoding encoding) {
    if (entry.chunk_count != 0) flags_ |= format::kFlagCompressed;
    for (std::uint32_t i = 0; i < entry.chunk_count; ++i) {
      if (file.chunk_entry(entry.first_chunk + i).codec == Codec::lz4) flags_ |= format::kFlagLz4;
    }
    const Role role = entry.role;
    if (role == Role::homeostatic) flags_ |= format::kFlagHomeostatic;
    if (role == Role::neuromodulator) flags_ |= format::kFlagNeuromodulators;
    if (is_sparse(encoding)) flags_ |= format::kFlagSparse;
    const DType dtype = entry.dtype;
    half_ |= dtype == DType::f16 || dtype == DType::bf16;
    full_ |= dtype == DType::f32;
  }
  unsigned value() const { return half_ && full_ ? flags_ | format::kFlagMixedPrecision : flags_; }

 private:
  unsigned flags_ = 0;
  bool half_ = false;
  bool full_ = false;
};

class ConsistencyCheck {
 public:
  ConsistencyCheck(const detail::OpenFile& file, const Structure& structure, Findings& findings)
      : file_(file), findings_(findings), facts_(file.directory().region_count) {
    for (const SoundTensor& tensor : structure.tensors) {
      const format::TensorEntry& entry = file.tensor_entry(tensor.number);
      const auto [encoding, elements] = result(tensor.number);
      facts_[tensor.region].add(entry, encoding, elements);
      flags_.add(file, entry, encoding);
    }
  }

  void run(const Structure& structure) {
    bool complete = true;
    CheckedSum neurons;
    CheckedSum synapses;
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
    check_short_names();
    verify_connections(file_, findings_);
  }

 private:
  // Encoding and stored elements of the tensor that a reader gets: of a delta, once it is resolved.
  std::pair<Encoding, std::uint64_t> result(std::uint32_t number) const {
    const format::TensorEntry& entry = file_.tensor_entry(number);
    const Encoding stored = entry.encoding;
    if (!is_delta() || !needs_base(stored)) return {stored, VerifiedRegion::stored_elements(entry)};
    const format::DeltaTensor& made = file_.delta_tensor(number);
    const Encoding encoding = made.encoding;
    if (encoding == Encoding::dense) return {encoding, VerifiedRegion::stored_elements(entry)};
    return {encoding, made.nnz};
  }

  bool is_delta() const { return (file_.header().flags & format::kFlagDelta) != 0; }

  // Encodings that need a base mean something in a delta only.
  void check_encodings(const Structure& structure) {
    if (is_delta()) return;
    for (const SoundTensor& tensor : structure.tensors) {
      const format::TensorEntry& entry = file_.tensor_entry(tensor.number);
      if (entry.encoding < Encoding::same_as_base) continue;
      findings_.check(
          [&] {
            Place("directory", file_.tensor_entry_offset(tensor.number))
                .fail(AT(TensorEntry, encoding), std::to_string(format::code_of(entry.encoding)),
                      "0 to 3 in a file that is no delta");
          },
          name(tensor.region), file_.name(entry.name_offset, entry.name_length));
    }
  }

  // Connections name their regions by short names alone. Legal all the same, hence a warning.
  void check_short_names() const {
    std::map<std::string, std::uint32_t> seen;
    for (std::uint32_t r = 0; r < file_.region_count(); ++r) {
      const auto [found, added] = seen.emplace(short_name_string(name(r)), r);
      if (added) continue;
      findings_.add(
          {.severity = Severity::warning,
           .code = ErrorCode::duplicate,
           .section = "region_index",
           .field = "region_name",
           .region = printable(name(r)),
           .tensor = {},
           .offset = file_.header().region_index_offset +
                     r * std::uint64_t{sizeof(format::RegionIndexEntry)},
           .length = 0,
           .message = fmt::format("'{}', as of region {}: no connection can tell them apart",
                                  printable(found->first), found->second)});
    }
  }

  std::string_view name(std::uint32_t r) const {
    const format::DirectoryRegion& record = file_.directory_region(r);
    return file_.name(record.name_offset, record.name_length);
  }

  // Whether all tensors of the region are sound, and its headers too.
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

  void check_header(bool complete, const CheckedSum& neurons, const CheckedSum& synapses) const {
    const format::Header& header = file_.header();
    const Place place("header", 0);
    if (complete) {
      place.equal(AT(Header, flags), header.flags & kDerivedFlags, flags_.value());
      place.equal(AT(Header, total_neurons), header.total_neurons, neurons);
      place.equal(AT(Header, total_synapses), header.total_synapses, synapses);
    }
    if (!is_delta()) {
      place.zero(AT(Header, base_checksum), header.base_checksum.bytes);
      place.equal(AT(Header, base_step), header.base_step, 0);
    }
  }

  const detail::OpenFile& file_;
  Findings& findings_;
  std::vector<VerifiedRegion> facts_;
  FlagFacts flags_;
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
