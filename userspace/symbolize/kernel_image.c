/* SPDX-License-Identifier: BSD-2-Clause */
/* By the one symbol that both have: _stext. */
#include "symbolize/kernel_image.h"

#include <errno.h>
#include <string.h>

#include "elf/elf_file.h"

#define FOUND 1

static int is_text_start(void *context, const struct elf_symbol *symbol)
{
	uint64_t *address = context;

	if (!symbol->name || strcmp(symbol->name, "_stext"))
		return 0;
	*address = symbol->address;
	return FOUND;
}

int kernel_image_shift(int fd, uint64_t start, uint64_t *shift)
{
	uint64_t address = 0;
	struct elf_file *file;
	int err = elf_file__open(fd, &file);

	if (err)
		return err;
	err = elf_file__each_symbol(file, is_text_start, &address);
	elf_file__free(file);
	if (err != FOUND)
		return err < 0 ? err : -ENOENT;
	*shift = start - address;
	return 0;
}
