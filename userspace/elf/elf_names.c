/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of symbols, one by one.
 *
 * A look-up of a few addresses in a table of 200,000 symbols needs the names of a few: a string table of 20 MB is
 * neither read nor kept for that. A name lives as long as the file, like one of a whole table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "elf/elf_private.h"

#define NAME_READ 512 /* bytes at first: few names are longer */

MAP_FUNCTIONS_BY(elf_name_map, struct elf_name, uint64_t, offset);

/* Reads up to `size` bytes. The length of the name, or of all bytes if it does not end; negative errno. */
static ssize_t read_name(const struct elf_file *file, char *text, size_t size, uint64_t offset)
{
	ssize_t got = elf_file__read(file, text, size, offset);

	return got < 0 ? got : (ssize_t)strnlen(text, (size_t)got);
}

static int copy_name(const struct elf_file *file, const struct elf_strings *s, uint64_t offset,
		     size_t most, char **name)
{
	size_t limit = min_u64(s->size - offset, most);
	_cleanup_free_ char *long_text = NULL;
	char text[NAME_READ], *from = text;
	ssize_t length = read_name(file, text, min_u64(limit, NAME_READ), s->offset + offset);

	if (length == NAME_READ && limit > NAME_READ) {
		long_text = from = malloc(limit);
		if (!long_text)
			return -ENOMEM;
		length = read_name(file, long_text, limit, s->offset + offset);
	}
	if (length < 0)
		return (int)length;
	*name = strndup(from, (size_t)length);
	return *name ? 0 : -ENOMEM;
}

int elf_strings__name(struct elf_file *file, struct elf_strings *s, uint64_t offset, size_t most,
		      char **name)
{
	struct elf_name new = {.offset = offset}, *known = elf_name_map__find(&s->names, offset);
	int err;

	if (!known) {
		err = copy_name(file, s, offset, most, &new.text);
		if (err)
			return err;
		known = elf_name_map__need(&s->names, &new, NULL);
	}
	if (!known) {
		free(new.text);
		return -ENOMEM;
	}
	*name = known->text;
	return 0;
}

void elf_strings__fini(struct elf_strings *s)
{
	for (size_t i = 0; i < s->names.count; i++)
		free(s->names.data[i].text);
	elf_name_map__fini(&s->names);
	free(s->data);
}
