// Other formats, read, written and converted: safetensors, PyTorch's, NumPy's, GGUF, ONNX, those of
// the family (gpt.rs, Loom, mithril) and version 0.1. docs/use/formats.md.
#pragma once

#include "thalia/formats/any_file.h"
#include "thalia/formats/compressor.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/file_facts.h"
#include "thalia/formats/gguf.h"
#include "thalia/formats/gptrs.h"
#include "thalia/formats/loom.h"
#include "thalia/formats/lora_adapter.h"
#include "thalia/formats/mckp.h"
#include "thalia/formats/mithril.h"
#include "thalia/formats/npz.h"
#include "thalia/formats/onnx.h"
#include "thalia/formats/param_source.h"
#include "thalia/formats/pt.h"
#include "thalia/formats/safetensors.h"
#include "thalia/formats/v01.h"
#include "thalia/formats/weight_delta.h"
