/* SPDX-License-Identifier: BSD-2-Clause */
/* Machine code and sources of a profile in the making. */
#include "profile/profile_code_private.h"

#include <errno.h>
#include <string.h>

#include "base/order.h"
#include "profile/profile.h"
#include "profile/profile_builder_private.h"

static uint64_t hash_source(const struct profile_source *s)
{
	return hash_u64((uint64_t)s->path.v << 8 | s->root);
}

static bool same_source(const struct profile_source *a, const struct profile_source *b)
{
	return a->path.v == b->path.v && a->root == b->root;
}

MAP_FUNCTIONS_OF(source_table, struct profile_source, hash_source, same_source);

/* A copy that the builder owns; a NUL byte follows. NULL: no memory. */
static void *keep(struct profile_builder *b, const void *data, size_t size)
{
	char *copy = malloc(size + 1);

	if (builder_has_failed(b, copy ? 0 : -ENOMEM))
		return NULL;
	memcpy(copy, data, size);
	copy[size] = '\0';
	if (builder_has_failed(b, vec_push(&b->texts, copy))) {
		free(copy);
		return NULL;
	}
	return copy;
}

static bool is_row(const struct profile_builder *b, const struct profile_code *code,
		   const struct profile_code_row *rows, size_t i)
{
	return rows[i].offset < code->size && (!i || rows[i].offset > rows[i - 1].offset) &&
	       rows[i].function.v < b->functions.count &&
	       rows[i].file.v < strtab__count(b->strings);
}

static bool is_code(const struct profile_builder *b, const struct profile_code *code,
		    const struct profile_code_row *rows, size_t row_count)
{
	if (!code->dso.v || code->dso.v >= b->dsos.count || code->process.v >= b->processes.count ||
	    dso_kind_is_private(b->dsos.data[code->dso.v].kind) != (code->process.v != 0) ||
	    (unsigned int)code->machine >= CODE_MACHINE_COUNT || !code->size ||
	    code->address > UINT64_MAX - code->size || row_count > UINT32_MAX - b->code_rows.count)
		return false;
	for (size_t i = 0; i < row_count; i++)
		if (!is_row(b, code, rows, i))
			return false;
	return true;
}

void profile_builder__add_code(struct profile_builder *b, const struct profile_code *code,
			       const struct profile_code_row *rows, size_t row_count)
{
	struct profile_code copy = *code;

	if (b->error || !is_code(b, code, rows, row_count))
		return;
	copy.bytes = keep(b, code->bytes, code->size);
	copy.first_row = b->code_rows.count;
	copy.row_count = row_count;
	if (!b->error && !builder_has_failed(b, vec_append(&b->code_rows, rows, row_count)))
		builder_has_failed(b, vec_push(&b->codes, copy));
}

void profile_builder__code_version(struct profile_builder *b, struct location_id id,
				   uint32_t version)
{
	if (!b->error && id.v)
		b->locations.data[id.v].code_version = version;
}

void profile_builder__add_source(struct profile_builder *b, const struct profile_source *source)
{
	struct profile_source copy = *source;

	if (b->error || !source->path.v || source->path.v >= strtab__count(b->strings) ||
	    !source->size || source->root == SOURCE_ROOT_NONE ||
	    memchr(source->text, '\0', source->size) ||
	    (unsigned int)source->state >= SOURCE_STATE_COUNT ||
	    source_table__find(&b->sources, source))
		return;
	copy.text = keep(b, source->text, source->size);
	if (!b->error)
		builder_has_failed(b, source_table__need(&b->sources, &copy, NULL) ? 0 : -ENOMEM);
}

struct profile_source *builder_find_source(struct profile_builder *b,
					   const struct profile_source *like)
{
	return source_table__find(&b->sources, like);
}

static unsigned int next_root(unsigned int next, uint8_t root)
{
	return root <= SOURCE_ROOT_LAST && root >= next ? root + 1u : next;
}

unsigned int builder_next_source_root(const struct profile_builder *b)
{
	unsigned int next = 0;

	for (size_t i = 0; i < b->sources.count; i++)
		next = next_root(next, b->sources.data[i].root);
	for (size_t i = 1; i < b->dsos.count; i++)
		next = next_root(next, b->dsos.data[i].source_root);
	return next;
}

void profile_builder__source_root(struct profile_builder *b, struct dso_id id, uint8_t root)
{
	if (!b->error && id.v && id.v < b->dsos.count)
		b->dsos.data[id.v].source_root = root;
}

struct profile_line profile_builder__source_line(const struct profile_builder *b,
						 const struct profile_location *l, uint32_t i)
{
	const struct profile_line *line = &b->lines.data[l->first_line + i];

	return source_line(line, b->dsos.data[l->dso.v].kind, &b->functions.data[line->function.v]);
}

size_t profile_builder__process_count(const struct profile_builder *b)
{
	return b->processes.count;
}

/* Of equal keys the one that was added first comes first, as its rows do. */
DEFINE_ORDER(compare_codes, struct profile_code, ASCENDING(dso.v) ?: ASCENDING(process.v) ?: ASCENDING(version) ?: ASCENDING(address) ?: ASCENDING(first_row));

DEFINE_ORDER(compare_sources, struct profile_source, ASCENDING(path.v) ?: ASCENDING(root));

void builder_settle_code(struct profile_builder *b)
{
	size_t kept = 0;

	vec_sort(&b->codes, compare_codes);
	vec_sort(&b->sources, compare_sources);
	for (size_t i = 0; i < b->codes.count; i++) {
		const struct profile_code *code = &b->codes.data[i];

		if (!kept || !codes_overlap(&b->codes.data[kept - 1], code))
			b->codes.data[kept++] = *code;
	}
	b->codes.count = kept;
}

void builder_free_code(struct profile_builder *b)
{
	vec_free_with(&b->texts, text, free(*text));
	source_table__fini(&b->sources);
}
