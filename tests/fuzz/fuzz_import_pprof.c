/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader of pprof files. */
#include <errno.h>

#include "fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_import(&pprof_importer, data, size);
}
