/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies of the objects that name a Python function, sent before its first sample.
 *
 * CPython frees code as soon as nothing refers to it: an imported module's body, or code of `exec`.
 * A few milliseconds later another object is there. So the tick copies the few objects that the
 * name is read from. If they do not fit, or exceed the limit of copies, the process is read.
 */
#ifndef BPF_CODE_COPY_BPF_H
#define BPF_CODE_COPY_BPF_H

#include <linux/bpf_perf_event.h>

#include "maps.bpf.h"
#include "runtime.bpf.h"
#include "tick_ring.bpf.h"

#define CODE_COPIES_NS 125000000ull /* rings are drained more often when they fill up */
#define COPIED_BITS    11
#define COPIED_SETS    (1u << COPIED_BITS)
#define COPIED_WAYS    4u

_Static_assert(sizeof(struct code_copy_event) % EVENT_ALIGN == 0, "without a table it ends so");

/* The buffer for one copy. */
struct code_copy_scratch {
	__u64 since; /* CLOCK_MONOTONIC: start of the interval … */
	__u32 bytes; /* … and copies in it */
	__u32 unused;
	union {
		struct code_copy_event copy;
		unsigned char space[sizeof(struct code_copy_event) + CODE_COPY_TABLE];
	};
};
_Static_assert(sizeof(((struct code_copy_scratch *)0)->space) <= TICK_RING_SLACK,
	       "an event of the ring");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct code_copy_scratch);
} code_copy_scratches SEC(".maps");

/* Hashes of copied Python functions. Members of a set evict each other, and are copied again. */
struct copied_set {
	__u64 hashes[COPIED_WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COPIED_SETS);
	__type(key, __u32);
	__type(value, struct copied_set);
} copied_codes SEC(".maps");

static __always_inline __u64 hash_of_code(const struct notes *n, __u64 code, __u64 check)
{
	__u64 hash = (code ^ n->info.as_of * 0xc2b2ae3d27d4eb4full) * 0x9e3779b97f4a7c15ull;

	hash ^= hash >> 32;
	return (hash ^ check) * 0x9e3779b97f4a7c15ull | 1;
}

static __always_inline struct copied_set *copied_set(__u64 hash)
{
	__u32 set = hash >> (64 - COPIED_BITS);

	return bpf_map_lookup_elem(&copied_codes, &set);
}

/* Two CPUs may write at once: one of the two functions is copied once more then. */
static __always_inline void note_copied(const struct notes *n, __u64 code, __u64 check)
{
	__u64 hash = hash_of_code(n, code, check);
	struct copied_set *set = copied_set(hash);

	if (!set)
		return;
#pragma unroll
	for (__u32 i = COPIED_WAYS - 1; i; i--)
		set->hashes[i] = set->hashes[i - 1];
	set->hashes[0] = hash;
}

/* A function that is new in this sample. */
static __always_inline void meet_code(struct notes *n, __u64 code, __u64 check)
{
	__u32 at = n->met_count;
	struct copied_set *set;
	__u64 hash;

	if (!check || !n->info.python.head_size || at >= CODE_COPIES)
		return;
	hash = hash_of_code(n, code, check);
	set = copied_set(hash);
	if (!set)
		return;
#pragma unroll
	for (__u32 i = 0; i < COPIED_WAYS; i++)
		if (set->hashes[i] == hash)
			return;
	n->met[at].function = code;
	n->met[at].check = check;
	n->met_count = at + 1;
}

static __always_inline struct code_copy_scratch *code_copy_scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&code_copy_scratches, &zero);
}

static __always_inline bool may_copy_code(struct code_copy_scratch *c, __u64 now)
{
	if (now - c->since > CODE_COPIES_NS) {
		c->since = now;
		c->bytes = 0;
	}
	return c->bytes < code_bytes;
}

static __always_inline __u64 word_of_copy(const struct code_copy_event *e, __u64 offset)
{
	UNWIND_HIDE(offset);
	return offset <= CODE_COPY_HEAD - 8 ? *(const __u64 *)(e->head + offset) : 0;
}

/* Copies `size` bytes of an object, or those in its first page. Returns the number of bytes. */
static __always_inline __u64 copy_object(unsigned char *to, __u64 size, __u64 address)
{
	__u64 in_page = IN_PAGE + 1 - (address & IN_PAGE);

	if (!read_user(to, size, address))
		return size;
	UNWIND_HIDE(in_page);
	if (in_page >= size)
		return 0;
	return read_user(to, in_page, address) ? 0 : in_page;
}

/* The bytes object with the line table. False: it does not fit. */
static __always_inline bool copy_table(struct code_copy_scratch *c,
				       const struct runtime_python *python)
{
	__u64 length, size;

	if (read_word(c->copy.lines + python->bytes_size, &length) || length > CODE_COPY_TABLE)
		return false;
	size = python->bytes_data + length;
	UNWIND_HIDE(size);
	if (size > CODE_COPY_TABLE || read_user(c->space + sizeof(c->copy), size, c->copy.lines))
		return false;
	c->copy.lines_size = size;
	return true;
}

/* 3.11: the hash of its name, and where that is. */
static __always_inline void copy_hash(struct code_copy_event *e,
				      const struct runtime_python *python)
{
	e->hash_at = e->hash = 0;
	if (python->code_name == RUNTIME_NONE)
		return;
	e->hash_at = word_of_copy(e, python->code_name) + python->str_hash;
	if (read_word(e->hash_at, &e->hash))
		e->hash_at = 0;
}

/* Copies a new function of this sample. 0: no other attempt is needed. */
static __always_inline long send_code(struct code_copy_scratch *c, const struct scratch *s,
				      const struct notes *n, __u32 which)
{
	struct code_copy_event *e = &c->copy;
	__u64 size;

	e->function = n->met[which].function;
	e->check = n->met[which].check;
	size = n->info.python.head_size;
	UNWIND_HIDE(size);
	if (size > CODE_COPY_HEAD || read_user(e->head, size, e->function))
		return -1;
	e->head_size = size;
	e->name = word_of_copy(e, n->info.python.code_qualname);
	e->file = word_of_copy(e, n->info.python.code_filename);
	e->lines = word_of_copy(e, n->info.python.code_linetable);
	if (!copy_table(c, &n->info.python))
		return 0;
	copy_hash(e, &n->info.python);
	e->name_size = copy_object(e->name_bytes, CODE_COPY_NAME, e->name);
	e->file_size = copy_object(e->file_bytes, CODE_COPY_FILE, e->file);
	size = (e->lines_size + EVENT_ALIGN - 1) & ~(EVENT_ALIGN - 1);
	UNWIND_HIDE(size);
	if (size > CODE_COPY_TABLE)
		return 0;
	e->header.type = EVENT_CODE_COPY;
	e->header.flags = 0;
	e->header.size = sizeof(*e) + size;
	e->header.time = s->sample.header.time;
	e->tgid = s->sample.tgid;
	e->reserved = 0;
	c->bytes += sizeof(*e) + size;
	return put_event(e, sizeof(*e) + size, e->header.time);
}

/* Copies new function `which` of this sample. A global function. */
__attribute__((noinline)) int copy_code(__u32 which)
{
	struct code_copy_scratch *c = code_copy_scratch();
	struct scratch *s = scratch();
	struct notes *n = notes();

	if (c && s && n && which < CODE_COPIES && may_copy_code(c, n->time) &&
	    !send_code(c, s, n, which))
		note_copied(n, n->met[which].function, n->met[which].check);
	return 0;
}

/* Copies the new functions of the sample, before the sample is sent. */
static __always_inline void copy_codes(const struct notes *n)
{
	for (__u32 i = 0; i < CODE_COPIES; i++) {
		if (i >= n->met_count)
			break;
		copy_code(i);
	}
}

#endif
