/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads and processes are counted directly. Functions, dsos and lines are "code": each line of
 * the profile belongs to one row, looked up once. Every stack that has CPU samples is walked once: its
 * innermost line counts as self, and each row on it as total, once even in recursion, which a stamp
 * on the row (the last stack that counted it) ensures.
 */
#include "export/report_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "export/facts.h"

#define NO_ROW UINT32_MAX

/* What makes rows of code equal: all that is shown of them. */
struct code_key {
	struct string_id name; /* of the function; 0 for dsos */
	struct string_id file;
	uint32_t dso, line;
};

struct code {
	const struct profile *p;
	enum report_by by;
	VEC(struct report_row) rows;
	VEC(struct code_key) keys; /* by row */
	VEC(uint32_t) stamps;	   /* by row: the last stack that counted it */
	struct hashmap map;
	uint32_t *row_of_line; /* by line of the profile, or NO_ROW */
	uint32_t *dso_by_name; /* by dso: the first one that is shown under the same name */
};

static bool key_equal(const void *owner, uint32_t index, const void *key)
{
	const struct code *code = owner;

	return !memcmp(&code->keys.data[index], key, sizeof(struct code_key));
}

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_rows(const void *a, const void *b)
{
	const struct report_row *x = a, *y = b;
	int order = compare_u64(y->self, x->self);

	order = order ? order : compare_u64(y->total, x->total);
	order = order ? order : compare_u64(y->cpu, x->cpu);
	order = order ? order : compare_text(x->name, y->name);
	order = order ? order : compare_text(x->place, y->place);
	order = order ? order : compare_u64(x->line, y->line);
	order = order ? order : compare_u64(x->pid, y->pid);
	return order ? order : compare_u64(x->tid, y->tid);
}

/* ---- code ------------------------------------------------------------------------------------ */

/* Dsos with one display name are shown as one: versions of a library, JIT code of all processes. */
static int merge_dsos(struct code *code)
{
	const struct profile *p = code->p;

	code->dso_by_name = calloc(p->dso_count + 1, sizeof(*code->dso_by_name));
	if (!code->dso_by_name)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->dso_count; i++) {
		struct code_key key = {.dso = i};
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
	const struct code *code = owner;
	const struct code_key *wanted = key;

	return !strcmp(dso_display_name(code->p, (struct dso_id){index}),
		       dso_display_name(code->p, (struct dso_id){wanted->dso}));
}

static struct code_key key_of(const struct code *code, const struct profile_location *location,
			      const struct profile_line *line)
{
	const struct profile_function *function = &code->p->functions[line->function.v];
	struct code_key key = {.dso = code->dso_by_name[location->dso.v]};

	if (code->by == REPORT_DSO)
		return key;
	key.name = function->name;
	if (code->by == REPORT_LINE && line->line) {
		key.file = line->file;
		key.line = line->line;
	}
	return key;
}

static int add_row(struct code *code, const struct code_key *key, uint64_t hash, uint32_t *row)
{
	const struct profile *p = code->p;
	const char *dso = dso_display_name(p, (struct dso_id){key->dso});
	struct report_row new_row = {
		.name = code->by == REPORT_DSO ? dso : profile__string(p, key->name),
		.place = code->by == REPORT_DSO ? NULL
			 : key->file.v		? profile__string(p, key->file)
						: dso,
		.line = key->line,
	};

	*row = (uint32_t)code->rows.count;
	if (vec_push(&code->rows, new_row) || vec_push(&code->keys, *key) ||
	    vec_push(&code->stamps, 0) || hashmap__add(&code->map, hash, *row))
		return -ENOMEM;
	return 0;
}

static int row_of(struct code *code, const struct profile_location *location, uint32_t line,
		  uint32_t *row)
{
	struct code_key key;
	uint64_t hash;
	int err = 0;

	if (code->row_of_line[line] == NO_ROW) {
		key = key_of(code, location, &code->p->lines[line]);
		hash = hash_bytes(&key, sizeof(key));
		*row = hashmap__find(&code->map, hash, &key);
		if (*row == HASHMAP_NONE)
			err = add_row(code, &key, hash, row);
		if (err)
			return err;
		code->row_of_line[line] = *row;
	}
	*row = code->row_of_line[line];
	return 0;
}

static int count_stack(struct code *code, uint32_t stack, uint64_t samples)
{
	const struct profile *p = code->p;
	bool leaf = true;

	for (uint32_t at = stack; at; at = p->stacks[at].parent.v) {
		const struct profile_location *location = &p->locations[p->stacks[at].location.v];

		for (uint32_t i = 0; i < location->line_count; i++) {
			uint32_t row;
			int err = row_of(code, location, location->first_line + i, &row);

			if (err)
				return err;
			if (leaf)
				code->rows.data[row].self += samples;
			leaf = false;
			if (code->stamps.data[row] == stack)
				continue;
			code->stamps.data[row] = stack;
			code->rows.data[row].total += samples;
		}
	}
	return 0;
}

/* `hits`: by stack */
static void count_samples(const struct profile_samples *samples, uint64_t *hits)
{
	for (size_t i = 0; i < samples->count; i++)
		hits[samples->stack[i].v] += profile_samples__ticks(samples, i);
}

static int count_code(struct code *code)
{
	const struct profile *p = code->p;
	_cleanup_free_ uint64_t *hits = calloc(p->stack_count + 1, sizeof(*hits));
	int err = 0;

	code->row_of_line = malloc((p->line_count + 1) * sizeof(*code->row_of_line));
	if (!hits || !code->row_of_line)
		return -ENOMEM;
	memset(code->row_of_line, 0xff, (p->line_count + 1) * sizeof(*code->row_of_line));
	for (size_t i = 1; i < p->thread_count; i++)
		count_samples(&p->threads[i].samples[SAMPLE_CPU], hits);
	for (uint32_t i = 1; i < p->stack_count && !err; i++)
		if (hits[i])
			err = count_stack(code, i, hits[i]);
	return err;
}

static int code_rows(const struct profile *p, enum report_by by, struct report_row **rows,
		     size_t *count)
{
	struct code code = {.p = p, .by = by};
	int err;

	hashmap__init(&code.map, dso_name_equal, &code);
	err = merge_dsos(&code);
	hashmap__fini(&code.map);
	hashmap__init(&code.map, key_equal, &code);
	if (!err)
		err = count_code(&code);
	if (!err) {
		*rows = steal_ptr(code.rows.data);
		*count = code.rows.count;
	}
	vec_free(&code.rows);
	vec_free(&code.keys);
	vec_free(&code.stamps);
	hashmap__fini(&code.map);
	free(code.row_of_line);
	free(code.dso_by_name);
	return err;
}

/* ---- threads and processes ------------------------------------------------------------------- */

static int thread_rows(const struct profile *p, struct report_row **rows, size_t *count)
{
	struct report_row *list = calloc(p->thread_count + 1, sizeof(*list));
	size_t used = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 1; i < p->thread_count; i++) {
		const struct profile_thread *thread = &p->threads[i];
		const struct profile_process *process = &p->processes[thread->process.v];
		uint64_t samples = thread->samples[SAMPLE_CPU].tick_sum;

		if (!samples)
			continue;
		list[used++] = (struct report_row){
			.self = samples,
			.total = samples,
			.cpu = profile_thread__cpu(thread),
			.name = profile__string(p, thread->name),
			.place = profile__string(p, process->name),
			.pid = process->pid,
			.tid = thread->tid,
			.threads = 1,
		};
	}
	*rows = list;
	*count = used;
	return 0;
}

static int process_rows(const struct profile *p, struct report_row **rows, size_t *count)
{
	struct report_row *list = calloc(p->process_count + 1, sizeof(*list));
	size_t used = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 1; i < p->thread_count; i++) {
		const struct profile_thread *thread = &p->threads[i];
		struct report_row *row = &list[thread->process.v];

		row->self += thread->samples[SAMPLE_CPU].tick_sum;
		row->cpu += profile_thread__cpu(thread);
		row->threads += thread->samples[SAMPLE_CPU].count > 0;
	}
	for (size_t i = 1; i < p->process_count; i++) {
		if (!list[i].self)
			continue;
		list[used] = list[i];
		list[used].total = list[i].self;
		list[used].name = profile__string(p, p->processes[i].name);
		list[used].pid = p->processes[i].pid;
		used++;
	}
	*rows = list;
	*count = used;
	return 0;
}

int report_rows(const struct profile *p, enum report_by by, struct report_row **rows, size_t *count)
{
	int err;

	if (by == REPORT_THREAD)
		err = thread_rows(p, rows, count);
	else if (by == REPORT_PROCESS)
		err = process_rows(p, rows, count);
	else
		err = code_rows(p, by, rows, count);
	if (!err && *count)
		qsort(*rows, *count, sizeof(**rows), compare_rows);
	return err;
}
