/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of LuaJIT's traces: version 2.1 for x86-64 with 64-bit references (GC64).
 *
 * A trace runs in the stack frame of the interpreter that entered it, and has made room below that
 * for what finds no register. The trace's description has the amount (GCtrace of lj_jit.h:
 * spadjust); the interpreter's frame has one size (vm_x64.dasc: 80 bytes, and 16 more for the
 * registers that only traces use).
 *
 * Nothing exported leads to the traces. But the interpreter and the traces keep the address of a
 * dispatch table in r14, and right below it, in one piece of memory (GG_State of lj_dispatch.h), is
 * the compiler's state. Its layout differs between versions, so it is recognized by its contents:
 * five words describe the present area of machine code, and before them is the array of traces,
 * each of which has its own number. A word that only looks so leads to no trace.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "base/vec.h"
#include "runtimes/table.h"
#include "runtimes/target_memory.h"

#define DISPATCH	  14	/* r14, by DWARF number */
#define INTERPRETER_FRAME 96u	/* with the return address */
#define SPADJUST_MAX	  4096u /* 256 slots of 4 bytes are the most */
#define PAGE		  4096u
#define STATE_PAGES	  4u /* below the dispatch table; the state has a page or two */
#define STATE_WORDS	  (STATE_PAGES * PAGE / 8)
#define AREA_MAX	  (64u << 20)
#define TRACES_MAX	  8192u
#define CANDIDATES_MAX	  64	 /* that look like the array of traces */
#define UNFINISHED_MAX	  8	 /* traces of that array, before there is one */
#define READS_MAX	  16384u /* of traces, each time */

/* GCtrace */
#define TRACE_SIZE	112
#define TRACE_TYPE	9
#define TRACE_CODE_SIZE 84
#define TRACE_CODE	88
#define TRACE_LOOP	96
#define TRACE_SPADJUST	102
#define TRACE_NUMBER	104
#define TYPE_TRACE	9

_Static_assert(DISPATCH < RUNTIME_REGISTERS, "one of the registers of a request");

typedef VEC(struct made_frame) frame_vec;

struct trace_reader {
	pid_t pid;
	const struct made_area *areas;
	size_t area_count;
	frame_vec found;
	uint32_t reads;
};

static bool in_areas(const struct trace_reader *r, uint64_t start, uint64_t size)
{
	size_t i = partition_point(r->areas, r->area_count, a, a->end <= start);

	return i < r->area_count && start >= r->areas[i].start && size <= r->areas[i].end - start;
}

/* ---- the compiler's state -------------------------------------------------------------------- */

/* The words right below `dispatch`; the last is at the end. How many could be read. */
static size_t read_state(const struct trace_reader *r, uint64_t dispatch, uint64_t *words)
{
	uint64_t start = dispatch;
	size_t count = 0;

	for (unsigned int i = 0; i < STATE_PAGES; i++) {
		uint64_t page = (start - 1) & ~(uint64_t)(PAGE - 1);
		size_t size = start - page;

		if (process_memory__read(r->pid, words + STATE_WORDS - count - size / 8, size,
					 page))
			break;
		count += size / 8;
		start = page;
	}
	return count;
}

/* mcarea, mctop, mcbot, szmcarea, szallmcarea */
static bool is_code_area(const struct trace_reader *r, const uint64_t *w)
{
	uint64_t area = w[0], top = w[1], bottom = w[2], size = w[3];

	return area && area % PAGE == 0 && size && size % PAGE == 0 && size <= AREA_MAX &&
	       w[4] >= size && bottom >= area && bottom <= top && top - area <= size &&
	       in_areas(r, area, size);
}

/* Adds a trace, unless it is just being made or freed. */
static int add_trace(struct trace_reader *r, uint64_t address, uint32_t number)
{
	unsigned char t[TRACE_SIZE];
	uint64_t code;
	uint32_t size, spadjust;

	if (r->reads++ >= READS_MAX || process_memory__read(r->pid, t, sizeof(t), address))
		return 0;
	code = target_number(t, sizeof(t), TRACE_CODE, 8);
	size = target_number(t, sizeof(t), TRACE_CODE_SIZE, 4);
	spadjust = target_number(t, sizeof(t), TRACE_SPADJUST, 2);
	if (t[TRACE_TYPE] != TYPE_TRACE || target_number(t, sizeof(t), TRACE_NUMBER, 2) != number ||
	    !size || target_number(t, sizeof(t), TRACE_LOOP, 4) > size || spadjust % 8 ||
	    spadjust > SPADJUST_MAX || !in_areas(r, code, size))
		return 0;
	return vec_push(&r->found, (struct made_frame){
					   .start = code,
					   .end = code + size,
					   .size = INTERPRETER_FRAME + spadjust,
					   .ra_offset = -8,
					   .fp_offset = -16,
				   });
}

/* Addresses, but for number 0, which no trace has. */
static bool are_traces(const uint64_t *traces, uint32_t size)
{
	for (uint32_t i = 1; i < size; i++)
		if (traces[i] % 8 || traces[i] >> 47)
			return false;
	return !traces[0];
}

/* The array at `address`. 1: there are traces in it. */
static int add_traces(struct trace_reader *r, uint64_t address, uint32_t size)
{
	_cleanup_free_ uint64_t *traces = calloc(size, sizeof(*traces));
	size_t before = r->found.count;
	uint32_t tried = 0;
	int err = 0;

	if (!traces)
		return -ENOMEM;
	if (process_memory__read(r->pid, traces, size * sizeof(*traces), address) ||
	    !are_traces(traces, size))
		return 0;
	for (uint32_t i = 1; i < size && !err; i++) {
		if (!traces[i])
			continue;
		if (tried++ == UNFINISHED_MAX && r->found.count == before)
			break;
		err = add_trace(r, traces[i], i);
	}
	return err ? err : r->found.count > before;
}

/* trace, freetrace and sizetrace */
static bool may_be_traces(const uint64_t *w)
{
	uint32_t free = (uint32_t)w[1], size = w[1] >> 32;

	return target_is_pointer(w[0]) && size > 1 && size <= TRACES_MAX && free <= size;
}

/* 1: there are traces of that state; 0; -ENOMEM. */
static int read_traces(struct trace_reader *r, uint64_t dispatch)
{
	uint64_t words[STATE_WORDS];
	size_t count, first, area;
	unsigned int tried = 0;
	int err = 0;

	if (dispatch < (uint64_t)STATE_PAGES * PAGE || dispatch % 8 || dispatch >> 47)
		return 0;
	count = read_state(r, dispatch, words);
	first = STATE_WORDS - count;
	for (area = first; area + 5 <= STATE_WORDS && !is_code_area(r, words + area); area++)
		;
	if (area + 5 > STATE_WORDS)
		return 0;
	for (size_t i = first; i + 2 <= area && !err && tried < CANDIDATES_MAX; i++) {
		if (!may_be_traces(words + i))
			continue;
		tried++;
		err = add_traces(r, words[i], words[i + 1] >> 32);
	}
	return err;
}

/* ---- all of them ----------------------------------------------------------------------------- */

DEFINE_ORDER(compare_frames, struct made_frame, ASCENDING(start));

/* Sorted, and without those that begin in another one. */
static void put_in_order(frame_vec *frames)
{
	size_t kept = 0;

	vec_sort(frames, compare_frames);
	for (size_t i = 0; i < frames->count; i++)
		if (!kept || frames->data[i].start >= frames->data[kept - 1].end)
			frames->data[kept++] = frames->data[i];
	frames->count = kept;
}

static bool is_known(const struct made_runtime *runtime, uint64_t state)
{
	return any_of(runtime->states, runtime->state_count, known, *known == state);
}

/* Drops states without traces: they may be gone, and are found again if not. */
static int read_known(struct trace_reader *r, struct made_runtime *runtime)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < runtime->state_count; i++) {
		int err = read_traces(r, runtime->states[i]);

		if (err < 0)
			return err;
		if (err)
			runtime->states[kept++] = runtime->states[i];
	}
	runtime->state_count = kept;
	return 0;
}

static int read_new(struct trace_reader *r, struct made_runtime *runtime, uint64_t dispatch)
{
	int err;

	if (!dispatch || is_known(runtime, dispatch) || runtime->state_count == MADE_STATES_MAX)
		return 0;
	err = read_traces(r, dispatch);
	if (err > 0)
		runtime->states[runtime->state_count++] = dispatch;
	return err < 0 ? err : 0;
}

/*
 * The traces of all known Lua states. In a trace and in the interpreter the register has the
 * dispatch table of its state, which is known from then on.
 */
static int frame_sizes(const struct frame_sizes_request *request, struct made_frame **frames,
		       size_t *count)
{
	struct trace_reader r = {.pid = (pid_t)request->runtime->tgid,
				 .areas = request->areas,
				 .area_count = request->area_count};
	int err = read_known(&r, request->runtime);

	*frames = NULL;
	*count = 0;
	if (!err)
		err = read_new(&r, request->runtime, request->registers[DISPATCH]);
	if (!err && !r.found.count)
		err = -ENODATA;
	if (err) {
		vec_free(&r.found);
		return err;
	}
	put_in_order(&r.found);
	*frames = r.found.data;
	*count = r.found.count;
	return 0;
}

const struct runtime luajit_runtime = {
	.name = "LuaJIT",
	.files = {{"luajit", false}, {"libluajit", false}},
	.remedy = "build it with -DLUAJIT_USE_PERFTOOLS",
	.lacks = NO_TRACES,
	.by = MADE_BY_LUAJIT,
	.frame_sizes = frame_sizes,
};
