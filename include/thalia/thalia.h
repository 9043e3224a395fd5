// Everything: reading, writing, verifying and converting checkpoints.
#pragma once

#include "thalia/append.h"
#include "thalia/async_save.h"
#include "thalia/compact.h"
#include "thalia/convert.h"
#include "thalia/error.h"
#include "thalia/json_writer.h"
#include "thalia/options.h"
#include "thalia/reader.h"
#include "thalia/recover.h"
#include "thalia/safetensors.h"
#include "thalia/stream.h"
#include "thalia/tensor_value.h"
#include "thalia/value.h"
#include "thalia/verify.h"
#include "thalia/version.h"
#include "thalia/writer.h"
