/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A record in a ring is its size and its bytes, rounded up. Both counters only grow; each is
 * written by one side. The reader rejects a size beyond the written bytes.
 */
#include "jit/follow/jit_channel.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clocks.h"
#include "base/minmax.h"

#define RECORD_ALIGN 8

struct jit_channels *jit_channels__new(void)
{
	void *memory = mmap(NULL, sizeof(struct jit_channels), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct jit_channels *channels = memory;
	const uint64_t now = monotonic_ns();

	if (memory == MAP_FAILED)
		return NULL;
	for (int i = 0; i < JIT_WATCHERS_MAX; i++) {
		struct quota *bytes = &channels->of[i].bytes;

		quota__init(bytes, QUOTA_JIT_BYTES);
		quota__begin(bytes, now);
		bytes->shared = &channels->bytes_read; /* at the same address in all processes */
	}
	return channels;
}

void jit_channels__free(struct jit_channels *channels)
{
	if (channels)
		munmap(channels, sizeof(*channels));
}

struct jit_channel *jit_channels__keep(struct jit_channels *channels, unsigned int number)
{
	struct jit_channel *own = &channels->of[number];

	munmap(channels->of, number * sizeof(*own));
	munmap(own + 1, (JIT_WATCHERS_MAX - 1 - number) * sizeof(*own));
	return own;
}

void jit_file_room__fill(union jit_file_room *e, const char *path,
			 const struct jit_file_event *fields)
{
	size_t length = strnlen(path, PATH_MAX - 1);

	*e = (union jit_file_room){.event = *fields};
	e->event.header.type = EVENT_JIT_FILE;
	e->event.header.size = event_aligned(sizeof(e->event) + length + 1);
	memcpy(e->event.path, path, length);
}

static void copy_in(char *ring, uint64_t at, const void *from, size_t size)
{
	size_t offset = at & (JIT_EVENT_BYTES - 1), first = min_u64(size, JIT_EVENT_BYTES - offset);

	memcpy(ring + offset, from, first);
	memcpy(ring, (const char *)from + first, size - first);
}

static void copy_out(const char *ring, uint64_t at, void *to, size_t size)
{
	size_t offset = at & (JIT_EVENT_BYTES - 1), first = min_u64(size, JIT_EVENT_BYTES - offset);

	memcpy(to, ring + offset, first);
	memcpy((char *)to + first, ring, size - first);
}

bool jit_channel__send_event(struct jit_channel *c, const void *event, size_t size)
{
	uint64_t written = atomic_load_explicit(&c->written, memory_order_relaxed);
	uint64_t read = atomic_load_explicit(&c->read, memory_order_acquire);
	uint64_t length = size, whole = sizeof(length) + align_up(size, RECORD_ALIGN);

	if (written - read > JIT_EVENT_BYTES || whole > JIT_EVENT_BYTES - (written - read))
		return false;
	copy_in(c->event_bytes, written, &length, sizeof(length));
	copy_in(c->event_bytes, written + sizeof(length), event, size);
	atomic_store_explicit(&c->written, written + whole, memory_order_release);
	return true;
}

long jit_channel__take_event(struct jit_channel *c, void *event, size_t room)
{
	uint64_t read = atomic_load_explicit(&c->read, memory_order_relaxed);
	uint64_t written = atomic_load_explicit(&c->written, memory_order_acquire);
	uint64_t length, there = written - read;

	if (!there)
		return 0;
	if (there > JIT_EVENT_BYTES || there < sizeof(length))
		return -EPROTO;
	copy_out(c->event_bytes, read, &length, sizeof(length));
	if (!length || length > room || align_up(length, RECORD_ALIGN) > there - sizeof(length))
		return -EPROTO;
	copy_out(c->event_bytes, read + sizeof(length), event, length);
	atomic_store_explicit(&c->read, read + sizeof(length) + align_up(length, RECORD_ALIGN),
			      memory_order_release);
	return (long)length;
}
