/* SPDX-License-Identifier: BSD-2-Clause */
/* LuaJIT's traces are found from its dispatch table, in a state that this process has made of them. */
#include "unit.h"
#include "base/cleanup.h"
#include "runtimes/runtime.h"
#include "runtimes/table.h"
#include "unit/luajit_state.h"

static int request(struct luajit_state *w, const void *dispatch)
{
	const uint64_t registers[RUNTIME_REGISTERS] = {[LUAJIT_DISPATCH] = address_of(dispatch)};
	const struct frame_sizes_request request = {&w->runtime, registers, &w->area, 1};

	free(w->frames);
	return runtime_of_made_code(MADE_BY_LUAJIT)->frame_sizes(&request, &w->frames, &w->count);
}

static void assert_frame(const struct luajit_state *w, size_t i, uint64_t start, uint64_t end,
			 uint32_t size)
{
	assert_true(i < w->count);
	assert_int_equal(w->frames[i].start - w->area.start, start);
	assert_int_equal(w->frames[i].end - w->area.start, end);
	assert_int_equal(w->frames[i].size, size);
	assert_int_equal(w->frames[i].ra_offset, -8);
	assert_int_equal(w->frames[i].fp_offset, -16);
}

TEST(frames_of_all_traces_are_found_until_freed)
{
	_cleanup_(luajit_state__fini) struct luajit_state w = {};

	luajit_state__init(&w);
	assert_int_equal(request(&w, NULL), -ENODATA);
	assert_int_equal(request(&w, w.dispatch), 0);
	assert_int_equal(w.count, 3);
	assert_frame(&w, 0, 0x8000, 0x8100, 112);
	assert_frame(&w, 1, 0xe000, 0xe400, 256);
	assert_frame(&w, 2, 0xf000, 0xf800, 96);
	/* it is known from then on, and what it has made since is found */
	make_trace(&w, 6, 0x7000, 0x100, 0);
	assert_int_equal(request(&w, NULL), 0);
	assert_int_equal(w.count, 4);
	assert_int_equal(w.runtime.state_count, 1);
	assert_int_equal(request(&w, w.dispatch), 0);
	assert_int_equal(w.runtime.state_count, 1);
	/* all were freed, and the state may be gone as well */
	memset(w.array, 0, sizeof(w.array));
	assert_int_equal(request(&w, NULL), -ENODATA);
	assert_int_equal(w.runtime.state_count, 0);
}

/* What is no trace, or not yet, is left out. */
TEST(invalid_traces_are_left_out)
{
	_cleanup_(luajit_state__fini) struct luajit_state w = {};

	luajit_state__init(&w);
	w.traces[1].number = 2;
	w.traces[2].spadjust = 8192;
	assert_int_equal(request(&w, w.dispatch), 0);
	assert_int_equal(w.count, 1);
	make_trace(&w, 1, 0xff00, 0x101, 0); /* beyond the area */
	make_trace(&w, 2, 0x8080, 0x100, 0); /* over another one */
	make_trace(&w, 3, 0x6000, 0, 0);
	make_trace(&w, 4, 0x6000, 0x100, 0);
	w.traces[4].type = 6;
	make_trace(&w, 6, 0x6000, 0x100, 0);
	w.traces[6].loop = 0x101;
	w.array[7] = 0x7fffffff0000; /* nothing is there */
	assert_int_equal(request(&w, w.dispatch), 0);
	assert_int_equal(w.count, 1);
	assert_frame(&w, 0, 0x8000, 0x8100, 112);
	w.array[0] = w.array[1]; /* no trace has number 0, so this is no such array */
	assert_int_equal(request(&w, w.dispatch), -ENODATA);
}

TEST(a_damaged_state_has_all_frames_or_none)
{
	static const int64_t at[] = {-AT_CODE,	   -AT_CODE + 1, -AT_CODE + 2,	-AT_CODE + 3,
				     -AT_CODE + 4, -AT_TRACES,	 -AT_TRACES + 1};
	static const uint64_t values[] = {0, 1, PAGE, 1ull << 63, ~0ull, 0x7fffffffe000};
	unsigned int whole = 0;
	_cleanup_(luajit_state__fini) struct luajit_state w = {};

	luajit_state__init(&w);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
			uint64_t before = w.dispatch[at[i]];
			int err;

			w.dispatch[at[i]] = values[k];
			err = request(&w, w.dispatch);
			assert_int_equal(w.count, err ? 0 : 3);
			assert_true(!err || err == -ENODATA);
			whole += !err;
			w.runtime.state_count = 0;
			w.dispatch[at[i]] = before;
		}
	}
	assert_int_equal(whole, 3); /* the size of all areas may be any larger one */
	assert_int_equal(request(&w, w.dispatch + 1), 0); /* it need not be that very address */
	w.runtime.state_count = 0;
	assert_int_equal(request(&w, (char *)w.dispatch + 1), -ENODATA);
	assert_int_equal(request(&w, (void *)8), -ENODATA);
	assert_int_equal(request(&w, (void *)-8), -ENODATA);
	w.area.end = w.area.start + PAGE; /* such code is not mapped */
	assert_int_equal(request(&w, w.dispatch), -ENODATA);
}

/* An array that names itself all over costs no more than another. */
TEST(an_array_that_refers_to_itself_has_no_traces)
{
	_cleanup_(luajit_state__fini) struct luajit_state w = {};

	luajit_state__init(&w);
	for (uint64_t *word = w.memory; word + 1 < w.dispatch - AT_CODE; word += 2) {
		word[0] = address_of(w.memory);
		word[1] = 1 | 400ull << 32;
	}
	assert_int_equal(request(&w, w.dispatch), -ENODATA);
	srand(1);
	for (int turn = 0; turn < 300; turn++) {
		for (uint64_t *word = w.memory; word < w.dispatch - AT_CODE; word++)
			*word = rand() % 4 ? address_of(w.memory) + (unsigned)rand() % PAGE
					   : (unsigned)rand();
		(void)request(&w, w.dispatch);
	}
}
