/* Where the installed library has it. */
#include "crc.h"
