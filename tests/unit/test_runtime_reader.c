/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests for what a runtime's memory says, and their answers: of runtimes that this process has in its own. */
#include "unit.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "runtimes/ask/runtime_reader.h"
#include "runtimes/table.h"
#include "tenants/pool.h"
#include "unit/luajit_state.h"

static int read_frames(struct made_runtime *runtime, const uint64_t *registers,
		       const struct made_area *area, struct made_frame **frames, size_t *count)
{
	return runtime_reader__read(&(struct frame_sizes_request){runtime, registers, area, 1},
				    frames, count);
}

/* ---- traces ---------------------------------------------------------------------------------- */

TEST(a_luajit_state_found_by_a_register_is_kept)
{
	_cleanup_free_ struct made_frame *frames = NULL, *again = NULL;
	uint64_t registers[RUNTIME_REGISTERS] = {};
	struct made_runtime runtime;
	_cleanup_(luajit_state__fini) struct luajit_state w = {};
	size_t count = 0;

	luajit_state__init(&w);
	runtime = w.runtime;
	runtime.by = MADE_BY_LUAJIT;
	assert_int_equal(read_frames(&runtime, registers, &w.area, &frames, &count), -ENODATA);
	/* by a register of a thread */
	registers[LUAJIT_DISPATCH] = address_of(w.dispatch);
	assert_int_equal(read_frames(&runtime, registers, &w.area, &frames, &count), 0);
	assert_int_equal(count, 3);
	assert_int_equal(frames[0].start, w.area.start + 0x8000);
	assert_int_equal(frames[0].size, 112);
	assert_int_equal(runtime.state_count, 1);
	/* what is known now is good for the next */
	registers[LUAJIT_DISPATCH] = 0;
	assert_int_equal(read_frames(&runtime, registers, &w.area, &again, &count), 0);
	assert_int_equal(count, 3);
}

TEST(pypy_frame_sizes_are_found_in_its_code)
{
	/* mov 0x60(%rsp),%rbp; add $0xb8,%rsp; ret */
	static const char END[] = "\x48\x8b\x6c\x24\x60\x48\x81\xc4\xb8\x00\x00\x00\xc3";
	_cleanup_free_ struct made_frame *frames = NULL;
	unsigned char *code = map_memory(PAGE);
	const struct made_area area = {address_of(code), address_of(code) + PAGE};
	struct made_runtime runtime = {.tgid = (uint32_t)getpid(), .by = MADE_BY_PYPY};
	size_t count = 0;

	assert_int_equal(read_frames(&runtime, NULL, &area, &frames, &count), -ENODATA);
	memcpy(code + 100, END, sizeof(END) - 1);
	assert_int_equal(read_frames(&runtime, NULL, &area, &frames, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(frames[0].end, area.end);
	assert_int_equal(frames[0].size, 0xc0);
	munmap(code, PAGE);
}

/* A process that has ended has no frames, whatever its runtime was. */
TEST(a_process_that_has_ended_has_no_frames)
{
	_cleanup_free_ struct made_frame *frames = NULL;
	const struct made_area area = {0x10000, 0x20000};
	const uint64_t registers[RUNTIME_REGISTERS] = {[LUAJIT_DISPATCH] = 0x100000};
	pid_t child = fork();
	size_t count = 0;

	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	for (int by = MADE_BY_PYPY; by <= MADE_BY_LUAJIT; by++) {
		struct made_runtime runtime = {.tgid = (uint32_t)child, .by = by};
		int result = read_frames(&runtime, registers, &area, &frames, &count);

		assert_true(result == -ESRCH || result == -ENODATA);
		assert_int_equal(count, 0);
	}
}

/* ---- requests -------------------------------------------------------------------------------- */

struct requesting {
	struct helper_pool *pool;
	struct made_runtime runtime;
	struct made_area areas[1];
	unsigned int count;
};

static void request_again(void *context, const struct made_answer *answer);

static int send_request(struct requesting *a)
{
	const struct made_request request = {
		.ticket = a->count, .runtime = &a->runtime, .areas = a->areas, .area_count = 1};

	return runtime_reader__request(a->pool, 0, &request, request_again, a);
}

/* A made_answer_fn. */
static void request_again(void *context, const struct made_answer *answer)
{
	struct requesting *a = context;

	assert_int_equal(answer->ticket, a->count);
	assert_true(answer->result < 0 && answer->result != -ETIMEDOUT);
	assert_int_equal(answer->runtime->tgid, UINT32_MAX);
	assert_int_equal(answer->count, 0);
	if (++a->count < 3)
		assert_int_equal(send_request(a), 0);
}

/* A callback may send requests, and the data of a request may change once it was sent. */
TEST(a_callback_may_send_the_next_request)
{
	static const helper_serve_fn services[] = {runtime_reader__serve};
	const struct helper_pool_options options = {.class = HELPER_READER,
						    .keeper = HELPER_READER_KEEPER,
						    .services = services,
						    .service_count = 1};
	struct requesting a = {.runtime = {.tgid = UINT32_MAX, .by = MADE_BY_PYPY},
			       .areas = {{0, 4096}}};

	assert_int_equal(helper_pool__new(&options, &a.pool), 0);
	assert_int_equal(send_request(&a), 0);
	memset(a.areas, 0xff, sizeof(a.areas));
	assert_true(helper_pool__settle(a.pool, 20000000000ull));
	assert_int_equal(a.count, 3);
	helper_pool__free(a.pool);
}

TEST(invalid_requests_are_neither_sent_nor_served)
{
	static char answer[MESSAGE_SIZE_MAX];
	struct helper_job job = {.request = "x", .request_size = 1, .answer = answer};
	struct requesting a = {.runtime = {.state_count = MADE_STATES_MAX + 1}};
	struct made_frame *frames = NULL;
	size_t count = 0;

	assert_int_equal(send_request(&a), -EINVAL);
	a.runtime.state_count = 0;
	assert_int_equal(read_frames(&a.runtime, NULL, a.areas, &frames, &count), -EINVAL);
	runtime_reader__serve(&job);
	assert_true(job.answer_size > 0);
	assert_int_equal(job.answer_fd_count, 0);
}

/* ---- functions ------------------------------------------------------------------------------- */

#define PROCESSES 40u

/* A request about `count` functions, 1 at most. 0, or why it was not even looked for. */
static int request(pid_t pid, uint32_t questions, struct runtime_findings *findings)
{
	static char bytes[MESSAGE_SIZE_MAX];
	struct {
		uint32_t pid, count;
		uint64_t started;
		struct code_question questions[1];
	} request = {.pid = (uint32_t)pid,
		     .count = questions,
		     .questions = {{.kind = FRAME_NOTE_HOTSPOT}}};
	struct helper_job job = {.request = &request,
				 .request_size = sizeof(request) -
						 (1 - questions) * sizeof(request.questions),
				 .answer = bytes};
	struct helper_answer answer = {.data = bytes};

	code_reader__serve(&job);
	for (unsigned int i = 0; i < job.answer_fd_count; i++)
		close(job.answer_fds[i]);
	answer.size = job.answer_size;
	assert_int_equal(code_reader__left(&answer), 0);
	return code_reader__take_info(&answer, findings);
}

static int request_function(pid_t pid)
{
	struct runtime_findings findings;

	return request(pid, 1, &findings);
}

/* An event_push_fn. */
static int count_event(void *context, struct event_header *event)
{
	++*(unsigned int *)context;
	return 0;
}

TEST(events_of_another_process_are_not_taken)
{
	struct code_chain_event events[2] = {};
	struct helper_answer answer = {.fd_count = 1};
	unsigned int count = 0;
	int fd;

	for (unsigned int i = 0; i < 2; i++)
		events[i] = (struct code_chain_event){
			.header = {.size = sizeof(events[i]), .type = EVENT_CODE_CHAIN},
			.pid = 1,
			.kind = FRAME_NOTE_HOTSPOT,
			.state = CODE_STATE_STALE};
	for (unsigned int pid = 1; pid <= 2; pid++) {
		events[1].pid = pid;
		fd = memory_with("events", events, sizeof(events));
		answer.fds = &fd;
		count = 0;
		assert_int_equal(code_reader__take_events(&answer, 1, 5, count_event, &count),
				 pid == 1 ? 0 : -ENODATA);
		assert_int_equal(count, pid == 1 ? 2 : 1);
		close(fd);
	}
}

/* What was found of many processes is not searched again: it is there though they have ended. */
TEST(findings_of_many_processes_outlive_them)
{
	pid_t pids[PROCESSES];

	for (unsigned int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(pause());
		assert_true(pids[i] > 0);
		assert_int_equal(request_function(pids[i]), 0);
	}
	for (unsigned int i = 0; i < PROCESSES; i++) {
		kill(pids[i], SIGKILL);
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
	}
	for (unsigned int i = 0; i < PROCESSES; i++)
		assert_int_equal(request_function(pids[i]), 0);
	assert_int_equal(request_function(INT32_MAX), -ENODATA);
}

#define FILES 17u /* one more than are looked into */

/* A file more than are looked into, of those that may have a runtime: the findings say so. */
TEST(findings_count_files_beyond_the_limit)
{
	char directory[] = "/tmp/test_runtime_reader.XXXXXX", path[64];
	struct runtime_findings findings;
	void *mapped[FILES];
	struct stat st;

	assert_non_null(mkdtemp(directory));
	for (unsigned int i = 0; i < FILES; i++) {
		_cleanup_close_ int fd = -1;

		assert_int_equal(request(getpid(), 0, &findings), 0);
		assert_int_equal(findings.left, 0);
		snprintf(path, sizeof(path), "%s/libnode.so.%u", directory, i);
		fd = open(path, O_RDWR | O_CREAT, 0755);
		assert_int_equal(ftruncate(fd, 4096), 0);
		mapped[i] = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		assert_true(mapped[i] != MAP_FAILED);
	}
	assert_int_equal(request(getpid(), 0, &findings), 0);
	assert_int_equal(findings.left, 1);
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	assert_true(findings.device == st.st_dev && findings.inode == st.st_ino);
	for (unsigned int i = 0; i < FILES; i++) {
		munmap(mapped[i], 4096);
		snprintf(path, sizeof(path), "%s/libnode.so.%u", directory, i);
		unlink(path);
	}
	rmdir(directory);
}
