/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/report_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "export/describe.h"

#define NO_ROW UINT32_MAX

MAP_FUNCTIONS_OF_BYTES(report_code_keys, struct report_code_key);

struct dso_name {
	const char *name;
	uint32_t dso; /* the first one with this name */
};
DEFINE_MAP_BY_STRING(dso_names, struct dso_name, name);

/* Dsos with one display name are shown as one: versions of a library, JIT code of all processes. */
static int merge_dsos(struct report_code *code)
{
	const struct profile *p = code->p;
	struct dso_names names = {};
	int err = 0;

	code->dso_by_name = calloc(p->dso_count + 1, sizeof(*code->dso_by_name));
	if (!code->dso_by_name)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->dso_count && !err; i++) {
		struct dso_name name = {dso_display_name(p, (struct dso_id){i}), i};
		const struct dso_name *first = dso_names__need(&names, &name, NULL);

		err = first ? 0 : -ENOMEM;
		code->dso_by_name[i] = first ? first->dso : i;
	}
	dso_names__fini(&names);
	return err;
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
		   enum profile_category category)
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

	return vec_push(&code->rows, new_row);
}

int report_code__row(struct report_code *code, const struct profile_location *location,
		     uint32_t line, uint32_t *row)
{
	struct report_code_key wanted, *known;
	bool is_new;

	if (code->row_of_line[line] == NO_ROW) {
		wanted = key_of(code, location, &code->p->lines[line]);
		known = report_code_keys__need(&code->keys, &wanted, &is_new);
		if (!known || (is_new && add_row(code, known, location->category)))
			return -ENOMEM;
		code->row_of_line[line] = (uint32_t)(known - code->keys.data);
	}
	*row = code->row_of_line[line];
	return 0;
}

int report_code__init(struct report_code *code, const struct profile *p, enum report_by by)
{
	int err;

	*code = (struct report_code){.p = p, .by = by};
	err = merge_dsos(code);
	code->row_of_line = malloc((p->line_count + 1) * sizeof(*code->row_of_line));
	if (err || !code->row_of_line)
		return -ENOMEM;
	memset(code->row_of_line, 0xff, (p->line_count + 1) * sizeof(*code->row_of_line));
	return 0;
}

void report_code__fini(struct report_code *code)
{
	vec_free(&code->rows);
	report_code_keys__fini(&code->keys);
	free(code->row_of_line);
	free(code->dso_by_name);
}

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

int report_row__compare_texts(const struct report_row *a, const struct report_row *b)
{
	int order = compare_text(a->name, b->name);

	order = order ? order : compare_text(a->place, b->place);
	return order
		       ?: order_of(a->line, b->line)
		       ?: order_of(a->pid, b->pid)
		       ?: order_of(a->tid, b->tid);
}
