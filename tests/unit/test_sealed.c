/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sealed children: what they may and may not, and what becomes of a job whose child crashes, hangs,
 * eats memory or lies. The children are real; what they do in place of reading a module is said here.
 */
#include <dirent.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include "unit.h"

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "symbolize/sealed.h"
#include "symbolize/sealed_protocol.h"
#include "symbolize/symbol_index.h"
#include "tenants/quota.h"
#include "unit/sealed_support.h"

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true
#else
#define SANITIZED false
#endif

#define SECOND 1000000000ull

/* ---- what children do ------------------------------------------------------------------------ */

/* The second job misbehaves in its first child, in the way that the test is about. */
static bool is_bad(const struct module_files *files, const uint64_t *addresses)
{
	return !files->symbols_only && addresses[0] == 0x2000;
}

#define BAD_CHILD(name, how)                                                                       \
	static int name(const struct module_files *files, const uint64_t *addresses, size_t count, \
			symbol_sink_fn sink, void *context, struct module_report *report)          \
	{                                                                                          \
		if (is_bad(files, addresses)) {                                                    \
			struct symbol_result nothing = {.elf_address = 1};                         \
                                                                                                   \
			sink(context, 0, &nothing);                                                \
			how;                                                                       \
		}                                                                                  \
		return answer_all(files, addresses, count, sink, context, report);                 \
	}

/* Makes the call, then answers as a good child does: it has crashed only if the call ended it. */
#define CALLING_CHILD(name, call)                                                                  \
	static int name(const struct module_files *files, const uint64_t *addresses, size_t count, \
			symbol_sink_fn sink, void *context, struct module_report *report)          \
	{                                                                                          \
		if (is_bad(files, addresses)) {                                                    \
			call;                                                                      \
		}                                                                                  \
		return answer_all(files, addresses, count, sink, context, report);                 \
	}

static void say_message(uint32_t flags, const void *data, size_t size)
{
	static struct message_buffer message;

	message.frame = (struct message_frame){.flags = flags, .size = size};
	memcpy(message.bytes, data, size);
	if (message__write(CHILD_SOCKET, &message))
		_exit(1);
}

static void say(const void *data, size_t size)
{
	say_message(0, data, size);
}

static void say_event(uint16_t type, uint32_t size, const void *body, size_t body_size)
{
	struct event_header header = {.size = size, .type = type};

	say(&header, sizeof(header));
	say(body, body_size);
}

/* An answer with one frame, whose strings are what comes behind it. */
struct said_answer {
	uint64_t index, elf_address;
	uint32_t frames, same_size;
	struct symbol_event_frame frame;
	char strings[4008];
};

static void say_answer(const struct said_answer *answer)
{
	say_event(EVENT_SYMBOL, sizeof(struct event_header) + sizeof(*answer), answer,
		  sizeof(*answer));
}

static void say_noise(void)
{
	char noise[4096];

	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)(i * 167 + 13);
	for (;;)
		say(noise, sizeof(noise));
}

static void say_packet(void)
{
	write_full(CHILD_SOCKET, "no message", 10);
	pause();
}

static void say_nothing(void)
{
	for (;;)
		say("", 0);
}

static void say_hello_again(void)
{
	say_message(MESSAGE_PROGRESS, "", 0);
	pause();
}

/* Whole answers, one after the other, without end: the first of them is there already. */
static void say_answers(void)
{
	struct said_answer answer = {.index = 1, .frames = 1, .frame.name_size = 4000};

	memset(answer.strings, 'x', 3999);
	for (;; answer.index++)
		say_answer(&answer);
}

static void say_open_string(void)
{
	struct said_answer answer = {.index = 1, .frames = 1, .frame.name_size = 8};

	memcpy(answer.strings, "12345678", 8);
	say_answer(&answer);
	pause();
}

static void say_wrong_index(void)
{
	say_answer(&(struct said_answer){.index = 2});
	pause();
}

/* The place of an earlier string: far behind all that was sent. */
static void say_unknown_string(void)
{
	struct said_answer answer = {.index = 1, .frames = 1, .frame.file_size = 0xffff};

	memset(answer.strings, 0x7f, 4);
	say_answer(&answer);
	pause();
}

static void say_too_many_frames(void)
{
	say_answer(&(struct said_answer){.index = 1, .frames = 1u << 30});
	pause();
}

static void say_early_end(void)
{
	char body[8 + sizeof(struct module_report)] = {};

	say_message(MESSAGE_DONE, body, sizeof(body));
	pause();
}

static void say_short_report(void)
{
	say_message(MESSAGE_DONE, "", 1);
	pause();
}

static void say_record_without_size(void)
{
	say_event(EVENT_SYMBOL, 0, "", 0);
	pause();
}

static void eat_memory(void)
{
	for (;;) {
		void *p = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		if (p == MAP_FAILED)
			return;
		memset(p, 1, 16 << 20);
	}
}

/* As for a file system that does not answer; pause() is refused. */
static void wait_for_nothing(void)
{
	for (char byte; read(CHILD_SOCKET, &byte, 1) >= 0;)
		;
}

static void burn_cpu(void)
{
	for (volatile uint64_t i = 0;; i++)
		;
}

static void write_to_null(void)
{
	volatile uintptr_t nowhere = 8;

	*(volatile int *)nowhere = 1;
}

BAD_CHILD(crash, signal(SIGSEGV, SIG_DFL); write_to_null())
BAD_CHILD(noise, say_noise())
BAD_CHILD(flood, say_answers())
BAD_CHILD(open_string, say_open_string())
BAD_CHILD(wrong_index, say_wrong_index())
BAD_CHILD(unknown_string, say_unknown_string())
BAD_CHILD(too_many_frames, say_too_many_frames())
BAD_CHILD(early_end, say_early_end())
BAD_CHILD(short_report, say_short_report())
BAD_CHILD(packet, say_packet())
BAD_CHILD(nothing, say_nothing())
BAD_CHILD(hello_again, say_hello_again())
BAD_CHILD(no_size, say_record_without_size())
BAD_CHILD(closes, close(CHILD_SOCKET); pause())
BAD_CHILD(exits, _exit(0))
BAD_CHILD(hang, for (;;) pause())
BAD_CHILD(waits, wait_for_nothing())
BAD_CHILD(burn, burn_cpu())
BAD_CHILD(hog, eat_memory(); return -ENOMEM)
BAD_CHILD(fails, return -EIO)
CALLING_CHILD(opens_socket, socket(AF_UNIX, SOCK_STREAM, 0))
CALLING_CHILD(executes, execl("/no/such/program", "program", NULL))
CALLING_CHILD(forks, if (!syscall(SYS_fork)) _exit(0))
CALLING_CHILD(traces, ptrace(PTRACE_TRACEME, 0, NULL, NULL))
CALLING_CHILD(kills, kill(getppid(), 0))

/* ---- what the parent makes of it ------------------------------------------------------------- */

static size_t open_descriptors(void)
{
	_cleanup_closedir_ DIR *d = opendir("/proc/self/fd");
	size_t count = 0;

	while (readdir(d))
		count++;
	return count;
}

static void run_bad(const struct sealed_work *work, enum dwarf_state expected)
{
	struct sealed_job jobs[3];
	struct test_job tests[3];
	size_t descriptors = open_descriptors();

	make_jobs(jobs, tests, 3);
	assert_int_equal(sealed_run(jobs, 3, 2, NULL, NULL, work), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_answered(&tests[i], i != 1);
		assert_int_equal(jobs[i].report.state, SYMBOL_STATE_RESOLVED);
		assert_int_equal(jobs[i].report.dwarf, i == 1 ? expected : DWARF_STATE_READ);
	}
	assert_int_equal(open_descriptors(), descriptors);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none is left behind */
	assert_int_equal(errno, ECHILD);
}

static void expect_crash(sealed_resolve_fn child)
{
	run_bad(&(struct sealed_work){.resolve = child}, DWARF_STATE_CRASHED);
}

TEST(all_jobs_are_answered_whatever_the_parallelism)
{
	const struct sealed_work work = {.resolve = answer_all};
	struct sealed_job jobs[5];
	struct test_job tests[5];

	for (unsigned int parallel = 0; parallel < 4; parallel++) {
		make_jobs(jobs, tests, 5);
		jobs[3].count = 0;
		assert_int_equal(sealed_run(jobs, 5, parallel, NULL, NULL, &work), 0);
		for (size_t i = 0; i < 5; i++) {
			if (i == 3)
				continue;
			assert_answered(&tests[i], true);
			assert_int_equal(jobs[i].report.with_lines, ADDRESSES);
		}
		assert_int_equal(tests[3].reported, 0);
		assert_int_equal(jobs[3].report.state, SYMBOL_STATE_RESOLVED);
	}
	assert_int_equal(sealed_run(NULL, 0, 0, NULL, NULL, &work), 0);
}

static void spin(uint64_t time)
{
	uint64_t end = monotonic_ns() + time;

	while (monotonic_ns() < end)
		;
}

static int answer_late(const struct module_files *files, const uint64_t *addresses, size_t count,
		       symbol_sink_fn sink, void *context, struct module_report *report)
{
	if (addresses[0] == 0x1000)
		spin(SECOND / 5);
	return answer_all(files, addresses, count, sink, context, report);
}

TEST(sinks_are_called_in_the_order_of_the_jobs)
{
	const struct sealed_work work = {.resolve = answer_late};
	struct sealed_job jobs[4];
	struct test_job tests[4];
	unsigned int turn = 0;

	make_jobs(jobs, tests, 4);
	for (size_t i = 0; i < 4; i++)
		tests[i].turn = &turn;
	assert_int_equal(sealed_run(jobs, 4, 4, NULL, NULL, &work), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(tests[i].came, i + 1);
}

static struct {
	_Atomic int running, most;
} * at_once; /* children of large files, in memory that they share */

static int answer_counted(const struct module_files *files, const uint64_t *addresses, size_t count,
			  symbol_sink_fn sink, void *context, struct module_report *report)
{
	int running = ++at_once->running;

	if (running > at_once->most)
		at_once->most = running;
	spin(SECOND / 20);
	at_once->running--;
	return answer_all(files, addresses, count, sink, context, report);
}

static void run_large(_Atomic int64_t *large, size_t count)
{
	const struct sealed_work work = {.resolve = answer_counted, .large = large};
	struct sealed_job jobs[4];
	struct test_job tests[4];

	at_once = mmap(NULL, sizeof(*at_once), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	assert_true(at_once != MAP_FAILED);
	make_jobs(jobs, tests, 4);
	for (size_t i = 0; i < count; i++)
		jobs[i].size = QUOTA_LARGE_FILE;
	assert_int_equal(sealed_run(jobs, 4, 4, NULL, NULL, &work), 0);
	for (size_t i = 0; i < 4; i++)
		assert_answered(&tests[i], true);
	if (count == 4)
		assert_int_equal(at_once->most, 1);
	munmap(at_once, sizeof(*at_once));
}

/* One large file after the other; behind a builder as well, but not for ever. */
TEST(large_files_are_read_one_at_a_time)
{
	_Atomic int64_t large = 0;
	uint64_t began;

	run_large(&large, 4);
	assert_int_equal(large, 0);
	large = 1;
	began = monotonic_ns();
	run_large(&large, 2);
	assert_true(monotonic_ns() - began >= 3 * SECOND);
	assert_int_equal(large, 1);
}

static int answer_long(const struct module_files *files, const uint64_t *addresses, size_t count,
		       symbol_sink_fn sink, void *context, struct module_report *report)
{
	static char name[3 * SYMBOL_STRING_MAX];
	static struct symbol_frame frames[2 * SYMBOL_CHAIN_MAX];

	memset(name, 'n', sizeof(name) - 1);
	for (size_t i = 0; i < 2 * SYMBOL_CHAIN_MAX; i++)
		frames[i] = (struct symbol_frame){.function = name + i, .file = name};
	for (size_t i = 0; i < count; i++) {
		struct symbol_result result = {.frames = frames,
					       .frame_count = 2 * SYMBOL_CHAIN_MAX};
		int err = sink(context, i, &result);

		if (err)
			return err;
	}
	report->state = SYMBOL_STATE_RESOLVED;
	return 0;
}

TEST(answers_with_too_many_frames_are_cut)
{
	const struct sealed_work work = {.resolve = answer_long};
	struct sealed_job job;
	struct test_job test;

	make_jobs(&job, &test, 1);
	assert_int_equal(sealed_run(&job, 1, 1, NULL, NULL, &work), 0);
	assert_int_equal(test.reported, ADDRESSES);
	assert_int_equal(test.answers[7].frames, SYMBOL_CHAIN_MAX);
	assert_int_equal(strlen(test.answers[7].name), sizeof(test.answers[7].name) - 1);
}

TEST(a_job_whose_child_fails_is_answered_without_lines)
{
	expect_crash(crash);
	expect_crash(exits);
	expect_crash(closes);
	expect_crash(fails);
}

TEST(invalid_messages_are_treated_as_a_crash)
{
	static const sealed_resolve_fn liars[] = {
		noise,	 open_string, wrong_index,  unknown_string, too_many_frames, early_end,
		no_size, flood,	      short_report, packet,	    nothing,	     hello_again};

	for (size_t i = 0; i < sizeof(liars) / sizeof(liars[0]); i++)
		expect_crash(liars[i]);
}

TEST(a_forbidden_system_call_counts_as_a_crash)
{
	static const sealed_resolve_fn breakers[] = {opens_socket, executes, forks, traces, kills};

	for (size_t i = 0; i < sizeof(breakers) / sizeof(breakers[0]); i++)
		expect_crash(breakers[i]);
}

TEST(an_exceeded_time_or_memory_limit_is_reported)
{
	run_bad(&(struct sealed_work){.resolve = hang, .wall_time = SECOND}, DWARF_STATE_LIMIT);
	run_bad(&(struct sealed_work){.resolve = burn, .cpu_seconds = 1}, DWARF_STATE_LIMIT);
	run_bad(&(struct sealed_work){.resolve = hog, .memory = 512 << 20}, DWARF_STATE_TOO_BIG);
}

/* What does not get on is not tried again: its file would hold up the next one too. */
TEST(a_job_whose_child_hangs_is_not_retried)
{
	const struct sealed_work work = {.resolve = waits, .silence = SECOND};
	struct sealed_job jobs[3];
	struct test_job tests[3];

	make_jobs(jobs, tests, 3);
	assert_int_equal(sealed_run(jobs, 3, 2, NULL, NULL, &work), 0);
	assert_answered(&tests[0], true);
	assert_answered(&tests[2], true);
	assert_true(tests[1].reported == ADDRESSES && !tests[1].answers[0].frames);
	assert_int_equal(jobs[1].report.dwarf, DWARF_STATE_HUNG);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static int always_crash(const struct module_files *files, const uint64_t *addresses, size_t count,
			symbol_sink_fn sink, void *context, struct module_report *report)
{
	if (addresses[0] == 0x2000) {
		signal(SIGSEGV, SIG_DFL);
		write_to_null();
	}
	return answer_all(files, addresses, count, sink, context, report);
}

TEST(a_job_that_crashes_both_children_is_damaged)
{
	const struct sealed_work work = {.resolve = always_crash};
	struct sealed_job jobs[3];
	struct test_job tests[3];

	make_jobs(jobs, tests, 3);
	assert_int_equal(sealed_run(jobs, 3, 1, NULL, NULL, &work), 0);
	assert_answered(&tests[0], true);
	assert_answered(&tests[2], true);
	assert_int_equal(tests[1].reported, ADDRESSES);
	assert_int_equal(tests[1].answers[0].frames, 0);
	assert_true(tests[1].answers[0].elf_address == PROFILE_UNKNOWN_ADDRESS);
	assert_int_equal(jobs[1].report.state, SYMBOL_STATE_DAMAGED);
	assert_int_equal(jobs[1].report.dwarf, DWARF_STATE_CRASHED);
}

TEST(an_error_of_a_sink_ends_the_run)
{
	const struct sealed_work work = {.resolve = answer_all};
	struct sealed_job jobs[3];
	struct test_job tests[3];

	make_jobs(jobs, tests, 3);
	tests[1].stop_with = -ENOSPC;
	assert_int_equal(sealed_run(jobs, 3, 1, NULL, NULL, &work), -ENOSPC);
	assert_answered(&tests[0], true);
	assert_int_equal(tests[1].reported, 1);
	assert_int_equal(tests[2].reported, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

TEST(the_size_of_all_answers_together_is_limited)
{
	static struct {
		struct symbol_event event;
		struct symbol_event_frame frames[SYMBOL_CHAIN_MAX];
		char rest[60008];
	} answer;
	static struct message_buffer message;
	_cleanup_(sealed_answers__fini) struct sealed_answers a = {};
	uint64_t sent = 0;
	int err = 0;

	answer.event.header = (struct event_header){.size = sizeof(answer), .type = EVENT_SYMBOL};
	sealed_answers__init(&a, 2000);
	_Static_assert(sizeof(answer) % 16 == 0, "it is sent in pieces");
	message.frame.size = sizeof(answer) / 16;
	for (; !err; sent += sizeof(answer) / 16) {
		answer.event.address = a.results;
		memcpy(message.bytes, (char *)&answer + sent % sizeof(answer), message.frame.size);
		err = sealed_answers__take(&a, &message);
	}
	assert_int_equal(err, -EFBIG);
	assert_in_range(sent, 64 << 20, 100 << 20);
}

/* Pieces of an index come behind the report, if one was requested, and only so many. */
TEST(an_index_needs_a_request_and_has_a_limit)
{
	static struct message_buffer message, report;
	_cleanup_(sealed_answers__fini) struct sealed_answers a = {};
	size_t sent = 0;
	int err;

	report.frame = (struct message_frame){.flags = MESSAGE_DONE,
					      .size = 8 + sizeof(struct module_report)};
	message.frame.size = MESSAGE_SIZE_MAX;
	sealed_answers__init(&a, 0);
	assert_int_equal(sealed_answers__take(&a, &report), 0);
	assert_int_equal(sealed_answers__take(&a, &message), -EBADMSG);
	a.takes_index = true;
	message.frame.flags = MESSAGE_PROGRESS;
	assert_int_equal(sealed_answers__take(&a, &message), -EBADMSG);
	message.frame.flags = 0;
	for (err = 0; !err; sent += MESSAGE_SIZE_MAX)
		err = sealed_answers__take(&a, &message);
	assert_int_equal(err, -EFBIG);
	assert_in_range(sent, SYMBOL_INDEX_MAX, SYMBOL_INDEX_MAX + 2 * MESSAGE_SIZE_MAX);
	assert_false(a.index_finished);
	message.frame = (struct message_frame){.flags = MESSAGE_DONE};
	assert_int_equal(sealed_answers__take(&a, &message), 0);
	assert_true(a.index_finished);
	assert_int_equal(sealed_answers__take(&a, &message), -EBADMSG);
}

/* The result of code that a child sends behind its report: is it used? */
static bool is_code(const void *bytes, size_t size, bool whole)
{
	static struct message_buffer message, report;
	_cleanup_(sealed_answers__fini) struct sealed_answers a = {.takes_code = true};

	sealed_answers__init(&a, 0);
	a.takes_code = true;
	report.frame = (struct message_frame){.flags = MESSAGE_DONE,
					      .size = 8 + sizeof(struct module_report)};
	message.frame = (struct message_frame){.flags = whole ? MESSAGE_DONE : 0, .size = size};
	memcpy(message.bytes, bytes, size);
	assert_int_equal(sealed_answers__take(&a, &report), 0);
	assert_int_equal(sealed_answers__take(&a, &message), 0);
	if (whole)
		assert_int_equal(sealed_answers__take(&a, &message), -EBADMSG);
	return sealed_answers__has_code(&a);
}

TEST(code_of_a_child_is_events_of_code_and_nothing_else)
{
	union {
		struct code_text_event event;
		char space[sizeof(struct code_text_event) + 8];
	} e = {.event = {.header = {.size = sizeof(e), .type = EVENT_CODE_TEXT},
			 .size = 8,
			 .count = 8}};

	assert_true(is_code(&e, sizeof(e), true));
	assert_false(is_code(&e, sizeof(e), false)); /* more of it may come */
	assert_false(is_code(&e, sizeof(e) - 1, true));
	e.event.count = 9;
	assert_false(is_code(&e, sizeof(e), true));
	e.event.count = 8;
	e.event.header.size = 0;
	assert_false(is_code(&e, sizeof(e), true));
	e.event.header.size = UINT32_MAX;
	assert_false(is_code(&e, sizeof(e), true));
	e.event.header = (struct event_header){.size = sizeof(e), .type = EVENT_SAMPLE};
	assert_false(is_code(&e, sizeof(e), true));
	e.event.header.type = 60; /* of a newer recorder */
	assert_false(is_code(&e, sizeof(e), true));
}

/* ---- while they run -------------------------------------------------------------------------- */

/* Half of the answers of the second job, then nothing. */
static int answer_half(const struct module_files *files, const uint64_t *addresses, size_t count,
		       symbol_sink_fn sink, void *context, struct module_report *report)
{
	if (!is_bad(files, addresses))
		return answer_all(files, addresses, count, sink, context, report);
	answer_all(files, addresses, count / 2, sink, context, report);
	spin(SECOND / 2); /* what is old is sent with the next answer */
	sink(context, count / 2, &(struct symbol_result){.elf_address = 1});
	for (;;)
		pause();
}

/* 0: there is none, or others as well. */
static pid_t only_child(void)
{
	char path[64];
	_cleanup_free_ char *text = NULL;
	char *end;
	size_t size;
	pid_t child;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	if (read_file_at(AT_FDCWD, path, 4096, &text, &size) || !size)
		return 0;
	child = (pid_t)strtol(text, &end, 10);
	return strtol(end, NULL, 10) ? 0 : child;
}

struct watch {
	char status[8192];
	size_t descriptors;
	uint64_t since;
	int action; /* a signal for the child; 0: cancel */
	pid_t acted_on;
};

static void look_at(struct watch *w, pid_t pid)
{
	char path[64];
	_cleanup_free_ char *text = NULL;
	_cleanup_closedir_ DIR *d = NULL;
	struct dirent *entry;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	assert_int_equal(read_file_at(AT_FDCWD, path, sizeof(w->status) - 1, &text, &size), 0);
	memcpy(w->status, text, size + 1);
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	w->descriptors = 0;
	while (d && (entry = readdir(d)))
		w->descriptors += entry->d_name[0] != '.';
}

static int watch(void *context, size_t done, size_t total)
{
	struct watch *w = context;
	pid_t pid = only_child();

	assert_int_equal(total, 3 * ADDRESSES);
	assert_true(done <= total);
	/* it is the one that hangs, once the others are through */
	if (done < 2 * ADDRESSES)
		return 0;
	if (!w->since)
		w->since = monotonic_ns();
	if (!pid || monotonic_ns() - w->since < SECOND * 3 / 2)
		return 0;
	if (w->acted_on)
		return 0;
	look_at(w, pid);
	w->acted_on = pid;
	if (w->action)
		assert_int_equal(kill(pid, w->action), 0);
	return !w->action;
}

TEST(the_job_of_a_killed_child_is_still_answered)
{
	const struct sealed_work work = {.resolve = hang};
	struct watch w = {.action = SIGKILL};
	struct sealed_job jobs[3];
	struct test_job tests[3];

	make_jobs(jobs, tests, 3);
	assert_int_equal(sealed_run(jobs, 3, 2, watch, &w, &work), 0);
	assert_true(w.acted_on);
	for (size_t i = 0; i < 3; i++)
		assert_answered(&tests[i], i != 1);
	assert_int_equal(jobs[1].report.dwarf, DWARF_STATE_CRASHED);
}

TEST(cancelling_keeps_the_answers_that_were_received)
{
	const struct sealed_work work = {.resolve = answer_half};
	struct watch w = {.action = 0};
	struct sealed_job jobs[3];
	struct test_job tests[3];

	make_jobs(jobs, tests, 3);
	assert_int_equal(sealed_run(jobs, 3, 2, watch, &w, &work), 0);
	assert_answered(&tests[0], true);
	assert_answered(&tests[2], true);
	assert_int_equal(tests[1].reported, ADDRESSES);
	assert_int_equal(jobs[0].report.state, SYMBOL_STATE_RESOLVED);
	assert_int_equal(jobs[1].report.state, SYMBOL_STATE_CANCELLED);
	assert_string_equal(tests[1].answers[0].name, "f_2000");
	assert_string_equal(tests[1].answers[ADDRESSES / 2 - 1].file, "file.c");
	assert_int_equal(tests[1].answers[ADDRESSES - 1].frames, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static unsigned long long status_field(const char *status, const char *field, int base)
{
	const char *at = strstr(status, field);

	assert_non_null(at);
	return strtoull(at + strlen(field), NULL, base);
}

/* Not so in a user namespace with a few ids only. */
static bool every_uid_is_mapped(void)
{
	char line[128];
	unsigned long first, outside, count;

	return !read_line("/proc/self/uid_map", line, sizeof(line)) &&
	       sscanf(line, "%lu %lu %lu", &first, &outside, &count) == 3 && count > 1u << 31;
}

TEST(a_child_has_no_capabilities_and_few_descriptors)
{
	const struct sealed_work work = {.resolve = hang};
	struct watch w = {.action = SIGKILL};
	struct sealed_job jobs[3];
	struct test_job tests[3];
	_cleanup_close_ int elf = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	make_jobs(jobs, tests, 3);
	jobs[1].files.elf_fd = elf;
	assert_int_equal(sealed_run(jobs, 3, 2, watch, &w, &work), 0);
	assert_int_equal(w.descriptors, 5); /* 0, 1, 2, the socket, the file */
	assert_int_equal(status_field(w.status, "\nCapEff:\t", 16), 0);
	assert_int_equal(status_field(w.status, "\nCapPrm:\t", 16), 0);
	assert_int_equal(status_field(w.status, "\nNoNewPrivs:\t", 10), 1);
	assert_int_equal(status_field(w.status, "\nSeccomp:\t", 10), 2);
	assert_int_equal(status_field(w.status, "\nThreads:\t", 10), 1);
	assert_non_null(strstr(w.status, "Name:\tsysprof-sealed\n"));
	if (getuid() != 0)
		return;
	assert_int_equal(status_field(w.status, "\nCapBnd:\t", 16), 0);
	if (every_uid_is_mapped()) {
		assert_int_not_equal(status_field(w.status, "\nUid:\t", 10), 0);
		assert_int_not_equal(status_field(w.status, "\nGid:\t", 10), 0);
	}
}
