/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A runtime is added by one folder (madeup/) and one line, below. It goes through the finder, the questions of a session, the
 * dictionary of functions, the stacks of a profile and the judgement, and none of these has been changed for it.
 */

#define RUNTIME_TABLE(X) X(madeup)

#include "unit.h"
#include "madeup/runtime.c"
#include "base/cleanup.h"
#include "runtimes/table.c"

#include "managed_support.h"

#include "base/clocks.h"
#include "elf/elf_file.h"
#include "runtimes/ask/code.h"
#include "runtimes/ask/runtime_reader.h"
#include "runtimes/table.h"
#include "session/process_survey.h"

static struct madeup_heap heap __attribute__((aligned(64))) = {
	.magic = MADEUP_MAGIC,
	.functions = {{.number = 7, .line = 11, .name = "first"},
		      {.number = 8, .line = 22, .name = "second"}},
};

static struct {
	struct helper_pool *pool;
	struct tasks *tasks;
	struct live_part code;
	uint64_t now;
	size_t functions;
	uint32_t has; /* as the kernel gets it */
} live;

/* ---- what a process has ---------------------------------------------------------------------- */

/* The finder needs /proc/PID/map_files, which is root's: the lookup of this program by hand. */
static void look(struct found *found, bool *may_come)
{
	struct found_runtimes process = {.pid = getpid()};
	struct runtime_lookup lookup = {.bias = (uintptr_t)&heap,
					.memory = found_runtimes__memory(&process)};

	*found = (struct found){};
	madeup_memory.find(found, &lookup);
	*may_come = lookup.may_come;
}

TEST(a_runtime_is_found_by_file_memory_and_note)
{
	struct note_table notes_by_kind;

	assert_ptr_equal(runtime_of_file("madeup2.1"), &madeup_runtime);
	assert_null(runtime_of_file("madeup-config"));
	assert_ptr_equal(runtime_like_file("madeup-config"), &madeup_runtime);
	assert_true(runtime_may_be_in("/usr/bin/madeup"));
	assert_null(runtime_of_file("node"));
	assert_ptr_equal(runtime_memory(0), &madeup_memory);
	assert_null(runtime_memory(1));
	assert_ptr_equal(runtime_of_note(MADEUP_NOTE), &madeup_runtime);
	note_table__init(&notes_by_kind);
	assert_ptr_equal(notes_by_kind.of[MADEUP_NOTE], notes);
	assert_null(notes_by_kind.of[FRAME_NOTE_PYTHON]);
}

TEST(a_heap_is_found_when_it_has_a_version)
{
	struct runtime_findings findings = {};
	struct found found;
	bool may_come;

	heap.version = 0;
	look(&found, &may_come);
	assert_true(may_come);
	heap.version = 3;
	look(&found, &may_come);
	assert_false(may_come);
	assert_int_equal(found.heap, (uintptr_t)&heap);
	madeup_memory.describe(&found, &findings, &findings.of[0]);
	assert_int_equal(findings.of[0].version[0], 3);
}

/* ---- a session ------------------------------------------------------------------------------- */

/* Into the recorder; there the process is number 10. */
static int take_event(void *context, struct event_header *event)
{
	struct code_function_event *f = (struct code_function_event *)event;

	assert_int_equal(event->type, EVENT_CODE_FUNCTION);
	live.functions++;
	f->pid = who;
	event->time = header(0).time;
	ev.now += MS;
	return event_decode(event, &ev.h);
}

static int set_runtime(void *context, uint32_t tgid, const struct runtime_info *info)
{
	assert_int_equal(tgid, getpid());
	live.has = info ? info->has : 0;
	return 0;
}

/* As code_reader__serve, with what was found by hand. */
static void serve(struct helper_job *job)
{
	static struct found_runtimes process;
	struct found found;
	bool may_come;
	struct {
		struct runtime_findings findings;
		int32_t result;
		uint32_t left;
		uint64_t ended;
	} *reply = job->answer;
	struct {
		uint32_t pid, count;
		uint64_t started;
		struct code_question questions[CODE_QUESTIONS_MAX];
	} request;
	_cleanup_(code_answers__fini) struct code_answers answers = {.limit = 1u << 20};
	int fd = memfd_create("answer", MFD_CLOEXEC);

	memcpy(&request, job->request, job->request_size);
	answers.pid = request.pid;
	process.pid = (pid_t)request.pid;
	process.memory = found_runtimes__memory(&process);
	process.state[0] = &found;
	look(&found, &may_come);
	found_runtimes__describe(&process, &reply->findings);
	reply->ended = monotonic_ns();
	job->answer_size = sizeof(*reply);
	code_answers__begin(&process);
	for (uint32_t i = 0; i < request.count; i++)
		code_answers__add(&answers, &process, &request.questions[i]);
	if (write(fd, answers.bytes.data, answers.bytes.count) == (ssize_t)answers.bytes.count)
		job->answer_fds[job->answer_fd_count++] = fd;
}

static const helper_serve_fn services[] = {serve};

static void start_session(void)
{
	const struct helper_pool_options pool = {.services = services,
						 .service_count = 1,
						 .class = HELPER_READER,
						 .keeper = HELPER_READER_KEEPER,
						 .silence = S};
	struct code_options options = {.push = take_event, .set_runtime = set_runtime};
	union {
		struct mmap_event m;
		char bytes[sizeof(struct mmap_event) + 64];
	} mapping = {};

	memset(&live, 0, sizeof(live));
	assert_int_equal(helper_pool__new(&pool, &live.pool), 0);
	options.readers = live.pool;
	options.tasks = live.tasks = tasks__new(&(struct tasks_options){.everyone = true});
	assert_non_null(live.tasks);
	assert_int_equal(code_part__new(&options, &live.code), 0);
	mapping.m.pid = (uint32_t)getpid();
	strcpy(mapping.m.path, "/usr/bin/madeup");
	assert_int_equal(
		live.code.mapped(live.code.object, tasks__need(live.tasks, getpid()), &mapping.m),
		0);
	live.now = monotonic_ns();
}

static void end_session(void)
{
	helper_pool__free(live.pool);
	live.code.free(live.code.object);
	tasks__free(live.tasks);
}

static void run(void)
{
	assert_int_equal(live.code.tick(live.code.object, live.now), 0);
	assert_true(helper_pool__settle(live.pool, 5 * S));
}

static struct frame_note note_of_function(unsigned int number)
{
	return (struct frame_note){.frame = 1,
				   .kind = MADEUP_NOTE,
				   .function = (uintptr_t)&heap.functions[number],
				   .check = 7 + number};
}

/* A sample of the process, in the session and in the recorder. */
static void sample_of(unsigned int number)
{
	const struct frame_note note = note_of_function(number);
	struct {
		struct sample_event e;
		__u64 frames[2];
		struct frame_note note;
	} s = {.e = {.header = {.type = EVENT_SAMPLE, .size = sizeof(s), .time = live.now},
		     .tgid = (uint32_t)getpid(),
		     .user_frames = 2,
		     .notes = 1},
	       .note = note};

	assert_int_equal(
		live.code.sampled(live.code.object, tasks__need(live.tasks, getpid()), &s.e), 0);
	noted_sample(2, &note, 1);
	run();
}

TEST_WITH(functions_of_an_added_runtime_are_named_in_stacks, set_up, tear_down)
{
	heap.version = 3;
	begin();
	start_session();
	sample_of(0);
	assert_int_equal(live.has, RUNTIME_V8);
	assert_int_equal(live.functions, 1);
	sample_of(1);
	assert_int_equal(live.functions, 2);
	/* it has a number: it is read again, seldom, and an equal answer is none */
	live.now += S;
	sample_of(0);
	live.now += 10 * S;
	sample_of(0);
	assert_int_equal(live.functions, 2);
	/* another function's number is not taken for this one */
	heap.functions[2] = (struct madeup_function){.number = 1, .name = "other"};
	sample_of(2);
	end_session();
	finish();
	assert_string_equal(lines_of(0), "first [prog]");
	assert_string_equal(lines_of(1), "second [prog]");
	assert_string_equal(lines_of(4), "[V8] [prog]");
	assert_string_equal(counted(), "V8 5 0 1 0");
}

TEST(a_runtime_is_judged_by_the_version_found)
{
	_cleanup_(process_survey__fini) struct process_survey s = {.memory_answered = true};
	struct surveyed_file file = {.path = strdup("/usr/bin/madeup"), .answered = true};
	struct found found = {.heap = 1};

	assert_int_equal(vec_push(&s.files, file), 0);
	madeup_memory.describe(&found, &s.found, &s.found.of[0]);
	assert_int_equal(process_survey__judge(&s), 0);
	assert_int_equal(s.runtimes.data[0].mark, SURVEY_BAD);
	assert_string_equal(s.runtimes.data[0].remedy, "start it");
	found.version = 3;
	s.runtimes.count = 0;
	madeup_memory.describe(&found, &s.found, &s.found.of[0]);
	assert_int_equal(process_survey__judge(&s), 0);
	assert_int_equal(s.runtimes.count, 1);
	assert_int_equal(s.runtimes.data[0].mark, SURVEY_GOOD);
	assert_string_equal(s.runtimes.data[0].version, "3");
	assert_null(s.runtimes.data[0].remedy);
}
