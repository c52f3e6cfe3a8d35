/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folded stacks: ours, and those of stackcollapse-perf.pl, inferno, async-profiler, py-spy and
 * others. A line is frames, root first, separated by semicolons, then a space and a count.
 *
 * The first field is the thread's name, as in our files and perf's. It is a frame if some line of
 * the file has one field only, or if a first field is one by its looks: an annotation ("_[k]"), a
 * line ("(app.py:3)"), a module, a method of Java, the first function of a thread. If no line's
 * first field has a name, these are frames too (Excimer).
 * async-profiler's "[name tid=12]" and py-spy's "thread (12): name" are always threads; alone on a
 * line they are samples of the thread without frames. py-spy's "process 12:"python3 a.py"" is always
 * a process, before its thread and behind those that it was started by. The user may say which it is.
 *
 * Annotations: _[k] kernel; _[j], _[0], _[1] JIT code; _[i] inlined; _[?] ours: perhaps another
 * function. ":12" after a name is its line, as in our files with --lines. There are no times and no
 * CPU time: counts become ticks.
 *
 * Numbers need not be counts of samples: stackcollapse-perf.pl adds up periods of events, others
 * have seconds or bytes. The format does not say so, so all lines decide (weights.h). Our own files
 * of such profiles, and of events, begin with a comment that says what they are.
 *
 * Comparisons (difffolded.pl, inferno-diff-folded) have two counts on each line, and are refused.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "formats/in/folded_lines.h"
#include "formats/in/frames.h"
#include "formats/in/import.h"
#include "formats/in/owners.h"
#include "formats/in/text_span.h"
#include "formats/in/weights.h"

#define PERIOD_MAX	(1ULL << 53)
#define LINE_MAX_DIGITS 9

/* Of 10 stacks of a comparison of two profiles, as many end in a number. */
#define COMPARED_STACKS 9

/* Most texts of fields occur often. */
struct field {
	struct span text;
	struct location_id location;
};

static uint64_t hash_field(const struct field *f)
{
	return hash_bytes(f->text.at, (size_t)(f->text.end - f->text.at));
}

#define is_same_field(a, b) is_same_span((a)->text, (b)->text)

DEFINE_MAP_OF(fields, struct field, hash_field, is_same_field);

/* One with a number may have a name in some of its lines. */
struct thread {
	struct string_id key; /* its name, if it has no number */
	uint32_t tid;	      /* 0: unknown */
	struct process_id process;
	struct thread_id id;
	struct string_id name;
	bool is_named;
	uint64_t rows;
};

static uint64_t hash_thread(const struct thread *t)
{
	return hash_combine(hash_u64(t->key.v), hash_u64((uint64_t)t->process.v << 32 | t->tid));
}

#define is_same_thread(a, b)                                                                       \
	((a)->key.v == (b)->key.v && (a)->tid == (b)->tid && (a)->process.v == (b)->process.v)

DEFINE_MAP_OF(threads, struct thread, hash_thread, is_same_thread);

struct folded {
	struct profile_builder *b;
	struct import_failure *failure;
	const char *start, *end;
	enum import_root root;
	struct span file_name; /* the thread of a line that names none */
	struct frames frames;
	struct process_id process; /* of the first line; of others where they name none */
	struct owners owners;	   /* processes that lines name */
	struct dso_id code, kernel, jit;
	struct fields fields;
	struct threads threads;
	uint32_t digits;  /* decimals that a tick counts */
	uint64_t period;  /* weights are of that many each; 0: no common one */
	bool has_offsets; /* behind names of functions */
	bool uncounted;
	uint64_t tick_cpu; /* as in struct profile; of our own files */
};

static int fail_at(const struct folded *f, const char *at, int error, const char *what)
{
	size_t line = 1;

	for (const char *c = f->start; c < at; c++)
		line += *c == '\n';
	return import_fail(f->failure, (uint64_t)(at - f->start), error, "line %zu: %s", line,
			   what);
}

/* ---- what the numbers are -------------------------------------------------------------------- */

static const uint64_t powers[FOLDED_FRACTION_DIGITS + 1] = {
	1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000,
};

/* In units of the file's last decimal. */
static uint64_t ticks_of(const struct folded *f, const struct folded_line *line)
{
	return saturating_add_u64(saturating_multiply_u64(line->count, powers[f->digits]),
				  line->billionths / powers[FOLDED_FRACTION_DIGITS - f->digits]);
}

/* The decimals of all numbers, without zeros at their end. */
static void note_fraction(struct folded *f, const struct folded_line *line)
{
	while (f->digits < FOLDED_FRACTION_DIGITS &&
	       line->billionths % powers[FOLDED_FRACTION_DIGITS - f->digits])
		f->digits++;
}

/* "main;f 10": the first of two counts, or "f 10" is a function. */
static bool ends_in_count(struct span stack)
{
	const char *semicolon = memrchr(stack.at, ';', span_size(stack));
	const char *space = memrchr(stack.at, ' ', span_size(stack));
	struct folded_line ignored;

	return semicolon && space && space > semicolon + 1 &&
	       folded_parse_count((struct span){space + 1, stack.end}, &ignored);
}

/* Stacks of one field count for neither: they may be names of threads, such as "worker 1". */
static int refuse_comparison(const struct folded *f)
{
	uint64_t stacks = 0, compared = 0;
	struct span rest = {f->start, f->end};
	struct folded_line line;

	while (folded_next_stack(&rest, &line)) {
		stacks += folded_has_callers(&line);
		compared += folded_has_callers(&line) && ends_in_count(line.stack);
	}
	return compared && compared * 10 >= stacks * COMPARED_STACKS
		       ? import_fail(f->failure, 0, -EPROTONOSUPPORT,
				     "its stacks have two counts: it is a comparison of two "
				     "profiles; give one of these")
		       : 0;
}

static int find_weights(struct folded *f)
{
	struct span rest = {f->start, f->end};
	struct weights weights = {};
	struct folded_line line;
	int err = 0;

	while (!err && folded_next_stack(&rest, &line)) {
		note_fraction(f, &line);
		err = weights__add(&weights, line.count);
	}
	f->uncounted |= f->digits > 0;
	if (!f->uncounted && !f->period && weights__are_no_counts(&weights, &f->period))
		f->uncounted = !f->period;
	if (f->uncounted)
		f->period = 0;
	weights__fini(&weights);
	return err;
}

/* What follows `prefix` in the first line; false: it begins otherwise. */
static bool find_own(const struct folded *f, const char *prefix, struct span *rest)
{
	size_t size = strlen(prefix);

	*rest = (struct span){f->start, line_end(f->start, f->end)};
	while (rest->end > rest->at && rest->end[-1] == '\r')
		rest->end--;
	if (span_size(*rest) <= size || memcmp(rest->at, prefix, size) != 0)
		return false;
	rest->at += size;
	return true;
}

static struct string_id own_string(struct folded *f, struct span text)
{
	const char *copy = frames__text(&f->frames, text.at, span_size(text));

	return profile_builder__string(f->b, copy ? copy : "");
}

/* "bytes", "bytes of memory" */
static void set_own_event(struct folded *f, struct span text)
{
	struct profile *session = profile_builder__session(f->b);
	const size_t size = strlen(FOLDED_OF);
	const char *of = memmem(text.at, span_size(text), FOLDED_OF, size);

	if (!of || of == text.at || of + size == text.end) {
		session->event_unit = own_string(f, text);
		return;
	}
	session->event_unit = own_string(f, (struct span){text.at, of});
	session->event = own_string(f, (struct span){of + size, text.end});
}

/* "12 ns of CPU time" */
static bool read_own_cpu(struct folded *f, struct span text)
{
	const char *copy = frames__text(&f->frames, text.at, span_size(text));
	int taken = 0;

	if (copy && sscanf(copy, FOLDED_CPU_UNIT "%n", &f->tick_cpu, &taken) == 1 && taken)
		return true;
	f->tick_cpu = 0;
	return false;
}

/* The first line of our own files of weights, or of events. */
static void read_own_unit(struct folded *f)
{
	struct span text;

	if (find_own(f, FOLDED_WEIGHTS, &text)) {
		f->uncounted = true;
		if (!read_own_cpu(f, text))
			set_own_event(f, text);
	} else if (find_own(f, FOLDED_SAMPLES, &text)) {
		while (text.at < text.end && is_digit(*text.at) && f->period < PERIOD_MAX)
			f->period = f->period * 10 + (uint64_t)(*text.at++ - '0');
		if (f->period && text.end - text.at > 1 && *text.at++ == ' ')
			set_own_event(f, text);
		else
			f->period = 0;
	}
}

/* One of the comments before the first stack. */
static int read_own_filter(struct folded *f)
{
	const char *end;
	int err = 0;

	for (const char *at = f->start; at < f->end && *at == '#' && !err;
	     at = end + (end < f->end)) {
		struct span line = {at, end = line_end(at, f->end)};

		if (span_begins(line, FOLDED_FILTER COLLAPSED_FILES ": "))
			profile_builder__session(f->b)->has_only_names = true;
		if (span_begins(line, FOLDED_FILTER))
			err = frames__part_of(&f->frames, "", at + strlen(FOLDED_FILTER),
					      (size_t)(end - at) - strlen(FOLDED_FILTER));
	}
	return err;
}

static void set_weights(const struct folded *f)
{
	struct profile *session = profile_builder__session(f->b);
	char unit[16] = "count";

	session->uncounted = f->uncounted;
	session->tick_cpu = f->tick_cpu;
	session->event_period = f->period;
	if (f->tick_cpu || (!f->uncounted && !f->period))
		return;
	if (f->digits)
		snprintf(unit, sizeof(unit), "0.%0*d", (int)f->digits, 1);
	if (!session->event.v)
		session->event = profile_builder__string(f->b, f->period ? "events" : "weight");
	if (!session->event_unit.v)
		session->event_unit = profile_builder__string(f->b, unit);
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* ":12" at the end; the name may not be empty. */
static uint32_t take_line(struct span *field)
{
	const char *at = field->end;
	uint32_t line = 0;

	while (at > field->at && is_digit(at[-1]) && field->end - at < LINE_MAX_DIGITS)
		at--;
	if (at == field->end || at - field->at < 2 || at[-1] != ':' || at[-2] == ':')
		return 0;
	for (const char *digit = at; digit < field->end; digit++)
		line = line * 10 + (uint32_t)(*digit - '0');
	if (line)
		field->end = at - 1;
	return line;
}

static struct location_id make_location(struct folded *f, struct span field)
{
	struct frame frame = {
		.dso = f->code,
		.category = CATEGORY_USER,
		.process = f->process,
		.elf_address = PROFILE_UNKNOWN_ADDRESS,
	};
	struct profile_line line = {};
	char kind = folded_annotation(field);
	const char *name;

	if (kind)
		field.end -= 4;
	if (f->has_offsets && folded_has_module(field))
		drop_offset(&field);
	if (kind == 'k') {
		frame.dso = f->kernel;
		frame.category = CATEGORY_KERNEL;
		frame.process = (struct process_id){0};
	} else if (kind && kind != 'i') {
		frame.dso = f->jit;
		frame.category = CATEGORY_JIT;
		frame.ambiguous = kind == '?';
	}
	line.line = take_line(&field);
	name = frames__text(&f->frames, field.at, span_size(field));
	if (!name)
		return (struct location_id){0};
	line.function = frames__function(&f->frames, name[strspn(name, " \t")] ? name : "[unknown]",
					 frame.dso, (struct string_id){0}, 0, 0);
	return frames__location(&f->frames, &frame, &line, 1);
}

static int location_of(struct folded *f, struct span text, struct location_id *location)
{
	bool is_new;
	struct field *field = fields__need(&f->fields, &(struct field){.text = text}, &is_new);

	if (field && is_new)
		field->location = make_location(f, text);
	if (!field || !field->location.v)
		return -ENOMEM;
	*location = field->location;
	return 0;
}

static int stack_of(struct folded *f, struct span rest, struct stack_id *stack)
{
	unsigned int depth = 0;
	struct span field;

	*stack = (struct stack_id){0};
	do {
		struct location_id location;
		int err;

		field = folded_next_field(&rest);
		if (++depth > IMPORT_DEPTH_MAX)
			return fail_at(f, field.at, -E2BIG, "a stack of more than 131072 frames");
		err = location_of(f, field, &location);
		if (err)
			return err;
		*stack = profile_builder__stack(f->b, *stack, location);
		if (!stack->v)
			return -ENOMEM;
	} while (field.end < rest.end); /* behind a last semicolon is a frame without a name */
	return 0;
}

static int stack_of_none(struct folded *f, struct stack_id *stack)
{
	struct location_id nowhere = frames__nowhere(&f->frames, f->process);

	*stack = nowhere.v ? profile_builder__stack(f->b, (struct stack_id){0}, nowhere)
			   : (struct stack_id){0};
	return stack->v ? 0 : -ENOMEM;
}

/* ---- threads --------------------------------------------------------------------------------- */

/* "[name tid=12]" is the thread 12 with that name. */
static uint32_t take_tid(struct span *field)
{
	const char *at = memmem(field->at, (size_t)(field->end - field->at), " tid=", 5);
	uint64_t tid = 0;

	for (const char *digit = at + 5; is_digit(*digit) && tid < UINT32_MAX; digit++)
		tid = tid * 10 + (uint64_t)(*digit - '0');
	*field = (struct span){field->at + 1, at};
	return tid < UINT32_MAX ? (uint32_t)tid : 0;
}

/* "thread (12): name" likewise; a thread without a name keeps the text. */
static uint32_t take_python_tid(struct span *field)
{
	const char *digit = field->at + strlen(FOLDED_PYTHON_THREAD);
	const char *close = memchr(field->at, ')', span_size(*field));
	uint64_t tid = 0;

	for (; is_digit(*digit) && tid < UINT32_MAX; digit++)
		tid = tid * 10 + (uint64_t)(*digit - '0');
	if (*digit != ')' || tid >= UINT32_MAX) /* the number of pthreads, or none */
		return 0;
	if (field->end - close > 2)
		*field = trim_left((struct span){close + 2, field->end});
	return (uint32_t)tid;
}

static struct process_id add_process(struct folded *f, struct string_id name)
{
	return profile_builder__process(
		f->b, &(struct profile_process){.is_target = true,
						.name = name,
						.start = profile_builder__session(f->b)->start});
}

/* The program's name in a command line: its arguments are no part of a profile. */
static struct span program_of(struct span command)
{
	const char *slash, *space = memchr(command.at, ' ', span_size(command));

	command.end = space ? space : command.end;
	slash = memrchr(command.at, '/', span_size(command));
	return slash ? (struct span){slash + 1, command.end} : command;
}

/* Whose a line is, taken from its fields. A process without a marked thread is its main thread. */
struct line_owner {
	struct process_id process; /* 0: that of the file, or one for the first field */
	uint32_t pid;		   /* 0: unknown */
	struct span thread;
	bool has_thread; /* of these fields, or of the process */
};

static int take_owner(struct folded *f, struct span *fields, struct line_owner *owner)
{
	struct sample_owner process = {};
	struct span command, rest = *fields, first;

	*owner = (struct line_owner){};
	if (f->root == IMPORT_ROOT_FRAME)
		return 0;
	process.pid = owner->pid = folded_take_processes(&rest, &command);
	if (owner->pid)
		*fields = rest;
	first = folded_next_field(&rest);
	owner->has_thread = folded_is_marked_thread(first);
	if (owner->has_thread) {
		owner->thread = first;
		*fields = rest;
	}
	if (!owner->pid)
		return 0;
	command = program_of(command);
	if (!owner->has_thread)
		owner->thread = command;
	owner->has_thread = true;
	process.process = own_string(f, command);
	return owners__process(&f->owners, &process, &owner->process);
}

/* Of the first stack, or of the file. */
static int find_process(struct folded *f)
{
	struct span rest = {f->start, f->end};
	struct folded_line line;
	struct line_owner owner = {};
	int err = folded_next_stack(&rest, &line) ? take_owner(f, &line.stack, &owner) : 0;

	f->process = owner.process.v ? owner.process : add_process(f, own_string(f, f->file_name));
	return err;
}

static void add_thread(struct folded *f, const struct line_owner *owner, struct thread *thread)
{
	struct process_id process = owner->process.v ? owner->process : f->process;
	bool is_main = owner->pid ? thread->tid == owner->pid : f->threads.count == 1;

	if (f->root == IMPORT_ROOT_PROCESS && !owner->pid) {
		process = add_process(f, thread->name);
		is_main = true;
	}
	thread->id = profile_builder__thread(f->b, process, thread->tid, is_main, thread->name,
					     profile_builder__session(f->b)->start);
}

/* The thread of a line, made at first use, and its name there. */
static int thread_of(struct folded *f, const struct line_owner *owner, struct thread **found)
{
	struct span field = owner->thread;
	uint32_t tid = folded_is_async_thread(field)	? take_tid(&field)
		       : folded_is_python_thread(field) ? take_python_tid(&field)
							: owner->pid;
	const char *text = frames__text(&f->frames, field.at, span_size(field));
	struct thread wanted = {.tid = tid, .process = owner->process}, *thread;
	bool is_new, is_named = !folded_is_python_thread(field);

	if (!text)
		return -ENOMEM;
	wanted.name = profile_builder__string(f->b, text);
	wanted.key = tid ? (struct string_id){0} : wanted.name;
	thread = *found = threads__need(&f->threads, &wanted, &is_new);
	if (!thread)
		return -ENOMEM;
	if (is_new)
		add_thread(f, owner, thread);
	else if (is_named && !thread->is_named)
		profile_builder__thread_name(f->b, thread->id, wanted.name);
	if (is_named)
		thread->name = wanted.name;
	thread->is_named |= is_named;
	return 0;
}

/* The first field is the thread where that is not marked, unless it is all that there is. */
static void take_first_field(const struct folded *f, struct span *fields, struct line_owner *owner)
{
	struct span rest = *fields, first = folded_next_field(&rest);

	if (owner->has_thread)
		return;
	owner->thread = f->file_name;
	if (f->root == IMPORT_ROOT_FRAME || rest.at == rest.end)
		return;
	*fields = rest;
	if (first.at < first.end)
		owner->thread = first;
}

static int add_line(struct folded *f, const struct folded_line *line)
{
	struct span rest = line->stack;
	struct profile_sample row = {
		.kind = SAMPLE_CPU, .ticks = ticks_of(f, line), .end = STACK_END_ROOT};
	struct line_owner owner;
	struct thread *thread;
	int err;

	if (!row.ticks)
		return 0;
	row.weight = saturating_multiply_u64(row.ticks, f->tick_cpu);
	if (f->period) {
		row.events = row.ticks;
		row.ticks /= f->period;
	}
	err = take_owner(f, &rest, &owner);
	if (err)
		return err;
	take_first_field(f, &rest, &owner);
	err = (rest.at == rest.end ? stack_of_none(f, &row.stack) : stack_of(f, rest, &row.stack))
		      ?: thread_of(f, &owner, &thread);
	if (err)
		return err;
	row.comm = thread->name;
	/* made up: rows are in the order of the file */
	row.time = profile_builder__session(f->b)->start + ++thread->rows;
	return frames__sample(&f->frames, thread->id, &row, f->failure,
			      (uint64_t)(line->stack.at - f->start));
}

/*
 * Of a file that was cut within its last number, which nothing else shows. Programs that join lines
 * write such files, too, so the number counts as it is. A single line may come from a shell.
 */
static bool ends_in_number(const struct folded *f, uint64_t lines)
{
	struct folded_line line;
	const char *newline = memrchr(f->start, '\n', (size_t)(f->end - f->start));

	return lines > 1 && newline && is_digit(f->end[-1]) &&
	       !folded_split_line((struct span){newline + 1, f->end}, &line);
}

/* Other lines are counted, as in flamegraph.pl; most lines are stacks, or it is another file. */
static int read_lines(struct folded *f)
{
	const char *first_bad = NULL;
	uint64_t good = 0, *bad = &f->frames.left_out[LEFT_OUT_LINES];
	int err = 0;

	for (const char *at = f->start, *newline; at < f->end && !err; at = newline + 1) {
		struct folded_line line;

		newline = line_end(at, f->end);
		err = folded_split_line((struct span){at, newline}, &line);
		if ((err == -EBADMSG || err == -ENODATA) && !(*bad)++)
			first_bad = at;
		good += !err;
		err = err ? 0 : add_line(f, &line);
	}
	if (!err && *bad > good)
		return fail_at(f, first_bad, -EBADMSG, "no stack and count");
	f->frames.left_out[LEFT_OUT_NO_END] += ends_in_number(f, good + *bad);
	return err;
}

/* The last number of a file that is cut may have more digits. */
static const char *end_of(const struct import_request *request)
{
	const char *bytes = (const char *)request->bytes;
	const char *newline = request->cut ? memrchr(bytes, '\n', request->size) : NULL;

	if (newline)
		return newline + 1;
	return request->cut ? bytes : bytes + request->size;
}

static int read_folded(const struct import_request *request, struct import_failure *failure)
{
	struct profile *session = profile_builder__session(request->builder);
	const char *bytes = (const char *)request->bytes;
	struct folded f = {
		.b = request->builder,
		.frames = {.b = request->builder, .left_out = {[LEFT_OUT_REST] = request->cut > 0}},
		.owners = {.b = request->builder, .start = PROFILE_MADE_UP_START},
		.failure = failure,
		.start = bytes,
		.end = end_of(request),
		.root = request->root,
		.file_name = {request->name, request->name + strlen(request->name)},
	};
	int err;

	if (memchr(bytes, 0, request->size))
		return import_fail(
			failure, (uint64_t)((const char *)memchr(bytes, 0, request->size) - bytes),
			-EBADMSG, "a zero byte in folded stacks");
	session->start = PROFILE_MADE_UP_START;
	session->untimed = true;
	session->finished_symbols = true;
	f.code = frames__dso(&f.frames, DSO_UNKNOWN, "", 0);
	f.kernel = frames__dso(&f.frames, DSO_KERNEL, "[kernel]", 0);
	f.jit = frames__dso(&f.frames, DSO_JIT, "", 0);
	if (f.root == IMPORT_ROOT_AUTO)
		f.root = folded_have_threads((struct span){f.start, f.end}) ? IMPORT_ROOT_THREAD
									    : IMPORT_ROOT_FRAME;
	f.has_offsets = folded_have_offsets((struct span){f.start, f.end});
	read_own_unit(&f);
	err = find_process(&f) ?: read_own_filter(&f) ?: refuse_comparison(&f) ?: find_weights(&f);
	set_weights(&f);
	err = err ?: read_lines(&f);
	frames__fini(&f.frames);
	fields__fini(&f.fields);
	threads__fini(&f.threads);
	owners__fini(&f.owners);
	return err;
}

const struct importer folded_importer = {
	.name = "folded",
	.description = "folded stacks: stackcollapse, inferno, async-profiler, sysprof",
	.reads_cut = true,
	.recognizes = folded_recognizes,
	.read = read_folded,
};
