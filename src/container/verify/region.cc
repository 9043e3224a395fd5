// Computes where each piece of a region has to be from the tensors that the directory gives it, and
// compares that with what the headers say. end_ follows the pieces: it is the end of the last one
// so far, and at last has to be the length of the region. Homeostatic and dynamic state have
// headers of their own whose place does not follow from tensors, so these are found where the
// region says and checked there.
#include "container/verify/region.h"

#include "base/fail.h"
#include "format/constants.h"
#include "format/region.h"
#include "format/state.h"

namespace thalia::container {
namespace {

using format::RegionPiece;

// Field and offset of a struct's member, for messages.
#define AT(Type, field) #field, offsetof(format::Type, field)

class RegionCheck {
 public:
  RegionCheck(const detail::OpenFile& file, std::uint32_t r, const VerifiedRegion& facts)
      : file_(file), headers_(file.region_headers(r)), facts_(facts), start_(headers_.offset) {}

  /// @return where the last piece ends, from the region's first byte.
  std::uint64_t run() {
    const format::RegionHeader& header = headers_.header;
    const format::RegionExtension& extension = headers_.extension;
    const Place place("region", start_);
    const Place extended("region", start_ + sizeof header);

    place.equal(AT(RegionHeader, config_offset), header.config_offset,
                header.config_length != 0 ? end_ : 0);
    end_ += header.config_length;
    const RoleExtent weights = facts_.of(RegionPiece::weights);
    place.equal(AT(RegionHeader, weights_offset), header.weights_offset, relative(weights.begin));
    place.equal(AT(RegionHeader, weights_length), header.weights_length,
                length(weights, weights.begin));
    place.equal(AT(RegionHeader, encoding_type), header.encoding_type, facts_.first_weights_csr);

    const RoleExtent homeostatic = facts_.of(RegionPiece::homeostatic);
    const std::uint64_t homeostatic_at = own_place(header.homeostatic_offset, homeostatic);
    place.equal(AT(RegionHeader, homeostatic_offset), header.homeostatic_offset,
                relative(homeostatic_at));
    place.equal(AT(RegionHeader, homeostatic_length), header.homeostatic_length,
                length(homeostatic, homeostatic_at));
    if (!homeostatic.empty()) check_homeostatic(homeostatic_at);

    const RoleExtent dynamic = facts_.of(RegionPiece::dynamic_state);
    const std::uint64_t dynamic_at = own_place(extension.dynamic_state_offset, dynamic);
    extended.equal(AT(RegionExtension, dynamic_state_offset), extension.dynamic_state_offset,
                   relative(dynamic_at));
    extended.equal(AT(RegionExtension, dynamic_state_length), extension.dynamic_state_length,
                   length(dynamic, dynamic_at));
    extended.equal(AT(RegionExtension, oscillator_offset), extension.oscillator_offset,
                   relative(facts_.of(Role::oscillator).begin));
    extended.equal(AT(RegionExtension, neuromodulator_offset), extension.neuromodulator_offset,
                   relative(facts_.of(Role::neuromodulator).begin));
    if (!dynamic.empty()) check_dynamic_state(dynamic_at, dynamic);

    const RoleExtent other = facts_.of(RegionPiece::other);
    extended.equal(AT(RegionExtension, other_offset), extension.other_offset,
                   relative(other.begin));
    extended.equal(AT(RegionExtension, other_length), extension.other_length,
                   length(other, other.begin));
    check_metadata_place(extended, extension);
    return std::max<std::uint64_t>(
        end_, extension.region_metadata_offset + extension.region_metadata_length);
  }

 private:
  static void check_metadata_place(const Place& place, const format::RegionExtension& extension) {
    const std::uint64_t offset = extension.region_metadata_offset;
    if (extension.region_metadata_length == 0)
      return place.equal(AT(RegionExtension, region_metadata_offset), offset, 0);
    if (offset % format::kAlignment != 0) {
      place.fail(AT(RegionExtension, region_metadata_offset), std::to_string(offset),
                 fmt::format("a multiple of {}", format::kAlignment));
    }
  }

  // An absolute offset as the headers store it: from the first byte of the region; 0 if there is
  // nothing.
  std::uint64_t relative(std::uint64_t absolute) const {
    return absolute == RoleExtent::kNowhere ? 0 : absolute - start_;
  }

  // A piece with a header of its own starts where the region says; piece_header() holds that place
  // to its rules.
  std::uint64_t own_place(std::uint64_t stored_offset, const RoleExtent& tensors) const {
    return tensors.empty() ? RoleExtent::kNowhere : start_ + stored_offset;
  }

  // From the first byte of the piece, its header included, to the end of its last payload.
  std::uint64_t length(const RoleExtent& tensors, std::uint64_t begin) {
    if (tensors.empty()) return 0;
    end_ = std::max(end_, tensors.end - start_);
    return tensors.end - begin;
  }

  // The header of a piece, which has to lie before the first tensor, at an address with this
  // remainder. Thrown before the header is read, as it may lie anywhere.
  template <typename T>
  const T& piece_header(const char* field, std::uint64_t at, std::uint64_t remainder,
                        const RoleExtent& tensors) const {
    if (at % format::kAlignment != remainder || at + sizeof(T) > tensors.begin) {
      Place("region", start_)
          .fail(field, 0, std::to_string(at - start_),
                fmt::format("remainder {} when divided by {}, {} bytes before {}", remainder,
                            format::kAlignment, sizeof(T), tensors.begin - start_));
    }
    return file_.structure<T>(at, "region");
  }

  void check_homeostatic(std::uint64_t at) const {
    const auto& state = piece_header<format::HomeostaticHeader>("homeostatic_offset", at, 16,
                                                                facts_.of(Role::homeostatic));
    const Place place("region", at);
    place.equal(AT(HomeostaticHeader, n_neurons), state.n_neurons, headers_.header.n_neurons);
    place.equal(AT(HomeostaticHeader, flags), state.flags, 0);
  }

  void check_dynamic_state(std::uint64_t at, const RoleExtent& tensors) const {
    const auto& state =
        piece_header<format::DynamicStateHeader>("dynamic_state_offset", at, 0, tensors);
    const Place place("region", at);
    const auto here = [&](Role role) { return facts_.of(role).empty() ? 0u : 1u; };
    place.equal(AT(DynamicStateHeader, has_region_state), state.has_region_state,
                here(Role::region_state));
    place.equal(AT(DynamicStateHeader, has_learning_state), state.has_learning_state,
                here(Role::learning_state));
    place.equal(AT(DynamicStateHeader, has_oscillators), state.has_oscillators,
                here(Role::oscillator));
    place.equal(AT(DynamicStateHeader, has_neuromodulators), state.has_neuromodulators,
                here(Role::neuromodulator));
    place.equal(AT(DynamicStateHeader, region_state_offset), state.region_state_offset,
                relative(facts_.of(Role::region_state).begin));
    place.equal(AT(DynamicStateHeader, learning_state_offset), state.learning_state_offset,
                relative(facts_.of(Role::learning_state).begin));
    std::uint64_t behind = 0;
    for (const Role role :
         {Role::region_state, Role::learning_state, Role::oscillator, Role::neuromodulator}) {
      const RoleExtent& extent = facts_.of(role);
      if (extent.empty()) continue;
      if (extent.begin < behind) {
        place.fail("dynamic_state_offset", 0,
                   fmt::format("{} at {}", role_name(role), extent.begin),
                   fmt::format("after the role before it, which ends at {}", behind));
      }
      behind = extent.end;
    }
  }

  const detail::OpenFile& file_;
  const detail::OpenFile::RegionHeaders headers_;
  const VerifiedRegion& facts_;
  std::uint64_t start_;
  std::uint64_t end_ = sizeof(format::RegionHeader) + sizeof(format::RegionExtension);
};

}  // namespace

void verify_region(const detail::OpenFile& file, std::uint32_t r, const VerifiedRegion& facts) {
  const std::uint64_t end = RegionCheck(file, r, facts).run();
  const Place index("region_index",
                    file.header().region_index_offset + r * sizeof(format::RegionIndexEntry));
  index.equal(AT(RegionIndexEntry, data_length), file.region_index_entry(r).data_length, end);
}

#undef AT

}  // namespace thalia::container
