/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/advice.h"
#include "runtimes/luajit/traces.h"
#include "runtimes/runtime.h"

_Static_assert(LUAJIT_DISPATCH < RUNTIME_REGISTERS, "one of the registers of a request");

static int frame_sizes(const struct frame_sizes_request *request, struct made_frame **frames,
		       size_t *count)
{
	return luajit__frames(request->runtime, request->registers[LUAJIT_DISPATCH], request->areas,
			      request->area_count, frames, count);
}

const struct runtime luajit_runtime = {
	.name = "LuaJIT",
	.files = {{"luajit", false}, {"libluajit", false}},
	.remedy = "build it with -DLUAJIT_USE_PERFTOOLS",
	.lacks = NO_TRACES,
	.by = MADE_BY_LUAJIT,
	.frame_sizes = frame_sizes,
};
