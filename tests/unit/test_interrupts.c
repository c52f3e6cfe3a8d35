/* SPDX-License-Identifier: BSD-2-Clause */
/* Which work of interrupts a sample shows, by the functions of its kernel stack. */
#include "unit.h"
#include "live/interrupts.h"

#define PERIOD 1000000u

static const char first[] = "ffffffff81000000 T common_interrupt\n"
			    "ffffffff81000100 t sysvec_apic_timer_interrupt\n"
			    "ffffffff81000200 t handle_softirqs.isra.0\n"
			    "ffffffff81000300 t irq_exit_rcu\n"
			    "ffffffff81000400 t net_rx_action\n";
/* the next piece ends the last function of the one before */
static const char second[] = "ffffffff81000500 t napi_poll\n"
			     "ffffffff81000600 t rcu_core\n"
			     "ffffffff81000700 t default_idle\n"
			     "ffffffff81000800 t net_rx_action_of_another_kind\n";

enum {
	COMMON = 0x000,
	SYSVEC = 0x110,
	HANDLE = 0x210,
	EXIT = 0x310,
	NET_RX = 0x410,
	NAPI = 0x510,
	RCU = 0x610,
	IDLE = 0x710,
	OTHER = 0x810,
};

struct pushed {
	uint32_t processes, threads, tid;
	char comm[EVENT_COMM_SIZE];
};

static int take_event(void *context, struct event_header *event)
{
	struct pushed *pushed = context;

	assert_int_equal(event->size % EVENT_ALIGN, 0);
	if (event->type == EVENT_PROCESS) {
		const struct process_event *process = (const struct process_event *)event;

		pushed->processes++;
		assert_int_equal(process->pid, 0);
		assert_string_equal(process->name, "[interrupts]");
	} else {
		const struct thread_event *thread = (const struct thread_event *)event;

		assert_int_equal(event->type, EVENT_THREAD);
		pushed->threads++;
		pushed->tid = thread->tid;
		memcpy(pushed->comm, thread->comm, sizeof(pushed->comm));
	}
	return 0;
}

static void read_piece(struct interrupts *i, const char *text)
{
	union {
		struct kallsyms_event event;
		char room[1024];
	} piece = {};

	piece.event.text_size = (uint32_t)strlen(text);
	memcpy(piece.event.text, text, strlen(text));
	assert_int_equal(interrupts__symbols(i, &piece.event), 0);
}

static void init(struct interrupts *i)
{
	*i = (struct interrupts){};
	read_piece(i, first);
	read_piece(i, second);
}

/* A sample of process `tgid`; the stack is leaf first and ends with 1. */
#define TAKE(i, pushed, out, tgid_, cpu_, flags_, ...)                                             \
	({                                                                                         \
		const unsigned int stack_[] = {__VA_ARGS__, 1};                                    \
		union {                                                                            \
			struct sample_event event;                                                 \
			char room[sizeof(struct sample_event) + 16 * sizeof(__u64)];               \
		} s_ = {};                                                                         \
                                                                                                   \
		s_.event.header.flags = (flags_);                                                  \
		s_.event.header.time = 1000;                                                       \
		s_.event.tgid = s_.event.tid = (tgid_);                                            \
		s_.event.cpu = (cpu_);                                                             \
		for (; stack_[s_.event.kernel_frames] != 1; s_.event.kernel_frames++)              \
			s_.event.frames[s_.event.kernel_frames] = 0xffffffff81000000 +             \
								  stack_[s_.event.kernel_frames];  \
		assert_int_equal(interrupts__take(i, &s_.event, PERIOD, take_event, pushed), 0);   \
		*(out) = s_.event;                                                                 \
	})

TEST(interrupts_in_tasks_only_set_a_flag)
{
	const unsigned int on = EVENT_ON_INTERRUPT_STACK;
	struct pushed pushed = {};
	struct sample_event s;
	struct interrupts i;

	init(&i);
	TAKE(&i, &pushed, &s, 7, 0, on, NAPI, NET_RX, HANDLE, EXIT, SYSVEC);
	assert_int_equal(s.header.flags, EVENT_IN_SOFTIRQ);
	/* ksoftirqd serves it on its own stack */
	TAKE(&i, &pushed, &s, 7, 0, 0, NET_RX, HANDLE);
	assert_int_equal(s.header.flags, EVENT_IN_SOFTIRQ);
	TAKE(&i, &pushed, &s, 7, 0, on, NAPI, COMMON + 0x10);
	assert_int_equal(s.header.flags, EVENT_IN_HARDIRQ);
	/* a tick that became due before interrupts were enabled; and one in a task that has enabled softirqs */
	TAKE(&i, &pushed, &s, 7, 0, on, HANDLE, EXIT, SYSVEC);
	assert_int_equal(s.header.flags, EVENT_IN_HARDIRQ);
	TAKE(&i, &pushed, &s, 7, 0, on, HANDLE, NAPI);
	assert_int_equal(s.header.flags, EVENT_IN_SOFTIRQ);
	/* a task that was switched away in the exit of an interrupt */
	TAKE(&i, &pushed, &s, 7, 0, 0, NAPI, EXIT, SYSVEC);
	assert_int_equal(s.header.flags, 0);
	/* the function is the one before a return address */
	TAKE(&i, &pushed, &s, 7, 0, 0, NAPI, 0x200);
	assert_int_equal(s.header.flags, 0);
	/* called outside of a softirq, and another stack without any sign of what it is for */
	TAKE(&i, &pushed, &s, 7, 0, EVENT_STACK_COPY | on, NAPI, NET_RX, IDLE);
	assert_int_equal(s.header.flags, EVENT_STACK_COPY);
	assert_int_equal(s.tid, 7);
	assert_int_equal(s.cpu_time, 0);
	assert_int_equal(pushed.processes + pushed.threads, 0);
	interrupts__fini(&i);
}

static void check_idle(const struct pushed *pushed, const struct sample_event *s,
		       enum interrupt_kind kind, const char *name, uint64_t periods)
{
	assert_int_equal(s->tgid, 0);
	assert_int_equal(s->tid, INTERRUPT_TIDS + s->cpu * INTERRUPT_KINDS_MAX + kind);
	assert_int_equal(s->cpu_time, periods * PERIOD);
	assert_int_equal(pushed->processes, 1);
	if (periods == 1) {
		assert_int_equal(pushed->tid, s->tid);
		assert_string_equal(pushed->comm, name);
	}
}

TEST(interrupts_of_an_idle_cpu_have_their_own_threads)
{
	const unsigned int on = EVENT_ON_INTERRUPT_STACK;
	struct pushed pushed = {};
	struct sample_event s;
	struct interrupts i;

	init(&i);
	TAKE(&i, &pushed, &s, 0, 0, on, NAPI, NET_RX, HANDLE, EXIT, SYSVEC, IDLE);
	check_idle(&pushed, &s, INTERRUPT_NET_RX, "NET_RX", 1);
	TAKE(&i, &pushed, &s, 0, 0, on, NET_RX, HANDLE, IDLE);
	check_idle(&pushed, &s, INTERRUPT_NET_RX, "NET_RX", 2);
	/* each CPU has its own */
	TAKE(&i, &pushed, &s, 0, 3, on, NET_RX, HANDLE, IDLE);
	check_idle(&pushed, &s, INTERRUPT_NET_RX, "NET_RX", 1);
	TAKE(&i, &pushed, &s, 0, 0, on, RCU, HANDLE, IDLE);
	check_idle(&pushed, &s, INTERRUPT_RCU, "RCU", 1);
	/* between two of them, and a function that is not in the table */
	TAKE(&i, &pushed, &s, 0, 0, on, HANDLE, IDLE);
	check_idle(&pushed, &s, INTERRUPT_SOFTIRQ, "softirq", 1);
	TAKE(&i, &pushed, &s, 0, 0, on, OTHER, HANDLE, IDLE);
	check_idle(&pushed, &s, INTERRUPT_SOFTIRQ, "softirq", 2);
	assert_int_equal(s.header.flags, EVENT_IN_SOFTIRQ);
	/* without a kernel stack */
	TAKE(&i, &pushed, &s, 0, 0, on, 1);
	check_idle(&pushed, &s, INTERRUPT_UNKNOWN, "unknown", 1);
	assert_int_equal(s.header.flags, 0);
	assert_int_equal(pushed.threads, 5);
	interrupts__fini(&i);
}
