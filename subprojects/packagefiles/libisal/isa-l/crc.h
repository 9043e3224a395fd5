/* Where the installed library has it. */
#include "../include/crc.h"
