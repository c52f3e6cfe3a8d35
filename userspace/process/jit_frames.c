/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/jit_frames.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"
#include "process/jit_piece.h"

struct dump {
	uint32_t file, pid;
	struct jit_code *code; /* NULL: it is not followed */
};

struct jit_frames {
	VEC(struct dump) dumps;
};

struct jit_frames *jit_frames__new(void)
{
	return calloc(1, sizeof(struct jit_frames));
}

void jit_frames__free(struct jit_frames *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->dumps.count; i++)
		jit_code__free(f->dumps.data[i].code);
	vec_free(&f->dumps);
	free(f);
}

static struct dump *find_dump(struct jit_frames *f, uint32_t file)
{
	for (size_t i = f->dumps.count; i-- > 0;)
		if (f->dumps.data[i].file == file)
			return &f->dumps.data[i];
	return NULL;
}

int jit_frames__file(struct jit_frames *f, const struct jit_file_event *e)
{
	struct dump *dump = find_dump(f, e->file);

	if (!jit_file_state_is_followed(e->state))
		return 0;
	if (!dump) {
		if (vec_push(&f->dumps, (struct dump){.file = e->file}))
			return -ENOMEM;
		dump = &f->dumps.data[f->dumps.count - 1];
	}
	dump->pid = e->pid;
	if (!dump->code)
		dump->code = jit_code__new(JIT_CODE_FRAMES);
	return dump->code ? 0 : -ENOMEM;
}

int jit_frames__bytes(struct jit_frames *f, const struct jit_bytes_event *e, uint32_t *pid,
		      struct jit_unwinding **list, size_t *count)
{
	const struct jit_piece piece = jit_piece_of(e);
	struct dump *dump = find_dump(f, e->file);
	int err;

	if (!dump || !dump->code)
		return 1;
	err = jit_code__feed(dump->code, &piece);
	if (err)
		return err == -ENOMEM ? err : 1;
	*pid = dump->pid;
	return jit_code__unwinding(dump->code, list, count);
}

void jit_frames__forget(struct jit_frames *f, bool (*is_known)(void *context, uint32_t pid),
			void *context)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->dumps.count; i++) {
		if (is_known(context, f->dumps.data[i].pid))
			f->dumps.data[kept++] = f->dumps.data[i];
		else
			jit_code__free(f->dumps.data[i].code);
	}
	f->dumps.count = kept;
}
