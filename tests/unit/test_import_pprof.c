/* SPDX-License-Identifier: BSD-2-Clause */
/* pprof, forged field by field: values, labels, mappings, inlining, other writers' habits, damage. */
#include "import_support.h"

struct message {
	uint8_t bytes[4096];
	size_t size;
};

static void put(struct message *m, uint64_t value)
{
	do {
		assert_true(m->size < sizeof(m->bytes));
		m->bytes[m->size++] = (uint8_t)(value & 0x7f) | (value > 0x7f ? 0x80 : 0);
		value >>= 7;
	} while (value);
}

static void number_field(struct message *m, unsigned int field, uint64_t value)
{
	put(m, field << 3);
	put(m, value);
}

static void bytes_field(struct message *m, unsigned int field, const void *bytes, size_t size)
{
	put(m, field << 3 | 2);
	put(m, size);
	assert_true(m->size + size <= sizeof(m->bytes));
	memcpy(m->bytes + m->size, bytes, size);
	m->size += size;
}

static void message_field(struct message *m, unsigned int field, const struct message *inner)
{
	bytes_field(m, field, inner->bytes, inner->size);
}

/* A message of numbers: pairs of field and value, ended by field 0; 0 is left out, as protobuf does. */
static struct message numbers(const uint64_t *pairs)
{
	struct message m = {};

	for (; pairs[0]; pairs += 2)
		if (pairs[1])
			number_field(&m, (unsigned int)pairs[0], pairs[1]);
	return m;
}

#define NUMBERS(...) numbers((const uint64_t[]){__VA_ARGS__, 0})

static const char *const strings[] = {
	"",	     "samples",	  "count",	 "cpu",	  "nanoseconds", "main",	 "inner",
	"/a/main.c", "/bin/prog", "0abc",	 "pid",	  "tid",	 "thread",	 "process",
	"comm",	     "worker",	  "the process", "jit",	  "x.js",	 "microseconds", "wall",
	"sample",    "(idle)",	  "alloc_space", "bytes", "poll",	 "gil",		 "held",
};

enum {
	SAMPLES = 1,
	COUNT_UNIT,
	CPU,
	NS,
	MAIN,
	INNER,
	MAIN_C,
	PROG,
	BUILD_ID,
	PID,
	TID,
	THREAD,
	PROCESS,
	COMM,
	WORKER,
	THE_PROCESS,
	JIT,
	X_JS,
	US,
	WALL,
	SAMPLE_,
	IDLE_,
	ALLOC,
	BYTES,
	POLL,
	GIL,
	HELD
};

static void put_strings(struct message *m)
{
	for (size_t i = 0; i < COUNT(strings); i++)
		bytes_field(m, 6, strings[i], strlen(strings[i]));
}

static void put_type(struct message *m, uint64_t type, uint64_t unit)
{
	struct message t = NUMBERS(1, type, 2, unit);

	message_field(m, 1, &t);
}

static struct message label(uint64_t key, uint64_t string, uint64_t number)
{
	return NUMBERS(1, key, 2, string, 3, number);
}

/* Locations of a sample, leaf first, ended by 0; packed values. */
static struct message sample(const uint64_t *locations, uint64_t first, uint64_t second)
{
	struct message s = {}, values = {};

	for (; *locations; locations++)
		number_field(&s, 1, *locations);
	put(&values, first);
	put(&values, second);
	message_field(&s, 2, &values);
	return s;
}

/* Two functions, a mapping, a location with an inlined function, one without a mapping, one without lines. */
static void put_tables(struct message *m)
{
	struct message mapping = NUMBERS(1, 1, 2, 0x400000, 3, 0x500000, 4, 0x1000, 5, PROG, 6,
					 BUILD_ID);
	struct message outer = NUMBERS(1, 7, 2, MAIN, 4, MAIN_C, 5, 10);
	struct message inner = NUMBERS(1, 8, 2, INNER, 4, MAIN_C, 5, 3);
	struct message script = NUMBERS(1, 9, 2, JIT, 4, X_JS, 5, 2);
	struct message idle = NUMBERS(1, 10, 2, IDLE_);
	struct message first = NUMBERS(1, 1, 2, 1, 3, 0x400010), second = NUMBERS(1, 2);
	struct message third = NUMBERS(1, 3, 2, 1, 3, 0x400020), fourth = NUMBERS(1, 4);
	struct message line = NUMBERS(1, 8, 2, 4);

	message_field(&first, 4, &line);
	line = NUMBERS(1, 7, 2, 12);
	message_field(&first, 4, &line);
	line = NUMBERS(1, 9, 2, 6);
	message_field(&second, 4, &line);
	line = NUMBERS(1, 10);
	message_field(&fourth, 4, &line);
	message_field(m, 3, &mapping);
	message_field(m, 4, &first);
	message_field(m, 4, &second);
	message_field(m, 4, &third);
	message_field(m, 4, &fourth);
	message_field(m, 5, &outer);
	message_field(m, 5, &inner);
	message_field(m, 5, &script);
	message_field(m, 5, &idle);
}

static struct imported import_message(const struct message *m)
{
	return import_bytes(m->bytes, m->size);
}

static const uint64_t stack_a[] = {1, 2, 0}, stack_b[] = {3, 1, 0}, stack_idle[] = {4, 0};

static struct message whole(void)
{
	struct message m = {}, s, l;

	put_type(&m, SAMPLES, COUNT_UNIT);
	put_type(&m, CPU, NS);
	s = sample(stack_a, 3, 3000000);
	l = label(PID, 0, 12);
	message_field(&s, 3, &l);
	l = label(TID, 0, 13);
	message_field(&s, 3, &l);
	l = label(THREAD, WORKER, 0);
	message_field(&s, 3, &l);
	l = label(PROCESS, THE_PROCESS, 0);
	message_field(&s, 3, &l);
	l = label(GIL, HELD, 0);
	message_field(&s, 3, &l);
	message_field(&m, 2, &s);
	s = sample(stack_b, 1, 999999);
	message_field(&m, 2, &s);
	put_tables(&m);
	put_strings(&m);
	number_field(&m, 9, 1700000000000000000ULL);
	number_field(&m, 10, 5000000000ULL);
	return m;
}

static void labels_mappings_and_inlined_functions_are_read(void **state)
{
	struct message m = whole();
	struct imported i = import_message(&m);
	const struct profile *p = i.p;
	const struct profile_samples *s;
	const struct profile_location *l;

	(void)state;
	assert_int_equal(i.err, 0);
	assert_true(p->untimed);
	assert_int_equal(p->sample_count, 4);
	assert_int_equal(p->start_realtime, 1700000000000000000ULL);
	assert_int_equal(p->end - p->start, 5000000000ULL);
	assert_int_equal(p->thread_count, 3);
	assert_int_equal(p->threads[1].tid, 13);
	assert_string_equal(profile__string(p, p->threads[1].name), "worker");
	assert_int_equal(p->processes[p->threads[1].process.v].pid, 12);
	assert_string_equal(profile__string(p, p->processes[p->threads[1].process.v].name),
			    "the process");
	assert_string_equal(profile__string(p, p->processes[p->threads[2].process.v].name), "prog");

	s = &p->threads[1].samples[SAMPLE_CPU];
	assert_int_equal(s->weight[0], 3000000);
	assert_int_equal(profile_samples__gil(s, 0), GIL_HELD);
	assert_int_equal(profile_samples__gil(&p->threads[2].samples[SAMPLE_CPU], 0), GIL_UNKNOWN);
	l = &p->locations[p->stacks[s->stack[0].v].location.v];
	assert_int_equal(l->line_count, 2); /* innermost first */
	assert_string_equal(leaf(p, s->stack[0]), "inner");
	assert_int_equal(p->lines[l->first_line].line, 4);
	assert_int_equal(p->lines[l->first_line + 1].line, 12);
	assert_int_equal(l->address, 0x1010);
	assert_string_equal(profile__string(p, p->dsos[l->dso.v].path), "/bin/prog");
	assert_int_equal(p->dsos[l->dso.v].build_id_size, 2);
	assert_int_equal(function_named(p, "inner")->definition_line, 3);
	l = &p->locations[p->stacks[p->stacks[s->stack[0].v].parent.v].location.v];
	assert_int_equal(l->category, CATEGORY_JIT);
	s = &p->threads[2].samples[SAMPLE_CPU];
	assert_string_equal(leaf(p, s->stack[0]), "[prog]");
	assert_int_equal(s->weight[0], 999999);
	import_done(&i);
}

/* One of the types that are taken, and what its values are in ns and ticks. */
static void the_sample_type_gives_the_weight_and_the_ticks(void **state)
{
	static const struct {
		uint64_t types[4];
		uint64_t values[2];
		uint64_t period_unit, period, weight, ticks;
	} cases[] = {
		{{CPU, US, 0, 0}, {20, 0}, US, 10, 20000, 2},
		{{SAMPLES, COUNT_UNIT, 0, 0}, {3, 0}, NS, 100, 300, 3},
		{{SAMPLES, COUNT_UNIT, 0, 0}, {3, 0}, 0, 0, 0, 3},
		{{SAMPLE_, COUNT_UNIT, WALL, NS}, {3, 77}, 0, 0, 77, 3},
		{{ALLOC, BYTES, CPU, NS}, {999, 5}, 0, 0, 5, 1},
	};

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		const uint64_t *t = cases[n].types;
		struct message m = {}, s = sample(stack_a, cases[n].values[0], cases[n].values[1]);
		struct message period = NUMBERS(1, CPU, 2, cases[n].period_unit);
		struct imported i;

		put_type(&m, t[0], t[1]);
		if (t[2])
			put_type(&m, t[2], t[3]);
		else {
			struct message one = {};

			s = (struct message){};
			number_field(&s, 1, 1);
			put(&one, cases[n].values[0]);
			message_field(&s, 2, &one);
		}
		message_field(&m, 2, &s);
		put_tables(&m);
		put_strings(&m);
		message_field(&m, 11, &period);
		number_field(&m, 12, cases[n].period);
		i = import_message(&m);
		if (i.err)
			fail_msg("case %zu: %s", n, i.failure.what);
		assert_int_equal(i.p->threads[1].samples[SAMPLE_CPU].weight[0], cases[n].weight);
		assert_int_equal(i.p->sample_count, cases[n].ticks);
		assert_int_equal(i.p->period,
				 cases[n].period * (cases[n].period_unit == US ? 1000 : 1));
		import_done(&i);
	}
}

static void idle_samples_have_no_ticks_and_no_cpu_time(void **state)
{
	struct message m = {}, s = sample(stack_idle, 5, 5000), t = sample(stack_a, 1, 1000);
	struct imported i;

	(void)state;
	put_type(&m, SAMPLE_, COUNT_UNIT);
	put_type(&m, WALL, NS);
	message_field(&m, 2, &s);
	message_field(&m, 2, &t);
	put_tables(&m);
	put_strings(&m);
	i = import_message(&m);
	assert_int_equal(i.err, 0);
	assert_int_equal(i.p->sample_count, 1);
	assert_int_equal(profile_thread__cpu(&i.p->threads[1]), 1000);
	import_done(&i);
}

static void refused(const struct message *m, int err, const char *part)
{
	struct imported i = import_message(m);

	if (i.err != err || !strstr(i.failure.what, part))
		fail_msg("%d, \"%s\" instead of %d, \"%s\"", i.err, i.failure.what, err, part);
	import_done(&i);
}

/* A good file with one more message in it. */
static struct message with(unsigned int field, struct message inner)
{
	struct message m = whole();

	message_field(&m, field, &inner);
	return m;
}

static void invalid_or_unsupported_messages_are_refused(void **state)
{
	static const uint64_t unknown[] = {99, 0};
	struct message m = {};
	struct imported i;

	(void)state;
	put_type(&m, ALLOC, BYTES);
	put_tables(&m);
	put_strings(&m);
	refused(&m, -EPROTONOSUPPORT, "but alloc_space/bytes");
	m = with(2, sample(unknown, 1, 1));
	refused(&m, -EBADMSG, "no location 99");
	m = with(2, sample(stack_a, 1, (uint64_t)-5));
	refused(&m, -EBADMSG, "difference of two profiles");
	m = with(2, NUMBERS(1, 1));
	refused(&m, -EBADMSG, "a sample has 0 values");
	m = with(4, NUMBERS(1, 1));
	refused(&m, -EBADMSG, "id 1 is there twice");
	m = with(4, NUMBERS(3, 1));
	refused(&m, -EBADMSG, "an id is 0");
	m = with(4, NUMBERS(1, 50, 2, 60));
	refused(&m, -EBADMSG, "no mapping 60");
	m = with(5, NUMBERS(1, 50, 2, 600));
	i = import_message(&m);
	assert_int_equal(i.err, 0); /* nobody uses it */
	import_done(&i);
	m = with(3, NUMBERS(1, 50, 5, 600));
	refused(&m, -EBADMSG, "no string 600");
	m = whole();
	put(&m, 1 << 3 | 0);
	put(&m, 5);
	refused(&m, -EBADMSG, "wrong type");
	for (size_t cut = 40; cut < whole().size; cut++) {
		m = whole();
		i = import_bytes(m.bytes, cut);
		assert_true(i.err == -EBADMSG || i.err == -EPROTONOSUPPORT || !i.err);
		import_done(&i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_mappings_and_inlined_functions_are_read),
		cmocka_unit_test(the_sample_type_gives_the_weight_and_the_ticks),
		cmocka_unit_test(idle_samples_have_no_ticks_and_no_cpu_time),
		cmocka_unit_test(invalid_or_unsupported_messages_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
