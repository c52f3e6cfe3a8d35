/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/jit_targets.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mapping_path.h"
#include "jitwatch/jit_find.h"

static bool pid_equal(const void *owner, uint32_t index, const void *key)
{
	const struct jit_targets *t = owner;

	return t->pids.data[index] == *(const pid_t *)key;
}

/* Its number in `pids`, HASHMAP_NONE: it is not followed. */
static uint32_t find_followed(const struct jit_targets *t, pid_t pid)
{
	return hashmap__find(&t->index, hash_u64((uint64_t)pid), &pid);
}

static int follow_process(struct jit_targets *t, pid_t pid)
{
	int err;

	if (find_followed(t, pid) != HASHMAP_NONE)
		return 0;
	err = vec_push(&t->pids, pid);
	if (!err)
		err = hashmap__add(&t->index, hash_u64((uint64_t)pid), t->pids.count - 1);
	return err ? err : jit_tail__follow(t->tail, pid);
}

int jit_targets__see(struct jit_targets *t, const struct mmap_event *mmap)
{
	if (jit_is_dump(mmap->path)) {
		int err = follow_process(t, (pid_t)mmap->pid);

		return err ? err
			   : jit_tail__follow_dump(t->tail, (pid_t)mmap->pid, mmap->path,
						   mmap->start, mmap->start + mmap->length);
	}
	return mapping_is_run_time_code(mmap->path, mmap->build_id_size > 0,
					mmap->file_state != FILE_STATE_NONE)
		       ? follow_process(t, (pid_t)mmap->pid)
		       : 0;
}

int jit_targets__forget(struct jit_targets *t, pid_t pid)
{
	uint32_t last = t->pids.count - 1, at;
	pid_t moved;

	at = hashmap__remove(&t->index, hash_u64((uint64_t)pid), &pid);
	if (at == HASHMAP_NONE)
		return 0;
	if (at != last) {
		moved = t->pids.data[last];
		hashmap__remove(&t->index, hash_u64((uint64_t)moved), &moved);
		t->pids.data[at] = moved;
		hashmap__add(&t->index, hash_u64((uint64_t)moved), at);
	}
	t->pids.count--;
	return jit_tail__gone(t->tail, pid);
}

void jit_targets__init(struct jit_targets *t, struct jit_tail *tail)
{
	*t = (struct jit_targets){.tail = tail};
	hashmap__init(&t->index, pid_equal, t);
}

void jit_targets__fini(struct jit_targets *t)
{
	hashmap__fini(&t->index);
	vec_free(&t->pids);
}
