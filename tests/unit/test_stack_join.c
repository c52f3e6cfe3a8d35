/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples and the pieces of their stacks; and the word that says when a process called execve. */
#include <sysprof/unwind_table.h>

#include "unit.h"
#include "base/cleanup.h"
#include "live/capture/perf_ring.h"

#define PAGE   ((uint64_t)STACK_PAGE)
#define START  (UINT64_C(0x7ffc00001230))
#define FIRST  (UINT64_C(0x7ffc00002000) - START) /* bytes of the first page */
#define FRAMES 3

static union {
	struct sample_event sample;
	char space[EVENT_LIVE_MAX];
} room;

static union {
	struct stack_piece piece;
	char space[sizeof(struct stack_piece) + STACK_PIECE_MAX];
} piece_room;

static struct stack_copy *copy_in(struct event_header *event)
{
	struct sample_event *s = (struct sample_event *)event;

	return (struct stack_copy *)&s->frames[s->kernel_frames + s->user_frames];
}

/* A sample with so many bytes of stack from START on; each byte is the number of its page. */
static struct event_header *make_sample(size_t size, uint64_t holes)
{
	struct stack_copy *copy;

	memset(&room, 0, sizeof(room));
	room.sample.header.type = EVENT_SAMPLE;
	room.sample.header.flags = EVENT_STACK_COPY;
	room.sample.user_frames = FRAMES;
	for (int i = 0; i < FRAMES; i++)
		room.sample.frames[i] = frame_pack(FRAME_POINTER, 0x1000 + i);
	copy = copy_in(&room.sample.header);
	copy->start = START;
	copy->size = size;
	copy->holes = holes;
	for (size_t i = 0; i < size; i++)
		copy->stack[i] = (START + i) / PAGE;
	room.sample.header.size = sizeof(struct sample_event) + FRAMES * sizeof(uint64_t) +
				  sizeof(*copy) + size;
	return &room.sample.header;
}

static struct stack_piece *make_piece(uint64_t start, size_t size, uint64_t holes)
{
	memset(&piece_room, 0, sizeof(piece_room));
	piece_room.piece.header.type = EVENT_STACK_PIECE;
	piece_room.piece.header.size = sizeof(struct stack_piece) + size;
	piece_room.piece.start = start;
	piece_room.piece.holes = holes;
	for (size_t i = 0; i < size; i++)
		piece_room.piece.stack[i] = (start + i) / PAGE;
	return &piece_room.piece;
}

static void assert_pages(const struct stack_copy *copy)
{
	for (size_t i = 0; i < copy->size; i++)
		assert_int_equal(copy->stack[i], (unsigned char)((copy->start + i) / PAGE));
}

TEST(pieces_in_order_are_appended_to_their_sample)
{
	const size_t own = FIRST + 3 * PAGE;
	_cleanup_(stack_join__fini) struct stack_join join = {};
	struct event_header *event;
	struct stack_copy *copy;

	/* page 2 of the sample's own, pages 1 and 2 of the second piece */
	stack_join__piece(&join, make_piece(START + own, STACK_PIECE_MAX, 0));
	stack_join__piece(&join, make_piece(START + own + STACK_PIECE_MAX, STACK_PIECE_MAX, 6));
	stack_join__piece(&join, make_piece(START + own + 2 * STACK_PIECE_MAX, PAGE, 0));
	event = stack_join__sample(&join, make_sample(own, 1 << 2));
	assert_ptr_not_equal(event, &room.sample.header);
	copy = copy_in(event);
	assert_int_equal(copy->size, own + 2 * STACK_PIECE_MAX + PAGE);
	assert_int_equal(copy->holes, 1 << 2 | 6 << (4 + 4));
	assert_int_equal(copy->start, START);
	assert_pages(copy);
	assert_int_equal(((struct sample_event *)event)->frames[2],
			 frame_pack(FRAME_POINTER, 0x1002));
	/* they were its own alone */
	event = make_sample(own, 0);
	assert_ptr_equal(stack_join__sample(&join, event), event);
}

/* Pieces of a sample that found no room, or of another stack. */
TEST(pieces_of_another_sample_are_not_appended)
{
	const size_t own = FIRST + 3 * PAGE;
	_cleanup_(stack_join__fini) struct stack_join join = {};
	struct event_header *event;

	stack_join__piece(&join, make_piece(START + own + PAGE, PAGE, 0));
	event = make_sample(own, 0);
	assert_ptr_equal(stack_join__sample(&join, event), event);
	/* the next one takes the place of what it does not follow on */
	stack_join__piece(&join, make_piece(0x10000, PAGE, 1));
	stack_join__piece(&join, make_piece(START + own, PAGE, 0));
	event = stack_join__sample(&join, make_sample(own, 0));
	assert_int_equal(copy_in(event)->size, own + PAGE);
	assert_int_equal(copy_in(event)->holes, 0);
	/* of another sample with the same stack */
	stack_join__piece(&join, make_piece(START + own, PAGE, 0));
	event = make_sample(own, 0);
	event->time = 1;
	assert_ptr_equal(stack_join__sample(&join, event), event);
	/* a sample without a copy */
	stack_join__piece(&join, make_piece(START + own, PAGE, 0));
	event = make_sample(own, 0);
	event->flags = 0;
	assert_ptr_equal(stack_join__sample(&join, event), event);
}

TEST(excess_pieces_are_left_out_and_damaged_sizes_ignored)
{
	const size_t own = FIRST + 3 * PAGE;
	_cleanup_(stack_join__fini) struct stack_join join = {};
	struct event_header *event;
	struct stack_piece *piece;

	for (int i = 0; i < STACK_PIECES + 1; i++)
		stack_join__piece(
			&join, make_piece(START + own + i * STACK_PIECE_MAX, STACK_PIECE_MAX, 0));
	event = stack_join__sample(&join, make_sample(own, 0));
	assert_int_equal(copy_in(event)->size, own + STACK_PIECES * STACK_PIECE_MAX);
	assert_pages(copy_in(event));
	assert_true(event->size <= EVENT_LIVE_MAX);
	piece = make_piece(START + own, 0, 0);
	piece->header.size = 8;
	stack_join__piece(&join, piece);
	event = make_sample(own, 0);
	assert_ptr_equal(stack_join__sample(&join, event), event);
	/* a copy that claims more than there is */
	stack_join__piece(&join, make_piece(START + own, PAGE, 0));
	event = make_sample(own, 0);
	copy_in(event)->size += 8;
	assert_ptr_equal(stack_join__sample(&join, event), event);
}

#define NS	 UINT64_C(1000000000)
#define UNIT	 (UINT64_C(1) << UNWIND_EXEC_UNIT_BITS)
#define TGID_MAX ((1u << 22) - 1)

/* Of another process on the same slot nothing follows. */
TEST(an_exec_follows_only_earlier_times_of_its_process)
{
	const uint64_t times[] = {UNIT, 3600 * NS, 86400 * NS * 365, UINT64_C(1) << 56};

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		uint64_t t = times[i], word = unwind_exec_word(TGID_MAX, t);

		assert_true(unwind_exec_is_after(word, TGID_MAX, t - UNIT));
		assert_false(unwind_exec_is_after(word, TGID_MAX, t));
		assert_false(unwind_exec_is_after(word, TGID_MAX, t + UNIT));
		assert_false(unwind_exec_is_after(word, TGID_MAX, t + 86400 * NS));
		assert_false(unwind_exec_is_after(word, 1, t - UNIT));
	}
	/* without a caller there */
	assert_false(unwind_exec_is_after(0, 1, NS));
}
