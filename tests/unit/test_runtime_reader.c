/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests for what a runtime's memory says, and their answers: of runtimes that this process has in its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "jitwatch/luajit.h"
#include "jitwatch/runtime_reader.h"
#include "unit/luajit_state.h"

#define FRAMES_KEPT 16

/* Answers as they came: an answer's own memory is gone when its callback returns. */
struct answers {
	unsigned int count;
	struct runtime_answer last;
	struct made_frame frames[FRAMES_KEPT];
};

static void keep_answer(void *context, const struct runtime_answer *answer)
{
	struct answers *a = context;

	a->count++;
	a->last = *answer;
	a->last.frames = NULL;
	assert_true(answer->frame_count <= FRAMES_KEPT);
	if (answer->frame_count)
		memcpy(a->frames, answer->frames, answer->frame_count * sizeof(*answer->frames));
}

static struct runtime_reader *new_reader(struct answers *answers)
{
	struct runtime_reader *reader;

	*answers = (struct answers){};
	assert_int_equal(runtime_reader__new(keep_answer, answers, NULL, 0, &reader), 0);
	return reader;
}

/* ---- traces ---------------------------------------------------------------------------------- */

static void luajit_test(void **state)
{
	struct answers answers;
	struct runtime_reader *reader = new_reader(&answers);
	struct luajit_state w;
	struct runtime_request request = {.question = RUNTIME_LUAJIT_TRACES, .ticket = 1};

	(void)state;
	luajit_state__init(&w);
	request.runtime = w.runtime;
	request.areas = &w.area;
	request.area_count = 1;
	assert_int_equal(runtime_reader__ask(reader, &request), 0);
	assert_int_equal(answers.last.result, -ENODATA);
	/* by a register of a thread */
	request.registers[LUAJIT_DISPATCH] = address_of(w.dispatch);
	assert_int_equal(runtime_reader__ask(reader, &request), 0);
	assert_int_equal(answers.last.result, 0);
	assert_int_equal(answers.last.frame_count, 3);
	assert_int_equal(answers.frames[0].start, w.area.start + 0x8000);
	assert_int_equal(answers.frames[0].size, 112);
	assert_int_equal(answers.last.runtime.state_count, 1);
	/* the request is as it was; what is known now is in the answer, and good for the next */
	assert_int_equal(request.runtime.state_count, 0);
	request.runtime = answers.last.runtime;
	request.registers[LUAJIT_DISPATCH] = 0;
	request.ticket = 2;
	assert_int_equal(runtime_reader__ask(reader, &request), 0);
	assert_int_equal(answers.last.ticket, 2);
	assert_int_equal(answers.last.frame_count, 3);
	assert_int_equal(answers.count, 3);
	runtime_reader__free(reader);
	luajit_state__fini(&w);
}

static void pypy_test(void **state)
{
	/* mov 0x60(%rsp),%rbp; add $0xb8,%rsp; ret */
	static const char END[] = "\x48\x8b\x6c\x24\x60\x48\x81\xc4\xb8\x00\x00\x00\xc3";
	struct answers answers;
	struct runtime_reader *reader = new_reader(&answers);
	unsigned char *code = map_memory(PAGE);
	const struct made_area area = {address_of(code), address_of(code) + PAGE};
	const struct runtime_request request = {
		.question = RUNTIME_PYPY_TRACES,
		.runtime = {.tgid = (uint32_t)getpid(), .by = MADE_BY_PYPY},
		.areas = &area,
		.area_count = 1,
	};

	(void)state;
	assert_int_equal(runtime_reader__ask(reader, &request), 0);
	assert_int_equal(answers.last.result, -ENODATA);
	memcpy(code + 100, END, sizeof(END) - 1);
	assert_int_equal(runtime_reader__ask(reader, &request), 0);
	assert_int_equal(answers.last.result, 0);
	assert_int_equal(answers.last.frame_count, 1);
	assert_int_equal(answers.frames[0].end, area.end);
	assert_int_equal(answers.frames[0].size, 0xc0);
	runtime_reader__free(reader);
	munmap(code, PAGE);
}

/* ---- requests -------------------------------------------------------------------------------- */

struct asking_again {
	struct runtime_reader *reader;
	struct runtime_request request;
	struct made_area *areas; /* of the first request, gone when it is answered */
	unsigned int count;
};

static void ask_again(void *context, const struct runtime_answer *answer)
{
	struct asking_again *a = context;

	assert_int_equal(answer->ticket, a->count);
	if (++a->count == 3)
		return;
	a->request.ticket = a->count;
	memset(a->areas, 0xff, sizeof(*a->areas));
	assert_int_equal(runtime_reader__ask(a->reader, &a->request), 0);
}

/* A callback may ask, and what a request has may change as soon as it was asked. */
static void again_test(void **state)
{
	struct made_area areas[1] = {{0, 4096}};
	struct asking_again a = {
		.request = {.question = RUNTIME_PYPY_TRACES, .areas = areas, .area_count = 1},
		.areas = areas,
	};

	(void)state;
	assert_int_equal(runtime_reader__new(ask_again, &a, NULL, 0, &a.reader), 0);
	assert_int_equal(runtime_reader__ask(a.reader, &a.request), 0);
	assert_int_equal(a.count, 3);
	runtime_reader__free(a.reader);
}

/* Requests that make no sense are not answered. */
static void bad_request_test(void **state)
{
	struct answers answers;
	struct runtime_reader *reader = new_reader(&answers);
	struct runtime_request request = {.question = RUNTIME_QUESTION_COUNT};

	(void)state;
	assert_int_equal(runtime_reader__ask(reader, &request), -EINVAL);
	request.question = RUNTIME_LUAJIT_TRACES;
	request.area_count = 1;
	assert_int_equal(runtime_reader__ask(reader, &request), -EINVAL);
	request.area_count = 0;
	request.runtime.state_count = MADE_STATES_MAX + 1;
	assert_int_equal(runtime_reader__ask(reader, &request), -EINVAL);
	assert_int_equal(answers.count, 0);
	runtime_reader__free(reader);
	runtime_reader__free(NULL);
}

/* Of a process that has ended nothing is told, whatever is asked. */
static void ended_test(void **state)
{
	struct answers answers;
	struct runtime_reader *reader = new_reader(&answers);
	struct runtime_request request;
	struct made_area area = {0x10000, 0x20000};
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	request = (struct runtime_request){.runtime = {.tgid = (uint32_t)child}};
	request.areas = &area;
	request.area_count = 1;
	for (int question = 0; question < RUNTIME_QUESTION_COUNT; question++) {
		request.question = question;
		request.registers[LUAJIT_DISPATCH] = 0x100000;
		assert_int_equal(runtime_reader__ask(reader, &request), 0);
		assert_int_equal(answers.last.question, question);
		assert_true(answers.last.result == -ESRCH || answers.last.result == -ENODATA);
		assert_int_equal(answers.last.frame_count, 0);
	}
	assert_int_equal(answers.count, RUNTIME_QUESTION_COUNT);
	runtime_reader__free(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(luajit_test), cmocka_unit_test(pypy_test),
		cmocka_unit_test(again_test),  cmocka_unit_test(bad_request_test),
		cmocka_unit_test(ended_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
