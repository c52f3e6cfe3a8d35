/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pprof: ours, those of Go's runtime, pprof-nodejs, gperftools, pprof-rs (via pprof), and others.
 *
 * Tables come in any order, and strings mostly at the end. So the file is walked once for tables;
 * then the part with mappings, for their names; that with locations, which need both; and that with
 * samples.
 *
 * There are no times: samples keep the order of the file and get made-up ones.
 *
 * pprof_message.h reads the message and its tables, pprof_values.h chooses the values, and
 * pprof_labels.h reads whose the samples are.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "base/suffix.h"
#include "formats/in/name_pattern.h"
#include "formats/in/pprof_labels.h"
#include "formats/in/pprof_message.h"
#include "formats/in/pprof_values.h"

/* ---- frames that are dropped ----------------------------------------------------------------- */

/* NULL: there is none. -EINVAL: it cannot be applied. */
static int compile(const struct pprof *p, int64_t index, struct name_pattern **pattern)
{
	const struct text *text = pprof_string_of(p, index);

	return text && text->size
		       ? name_pattern__new((const char *)text->bytes, text->size, pattern)
		       : 0;
}

/* Parentheses that are part of a name, at this place: their size, with what is before them; or 0. */
static size_t named_parentheses(const struct text *name, size_t at)
{
	static const char *const kept[] = {"(anonymous namespace)", "operator()"};

	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		if (name->size - at >= strlen(kept[i]) &&
		    !memcmp(name->bytes + at, kept[i], strlen(kept[i])))
			return strlen(kept[i]);
	return 0;
}

/* What patterns are compared with: without arguments, as by pprof itself. */
static struct text without_arguments(struct text name)
{
	size_t at = 0, step;

	if (name.size && *name.bytes == '.') {
		name.bytes++;
		name.size--;
	}
	for (; at < name.size; at += step) {
		step = named_parentheses(&name, at);
		if (!step && name.bytes[at] == '(')
			break;
		step = step ? step : 1;
	}
	name.size = at;
	return name;
}

/* -EINVAL: it takes too long. */
static int match_functions(struct pprof *p, struct name_pattern *drop, struct name_pattern *keep)
{
	uint64_t steps = 0;
	int err = 0;

	for (size_t i = 0; i < p->functions.count && !err; i++) {
		const struct text *text = pprof_string_of(p, p->functions.data[i].name);
		struct text name = text ? without_arguments(*text) : (struct text){};
		const char *bytes = (const char *)name.bytes;
		bool matches = name.size && name_pattern__matches(drop, bytes, name.size, &steps) &&
			       !(keep && name_pattern__matches(keep, bytes, name.size, &steps));

		steps += name.size;
		err = steps >= NAME_PATTERN_STEPS_MAX ? -EINVAL : vec_push(&p->dropped, matches);
	}
	return err;
}

/* Both patterns are applied, or neither: without one of them too much would be dropped, or too little. */
static int find_dropped(struct pprof *p)
{
	struct name_pattern *drop = NULL, *keep = NULL;
	int err = compile(p, p->drop_frames, &drop) ?: compile(p, p->keep_frames, &keep);

	if (drop && !err)
		err = match_functions(p, drop, keep);
	name_pattern__free(drop);
	name_pattern__free(keep);
	if (err != -EINVAL)
		return err;
	p->dropped.count = 0;
	p->frames.left_out[LEFT_OUT_PATTERNS]++;
	return 0;
}

static bool is_dropped(const struct pprof *p, const struct pprof_line *line)
{
	const struct pprof_function *f = find_by_id(&p->functions, line->function, functions__find);
	size_t number = f ? (size_t)(f - p->functions.data) : 0;

	return f && number < p->dropped.count && p->dropped.data[number];
}

/* The lines of a location that stay are behind those that it drops, the outermost of which counts. */
static void drop_lines(struct pprof *p, struct location *location)
{
	size_t dropped = p->dropped.count ? p->lines.count : 0;

	while (dropped && !is_dropped(p, &p->lines.data[dropped - 1]))
		dropped--;
	location->drops = dropped > 0;
	location->is_dropped = dropped && dropped == p->lines.count;
	if (!dropped || location->is_dropped)
		return;
	p->lines.count -= dropped;
	memmove(p->lines.data, p->lines.data + dropped, p->lines.count * sizeof(*p->lines.data));
}

/* ---- mappings and locations ------------------------------------------------------------------ */

static int read_filename(struct pprof *p, struct filename *f)
{
	_cleanup_free_ char *path = NULL;
	const char *name;
	int err = pprof__copy_string(p, f->string, &path);

	if (err)
		return err;
	name = strrchr(path, '/');
	name = name && name[1] ? name + 1 : path;
	f->kind = frames__mapping_kind(path, &f->category);
	f->path = profile_builder__string(p->b, path);
	f->name = profile_builder__string(p->b, name);
	f->is_library = is_library_path(name);
	return 0;
}

static int find_filename(struct pprof *p, int64_t string, struct filename **f)
{
	const struct filename wanted = {.string = string};
	bool is_new = false;

	*f = filenames__need(&p->filenames, &wanted, &is_new);
	if (!*f)
		return -ENOMEM;
	return is_new ? read_filename(p, *f) : 0;
}

/* Go has ids that are no digits. */
static int read_build_id(const struct pprof *p, int64_t string, struct profile_dso *dso)
{
	const struct text *text = pprof_string_of(p, string);
	_cleanup_free_ char *build_id = NULL;
	int err;

	if (text && text->size > 2 * sizeof(dso->build_id))
		return 0;
	err = pprof__copy_string(p, string, &build_id);
	if (err)
		return err;
	dso->build_id_size = (uint8_t)parse_hex_bytes(build_id, dso->build_id,
						      sizeof(dso->build_id));
	return 0;
}

/* The kernel's names of a module vary ("[ext4]", "/lib/modules/…/ext4.ko"), its addresses do not. */
static bool is_kernel_module(const struct pprof *p, const struct pprof_mapping *m)
{
	return m->start >= KERNEL_ADDRESSES && !pprof__string_is(p, m->filename, "[vsyscall]");
}

/* After all tables were read. */
static int name_mapping(struct pprof *p, const struct wire *w, const void *message)
{
	const struct pprof_mapping *m = message;
	struct mapping *mapping = mappings__find(&p->mappings, m->id);
	struct profile_dso dso = {.file_state = FILE_STATE_UNOPENED,
				  .symbol_state = SYMBOL_STATE_RESOLVED};
	struct filename *f;
	int err = find_filename(p, m->filename, &f) ?: read_build_id(p, m->build_id, &dso);

	(void)w;
	if (err)
		return err;
	mapping->kind = f->kind;
	mapping->category = f->category;
	if (is_kernel_module(p, m)) {
		mapping->kind = DSO_KERNEL;
		mapping->category = CATEGORY_KERNEL;
	}
	dso.kind = mapping->kind;
	dso.is_interpreted = mapping->kind == DSO_RUNTIME;
	dso.path = f->path;
	dso.name = f->name;
	dso.is_library = f->is_library;
	mapping->dso = profile_builder__dso(p->b, &dso);
	return mapping->dso.v ? 0 : -ENOMEM;
}

static uint32_t clamp_line(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

static const struct pprof_function *find_function(const struct pprof *p, const struct pprof_line *l)
{
	return find_by_id(&p->functions, l->function, functions__find);
}

/* A function of a file without a name is called by the file, as in pprof. 0 or -ENOMEM. */
static int name_by_file(struct pprof *p, uint64_t mapping, struct string_id *name)
{
	const struct mapping *m = mappings__find(&p->mappings, mapping);
	struct filename *f = m ? filenames__find(&p->filenames, m->filename) : NULL;
	_cleanup_free_ char *text = NULL;

	if (!f || !f->name.v)
		return 0;
	if (!f->in_brackets.v) {
		if (asprintf(&text, "[%s]", profile_builder__get_string(p->b, f->name)) < 0) {
			text = NULL;
			return -ENOMEM;
		}
		f->in_brackets = profile_builder__string(p->b, text);
	}
	*name = f->in_brackets;
	return 0;
}

static int add_line(struct pprof *p, const struct wire *w, const struct pprof_line *l,
		    uint64_t mapping, struct dso_id dso)
{
	const struct pprof_function *f = find_function(p, l);
	struct profile_line line = {.line = clamp_line(l->line), .column = clamp_line(l->column)};
	struct string_id name, site;
	int err;

	if (!f)
		return pprof__fail_at(p, w->bytes, -EBADMSG, "there is no function %llu",
				      l->function);
	err = pprof__intern(p, f->name, &name) ?: pprof__intern_file(p, f->filename, &site);
	if (!err && !name.v)
		err = name_by_file(p, mapping, &name);
	if (err)
		return err;
	line.function = frames__named(&p->frames, name, dso, site, clamp_line(f->start_line), 0);
	line.file = (struct string_id){line.line ? site.v : 0};
	return line.function.v ? vec_push(&p->named_lines, line) : -ENOMEM;
}

/*
 * JIT code has no mapping; without mapping, address and file it is the engine itself. Some writers
 * have no mappings at all: then nothing is known of the code.
 */
static void set_unmapped(struct pprof *p, struct frame *frame, const struct pprof_location *l)
{
	bool has_file = false, is_unknown = false;
	struct dso_id *dso;

	for (size_t i = 0; i < p->lines.count; i++) {
		const struct pprof_function *f = find_function(p, &p->lines.data[i]);

		has_file |= f && f->filename != 0;
		is_unknown |= p->ours && f && pprof__string_is(p, f->name, "[unknown]");
	}
	frame->category = !has_file && (!l->address || is_unknown) ? CATEGORY_OTHER
			  : p->mappings.count || p->ours	   ? CATEGORY_JIT
								   : CATEGORY_USER;
	dso = &p->unmapped[frame->category == CATEGORY_JIT];
	if (!dso->v)
		*dso = frames__dso(&p->frames,
				   frame->category == CATEGORY_JIT ? DSO_JIT : DSO_UNKNOWN, "", 0);
	frame->dso = *dso;
}

/* Is the mapping the source file of its function, which an interpreter runs? */
static bool is_own_source(const struct pprof *p, const struct mapping *m)
{
	const struct pprof_function *f = p->lines.count ? find_function(p, p->lines.data) : NULL;

	return f && m->filename && f->filename == m->filename;
}

static void set_interpreted(struct pprof *p, struct frame *frame)
{
	struct profile_dso dso = *profile_builder__get_dso(p->b, frame->dso);

	dso.kind = DSO_RUNTIME;
	dso.is_interpreted = true;
	frame->category = CATEGORY_JIT;
	frame->dso = profile_builder__dso(p->b, &dso);
}

static int set_frame(struct pprof *p, const struct wire *w, const struct pprof_location *l,
		     struct frame *frame)
{
	const struct mapping *m;

	*frame = (struct frame){
		.process = p->any, .address = l->address, .elf_address = PROFILE_UNKNOWN_ADDRESS};
	if (!l->mapping) {
		set_unmapped(p, frame, l);
		return 0;
	}
	m = mappings__find(&p->mappings, l->mapping);
	if (!m)
		return pprof__fail_at(p, w->bytes, -EBADMSG, "there is no mapping %llu",
				      l->mapping);
	frame->dso = m->dso;
	frame->category = m->category;
	if (is_own_source(p, m))
		set_interpreted(p, frame);
	if (m->kind == DSO_FILE && l->address >= m->start && l->address < m->limit)
		frame->address = l->address - m->start + m->offset;
	if (m->kind != DSO_JIT)
		frame->process = (struct process_id){0};
	return 0;
}

static bool is_idle(const struct pprof *p)
{
	const struct pprof_function *f = p->lines.count == 1 ? find_function(p, p->lines.data)
							     : NULL;

	return f && !f->filename && pprof__string_is(p, f->name, "(idle)");
}

static int read_lines(struct pprof *p, const struct wire *location)
{
	struct wire w = wire_inside(location);
	struct pprof_line line;
	int err = 0;

	p->lines.count = p->named_lines.count = 0;
	while (!err && wire_next(&w) > 0)
		if (w.number == PPROF_LINE)
			err = pprof__read_numbers(p, &w, LINE_TYPES, &line, sizeof(line))
				      ?: vec_push(&p->lines, line);
	return err;
}

static int make_location(struct pprof *p, const struct wire *w, const struct pprof_location *l,
			 struct location *location)
{
	struct frame frame;
	int err = read_lines(p, w);

	if (err)
		return err;
	location->is_idle = is_idle(p);
	drop_lines(p, location);
	err = set_frame(p, w, l, &frame);
	if (!err && p->lines.count > FRAME_LINES_MAX)
		err = pprof__fail_at(p, w->bytes, -E2BIG, "a location of %llu lines",
				     p->lines.count);
	for (size_t i = 0; i < p->lines.count && !err; i++)
		err = add_line(p, w, &p->lines.data[i], l->mapping, frame.dso);
	if (err)
		return err;
	location->location = frames__location(&p->frames, &frame, p->named_lines.data,
					      (uint32_t)p->named_lines.count);
	return location->location.v ? 0 : -ENOMEM;
}

/* Of one service's samples most files have few locations: these are made when they are needed. */
static int add_location(struct pprof *p, const struct wire *w, const void *message)
{
	const struct pprof_location *l = message;
	const struct location wanted = {.id = l->id, .field = *w};
	bool is_new = false;
	struct location *location = locations__need(&p->locations, &wanted, &is_new);
	int err = pprof__check_id(p, w, l->id, location, is_new)
			  ?: pprof__check_room(p, w, p->locations.count);

	return err || p->request->process ? err : make_location(p, w, l, location);
}

static int find_location(struct pprof *p, const struct wire *sample, uint64_t id,
			 const struct location **found)
{
	struct location *location = find_by_id(&p->locations, id, locations__find);
	struct pprof_location l;

	*found = location;
	if (!location)
		return pprof__fail_at(p, sample->bytes, -EBADMSG, "there is no location %llu", id);
	if (location->location.v)
		return 0;
	return pprof__read_numbers(p, &location->field, LOCATION_TYPES, &l, sizeof(l))
		       ?: make_location(p, &location->field, &l, location);
}

/* ---- samples --------------------------------------------------------------------------------- */

static int make_stack(struct pprof *p, const struct wire *w, struct stack_id *stack, bool *idle)
{
	bool any = false, ends = false;
	int err = pprof__read_path(p, w);

	*stack = (struct stack_id){0};
	if (err)
		return err;
	if (p->path.count > IMPORT_DEPTH_MAX)
		return pprof__fail_at(p, w->bytes, -E2BIG, "a stack of %llu frames", p->path.count);
	for (size_t i = p->path.count; i-- > 0 && !ends;) {
		const struct location *l;

		err = find_location(p, w, p->path.data[i], &l);
		if (err)
			return err;
		/* a stack would be nothing else */
		ends = l->drops && any;
		any |= !l->drops;
		if (ends && l->is_dropped)
			break;
		*stack = profile_builder__stack(p->b, *stack, l->location);
		if (!stack->v)
			return -ENOMEM;
		*idle = l->is_idle;
	}
	return 0;
}

/* Of windows with many services one is read: most of the time goes into stacks. */
static bool is_wanted(const struct pprof *p, const struct pprof_labels *labels)
{
	return !p->request->process ||
	       !strcmp(profile_builder__get_string(p->b, labels->owner.process),
		       p->request->process);
}

/* Samples of an idle thread are no CPU samples; a sample without a stack gets an unknown frame. */
static int add_sample(struct pprof *p, const struct wire *w, const void *message)
{
	struct profile_sample row = {.kind = SAMPLE_CPU, .end = STACK_END_ROOT};
	struct owner_thread *thread;
	struct pprof_labels labels;
	bool idle = false;
	int err = pprof_values__take(p, w, &row);

	(void)message;
	if (err || (!row.ticks && !row.weight && !row.events))
		return err;
	err = pprof_labels__read(p, w, &labels);
	if (err || !is_wanted(p, &labels))
		return err;
	err = make_stack(p, w, &row.stack, &idle)
		      ?: owners__thread(&p->owners, &labels.owner, labels.comm, &thread);
	if (err)
		return err;
	if (!row.ticks && !row.events) {
		/* CPU time that no sample was taken of; in our files in "[not sampled]" */
		thread->tail = min_u64(thread->tail + row.weight, TAIL_MAX);
		return 0;
	}
	if (!row.stack.v)
		row.stack = profile_builder__stack(p->b, row.stack,
						   frames__nowhere(&p->frames, p->any));
	row.kind = idle && !p->by_clock ? SAMPLE_IDLE : SAMPLE_CPU;
	row.gil = labels.gil;
	row.context = labels.context;
	row.comm = labels.comm.v	   ? labels.comm
		   : labels.owner.thread.v ? labels.owner.thread
					   : thread->name;
	row.time = PROFILE_MADE_UP_START + ++thread->rows;
	return frames__sample(&p->frames, thread->id, &row, p->failure,
			      (uint64_t)(w->bytes - p->request->bytes));
}

static void set_session(const struct pprof *p)
{
	struct profile *session = profile_builder__session(p->b);

	session->start = session->end = PROFILE_MADE_UP_START;
	if (p->duration > 0)
		session->end += min_u64((uint64_t)p->duration, INT64_MAX / 4);
	session->start_realtime = p->time > 0 ? (uint64_t)p->time : 0;
	session->uncounted = p->ticks == TICKS_ARE_CPU_TIME || p->ticks == TICKS_ARE_WEIGHTS;
	session->tick_cpu = p->tick_cpu;
	session->period = session->uncounted || p->by_cpu ? 0 : p->period_ns;
	session->untimed = true;
	session->finished_symbols = p->ours || !p->frames.has_unnamed;
}

static int read_all(struct pprof *p)
{
	static const struct wanted_field names = {PPROF_MAPPING, MAPPING_TYPES, name_mapping};
	static const struct wanted_field locations = {PPROF_LOCATION, LOCATION_TYPES, add_location};
	static const struct wanted_field samples = {PPROF_SAMPLE, SAMPLE_TYPES, add_sample};
	int err = pprof__read_tables(p)
		?: pprof_values__choose(p)
		?: find_dropped(p)
		?: pprof__each_field(p, &names)
		?: pprof_labels__find_any_process(p)
		?: pprof__each_field(p, &locations)
		?: pprof__each_field(p, &samples);

	for (size_t i = 0; i < p->owners.threads.count && !err; i++)
		profile_builder__thread_cpu_tail(p->b, p->owners.threads.data[i].id,
						 p->owners.threads.data[i].tail);
	return err;
}

static int read_pprof(const struct import_request *request, struct import_failure *failure)
{
	struct pprof p = {
		.request = request,
		.ours = request->is_own,
		.failure = failure,
		.b = request->builder,
		.frames = {.b = request->builder},
		.owners = {.b = request->builder, .start = PROFILE_MADE_UP_START},
	};
	int err;

	err = read_all(&p);
	set_session(&p);
	frames__fini(&p.frames);
	owners__fini(&p.owners);
	vec_free(&p.strings);
	vec_free(&p.types);
	mappings__fini(&p.mappings);
	filenames__fini(&p.filenames);
	functions__fini(&p.functions);
	locations__fini(&p.locations);
	vec_free(&p.lines);
	vec_free(&p.named_lines);
	vec_free(&p.dropped);
	vec_free(&p.path);
	vec_free(&p.values);
	weights__fini(&p.counts);
	return err;
}

const struct importer pprof_importer = {
	.name = META_FORMAT_PPROF,
	.description = "pprof: Go's runtime, pprof-nodejs, gperftools, sysprof",
	.recognizes = pprof__is_recognized,
	.read = read_pprof,
};
