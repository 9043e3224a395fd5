// Everything that is wrong with a file, as a dict.
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
#include "thalia/formats/any_file.h"
#include "thalia/formats/file_format.h"
#include "thalia/state/delta.h"
#include "thalia/verify.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

Members finding_dict(const Finding& finding) {
  nb::dict out;
  out["severity"] = severity_name(finding.severity);
  out["code"] = error_code_name(finding.code);
  out["section"] = text_object(finding.section);
  out["field"] = text_object(finding.field);
  out["region"] = text_object(finding.region);
  out["tensor"] = text_object(finding.tensor);
  out["offset"] = finding.offset;
  out["length"] = finding.length;
  out["message"] = text_object(finding.message);
  return out;
}

Members run_verify(const Path& path, bool quick, const std::string& access, unsigned threads,
                   std::uint64_t max_findings, std::vector<Path> search, bool legacy,
                   ProgressCallback progress) {
  VerifyOptions options{.input = {.access = access_of(access)},
                        .quick = quick,
                        .max_findings = max_findings,
                        .work = {.threads = threads, .progress = progress_of(std::move(progress))}};
  ChainOptions chain = chain_options(access, std::move(search), threads, legacy);
  const VerifyReport report = interruptible([&](const std::stop_token& stop) {
    options.work.cancel = stop;
    chain.read.work.cancel = stop;
    return verify_any(path, options, {.chain = chain});
  });
  nb::list findings;
  for (const Finding& finding : report.findings) findings.append(finding_dict(finding));
  nb::dict out;
  out["ok"] = report.ok();
  out["findings"] = findings;
  out["suppressed"] = report.suppressed;
  out["suppressed_errors"] = report.suppressed_errors;
  out["bytes_checked"] = report.bytes_checked;
  out["regions"] = report.regions;
  out["tensors"] = report.tensors;
  out["tensors_compared"] = report.tensors_compared;
  out["structure_only"] = report.structure_only();
  return out;
}

}  // namespace

void bind_verify(nb::module_& module) {
  module.def("verify", run_verify, nb::arg("path"), nb::arg("quick"), nb::arg("access"),
             nb::arg("threads"), nb::arg("max_findings"), nb::arg("search"), nb::arg("legacy"),
             nb::arg("progress").none());
}

}  // namespace thalia::python
