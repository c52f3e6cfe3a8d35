/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes get requests for the frames of their code, when, and how that code is placed. */
#include "unit.h"
#include "models/unwind_find.h"
#include "unwind/made_code.h"

#include "unit/table_memory.h"

#define SEGMENT_SIZE (4u << 20)
#define MS	     1000000ull
#define TGID	     7

struct scene {
	struct table_memory memory;
	struct table_store *store;
	struct made_code *made;
	/* what the process has */
	struct made_frame frames[4];
	size_t count;
	unsigned int requested;
};

/* between the first two a trace was freed */
static const struct made_area areas[] = {{0x10000, 0x20000}, {0x7f0000000000, 0x7f0000010000}};
static const uint64_t registers[16];

static int request_frames(void *context, const struct made_request *request)
{
	struct scene *w = context;
	const struct made_answer answer = {
		.ticket = request->ticket,
		.runtime = request->runtime,
		.frames = w->frames,
		.count = w->count,
		.cpu_ns = 1000,
	};

	assert_int_equal(request->runtime->tgid, TGID);
	assert_int_equal(request->area_count, 2);
	assert_memory_equal(request->areas, areas, sizeof(areas));
	assert_true(!request->registers || request->registers == registers);
	w->requested++;
	return made_code__answer(w->made, &answer) < 0 ? -ENOMEM : 0;
}

static void set_up(struct scene *w)
{
	struct made_code_options options = {
		.table_limit = SEGMENT_SIZE, .request = request_frames, .context = w};
	const struct table_store_options store = {.memory = &w->memory.shared};

	*w = (struct scene){
		.frames =
			{
				{.start = 0x11010, .end = 0x11100, .size = 96, .ra_offset = -8},
				{.start = 0x11110,
				 .end = 0x11200,
				 .size = 112,
				 .ra_offset = -8,
				 .fp_offset = -16},
				{.start = 0x7f0000000000,
				 .end = 0x7f0000000100,
				 .size = 16,
				 .ra_offset = -16},
			},
		.count = 3,
	};
	table_memory__init(&w->memory, SEGMENT_SIZE, 1);
	options.store = w->store = table_store__new(&store);
	w->made = made_code__new(&options);
	assert_true(w->store && w->made);
}

static void tear_down(struct scene *w)
{
	made_code__free(w->made);
	table_store__free(w->store);
	table_memory__fini(&w->memory);
}

/* missed: 0: it is only due */
static int send_request(struct scene *w, enum made_by by, uint64_t time, uint64_t missed)
{
	const struct made_moment moment = {
		.tgid = TGID,
		.by = by,
		.time = time,
		.areas = areas,
		.area_count = 2,
		.missed = missed,
		.registers = missed ? registers : NULL,
	};

	return made_code__request(w->made, &moment);
}

/* How the code at an address is walked; NULL: by no table. */
static const struct unwind_rule *rule_at(const struct scene *w, uint64_t address, uint32_t *instead)
{
	struct unwind_placement piece;
	const struct unwind_table *table;
	const void *segment;

	for (uint64_t at = 0x10000;; at = piece.end) {
		uint64_t end = at < 0x20000 ? 0x20000 : areas[1].end;

		if (at == 0x20000)
			at = areas[1].start;
		made_code__place(w->made, TGID, at, end, &piece);
		assert_int_equal(piece.start, at);
		assert_true(piece.end > at && piece.end <= end);
		if (address >= at && address < piece.end)
			break;
	}
	*instead = piece.table;
	if (piece.table >= UNWIND_TABLES)
		return NULL;
	table = table_store__get(w->store, piece.table, &segment);
	assert_non_null(table);
	return unwind_table__find(segment, table, address - piece.bias);
}

static void assert_size(const struct scene *w, uint64_t address, int size)
{
	uint32_t instead;
	const struct unwind_rule *rule = rule_at(w, address, &instead);

	assert_non_null(rule);
	assert_int_equal(rule->cfa, UNWIND_CFA_SP);
	assert_int_equal(rule->cfa_offset, size);
}

static void assert_instead(const struct scene *w, uint64_t address, uint32_t wanted)
{
	uint32_t instead;

	assert_null(rule_at(w, address, &instead));
	assert_int_equal(instead, wanted);
}

TEST(a_frame_gives_the_rule_for_its_code_alone)
{
	const struct unwind_rule *rule;
	uint32_t instead;
	struct scene w;

	set_up(&w);
	assert_instead(&w, 0x11010, UNWIND_LATER);
	assert_int_equal(send_request(&w, MADE_BY_LUAJIT, 1000 * MS, 0x11010), 1);
	assert_instead(&w, 0x10000, UNWIND_LATER);
	assert_instead(&w, 0x1100f, UNWIND_LATER);
	assert_size(&w, 0x11010, 96);
	assert_size(&w, 0x110ff, 96);
	assert_int_equal(rule_at(&w, 0x11100, &instead)->cfa, UNWIND_CFA_LATER);
	assert_int_equal(rule_at(&w, 0x1110f, &instead)->cfa, UNWIND_CFA_LATER);
	assert_size(&w, 0x11110, 112);
	assert_size(&w, 0x111ff, 112);
	assert_instead(&w, 0x11200, UNWIND_LATER);
	assert_size(&w, 0x7f0000000000, 16);
	assert_size(&w, 0x7f00000000ff, 16);
	assert_instead(&w, 0x7f0000000100, UNWIND_LATER);
	rule = rule_at(&w, 0x11110, &instead);
	assert_int_equal(rule->fp, UNWIND_FP_AT_CFA);
	assert_int_equal(rule->fp_offset, -16);
	assert_int_equal(rule->ra_offset, -8);
	rule = rule_at(&w, 0x7f0000000000, &instead);
	assert_int_equal(rule->fp, UNWIND_FP_SAME);
	assert_int_equal(rule->ra_offset, -16);
	made_code__forget(w.made, TGID);
	made_code__forget(w.made, TGID);
	assert_instead(&w, 0x11010, UNWIND_LATER);
	tear_down(&w);
}

TEST(frames_are_requested_again_when_due)
{
	struct scene w;

	set_up(&w);
	assert_false(made_code__is_due(w.made, TGID, 1000 * MS));
	assert_int_equal(send_request(&w, MADE_BY_LUAJIT, 1000 * MS, 0x11010), 1);
	/* known by now, or requested a moment ago */
	assert_int_equal(send_request(&w, MADE_BY_LUAJIT, 5000 * MS, 0x11010), 0);
	assert_int_equal(send_request(&w, MADE_BY_LUAJIT, 1001 * MS, 0x12000), 0);
	assert_int_equal(w.requested, 1);
	assert_false(made_code__is_due(w.made, TGID, 1100 * MS));
	assert_true(made_code__is_due(w.made, TGID, 3000 * MS));
	assert_int_equal(send_request(&w, MADE_BY_LUAJIT, 3000 * MS, 0), 0);
	assert_int_equal(w.requested, 2);
	/* it has freed all and made others in the same place */
	w.count = 1;
	w.frames[0].size = 256;
	assert_int_equal(send_request(&w, MADE_BY_LUAJIT, 6000 * MS, 0), 1);
	assert_size(&w, 0x11010, 256);
	assert_instead(&w, 0x11110, UNWIND_LATER);
	w.count = 0;
	assert_int_equal(send_request(&w, MADE_BY_LUAJIT, 9000 * MS, 0), 1);
	assert_instead(&w, 0x11010, UNWIND_LATER);
	assert_false(made_code__is_due(w.made, TGID, 20000 * MS));
	tear_down(&w);
}

/* PyPy's frames never change: a question is for what was missed. */
TEST(frames_of_pypy_are_never_due_again)
{
	struct scene w;

	set_up(&w);
	assert_int_equal(send_request(&w, MADE_BY_PYPY, 1000 * MS, 0x11010), 1);
	assert_false(made_code__is_due(w.made, TGID, 100000 * MS));
	tear_down(&w);
}

/* A process without an answer gets fewer requests, and is walked by frame pointer meanwhile. */
TEST(processes_without_an_answer_get_fewer_requests)
{
	uint64_t time = 1000 * MS;
	unsigned int requested;
	struct scene w;
	int changed = 0;

	set_up(&w);
	w.count = 0;
	for (; w.requested < 100 && changed == 0; time += 100 * MS)
		changed = send_request(&w, MADE_BY_LUAJIT, time, 0x11010);
	assert_int_equal(changed, 1);
	assert_true(w.requested > 4 && w.requested < 100);
	assert_instead(&w, 0x11010, UNWIND_BY_CODE);
	requested = w.requested;
	for (int i = 0; i < 100; i++)
		assert_int_equal(send_request(&w, MADE_BY_LUAJIT, time + i * 5 * MS, 0x11010), 0);
	assert_int_equal(w.requested, requested);
	w.count = 3;
	assert_int_equal(send_request(&w, MADE_BY_LUAJIT, time + 5000 * MS, 0x11010), 1);
	assert_size(&w, 0x11010, 96);
	assert_instead(&w, 0x10000, UNWIND_LATER);
	tear_down(&w);
}

/* A table that is too large is none. */
TEST(a_table_beyond_the_limit_is_not_placed)
{
	struct made_code_options options = {.table_limit = 64, .request = request_frames};
	struct scene w;

	set_up(&w);
	options.store = w.store;
	options.context = &w;
	made_code__free(w.made);
	w.made = made_code__new(&options);
	assert_non_null(w.made);
	assert_int_equal(send_request(&w, MADE_BY_LUAJIT, 1000 * MS, 0x11010), 0);
	assert_instead(&w, 0x11010, UNWIND_LATER);
	tear_down(&w);
}
