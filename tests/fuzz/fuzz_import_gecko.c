/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader of gecko files. */
#include <errno.h>

#include "fuzz_import.h"
#include "fuzz_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_import(&gecko_importer, data, size);
}
