/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about the frames of samples, how often, and the answers that are reported: HotSpot's, by a reader that lies. */
#include "unit.h"
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

		reading->address = q->address;
		reading->time = q->time;
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

	(void)context;
	live.time = event->time;
	live.functions += event->type == EVENT_CODE_FUNCTION;
	live.chains += event->type == EVENT_CODE_CHAIN;
	live.stale += event->type == EVENT_CODE_FUNCTION && f->state == CODE_STATE_STALE;
	return 0;
}

static int set_runtime(void *context, uint32_t tgid, const struct runtime_info *info)
{
	(void)context;
	assert_int_equal(tgid, getpid());
	live.has = info ? info->has : 0;
	return 0;
}

/* tasks_options.released. */
static int end_program(void *context, struct task *task, enum task_end how)
{
	(void)context;
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

static int set_up(void **state)
{
	const struct helper_pool_options pool = {.services = services,
						 .service_count = 1,
						 .class = HELPER_READER,
						 .keeper = HELPER_READER_KEEPER,
						 .silence = S};
	struct code_options options = {.push = count_event, .set_runtime = set_runtime};

	(void)state;
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
	live.now = monotonic_ns();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	helper_pool__free(live.pool);
	live.code.free(live.code.object);
	tasks__free(live.tasks);
	outside_books__free(live.books);
	munmap(reading, sizeof(*reading));
	return 0;
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

static void end_window(void)
{
	assert_int_equal(live.code.close(live.code.object, live.now), 0);
}

static const struct frame_note compiled = {
	.kind = FRAME_NOTE_HOTSPOT_CODE, .place = 0x40, .function = BLOB, .check = CHECK};
static const struct frame_note interpreted = {
	.kind = FRAME_NOTE_HOTSPOT, .place = 0x40, .function = 0xa00, .check = 0xb00};

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

TEST(compiled_code_is_requested_once_for_each_place)
{
	sample_and_run(FRAME_TABLE, &compiled);
	assert_int_equal(reading->codes, 1);
	assert_int_equal(reading->address, BLOB + 0x40 - 1);
	assert_int_equal(reading->time, live.now);
	assert_int_equal(live.chains, 1);
	assert_int_equal(live.functions, 1);
	for (int i = 0; i < 20; i++) {
		live.now += S;
		sample_and_run(FRAME_TABLE, &compiled);
	}
	assert_int_equal(reading->codes, 1);
	/* where the thread was is another place; the method that is in it is known */
	sample_and_run(FRAME_IP, &compiled);
	assert_int_equal(reading->codes, 2);
	assert_int_equal(reading->address, BLOB + 0x40);
	assert_int_equal(live.chains, 2);
	assert_int_equal(live.functions, 1);
	/* but not when it has changed */
	reading->line = 5;
	live.now += S;
	sample(FRAME_IP, &(struct frame_note){.kind = FRAME_NOTE_HOTSPOT_CODE,
					      .place = 0x50,
					      .function = BLOB,
					      .check = CHECK});
	run();
	assert_int_equal(live.functions, 2);
}

/* Processes beyond the limit are counted. */
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

static void assert_left(const char *expected)
{
	char text[OUTSIDE_TEXT_SIZE];
	struct outside_row row;

	assert_true(outside_books__take(live.books, &row));
	outside_row__describe(text, sizeof(text), &row);
	assert_string_equal(strchr(text, ':') + 2, expected);
	assert_false(outside_books__take(live.books, &row));
}

/* A limit of what is read of a process is in the books: of a look, and of its functions. */
TEST(readings_and_functions_cut_by_limits_are_counted)
{
	reading->found.left = 1;
	sample_and_run(FRAME_IP, &interpreted);
	assert_left("1 readings left (memory of language runtimes): too much by itself");
	reading->found.left = 0;
	reading->cut = 3;
	live.now += 2 * S;
	sample_and_run(FRAME_TABLE, &compiled);
	assert_left(
		"3 functions left (functions, read from memory of runtimes): too much by itself");
}

/* It may be gone after some ticks. */
TEST(the_first_sample_of_a_process_starts_a_look)
{
	run();
	assert_int_equal(reading->looks, 0);
	sample(FRAME_IP, &interpreted);
	assert_false(expectation().looks);
	assert_int_equal(live.code.tick(live.code.object, live.now), 0);
	assert_true(expectation().looks);
	assert_true(helper_pool__settle(live.pool, 5 * S));
	assert_false(expectation().looks);
	assert_int_equal(reading->looks, 1);
	assert_true(expectation().begun >= live.now); /* a function was asked about */
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

/* What a look has found is older than the mapping. */
TEST(a_runtime_mapped_during_a_look_causes_another)
{
	sample(FRAME_IP, &interpreted);
	assert_int_equal(live.code.tick(live.code.object, live.now), 0);
	map_runtime();
	assert_true(helper_pool__settle(live.pool, 5 * S));
	for (int i = 0; i < 3; i++) {
		sample_and_run(FRAME_IP, &interpreted);
		live.now += S;
	}
	assert_int_equal(reading->looks, 2);
	/* another one, less than a second later: the series continues */
	map_runtime();
	for (int i = 0; i < 3; i++) {
		sample_and_run(FRAME_IP, &interpreted);
		live.now += S;
	}
	assert_int_equal(reading->looks, 3);
}

TEST(methods_sampled_since_their_reading_are_read_again)
{
	sample_and_run(FRAME_IP, &interpreted);
	live.now += S / 2;
	sample_and_run(FRAME_IP, &interpreted);
	assert_int_equal(reading->methods, 1);
	/* it was sampled after it was read: once more, without another sample */
	live.now += S;
	run();
	assert_int_equal(reading->methods, 2);
	live.now += 3 * S;
	run();
	assert_int_equal(reading->methods, 2);
	assert_int_equal(live.functions, 1);
	/* sampled, and gone when it is read: that is reported, since it had been there */
	reading->state = CODE_STATE_STALE;
	sample_and_run(FRAME_IP, &interpreted);
	assert_int_equal(reading->methods, 3);
	assert_int_equal(live.functions, 2);
	assert_int_equal(live.stale, 1);
}

/* An answer holds from the first sample since the last reading on; the end of a doubt is reported. */
TEST(the_end_of_doubt_about_methods_is_reported)
{
	uint64_t first;

	reading->flags = EVENT_DOUBTFUL;
	sample_and_run(FRAME_IP, &interpreted);
	assert_int_equal(live.functions, 1);
	live.now += S / 3;
	first = live.now;
	for (int i = 0; i < 3; i++) {
		sample_and_run(FRAME_IP, &interpreted);
		live.now += S / 3;
	}
	sample_and_run(FRAME_IP, &interpreted);
	assert_int_equal(reading->methods, 2);
	assert_int_equal(reading->time, first);
	assert_int_equal(live.functions, 1);
	reading->flags = 0;
	for (int i = 0; i < 3; i++) {
		live.now += 2 * S;
		sample_and_run(FRAME_IP, &interpreted);
		assert_int_equal(reading->time, live.now);
		assert_int_equal(live.functions, 2);
		reading->flags = EVENT_DOUBTFUL;
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

/* A process at its limit: a method that may be another one by now loses its old name from then on. */
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

TEST(the_end_of_a_window_completes_readings)
{
	sample_and_run(FRAME_IP, &interpreted);
	end_window();
	run();
	assert_int_equal(reading->methods, 1); /* not sampled since */
	live.now += S / 10;
	sample_and_run(FRAME_IP, &interpreted);
	assert_int_equal(reading->methods, 1);
	end_window();
	assert_true(live.code.waits(live.code.object));
	run();
	assert_int_equal(reading->methods, 2);
}

/* What was never read is no news when it is gone, and the time that counts is that of its first sample. */
TEST(stale_methods_that_were_never_read_are_not_reported)
{
	uint64_t first = live.now;

	reading->state = CODE_STATE_STALE;
	for (int i = 0; i < 200; i++) {
		sample_and_run(FRAME_IP, &interpreted);
		live.now += S;
	}
	assert_int_equal(live.functions, 0);
	assert_int_equal(reading->time, first);
	assert_in_range(reading->methods, 2, 8);
}

/* The receiver drops answers after some windows without them: then they are reported again. */
TEST(functions_unsampled_for_some_windows_are_read_again)
{
	const struct frame_note always = {.kind = FRAME_NOTE_PYTHON, .function = 0xa00, .check = 1};
	const struct frame_note rarely = {.kind = FRAME_NOTE_PYTHON, .function = 0xa40, .check = 1};

	sample(FRAME_IP, &rarely);
	for (int window = 0; window < 4; window++) {
		sample_and_run(FRAME_IP, &always);
		end_window();
	}
	assert_int_equal(reading->methods, 2);
	assert_int_equal(live.functions, 2);
	sample(FRAME_IP, &always);
	sample_and_run(FRAME_IP, &rarely);
	assert_int_equal(reading->methods, 3);
	assert_int_equal(live.functions, 3);
	/* what waits keeps its place */
	sample(FRAME_IP, &interpreted);
	for (int window = 0; window < 4; window++)
		end_window();
	run();
	assert_int_equal(reading->methods, 4);
	assert_int_equal(live.functions, 4);
	assert_false(live.code.waits(live.code.object));
}

/* ---- children of fork ------------------------------------------------------------------------ */

#define CHILD 4190000u /* no process */

static const struct frame_note python[] = {
	{.kind = FRAME_NOTE_PYTHON, .function = 0xa00, .check = 0xb00},
	{.kind = FRAME_NOTE_PYTHON, .function = 0xa40, .check = 0xb01},
};

static void fork_child(uint32_t child)
{
	const struct task_event fork = {.header = {.type = EVENT_FORK, .time = monotonic_ns()},
					.pid = child,
					.tid = child,
					.ppid = (uint32_t)getpid()};

	assert_int_equal(tasks__fork(live.tasks, &fork), 0);
	assert_int_equal(live.code.forked(live.code.object, &fork), 0);
}

/* What was read of the parent before is not read of the child. */
TEST(functions_read_of_parents_are_not_read_of_children)
{
	sample_and_run(FRAME_IP, &python[0]);
	assert_int_equal(reading->methods, 1);
	fork_child(CHILD);
	sample_of(CHILD, FRAME_IP, &python[0]);
	run();
	assert_int_equal(reading->methods, 1);
	/* another one is requested of both, once */
	for (int i = 0; i < 3; i++) {
		sample_of(CHILD, FRAME_IP, &python[1]);
		run();
	}
	assert_int_equal(reading->methods, 3);
	/* and not of later children */
	fork_child(CHILD + 1);
	sample_of(CHILD + 1, FRAME_IP, &python[1]);
	run();
	assert_int_equal(reading->methods, 3);
}

/* A child's samples are read before its fork, and its end may come with them: then its parent is read. */
TEST(the_parent_of_an_ended_child_is_read_instead)
{
	live.now = monotonic_ns() + S;
	sample_of(CHILD, FRAME_IP, &python[0]);
	fork_child(CHILD);
	assert_int_equal(tasks__exit(live.tasks, &(struct task_event){.header = {.type = EVENT_EXIT,
										 .time = live.now},
								      .pid = CHILD,
								      .tid = CHILD}),
			 0);
	run();
	assert_int_equal(reading->methods, 1);
	assert_int_equal(reading->pid, getpid());
	assert_int_equal(live.functions, 1);
	run();
	assert_int_equal(reading->methods, 1);
}

/* Notes about a process that never appears are dropped. */
TEST(notes_are_dropped_when_a_fork_comes_too_late)
{
	sample_of(CHILD, FRAME_IP, &python[0]);
	for (int i = 0; i < 5; i++)
		run();
	fork_child(CHILD);
	run();
	assert_int_equal(reading->methods, 0);
}

/* An address alone may be another function's by the next second. */
TEST(v8_functions_without_a_number_are_read_each_second)
{
	const struct frame_note note = {.kind = FRAME_NOTE_V8, .function = 0x501};

	for (int i = 0; i < 10; i++) {
		sample_and_run(FRAME_IP, &note);
		live.now += S;
	}
	assert_int_equal(reading->methods, 10);
	/* gone: what was sampled since may be another one */
	reading->state = CODE_STATE_STALE;
	sample_and_run(FRAME_IP, &note);
	assert_int_equal(live.stale, 1);
}

TEST(numbered_functions_of_v8_are_seldom_read_again)
{
	const struct frame_note first = {.kind = FRAME_NOTE_V8, .function = 0x501, .check = 7};
	const struct frame_note next = {.kind = FRAME_NOTE_V8, .function = 0x501, .check = 8};

	for (int i = 0; i < 10; i++) {
		sample_and_run(FRAME_IP, &first);
		live.now += S;
	}
	/* now and then, since more may be known of it */
	assert_int_equal(reading->methods, 2);
	assert_int_equal(live.functions, 1);
	/* it was sampled since it was read, but that does not matter */
	live.now -= S;
	end_window();
	assert_false(live.code.waits(live.code.object));
	/* another one at its address is a question of its own */
	sample_and_run(FRAME_IP, &next);
	assert_int_equal(reading->methods, 3);
	assert_int_equal(live.functions, 2);
	/* they are gone: that says nothing of when they were there */
	reading->state = CODE_STATE_STALE;
	live.now += 10 * S;
	sample_and_run(FRAME_IP, &first);
	assert_int_equal(reading->methods, 4);
	assert_int_equal(live.functions, 2);
}

TEST(a_v8_function_that_is_gone_is_reported_once)
{
	const struct frame_note note = {.kind = FRAME_NOTE_V8, .function = 0x501, .check = 7};

	reading->state = CODE_STATE_STALE;
	sample_and_run(FRAME_IP, &note);
	/* there will be no other answer */
	assert_int_equal(live.stale, 1);
	live.now += 10 * S;
	sample_and_run(FRAME_IP, &note);
	assert_int_equal(live.functions, 1);
}

/* Of a JVM: until it is looked at, and when it has called execve, nothing is known. */
TEST(frame_pointers_count_as_kept_from_look_to_exec)
{
	const uint32_t pid = (uint32_t)getpid();

	reading->found.keeps_frame_pointers = true;
	assert_false(code_keeps_frame_pointers(live.tasks, (pid_t)pid));
	sample_and_run(FRAME_IP, &interpreted);
	assert_true(reading->looks > 0);
	assert_true(code_keeps_frame_pointers(live.tasks, (pid_t)pid));
	assert_false(code_keeps_frame_pointers(live.tasks, (pid_t)pid + 1));
	assert_int_equal(tasks__exec(live.tasks, (pid_t)pid, 1), 0);
	assert_false(code_keeps_frame_pointers(live.tasks, (pid_t)pid));
}

#define BESIDE (RUNTIME_HOTSPOT | RUNTIME_HOTSPOT_NOTES)

/*
 * The map of a JVM is a snapshot, so its frames are noted all the same. Others are while maps are not read, but not those of Python,
 * which would be there twice.
 */
TEST(frames_of_a_jvm_are_noted_beside_its_map)
{
	reading->found.info.has = BESIDE | RUNTIME_V8 | RUNTIME_PYTHON;
	sample_and_run(FRAME_IP, &interpreted);
	assert_int_equal(live.has, reading->found.info.has);
	live.code.pause_jit(live.code.object, true);
	assert_int_equal(live.has, reading->found.info.has);
	report_map(getpid());
	assert_int_equal(live.has, BESIDE | RUNTIME_V8);
	live.code.pause_jit(live.code.object, false);
	assert_int_equal(live.has, BESIDE);
	live.code.pause_jit(live.code.object, true);
	assert_int_equal(live.has, BESIDE | RUNTIME_V8);
	/* what is noted is requested */
	sample_and_run(FRAME_TABLE, &compiled);
	assert_int_equal(reading->codes, 1);
}

TEST(frames_of_node_are_noted_while_maps_are_paused)
{
	reading->found.info.has = RUNTIME_V8;
	sample(FRAME_IP, &interpreted);
	report_map(getpid());
	run();
	assert_int_equal(live.has, 0);
	live.code.pause_jit(live.code.object, true);
	assert_int_equal(live.has, RUNTIME_V8);
	live.code.pause_jit(live.code.object, false);
	assert_int_equal(live.has, 0);
}

/* Pieces of code: when the runtime is found, and at the end of the first window. */
TEST(pieces_are_listed_when_found_and_after_a_window)
{
	sample_and_run(FRAME_IP, &interpreted);
	assert_int_equal(reading->lists, 0);
	end_window();
	run();
	assert_int_equal(reading->lists, 0);
	reading->found.info.has = BESIDE;
	map_runtime();
	live.now += 2 * S;
	sample_and_run(FRAME_IP, &interpreted);
	run();
	assert_int_equal(reading->lists, 1);
	for (int i = 0; i < 3; i++) {
		end_window();
		run();
		run();
	}
	assert_int_equal(reading->lists, 2);
}

EACH_TEST_WITH(set_up, tear_down);
