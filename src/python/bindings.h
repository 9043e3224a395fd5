// What the module is put together from: a function a file.
#pragma once

#include <nanobind/nanobind.h>

namespace thalia::python {

void bind_gil(nanobind::module_& module);
void bind_brain(nanobind::module_& module);
void bind_buffers(nanobind::module_& module);
void bind_any_file(nanobind::module_& module);
void bind_growth(nanobind::module_& module);
void bind_loom(nanobind::module_& module);
void bind_param_source(nanobind::module_& module);
void bind_reader(nanobind::module_& module);
void bind_rules(nanobind::module_& module);
void bind_safetensors(nanobind::module_& module);
void bind_store(nanobind::module_& module);
void bind_stream(nanobind::module_& module);
void bind_thread_lock(nanobind::module_& module);
void bind_writer(nanobind::module_& module);
void bind_background(nanobind::module_& module);
void bind_value(nanobind::module_& module);
void bind_verify(nanobind::module_& module);
void bind_describe(nanobind::module_& module);
void bind_diff(nanobind::module_& module);
void bind_delta(nanobind::module_& module);
void bind_compressor(nanobind::module_& module);
void bind_convert(nanobind::module_& module);
void bind_quantize(nanobind::module_& module);
void bind_repair(nanobind::module_& module);
void bind_wrap(nanobind::module_& module);

}  // namespace thalia::python
