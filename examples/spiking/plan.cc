#include "spiking/plan.h"

#include <cstdio>

namespace spiking {
namespace {

constexpr Rhythm kThalamusRhythms[] = {{"alpha", 10, 2.0f}};
constexpr Rhythm kCortexRhythms[] = {{"alpha", 10, 1.0f}, {"gamma", 40, 1.5f}};
constexpr Rhythm kHippocampusRhythms[] = {{"theta", 8, 2.0f}, {"gamma", 40, 1.0f}};
constexpr Rhythm kStriatumRhythms[] = {{"beta", 20, 1.5f}};

constexpr RegionPlan kRegions[] = {
    {"thalamus", 50, 5, 10.5f, kThalamusRhythms},
    {"cortex_l4", 250, 5, 9.5f, kCortexRhythms},
    {"cortex_l23", 350, 5, 9.5f, kCortexRhythms},
    {"hippocampus", 250, 5, 10.0f, kHippocampusRhythms},
    {"striatum", 100, 1, 10.5f, kStriatumRhythms},
};

enum : std::uint32_t { kThalamus, kCortexL4, kCortexL23, kHippocampus, kStriatum };

constexpr PathwayPlan kPathways[] = {
    {kThalamus, kCortexL4, 200, false},    {kCortexL4, kCortexL23, 80, false},
    {kCortexL23, kHippocampus, 40, false}, {kCortexL23, kStriatum, 30, true},
    {kHippocampus, kCortexL23, 40, false}, {kStriatum, kThalamus, 40, false},
    {kCortexL23, kThalamus, 10, false},
};

constexpr NetworkParameters kParameters;

}  // namespace

std::span<const RegionPlan> region_plans() {
  return kRegions;
}

std::span<const PathwayPlan> pathway_plans() {
  return kPathways;
}

const NetworkParameters& network_parameters() {
  return kParameters;
}

std::vector<std::uint32_t> region_sizes(std::uint32_t neurons) {
  std::vector<std::uint32_t> sizes;
  std::uint64_t before = 0;
  std::uint64_t per_mille = 0;
  for (const RegionPlan& plan : kRegions) {
    per_mille += plan.per_mille;
    const std::uint64_t after = std::uint64_t{neurons} * per_mille / 1000;
    sizes.push_back(static_cast<std::uint32_t>(after - before));
    before = after;
  }
  return sizes;
}

std::string config_json(const RegionPlan& plan) {
  const NetworkParameters& p = kParameters;
  char text[768];
  std::snprintf(
      text, sizeof text,
      R"({"model":"lif","step_ms":1,"tau_membrane_ms":%g,"tau_synapse_ms":%g,)"
      R"("rest_mv":%g,"reset_mv":%g,"refractory_steps":%u,"bias_mv":%g,"noise_mv":%g,)"
      R"("inhibitory_every":%u,"max_delay_steps":%u,"stp_use":%g,)"
      R"("tau_facilitation_ms":%g,"tau_recovery_ms":%g,"tau_trace_ms":%g,)"
      R"("tau_eligibility_ms":%g,"tau_bcm_ms":%g,"learning_rate":%g,"max_weight":%g,)"
      R"("target_trace":%g,"rhythms":[)",
      static_cast<double>(p.lif.tau_membrane_ms), static_cast<double>(p.lif.tau_synapse_ms),
      static_cast<double>(p.lif.rest_mv), static_cast<double>(p.lif.reset_mv),
      unsigned{p.lif.refractory_steps}, static_cast<double>(plan.bias_mv),
      static_cast<double>(p.noise_mv), plan.inhibitory_every, kMaxDelay,
      static_cast<double>(p.short_term.use), static_cast<double>(p.short_term.tau_facilitation_ms),
      static_cast<double>(p.short_term.tau_recovery_ms),
      static_cast<double>(p.plasticity.tau_trace_ms),
      static_cast<double>(p.plasticity.tau_eligibility_ms),
      static_cast<double>(p.plasticity.tau_threshold_ms), static_cast<double>(p.plasticity.rate),
      static_cast<double>(p.plasticity.max_weight),
      static_cast<double>(p.homeostasis.target_trace));
  std::string json = text;
  for (const Rhythm& rhythm : plan.rhythms) {
    std::snprintf(text, sizeof text, R"(%s{"name":"%s","amplitude_mv":%g})",
                  json.back() == '[' ? "" : ",", rhythm.name,
                  static_cast<double>(rhythm.amplitude_mv));
    json += text;
  }
  return json + "]}";
}

}  // namespace spiking
