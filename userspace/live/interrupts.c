/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/interrupts.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/list_column.h"
#include "base/order.h"
#include "base/parse.h"

#define PROCESS_NAME "[interrupts]"

static const char *const kind_names[INTERRUPT_KIND_COUNT] = {INTERRUPT_KINDS(SECOND_COLUMN)};

/*
 * What the kernel calls for a softirq; those that follow another one may be all that is left of it
 * (a tail call). SOFTIRQ: what goes through the pending ones.
 */
static const struct {
	const char *name;
	enum interrupt_kind kind;
	bool is_prefix;
} functions[] = {
	{"__do_softirq", INTERRUPT_SOFTIRQ, false}, /* up to 6.9 */
	{"handle_softirqs", INTERRUPT_SOFTIRQ, false},
	{"tasklet_hi_action", INTERRUPT_HI, false},
	{"run_timer_softirq", INTERRUPT_TIMER, false},
	{"run_timer_base", INTERRUPT_TIMER, false},
	{"__run_timer_base", INTERRUPT_TIMER, false},
	{"__run_timers", INTERRUPT_TIMER, false},
	{"net_tx_action", INTERRUPT_NET_TX, false},
	{"net_rx_action", INTERRUPT_NET_RX, false},
	{"blk_done_softirq", INTERRUPT_BLOCK, false},
	{"blk_complete_reqs", INTERRUPT_BLOCK, false},
	{"irq_poll_softirq", INTERRUPT_IRQ_POLL, false},
	{"tasklet_action", INTERRUPT_TASKLET, false},
	{"tasklet_action_common", INTERRUPT_TASKLET, false},
	{"workqueue_softirq_action", INTERRUPT_TASKLET, false},
	{"run_rebalance_domains", INTERRUPT_SCHED, false},
	{"rebalance_domains", INTERRUPT_SCHED, false},
	{"sched_balance_softirq", INTERRUPT_SCHED, false},
	{"sched_balance_domains", INTERRUPT_SCHED, false},
	{"hrtimer_run_softirq", INTERRUPT_HRTIMER, false},
	{"rcu_core_si", INTERRUPT_RCU, false},
	{"rcu_core", INTERRUPT_RCU, false},
	{"rcu_process_callbacks", INTERRUPT_RCU, false},
	{"common_interrupt", INTERRUPT_HARDIRQ, false},
	{"__common_interrupt", INTERRUPT_HARDIRQ, false},
	{"asm_common_interrupt", INTERRUPT_HARDIRQ, false},
	{"sysvec_", INTERRUPT_HARDIRQ, true},
	{"__sysvec_", INTERRUPT_HARDIRQ, true},
	{"asm_sysvec_", INTERRUPT_HARDIRQ, true},
};

/* ---- the kernel's functions ------------------------------------------------------------------ */

/* Copies of a static function have a suffix, which is not compared. INTERRUPT_UNKNOWN: no other. */
static enum interrupt_kind kind_of_name(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		const char *wanted = functions[i].name;
		size_t known;

		/* as most of some 120,000; many begin with "__" */
		if (name[0] != wanted[0] || length < 3 || name[2] != wanted[2])
			continue;
		known = strlen(wanted);
		if (length < known || memcmp(name, wanted, known))
			continue;
		if (length == known || name[known] == '.' || functions[i].is_prefix)
			return functions[i].kind;
	}
	return INTERRUPT_UNKNOWN;
}

/* "address type name [module]", up to `end`. */
static int take_symbol(struct interrupts *i, const char *line, const char *end)
{
	struct interrupt_function f = {.end = UINT64_MAX}, *last;
	const char *name = line;

	if (parse_hex(&name, &f.start) || end - name < 4)
		return 0;
	name += 3;
	last = i->open ? &i->functions.data[i->functions.count - 1] : NULL;
	if (last && f.start != last->start) {
		last->end = f.start;
		i->open = false;
	}
	f.kind = kind_of_name(name, end - name);
	if (f.kind == INTERRUPT_UNKNOWN || (last && f.start == last->start))
		return 0;
	i->open = true;
	return vec_push(&i->functions, f);
}

int interrupts__symbols(struct interrupts *i, const struct kallsyms_event *piece)
{
	const char *at = piece->text, *end = at + piece->text_size;
	int err = 0;

	while (at < end && !err) {
		const char *line_end = memchr(at, '\n', end - at);

		if (!line_end)
			break;
		err = take_symbol(i, at, line_end);
		at = line_end + 1;
	}
	return err;
}

static enum interrupt_kind kind_of_address(const struct interrupts *i, uint64_t address)
{
	size_t behind = partition_point(i->functions.data, i->functions.count, function,
					function->start <= address);
	const struct interrupt_function *f = behind ? &i->functions.data[behind - 1] : NULL;

	return f && address < f->end ? f->kind : INTERRUPT_UNKNOWN;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Softirqs that run in the exit of an interrupt, and not because a task has enabled them. */
static bool is_in_interrupt(const struct interrupts *i, const struct sample_event *s)
{
	for (size_t k = 1; k < s->kernel_frames; k++)
		if (kind_of_address(i, s->frames[k] - 1) == INTERRUPT_HARDIRQ)
			return true;
	return false;
}

/*
 * From the leaf outwards up to the work that was interrupted. A task may have been switched away,
 * or be about to, on its own stack in the exit of an interrupt: that is not its work. Nor is a tick
 * at the first instructions with interrupts enabled a softirq's: it became due in the interrupt
 * before, or while the CPU woke up for it.
 */
static enum interrupt_kind kind_of_stack(const struct interrupts *i, const struct sample_event *s,
					 bool on_interrupt_stack)
{
	enum interrupt_kind inner = INTERRUPT_SOFTIRQ;

	for (size_t k = 0; k < s->kernel_frames; k++) {
		enum interrupt_kind kind = kind_of_address(i, s->frames[k] - (k > 0));

		if (kind == INTERRUPT_SOFTIRQ)
			return k || !is_in_interrupt(i, s) ? inner : INTERRUPT_HARDIRQ;
		if (kind == INTERRUPT_HARDIRQ && on_interrupt_stack)
			return kind;
		if (kind < INTERRUPT_SOFTIRQ)
			inner = kind;
	}
	return INTERRUPT_UNKNOWN;
}

static int push_process(uint64_t time, event_push_fn push, void *context)
{
	struct {
		struct process_event event;
		char name[(sizeof(PROCESS_NAME) + EVENT_ALIGN - 1) / EVENT_ALIGN * EVENT_ALIGN];
	} out = {
		.event =
			{
				.header = {.size = sizeof(out),
					   .type = EVENT_PROCESS,
					   .flags = EVENT_FROM_PROC,
					   .time = time},
				.is_kernel = 1,
			},
		.name = PROCESS_NAME,
	};

	return push(context, &out.event.header);
}

static int push_thread(uint32_t tid, enum interrupt_kind kind, uint64_t time, event_push_fn push,
		       void *context)
{
	struct thread_event event = {
		.header = {.size = sizeof(event),
			   .type = EVENT_THREAD,
			   .flags = EVENT_FROM_PROC,
			   .time = time},
		.tid = tid,
	};

	snprintf(event.comm, sizeof(event.comm), "%s", kind_names[kind]);
	return push(context, &event.header);
}

/* Of the idle task: its pseudo thread. */
static int take_idle(struct interrupts *i, struct sample_event *s, enum interrupt_kind kind,
		     uint64_t period, event_push_fn push, void *context)
{
	struct interrupt_times *times = vec_at(&i->times, s->cpu);
	uint64_t before = s->header.time - 1;
	int err = 0;

	if (!times)
		return -ENOMEM;
	s->tid = INTERRUPT_TIDS + s->cpu * INTERRUPT_KINDS_MAX + kind;
	if (!i->seen)
		err = push_process(before, push, context);
	i->seen = true;
	if (!err && !times->of_kind[kind])
		err = push_thread(s->tid, kind, before, push, context);
	times->of_kind[kind] += period;
	s->cpu_time = times->of_kind[kind];
	return err;
}

int interrupts__take(struct interrupts *i, struct sample_event *sample, uint64_t period,
		     event_push_fn push, void *context)
{
	bool on_interrupt_stack = sample->header.flags & EVENT_ON_INTERRUPT_STACK;
	enum interrupt_kind kind = kind_of_stack(i, sample, on_interrupt_stack);

	sample->header.flags &= (__u16)~EVENT_ON_INTERRUPT_STACK;
	if (kind == INTERRUPT_HARDIRQ)
		sample->header.flags |= EVENT_IN_HARDIRQ;
	else if (kind <= INTERRUPT_SOFTIRQ)
		sample->header.flags |= EVENT_IN_SOFTIRQ;
	return sample->tgid ? 0 : take_idle(i, sample, kind, period, push, context);
}

void interrupts__fini(struct interrupts *i)
{
	vec_free(&i->functions);
	vec_free(&i->times);
}
