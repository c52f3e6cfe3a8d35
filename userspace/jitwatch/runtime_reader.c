/* SPDX-License-Identifier: BSD-2-Clause */
#include "jitwatch/runtime_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "jitwatch/hotspot.h"
#include "jitwatch/luajit.h"
#include "jitwatch/pypy.h"

_Static_assert(LUAJIT_DISPATCH < RUNTIME_REGISTERS, "one of the registers of a request");

struct runtime_reader {
	runtime_answer_fn answer;
	void *context;
};

int runtime_reader__new(runtime_answer_fn answer, void *context, struct runtime_reader **reader)
{
	struct runtime_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->answer = answer;
	r->context = context;
	*reader = r;
	return 0;
}

void runtime_reader__free(struct runtime_reader *r)
{
	free(r);
}

static bool is_valid(const struct runtime_request *request)
{
	return (unsigned int)request->question < RUNTIME_QUESTION_COUNT &&
	       request->runtime.state_count <= MADE_STATES_MAX &&
	       (request->areas || !request->area_count);
}

static int read_hotspot(const struct runtime_request *request, bool *keeps)
{
	int result = hotspot__read_frame_pointer_flag((pid_t)request->runtime.tgid,
						      &request->symbols, request->bias);

	*keeps = result > 0;
	return result < 0 ? result : 0;
}

/* The request is owned: nothing in it is the caller's. */
static void serve_request(struct runtime_reader *r, const struct runtime_request *request)
{
	struct runtime_answer answer = {.question = request->question,
					.ticket = request->ticket,
					.runtime = request->runtime,
					.bias = request->bias};
	uint64_t cpu = thread_cpu_ns(), began = monotonic_ns();
	_cleanup_free_ struct made_frame *frames = NULL;
	size_t count = 0;

	switch (request->question) {
	case RUNTIME_HOTSPOT_FRAME_POINTERS:
		answer.result = read_hotspot(request, &answer.keeps_frame_pointers);
		break;
	case RUNTIME_LUAJIT_TRACES:
		answer.result = luajit__frames(&answer.runtime, request->registers[LUAJIT_DISPATCH],
					       request->areas, request->area_count, &frames,
					       &count);
		break;
	case RUNTIME_PYPY_TRACES:
		answer.result = pypy__frames((pid_t)request->runtime.tgid, request->areas,
					     request->area_count, &frames, &count);
		break;
	case RUNTIME_QUESTION_COUNT:
		break;
	}
	answer.frames = frames;
	answer.frame_count = count;
	answer.cpu_ns = thread_cpu_ns() - cpu;
	answer.elapsed_ns = monotonic_ns() - began;
	r->answer(r->context, &answer);
}

int runtime_reader__ask(struct runtime_reader *r, const struct runtime_request *request)
{
	_cleanup_free_ struct made_area *areas = NULL;
	struct runtime_request own;

	if (!is_valid(request))
		return -EINVAL;
	own = *request;
	if (own.area_count) {
		areas = calloc(own.area_count, sizeof(*areas));
		if (!areas)
			return -ENOMEM;
		memcpy(areas, request->areas, own.area_count * sizeof(*areas));
		own.areas = areas;
	}
	serve_request(r, &own);
	return 0;
}
