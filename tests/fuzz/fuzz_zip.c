/* SPDX-License-Identifier: BSD-2-Clause */
/* The directories of zip archives. */
#include <string.h>
#include <unistd.h>

#include "files/zip.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = fuzz_file(data, size);
	struct zip_entry entry, again;

	zip_is_archive(fd);
	for (uint64_t offset = 0; offset <= size; offset += 1 + size / 16) {
		if (zip_find(fd, offset, &entry))
			continue;
		MUST(entry.offset <= offset && offset - entry.offset < entry.size);
		MUST(entry.offset + entry.size <= size);
		MUST(strnlen(entry.name, ZIP_NAME_MAX) < ZIP_NAME_MAX);
		if (!zip_find_name(fd, entry.name, &again))
			MUST(!strcmp(again.name, entry.name));
	}
	close(fd);
	return 0;
}
