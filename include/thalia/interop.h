// Other formats: safetensors, MCKP, mst and version 0.1, read, written and converted.
#pragma once

#include "thalia/any_file.h"
#include "thalia/checkpoint_compressor.h"
#include "thalia/convert.h"
#include "thalia/file_format.h"
#include "thalia/mckp.h"
#include "thalia/merge.h"
#include "thalia/migrate.h"
#include "thalia/mst.h"
#include "thalia/safetensors.h"
#include "thalia/v01.h"
