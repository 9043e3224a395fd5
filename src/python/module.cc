// thalia_checkpoint._core: the public C++ interface as Python objects, and nothing else. What makes
// it comfortable is python/thalia_checkpoint.
#include <nanobind/nanobind.h>

#include "python/bindings.h"
#include "python/errors.h"

NB_MODULE(_core, module) {
  using namespace thalia::python;
  module.doc() = "The C++ library as Python objects; use thalia_checkpoint instead.";
  // What a process still holds when it ends is no fault: a thread that is not waited for, an array
  // in a reference cycle.
  nanobind::set_leak_warnings(false);
  translate_errors();
  bind_gil(module);
  bind_brain(module);
  bind_buffers(module);
  bind_any_file(module);
  bind_growth(module);
  bind_loom(module);
  bind_param_source(module);
  bind_reader(module);
  bind_rules(module);
  bind_safetensors(module);
  bind_stream(module);
  bind_thread_lock(module);
  bind_writer(module);
  bind_background(module);
  bind_store(module);
  bind_value(module);
  bind_verify(module);
  bind_describe(module);
  bind_diff(module);
  bind_delta(module);
  bind_compressor(module);
  bind_convert(module);
  bind_quantize(module);
  bind_repair(module);
  bind_wrap(module);
}
