// A training step's change of bf16 weights on one core: step_delta with each set of instructions,
// and exclusive-or with zstd -1, beside memcpy. With --data it is that of a real training. Without,
// a step is a normal one of the learning rate's size, on weights in f32 that are then rounded,
// which moves far more of them. The share of the raw bytes follows each name.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/byte_xor.h"
#include "codec/float/conversion.h"
#include "codec/frame/zstd_frame.h"
#include "codec/step/step_decoder.h"
#include "codec/step/step_encoder.h"
#include "codec/step/step_kind.h"
#include "floors.h"
#include "measure/samples.h"
#include "paired.h"
#include "settings.h"
#include "subject.h"
#include "thalia/formats/safetensors.h"
#include "thalia/types.h"

namespace thalia::bench::step_subject {
namespace {

using codec::VectorSet;

using Bytes = std::vector<std::byte>;

struct Step {
  Bytes base, next, stored, out;
};

std::shared_ptr<Step> step_of(double learning_rate, std::uint64_t bytes) {
  auto weights = measure::normal_f32(2 * bytes);
  const auto step = std::make_shared<Step>();
  const auto round = [&](Bytes& rounded) {
    rounded.resize(bytes);
    codec::convert_elements(DType::f32, DType::bf16, as_byte_span(weights), rounded);
  };
  round(step->base);
  // The weights themselves, in another order, are the steps.
  const auto steps = weights;
  constexpr double kSigma = 0.02;
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] += static_cast<float>(learning_rate / kSigma) * steps[steps.size() - 1 - i];
  round(step->next);
  step->out.resize(bytes);
  return step;
}

// The tensors of both checkpoints as they follow each other in the files.
std::shared_ptr<Step> step_in(const std::filesystem::path& folder, const std::string& rate) {
  const auto read = [&](const char* number) {
    Bytes out;
    const SafetensorsFile file =
        SafetensorsFile::open(folder / ("bf16-" + rate + "-" + number + ".safetensors"));
    for (const NamedArray& tensor : file.tensors()) {
      const ByteSpan bytes = tensor.bytes;
      out.insert(out.end(), bytes.begin(), bytes.end());
    }
    return out;
  };
  const auto step = std::make_shared<Step>();
  step->base = read("0");
  step->next = read("1");
  step->out.resize(step->base.size());
  return step;
}

std::string with_share(const std::string& name, const Step& step) {
  char text[32];
  std::snprintf(
      text, sizeof text, " (%.3f %%)",
      100.0 * static_cast<double>(step.stored.size()) / static_cast<double>(step.base.size()));
  return name + text;
}

Comparison beside_memcpy(const std::shared_ptr<Step>& step, Side side) {
  return {.ours = std::move(side),
          .floor = {"memcpy", [=] { copy(step->base, step->out); }},
          .bytes = step->base.size()};
}

const char* name_of(VectorSet set) {
  return set == VectorSet::avx512 ? "step_delta avx512"
         : set == VectorSet::avx2 ? "step_delta avx2"
                                  : "step_delta portable";
}

}  // namespace

bool add_subject(const Settings& settings, PairedSuite& suite) {
  const codec::StepKind kind = codec::step_kind(DType::bf16).value();
  const std::uint64_t bytes = settings.bytes() / 8;
  // As training_run.py names them.
  for (const std::string rate : {"1e-06", "3e-06", "1e-05", "0.0001", "0.0003"}) {
    const std::string weights = "step of " + rate + " in bf16, ";
    const auto make = [=, data = settings.data] {
      return data.empty() ? step_of(std::stod(rate), bytes) : step_in(data, rate);
    };
    for (const VectorSet set : codec::kVectorSets) {
      if (!codec::has_vector_set(set)) continue;
      for (const bool decodes : {false, true}) {
        suite.add(weights + (decodes ? "decode, " : "encode, ") + name_of(set) + " beside memcpy",
                  [=] {
                    const auto step = make();
                    step->stored = codec::step_encode(kind, step->base, step->next, set);
                    codec::step_decode(kind, step->stored, step->base, step->out, set);
                    if (step->out != step->next) throw std::runtime_error("step_delta loses bytes");
                    const std::string name = with_share(name_of(set), *step);
                    if (decodes) {
                      return beside_memcpy(step, {name, [=] {
                                                    codec::step_decode(kind, step->stored,
                                                                       step->base, step->out, set);
                                                  }});
                    }
                    return beside_memcpy(step, {name, [=] {
                                                  step->stored = codec::step_encode(
                                                      kind, step->base, step->next, set);
                                                }});
                  });
      }
    }
    suite.add(weights + "encode, exclusive-or with zstd -1 beside memcpy", [=] {
      const auto step = make();
      const auto run = [=] {
        Bytes difference = step->base;
        xor_into(difference, step->next);
        codec::zstd_encode(1, difference, step->stored);
      };
      run();
      return beside_memcpy(step, {with_share("exclusive-or with zstd -1", *step), run});
    });
  }
  return false;
}

}  // namespace thalia::bench::step_subject
