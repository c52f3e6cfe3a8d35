/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/python/copy.h"

#include <errno.h>
#include <string.h>

#include "runtimes/answers_private.h"
#include "runtimes/python/code.h"
#include "runtimes/python/walk.h"

/* Some bytes of the process. */
struct piece {
	uint64_t address, size;
	const void *bytes;
};

/* False: not all of it is in there. */
static bool read_piece(const struct piece *piece, void *to, size_t size, uint64_t address)
{
	uint64_t at = address - piece->address;

	if (address < piece->address || at > piece->size || size > piece->size - at)
		return false;
	memcpy(to, (const char *)piece->bytes + at, size);
	return true;
}

/* A target_read_fn. */
static int read_copy(void *context, void *to, size_t size, uint64_t address)
{
	const struct code_copy_event *e = context;
	const struct piece pieces[] = {
		{e->function, e->head_size, e->head},
		{e->name, e->name_size, e->name_bytes},
		{e->file, e->file_size, e->file_bytes},
		{e->lines, e->lines_size, e->lines_bytes},
		{e->hash_at, e->hash_at ? sizeof(e->hash) : 0, &e->hash},
	};

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		if (read_piece(&pieces[i], to, size, address))
			return 0;
	return -ENODATA;
}

int code_copy__send(struct code_answers *answers, const struct code_copy_event *copy,
		    const struct cpython_layout *layout)
{
	struct cpython py = {.layout = *layout};
	struct target_memory m = {.read = read_copy,
				  .context = (void *)copy,
				  .bytes_left = CPYTHON_CODE_SPENT,
				  .reads_left = CPYTHON_CODE_READS};
	const struct code_question question = {
		.function = copy->function, .check = copy->check, .kind = FRAME_NOTE_PYTHON};
	struct cpython_identity identity;
	struct managed_function f = {};
	int err = -ENODATA;

	if (!cpython_layout__is_sound(layout) || copy->head_size < cpython_head__size(&py) ||
	    cpython_identity__of_head(&py, &m, copy->head, &identity) ||
	    !cpython_identity__has(&identity, copy->check))
		return -ENODATA;
	if (cpython_code__read(&py, &m, copy->function, &identity, &f) == CPYTHON_CONFIRMED)
		err = code_answers__function(answers, &question, CODE_STATE_CONFIRMED,
					     layout->code_bytecode, &f, 0);
	managed_function__fini(&f);
	return err == -E2BIG ? -ENODATA : err;
}
