// Everything that is wrong with a file.
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/vector.h>

#include "python/bindings.h"
#include "python/calls.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/results.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/file_facts.h"
#include "thalia/state/delta.h"
#include "thalia/verify.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

VerifyReport run_verify(const Path& path, bool quick, const std::string& access, unsigned threads,
                        std::uint64_t max_findings, std::vector<Path> search, bool legacy,
                        ProgressCallback progress) {
  VerifyOptions options{.input = {.access = access_of(access)},
                        .quick = quick,
                        .max_findings = max_findings,
                        .work = {.threads = threads, .progress = progress_of(std::move(progress))}};
  ChainOptions chain = chain_options(access, std::move(search), threads, legacy);
  return interruptible([&](const std::stop_token& stop) {
    options.work.cancel = stop;
    chain.read.work.cancel = stop;
    return verify_any(path, options, {.chain = chain});
  });
}

void bind_report(nb::module_& module) {
  bind_result<Finding>(
      module, "Finding",
      "One thing that is wrong, or odd. Texts are empty, and length is 0, if they do not apply.",
      field("severity", &Finding::severity,
            "\"error\": the file breaks its format, or bytes are not those that were written; "
            "\"warning\"."),
      field("code", &Finding::code, "As `code` of the exception that a reader would raise."),
      field("section", &Finding::section, "\"header\", \"directory\", \"payload\", …"),
      field("field", &Finding::field), field("region", &Finding::region),
      field("tensor", &Finding::tensor),
      field("offset", &Finding::offset, "In bytes from the start of the file."),
      field("length", &Finding::length, "Bytes concerned."), field("message", &Finding::message));
  bind_result<VerifyReport>(
      module, "VerifyReport", "What verify() found.",
      computed("ok", &VerifyReport::ok, "No finding is an error."),
      field("findings", &VerifyReport::findings),
      field("suppressed", &VerifyReport::suppressed, "Findings beyond max_findings."),
      field("suppressed_errors", &VerifyReport::suppressed_errors,
            "Errors among the suppressed findings."),
      field("bytes_checked", &VerifyReport::bytes_checked,
            "Bytes that were compared with a checksum."),
      field("regions", &VerifyReport::regions), field("tensors", &VerifyReport::tensors),
      field("tensors_compared", &VerifyReport::tensors_compared,
            "Tensors whose bytes were compared with a checksum. The others may have changed "
            "unnoticed."),
      computed("structure_only", &VerifyReport::structure_only,
               "Names, tables and bounds were checked, and no element: the file has no checksums, "
               "or quick=True."),
      field("seconds", &VerifyReport::seconds));
}

}  // namespace

void bind_verify(nb::module_& module) {
  bind_report(module);
  module.def("verify", run_verify, nb::arg("path"), nb::arg("quick"), nb::arg("access"),
             nb::arg("threads"), nb::arg("max_findings"), nb::arg("search"), nb::arg("legacy"),
             nb::arg("progress").none());
}

}  // namespace thalia::python
