/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pprof: ours, those of Go's runtime, pprof-nodejs, gperftools and pprof-rs by way of pprof, and others.
 *
 * Tables come in any order, and strings mostly at the end, so the file is walked over three times: tables;
 * locations, which need those; samples, which need locations. Only one message at a time is unpacked.
 *
 * There are no times. Samples keep the order of the file and get made-up times; counts are ticks, values
 * are CPU time.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <pprof.pb-c.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/minmax.h"
#include "base/wire.h"
#include "import/frames.h"
#include "import/import.h"
#include "import/owners.h"

#define TAIL_MAX	  (1ULL << 61)
#define MESSAGE_MAX	  (16u << 20) /* bytes of one sample, location, … */
#define TYPES_MAX	  64
#define RECOGNIZED_FIELDS 8
#define NONE		  UINT32_MAX

/* What keys of labels stand for. */
enum label_kind {
	LABEL_OTHER,
	LABEL_PID,
	LABEL_TID,
	LABEL_THREAD,
	LABEL_PROCESS,
	LABEL_SERVICE, /* names the process where nothing else does */
	LABEL_COMM,
	LABEL_CGROUP,
	LABEL_GIL,
};

struct text {
	const uint8_t *bytes;
	size_t size;
	enum label_kind label; /* if it is a key of a label */
};

struct value_type {
	int64_t type, unit; /* strings */
};

/* An element of a table with ids: what is kept of it until it is used. */
struct mapping {
	uint64_t id, start, limit, offset;
	struct dso_id dso;
	enum dso_kind kind;
	enum profile_category category;
};

struct function {
	uint64_t id;
	int64_t name, file, line;
};

struct location {
	uint64_t id;
	struct location_id location;
	bool is_idle;
};

DEFINE_MAP_BY(mappings, struct mapping, uint64_t, id);
DEFINE_MAP_BY(functions, struct function, uint64_t, id);
DEFINE_MAP_BY(locations, struct location, uint64_t, id);

struct pprof {
	const struct import_request *request;
	struct import_failure *failure;
	struct profile_builder *b;
	struct frames frames;
	struct process_id any; /* for code without a mapping: the first sample's process */
	struct wire first;     /* that sample */
	VEC(struct text) strings;
	VEC(struct value_type) types;
	struct mappings mappings;
	struct functions functions;
	struct locations locations;
	struct owners owners;
	VEC(struct profile_line) lines; /* scratch */
	struct value_type period_type;
	int64_t period, time, duration;
	uint32_t count_index, cpu_index; /* of the values; NONE */
	uint64_t unit;			 /* ns of the value at cpu_index */
};

static int fail_at(const struct pprof *p, const uint8_t *at, int error, const char *what,
		   uint64_t number)
{
	return import_fail(p->failure, (uint64_t)(at - p->request->bytes), error, what,
			   (unsigned long long)number);
}

/* ---- words, ours and those of others ---------------------------------------------------------- */

static bool is_word(const uint8_t *bytes, size_t size, const char *word)
{
	return strlen(word) == size && !memcmp(word, bytes, size);
}

static enum label_kind label_kind(const uint8_t *bytes, size_t size)
{
	static const struct {
		const char *key;
		enum label_kind kind;
	} keys[] = {
		{"pid", LABEL_PID},
		{"process_id", LABEL_PID},
		{"process id", LABEL_PID},
		{"tid", LABEL_TID},
		{"thread_id", LABEL_TID},
		{"thread id", LABEL_TID},
		{"os thread id", LABEL_TID},
		{"thread", LABEL_THREAD},
		{"thread_name", LABEL_THREAD},
		{"thread.name", LABEL_THREAD},
		{"thread name", LABEL_THREAD},
		{"process", LABEL_PROCESS},
		{"process_name", LABEL_PROCESS},
		{"process name", LABEL_PROCESS},
		{"service_name", LABEL_SERVICE},
		{"comm", LABEL_COMM},
		{"cgroup", LABEL_CGROUP},
		{"gil", LABEL_GIL},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (is_word(bytes, size, keys[i].key))
			return keys[i].kind;
	return LABEL_OTHER;
}

/* "held", …: as the exporter writes it. */
static enum gil_state gil_state_of(const uint8_t *bytes, size_t size)
{
	for (int state = GIL_UNKNOWN + 1; state < GIL_STATE_COUNT; state++)
		if (is_word(bytes, size, gil_state_name(state)))
			return state;
	return GIL_UNKNOWN;
}

/* Nanoseconds of a unit of time; 0: it is none. */
static uint64_t unit_ns(const uint8_t *bytes, size_t size)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{"nanoseconds", 1}, {"nanosecond", 1},
		{"ns", 1},	    {"microseconds", 1000},
		{"us", 1000},	    {"milliseconds", 1000000},
		{"ms", 1000000},    {"seconds", 1000000000},
		{"s", 1000000000},
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (is_word(bytes, size, units[i].name))
			return units[i].ns;
	return 0;
}

/* What is mapped under this name, and what its code is. */
static enum dso_kind mapping_kind(const char *path, enum profile_category *category)
{
	if (!strncmp(path, "[kernel", 7) || !strncmp(path, "[guest.kernel", 13)) {
		*category = CATEGORY_KERNEL;
		return DSO_KERNEL;
	}
	if (!*path || !strncmp(path, "//anon", 6) || !strncmp(path, "[anon", 5)) {
		*category = CATEGORY_JIT;
		return DSO_JIT;
	}
	*category = strstr(path, ".so") || *path == '[' ? CATEGORY_LIBRARY : CATEGORY_USER;
	return strcmp(path, "[vdso]") ? DSO_FILE : DSO_VDSO;
}

/* ---- the message ----------------------------------------------------------------------------- */

static bool type_fits(const struct wire *w)
{
	static const char types[] = " bbbbbbvvvvbv*vv";

	if (!w->number || w->number >= sizeof(types) - 1)
		return false;
	return types[w->number] == '*' || types[w->number] == (w->type == WIRE_BYTES	? 'b'
							       : w->type == WIRE_VARINT ? 'v'
											: 0);
}

static bool recognizes_pprof(const uint8_t *bytes, size_t size)
{
	struct wire w = wire_of(bytes, size);
	unsigned int fields = 0;
	int more = 1;

	while (fields < RECOGNIZED_FIELDS && (more = wire_next(&w)) > 0) {
		if (!type_fits(&w))
			return false;
		fields++;
	}
	return fields >= 3 || (fields && !more);
}

/* What a walk over the file takes: messages of a type, or (type NULL) whatever the field has. */
struct wanted_field {
	uint32_t number;
	const ProtobufCMessageDescriptor *type;
	int (*take)(struct pprof *p, const struct wire *w, const void *message);
};

static int take_field(struct pprof *p, const struct wire *w, const struct wanted_field *wanted)
{
	ProtobufCMessage *m;
	int err;

	if (!wanted->type)
		return wanted->take(p, w, NULL);
	m = protobuf_c_message_unpack(wanted->type, NULL, w->size, w->bytes);
	if (!m)
		return fail_at(p, w->bytes, -EBADMSG, "a message in field %llu is damaged",
			       w->number);
	err = wanted->take(p, w, m);
	protobuf_c_message_free_unpacked(m, NULL);
	return err;
}

/* `wanted` ends with a row of zeros. Each field of the profile that is made of bytes is a message; the others are numbers. */
static int each_field(struct pprof *p, const struct wanted_field *wanted)
{
	const struct import_request *r = p->request;
	struct wire w = wire_of(r->bytes, r->size);
	int more;

	while ((more = wire_next(&w)) > 0) {
		const struct wanted_field *row = wanted;
		int err;

		if (w.type == WIRE_BYTES && w.size > MESSAGE_MAX)
			return fail_at(p, w.bytes, -E2BIG, "a message of %llu bytes", w.size);
		if (w.number <= PPROF_PERIOD && !type_fits(&w))
			return fail_at(p, w.bytes, -EBADMSG, "field %llu has the wrong type",
				       w.number);
		while (row->number && row->number != w.number)
			row++;
		err = row->number ? take_field(p, &w, row) : 0;
		if (err)
			return err;
	}
	return more < 0 ? fail_at(p, w.at, -EBADMSG, "the message is damaged or cut off", 0) : 0;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* An element was added under an id, which may be there once. */
static int check_id(const struct pprof *p, const struct wire *w, uint64_t id, const void *added,
		    bool is_new)
{
	if (!id)
		return fail_at(p, w->bytes, -EBADMSG, "an id is 0 in field %llu", w->number);
	if (!added)
		return -ENOMEM;
	return is_new ? 0 : fail_at(p, w->bytes, -EBADMSG, "the id %llu is there twice", id);
}

/* Strings may come later: its name is looked up then. */
static int add_mapping(struct pprof *p, const struct wire *w, const void *message)
{
	const Pprof__Mapping *m = message;
	const struct mapping mapping = {
		.id = m->id,
		.start = m->memory_start,
		.limit = m->memory_limit,
		.offset = m->file_offset,
	};
	bool is_new = false;
	const struct mapping *added = mappings__need(&p->mappings, &mapping, &is_new);

	return check_id(p, w, mapping.id, added, is_new);
}

static int add_function(struct pprof *p, const struct wire *w, const void *message)
{
	const Pprof__Function *f = message;
	const struct function function = {
		.id = f->id,
		.name = f->name ? f->name : f->system_name,
		.file = f->filename,
		.line = f->start_line,
	};
	bool is_new = false;
	const struct function *added = functions__need(&p->functions, &function, &is_new);

	return check_id(p, w, function.id, added, is_new);
}

static int set_period_type(struct pprof *p, const struct wire *w, const void *message)
{
	const Pprof__ValueType *t = message;

	(void)w;
	p->period_type = (struct value_type){t->type, t->unit};
	return 0;
}

static int add_type(struct pprof *p, const struct wire *w, const void *message)
{
	const Pprof__ValueType *t = message;

	if (p->types.count == TYPES_MAX)
		return fail_at(p, w->bytes, -E2BIG, "more than %llu sample types", TYPES_MAX);
	return vec_push(&p->types, ((struct value_type){t->type, t->unit}));
}

static int add_string(struct pprof *p, const struct wire *w, const void *message)
{
	(void)message;
	return vec_push(&p->strings,
			(struct text){w->bytes, w->size, label_kind(w->bytes, w->size)});
}

static int note_number(struct pprof *p, const struct wire *w, const void *message)
{
	(void)message;
	*(w->number == PPROF_PERIOD	      ? &p->period
	  : w->number == PPROF_DURATION_NANOS ? &p->duration
					      : &p->time) = (int64_t)w->value;
	return 0;
}

static int note_first_sample(struct pprof *p, const struct wire *w, const void *message)
{
	(void)message;
	p->first = p->first.bytes ? p->first : *w;
	return 0;
}

/* ---- strings --------------------------------------------------------------------------------- */

static int copy_string(const struct pprof *p, int64_t index, char **copy)
{
	if (index < 0 || (uint64_t)index >= (p->strings.count ? p->strings.count : 1))
		return import_fail(p->failure, 0, -EBADMSG,
				   "there is no string %lld in a table of %zu", (long long)index,
				   p->strings.count);
	*copy = p->strings.count ? strndup((const char *)p->strings.data[index].bytes,
					   p->strings.data[index].size)
				 : strdup("");
	return *copy ? 0 : -ENOMEM;
}

static int intern(struct pprof *p, int64_t index, struct string_id *id)
{
	_cleanup_free_ char *copy = NULL;
	int err = copy_string(p, index, &copy);

	if (!err)
		*id = profile_builder__string(p->b, copy);
	return err;
}

static bool string_is(const struct pprof *p, int64_t index, const char *text)
{
	return index > 0 && (uint64_t)index < p->strings.count &&
	       p->strings.data[index].size == strlen(text) &&
	       !memcmp(p->strings.data[index].bytes, text, strlen(text));
}

/* ---- what the values are --------------------------------------------------------------------- */

/* Nanoseconds of a unit of time; 0: none. */
static uint64_t unit_of(const struct pprof *p, int64_t unit)
{
	const struct text *text = unit > 0 && (uint64_t)unit < p->strings.count
					  ? &p->strings.data[unit]
					  : NULL;

	return text ? unit_ns(text->bytes, text->size) : 0;
}

static int refuse_types(const struct pprof *p)
{
	char names[160] = "";
	size_t used = 0;

	for (size_t i = 0; i < p->types.count && used < sizeof(names); i++) {
		_cleanup_free_ char *type = NULL, *unit = NULL;
		int err = copy_string(p, p->types.data[i].type, &type)
				  ?: copy_string(p, p->types.data[i].unit, &unit);

		if (err)
			return err;
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s/%s",
					 i ? ", " : "", type, unit);
	}
	return import_fail(p->failure, 0, -EPROTONOSUPPORT,
			   "it has no CPU samples (cpu/nanoseconds, samples/count), but %s",
			   *names ? names : "nothing");
}

/* "sample" and "wall" are pprof-nodejs's, whose samples of an idle loop are (idle). */
static int choose_values(struct pprof *p)
{
	uint32_t wall = NONE;

	p->count_index = p->cpu_index = NONE;
	for (uint32_t i = 0; i < p->types.count; i++) {
		const struct value_type *t = &p->types.data[i];

		if (p->count_index == NONE && string_is(p, t->unit, "count") &&
		    (string_is(p, t->type, "samples") || string_is(p, t->type, "sample")))
			p->count_index = i;
		if (p->cpu_index == NONE && string_is(p, t->type, "cpu") && unit_of(p, t->unit))
			p->cpu_index = i;
		if (string_is(p, t->type, "wall") && unit_of(p, t->unit))
			wall = i;
	}
	if (p->count_index == NONE && p->cpu_index == NONE)
		return refuse_types(p);
	if (p->cpu_index == NONE)
		p->cpu_index = wall;
	p->unit = p->cpu_index != NONE ? unit_of(p, p->types.data[p->cpu_index].unit)
				       : unit_of(p, p->period_type.unit);
	return 0;
}

/* ---- mappings and locations ------------------------------------------------------------------ */

/* The tables are whole. */
static int name_mapping(struct pprof *p, const struct wire *w, const void *message)
{
	const Pprof__Mapping *m = message;
	struct mapping *mapping = mappings__find(&p->mappings, m->id);
	_cleanup_free_ char *path = NULL, *build_id = NULL;
	struct profile_dso dso = {.file_state = FILE_STATE_UNOPENED,
				  .symbol_state = SYMBOL_STATE_RESOLVED};
	const char *name;
	int err = copy_string(p, m->filename, &path) ?: copy_string(p, m->build_id, &build_id);

	(void)w;
	if (err)
		return err;
	mapping->kind = mapping_kind(path, &mapping->category);
	name = strrchr(path, '/');
	name = name && name[1] ? name + 1 : path;
	dso.kind = mapping->kind;
	dso.path = profile_builder__string(p->b, path);
	dso.name = profile_builder__string(p->b, name);
	dso.is_library = strstr(name, ".so") != NULL;
	frames__set_build_id(&dso, build_id);
	mapping->dso = profile_builder__dso(p->b, &dso);
	return mapping->dso.v ? 0 : -ENOMEM;
}

static uint32_t clamp_line(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

static const struct function *find_function(const struct pprof *p, const Pprof__Line *l)
{
	return functions__find(&p->functions, l->function_id);
}

static int add_line(struct pprof *p, const struct wire *w, const Pprof__Line *l, struct dso_id dso)
{
	const struct function *f = find_function(p, l);
	_cleanup_free_ char *name = NULL, *file = NULL;
	struct profile_line line = {.line = clamp_line(l->line), .column = clamp_line(l->column)};
	struct string_id site;
	int err;

	if (!f)
		return fail_at(p, w->bytes, -EBADMSG, "there is no function %llu", l->function_id);
	err = copy_string(p, f->name, &name) ?: copy_string(p, f->file, &file);
	if (err)
		return err;
	site = frames__file(&p->frames, file);
	line.function = frames__function(&p->frames, name, dso, site, clamp_line(f->line), 0);
	line.file = (struct string_id){line.line ? site.v : 0};
	return line.function.v ? vec_push(&p->lines, line) : -ENOMEM;
}

/* JIT code has no mapping; what has neither mapping nor address nor file is an engine itself. */
static void set_unmapped(struct pprof *p, struct frame *frame, const Pprof__Location *l)
{
	bool has_file = false;

	for (size_t i = 0; i < l->n_line; i++) {
		const struct function *f = find_function(p, l->line[i]);

		has_file |= f && f->file != 0;
	}
	frame->category = has_file || l->address ? CATEGORY_JIT : CATEGORY_OTHER;
	frame->dso = frames__dso(&p->frames,
				 frame->category == CATEGORY_JIT ? DSO_JIT : DSO_UNKNOWN, "", 0);
}

static int set_frame(struct pprof *p, const struct wire *w, const Pprof__Location *l,
		     struct frame *frame)
{
	const struct mapping *m;

	*frame = (struct frame){
		.process = p->any, .address = l->address, .elf_address = PROFILE_UNKNOWN_ADDRESS};
	if (!l->mapping_id) {
		set_unmapped(p, frame, l);
		return 0;
	}
	m = mappings__find(&p->mappings, l->mapping_id);
	if (!m)
		return fail_at(p, w->bytes, -EBADMSG, "there is no mapping %llu", l->mapping_id);
	frame->dso = m->dso;
	frame->category = m->category;
	if (m->kind == DSO_FILE && l->address >= m->start && l->address < m->limit)
		frame->address = l->address - m->start + m->offset;
	if (m->kind != DSO_JIT)
		frame->process = (struct process_id){0};
	return 0;
}

static bool is_idle(const struct pprof *p, const Pprof__Location *l)
{
	const struct function *f = l->n_line == 1 ? find_function(p, l->line[0]) : NULL;

	return f && !f->file && string_is(p, f->name, "(idle)");
}

static int add_location(struct pprof *p, const struct wire *w, const void *message)
{
	const Pprof__Location *l = message;
	const struct location wanted = {.id = l->id, .is_idle = is_idle(p, l)};
	bool is_new = false;
	struct location *location = locations__need(&p->locations, &wanted, &is_new);
	struct frame frame;
	int err = check_id(p, w, l->id, location, is_new) ?: set_frame(p, w, l, &frame);

	if (!err && l->n_line > FRAME_LINES_MAX)
		err = fail_at(p, w->bytes, -E2BIG, "a location of %llu lines", l->n_line);
	p->lines.count = 0;
	for (size_t i = 0; i < l->n_line && !err; i++)
		err = add_line(p, w, l->line[i], frame.dso);
	if (err)
		return err;
	location->location = frames__location(&p->frames, &frame, p->lines.data,
					      (uint32_t)p->lines.count);
	return location->location.v ? 0 : -ENOMEM;
}

/* ---- owners of samples ----------------------------------------------------------------------- */

/* A number, or digits as a string. */
static uint32_t label_number(const struct pprof *p, const Pprof__Label *l)
{
	uint64_t number = 0;

	if (!l->str)
		return l->num > 0 && l->num <= UINT32_MAX ? (uint32_t)l->num : 0;
	for (size_t i = 0; (uint64_t)l->str < p->strings.count &&
			   i < p->strings.data[l->str].size && number <= UINT32_MAX;
	     i++) {
		uint8_t digit = p->strings.data[l->str].bytes[i];

		if (digit < '0' || digit > '9')
			return 0;
		number = number * 10 + digit - '0';
	}
	return number <= UINT32_MAX ? (uint32_t)number : 0;
}

static enum gil_state label_gil(const struct pprof *p, const Pprof__Label *l)
{
	return (uint64_t)l->str < p->strings.count
		       ? gil_state_of(p->strings.data[l->str].bytes, p->strings.data[l->str].size)
		       : GIL_UNKNOWN;
}

static int read_labels(struct pprof *p, const Pprof__Sample *s, struct sample_owner *owner,
		       struct string_id *comm, enum gil_state *gil)
{
	struct string_id service = {0};
	int err = 0;

	*owner = (struct sample_owner){};
	*comm = (struct string_id){0};
	*gil = GIL_UNKNOWN;
	for (size_t i = 0; i < s->n_label && !err; i++) {
		const Pprof__Label *l = s->label[i];
		bool known = l->key > 0 && (uint64_t)l->key < p->strings.count;

		if (l->str < 0)
			continue;
		switch (known ? p->strings.data[l->key].label : LABEL_OTHER) {
		case LABEL_PID:
			owner->pid = label_number(p, l);
			break;
		case LABEL_TID:
			owner->tid = label_number(p, l);
			break;
		case LABEL_THREAD:
			err = intern(p, l->str, &owner->thread);
			break;
		case LABEL_PROCESS:
			err = intern(p, l->str, &owner->process);
			break;
		case LABEL_SERVICE:
			err = intern(p, l->str, &service);
			break;
		case LABEL_COMM:
			err = intern(p, l->str, comm);
			break;
		case LABEL_CGROUP:
			err = intern(p, l->str, &owner->cgroup);
			break;
		case LABEL_GIL:
			*gil = label_gil(p, l);
			break;
		case LABEL_OTHER:
			break;
		}
	}
	if (!owner->process.v)
		owner->process = service;
	return err;
}

/* The program is the first mapping. */
static struct string_id program_name(const struct pprof *p)
{
	const struct profile_dso *dso = NULL;

	if (p->mappings.count && p->mappings.data[0].kind == DSO_FILE)
		dso = profile_builder__get_dso(p->b, p->mappings.data[0].dso);
	return dso && dso->name.v ? dso->name : profile_builder__string(p->b, p->request->name);
}

/* Code without a mapping needs a process before the samples are read. */
static int note_any_owner(struct pprof *p, const struct wire *w, const void *message)
{
	struct sample_owner owner = {};
	struct string_id comm;
	enum gil_state gil;

	(void)w;
	return (message ? read_labels(p, message, &owner, &comm, &gil) : 0)
		       ?: owners__process(&p->owners, &owner, &p->any);
}

static int find_any_process(struct pprof *p)
{
	static const struct wanted_field sample = {PPROF_SAMPLE, &pprof__sample__descriptor,
						   note_any_owner};

	p->owners.program = program_name(p);
	return p->first.bytes ? take_field(p, &p->first, &sample) : note_any_owner(p, NULL, NULL);
}

/* ---- samples --------------------------------------------------------------------------------- */

static uint64_t multiply(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static int read_values(struct pprof *p, const struct wire *w, const Pprof__Sample *s,
		       struct profile_sample *row)
{
	int64_t count = 0, cpu = 0;
	uint64_t period = p->period > 0 ? (uint64_t)p->period : 0;

	if (s->n_value != p->types.count)
		return fail_at(p, w->bytes, -EBADMSG, "a sample has %llu values, one of each type",
			       s->n_value);
	if (p->count_index != NONE)
		count = s->value[p->count_index];
	if (p->cpu_index != NONE)
		cpu = s->value[p->cpu_index];
	if (count < 0 || cpu < 0)
		return fail_at(p, w->bytes, -EBADMSG,
			       "a value is negative: it is the difference of two profiles", 0);
	row->weight = min_u64(multiply((uint64_t)cpu, p->unit), TAIL_MAX);
	if (p->cpu_index == NONE)
		row->weight = multiply(multiply((uint64_t)count, period), p->unit);
	row->ticks = (uint64_t)count;
	if (p->count_index == NONE && cpu)
		row->ticks = period ? max_u64(((uint64_t)cpu + period / 2) / period, 1) : 1;
	return 0;
}

static int read_stack(struct pprof *p, const struct wire *w, const Pprof__Sample *s,
		      struct stack_id *stack, bool *idle)
{
	*stack = (struct stack_id){0};
	*idle = false;
	if (s->n_location_id > IMPORT_DEPTH_MAX)
		return fail_at(p, w->bytes, -E2BIG, "a stack of %llu frames", s->n_location_id);
	for (size_t i = s->n_location_id; i-- > 0;) {
		const struct location *l = locations__find(&p->locations, s->location_id[i]);

		if (!l)
			return fail_at(p, w->bytes, -EBADMSG, "there is no location %llu",
				       s->location_id[i]);
		*stack = profile_builder__stack(p->b, *stack, l->location);
		if (!stack->v)
			return -ENOMEM;
		*idle = l->is_idle;
	}
	return 0;
}

/* Samples of a thread that was idle are no CPU samples; those without any stack are of an unknown one. */
static int add_sample(struct pprof *p, const struct wire *w, const void *message)
{
	const Pprof__Sample *s = message;
	struct profile_sample row = {.kind = SAMPLE_CPU, .end = STACK_END_ROOT};
	struct owner_thread *thread;
	struct sample_owner owner;
	struct string_id comm;
	bool idle;
	int err = read_values(p, w, s, &row);

	if (err || (!row.ticks && !row.weight))
		return err;
	err = read_stack(p, w, s, &row.stack, &idle)
		?: read_labels(p, s, &owner, &comm, &row.gil)
		?: owners__thread(&p->owners, &owner, comm, &thread);
	if (err)
		return err;
	if (p->count_index != NONE && !row.ticks) {
		/* CPU time that no sample was taken of; in our files in "[not sampled]" */
		thread->tail = min_u64(thread->tail + row.weight, TAIL_MAX);
		return 0;
	}
	if (!row.stack.v) {
		const struct frame nowhere = {
			.dso = frames__dso(&p->frames, DSO_UNKNOWN, "", 0),
			.process = p->any,
			.elf_address = PROFILE_UNKNOWN_ADDRESS,
		};

		row.stack = profile_builder__stack(p->b, row.stack,
						   frames__location(&p->frames, &nowhere, NULL, 0));
	}
	row.kind = idle ? SAMPLE_IDLE : SAMPLE_CPU;
	row.comm = comm.v ? comm : owner.thread.v ? owner.thread : thread->name;
	row.time = IMPORT_MADE_UP_START + ++thread->rows;
	profile_builder__sample(p->b, thread->id, &row);
	return profile_builder__error(p->b);
}

static void set_session(const struct pprof *p)
{
	struct profile *session = profile_builder__session(p->b);

	session->start = session->end = IMPORT_MADE_UP_START;
	if (p->duration > 0)
		session->end += min_u64((uint64_t)p->duration, INT64_MAX / 4);
	session->start_realtime = p->time > 0 ? (uint64_t)p->time : 0;
	session->untimed = true;
	session->finished_symbols = true;
}

static int read_all(struct pprof *p)
{
	static const struct wanted_field tables[] = {
		{PPROF_SAMPLE_TYPE, &pprof__value_type__descriptor, add_type},
		{PPROF_SAMPLE, NULL, note_first_sample},
		{PPROF_MAPPING, &pprof__mapping__descriptor, add_mapping},
		{PPROF_FUNCTION, &pprof__function__descriptor, add_function},
		{PPROF_STRING_TABLE, NULL, add_string},
		{PPROF_PERIOD_TYPE, &pprof__value_type__descriptor, set_period_type},
		{PPROF_TIME_NANOS, NULL, note_number},
		{PPROF_DURATION_NANOS, NULL, note_number},
		{PPROF_PERIOD, NULL, note_number},
		{}};
	static const struct wanted_field names[] = {
		{PPROF_MAPPING, &pprof__mapping__descriptor, name_mapping}, {}};
	static const struct wanted_field locations[] = {
		{PPROF_LOCATION, &pprof__location__descriptor, add_location}, {}};
	static const struct wanted_field samples[] = {
		{PPROF_SAMPLE, &pprof__sample__descriptor, add_sample}, {}};
	int err = each_field(p, tables)
		?: choose_values(p)
		?: each_field(p, names)
		?: find_any_process(p)
		?: each_field(p, locations)
		?: each_field(p, samples);

	for (size_t i = 0; i < p->owners.threads.count && !err; i++)
		profile_builder__thread_cpu_tail(p->b, p->owners.threads.data[i].id,
						 p->owners.threads.data[i].tail);
	return err;
}

static int read_pprof(const struct import_request *request, struct import_failure *failure)
{
	struct pprof p = {
		.request = request,
		.failure = failure,
		.b = request->builder,
		.frames = {.b = request->builder},
		.owners = {.b = request->builder, .start = IMPORT_MADE_UP_START},
	};
	int err;

	err = read_all(&p);
	set_session(&p);
	frames__fini(&p.frames);
	owners__fini(&p.owners);
	vec_free(&p.strings);
	vec_free(&p.types);
	mappings__fini(&p.mappings);
	functions__fini(&p.functions);
	locations__fini(&p.locations);
	vec_free(&p.lines);
	return err;
}

const struct importer pprof_importer = {
	.name = "pprof",
	.description = "pprof: Go's runtime, pprof-nodejs, gperftools, sysprof",
	.recognizes = recognizes_pprof,
	.read = read_pprof,
};
