/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader of the text of perf script. */
#include <errno.h>

#include "fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_import(&perf_script_importer, data, size);
}
