// Facts for people, in their words and in the order in which they ask; how bytes are stored comes
// last. What a format does not say, or is nothing, has no line.
#include "cli/print/facts_text.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/print/growth_text.h"
#include "cli/print/json_text.h"
#include "cli/print/print.h"
#include "cli/terminal/escape.h"

namespace thalia::cli {
namespace {

std::string kind_in_words(const inspect::DescribedFile& facts) {
  const std::string base = facts.base && facts.base->path ? " of " + escape(*facts.base->path) : "";
  if (facts.format == FileFormat::thalia) {
    if (facts.is_side_file) return "the side file of a checkpoint, without payloads";
    return facts.is_delta ? "a delta" + base : "a checkpoint";
  }
  if (facts.format == FileFormat::thalia_0_1) {
    return facts.is_delta ? "a delta of the original program: a Python pickle, which is never "
                            "opened"
                          : "a checkpoint of the original program";
  }
  if (facts.format == FileFormat::mckp && facts.is_delta) return "an mckp delta" + base;
  return std::string(file_format_words(facts.format));
}

// What the lines are gathered in.
struct FactLines {
  std::vector<FactLine> lines;
  void line(std::string_view label, std::string text) {
    lines.push_back({std::string(label), std::move(text)});
  }
  void line(Style style, std::string_view label, std::string text) {
    lines.push_back({std::string(label), std::move(text), style});
  }
};

void add_training(FactLines& out, const inspect::TrainingProgress& progress) {
  // 0 is what a header says where nobody has counted.
  if (progress.steps.value_or(0) != 0) {
    const std::string& member = progress.steps_member;
    out.line("training step",
             grouped(*progress.steps) +
                 (member.empty() ? "" : fmt::format(" (metadata: {})", escape(member))));
  }
  if (progress.epoch) out.line("epoch", fmt::format("{}", *progress.epoch));
}

// "f32 96.8 % (12 tensors, 3.4 MiB), bool 3.2 % (1 tensor, 16 B)", shares of the elements.
std::string dtypes_text(const inspect::TensorTotals& totals) {
  std::string text;
  for (const inspect::DTypeTotal& of : totals.dtypes()) {
    if (!text.empty()) text += ", ";
    text += dtype_name(of.dtype);
    if (totals.elements() != 0) {
      text += fmt::format(" {:.1f} %", 100 * static_cast<double>(of.elements) /
                                           static_cast<double>(totals.elements()));
    }
    text += fmt::format(" ({}, {})", counted(of.tensors, "tensor", "tensors"),
                        human_bytes(of.logical_bytes));
  }
  return text.empty() ? "none" : text;
}

// "zstd (4 of 4 tensors, 4.1 KiB for 55.3 KiB, 13.48x)".
std::string compression_text(const inspect::TensorTotals& totals) {
  if (totals.compressed() == 0) return "none";
  std::string text =
      fmt::format("{} ({} of {}", fmt::join(totals.codec_names(), ", "),
                  grouped(totals.compressed()), counted(totals.tensors(), "tensor", "tensors"));
  if (const auto& stored = totals.stored_bytes()) {
    text +=
        fmt::format(", {} for {}, {}", human_bytes(*stored), human_bytes(totals.logical_bytes()),
                    ratio_text(totals.logical_bytes(), *stored));
  }
  return text + ")";
}

std::string wrapper_text(const WrapperFacts& wrapper) {
  const std::string_view codec = codec_name(wrapper.codec);
  if (wrapper.packed) return "packed";
  if (wrapper.checksum_inside) {
    return fmt::format("{}, checksum {} the frame", codec,
                       *wrapper.checksum_inside ? "inside" : "after");
  }
  if (!wrapper.frames) return fmt::format("{} frames without a seek table", codec);
  return fmt::format("{} of {}, with a seek table", counted(*wrapper.frames, "frame", "frames"),
                     codec);
}

void add_sizes(FactLines& out, const inspect::DescribedFile& facts) {
  out.line("on disk", exact_bytes(facts.disk_bytes));
  if (facts.debris_bytes > 0) {
    out.line("", fmt::format("of which {} after the end: the debris of an interrupted append",
                             exact_bytes(facts.debris_bytes)));
  }
  if (facts.dead_bytes > 0) {
    out.line("", fmt::format("of which {} dead since an append: compact frees them",
                             exact_bytes(facts.dead_bytes)));
  }
  if (facts.is_side_file) out.line("side file of", exact_bytes(facts.file_bytes));
  if (facts.wrapper) out.line("wrapper", wrapper_text(*facts.wrapper));
  if (facts.wrapper && (facts.wrapper->frames || facts.wrapper->packed))
    out.line("unwrapped", exact_bytes(facts.file_bytes));
  if (!facts.totals) return;
  if (facts.totals->value_bytes()) {
    out.line("values", exact_bytes(*facts.totals->value_bytes()));
  } else {
    out.line("changes", exact_bytes(facts.totals->logical_bytes()));
  }
}

std::string checksum_text(const ChecksumFacts& checksum) {
  std::string text = checksum.type;
  if (checksum.leaves) {
    text += fmt::format(" of {} blocks, {} leaves", human_bytes(*checksum.block_bytes),
                        *checksum.leaves);
  }
  if (checksum.tensors) text += " of " + counted(*checksum.tensors, "tensor", "tensors");
  if (checksum.digest) text += "; " + *checksum.digest;
  return text;
}

void add_storage(FactLines& out, const inspect::DescribedFile& facts) {
  if (facts.timestamp) out.line("saved", utc_time(*facts.timestamp));
  std::string format(file_format_name(facts.format));
  // thalia-0.1 has it in its name.
  if (!facts.version.empty() && facts.format != FileFormat::thalia_0_1)
    format += " " + facts.version;
  if (facts.generation) format += ", generation " + grouped(*facts.generation);
  out.line("format", format);
  if (facts.uuid) out.line("uuid", inspect::uuid_text(*facts.uuid));
  if (facts.totals) out.line("compression", compression_text(*facts.totals));
  out.line("checksum", checksum_text(*facts.checksum));
  if (facts.content_hash) out.line("content hash", *facts.content_hash);
  if (facts.totals && facts.totals->quantized() != 0) {
    std::string text = counted(facts.totals->quantized(), "tensor", "tensors") + " quantized";
    if (facts.totals->lossy_generation()) {
      text += fmt::format(", generation {} of at most {}", *facts.totals->lossy_generation(),
                          *facts.totals->max_lossy_generations());
    }
    out.line("lossy", text);
  }
  if (facts.base) {
    std::string text = facts.base->checksum;
    if (facts.base->training_steps) text += ", step " + grouped(*facts.base->training_steps);
    out.line("delta base", text);
    if (facts.base->path) {
      out.line("", escape(*facts.base->path) +
                       (facts.base->depth ? fmt::format(", depth {}", *facts.base->depth) : ""));
    }
  }
  for (const std::string& also : facts.losses) out.line("beside tensors", escape(also));
  for (const std::string& warning : facts.warnings)
    out.line(Style::warning, "warning", escape(warning));
}

void print_growth(Output& out, std::string_view metadata) {
  const auto events = inspect::growth_events(metadata);
  if (!events) {
    out.line("growth history", cut_in_middle(json_member(metadata, "growth_history").value_or("")));
  } else if (!events->empty()) {
    out.line("growth history", counted(events->size(), "event", "events"));
    print_growth_table(out, *events, "  ");
  }
}

}  // namespace

std::string what_it_is(const inspect::DescribedFile& facts) {
  std::string text = kind_in_words(facts);
  if (facts.totals) text += ", " + counted(facts.totals->tensors(), "tensor", "tensors");
  if (facts.regions) text += " in " + counted(*facts.regions, "region", "regions");
  if (facts.connections.value_or(0) != 0)
    text += ", " + counted(*facts.connections, "connection", "connections");
  return text;
}

std::vector<FactLine> fact_lines(const inspect::DescribedFile& facts) {
  FactLines out;
  if (facts.totals) {
    const inspect::PackedWords::Count parameters = facts.totals->parameters();
    std::string text = human_count(parameters.parameters);
    if (parameters.unknown != 0) {
      text += fmt::format(", and those in {} whose bits a weight are not in the file",
                          counted(parameters.unknown, "packed tensor", "packed tensors"));
    }
    out.line("parameters", text);
    out.line("dtypes", dtypes_text(*facts.totals));
  }
  add_training(out, facts.progress);
  add_sizes(out, facts);
  if (facts.neurons.value_or(0) != 0) out.line("neurons", grouped(*facts.neurons));
  if (facts.neurons.value_or(0) != 0) out.line("synapses", grouped(facts.synapses.value_or(0)));
  add_storage(out, facts);
  return std::move(out.lines);
}

void print_facts(Output& out, const inspect::DescribedFile& facts, bool all_metadata) {
  out.write(Style::heading, escape(facts.path) + ":");
  out.print(" {}\n", what_it_is(facts));
  for (const FactLine& line : fact_lines(facts))
    line.style ? out.line(*line.style, line.label, line.text) : out.line(line.label, line.text);
  print_growth(out, facts.metadata);
  if (all_metadata) {
    print_metadata(out, facts.metadata);
  } else {
    print_short_metadata(out, facts.metadata);
  }
}

}  // namespace thalia::cli
