/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * speedscope's own format: py-spy, rbspy, pyinstrument, dotnet-trace, speedscope's export.
 *
 * Functions are shared by all profiles of the file. A profile is a thread: samples with weights, or
 * events that open and close functions. Its unit is of time, bytes, or none, which are counts.
 * Times are what the tool measured; the file does not say whether of a CPU or of a clock. So they
 * are an event, "time", as bytes are "memory".
 *
 * Samples have no times but an order. Events in a unit of time have times; a thread is idle where
 * no function is open. If only some of a file's profiles have times, none has. How many samples
 * events are of is unknown, and so is that of counts with fractions. Numbers without a unit need
 * not be counts of samples (weights.h).
 *
 * One event counts in a profile: that of the active one. Profiles in other units are left out.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "formats/in/frames.h"
#include "formats/in/import.h"
#include "formats/in/json.h"
#include "formats/in/owners.h"
#include "formats/in/weights.h"

#define TIME_LIMIT (1LL << 60)
#define NUMBER_MAX INT32_MAX /* of functions and profiles */

enum quantity { QUANTITY_NONE, QUANTITY_COUNT, QUANTITY_TIME, QUANTITY_BYTES };

/* `scale`: decimals from the unit to ns. */
static const struct unit {
	const char *name;
	enum quantity quantity;
	int scale;
} units[] = {
	{"none", QUANTITY_COUNT, 0},	    {"bytes", QUANTITY_BYTES, 0},
	{"nanoseconds", QUANTITY_TIME, 0},  {"microseconds", QUANTITY_TIME, 3},
	{"milliseconds", QUANTITY_TIME, 6}, {"seconds", QUANTITY_TIME, 9},
};

/*
 * The decimals of counts with fractions, which are weights and no numbers of samples: 9, less if the
 * numbers are too large for that, more for smaller ones.
 */
#define FRACTION_SCALE	   9
#define FRACTION_SCALE_MAX 18
#define BILLION		   1000000000

/* A function at a place, shared by the profiles. `open`: by events, how often it is. */
struct shared_frame {
	struct json_value value;
	struct location_id location;
	bool is_read, is_damaged;
	uint32_t open;
};

/* A function that an event has opened, and the stack up to it. */
struct open_frame {
	uint32_t frame;
	struct stack_id stack;
};

/* What is left of the weights of a stack below one unit: goes to its next sample. */
struct remainder {
	int32_t billionths; /* below 0: the last sample was rounded up */
	uint32_t small;	    /* samples that are only in it */
};

struct scope_profile {
	struct json_value name, start, end, samples, weights, events;
	const struct unit *unit;
	bool is_evented;
};

struct speedscope {
	const struct import_request *request;
	struct json_text text;
	struct profile_builder *b;
	struct frames frames;
	struct owners owners;
	struct process_id process; /* of the first thread, and of all functions */
	struct dso_id code;
	VEC(struct shared_frame) shared; /* the last one: those that the file does not have */
	VEC(struct scope_profile) profiles;
	VEC(struct open_frame) open;
	VEC(struct remainder) remainders; /* by stack */
	bool lines_are_executed;	  /* else the line of a function is where it begins */
	enum quantity quantity;
	int fraction; /* more decimals of counts */
	bool untimed, uncounted;
	uint64_t period; /* weights are of that many each; 0: no common one */
	struct stack_id idle;
	int64_t base, last; /* ns: the first and the last time of the file */
};

/* A profile as it is read. */
struct scope_thread {
	struct thread_id id;
	struct string_id comm;
	uint64_t rows;
	bool is_idle; /* since its last row */
	int scale;
	int64_t now;
};

/* ---- values ---------------------------------------------------------------------------------- */

static bool read_value(const struct speedscope *s, struct json_value value, int scale, int64_t *to)
{
	struct json_number number;

	return json_type(value) == JSON_NUMBER && !json_parse_number(&s->text, value, &number) &&
	       !json_scaled(&number, scale, to);
}

/* The number of a function; that of the last one if the file does not have it. */
static uint32_t frame_number(const struct speedscope *s, const struct json_number *number)
{
	int64_t frame;

	if (number->is_null || json_scaled(number, 0, &frame) || frame < 0 ||
	    (size_t)frame >= s->shared.count)
		return (uint32_t)s->shared.count - 1;
	return (uint32_t)frame;
}

/* A text, "" if it is none. */
static int read_text(const struct speedscope *s, struct json_value value, char **text)
{
	int err = json_type(value) == JSON_STRING ? json_string_copy(&s->text, value, text) : 0;

	if (err == -ENOMEM)
		return err;
	if (!*text)
		*text = strdup("");
	return *text ? 0 : -ENOMEM;
}

/* ---- functions ------------------------------------------------------------------------------- */

static uint32_t read_place(const struct speedscope *s, struct json_value value)
{
	int64_t place;

	return read_value(s, value, 0, &place) && place > 0 && place <= INT32_MAX ? (uint32_t)place
										  : 0;
}

static int make_location(struct speedscope *s, struct shared_frame *f)
{
	const struct frame frame = {
		.dso = s->code,
		.category = CATEGORY_USER,
		.process = s->process,
		.elf_address = PROFILE_UNKNOWN_ADDRESS,
	};
	_cleanup_free_ char *name = NULL, *path = NULL;
	struct json_value values[4];
	struct profile_line line = {};
	uint32_t at, column;
	int err;

	f->is_read = true;
	f->is_damaged = json_type(f->value) != JSON_OBJECT ||
			json_members(&s->text, f->value, {"name", &values[0]}, {"file", &values[1]},
				     {"line", &values[2]}, {"col", &values[3]});
	if (f->is_damaged)
		return 0;
	err = read_text(s, values[0], &name) ?: read_text(s, values[1], &path);
	if (err)
		return err;
	line.file = frames__file(&s->frames, path);
	at = read_place(s, values[2]);
	column = read_place(s, values[3]);
	if (s->lines_are_executed)
		line.line = at;
	line.function = frames__function(&s->frames, *name ? name : "[unknown]", s->code, line.file,
					 s->lines_are_executed ? 0 : at,
					 s->lines_are_executed ? 0 : column);
	if (!line.line)
		line.file.v = 0;
	f->location = frames__location(&s->frames, &frame, &line, 1);
	return f->location.v ? 0 : -ENOMEM;
}

/* Put a function above a stack; 0 if the file does not have it. */
static int push_frame(struct speedscope *s, uint32_t number, struct stack_id *stack)
{
	struct shared_frame *f = &s->shared.data[number];
	int err = f->is_read ? 0 : make_location(s, f);

	if (err || f->is_damaged) {
		stack->v = 0;
		return err;
	}
	*stack = profile_builder__stack(s->b, *stack, f->location);
	return stack->v ? 0 : -ENOMEM;
}

static int fail_deep(const struct speedscope *s, const char *at)
{
	return json_fail(&s->text, at, -E2BIG, "a stack of more than %u frames", IMPORT_DEPTH_MAX);
}

/* Later than the profile has room for. */
static bool is_late(const struct speedscope *s, int64_t time)
{
	return time > s->base && (uint64_t)time - (uint64_t)s->base > TIME_LIMIT;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Is how many samples there are no number beside the weights? */
static bool has_weights_alone(const struct speedscope *s)
{
	return s->uncounted || s->quantity == QUANTITY_COUNT;
}

/* A stack and its weight, in the unit of the event; `time`: ns, if there are times. */
static int add_row(struct speedscope *s, struct scope_thread *t, struct stack_id stack,
		   int64_t weight, int64_t time)
{
	struct profile_sample row = {
		.kind = SAMPLE_CPU,
		.stack = stack,
		.comm = t->comm,
		.end = STACK_END_ROOT,
		.ticks = 1,
	};

	row.time = PROFILE_MADE_UP_START +
		   (s->untimed ? ++t->rows : (uint64_t)(time - s->base) + 1);
	if (has_weights_alone(s)) {
		row.ticks = (uint64_t)weight;
	} else {
		row.events = (uint64_t)weight;
		row.exact = true; /* also 0 */
	}
	if (s->period) {
		row.events = row.ticks;
		row.ticks /= s->period;
	}
	t->is_idle = false;
	return frames__sample(&s->frames, t->id, &row, s->text.failure, 0);
}

/* From here on the thread is idle. */
static int add_idle(struct speedscope *s, struct scope_thread *t, int64_t time)
{
	const struct frame frame = {
		.dso = frames__dso(&s->frames, DSO_UNKNOWN, "", 1), /* no code */
		.category = CATEGORY_OTHER,
		.process = s->process,
		.elf_address = PROFILE_UNKNOWN_ADDRESS,
	};
	struct profile_sample row = {
		.kind = SAMPLE_IDLE,
		.comm = t->comm,
		.end = STACK_END_ROOT,
		.time = PROFILE_MADE_UP_START + (uint64_t)(time - s->base) + 1,
	};

	if (t->is_idle)
		return 0;
	t->is_idle = true;
	if (!s->idle.v) {
		const struct profile_line line = {
			.function = frames__function(&s->frames, "(idle)", frame.dso,
						     (struct string_id){0}, 0, 0)};

		s->idle = profile_builder__stack(s->b, (struct stack_id){0},
						 frames__location(&s->frames, &frame, &line, 1));
	}
	row.stack = s->idle;
	return frames__sample(&s->frames, t->id, &row, s->text.failure, 0);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Root first. A sample with a function that the file does not have has no stack, nor has []. */
static int read_stack(struct speedscope *s, struct json_value sample, struct stack_id *stack,
		      bool *is_missing)
{
	struct json_column column;
	struct json_number number;
	size_t depth = 0;
	int more = 0, err = 0;

	stack->v = 0;
	*is_missing = json_column__init(&column, &s->text, sample) != 0;
	while (!*is_missing && !err && (more = json_column__next(&column, &number)) > 0) {
		if (++depth > IMPORT_DEPTH_MAX)
			return fail_deep(s, number.at);
		err = push_frame(s, frame_number(s, &number), stack);
		*is_missing = !stack->v;
	}
	*is_missing |= more < 0;
	return err;
}

/*
 * Sums of a stack are rounded once, to the nearest: a sample gets the whole units that are due by
 * then. A sample of less counts all the same, where samples have a count beside their weight.
 */
static int add_weight(struct speedscope *s, struct scope_thread *t, struct stack_id stack,
		      int64_t weight, uint32_t billionths)
{
	struct remainder *r = vec_at(&s->remainders, stack.v);
	int64_t due;

	if (!r)
		return -ENOMEM;
	due = (int64_t)r->billionths + billionths;
	weight += due >= BILLION / 2;
	r->billionths = (int32_t)(due - (due >= BILLION / 2 ? BILLION : 0));
	if (weight || !has_weights_alone(s))
		return add_row(s, t, stack, weight, 0);
	r->small++;
	return 0;
}

static int add_sample(struct speedscope *s, struct scope_thread *t, struct json_value sample,
		      const struct json_number *number)
{
	struct stack_id stack;
	bool is_missing;
	int64_t weight;
	uint32_t billionths;
	int err = read_stack(s, sample, &stack, &is_missing);

	if (err)
		return err;
	if (number->is_null || json_split(number, t->scale, &weight, &billionths) ||
	    weight > TIME_LIMIT)
		s->frames.left_out[LEFT_OUT_WEIGHTS]++;
	else if (is_missing)
		s->frames.left_out[LEFT_OUT_MISSING_NODES]++;
	else if (number->mantissa && stack.v)
		return add_weight(s, t, stack, weight, billionths);
	return 0;
}

static int read_samples(struct speedscope *s, const struct scope_profile *p, struct scope_thread *t)
{
	const struct json_number none = {.is_null = true};
	struct json_column weights = {};
	struct json_number number;
	struct json_walk walk;
	bool has_weights = json_type(p->weights) == JSON_ARRAY;
	int more = json_walk__init(&walk, &s->text, p->samples.at, JSON_ARRAY);

	if (!more && has_weights)
		more = json_column__init(&weights, &s->text, p->weights);
	while (!more && (more = json_walk__next(&walk)) > 0) {
		int got = has_weights ? json_column__next(&weights, &number) : 0;

		more = got < 0 ? got : add_sample(s, t, walk.value, got > 0 ? &number : &none);
	}
	while (!more && has_weights && (more = json_column__next(&weights, &number)) > 0) {
		s->frames.left_out[LEFT_OUT_WEIGHTS]++;
		more = 0;
	}
	return more;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* What was open until `time`. */
static int add_interval(struct speedscope *s, struct scope_thread *t, int64_t time)
{
	const struct open_frame *top;
	int64_t since = t->now;

	if (time <= since)
		return 0;
	t->now = time;
	if (!s->open.count)
		return s->untimed ? 0 : add_idle(s, t, since);
	top = &s->open.data[s->open.count - 1];
	if (!top->stack.v) {
		s->frames.left_out[LEFT_OUT_MISSING_NODES]++;
		return s->untimed ? 0 : add_idle(s, t, since);
	}
	return add_row(s, t, top->stack, time - since, since);
}

static int open_frame(struct speedscope *s, uint32_t frame, const char *at)
{
	struct open_frame next = {.frame = frame};
	bool is_missing = false;
	int err = 0;

	if (s->open.count == IMPORT_DEPTH_MAX)
		return fail_deep(s, at);
	if (s->open.count) {
		next.stack = s->open.data[s->open.count - 1].stack;
		is_missing = !next.stack.v;
	}
	if (!is_missing)
		err = push_frame(s, frame, &next.stack);
	s->shared.data[frame].open++;
	return err ?: vec_push(&s->open, next);
}

/* Functions above the one that is closed end with it. Each is opened and closed once. */
static void close_frame(struct speedscope *s, uint32_t frame)
{
	uint64_t *unmatched = &s->frames.left_out[LEFT_OUT_UNMATCHED];
	uint32_t closed = frame;

	if (!s->shared.data[frame].open) {
		(*unmatched)++;
		return;
	}
	*unmatched += s->open.data[s->open.count - 1].frame != frame;
	do {
		closed = s->open.data[--s->open.count].frame;
		s->shared.data[closed].open--;
	} while (closed != frame);
}

static int take_event(struct speedscope *s, struct scope_thread *t, struct json_value event)
{
	struct json_value type, at, frame;
	struct json_number number = {.is_null = true};
	int64_t time;
	int err = 0;

	if (json_type(event) != JSON_OBJECT ||
	    json_members(&s->text, event, {"type", &type}, {"at", &at}, {"frame", &frame}) ||
	    (!json_is(type, "\"O\"") && !json_is(type, "\"C\""))) {
		s->frames.left_out[LEFT_OUT_EVENTS]++;
		return 0;
	}
	/* a function that opens at a wrong time opens all the same: later events close it */
	if (!read_value(s, at, t->scale, &time) || time < t->now || is_late(s, time))
		s->frames.left_out[LEFT_OUT_BACKWARDS]++;
	else
		err = add_interval(s, t, time);
	if (err)
		return err;
	if (json_type(frame) == JSON_NUMBER && json_parse_number(&s->text, frame, &number))
		number.is_null = true;
	if (json_is(type, "\"O\""))
		return open_frame(s, frame_number(s, &number), event.at);
	close_frame(s, frame_number(s, &number));
	return 0;
}

static int read_events(struct speedscope *s, const struct scope_profile *p, struct scope_thread *t)
{
	struct json_walk walk;
	int64_t end;
	int more = json_walk__init(&walk, &s->text, p->events.at, JSON_ARRAY);

	if (!read_value(s, p->start, t->scale, &t->now) || t->now < s->base || is_late(s, t->now))
		t->now = s->base;
	while (!more && (more = json_walk__next(&walk)) > 0)
		more = take_event(s, t, walk.value);
	/* what is open lasts until the end */
	if (!more && read_value(s, p->end, t->scale, &end) && !is_late(s, end))
		more = add_interval(s, t, end);
	if (!more && !s->untimed)
		more = add_idle(s, t, t->now);
	while (s->open.count)
		s->shared.data[s->open.data[--s->open.count].frame].open--;
	s->last = t->now > s->last ? t->now : s->last;
	return more;
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The number behind a word: "Thread (12)", "Thread 12", "pid: 12"; 0: there is none. */
static uint32_t number_behind(const char *name, const char *word)
{
	for (const char *at = name; (at = strcasestr(at, word)); at++) {
		const char *digit = at + strlen(word);
		uint64_t number = 0;

		if (at > name && is_letter(at[-1]))
			continue;
		digit += strspn(digit, " :=(#");
		for (; is_digit(*digit) && number <= UINT32_MAX; digit++)
			number = number * 10 + (uint64_t)(*digit - '0');
		if (number && number <= UINT32_MAX && !is_digit(*digit) && !is_letter(*digit))
			return (uint32_t)number;
	}
	return 0;
}

static int make_thread(struct speedscope *s, const struct scope_profile *p, struct scope_thread *t)
{
	_cleanup_free_ char *name = NULL;
	struct sample_owner owner = {};
	struct owner_thread *thread;
	struct process_id process;
	int err = read_text(s, p->name, &name);

	if (err)
		return err;
	owner.pid = number_behind(name, "process") ?: number_behind(name, "pid");
	owner.tid = number_behind(name, "thread") ?: number_behind(name, "tid");
	owner.thread = profile_builder__string(s->b, name);
	err = owners__thread(&s->owners, &owner, owner.thread, &thread)
		      ?: owners__process(&s->owners, &owner, &process);
	if (err)
		return err;
	if (!s->process.v)
		s->process = process;
	*t = (struct scope_thread){
		.id = thread->id,
		.comm = owner.thread.v ? owner.thread : thread->name,
		.scale = p->unit->scale + s->fraction,
	};
	/* times begin again in a second profile of a thread: it is a thread of its own */
	if (thread->rows++)
		t->id = profile_builder__thread(s->b, process, owner.tid, false, t->comm,
						PROFILE_MADE_UP_START);
	return t->id.v ? 0 : -ENOMEM;
}

static int read_thread(struct speedscope *s, const struct scope_profile *p)
{
	struct scope_thread t;
	int err = make_thread(s, p, &t);

	if (err)
		return err;
	return p->is_evented ? read_events(s, p, &t) : read_samples(s, p, &t);
}

/* ---- the file -------------------------------------------------------------------------------- */

static int add_frame(void *context, struct json_value value)
{
	struct speedscope *s = context;

	if (s->shared.count == NUMBER_MAX)
		return json_fail(&s->text, value.at, -E2BIG, "more than %d functions", NUMBER_MAX);
	return vec_push(&s->shared, (struct shared_frame){.value = value});
}

static const struct unit *find_unit(struct json_value value)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (json_type(value) == JSON_STRING &&
		    (size_t)(value.end - value.at) == strlen(units[i].name) + 2 &&
		    !memcmp(value.at + 1, units[i].name, strlen(units[i].name)))
			return &units[i];
	return NULL;
}

/* Profiles that are no profiles stay in the list, without a unit: the active one has a number. */
static int add_profile(void *context, struct json_value value)
{
	struct speedscope *s = context;
	struct scope_profile p = {};
	struct json_value type = {}, unit = {};

	if (json_type(value) == JSON_OBJECT &&
	    !json_members(&s->text, value, {"type", &type}, {"unit", &unit}, {"name", &p.name},
			  {"startValue", &p.start}, {"endValue", &p.end}, {"samples", &p.samples},
			  {"weights", &p.weights}, {"events", &p.events}))
		p.unit = find_unit(unit);
	p.is_evented = json_is(type, "\"evented\"");
	if (p.is_evented ? json_type(p.events) != JSON_ARRAY
			 : !json_is(type, "\"sampled\"") || json_type(p.samples) != JSON_ARRAY)
		p.unit = NULL;
	s->frames.left_out[LEFT_OUT_PROFILES] += !p.unit;
	return vec_push(&s->profiles, p);
}

static bool is_chosen(const struct speedscope *s, const struct scope_profile *p)
{
	return p->unit && p->unit->quantity == s->quantity;
}

/* The active profile decides, or the first one that there is. */
static void choose_quantity(struct speedscope *s, struct json_value active)
{
	int64_t number;

	if (read_value(s, active, 0, &number) && number >= 0 &&
	    (uint64_t)number < s->profiles.count && s->profiles.data[number].unit)
		s->quantity = s->profiles.data[number].unit->quantity;
	for (size_t i = 0; i < s->profiles.count && !s->quantity; i++)
		if (s->profiles.data[i].unit)
			s->quantity = s->profiles.data[i].unit->quantity;
	s->untimed = s->quantity != QUANTITY_TIME;
	for (size_t i = 0; i < s->profiles.count; i++) {
		const struct scope_profile *p = &s->profiles.data[i];

		s->frames.left_out[LEFT_OUT_OTHER_UNIT] += p->unit && !is_chosen(s, p);
		s->untimed |= is_chosen(s, p) && !p->is_evented;
		s->uncounted |= is_chosen(s, p) && p->is_evented;
	}
}

/* What there is among the numbers of all profiles. */
struct number_range {
	bool has_fractions;
	double smallest; /* weight; 0: none */
	double sum;	 /* of weights; of events the last time, which is their sum */
};

static void see_number(struct number_range *range, const struct json_number *number, bool is_weight)
{
	double value = (double)number->mantissa * pow(10, number->exponent);
	int64_t whole;
	uint32_t rest;

	if (number->is_null || number->negative || !isnormal(value))
		return;
	if (value < 0.5 || (!json_split(number, 0, &whole, &rest) && rest && rest < BILLION - 1))
		range->has_fractions = true; /* and is no whole number that a sum has missed */
	range->sum = is_weight ? range->sum + value : fmax(range->sum, value);
	if (is_weight)
		range->smallest = range->smallest > 0 ? fmin(range->smallest, value) : value;
}

static void see_numbers(const struct speedscope *s, const struct scope_profile *p,
			struct number_range *range)
{
	struct json_number number;
	struct json_column weights;
	struct json_walk events;
	struct json_value at;

	if (!p->is_evented) {
		if (json_type(p->weights) != JSON_ARRAY ||
		    json_column__init(&weights, &s->text, p->weights))
			return;
		while (json_column__next(&weights, &number) > 0)
			see_number(range, &number, true);
		return;
	}
	if (json_walk__init(&events, &s->text, p->events.at, JSON_ARRAY))
		return;
	while (json_walk__next(&events) > 0)
		if (json_type(events.value) == JSON_OBJECT &&
		    !json_members(&s->text, events.value, {"at", &at}) &&
		    json_type(at) == JSON_NUMBER && !json_parse_number(&s->text, at, &number))
			see_number(range, &number, false);
}

/* The decimals that numbers with fractions are kept with. */
static int fraction_scale(const struct number_range *range)
{
	int scale = FRACTION_SCALE;

	while (scale > 0 && range->sum * pow(10, scale) > (double)TIME_LIMIT)
		scale--;
	while (scale < FRACTION_SCALE_MAX && range->smallest * pow(10, scale) < 0.5 &&
	       range->smallest > 0 && range->sum * pow(10, scale + 1) <= (double)TIME_LIMIT)
		scale++;
	return scale;
}

static void find_fractions(struct speedscope *s)
{
	struct number_range range = {};

	for (size_t i = 0; i < s->profiles.count && s->quantity == QUANTITY_COUNT; i++)
		if (is_chosen(s, &s->profiles.data[i]))
			see_numbers(s, &s->profiles.data[i], &range);
	s->fraction = range.has_fractions ? fraction_scale(&range) : 0;
	s->uncounted |= range.has_fractions;
}

static int add_weights(const struct speedscope *s, const struct scope_profile *p,
		       struct weights *weights)
{
	struct json_column column;
	struct json_number number;
	int64_t weight;
	int err = 0;

	if (json_type(p->weights) != JSON_ARRAY || json_column__init(&column, &s->text, p->weights))
		return 0;
	while (!err && json_column__next(&column, &number) > 0)
		if (!number.is_null && !json_scaled(&number, 0, &weight) && weight > 0 &&
		    weight <= TIME_LIMIT)
			err = weights__add(weights, (uint64_t)weight);
	return err;
}

/* Of whole numbers of samples; others are weights by their form. */
static int find_weights(struct speedscope *s)
{
	struct weights weights = {};
	int err = 0;

	if (s->quantity != QUANTITY_COUNT || s->uncounted)
		return 0;
	for (size_t i = 0; i < s->profiles.count && !err; i++)
		if (is_chosen(s, &s->profiles.data[i]))
			err = add_weights(s, &s->profiles.data[i], &weights);
	if (!err && weights__are_no_counts(&weights, &s->period))
		s->uncounted = !s->period;
	weights__fini(&weights);
	return err;
}

/* The time of the first event that has one. */
static bool first_time(const struct speedscope *s, const struct scope_profile *p, int scale,
		       int64_t *time)
{
	struct json_walk walk;
	struct json_value at;

	if (json_walk__init(&walk, &s->text, p->events.at, JSON_ARRAY))
		return false;
	while (json_walk__next(&walk) > 0)
		if (json_type(walk.value) == JSON_OBJECT &&
		    !json_members(&s->text, walk.value, {"at", &at}) &&
		    read_value(s, at, scale, time))
			return true;
	return false;
}

/* Where time begins: it may be 1970 for the events, and 0 for the profile. */
static void find_base(struct speedscope *s)
{
	bool found = false;

	for (size_t i = 0; i < s->profiles.count; i++) {
		const struct scope_profile *p = &s->profiles.data[i];
		int64_t start, first;
		int scale;

		if (!is_chosen(s, p) || !p->is_evented)
			continue;
		scale = p->unit->scale + s->fraction;
		if (!first_time(s, p, scale, &first))
			continue;
		if (!read_value(s, p->start, scale, &start) || start > first ||
		    (uint64_t)first - (uint64_t)start > TIME_LIMIT / 2)
			start = first;
		s->base = !found || start < s->base ? start : s->base;
		found = true;
	}
	s->last = s->base;
}

/* The unit of the event: of counts with fractions "0.001" for three decimals. */
static struct string_id event_unit(const struct speedscope *s)
{
	char unit[FRACTION_SCALE_MAX + 3];

	if (s->quantity == QUANTITY_TIME)
		return profile_builder__string(s->b, "nanoseconds");
	if (s->quantity == QUANTITY_BYTES)
		return profile_builder__string(s->b, "bytes");
	if (!s->fraction)
		return profile_builder__string(s->b, "count");
	snprintf(unit, sizeof(unit), "0.%0*d", s->fraction, 1);
	return profile_builder__string(s->b, unit);
}

static int set_event(struct speedscope *s)
{
	static const char *const events[] = {
		[QUANTITY_COUNT] = "weight", [QUANTITY_TIME] = "time", [QUANTITY_BYTES] = "memory"};
	struct profile *session = profile_builder__session(s->b);
	int err;

	find_fractions(s);
	err = find_weights(s);
	if (err || s->quantity == QUANTITY_NONE ||
	    (s->quantity == QUANTITY_COUNT && !s->uncounted && !s->period))
		return err;
	session->event = profile_builder__string(s->b, s->period ? "events" : events[s->quantity]);
	session->event_unit = event_unit(s);
	return 0;
}

/* py-spy has the executing line of each function; other tools have its first one. */
static int read_exporter(struct speedscope *s, struct json_value exporter)
{
	_cleanup_free_ char *name = NULL;
	int err = read_text(s, exporter, &name);

	s->lines_are_executed = !err && !strncmp(name, "py-spy", 6);
	return err;
}

static int read_parts(struct speedscope *s)
{
	struct json_value shared, profiles, active, exporter, list;
	int err = json_document(&s->text, {"shared", &shared}, {"profiles", &profiles},
				{"activeProfileIndex", &active}, {"exporter", &exporter});

	if (err)
		return err;
	if (json_type(shared) != JSON_OBJECT)
		return json_fail(&s->text, s->text.end, -EBADMSG, "there is no \"shared\"");
	if (json_type(profiles) != JSON_ARRAY)
		return json_fail(&s->text, s->text.end, -EBADMSG, "there are no \"profiles\"");
	err = json_members(&s->text, shared, {"frames", &list})
		      ?: json_each(&s->text, list, add_frame, s)
		      ?: vec_push(&s->shared, (struct shared_frame){})
		      ?: json_each(&s->text, profiles, add_profile, s)
		      ?: read_exporter(s, exporter);
	if (err)
		return err;
	choose_quantity(s, active);
	err = set_event(s);
	find_base(s);
	for (size_t i = 0; i < s->profiles.count && !err; i++)
		if (is_chosen(s, &s->profiles.data[i]))
			err = read_thread(s, &s->profiles.data[i]);
	return err;
}

static void set_session(struct speedscope *s)
{
	struct profile *session = profile_builder__session(s->b);

	for (size_t i = 0; i < s->remainders.count; i++)
		if (i >= s->frames.has_sample.count || !s->frames.has_sample.data[i])
			s->frames.left_out[LEFT_OUT_SMALL] += s->remainders.data[i].small;
	session->start = session->end = PROFILE_MADE_UP_START;
	session->untimed = s->untimed;
	session->uncounted = s->uncounted;
	session->event_period = s->period;
	session->idle_known = session->weight_ahead = !s->untimed;
	if (!s->untimed)
		session->end += (uint64_t)(s->last - s->base) + 1;
	session->finished_symbols = true;
}

static bool recognizes_speedscope(const uint8_t *bytes, size_t size)
{
	return import_json_kind(bytes, size) == IMPORT_JSON_SPEEDSCOPE;
}

static int read_speedscope(const struct import_request *request, struct import_failure *failure)
{
	const char *bytes = (const char *)request->bytes;
	struct speedscope s = {
		.request = request,
		.text = {bytes, bytes + request->size, failure},
		.b = request->builder,
		.frames = {.b = request->builder},
		.owners = {.b = request->builder, .start = PROFILE_MADE_UP_START},
	};
	int err;

	s.code = frames__dso(&s.frames, DSO_UNKNOWN, "", 0);
	s.owners.program = profile_builder__string(s.b, request->name);
	err = read_parts(&s);
	set_session(&s);
	frames__fini(&s.frames);
	owners__fini(&s.owners);
	vec_free(&s.shared);
	vec_free(&s.profiles);
	vec_free(&s.open);
	vec_free(&s.remainders);
	return err;
}

const struct importer speedscope_importer = {
	.name = "speedscope",
	.description = "speedscope: py-spy, rbspy, pyinstrument, dotnet-trace",
	.recognizes = recognizes_speedscope,
	.read = read_speedscope,
};
