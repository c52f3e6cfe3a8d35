/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/python/layout.h"

#include <string.h>

#include "base/list_column.h"

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
	static const char *const texts[CPYTHON_VERDICTS] = {CPYTHON_VERDICTS_OF(THIRD_COLUMN)};

	return (unsigned int)verdict < CPYTHON_VERDICTS ? texts[verdict] : "";
}

/* ---- offsets --------------------------------------------------------------------------------- */

static const struct field {
	uint16_t to; /* in struct cpython_layout */
	uint32_t limit;
	uint16_t at[5];
} fields[] = {
#define X(name, limit, ...) {offsetof(struct cpython_layout, name), limit, {__VA_ARGS__}},
	CPYTHON_FIELDS(X)
#undef X
};
#define FIELD_COUNT (sizeof(fields) / sizeof(fields[0]))

/*
 * Other fields of tables: an interpreter's GIL, with gil_holder and gil_locked, and missing ones.
 */
static const struct tabled_version {
	uint16_t gil;	    /* its place in the table */
	uint16_t holds_gil; /* the offset of thread_holds_gil itself; 0: the table's */
	uint16_t tss_key;   /* the offset itself; 3.15 has a word of thread-local storage */
	bool has_base_frame, has_str_other;
} versions[] = {
	{.gil = 120, .tss_key = 2160},
	{.gil = 128, .holds_gil = 36, .tss_key = 2336},
	{.gil = 128, .has_base_frame = true, .has_str_other = true},
};

#define POSITION_FREE_THREADED 16u

static void set_field(struct cpython_layout *l, const struct field *field, uint32_t offset)
{
	memcpy((char *)l + field->to, &offset, sizeof(offset));
}

enum cpython_verdict cpython_layout__of_version(uint32_t version, struct cpython_layout *layout)
{
	unsigned int minor = cpython_minor(version);

	if (version < 0x030b0000)
		return CPYTHON_TOO_OLD;
	if (version >= 0x030d0000)
		return CPYTHON_BAD_TABLE;
	*layout = (struct cpython_layout){.has_cframes = true, .has_own_anchors = minor != 11};
	for (size_t i = 0; i < FIELD_COUNT; i++)
		set_field(layout, &fields[i], fields[i].at[minor != 11]);
	return CPYTHON_OK;
}

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

static void take_table(struct reading *r, unsigned int version, struct cpython_layout *l)
{
	const struct tabled_version *v = &versions[version];
	uint32_t gil = take(r, v->gil, RUNTIME_MAX);

	for (size_t i = 0; i < FIELD_COUNT; i++)
		set_field(l, &fields[i], take(r, fields[i].at[2 + version], fields[i].limit));
	r->bad |= l->gil_locked < gil || l->gil_holder < gil;
	l->gil_locked -= gil;
	l->gil_holder -= gil;
	l->code_version = l->code_firstline + FROM_FIRSTLINE;
	l->code_firsttraceable = l->code_bytecode - FROM_TRACEABLE;
	if (v->holds_gil)
		l->thread_holds_gil = v->holds_gil;
	if (!v->has_str_other)
		l->str_other = l->str_ascii + COMPACT_MORE;
	l->has_base_frame = v->has_base_frame;
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
	       is_field(l->thread_native, 0, THREAD_MAX) && l->thread_native != l->thread_id &&
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

/* Of `versions`: its minor's first; of one newer than all, the newest first. -1: none is left. */
static int version_of(uint32_t version, unsigned int attempt)
{
	const unsigned int count = sizeof(versions) / sizeof(versions[0]);
	unsigned int minor = cpython_minor(version);
	unsigned int own = minor < NEWEST_KNOWN ? NEWEST_KNOWN - minor : 0; /* from the newest */

	if (attempt >= count || (attempt && cpython_version__is_known(version)))
		return -1;
	if (attempt && attempt <= own)
		own = attempt - 1;
	else if (attempt)
		own = attempt;
	return (int)(count - 1 - own);
}

enum cpython_verdict cpython_layout__of_table(const uint8_t *table, size_t size,
					      unsigned int attempt, struct cpython_layout *layout)
{
	struct reading r = {.table = table, .size = size};
	unsigned int minor;
	uint32_t version;
	int known;

	if (!cpython_table__is(table, size, &version))
		return CPYTHON_BAD_TABLE;
	if (take(&r, POSITION_FREE_THREADED, UINT32_MAX) || r.bad)
		return CPYTHON_FREE_THREADED;
	known = version_of(version, attempt);
	if (known < 0)
		return CPYTHON_UNKNOWN_VERSION;
	*layout = (struct cpython_layout){.has_own_anchors = true, .has_init_shim = true};
	take_table(&r, (unsigned int)known, layout);
	/* not in the table: it goes by the minor, whichever table fits */
	minor = cpython_minor(version);
	layout->tss_key = minor - 13 < NEWEST_KNOWN - 13 ? versions[minor - 13].tss_key : 0;
	if (r.bad || !are_threads_plausible(layout) || !is_frame_plausible(layout) ||
	    !is_code_plausible(layout) || !are_texts_plausible(layout))
		return CPYTHON_BAD_TABLE;
	return CPYTHON_OK;
}
