/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gecko's own profile format, which the Firefox Profiler turns into its processed one: Firefox's raw
 * files, perf script's gecko report, older samply.
 *
 * A table is a schema, which has the place of each column, and rows. Each thread has its own tables;
 * other processes are whole profiles inside of the file, with a time 0 of their own. A frame has
 * its function, file or library in one text, the location.
 *
 * The tables become those of firefox.h. What a row counts: firefox_file.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/strtab.h"
#include "formats/in/firefox_file.h"
#include "formats/in/firefox_markers.h"
#include "formats/in/firefox_tables.h"
#include "formats/in/import.h"

#define COLUMNS_MAX   6
#define PLACE_MAX     63 /* of a column in a row */
#define NESTED_MAX    4	 /* processes in processes; Firefox has one level */
#define ADDRESS_LIMIT (1ULL << 48)

/* A table that is walked row by row. */
struct gecko_table {
	const struct json_text *text;
	struct json_walk rows;
	int64_t place[COLUMNS_MAX]; /* of a column in a row; -1: there is none */
	size_t columns;
};

/* Memory in which a library lies. */
struct gecko_mapping {
	uint64_t start, end;
	uint64_t base; /* where the file's first byte would lie */
	int32_t lib;
};

/* A location, by the number of its text. */
struct gecko_place {
	bool is_read;
	int32_t func, lib;
	int64_t address;
};

struct gecko_process {
	struct json_value value;
	unsigned int depth;
};

struct gecko {
	struct firefox_file file;
	VEC(struct gecko_process) processes; /* to be read */
	/* of the process that is read */
	VEC(struct gecko_mapping) mappings;
	struct strtab *lib_names;
	VEC(int32_t) lib_of_name; /* + 1; 0: none */
	/* of the thread that is read */
	VEC(struct gecko_place) places;
	bool has_rows; /* the file has one, so its clock is known */
};

struct process_values {
	struct json_value meta, libs, threads, processes;
};

/* ---- tables ---------------------------------------------------------------------------------- */

/* 0; -ENOENT: it is no table. */
static int table__init(struct gecko_table *t, const struct json_text *text, struct json_value value,
		       const char *const *names, size_t count)
{
	struct json_value schema = {}, data = {}, places[COLUMNS_MAX] = {};
	struct json_member wanted[COLUMNS_MAX + 1] = {};
	int err;

	*t = (struct gecko_table){.text = text, .columns = count};
	if (json_type(value) != JSON_OBJECT)
		return -ENOENT;
	err = json_members(text, value, {"schema", &schema}, {"data", &data});
	if (err || json_type(schema) != JSON_OBJECT || json_type(data) != JSON_ARRAY)
		return err ?: -ENOENT;
	for (size_t i = 0; i < count; i++)
		wanted[i] = (struct json_member){names[i], &places[i]};
	err = json_find_members(text, schema, wanted);
	for (size_t i = 0; i < count && !err; i++) {
		t->place[i] = -1;
		if (places[i].at)
			err = json_integer(text, places[i], "the place of a column", 0, PLACE_MAX,
					   &t->place[i]);
	}
	return err ?: json_walk__init(&t->rows, text, data.at, JSON_ARRAY);
}

/* The values of the next row; those that it does not have are absent. 1, 0: no more, or an error. */
static int table__next(struct gecko_table *t, struct json_value *values)
{
	struct json_walk row;
	int more = json_walk__next(&t->rows), err = 0;

	memset(values, 0, t->columns * sizeof(*values));
	if (more <= 0 || json_type(t->rows.value) != JSON_ARRAY)
		return more;
	err = json_walk__init(&row, t->text, t->rows.value.at, JSON_ARRAY);
	while (!err && (more = json_walk__next(&row)) > 0)
		for (size_t i = 0; i < t->columns; i++)
			if (t->place[i] == (int64_t)row.index)
				values[i] = row.value;
	return err ?: more < 0 ? more : 1;
}

static struct json_number number_of(const struct json_text *text, struct json_value value)
{
	struct json_number number = {.is_null = true};

	if (json_type(value) != JSON_NUMBER || json_parse_number(text, value, &number))
		number = (struct json_number){.is_null = true};
	number.at = value.at ? value.at : text->start;
	return number;
}

/* A number below the limit, or FIREFOX_NONE. */
static int32_t index_of(const struct json_text *text, struct json_value value, size_t limit)
{
	const struct json_number number = number_of(text, value);
	int64_t index;

	if (number.is_null || json_scaled(&number, 0, &index) || index < 0 || index > INT32_MAX ||
	    (uint64_t)index >= limit)
		return FIREFOX_NONE;
	return (int32_t)index;
}

/* ---- libraries ------------------------------------------------------------------------------- */

/* By name; made if there is none. */
static int lib_of_name(struct gecko *g, const char *name, int32_t *lib)
{
	struct firefox_common *common = &g->file.common;
	bool is_kernel = !strncmp(name, "[kernel", 7);
	enum dso_kind kind = is_kernel ? DSO_KERNEL : strcmp(name, "[vdso]") ? DSO_FILE : DSO_VDSO;
	uint32_t number = 0;
	int32_t *known;
	int err = strtab__number(g->lib_names, name, &number);

	known = err ? NULL : vec_at(&g->lib_of_name, number);
	if (!known)
		return -ENOMEM;
	if (!*known) {
		const struct firefox_lib made = {.dso = frames__dso(&common->frames, kind, name, 0),
						 .kind = kind};

		if (!made.dso.v || vec_push(&common->libs, made))
			return -ENOMEM;
		*known = (int32_t)common->libs.count;
	}
	*lib = *known - 1;
	return 0;
}

static uint64_t address_of(const struct json_text *text, struct json_value value)
{
	const struct json_number number = number_of(text, value);
	int64_t address;

	return number.is_null || json_scaled(&number, 0, &address) || address < 0
		       ? 0
		       : (uint64_t)address;
}

static int add_mapping(void *context, struct json_value value)
{
	struct gecko *g = context;
	const struct json_text *text = &g->file.text;
	struct json_value start = {}, end = {}, offset = {};
	struct gecko_mapping m = {.lib = (int32_t)g->mappings.count};
	int err = json_members(text, value, {"start", &start}, {"end", &end}, {"offset", &offset});

	m.start = address_of(text, start);
	m.end = address_of(text, end);
	m.base = m.start - min_u64(address_of(text, offset), m.start);
	return err ?: vec_push(&g->mappings, m);
}

static int order_mappings(const void *a, const void *b)
{
	const struct gecko_mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int name_lib(struct gecko *g, size_t lib)
{
	const struct profile_dso *dso = profile_builder__get_dso(g->file.b,
								 g->file.common.libs.data[lib].dso);
	uint32_t number = 0;
	int err = strtab__number(g->lib_names, profile_builder__get_string(g->file.b, dso->name),
				 &number);
	int32_t *known = err ? NULL : vec_at(&g->lib_of_name, number);

	if (!known)
		return -ENOMEM;
	*known = *known ? *known : (int32_t)lib + 1;
	return 0;
}

static int read_libs(struct gecko *g, struct json_value libs)
{
	struct firefox_common *common = &g->file.common;
	int err = 0;

	strtab__free(g->lib_names);
	g->lib_names = strtab__new();
	g->lib_of_name.count = g->mappings.count = common->libs.count = 0;
	if (!g->lib_names)
		return -ENOMEM;
	if (json_type(libs) == JSON_ARRAY)
		err = firefox_common__libs(common, libs)
			      ?: json_each(&g->file.text, libs, add_mapping, g);
	for (size_t i = 0; i < common->libs.count && !err; i++)
		err = name_lib(g, i);
	if (g->mappings.count)
		qsort(g->mappings.data, g->mappings.count, sizeof(*g->mappings.data),
		      order_mappings);
	return err;
}

/* The last mapping that begins at or below the address, if it reaches there. */
static const struct gecko_mapping *mapping_at(const struct gecko *g, uint64_t address)
{
	size_t low = 0, high = g->mappings.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (g->mappings.data[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < g->mappings.data[low - 1].end ? &g->mappings.data[low - 1] : NULL;
}

/* ---- locations ------------------------------------------------------------------------------- */

static int add_text(struct gecko *g, struct firefox_in *in, const char *text, int32_t *number)
{
	struct firefox_string string = {.id = profile_builder__string(g->file.b, text),
					.is_read = true};

	*number = FIREFOX_NONE;
	if (!string.id.v)
		return *text ? -ENOMEM : 0;
	*number = (int32_t)in->strings.count;
	return vec_push(&in->strings, string);
}

static int add_func(struct gecko *g, struct firefox_in *in, const char *name, const char *file,
		    const int32_t *site, int32_t *func)
{
	int32_t name_text, file_text;
	int err = add_text(g, in, name, &name_text) ?: add_text(g, in, file, &file_text);

	*func = (int32_t)in->func_name.count;
	return err
		       ?: vec_push(&in->func_name, name_text)
		       ?: vec_push(&in->func_file, file_text)
		       ?: vec_push(&in->func_line, site[0])
		       ?: vec_push(&in->func_column, site[1]);
}

/* "0x7f12": where it lies in its library. */
static bool is_address(const char *text, uint64_t *address)
{
	char *end;

	if (strncmp(text, "0x", 2))
		return false;
	*address = strtoull(text, &end, 16);
	return end > text + 2 && !*end;
}

static int place_address(struct gecko *g, struct firefox_in *in, uint64_t address,
			 struct gecko_place *place)
{
	static const int32_t nowhere[2] = {FIREFOX_NONE, FIREFOX_NONE};
	const struct gecko_mapping *m = mapping_at(g, address);
	char name[32];

	if (m) {
		place->lib = m->lib;
		address -= m->base;
	}
	if (m && address < ADDRESS_LIMIT)
		place->address = (int64_t)address;
	snprintf(name, sizeof(name), "0x%llx", (unsigned long long)address);
	return add_func(g, in, name, "", nowhere, &place->func);
}

/* Take ":12" off the end of a text. 0: there is none. */
static int32_t take_number(char *text)
{
	char *end = text + strlen(text), *digit = end;
	int64_t number = 0;

	while (digit > text && digit[-1] >= '0' && digit[-1] <= '9' && end - digit < 9)
		digit--;
	if (digit == end || digit - text < 2 || digit[-1] != ':')
		return 0;
	for (char *at = digit; at < end; at++)
		number = number * 10 + (*at - '0');
	digit[-1] = '\0';
	return (int32_t)number;
}

/* "/a.js:3:7": the file is left in the text. */
static void take_site(char *text, int32_t *site)
{
	int32_t last = take_number(text), first = last ? take_number(text) : 0;

	site[0] = first ? first : last ? last : FIREFOX_NONE;
	site[1] = first ? last : FIREFOX_NONE;
}

/* "f (in libc.so.6) (a.c:12)", "f (https://a/b.js:3:7)", "/b.js:3", or a name. */
static int place_name(struct gecko *g, struct firefox_in *in, char *text, struct gecko_place *place)
{
	int32_t site[2] = {FIREFOX_NONE, FIREFOX_NONE};
	char *in_lib = strstr(text, " (in "), *end;
	char *file = "", *last = text + strlen(text);
	_cleanup_free_ char *bare = NULL;
	int err = 0;

	for (char *next; in_lib && (next = strstr(in_lib + 1, " (in "));)
		in_lib = next;
	end = in_lib ? strchr(in_lib, ')') : NULL;
	if (end) {
		*in_lib = *end = '\0';
		err = lib_of_name(g, in_lib + strlen(" (in "), &place->lib);
		file = end + 1 < last && end[1] == ' ' && end[2] == '(' ? end + 3 : "";
		if (*file && last[-1] == ')') {
			last[-1] = '\0';
			take_site(file, site);
		}
		file = site[0] >= 0 ? file : "";
	} else if (last > text && last[-1] == ')' && (file = strrchr(text, '(')) > text &&
		   file[-1] == ' ') {
		last[-1] = '\0';
		bare = strdup(file + 1);
		last[-1] = ')';
		if (!bare)
			return -ENOMEM;
		take_site(bare, site);
		if (site[0] >= 0)
			file[-1] = '\0';
		file = site[0] >= 0 ? bare : "";
	} else {
		bare = strdup(text);
		if (!bare)
			return -ENOMEM;
		take_site(bare, site);
		file = site[0] >= 0 ? bare : "";
	}
	return err ?: add_func(g, in, text, file, site, &place->func);
}

static int read_place(struct gecko *g, struct firefox_in *in, int32_t number,
		      struct gecko_place *place)
{
	_cleanup_free_ char *text = NULL;
	uint64_t address;
	int err = json_type(in->strings.data[number].value) == JSON_STRING
			  ? json_string_copy(&g->file.text, in->strings.data[number].value, &text)
			  : 0;

	*place =
		(struct gecko_place){.is_read = true, .lib = FIREFOX_NONE, .address = FIREFOX_NONE};
	if (!text && err != -ENOMEM)
		text = strdup("");
	if (!text)
		return -ENOMEM;
	return is_address(text, &address) ? place_address(g, in, address, place)
					  : place_name(g, in, text, place);
}

static int add_frame(struct gecko *g, struct firefox_in *in, const struct json_value *values)
{
	const struct json_text *text = &g->file.text;
	int32_t number = index_of(text, values[0], g->places.count);
	int32_t category = index_of(text, values[3], g->file.common.categories.count);
	struct gecko_place *place = number >= 0 ? &g->places.data[number] : NULL;
	int err = 0;

	if (!place)
		return -ENOENT;
	if (!place->is_read)
		err = read_place(g, in, number, place);
	if (err)
		return err;
	in->has_idle |= category >= 0 && g->file.common.categories.data[category].is_idle;
	return vec_push(&in->frame_func, place->func)
		       ?: vec_push(&in->frame_lib, place->lib)
		       ?: vec_push(&in->frame_address, place->address)
		       ?: vec_push(&in->frame_category, category)
		       ?: vec_push(&in->frame_subcategory, index_of(text, values[4], INT32_MAX))
		       ?: vec_push(&in->frame_line, index_of(text, values[1], INT32_MAX))
		       ?: vec_push(&in->frame_column, index_of(text, values[2], INT32_MAX));
}

/* ---- a thread -------------------------------------------------------------------------------- */

static int add_string(void *context, struct json_value value)
{
	struct firefox_in *in = context;

	return vec_push(&in->strings, (struct firefox_string){.value = value});
}

/* A frame without a location keeps its number. */
static int read_frames(struct gecko *g, struct firefox_in *in, struct json_value value)
{
	static const char *const names[] = {"location", "line", "column", "category",
					    "subcategory"};
	struct json_value values[5];
	struct gecko_table t;
	int more = table__init(&t, &g->file.text, value, names, 5);

	while (!more && (more = table__next(&t, values)) > 0) {
		more = add_frame(g, in, values);
		if (more == -ENOENT) {
			g->file.common.frames.left_out[LEFT_OUT_DAMAGED_NODES]++;
			more = vec_push(&in->frame_func, FIREFOX_NONE)
				       ?: vec_push(&in->frame_lib, FIREFOX_NONE)
				       ?: vec_push(&in->frame_address, (int64_t)FIREFOX_NONE)
				       ?: vec_push(&in->frame_category, FIREFOX_NONE)
				       ?: vec_push(&in->frame_subcategory, FIREFOX_NONE)
				       ?: vec_push(&in->frame_line, FIREFOX_NONE)
				       ?: vec_push(&in->frame_column, FIREFOX_NONE);
		}
	}
	return more;
}

/* A stack that is damaged, or above one that is, has no frame. */
static int read_stacks(struct gecko *g, struct firefox_in *in, struct json_value value)
{
	static const char *const names[] = {"prefix", "frame"};
	const struct json_text *text = &g->file.text;
	struct json_value values[2];
	struct gecko_table t;
	int more = table__init(&t, text, value, names, 2);

	while (!more && (more = table__next(&t, values)) > 0) {
		bool is_root = !values[0].at || json_is(values[0], "null");
		int32_t prefix = is_root ? FIREFOX_NONE
					 : index_of(text, values[0], in->stack_frame.count);
		int32_t frame = index_of(text, values[1], in->frame_func.count);

		if (frame >= 0 && in->frame_func.data[frame] < 0)
			frame = FIREFOX_NONE;
		if (!is_root && (prefix < 0 || in->stack_frame.data[prefix] < 0))
			frame = FIREFOX_NONE;
		more = vec_push(&in->stack_frame, frame) ?: vec_push(&in->stack_prefix, prefix);
	}
	return more ?: firefox_in__add_stacks(in, in->stack_frame.count);
}

static int read_tables(struct gecko *g, struct firefox_in *in, struct json_value strings,
		       struct json_value frames, struct json_value stacks)
{
	int err = json_type(strings) == JSON_ARRAY
			  ? json_each(&g->file.text, strings, add_string, in)
			  : -ENOENT;

	g->places.count = 0;
	if (!err && in->strings.count && !vec_at(&g->places, in->strings.count - 1))
		err = -ENOMEM;
	return err ?: read_frames(g, in, frames) ?: read_stacks(g, in, stacks);
}

/* perf's times are of the clock that its start is of: the start is their time 0. */
static void find_clock(struct gecko *g, int64_t first)
{
	if (!g->has_rows && g->file.realtime > 0 && first >= g->file.realtime) {
		g->file.shift = -g->file.realtime;
		profile_builder__session(g->file.b)->start_realtime = 0;
	}
	g->has_rows = true;
}

static int add_row(struct gecko *g, struct firefox_in *in, struct firefox_rows *rows,
		   const struct json_value *values)
{
	const struct json_text *text = &g->file.text;
	uint64_t *left_out = g->file.common.frames.left_out;
	struct firefox_row row = {
		.ticks.is_null = true,
		.stack = number_of(text, values[0]),
		.time = number_of(text, values[1]),
		.cpu = number_of(text, values[2]),
		.weight.is_null = true,
	};
	int32_t stack = index_of(text, values[0], in->stack_frame.count);
	int64_t time, cpu;

	if (row.time.is_null || json_scaled(&row.time, FIREFOX_MS_SCALE, &time) ||
	    time > FIREFOX_TIME_LIMIT || time < -FIREFOX_TIME_LIMIT) {
		left_out[LEFT_OUT_NO_TIME]++;
		return 0;
	}
	find_clock(g, time);
	if (!row.stack.is_null && (stack < 0 || in->stack_frame.data[stack] < 0)) {
		left_out[LEFT_OUT_MISSING_NODES]++;
		row.stack.is_null = true;
	}
	if (!row.cpu.is_null && (json_scaled(&row.cpu, 0, &cpu) || cpu < 0))
		row.cpu.is_null = true;
	return firefox_file__row(&g->file, in, rows, &row);
}

static int read_samples(struct gecko *g, struct firefox_in *in, struct json_value value,
			struct firefox_rows *rows)
{
	static const char *const names[] = {"stack", "time", "threadCPUDelta"};
	struct json_value values[3];
	struct gecko_table t;
	int more = table__init(&t, &g->file.text, value, names, 3);

	rows->has_cpu = !more && t.place[2] >= 0;
	while (!more && (more = table__next(&t, values)) > 0)
		more = add_row(g, in, rows, values);
	return more ?: firefox_file__end(&g->file, rows);
}

/* Versions whose markers have their times in their data are read without them. */
static int read_markers(struct gecko *g, struct firefox_in *in, struct json_value value,
			const struct firefox_rows *rows)
{
	static const char *const names[] = {"name", "startTime", "endTime", "phase"};
	const struct json_text *text = &g->file.text;
	struct firefox_markers markers = {};
	struct json_value values[4];
	struct gecko_table t;
	int more = table__init(&t, text, value, names, 4);

	if (more == -ENOENT)
		return 0;
	while (!more && (more = table__next(&t, values)) > 0) {
		const struct firefox_marker_row row = {
			number_of(text, values[0]), number_of(text, values[1]),
			number_of(text, values[2]), number_of(text, values[3])};

		more = firefox_markers__add(&markers, &g->file, in, rows, &row);
	}
	return firefox_markers__end(&markers, &g->file, rows) ?: more;
}

static int read_thread(void *context, struct json_value value)
{
	struct gecko *g = context;
	struct firefox_thread v = {};
	struct json_value samples, markers, frames, stacks, strings;
	struct firefox_in in = {.common = &g->file.common};
	struct firefox_rows rows = {};
	int err = json_type(value) != JSON_OBJECT
			  ? -ENOENT
			  : json_members(&g->file.text, value, {"name", &v.name},
					 {"processName", &v.process_name}, {"pid", &v.pid},
					 {"tid", &v.tid}, {"registerTime", &v.start},
					 {"unregisterTime", &v.end},
					 {"processStartupTime", &v.process_start},
					 {"processShutdownTime", &v.process_end},
					 {"samples", &samples}, {"markers", &markers},
					 {"frameTable", &frames}, {"stackTable", &stacks},
					 {"stringTable", &strings});

	v.is_main = json_is(v.name, "\"GeckoMain\"") || json_value_equal(v.pid, v.tid);
	err = err ?: read_tables(g, &in, strings, frames, stacks);
	err = err ?: firefox_file__thread(&g->file, &v, &rows);
	err = err ?: read_samples(g, &in, samples, &rows);
	err = err ?: read_markers(g, &in, markers, &rows);
	firefox_in__fini(&in);
	if (err != -ENOENT)
		return err;
	g->file.common.frames.left_out[LEFT_OUT_THREADS]++;
	return 0;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Of another process: where its time 0 is, and its categories. */
static int read_other_meta(struct gecko *g, struct json_value meta)
{
	struct json_value start, categories, units;
	int64_t realtime;
	int err = json_members(&g->file.text, meta, {"startTime", &start},
			       {"categories", &categories}, {"sampleUnits", &units})
			  ?: firefox_ms(&g->file.text, start, INT64_MAX / 2, &realtime);

	if (!err && json_type(categories) == JSON_ARRAY)
		err = firefox_common__categories(&g->file.common, categories);
	if (!err && units.at)
		err = firefox_file__units(&g->file, units);
	if (err)
		return err;
	g->file.shift = realtime > 0 && g->file.realtime > 0 ? realtime - g->file.realtime : 0;
	if (g->file.shift > FIREFOX_TIME_LIMIT || g->file.shift < -FIREFOX_TIME_LIMIT)
		g->file.shift = 0;
	return 0;
}

static int read_threads(struct gecko *g, const struct process_values *v, bool is_first)
{
	struct firefox_common *common = &g->file.common;

	common->categories.count = common->subcategories.count = 0;
	if (json_type(v->meta) != JSON_OBJECT || json_type(v->threads) != JSON_ARRAY) {
		common->frames.left_out[LEFT_OUT_THREADS]++;
		return 0;
	}
	return (is_first ? firefox_file__meta(&g->file, v->meta) : read_other_meta(g, v->meta))
		       ?: read_libs(g, v->libs)
		       ?: json_each(&g->file.text, v->threads, read_thread, g);
}

static int read_process(struct gecko *g, struct gecko_process process)
{
	const struct json_text *text = &g->file.text;
	uint64_t *left_out = &g->file.common.frames.left_out[LEFT_OUT_THREADS];
	struct process_values v;
	struct json_walk walk;
	int more;

	if (json_type(process.value) != JSON_OBJECT || process.depth > NESTED_MAX) {
		(*left_out)++;
		return 0;
	}
	more = json_members(text, process.value, {"meta", &v.meta}, {"libs", &v.libs},
			    {"threads", &v.threads}, {"processes", &v.processes})
		       ?: read_threads(g, &v, !process.depth);
	if (more || json_type(v.processes) != JSON_ARRAY)
		return more;
	more = json_walk__init(&walk, text, v.processes.at, JSON_ARRAY);
	while (!more && (more = json_walk__next(&walk)) > 0)
		more = vec_push(&g->processes,
				(struct gecko_process){walk.value, process.depth + 1});
	return more;
}

static int read_file(struct gecko *g)
{
	const struct json_text *text = &g->file.text;
	struct json_value whole = {json_skip_spaces(text, text->start), text->end}, meta;
	int err = json_document(text, {"meta", &meta})
			  ?: vec_push(&g->processes, (struct gecko_process){whole, 0});

	for (size_t i = 0; i < g->processes.count && !err; i++)
		err = read_process(g, g->processes.data[i]);
	return err;
}

static bool recognizes_gecko(const uint8_t *bytes, size_t size)
{
	return import_json_kind(bytes, size) == IMPORT_JSON_GECKO;
}

static int read_gecko(const struct import_request *request, struct import_failure *failure)
{
	struct gecko g = {};
	int err = firefox_file__init(&g.file, request, failure) ?: read_file(&g);

	firefox_file__fini(&g.file);
	strtab__free(g.lib_names);
	vec_free(&g.processes);
	vec_free(&g.mappings);
	vec_free(&g.lib_of_name);
	vec_free(&g.places);
	return err;
}

const struct importer gecko_importer = {
	.name = "gecko",
	.description = "Gecko's own profile format: Firefox, perf script report gecko",
	.recognizes = recognizes_gecko,
	.read = read_gecko,
};
