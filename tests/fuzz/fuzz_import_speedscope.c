/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader of speedscope files. */
#include <errno.h>

#include "fuzz_import.h"
#include "fuzz_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_import(&speedscope_importer, data, size);
}
