/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about the frames of samples, how often, and the answers that are reported: HotSpot's, by a reader that lies. */
#include <math.h>

#include "text_cases.h"
#include "base/clocks.h"
#include "base/io.h"
#include "forge_cpython.h"
#include "runtimes/ask/code.h"
#include "runtimes/ask/runtime_reader.h"
#include "runtimes/python/code.h"

#define S     1000000000ull
#define BLOB  0x7f0000001000
#define CHECK (7ull << 32 | 5)
#define BIG   32768u
#define NODE  "/usr/bin/node"

/* As code_reader sends it. */
struct request {
	uint32_t pid, count;
	uint64_t started;
	struct code_question questions[CODE_QUESTIONS_MAX];
};

struct answer {
	struct runtime_findings findings;
	int32_t result;
	uint32_t left;
	uint64_t ended;
};

/* The requests to the reader, and its answers. */
static struct reading {
	enum code_state state; /* of methods */
	uint32_t line;	       /* of them */
	uint32_t flags;	       /* … of their events */
	bool is_big;	       /* their events are */
	uint32_t methods, codes, looks;
	struct runtime_findings found;
	uint32_t cut, lists;	/* answers cut short by a limit; requests for a list of pieces */
	uint32_t pid;		/* of the last request */
	uint64_t address, time; /* of the last question */
	uint64_t ended, looked; /* the ends of the last reading and look */
} * reading;

static struct {
	struct helper_pool *pool;
	struct tasks *tasks;
	struct live_part code;
	struct outside_books *books;
	size_t functions, chains, stale;
	uint32_t has;	    /* what the kernel notes */
	uint64_t now, time; /* time: of the last event */
	uint64_t start;	    /* of the test, by `now` */
} live;

static struct live_expectation expectation(void)
{
	struct live_expectation e = {};

	live.code.expect(live.code.object, &e);
	return e;
}

static void report_map(pid_t pid)
{
	const struct jit_file_event file = {
		.header = {.type = EVENT_JIT_FILE, .size = sizeof(file)},
		.pid = (uint32_t)pid,
		.state = JIT_FILE_STATE_FOLLOWED};

	assert_int_equal(live.code.reported(live.code.object, &file.header), 0);
}

/* ---- the reader ------------------------------------------------------------------------------ */

static void write_function(int fd, uint32_t pid, uint32_t kind, uint64_t function, uint64_t check)
{
	static struct {
		struct code_function_event e;
		char text[BIG];
	} f;

	f = (__typeof__(f)){.e = {.header = {.type = EVENT_CODE_FUNCTION,
					     .size = sizeof(f.e) + 8,
					     .flags = reading->flags},
				  .pid = pid,
				  .kind = kind,
				  .state = reading->state,
				  .name_size = 2,
				  .file_size = 1,
				  .function = function,
				  .check = check,
				  .line = reading->line},
			    .text = "m"};
	if (reading->is_big)
		f.e.header.size = sizeof(f);
	write_full(fd, &f, f.e.header.size);
}

/* A chain, and before it the method that is in it. */
static void write_chain(int fd, uint32_t pid, const struct code_question *q)
{
	struct {
		struct code_chain_event e;
		struct code_call calls[2];
	} c = {.e = {.header = {.type = EVENT_CODE_CHAIN, .size = sizeof(c)},
		     .pid = pid,
		     .kind = q->kind,
		     .state = CODE_STATE_CONFIRMED,
		     .call_count = 2,
		     .function = q->function,
		     .address = q->address},
	       .calls = {{.function = 0xc00, .check = 0xd00},
			 {.function = q->function, .check = q->check}}};

	write_function(fd, pid, FRAME_NOTE_HOTSPOT, 0xc00, 0xd00);
	write_full(fd, &c, sizeof(c));
}

static void serve(struct helper_job *job)
{
	static struct request request;
	int fd = memfd_create("answer", MFD_CLOEXEC);

	memcpy(&request, job->request, job->request_size);
	reading->looks += !request.count;
	*(struct answer *)job->answer = (struct answer){
		.findings = reading->found,
		.left = request.count ? reading->cut : 0,
		.ended = *(request.count ? &reading->ended : &reading->looked) = monotonic_ns()};
	job->answer_size = sizeof(struct answer);
	for (uint32_t i = 0; i < request.count; i++) {
		const struct code_question *q = &request.questions[i];

		if (q->function) {
			reading->address = q->address;
			reading->time = q->time;
		}
		if (!q->function) {
			reading->lists += q->kind == FRAME_NOTE_HOTSPOT_CODE;
			write_function(fd, request.pid, q->kind, BLOB, 0x100);
		} else if (q->kind == FRAME_NOTE_HOTSPOT_CODE) {
			reading->codes++;
			write_chain(fd, request.pid, q);
		} else if (q->address) {
			reading->codes++; /* V8's, of which it has nothing to say */
		} else {
			reading->methods++;
			reading->pid = request.pid;
			write_function(fd, request.pid, q->kind, q->function, q->check);
		}
	}
	job->answer_fds[job->answer_fd_count++] = fd;
}

static const helper_serve_fn services[] = {serve};

/* ---- the session ----------------------------------------------------------------------------- */

static int count_event(void *context, struct event_header *event)
{
	const struct code_function_event *f = (const struct code_function_event *)event;

	live.time = event->time;
	live.functions += event->type == EVENT_CODE_FUNCTION;
	live.chains += event->type == EVENT_CODE_CHAIN;
	live.stale += event->type == EVENT_CODE_FUNCTION && f->state == CODE_STATE_STALE;
	return 0;
}

static int set_runtime(void *context, uint32_t tgid, const struct runtime_info *info)
{
	assert_int_equal(tgid, getpid());
	live.has = info ? info->has : 0;
	return 0;
}

/* tasks_options.released. */
static int end_program(void *context, struct task *task, enum task_end how)
{
	return how == TASK_EXECED ? live.code.execed(live.code.object, task)
				  : live.code.exited(live.code.object, task);
}

static void map_file_of(pid_t pid, const char *path)
{
	union {
		struct mmap_event m;
		char bytes[sizeof(struct mmap_event) + 64];
	} mapping = {.m = {.pid = (uint32_t)pid, .protection = PROT_EXEC, .inode = 5}};

	strcpy(mapping.m.path, path);
	assert_int_equal(
		live.code.mapped(live.code.object, tasks__need(live.tasks, pid), &mapping.m), 0);
}

static void map_runtime(void)
{
	map_file_of(getpid(), NODE);
}

static void begin(void)
{
	const struct helper_pool_options pool = {.services = services,
						 .service_count = 1,
						 .class = HELPER_READER,
						 .keeper = HELPER_READER_KEEPER,
						 .silence = S};
	struct code_options options = {.push = count_event, .set_runtime = set_runtime};

	memset(&live, 0, sizeof(live));
	reading = mmap(NULL, sizeof(*reading), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	reading->state = CODE_STATE_CONFIRMED;
	assert_int_equal(helper_pool__new(&pool, &live.pool), 0);
	options.readers = live.pool;
	options.books = live.books = outside_books__new();
	options.tasks = live.tasks = tasks__new(&(struct tasks_options){
		.everyone = true, .inherit = true, .released = end_program});
	assert_non_null(live.tasks);
	assert_int_equal(code_part__new(&options, &live.code), 0);
	map_runtime();
	live.now = live.start = monotonic_ns();
}

static void end(void)
{
	helper_pool__free(live.pool);
	live.code.free(live.code.object);
	tasks__free(live.tasks);
	outside_books__free(live.books);
	munmap(reading, sizeof(*reading));
}

static void set_up(void)
{
	begin();
}

static void tear_down(void)
{
	end();
}

static void sample_of(uint32_t pid, enum frame_kind kind, const struct frame_note *note)
{
	struct {
		struct sample_event e;
		__u64 frame;
		struct frame_note note;
	} s = {.e = {.header = {.type = EVENT_SAMPLE, .size = sizeof(s), .time = live.now},
		     .tgid = pid,
		     .user_frames = 1,
		     .notes = 1},
	       .frame = frame_pack(kind, 0x1000),
	       .note = *note};

	assert_int_equal(
		live.code.sampled(live.code.object, tasks__need(live.tasks, (pid_t)pid), &s.e), 0);
}

static void sample(enum frame_kind kind, const struct frame_note *note)
{
	sample_of((uint32_t)getpid(), kind, note);
}

static void run(void)
{
	assert_int_equal(live.code.tick(live.code.object, live.now), 0);
	assert_true(helper_pool__settle(live.pool, 5 * S));
}

static void sample_and_run(enum frame_kind kind, const struct frame_note *note)
{
	sample(kind, note);
	run();
}

static const struct frame_note interpreted = {
	.kind = FRAME_NOTE_HOTSPOT, .place = 0x40, .function = 0xa00, .check = 0xb00};

#define BESIDE (RUNTIME_HOTSPOT | RUNTIME_HOTSPOT_NOTES)
#define CHILD  4190000 /* no process */

static void fork_child(pid_t child)
{
	const struct task_event fork = {.header = {.type = EVENT_FORK, .time = monotonic_ns()},
					.pid = (uint32_t)child,
					.tid = (uint32_t)child,
					.ppid = (uint32_t)getpid()};

	assert_int_equal(tasks__fork(live.tasks, &fork), 0);
	assert_int_equal(live.code.forked(live.code.object, &fork), 0);
}

/* ---- testdata/live_code.txt ------------------------------------------------------------------ */

static const struct {
	const char *name;
	enum frame_kind kind;
	struct frame_note note;
} samples[] = {
	{"compiled", FRAME_TABLE, {0, FRAME_NOTE_HOTSPOT_CODE, 0, 0x40, BLOB, CHECK}},
	{"compiled-leaf", FRAME_IP, {0, FRAME_NOTE_HOTSPOT_CODE, 0, 0x40, BLOB, CHECK}},
	{"compiled-50", FRAME_IP, {0, FRAME_NOTE_HOTSPOT_CODE, 0, 0x50, BLOB, CHECK}},
	{"interpreted", FRAME_IP, {0, FRAME_NOTE_HOTSPOT, 0, 0x40, 0xa00, 0xb00}},
	{"python", FRAME_IP, {0, FRAME_NOTE_PYTHON, 0, 0, 0xa00, 0xb00}},
	{"python-2", FRAME_IP, {0, FRAME_NOTE_PYTHON, 0, 0, 0xa40, 0xb01}},
	{"v8", FRAME_IP, {0, FRAME_NOTE_V8, 0, 0, 0x501, 0}},
	{"v8-7", FRAME_IP, {0, FRAME_NOTE_V8, 0, 0, 0x501, 7}},
	{"v8-8", FRAME_IP, {0, FRAME_NOTE_V8, 0, 0, 0x501, 8}},
};

/* "child" and "child-2"; else this process. */
static pid_t process_named(const char *name)
{
	return !strcmp(name, "child") ? CHILD : !strcmp(name, "child-2") ? CHILD + 1 : getpid();
}

static void sample_named(const char *name, pid_t pid)
{
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		if (!strcmp(samples[i].name, name)) {
			sample_of((uint32_t)pid, samples[i].kind, &samples[i].note);
			return;
		}
	fail_msg("no sample '%s'", name);
}

/* What the reader finds and answers from now on. */
static void set_reader(const char *what, uint64_t value)
{
	static const struct {
		const char *name;
		size_t at, size;
	} fields[] = {
#define FIELD(name, field) {name, offsetof(struct reading, field), sizeof(reading->field)}
		FIELD("state", state),
		FIELD("line", line),
		FIELD("flags", flags),
		FIELD("cut", cut),
		FIELD("left", found.left),
		FIELD("has", found.info.has),
		FIELD("may-come", found.may_come),
		FIELD("frame-pointers", found.keeps_frame_pointers),
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!strcmp(fields[i].name, what)) {
			memcpy((char *)reading + fields[i].at, &value, fields[i].size);
			return;
		}
	fail_msg("no '%s' of the reader", what);
}

/* What happens to the process. */
static bool happens(const char *what, char *words)
{
	pid_t pid = process_named(text_word(&words));
	struct task_event exit = {.header = {.type = EVENT_EXIT, .time = live.now},
				  .pid = (uint32_t)pid,
				  .tid = (uint32_t)pid};

	if (!strcmp(what, "map-runtime"))
		map_file_of(pid, NODE);
	else if (!strcmp(what, "perf-map"))
		report_map(pid);
	else if (!strcmp(what, "fork"))
		fork_child(pid);
	else if (!strcmp(what, "exit"))
		assert_int_equal(tasks__exit(live.tasks, &exit), 0);
	else if (!strcmp(what, "exec"))
		assert_int_equal(tasks__exec(live.tasks, pid, 1), 0);
	else
		return false;
	return true;
}

static void put_books(FILE *out)
{
	char text[OUTSIDE_TEXT_SIZE];
	struct outside_row row;

	for (const char *between = ""; outside_books__take(live.books, &row); between = ", ") {
		outside_row__describe(text, sizeof(text), &row);
		fprintf(out, "%s%s", between, strchr(text, ':') + 2);
	}
}

static bool take_step(FILE *out, const char *name, char *words)
{
	const char *word = text_word(&words);

	if (*name == '+')
		live.now += (uint64_t)llround(strtod(name + 1, NULL) * S);
	else if (!strcmp(name, "sample"))
		sample_named(word, process_named(text_word(&words)));
	else if (!strcmp(name, "run"))
		run();
	else if (!strcmp(name, "tick"))
		assert_int_equal(live.code.tick(live.code.object, live.now), 0);
	else if (!strcmp(name, "settle"))
		assert_true(helper_pool__settle(live.pool, 5 * S));
	else if (!strcmp(name, "close"))
		assert_int_equal(live.code.close(live.code.object, live.now), 0);
	else if (!strcmp(name, "pause-maps") || !strcmp(name, "read-maps"))
		live.code.pause_jit(live.code.object, *name == 'p');
	else if (!strcmp(name, "reader"))
		set_reader(word, strtoul(words, NULL, 0));
	else if (!strcmp(name, "waits"))
		fputs(live.code.waits(live.code.object) ? "waits" : "does not wait", out);
	else if (!strcmp(name, "expects"))
		fputs(expectation().looks ? "expects a look" : "expects no look", out);
	else if (!strcmp(name, "whom"))
		fputs(reading->pid == (uint32_t)getpid() ? "of the parent" : "of a child", out);
	else if (!strcmp(name, "books"))
		put_books(out);
	else if (!strcmp(name, "keeps"))
		fputs(code_keeps_frame_pointers(live.tasks, process_named(word)) ? "keeps"
										 : "may not",
		      out);
	else
		return happens(name, (char *)word);
	return true;
}

struct counts {
	size_t of[8];
};

static struct counts counts(void)
{
	return (struct counts){{reading->looks, reading->methods, reading->codes, reading->lists,
				live.functions, live.chains, live.stale, live.has}};
}

static void put_question(FILE *out)
{
	if (reading->address >= BLOB && reading->address < BLOB + 0x1000)
		fprintf(out, ", at %" PRIx64, reading->address - BLOB);
	fprintf(out, ", asked for +%g", (double)(int64_t)(reading->time - live.start) / S);
}

/* Steps, and the counts that are others behind them. "N times": as often. */
static void run_steps(FILE *out, char *input)
{
	static const char *const names[] = {"looks",	 "methods", "codes", "lists",
					    "functions", "chains",  "stale", "has"};
	const struct counts before = counts();
	char *steps = strstr(input, " times ");
	unsigned long times = steps ? strtoul(input, NULL, 10) : 1;
	struct counts after;
	char copy[256];

	for (unsigned long i = 0; i < times; i++) {
		snprintf(copy, sizeof(copy), "%s", steps ? steps + 7 : input);
		text_run_steps(i + 1 < times ? stderr : out, copy, take_step);
	}
	after = counts();
	for (size_t i = 0; i < 8; i++)
		if (after.of[i] != before.of[i])
			fprintf(out, "%s%s %zu", ftell(out) ? ", " : "", names[i], after.of[i]);
	if (after.of[1] + after.of[2] > before.of[1] + before.of[2])
		put_question(out);
}

static const struct text_verb verbs[] = {{"steps", run_steps}, {}};

TEXT_TABLE("live_code", verbs, begin, end);

/* ---- limits and times ------------------------------------------------------------------------ */

/* By its time an event is of the program before an execve or of the one after it. */
TEST(events_have_the_time_of_their_reading_or_copy)
{
	static struct {
		struct code_copy_event e;
		char table[CODE_COPY_TABLE];
	} copy;
	static struct forged f;
	struct target_memory m = forged_memory(&f);
	struct cpython_identity identity;
	const uint32_t code = FORGED_CODE + 3 * 0x200;

	sample_and_run(FRAME_IP, &interpreted);
	assert_int_equal(live.functions, 1);
	assert_int_equal(live.time, reading->ended);

	assert_true(forged_program(&f, 0x030d05f0));
	reading->found.layout.size = sizeof(f.py.layout);
	memcpy(reading->found.layout.bytes, &f.py.layout, sizeof(f.py.layout));
	reading->found.info.has = RUNTIME_V8;
	for (uint32_t i = 0; i < RUNTIME_MEMORIES_MAX; i++)
		reading->found.of[i] = (struct runtime_finding){.is_there = true, .state = 1};
	map_runtime();
	sample_and_run(FRAME_IP, &interpreted);
	assert_true(reading->looked > reading->ended);
	assert_in_range(live.time, reading->ended + 1, reading->looked - 1);

	assert_int_equal(cpython_identity__of_head(&f.py, &m, f.bytes + code, &identity), 0);
	assert_true(forged_copy(&f, &f.py.layout, forged_address(code),
				(uint64_t)identity.version << 32 | identity.firstline, &copy.e));
	copy.e.tgid = (uint32_t)getpid();
	copy.e.header.time = live.now;
	assert_int_equal(live.code.reported(live.code.object, &copy.e.header), 0);
	assert_int_equal(live.functions, 2);
	assert_int_equal(live.time, live.now);
}

TEST(processes_beyond_the_limit_are_counted)
{
	struct outside_row row;

	for (pid_t pid = 1 << 23; pid < (1 << 23) + 16384; pid++)
		map_file_of(pid, NODE);
	assert_true(outside_books__take(live.books, &row));
	assert_int_equal(row.thing, OUTSIDE_RUNTIMES);
	assert_int_equal(row.reason, OUTSIDE_BY_ALL);
	assert_int_equal(row.count, 1); /* there is one of ours */
	assert_false(outside_books__take(live.books, &row));
}

/* A process may execute another program before the look. */
TEST(a_program_is_known_to_have_no_runtime_if_it_was_looked_at)
{
	static const uint32_t inodes[] = {0, 6, 5, 5}, looks[] = {1, 2, 3, 3};

	for (size_t i = 0; i < 4; i++) {
		map_file_of(1, "/opt/program");
		reading->found.inode = inodes[i];
		sample_of(1, FRAME_IP, &interpreted);
		run();
		assert_int_equal(reading->looks, looks[i]);
		assert_int_equal(tasks__exec(live.tasks, 1, 1), 0);
	}
}

/* Questions that find no room: when they find one, they are about the first sample that had none. */
TEST(deferred_requests_have_the_time_of_their_first_sample)
{
	struct frame_note other = interpreted;
	uint64_t first;

	sample_and_run(FRAME_IP, &interpreted);
	first = live.now += S / 10;
	for (int i = 0; i < 1025; i++) {
		other.function += 8;
		sample(FRAME_IP, &other);
	}
	sample_and_run(FRAME_IP, &interpreted);
	assert_int_equal(reading->methods, 1 + 1024);
	live.now += 2 * S;
	sample_and_run(FRAME_IP, &other);
	assert_int_equal(reading->methods, 1 + 1024 + 2);
	assert_int_equal(reading->time, first);
	live.now += 2 * S;
	run();
	assert_int_equal(reading->methods, 1 + 1024 + 2);
}

/* Until one more is refused. What was used comes back with time, so how many that are is not sure. */
static void use_up_the_limit(struct frame_note *other)
{
	size_t before;

	do {
		assert_true(live.functions < 4096);
		before = live.functions;
		other->function += 8;
		sample_and_run(FRAME_IP, other);
	} while (live.functions > before);
}

TEST(at_the_limit_a_replaced_method_becomes_stale)
{
	struct frame_note other = interpreted;
	struct outside_row row;

	sample_and_run(FRAME_IP, &interpreted);
	reading->is_big = true;
	use_up_the_limit(&other);
	assert_true(live.functions > 200);
	assert_true(outside_books__take(live.books, &row));
	assert_int_equal(row.user, getuid());
	assert_int_equal(row.thing, OUTSIDE_FUNCTIONS);
	assert_int_equal(row.reason, OUTSIDE_BY_ITSELF);
	assert_int_equal(live.stale, 0);
	for (int i = 0; i < 20 && !live.stale; i++) { /* it is read again, and is another one */
		use_up_the_limit(&other);
		reading->line++;
		live.now += S + S / 10;
		sample_and_run(FRAME_IP, &interpreted);
	}
	assert_int_equal(live.stale, 1);
	live.now += 60 * S;
	sample_and_run(FRAME_IP, &interpreted);
	assert_int_equal(live.stale, 1);
	assert_true(reading->methods > 200);
}

EACH_TEST_WITH(set_up, tear_down);
