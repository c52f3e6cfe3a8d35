/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A record in a ring is its size and its bytes, rounded up. Both counters only grow; each is written by one side. The
 * reader takes what the other side says for a claim: a size that does not fit into what was written is nonsense.
 */
#include "jitwatch/jit_channel.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/align.h"
#include "base/minmax.h"

#define RECORD_ALIGN 8

struct jit_channel *jit_channel__new(void)
{
	void *memory = mmap(NULL, sizeof(struct jit_channel), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void jit_channel__free(struct jit_channel *channel)
{
	if (channel)
		munmap(channel, sizeof(*channel));
}

static void copy_in(char *ring, uint32_t ring_size, uint64_t at, const void *from, size_t size)
{
	size_t offset = at & (ring_size - 1), first = min_u64(size, ring_size - offset);

	memcpy(ring + offset, from, first);
	memcpy(ring, (const char *)from + first, size - first);
}

static void copy_out(const char *ring, uint32_t ring_size, uint64_t at, void *to, size_t size)
{
	size_t offset = at & (ring_size - 1), first = min_u64(size, ring_size - offset);

	memcpy(to, ring + offset, first);
	memcpy((char *)to + first, ring, size - first);
}

static bool put_record(struct jit_ring *r, char *ring, uint32_t ring_size, const void *record,
		       size_t size)
{
	uint64_t written = atomic_load_explicit(&r->written, memory_order_relaxed);
	uint64_t read = atomic_load_explicit(&r->read, memory_order_acquire);
	uint64_t length = size, whole = sizeof(length) + align_up(size, RECORD_ALIGN);

	if (written - read > ring_size || whole > ring_size - (written - read))
		return false;
	copy_in(ring, ring_size, written, &length, sizeof(length));
	copy_in(ring, ring_size, written + sizeof(length), record, size);
	atomic_store_explicit(&r->written, written + whole, memory_order_release);
	return true;
}

static long get_record(struct jit_ring *r, const char *ring, uint32_t ring_size, void *record,
		       size_t room)
{
	uint64_t read = atomic_load_explicit(&r->read, memory_order_relaxed);
	uint64_t written = atomic_load_explicit(&r->written, memory_order_acquire);
	uint64_t length, there = written - read;

	if (!there)
		return 0;
	if (there > ring_size || there < sizeof(length))
		return -EPROTO;
	copy_out(ring, ring_size, read, &length, sizeof(length));
	if (!length || length > room || align_up(length, RECORD_ALIGN) > there - sizeof(length))
		return -EPROTO;
	copy_out(ring, ring_size, read + sizeof(length), record, length);
	atomic_store_explicit(&r->read, read + sizeof(length) + align_up(length, RECORD_ALIGN),
			      memory_order_release);
	return (long)length;
}

bool jit_channel__send_event(struct jit_channel *c, const void *event, size_t size)
{
	return put_record(&c->events, c->event_bytes, JIT_EVENT_BYTES, event, size);
}

bool jit_channel__send_command(struct jit_channel *c, const void *command, size_t size)
{
	return put_record(&c->commands, c->command_bytes, JIT_COMMAND_BYTES, command, size);
}

long jit_channel__take_event(struct jit_channel *c, void *event, size_t room)
{
	return get_record(&c->events, c->event_bytes, JIT_EVENT_BYTES, event, room);
}

long jit_channel__take_command(struct jit_channel *c, void *command, size_t room)
{
	return get_record(&c->commands, c->command_bytes, JIT_COMMAND_BYTES, command, room);
}
