/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/kernel_build_id.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/parse.h"

#define NOTES_MAX (64u << 10)

static size_t align_note(size_t size)
{
	return (size + 3) & ~(size_t)3;
}

int kernel_build_id__read(char *text, size_t size)
{
	_cleanup_free_ char *notes = NULL;
	size_t total = 0, at = 0;
	int err = read_file_at(AT_FDCWD, "/sys/kernel/notes", NOTES_MAX, &notes, &total);

	while (!err && at + sizeof(Elf64_Nhdr) <= total) {
		Elf64_Nhdr note;
		size_t name = at + sizeof(note), id;

		memcpy(&note, notes + at, sizeof(note));
		id = name + align_note(note.n_namesz);
		at = id + align_note(note.n_descsz);
		if (note.n_namesz > total || note.n_descsz > total || id + note.n_descsz > total)
			return -EBADMSG;
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp(notes + name, "GNU", sizeof("GNU")) || 2 * note.n_descsz >= size)
			continue;
		put_hex_bytes(text, (const uint8_t *)notes + id, note.n_descsz);
		return note.n_descsz ? 0 : -ENOENT;
	}
	return err ? err : -ENOENT;
}
