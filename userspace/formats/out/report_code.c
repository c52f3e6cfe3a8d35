/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/report_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "profile/profile.h"

#define NO_ROW UINT32_MAX

MAP_FUNCTIONS_OF_BYTES(report_code_keys, struct report_code_key);
MAP_FUNCTIONS_BY_STRING(report_modules, struct report_module, name);

/*
 * By the name, which may be long: one that the profile has is compared once. 0 or -ENOMEM.
 */
static int module_of(struct report_code *code, struct dso_id dso, uint32_t *module)
{
	const struct string_id own = code->p->dsos[dso.v].name;
	const struct report_module named = {dso_display_name(code->p, dso)};
	bool is_own = named.name == profile__string(code->p, own);
	int err = 0;

	*module = is_own ? code->module_of_name[own.v] : NO_ROW;
	if (*module == NO_ROW)
		err = map_number(&code->modules, report_modules__need(&code->modules, &named, NULL),
				 module);
	if (!err && is_own)
		code->module_of_name[own.v] = *module;
	return err;
}

/* 0 or -ENOMEM. */
static int key_of(struct report_code *code, const struct profile_location *location,
		  const struct profile_line *line, struct report_code_key *key)
{
	const struct profile_function *function = &code->p->functions[line->function.v];

	*key = (struct report_code_key){};
	if (code->by != REPORT_DSO)
		key->name = function->name;
	if (code->by == REPORT_LINE && line->line) {
		key->file = line->file;
		key->line = line->line;
	}
	return module_of(code, location->dso, &key->module);
}

static int add_row(struct report_code *code, const struct report_code_key *key,
		   enum profile_category category)
{
	const struct profile *p = code->p;
	const char *module = code->modules.data[key->module].name;
	struct report_row new_row = {
		.name = code->by == REPORT_DSO ? module : profile__string(p, key->name),
		.place = code->by == REPORT_DSO ? NULL
			 : key->file.v		? profile__string(p, key->file)
						: module,
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
		if (key_of(code, location, &code->p->lines[line], &wanted))
			return -ENOMEM;
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
	const size_t lines = (p->line_count + 1) * sizeof(*code->row_of_line);
	const size_t names = (p->string_count + 1) * sizeof(*code->module_of_name);

	*code = (struct report_code){.p = p, .by = by};
	code->row_of_line = malloc(lines);
	code->module_of_name = malloc(names);
	if (!code->row_of_line || !code->module_of_name)
		return -ENOMEM;
	memset(code->row_of_line, 0xff, lines);
	memset(code->module_of_name, 0xff, names);
	return 0;
}

void report_code__fini(struct report_code *code)
{
	vec_free(&code->rows);
	report_code_keys__fini(&code->keys);
	report_modules__fini(&code->modules);
	free(code->row_of_line);
	free(code->module_of_name);
}

static int compare_text(const char *a, const char *b)
{
	return a == b ? 0 : strcmp(a ? a : "", b ? b : "");
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
