/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 3.13 on has one frame or none where a thread's state points. In 3.11 and 3.12 it points to a _PyCFrame on the C stack,
 * which the loop's function links in before it has filled it in: for a few instructions what is in there is garbage,
 * which is noticed by the type of the code, and the walk starts at the loop before.
 */
#include "models/cpython_walk.h"
#include "runtimes/python/code.h"
#include "runtimes/python/layout.h"

#define TAG_BITS 3u

struct walker {
	const struct cpython *py;
	struct target_memory *m;
	struct cpython_stack *stack;
	uint64_t code_type;
	uint64_t cframe; /* 3.11: of the loop that the walk is in */
	uint64_t met;	 /* a frame that was passed earlier: met again the chain is a circle */
	size_t steps, next_met, left; /* frames that were passed, and that may be */
	uint32_t first;		      /* frame of the group that is open */
	bool only_anchor;	      /* no frame fits any more */
};

enum step { STEP_ON, STEP_STOP };

static enum step stop(struct walker *w, enum cpython_end end)
{
	w->stack->end = end;
	return STEP_STOP;
}

static enum step close_group(struct walker *w, uint64_t anchor)
{
	struct cpython_stack *s = w->stack;

	if (s->group_count == s->groups_max)
		return stop(w, CPYTHON_END_LIMIT);
	s->groups[s->group_count++] = (struct cpython_group){
		.anchor = anchor, .first = w->first, .count = s->frame_count - w->first};
	w->first = s->frame_count;
	return w->only_anchor ? stop(w, CPYTHON_END_LIMIT) : STEP_ON;
}

/*
 * The frame of no function: its code, a constant of the interpreter, has the same object as its name and its file, and no
 * instruction of it counts as one.
 */
static bool is_init_shim(struct walker *w, const struct cpython_frame *f, const uint8_t *head)
{
	const struct cpython_layout *l = &w->py->layout;
	uint32_t traceable;

	if (!l->has_init_shim || f->owner == CPYTHON_OWNER_GENERATOR ||
	    f->identity.qualname != cpython_word(head, l->code_filename))
		return false;
	return !target_memory__u32(w->m, &traceable, f->code + l->code_firsttraceable) &&
	       f->instruction < l->code_bytecode + 2 * (uint64_t)traceable;
}

static enum step add_frame(struct walker *w, const uint8_t *frame)
{
	const struct cpython_layout *l = &w->py->layout;
	struct cpython_stack *s = w->stack;
	uint64_t code = cpython_word(frame, l->frame_code) & ~(uint64_t)TAG_BITS;
	uint64_t instruction = cpython_word(frame, l->frame_instruction) - code;
	uint8_t head[CPYTHON_HEAD_MAX];
	struct cpython_frame f = {.code = code, .owner = frame[l->frame_owner]};

	if (target_memory__read(w->m, head, cpython_head__size(w->py), code))
		return stop(w, CPYTHON_END_UNREADABLE);
	if (!w->code_type)
		w->code_type = cpython_word(head, CPYTHON_TYPE_AT);
	if (cpython_word(head, CPYTHON_TYPE_AT) != w->code_type)
		return stop(w, CPYTHON_END_TORN);
	f.instruction = instruction < CPYTHON_NO_INSTRUCTION ? instruction : CPYTHON_NO_INSTRUCTION;
	cpython_identity__of_head(w->py, w->m, head, &f.identity);
	if (is_init_shim(w, &f, head))
		return STEP_ON;
	s->frames[s->frame_count++] = f;
	if (s->frame_count == s->frames_max) {
		w->only_anchor = true;
		w->left = s->passed_max;
	}
	return STEP_ON;
}

/* 3.11: a loop ends with the frame that it was entered by. */
static enum step leave_loop(struct walker *w)
{
	enum step step = close_group(w, w->cframe);
	uint64_t previous = 0;

	if (step == STEP_ON && w->cframe &&
	    target_memory__word(w->m, &previous, w->cframe + w->py->layout.cframe_previous))
		return stop(w, CPYTHON_END_UNREADABLE);
	w->cframe = previous;
	return step;
}

/* The chain is a circle if a frame is met again: one frame is remembered, for twice as long each time. */
static bool is_circle(struct walker *w, uint64_t frame)
{
	if (frame == w->met)
		return true;
	if (w->steps++ == w->next_met) {
		w->met = frame;
		w->next_met = 2 * w->next_met + 1;
	}
	return false;
}

static enum step pass(struct walker *w, uint64_t address, uint64_t *next)
{
	const struct cpython_layout *l = &w->py->layout;
	uint8_t frame[CPYTHON_FRAME_MAX];
	enum step step = STEP_ON;

	if (is_circle(w, address))
		return stop(w, CPYTHON_END_TORN);
	if (target_memory__read(w->m, frame, l->frame_size, address))
		return stop(w, CPYTHON_END_UNREADABLE);
	*next = cpython_word(frame, l->frame_previous);
	if (frame[l->frame_owner] >= CPYTHON_OWNER_BOUNDARY) {
		if (!l->has_own_anchors)
			return stop(w, CPYTHON_END_TORN);
		if (l->has_base_frame && !*next)
			return STEP_ON;
		return close_group(w, address);
	}
	if (!w->only_anchor)
		step = add_frame(w, frame);
	if (step == STEP_ON && l->frame_is_entry && frame[l->frame_is_entry])
		step = leave_loop(w);
	return step;
}

/* In 3.11 the anchor is known from the start. Else it was not reached; at its root a chain always has one. */
static void end_without_anchor(struct walker *w)
{
	bool own = w->py->layout.has_own_anchors;
	struct cpython_stack *s = w->stack;

	if (s->end == CPYTHON_END_ROOT)
		s->end = CPYTHON_END_CUT;
	if (s->group_count < s->groups_max)
		s->groups[s->group_count++] =
			(struct cpython_group){.anchor = own ? 0 : w->cframe,
					       .first = w->first,
					       .count = s->frame_count - w->first};
}

static enum cpython_end follow(struct walker *w, uint64_t frame)
{
	struct cpython_stack *s = w->stack;

	s->frame_count = s->group_count = 0;
	s->end = CPYTHON_END_ROOT;
	w->first = 0;
	w->steps = w->next_met = 0;
	w->met = 0;
	w->only_anchor = !s->frames_max;
	/* each of them may have a shim, that is no frame */
	w->left = s->frames_max ? 2 * s->frames_max + s->groups_max : s->passed_max;
	w->code_type = w->py->code_type;
	while (frame && s->end == CPYTHON_END_ROOT) {
		if (!w->left-- || (w->only_anchor && !w->py->layout.has_own_anchors))
			s->end = CPYTHON_END_LIMIT;
		else
			pass(w, frame, &frame);
	}
	if (s->frame_count > w->first)
		end_without_anchor(w);
	return s->end;
}

static void forget(struct cpython_stack *s)
{
	if (s->end == CPYTHON_END_TORN)
		s->frame_count = s->group_count = 0;
}

static void walk_from_cframe(struct walker *w, uint64_t state)
{
	const struct cpython_layout *l = &w->py->layout;
	struct cpython_stack *s = w->stack;
	uint64_t cframe, frame;

	s->end = CPYTHON_END_UNREADABLE;
	if (target_memory__word(w->m, &cframe, state + l->thread_frame))
		return;
	for (int attempt = 0; attempt < 2 && cframe; attempt++) {
		s->restarted = attempt > 0;
		w->cframe = cframe;
		if (!target_memory__word(w->m, &frame, cframe + l->cframe_frame)) {
			enum cpython_end end = follow(w, frame);

			if (end != CPYTHON_END_TORN && end != CPYTHON_END_UNREADABLE)
				return;
		}
		if (target_memory__word(w->m, &cframe, cframe + l->cframe_previous))
			break;
	}
	/* neither of them leads to the root */
	s->end = s->end == CPYTHON_END_UNREADABLE && !s->frame_count ? CPYTHON_END_UNREADABLE
								     : CPYTHON_END_TORN;
}

void cpython__walk(const struct cpython *py, struct target_memory *m, uint64_t thread_state,
		   struct cpython_stack *stack)
{
	struct walker w = {.py = py, .m = m, .stack = stack};
	uint64_t frame;

	stack->frame_count = stack->group_count = 0;
	stack->restarted = false;
	stack->end = CPYTHON_END_UNREADABLE;
	if (py->layout.has_cframes)
		walk_from_cframe(&w, thread_state);
	else if (!target_memory__word(m, &frame, thread_state + py->layout.thread_frame))
		follow(&w, frame);
	forget(stack);
}
