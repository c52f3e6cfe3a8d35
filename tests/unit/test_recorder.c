/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples, mappings, lives of processes, CPU time and symbols through the recorder: stories of events and their profiles as
 * text in testdata/recorder.txt, and what is no story.
 */
#include <math.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "models/profile_dump.h"
#include "stream/code_events.h"
#include "stream/event_decode.h"
#include "text_cases.h"
#include "unit/event_story.h"
#include "world/mapping_table.h"
#include "world/process_table.h"

/* ---- profiles of stories --------------------------------------------------------------------- */

static double ms_since_start(uint64_t time)
{
	return ((double)time - S) / MS;
}

static void put_span(FILE *out, uint64_t start, uint64_t end)
{
	fprintf(out, " %.10g..", ms_since_start(start));
	if (end)
		fprintf(out, "%.10g", ms_since_start(end));
}

/* A place of the kernel as in a story: k100. */
static void put_stack(FILE *out, const char *stack)
{
	static const char KERNEL[] = "[kernel]+0xffffffff81000";

	for (const char *at; (at = strstr(stack, KERNEL)); stack = at + strlen(KERNEL))
		fprintf(out, "%.*sk", (int)(at - stack), stack);
	fputs(stack, out);
}

static void put_samples(FILE *out, const struct profile_thread *t)
{
	const struct profile_samples *samples = &t->samples[SAMPLE_CPU];

	for (size_t i = 0; i < samples->count; i++) {
		const char *comm = str(samples->comm[i]);

		fprintf(out, "%s %.10g ", i ? "," : ":", (double)samples->weight[i] / MS);
		put_stack(out, stack_text(t, i));
		if (strcmp(comm, str(t->name)))
			fprintf(out, " as %s", comm);
		if (profile_samples__context(samples, i))
			fprintf(out, " in %s",
				sample_context_name(profile_samples__context(samples, i)));
	}
}

static void put_thread(FILE *out, const struct profile_thread *t)
{
	for (size_t i = 0; i < t->rename_count; i++)
		fprintf(out, " %s@%.10g", str(t->renames[i].name),
			ms_since_start(t->renames[i].time));
	put_samples(out, t);
	if (t->cpu_tail)
		fprintf(out, ", then %.10g", (double)t->cpu_tail / MS);
	if (t->cpu_excess)
		fprintf(out, ", %.10g too much", (double)t->cpu_excess / MS);
}

/* Of a process with a single thread, which is as the process is, there is nothing else to say. */
static bool is_as_process(const struct profile_thread *t, const struct profile_process *p)
{
	return t->is_main && t->tid == p->pid && t->name.v == p->name.v && t->start == p->start &&
	       t->end == p->end;
}

static void put_threads(FILE *out, const struct profile_process *p)
{
	bool first = true;

	for (size_t i = 1; i < ev.p->thread_count; i++) {
		const struct profile_thread *t = &ev.p->threads[i];

		if (process_of(t) != p)
			continue;
		if (!first || !is_as_process(t, p)) {
			fprintf(out, "\n  %u %s", t->tid, str(t->name));
			put_span(out, t->start, t->end);
			fputs(t->is_main ? " main" : "", out);
		}
		put_thread(out, t);
		first = false;
	}
	fputs(first ? " no thread\n" : "\n", out);
}

static void put_process(FILE *out, const struct profile_process *p)
{
	static const char *const begins[] = {"", " forked", " execed"};

	fprintf(out, "%u %s", p->pid, str(p->name));
	put_span(out, p->start, p->end);
	fprintf(out, "%s%s%s%s", begins[p->began], p->execs ? " execs" : "",
		p->is_kernel ? " kernel" : "", p->is_target ? "" : " unrequested");
	if (p->program.v)
		fprintf(out, " %s", str(p->program));
	if (p->cgroup.v)
		fprintf(out, " group=%s", str(p->cgroup));
	if (p->facts_state)
		fprintf(out, " facts=%d", p->facts_state);
	for (uint32_t i = 0; i < p->fact_count; i++)
		fprintf(out, " %s=%s", str(ev.p->facts[p->first_fact + i].key),
			str(ev.p->facts[p->first_fact + i].value));
	put_threads(out, p);
}

static void put_memory(FILE *out, const struct profile_memory *m)
{
	fprintf(out, "memory of %u %s%s:", m->pid, str(ev.p->processes[m->process.v].name),
		m->is_recorder ? " recorder" : "");
	for (size_t i = 0; i < m->count; i++)
		fprintf(out, " %" PRIu64 "@%.10g", m->readings[i].bytes,
			ms_since_start(m->readings[i].time));
	fputc('\n', out);
}

static void put_profile(FILE *out, const struct profile *p)
{
	ev.p = p;
	for (size_t i = 1; i < p->process_count; i++)
		put_process(out, &p->processes[i]);
	for (size_t i = 0; i < p->memory_count; i++)
		put_memory(out, &p->memories[i]);
	if (p->unmapped_frames)
		fprintf(out, "unmapped %" PRIu64 "\n", p->unmapped_frames);
}

static void put_windows(FILE *out)
{
	for (size_t i = 0; i < ev.windows; i++) {
		put_profile(out, ev.profiles[i]);
		fprintf(out, "window\n");
	}
	put_profile(out, finish());
	for (size_t i = 0; i < ev.rereads; i++)
		fprintf(out, "%s%u", i ? " " : "to be read: ", ev.reread[i]);
}

/* Events alone. */
static void run_events(FILE *out, char *story)
{
	set_up();
	play(story);
	put_windows(out);
	tear_down();
}

/* With prog() before them. */
static void run_story(FILE *out, char *story)
{
	set_up();
	prog();
	play(story);
	put_windows(out);
	tear_down();
}

/* The code that a story of prog() has sampled. */
static void run_code(FILE *out, char *story)
{
	static const char *const kinds[] = {[DSO_FILE] = "file",
					    [DSO_VDSO] = "vdso",
					    [DSO_KERNEL] = "kernel",
					    [DSO_JIT] = "jit",
					    [DSO_UNKNOWN] = "unknown"};
	static const char *const categories[] = {"other",   "user", "kernel",
						 "library", "jit",  "idle"};

	set_up();
	prog();
	play(story);
	finish();
	for (size_t i = 1; i < ev.p->location_count; i++) {
		const struct profile_location *l = &ev.p->locations[i];
		const struct profile_dso *d = &ev.p->dsos[l->dso.v];

		fprintf(out, "%s+%" PRIx64 " %s %s %s%s%s\n", str(d->name), l->address,
			str(d->path), kinds[d->kind], categories[l->category],
			d->deleted ? " deleted" : "", l->process.v ? " of the process" : "");
	}
	tear_down();
}

static const struct text_verb verbs[] = {
	{"story", run_story}, {"events", run_events}, {"code", run_code}, {}};

TEXT_TABLE("recorder", verbs, NULL, NULL);

/* ---- events that are no clock ---------------------------------------------------------------- */

#define PLACES 3

/* What a stream of events is made of, and what its samples say. */
struct event_stream {
	uint64_t truth[PLACES], all;
	uint64_t left, period; /* up to the next overflow; between this one and the last */
};

/* As many events, in `most` with that probability (%), else in the last place; sampled. */
static void run_phase(struct event_stream *s, uint64_t events, unsigned int most,
		      unsigned int percent, uint64_t target)
{
	for (uint64_t i = 0; i < events; i++) {
		unsigned int place = random_below(100) < percent ? most : PLACES - 1;

		s->truth[place]++;
		s->all++;
		if (--s->left)
			continue;
		ev.now += MS;
		ev.sample_period = s->period;
		sample(10, 10, 5 * S, IP(0x10010 + 0x100 * place), END);
		s->left = s->period = target / 2 + 1 + random_below(target);
	}
}

/* By place, from the location that it is. */
static void add_up(const struct profile_samples *samples, double *events, double *squares,
		   size_t *rows)
{
	for (size_t i = 0; i < samples->count; i++) {
		const struct profile_stack *stack = &ev.p->stacks[samples->stack[i].v];
		size_t place = (ev.p->locations[stack->location.v].address - 0x400) / 0x100;

		place = min_u64(place, PLACES - 1);
		events[place] += (double)profile_samples__events(samples, i);
		squares[place] += profile_samples__square(samples, i);
		rows[place]++;
	}
}

/*
 * Two phases of equal length, the second with ten times as many events; the kernel keeps the rate
 * of samples, so it makes periods ten times as long. Counts of samples are off by a factor of ten.
 */
STORY(events_of_phases_have_their_share)
{
	struct event_stream s = {.left = 1, .period = 1};
	double events[PLACES] = {}, squares[PLACES] = {}, all = 0, square = 0;
	size_t rows[PLACES] = {};

	seed = 7;
	assert_int_equal(ev.h.meta(ev.h.context, "event", "page-faults"), 0);
	assert_int_equal(ev.h.meta(ev.h.context, "event_unit", "count"), 0);
	prog();
	run_phase(&s, 400000, 0, 80, 100);
	run_phase(&s, 4000000, 1, 70, 1000);
	finish();
	ev.sample_period = 0;
	assert_string_equal(profile__event(ev.p), "page-faults");
	add_up(&thread_of(10, 0)->samples[SAMPLE_CPU], events, squares, rows);
	for (int i = 0; i < PLACES; i++) {
		all += events[i];
		square += squares[i];
	}
	assert_true(s.all - (uint64_t)all < s.period); /* those since the last overflow */
	assert_true(rows[0] > rows[1] * 9 / 10 && rows[1] > rows[0] / 2);
	for (int i = 0; i < PLACES; i++) {
		double p = (double)s.truth[i] / (double)s.all, share = events[i] / all;
		double variance = (1 - p) * (1 - p) * squares[i] + p * p * (square - squares[i]);

		if (fabs(share - p) > 3 * sqrt(variance) / all)
			fail_msg("place %d: %f instead of %f ± %f", i, share, p,
				 sqrt(variance) / all);
	}
}

/* ---- frames ---------------------------------------------------------------------------------- */

STORY(no_frames_at_all)
{
	prog();
	ev.now += MS;
	ev.h.sample(ev.h.context, &(struct sample_event){.header = header(0),
							 .tgid = 10,
							 .tid = 10,
							 .cpu_time = 5 * S,
							 .user_end = STACK_END_DISABLED});
	ev.now += MS;
	sample(10, 10, 5 * S, END); /* from user code */
	finish();
	expect_stack(thread_of(10, 0), 0, "[kernel]+0x0");
	expect_stack(thread_of(10, 0), 1, "[unknown]+0x0");
	assert_int_equal(ev.p->stack_ends[STACK_END_DISABLED], 1);
}

/* ---- mappings -------------------------------------------------------------------------------- */

STORY(flips_of_a_jit_page_cost_nothing)
{
	const struct process_life *life;
	size_t dsos;

	prog();
	life = process_table__find(world__processes(ev.world), 10);
	map(10, 0x30000, 0x1000, 0x30000, "//anon", 0);
	dsos = profile_builder__dso_count(ev.builder);
	for (int i = 0; i < 1000; i++)
		map(10, 0x30000, 0x1000, 0x30000, "//anon", 0);
	assert_int_equal(mapping_table__count(life->maps), 2);
	assert_int_equal(profile_builder__dso_count(ev.builder), dsos);
}

static void map_pages(uint32_t pid, uint64_t count, uint64_t offset)
{
	for (uint64_t i = 0; i < count; i++)
		map(pid, 0x100000000 + i * 0x2000, 0x1000, offset, "/pages", 0);
}

/* Of a process, and of all: the excess is left out, counted, and read from /proc. */
STORY(too_many_mappings)
{
	enum { MAX = 262144 };
	const struct process_life *life;

	prog();
	life = process_table__find(world__processes(ev.world), 10);
	map_pages(10, MAX, 0);
	assert_int_equal(mapping_table__count(life->maps), MAX);
	assert_int_equal(world__stats(ev.world).refused_mappings, 1);
	assert_int_equal(ev.rereads, 1);
	assert_int_equal(ev.reread[0], 10);
	/* seventeen with so many, which share them until one changes them */
	for (uint32_t pid = 100; pid < 116; pid++)
		fork_(10, 10, pid, pid);
	map_pages(10, 65536, 0x1000);
	assert_int_equal(world__stats(ev.world).dropped_mappings, MAX);
	assert_int_equal(ev.rereads, 2);
	assert_int_equal(mapping_table__count(life->maps), 0);
	for (uint64_t i = 1; i <= 4; i++)
		map_pages(10, 65536, 0x1000 * (i % 2));
	/* one more was enough */
	assert_int_equal(world__stats(ev.world).dropped_mappings, 2 * MAX);
	assert_int_equal(mapping_table__count(life->maps), 65536);
}

/* ---- lives ----------------------------------------------------------------------------------- */

STORY(children_of_a_fork_storm_are_recorded_if_sampled)
{
	prog();
	for (uint32_t pid = 1000; pid < 101000; pid++) {
		ev.now += MS;
		fork_(10, 10, pid, pid);
		if (pid % 10000 == 0) {
			map(pid, 0x20000, 0x1000, 0, "/lib/own.so", 0);
			sample(pid, pid, MS / 2, IP(0x20010), RET(0x10020), END);
		}
		exit_(pid, pid);
	}
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0x20010), RET(0x10020), END);
	finish();
	/* the ten that were sampled, and the parent */
	assert_int_equal(ev.p->process_count, 1 + 11);
	assert_int_equal(ev.p->thread_count, 1 + 11);
	expect_stack(thread_of(20000, 0), 0, "prog+0x41f own.so+0x10");
	assert_string_equal(str(process_of(thread_of(20000, 0))->name), "prog");
	assert_int_equal(process_of(thread_of(20000, 0))->ppid, 10);
	assert_true(process_of(thread_of(20000, 0))->is_target);
	/* what a child maps is not its parent's */
	expect_stack(thread_of(10, 0), 0, "prog+0x41f [unknown]+0x20010");
}

STORY(renames_are_kept_with_their_times)
{
	const struct profile_thread *t;

	prog();
	sample(10, 10, 5 * S, HERE);
	for (int i = 0; i < 1000; i++) {
		ev.now += MS;
		comm(10, 10, i % 2 ? "one" : "two", 0);
		comm(10, 10, i % 2 ? "one" : "two", 0); /* nothing new */
	}
	finish();
	t = thread_of(10, 0);
	assert_int_equal(t->rename_count, 256);
	for (size_t i = 0; i < t->rename_count; i++) {
		assert_true(t->renames[i].time == S + (i + 1) * MS);
		assert_string_equal(str(t->renames[i].name), i % 2 ? "one" : "two");
	}
	assert_string_equal(str(t->name), "one");
}

/* ---- the session ----------------------------------------------------------------------------- */

STORY(clocks_books_and_losses)
{
	struct clock_anchor_event anchor = {
		.monotonic = S - 5, .realtime = 77 * S, .tsc_khz = 2000000, .error_ns = 100};
	struct books_event books = {.cpu = 1,
				    .lines = BOOK_COUNT,
				    .period = 1000,
				    .time_running = 5500,
				    .count = {4, 1}};
	struct lost_event lost = {.source = LOST_SIDEBAND, .count = 3, .since = S + 1};

	anchor.header = header(EVENT_NEW_EPOCH);
	anchor.extrapolation_error_ns = -900000; /* of another epoch */
	ev.h.clock_anchor(ev.h.context, &anchor);
	prog();
	fork_(10, 10, 11, 11);
	fork_(10, 10, 12, 12);
	exit_(12, 12);
	anchor.header = header(0);
	anchor.extrapolation_error_ns = -50;
	ev.h.clock_anchor(ev.h.context, &anchor);
	anchor.header = header(EVENT_NEW_EPOCH);
	ev.h.clock_anchor(ev.h.context, &anchor);
	ev.h.books(ev.h.context, &books);
	books.time_running = 6100;
	ev.h.books(ev.h.context, &books);
	ev.now += MS;
	lost.header = header(0);
	ev.h.lost(ev.h.context, &lost);
	/* every living process may be wrong now */
	assert_int_equal(ev.rereads, 2);
	assert_true((ev.reread[0] == 10 && ev.reread[1] == 11) ||
		    (ev.reread[0] == 11 && ev.reread[1] == 10));
	ev.now += MS;
	sample(10, 10, 5 * S, HERE);
	finish(); /* without an end */
	assert_true(ev.p->cut_short);
	assert_int_equal(ev.p->end, S + 2 * MS);
	assert_int_equal(ev.p->start_realtime, 77 * S + 5);
	assert_int_equal(ev.p->tsc_khz, 2000000);
	assert_int_equal(ev.p->clock_error_ns, 150);
	assert_int_equal(ev.p->clock_epochs, 2);
	assert_int_equal(ev.p->period, 1000000); /* META's, not the books' */
	assert_int_equal(ev.p->books_count, 1);
	assert_int_equal(ev.p->books[0].due, 6);
	assert_int_equal(ev.p->lost[LOST_SIDEBAND], 3);
	assert_int_equal(ev.p->lost_ranges[0].since, S + 1);
}

/* ---- symbols --------------------------------------------------------------------------------- */

struct symbol_fixture {
	struct symbol_event event;
	struct symbol_event_frame outer;
	char strings[32];
};

static void report_symbols(uint32_t dso, uint64_t address, size_t size)
{
	struct symbol_dso_event of = {.dso = dso, .state = SYMBOL_STATE_RESOLVED};
	struct symbol_fixture f = {
		.event = {.header = {.size = size},
			  .address = address,
			  .elf_address = 0x1410,
			  .frames = 1},
		.outer = {.function_address = 0x1400,
			  .function_size = 32,
			  .line = 5,
			  .column = 6,
			  .definition_line = 3,
			  .name_size = 5,
			  .file_size = 4},
		.strings = "main\0a.c",
	};

	assert_int_equal(ev.symbol_handler.symbol_dso(&ev.symbols, &of), 0);
	assert_int_equal(ev.symbol_handler.symbol(&ev.symbols, &f.event), 0);
}

STORY(symbols_from_the_stream)
{
	const struct profile_location *l;
	const struct profile_line *line;
	const struct profile_function *f;
	uint32_t dso = 1; /* the first that was mapped */

	prog();
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0x10010), RET(0x10021), END);
	report_symbols(dso, 0x410, sizeof(struct symbol_fixture));
	report_symbols(dso, 0x999, sizeof(struct symbol_fixture)); /* of no location */
	report_symbols(77, 0x410, sizeof(struct symbol_fixture));  /* of no dso */
	ev.symbol_handler.symbols_end(&ev.symbols, &(struct event_header){});
	finish();
	assert_true(ev.p->finished_symbols);
	assert_int_equal(ev.p->dsos[dso].symbol_state, SYMBOL_STATE_RESOLVED);
	l = &ev.p->locations[ev.p->stacks[thread_of(10, 0)->samples[SAMPLE_CPU].stack[0].v]
				     .location.v];
	assert_int_equal(l->elf_address, 0x1410);
	line = &ev.p->lines[l->first_line];
	assert_int_equal(line->line, 5);
	assert_string_equal(str(line->file), "a.c");
	f = &ev.p->functions[line->function.v];
	assert_string_equal(str(f->name), "main");
	assert_int_equal(f->address, 0x1400);
	assert_int_equal(f->definition_line, 3);
}

/* An event_push_fn. */
static int push_symbol(void *context, struct event_header *event)
{
	(void)context;
	return event_decode(event, &ev.symbol_handler);
}

static void report_code(uint64_t address, uint32_t size)
{
	static uint8_t bytes[CODE_TEXT_MAX];
	static const struct symbol_frame inner = {.function = "inner", .file = "b.h", .line = 7},
					 outer = {.function = "outer", .file = "b.c", .line = 9};
	const struct code_text text = {.dso = 1,
				       .machine = CODE_MACHINE_X86_64,
				       .address = address,
				       .bytes = bytes,
				       .size = size};
	_cleanup_free_ struct code_lines *lines = calloc(1, sizeof(*lines));

	for (uint32_t i = 0; i < size; i++)
		bytes[i] = i * 7;
	lines->text = &text;
	lines->push = push_symbol;
	assert_int_equal(code_text__emit(&text, 1, push_symbol, NULL), 0);
	for (uint32_t i = 0; i < size; i++)
		assert_int_equal(code_lines__add(lines, i, i % 2, i % 2 ? &inner : &outer), 0);
	assert_int_equal(code_lines__end(lines), 0);
}

/* Both are larger than an event. */
STORY(code_and_sources_from_the_stream)
{
	static char source[100000];
	const struct source_text text = {
		.path = "b.c", .text = source, .size = sizeof(source), .state = SOURCE_CHANGED};
	const struct profile_code *code;
	const struct profile_code_row *row;

	memset(source, 'x', sizeof(source));
	prog();
	ev.now += MS;
	sample(10, 10, 5 * S, HERE);
	report_code(0x410, 70000);
	report_code(0x400, 16);
	assert_int_equal(source_text__emit(&text, 1, push_symbol, NULL), 0);
	ev.symbol_handler.symbols_end(&ev.symbols, &(struct event_header){});
	finish();
	assert_int_equal(ev.p->code_count, 2);
	code = &ev.p->codes[1];
	assert_int_equal(code->size, 70000);
	assert_int_equal(code->bytes[69999], (uint8_t)(69999 * 7));
	assert_int_equal(code->row_count, 70000);
	row = profile__code_row(ev.p, code, 69999);
	assert_string_equal(str(ev.p->functions[row->function.v].name), "inner");
	assert_string_equal(str(row->file), "b.h");
	assert_int_equal(row->line, 7);
	assert_int_equal(row->depth, 1);
	assert_int_equal(ev.p->source_count, 1);
	assert_int_equal(ev.p->sources[0].size, sizeof(source));
	assert_int_equal(ev.p->sources[0].state, SOURCE_CHANGED);
}

/* Pieces that are missing, or that come twice, cost their code. */
STORY(incomplete_code_is_left_out)
{
	union {
		struct code_text_event event;
		char space[sizeof(struct code_text_event) + 8];
	} e = {.event = {.header = {.size = sizeof(e), .type = EVENT_CODE_TEXT},
			 .dso = 1,
			 .address = 0x410,
			 .size = 16,
			 .count = 8}};

	prog();
	ev.now += MS;
	sample(10, 10, 5 * S, HERE);
	push_symbol(NULL, &e.event.header);
	push_symbol(NULL, &e.event.header); /* begins anew */
	e.event.offset = 4;
	push_symbol(NULL, &e.event.header);
	e.event.dso = 77;
	e.event.offset = 0;
	push_symbol(NULL, &e.event.header);
	e.event.offset = 8;
	push_symbol(NULL, &e.event.header);
	ev.symbol_handler.symbols_end(&ev.symbols, &(struct event_header){});
	finish();
	assert_int_equal(ev.p->code_count, 0);
}

STORY(damaged_symbol_events)
{
	prog();
	ev.now += MS;
	sample(10, 10, 5 * S, HERE);
	for (size_t size = sizeof(struct symbol_event); size < sizeof(struct symbol_fixture);
	     size++) {
		/* exactly as long as it says, so that a sanitizer sees a byte too far */
		_cleanup_free_ struct symbol_event *e = malloc(size);
		struct symbol_fixture f = {
			.event = {.header = {.size = size}, .address = 0x411, .frames = UINT32_MAX},
			.outer = {.name_size = 60000, .file_size = 60000},
		};

		memcpy(e, &f, size);
		assert_int_equal(ev.symbol_handler.symbol(&ev.symbols, e), 0);
		e->address = 0x410;
		ev.symbol_handler.symbol_dso(&ev.symbols,
					     &(struct symbol_dso_event){.dso = 1, .state = 99});
		assert_int_equal(ev.symbol_handler.symbol(&ev.symbols, e), 0);
	}
	finish();
}

/* ---- the whole ------------------------------------------------------------------------------- */

static char *story(void)
{
	char *text;
	size_t size;
	FILE *out;

	set_up();
	prog();
	fork_(10, 10, 11, 11);
	ev.now += MS;
	sample(10, 10, 5 * S + MS, (uint64_t)0xffffffff81000100, IP(0x10010), END);
	sample(11, 11, MS, IP(0x10010), RET(0x99001), END);
	comm(11, 11, "tool", EVENT_COMM_EXEC);
	ev.now += MS;
	exit_(11, 11);
	stop();
	finish();
	out = open_memstream(&text, &size);
	profile_dump(ev.p, out);
	fclose(out);
	tear_down();
	return text;
}

static const char story_dump[] =
	"session start=1000000000 end=1002000000 realtime=0 period=1000000 samples=2\n"
	"clock tsc_khz=0 error=0 epochs=0\n"
	"meta key=\"period_ns\" value=\"1000000\"\n"
	"meta key=\"sampling_start\" value=\"1000000000\"\n"
	"ends root=2\n"
	"frames ip=2\n"
	"frames frame-pointer=1\n"
	"unmapped-frames 1\n"
	"dso 1 file path=\"/bin/prog\" name=\"prog\" file=RIGHT symbols=PENDING\n"
	"dso 2 kernel path=\"[kernel.kallsyms]\" name=\"[kernel]\" file=NONE symbols=PENDING\n"
	"dso 3 unknown path=\"[unknown]\" name=\"[unknown]\" file=NONE symbols=PENDING\n"
	"function 1 dso=1 name=\"[prog]\" address=? size=0 file=\"\" at=0:0\n"
	"function 2 dso=2 name=\"[kernel]\" address=? size=0 file=\"\" at=0:0\n"
	"function 3 dso=3 name=\"[unknown]\" address=? size=0 file=\"\" at=0:0\n"
	"location 1 dso=1 user address=0x410 elf=? process=0\n"
	"  line function=1 file=\"\" at=0:0\n"
	"location 2 dso=2 kernel address=0xffffffff81000100 elf=? process=0\n"
	"  line function=2 file=\"\" at=0:0\n"
	"location 3 dso=3 other address=0x99000 elf=? process=2\n"
	"  line function=3 file=\"\" at=0:0\n"
	"stack 1 parent=0 location=1 depth=1\n"
	"stack 2 parent=1 location=2 depth=2\n"
	"stack 3 parent=0 location=3 depth=1\n"
	"stack 4 parent=3 location=1 depth=2\n"
	"process 1 pid=10 ppid=1 name=\"prog\" start=1000000000 end=0 target\n"
	"process 2 pid=11 ppid=10 name=\"prog\" start=1000000000 end=1001000000 forked execs target\n"
	"thread 1 process=1 tid=10 name=\"prog\" start=1000000000 end=0 tail=0 main\n"
	"  sample 1001000000 stack=2 cpu=1000000 comm=\"prog\"\n"
	"thread 2 process=2 tid=11 name=\"prog\" start=1000000000 end=1001000000 tail=0 main\n"
	"  sample 1001000000 stack=4 cpu=1000000 comm=\"prog\"\n";

/*
 * A thread that changes its name without end: the profile has the first names, those at samples,
 * and the last.
 */
STORY(names_without_end)
{
	enum { NAMES = 20000, EACH = 1000 };
	const struct profile_thread *t;
	char name[16] = "", wanted[16];
	size_t n = 0;

	prog();
	sample(10, 10, 5 * S, HERE);
	for (unsigned int i = 0; i < NAMES; i++) {
		ev.now += 10;
		snprintf(name, sizeof(name), "n%u", i);
		comm(10, 10, name, 0);
		if (i % EACH == EACH / 2)
			sample(10, 10, 5 * S + i, HERE);
	}
	finish();
	t = thread_of(10, 0);
	assert_in_range(ev.p->string_count, 1, PROFILE_RENAMES_MAX + NAMES / EACH + 50);
	assert_int_equal(t->rename_count, PROFILE_RENAMES_MAX);
	assert_string_equal(str(t->name), name);
	assert_int_equal(t->samples[SAMPLE_CPU].count, 1 + NAMES / EACH);
	for (unsigned int i = EACH / 2; i < NAMES; i += EACH) {
		snprintf(wanted, sizeof(wanted), "n%u", i);
		assert_string_equal(str(t->samples[SAMPLE_CPU].comm[++n]), wanted);
	}
}

STORY(ends_that_were_lost)
{
	struct task_event gone = {.pid = 20, .tid = 20};
	const struct thread_life *thread;
	uint64_t end;

	prog();
	fork_(10, 10, 20, 20);
	for (uint32_t tid = 21; tid < 30; tid++)
		fork_(20, 20, 20, tid);
	sample(20, 25, MS, HERE);
	ev.now += MS;
	gone.header = header(EVENT_FROM_PROC);
	end = gone.header.time;
	assert_int_equal(ev.h.exit(ev.h.context, &gone), 0);
	assert_true(process_table__find(world__processes(ev.world), 20)->ended);
	thread = process_table__find_thread(world__processes(ev.world), 25);
	assert_true(thread->ended);
	assert_int_equal(thread->end, end);
	ev.now += 3 * LIFE_GRACE_NS;
	sample(10, 10, 5 * S + MS, HERE);
	assert_null(process_table__find(world__processes(ev.world), 20));
	assert_null(process_table__find_thread(world__processes(ev.world), 25));
	finish();
	assert_int_equal(process_of(thread_of(25, 0))->end, end);
}

TEST(same_events_same_profile)
{
	_cleanup_free_ char *one = story(), *two = story();

	assert_string_equal(one, story_dump);
	assert_string_equal(two, one);
}

/* ---- any order at all ------------------------------------------------------------------------ */

TEST(any_order_keeps_the_invariants)
{
	for (int round = 0; round < 300; round++) {
		set_up();
		seed = round;
		ev.now = S / 2;
		for (int i = 0; i < 400; i++) {
			random_event();
			ev.now += random_below(20) ? random_below(MS) : random_below(3 * S);
			if (i == 50)
				start_sampling();
		}
		if (random_below(2))
			stop();
		assert_true(finish()->sample_count > 0);
		tear_down();
	}
}
