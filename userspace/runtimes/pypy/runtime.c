/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/advice.h"
#include "runtimes/pypy/traces.h"
#include "runtimes/runtime.h"

static int frame_sizes(const struct frame_sizes_request *request, struct made_frame **frames,
		       size_t *count)
{
	return pypy__frames((pid_t)request->runtime->tgid, request->areas, request->area_count,
			    frames, count);
}

const struct runtime pypy_runtime = {
	.name = "PyPy",
	.files = {{"pypy", false}, {"libpypy", false}},
	.remedy = "it cannot write one; --jit off has its interpreter's functions instead",
	.lacks = NO_TRACES,
	.by = MADE_BY_PYPY,
	.frame_sizes = frame_sizes,
};
