/* SPDX-License-Identifier: BSD-2-Clause */
/* The environment of the walk outside of the kernel. */
#include "unwind/unwind.h"

#include <string.h>

#undef __always_inline /* only the verifier needs that */
#define __always_inline inline

/* Tables are not masked into a map here, but the walk wants to mask them into something. */
#define unwind_segment_size (1ULL << 32)

struct unwind_state;

static long unwind_read(struct unwind_state *s, void *to, __u32 size, __u64 address);
static __u64 unwind_readable(struct unwind_state *s, __u64 address, __u64 size);
static const unsigned char *unwind_segment(struct unwind_state *s,
					   const struct unwind_table *table);
static const struct unwind_table *unwind_table_at(struct unwind_state *s, __u32 number);
static bool unwind_find_mapping(struct unwind_state *s, __u64 address);
static bool unwind_has_mappings(struct unwind_state *s);
static long unwind_thread_base(struct unwind_state *s, __u64 *base);
static void unwind_restore_window(struct unwind_state *s);

/* In the kernel these are functions that the verifier checks one by one. */
#define unwind_find_ahead(s)	       unwind_ahead_one(s)
#define unwind_find_by_code(s)	       unwind_by_code_at(s)
#define unwind_across(s)	       unwind_across_at(s)
#define unwind_find_call(s, ra)	       unwind_call_before(s, ra)
#define unwind_look(s, address)	       unwind_look_at(s, address)
#define unwind_find_called(s, cfa, ra) unwind_is_called(s, cfa, ra)
#define unwind_find_undescribed(s)     unwind_undescribed(s)
#define unwind_find_word(s, number)    unwind_is_word(s, number)
#define unwind_find_return(s, ra)      unwind_is_return(s, ra)
#define unwind_find_in_words(s)	       unwind_search(s)
#define unwind_find_pair(s, address)   unwind_read_pair(s, address, &(s)->low, &(s)->high)
#define unwind_find_leaf(s)	       unwind_leaf_of_made(s)
#define unwind_find_frames_made(w, n)  unwind_frames_made(w, n)

static int unwind_ahead_one(struct unwind_state *s);
static int unwind_by_code_at(struct unwind_state *s);
static int unwind_across_at(struct unwind_state *s);
static int unwind_call_before(struct unwind_state *s, __u64 ra);
static int unwind_look_at(struct unwind_state *s, __u64 address);
static bool unwind_is_called(struct unwind_state *s, __u64 cfa, __u64 ra);
static int unwind_undescribed(struct unwind_state *s);
static int unwind_is_word(struct unwind_state *s, __u32 number);
static bool unwind_is_return(struct unwind_state *s, __u64 ra);
static int unwind_search(struct unwind_state *s);
static long unwind_read_pair(struct unwind_state *s, __u64 address, __u64 *low, __u64 *high);
static int unwind_leaf_of_made(struct unwind_state *s);

#include <sysprof/unwind_walk.h>

#include "base/order.h"

struct walk {
	struct unwind_state state;
	const struct unwind_space *space;
	struct unwind_range range; /* the one that state.mapping is of */
};

static const struct unwind_space *space_of(struct unwind_state *s)
{
	return ((struct walk *)s)->space;
}

static long unwind_read(struct unwind_state *s, void *to, __u32 size, __u64 address)
{
	const struct unwind_space *space = space_of(s);

	return space->read(space->context, to, size, address);
}

static __u64 unwind_readable(struct unwind_state *s, __u64 address, __u64 size)
{
	uint64_t end = space_of(s)->end;

	return address < end && end - address < size ? end - address : size;
}

/* The walk has numbers where there are pointers here: 0 is that of the last range found. */

static const unsigned char *unwind_segment(struct unwind_state *s, const struct unwind_table *table)
{
	(void)table;
	return ((struct walk *)s)->range.segment;
}

static const struct unwind_table *unwind_table_at(struct unwind_state *s, __u32 number)
{
	return number ? NULL : ((struct walk *)s)->range.table;
}

static bool unwind_has_mappings(struct unwind_state *s)
{
	return space_of(s)->count > 0;
}

static long unwind_thread_base(struct unwind_state *s, __u64 *base)
{
	*base = space_of(s)->thread_base;
	return *base ? 0 : -1;
}

static void unwind_restore_window(struct unwind_state *s)
{
	for (__u32 i = 0; i < s->replaced.count; i++)
		unwind_put_back(&s->replaced, i, s->window, sizeof(s->window), 0,
				s->window_end - s->window_start, s->window_start);
}

static bool find_range(const struct unwind_space *space, uint64_t address,
		       struct unwind_range *range)
{
	size_t count;

	if (space->find)
		return space->find(space->context, address, range);
	count = partition_point(space->ranges, space->count, r, r->start <= address);
	if (!count || address >= space->ranges[count - 1].end)
		return false;
	*range = space->ranges[count - 1];
	return true;
}

static bool unwind_find_mapping(struct unwind_state *s, __u64 address)
{
	struct walk *walk = (struct walk *)s;
	struct unwind_range range;

	if (!find_range(walk->space, address, &range))
		return false;
	walk->range = range;
	s->mapping = (struct unwind_mapping){
		.start = range.start,
		.end = range.end,
		.bias = range.bias,
		.table = range.table ? 0 : range.instead,
	};
	return true;
}

enum stack_end unwind_stack(const struct unwind_space *space,
			    const uint64_t registers[UNWIND_REGISTERS], bool in_system_call,
			    uint64_t *frames, size_t max, size_t *count)
{
	struct walk walk = {.space = space};
	struct unwind_state *s = &walk.state;
	int end = UNWIND_STEP_ON;

	unwind_begin(s, in_system_call);
	s->is_fresh = space->is_fresh;
	memcpy(s->general, registers, sizeof(s->general));
	s->ip = registers[UNWIND_X86_RA];
	s->sp = registers[UNWIND_X86_RSP];
	s->fp = registers[UNWIND_X86_RBP];
	for (*count = 0; end == UNWIND_STEP_ON;) {
		if (*count == max)
			return STACK_END_DEPTH;
		frames[(*count)++] = frame_pack(s->kind, s->ip);
		end = unwind_to_caller(s);
		if (s->in_trampoline)
			frames[*count - 1] = frame_pack(FRAME_SIGNAL_RETURN,
							frame_address(frames[*count - 1]));
	}
	return end;
}
