/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/cpython_layout.h"

#include <string.h>

#define COOKIE	       "xdebugpy"
#define COOKIE_SIZE    8u
#define NEWEST_KNOWN   15u
#define RELEASE_LEVEL  0xf0u /* of PY_VERSION_HEX */
#define IS_RELEASE     0xf0u
#define IS_CANDIDATE   0xc0u	  /* its layouts are frozen */
#define RUNTIME_MAX    (1u << 20) /* bytes of the structures, where a table says more it is wrong */
#define THREAD_MAX     (64u << 10)
#define CODE_MAX       1024u
#define OBJECT_MIN     16u /* ob_refcnt, ob_type */
#define FROM_FIRSTLINE 24u /* to co_version */
#define FROM_TRACEABLE 16u /* of _co_firsttraceable to the bytecode */
#define COMPACT_MORE   16u /* of a str that is not ASCII, behind what one has that is */

const char *cpython_verdict__text(enum cpython_verdict verdict)
{
	static const char *const texts[CPYTHON_VERDICTS] = {
		[CPYTHON_OK] = "ok",
		[CPYTHON_ABSENT] = "not CPython",
		[CPYTHON_NOT_STARTED] = "the interpreter has not started yet",
		[CPYTHON_TOO_OLD] = "CPython before 3.11 is not supported",
		[CPYTHON_NO_VERSION] = "the version of CPython is unknown",
		[CPYTHON_FREE_THREADED] = "free-threaded builds of CPython are not supported",
		[CPYTHON_UNKNOWN_VERSION] = "a version of CPython whose layout is unknown",
		[CPYTHON_BAD_TABLE] = "the table of offsets of CPython is damaged",
		[CPYTHON_OTHER_LIBC] = "CPython on a C library other than glibc",
		[CPYTHON_THREADS_UNKNOWN] = "the thread states of CPython were not found",
		[CPYTHON_UNREADABLE] = "the memory of CPython cannot be read",
	};

	return (unsigned int)verdict < CPYTHON_VERDICTS ? texts[verdict] : "";
}

/* ---- constants ------------------------------------------------------------------------------- */

static const struct cpython_layout of_3_11 = {
	.interpreters = 40,
	.tss_key = 592,
	.interp_next = 0,
	.interp_threads = 16,
	.gil_holder = 368,
	.gil_locked = 376,
	.thread_next = 8,
	.thread_interp = 16,
	.thread_id = 152,
	.thread_frame = 56,
	.has_cframes = true,
	.cframe_frame = 8,
	.cframe_previous = 16,
	.frame_size = 80,
	.frame_previous = 48,
	.frame_code = 32,
	.frame_instruction = 56,
	.frame_owner = 69,
	.frame_is_entry = 68,
	.code_firstline = 72,
	.code_filename = 112,
	.code_name = 120,
	.code_qualname = 128,
	.code_linetable = 136,
	.code_firsttraceable = 168,
	.code_bytecode = 184,
	.str_length = 16,
	.str_hash = 24,
	.str_state = 32,
	.str_ascii = 48,
	.str_other = 72,
	.bytes_size = 16,
	.bytes_data = 32,
};

static const struct cpython_layout of_3_12 = {
	.interpreters = 40,
	.tss_key = 1544,
	.interp_next = 0,
	.interp_threads = 72,
	.interp_gil = 384,
	.gil_holder = 8,
	.gil_locked = 16,
	.thread_next = 8,
	.thread_interp = 16,
	.thread_id = 136,
	.thread_frame = 56,
	.has_cframes = true,
	.has_own_anchors = true,
	.cframe_frame = 0,
	.cframe_previous = 8,
	.frame_size = 80,
	.frame_previous = 8,
	.frame_code = 0,
	.frame_instruction = 56,
	.frame_owner = 70,
	.code_firstline = 68,
	.code_version = 92,
	.code_filename = 112,
	.code_qualname = 128,
	.code_linetable = 136,
	.code_firsttraceable = 176,
	.code_bytecode = 192,
	.str_length = 16,
	.str_state = 32,
	.str_ascii = 40,
	.str_other = 56,
	.bytes_size = 16,
	.bytes_data = 32,
};

enum cpython_verdict cpython_layout__of_version(uint32_t version, struct cpython_layout *layout)
{
	if (version < 0x030b0000)
		return CPYTHON_TOO_OLD;
	if (version >= 0x030d0000)
		return CPYTHON_BAD_TABLE;
	*layout = cpython_minor(version) == 11 ? of_3_11 : of_3_12;
	return CPYTHON_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Where in the table a field's offset is, in bytes; 0: nowhere. */
struct positions {
	uint16_t interpreters, interp_next, interp_threads, interp_gil;
	uint16_t gil, gil_locked, gil_holder; /* offsets in the interpreter of its own GIL */
	uint16_t thread_next, thread_interp, thread_frame, thread_id, holds_gil, requests_gil;
	uint16_t frame_size, frame_previous, frame_code, frame_instruction, frame_owner;
	uint16_t code_filename, code_qualname, code_linetable, code_firstline, code_bytecode;
	uint16_t bytes_size, bytes_data, str_state, str_length, str_ascii, str_other;
	uint16_t holds_gil_at; /* no position: the offset itself, which the table has not */
	bool has_base_frame;
};

#define POSITION_FREE_THREADED 16u

static const struct positions of_3_13 = {
	.interpreters = 40,
	.interp_next = 64,
	.interp_threads = 72,
	.interp_gil = 112,
	.gil = 120,
	.gil_locked = 136,
	.gil_holder = 144,
	.thread_next = 168,
	.thread_interp = 176,
	.thread_frame = 184,
	.thread_id = 192,
	.frame_size = 224,
	.frame_previous = 232,
	.frame_code = 240,
	.frame_instruction = 248,
	.frame_owner = 264,
	.code_filename = 280,
	.code_qualname = 296,
	.code_linetable = 304,
	.code_firstline = 312,
	.code_bytecode = 344,
	.bytes_size = 520,
	.bytes_data = 528,
	.str_state = 544,
	.str_length = 552,
	.str_ascii = 560,
};

static const struct positions of_3_14 = {
	.interpreters = 40,
	.interp_next = 64,
	.interp_threads = 72,
	.interp_gil = 120,
	.gil = 128,
	.gil_locked = 144,
	.gil_holder = 152,
	.thread_next = 192,
	.thread_interp = 200,
	.thread_frame = 208,
	.thread_id = 216,
	.frame_size = 248,
	.frame_previous = 256,
	.frame_code = 264,
	.frame_instruction = 272,
	.frame_owner = 288,
	.code_filename = 320,
	.code_qualname = 336,
	.code_linetable = 344,
	.code_firstline = 352,
	.code_bytecode = 384,
	.bytes_size = 600,
	.bytes_data = 608,
	.str_state = 624,
	.str_length = 632,
	.str_ascii = 640,
	.holds_gil_at = 36,
};

static const struct positions of_3_15 = {
	.interpreters = 40,
	.interp_next = 64,
	.interp_threads = 72,
	.interp_gil = 120,
	.gil = 128,
	.gil_locked = 144,
	.gil_holder = 152,
	.thread_next = 192,
	.thread_interp = 200,
	.thread_frame = 208,
	.thread_id = 240,
	.holds_gil = 272,
	.requests_gil = 280,
	.frame_size = 312,
	.frame_previous = 320,
	.frame_code = 328,
	.frame_instruction = 336,
	.frame_owner = 352,
	.code_filename = 384,
	.code_qualname = 400,
	.code_linetable = 408,
	.code_firstline = 416,
	.code_bytecode = 448,
	.bytes_size = 696,
	.bytes_data = 704,
	.str_state = 720,
	.str_length = 728,
	.str_ascii = 736,
	.str_other = 744,
	.has_base_frame = true,
};

/* A table that is being read. `bad`: a value was larger than its limit. */
struct reading {
	const uint8_t *table;
	size_t size;
	bool bad;
};

static uint32_t take(struct reading *r, uint16_t position, uint32_t limit)
{
	uint64_t value;

	if (!position)
		return 0;
	if (position + sizeof(value) > r->size) {
		r->bad = true;
		return 0;
	}
	memcpy(&value, r->table + position, sizeof(value));
	r->bad |= value > limit;
	return value > limit ? 0 : value;
}

static void take_threads(struct reading *r, const struct positions *p, struct cpython_layout *l)
{
	uint32_t gil = take(r, p->gil, RUNTIME_MAX);
	uint32_t locked = take(r, p->gil_locked, RUNTIME_MAX),
		 holder = take(r, p->gil_holder, RUNTIME_MAX);

	l->interpreters = take(r, p->interpreters, THREAD_MAX);
	l->interp_next = take(r, p->interp_next, RUNTIME_MAX);
	l->interp_threads = take(r, p->interp_threads, RUNTIME_MAX);
	l->interp_gil = take(r, p->interp_gil, RUNTIME_MAX);
	r->bad |= locked < gil || holder < gil;
	l->gil_locked = locked - gil;
	l->gil_holder = holder - gil;
	l->thread_next = take(r, p->thread_next, THREAD_MAX);
	l->thread_interp = take(r, p->thread_interp, THREAD_MAX);
	l->thread_frame = take(r, p->thread_frame, THREAD_MAX);
	l->thread_id = take(r, p->thread_id, THREAD_MAX);
	l->thread_holds_gil = p->holds_gil ? take(r, p->holds_gil, THREAD_MAX) : p->holds_gil_at;
	l->thread_requests_gil = take(r, p->requests_gil, THREAD_MAX);
}

static void take_objects(struct reading *r, const struct positions *p, struct cpython_layout *l)
{
	l->frame_size = take(r, p->frame_size, CPYTHON_FRAME_MAX);
	l->frame_previous = take(r, p->frame_previous, CPYTHON_FRAME_MAX);
	l->frame_code = take(r, p->frame_code, CPYTHON_FRAME_MAX);
	l->frame_instruction = take(r, p->frame_instruction, CPYTHON_FRAME_MAX);
	l->frame_owner = take(r, p->frame_owner, CPYTHON_FRAME_MAX);
	l->code_filename = take(r, p->code_filename, CPYTHON_HEAD_MAX);
	l->code_qualname = take(r, p->code_qualname, CPYTHON_HEAD_MAX);
	l->code_linetable = take(r, p->code_linetable, CPYTHON_HEAD_MAX);
	l->code_firstline = take(r, p->code_firstline, CPYTHON_HEAD_MAX);
	l->code_bytecode = take(r, p->code_bytecode, CODE_MAX);
	l->code_version = l->code_firstline + FROM_FIRSTLINE;
	l->code_firsttraceable = l->code_bytecode - FROM_TRACEABLE;
	l->bytes_size = take(r, p->bytes_size, CODE_MAX);
	l->bytes_data = take(r, p->bytes_data, CODE_MAX);
	l->str_state = take(r, p->str_state, CODE_MAX);
	l->str_length = take(r, p->str_length, CODE_MAX);
	l->str_ascii = take(r, p->str_ascii, CODE_MAX);
	l->str_other = p->str_other ? take(r, p->str_other, CODE_MAX) : l->str_ascii + COMPACT_MORE;
}

/* A pointer of an object, behind its head, within the bytes that are read of it. */
static bool is_field(uint32_t offset, uint32_t first, uint32_t end)
{
	return offset % 8 == 0 && offset >= first && end >= 8 && offset <= end - 8;
}

static bool are_threads_plausible(const struct cpython_layout *l)
{
	return is_field(l->interpreters, 8, THREAD_MAX) && l->interp_next % 8 == 0 &&
	       is_field(l->interp_threads, 0, RUNTIME_MAX) &&
	       is_field(l->interp_gil, 8, RUNTIME_MAX) && l->interp_next != l->interp_threads &&
	       is_field(l->thread_next, 0, THREAD_MAX) &&
	       is_field(l->thread_interp, 0, THREAD_MAX) &&
	       is_field(l->thread_frame, 0, THREAD_MAX) && is_field(l->thread_id, 0, THREAD_MAX) &&
	       l->thread_next != l->thread_interp && l->thread_frame != l->thread_id &&
	       l->thread_frame != l->thread_interp && l->gil_locked % 4 == 0 &&
	       l->gil_holder % 8 == 0 && l->gil_locked < CODE_MAX && l->gil_holder < CODE_MAX &&
	       l->thread_holds_gil % 4 == 0 && l->thread_requests_gil % 4 == 0;
}

static bool is_frame_plausible(const struct cpython_layout *l)
{
	return is_field(l->frame_previous, 0, l->frame_size) &&
	       is_field(l->frame_code, 0, l->frame_size) &&
	       is_field(l->frame_instruction, 0, l->frame_size) && l->frame_owner < l->frame_size &&
	       l->frame_previous != l->frame_code && l->frame_code != l->frame_instruction &&
	       l->frame_previous != l->frame_instruction;
}

static bool is_code_plausible(const struct cpython_layout *l)
{
	return is_field(l->code_filename, OBJECT_MIN, CPYTHON_HEAD_MAX) &&
	       is_field(l->code_qualname, OBJECT_MIN, CPYTHON_HEAD_MAX) &&
	       is_field(l->code_linetable, OBJECT_MIN, CPYTHON_HEAD_MAX) &&
	       l->code_firstline % 4 == 0 && l->code_firstline >= OBJECT_MIN &&
	       l->code_version <= l->code_filename - 4 && l->code_filename < l->code_qualname &&
	       l->code_qualname < l->code_linetable && l->code_bytecode % 8 == 0 &&
	       l->code_bytecode >= l->code_linetable + 8 + FROM_TRACEABLE;
}

static bool are_texts_plausible(const struct cpython_layout *l)
{
	return is_field(l->bytes_size, OBJECT_MIN, CODE_MAX) && l->bytes_data > l->bytes_size &&
	       is_field(l->str_length, OBJECT_MIN, CODE_MAX) && l->str_state % 4 == 0 &&
	       l->str_state >= OBJECT_MIN && l->str_ascii > l->str_state &&
	       l->str_ascii > l->str_length && l->str_other > l->str_ascii;
}

bool cpython_layout__is_sound(const struct cpython_layout *l)
{
	return is_code_plausible(l) && are_texts_plausible(l) &&
	       l->code_firstline <= l->code_linetable && l->code_bytecode <= CODE_MAX &&
	       l->bytes_data <= CODE_MAX && l->str_ascii <= CODE_MAX && l->str_other <= CODE_MAX &&
	       l->str_hash <= CODE_MAX &&
	       (!l->code_name || is_field(l->code_name, OBJECT_MIN, l->code_linetable));
}

bool cpython_table__is(const uint8_t *table, size_t size, uint32_t *version)
{
	uint64_t word;

	if (size < COOKIE_SIZE + sizeof(word) || memcmp(table, COOKIE, COOKIE_SIZE))
		return false;
	memcpy(&word, table + COOKIE_SIZE, sizeof(word));
	if (word >> 24 != 3 || cpython_minor(word) < 13)
		return false;
	*version = word;
	return true;
}

bool cpython_version__is_known(uint32_t version)
{
	uint32_t level = version & RELEASE_LEVEL;

	return version >> 24 == 3 && cpython_minor(version) >= 11 &&
	       cpython_minor(version) <= NEWEST_KNOWN &&
	       (level == IS_RELEASE || level == IS_CANDIDATE);
}

/* Its own minor's first; of a minor that is newer than all, the newest first. */
static const struct positions *positions_of(uint32_t version, unsigned int attempt)
{
	static const struct positions *const known[] = {&of_3_15, &of_3_14, &of_3_13};
	unsigned int minor = cpython_minor(version), count = sizeof(known) / sizeof(*known);
	unsigned int own = minor < NEWEST_KNOWN ? NEWEST_KNOWN - minor : 0;

	if (attempt >= count || (attempt && cpython_version__is_known(version)))
		return NULL;
	if (!attempt)
		return known[own];
	return known[attempt <= own ? attempt - 1 : attempt];
}

/* Not in the table. From 3.15 on the key is gone: a word of thread-local storage has its place. */
static uint32_t tss_key_of(uint32_t version)
{
	unsigned int minor = cpython_minor(version);

	return minor == 13 ? 2160 : minor == 14 ? 2336 : 0;
}

enum cpython_verdict cpython_layout__of_table(const uint8_t *table, size_t size,
					      unsigned int attempt, struct cpython_layout *layout)
{
	struct reading r = {.table = table, .size = size};
	const struct positions *p;
	uint32_t version;

	if (!cpython_table__is(table, size, &version))
		return CPYTHON_BAD_TABLE;
	if (take(&r, POSITION_FREE_THREADED, UINT32_MAX) || r.bad)
		return CPYTHON_FREE_THREADED;
	p = positions_of(version, attempt);
	if (!p)
		return CPYTHON_UNKNOWN_VERSION;
	*layout = (struct cpython_layout){
		.has_own_anchors = true,
		.has_init_shim = true,
		.has_base_frame = p->has_base_frame,
		.tss_key = tss_key_of(version),
	};
	take_threads(&r, p, layout);
	take_objects(&r, p, layout);
	if (r.bad || !are_threads_plausible(layout) || !is_frame_plausible(layout) ||
	    !is_code_plausible(layout) || !are_texts_plausible(layout))
		return CPYTHON_BAD_TABLE;
	return CPYTHON_OK;
}
