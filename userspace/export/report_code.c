/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/report_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/facts.h"

#define NO_ROW UINT32_MAX

/* What makes rows of code equal: all that is shown of them. */
struct report_code_key {
	struct string_id name; /* of the function; 0 for dsos */
	struct string_id file;
	uint32_t dso, line;
};

static bool key_equal(const void *owner, uint32_t index, const void *key)
{
	const struct report_code *code = owner;

	return !memcmp(&code->keys.data[index], key, sizeof(struct report_code_key));
}

/* Dsos with one display name are shown as one: versions of a library, JIT code of all processes. */
static int merge_dsos(struct report_code *code)
{
	const struct profile *p = code->p;

	code->dso_by_name = calloc(p->dso_count + 1, sizeof(*code->dso_by_name));
	if (!code->dso_by_name)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->dso_count; i++) {
		struct report_code_key key = {.dso = i};
		uint64_t hash = hash_string(dso_display_name(p, (struct dso_id){i}));
		uint32_t slot = hashmap__find(&code->map, hash, &key);

		code->dso_by_name[i] = slot == HASHMAP_NONE ? i : slot;
		if (slot == HASHMAP_NONE && hashmap__add(&code->map, hash, i))
			return -ENOMEM;
	}
	hashmap__clear(&code->map);
	return 0;
}

static bool dso_name_equal(const void *owner, uint32_t index, const void *key)
{
	const struct report_code *code = owner;
	const struct report_code_key *wanted = key;

	return !strcmp(dso_display_name(code->p, (struct dso_id){index}),
		       dso_display_name(code->p, (struct dso_id){wanted->dso}));
}

static struct report_code_key key_of(const struct report_code *code,
				     const struct profile_location *location,
				     const struct profile_line *line)
{
	const struct profile_function *function = &code->p->functions[line->function.v];
	struct report_code_key key = {.dso = code->dso_by_name[location->dso.v]};

	if (code->by == REPORT_DSO)
		return key;
	key.name = function->name;
	if (code->by == REPORT_LINE && line->line) {
		key.file = line->file;
		key.line = line->line;
	}
	return key;
}

static int add_row(struct report_code *code, const struct report_code_key *key,
		   enum profile_category category, uint64_t hash, uint32_t *row)
{
	const struct profile *p = code->p;
	const char *dso = dso_display_name(p, (struct dso_id){key->dso});
	struct report_row new_row = {
		.name = code->by == REPORT_DSO ? dso : profile__string(p, key->name),
		.place = code->by == REPORT_DSO ? NULL
			 : key->file.v		? profile__string(p, key->file)
						: dso,
		.line = key->line,
		.category = category,
	};

	*row = (uint32_t)code->rows.count;
	if (vec_push(&code->rows, new_row) || vec_push(&code->keys, *key) ||
	    hashmap__add(&code->map, hash, *row))
		return -ENOMEM;
	return 0;
}

int report_code__row(struct report_code *code, const struct profile_location *location,
		     uint32_t line, uint32_t *row)
{
	struct report_code_key key;
	uint64_t hash;
	int err = 0;

	if (code->row_of_line[line] == NO_ROW) {
		key = key_of(code, location, &code->p->lines[line]);
		hash = hash_bytes(&key, sizeof(key));
		*row = hashmap__find(&code->map, hash, &key);
		if (*row == HASHMAP_NONE)
			err = add_row(code, &key, location->category, hash, row);
		if (err)
			return err;
		code->row_of_line[line] = *row;
	}
	*row = code->row_of_line[line];
	return 0;
}

int report_code__init(struct report_code *code, const struct profile *p, enum report_by by)
{
	int err;

	*code = (struct report_code){.p = p, .by = by};
	hashmap__init(&code->map, dso_name_equal, code);
	err = merge_dsos(code);
	hashmap__fini(&code->map);
	hashmap__init(&code->map, key_equal, code);
	code->row_of_line = malloc((p->line_count + 1) * sizeof(*code->row_of_line));
	if (err || !code->row_of_line)
		return -ENOMEM;
	memset(code->row_of_line, 0xff, (p->line_count + 1) * sizeof(*code->row_of_line));
	return 0;
}

void report_code__fini(struct report_code *code)
{
	vec_free(&code->rows);
	vec_free(&code->keys);
	hashmap__fini(&code->map);
	free(code->row_of_line);
	free(code->dso_by_name);
}

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_u32(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

int report_row__compare_texts(const struct report_row *a, const struct report_row *b)
{
	int order = compare_text(a->name, b->name);

	order = order ? order : compare_text(a->place, b->place);
	order = order ? order : compare_u32(a->line, b->line);
	order = order ? order : compare_u32(a->pid, b->pid);
	return order ? order : compare_u32(a->tid, b->tid);
}
