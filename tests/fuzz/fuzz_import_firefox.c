/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader of firefox files. */
#include <errno.h>

#include "fuzz_import.h"
#include "fuzz_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_import(&firefox_importer, data, size);
}
