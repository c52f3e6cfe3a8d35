/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A consumer of events: one table of callbacks, called by live capture and by replay.
 *
 * Events come in time order (header.time, CLOCK_MONOTONIC ns, never decreasing) and have been
 * checked by stream/event_decode: sizes agree, strings end, counts are in range. A callback that
 * is NULL is skipped. A callback returns 0 or a negative errno, which ends the stream with that
 * error. Pointers are valid during the call only.
 */
#ifndef SYSPROF_EVENT_HANDLER_H
#define SYSPROF_EVENT_HANDLER_H

#include <sysprof/event.h>

struct event_handler {
	void *context; /* first argument of every callback */
	int (*sample)(void *context, const struct sample_event *event);
	int (*visit)(void *context, const struct visit_event *event);
	int (*cpu_times)(void *context, const struct cpu_times_event *event);
	int (*visit_books)(void *context, const struct visit_books_event *event);
	int (*thread_cpu)(void *context, const struct thread_cpu_event *event);
	int (*mmap)(void *context, const struct mmap_event *event);
	int (*comm)(void *context, const struct comm_event *event);
	int (*fork)(void *context, const struct task_event *event);
	int (*exit)(void *context, const struct task_event *event);
	int (*lost)(void *context, const struct lost_event *event);
	int (*process)(void *context, const struct process_event *event);
	int (*thread)(void *context, const struct thread_event *event);
	int (*maps_read)(void *context, const struct maps_read_event *event);
	int (*memory)(void *context, const struct memory_event *event);
	int (*cgroup)(void *context, const struct cgroup_event *event);
	int (*facts)(void *context, const struct facts_event *event);
	int (*clock_anchor)(void *context, const struct clock_anchor_event *event);
	int (*books)(void *context, const struct books_event *event);
	int (*meta)(void *context, const char *key, const char *value);
	int (*outside)(void *context, const struct outside_event *event);
	int (*kallsyms)(void *context, const struct kallsyms_event *event);
	int (*end)(void *context, const struct event_header *event);
	int (*jit_file)(void *context, const struct jit_file_event *event);
	int (*jit_bytes)(void *context, const struct jit_bytes_event *event);
	int (*code_function)(void *context, const struct code_function_event *event);
	int (*code_chain)(void *context, const struct code_chain_event *event);
	int (*code_runtime)(void *context, const struct code_runtime_event *event);
	int (*symbol_dso)(void *context, const struct symbol_dso_event *event);
	int (*symbol)(void *context, const struct symbol_event *event);
	int (*code_text)(void *context, const struct code_text_event *event);
	int (*code_lines)(void *context, const struct code_lines_event *event);
	int (*source)(void *context, const struct source_event *event);
	int (*source_root)(void *context, const struct source_root_event *event);
	int (*symbols_end)(void *context, const struct event_header *event);
};

/*
 * A request from the recorder to its source of events: "read the mappings of this process again".
 * Live capture answers with events (rate-limited). A replay ignores it: the answer is recorded.
 */
struct event_source_requests {
	void *context;
	void (*reread_process)(void *context, __u32 pid);
};

#endif
