/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two tables. Functions of the kernel say most: a read() waits for a pipe, a socket or a disk, by where it is. The innermost
 * function of the table decides. System calls decide where no function does, because its name is hidden or not in the table.
 * Functions of the kernel's own locks are not in its stacks, which begin at what waits: such a wait is marked.
 */
#include "process/recorder.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

/* X(name, state): in byte order. Of static functions there are copies with a suffix, which is not compared. */
#define FUNCTIONS(X)                                                                               \
	X("__do_semtimedop", LOCK)                                                                 \
	X("__down", LOCK)                                                                          \
	X("__down_interruptible", LOCK)                                                            \
	X("__inet_stream_connect", NETWORK)                                                        \
	X("__lock_sock", NETWORK)                                                                  \
	X("__mutex_lock", LOCK)                                                                    \
	X("__rt_mutex_slowlock", LOCK)                                                             \
	X("__skb_recv_datagram", NETWORK)                                                          \
	X("__skb_wait_for_more_packets", NETWORK)                                                  \
	X("__wait_on_buffer", DISK)                                                                \
	X("__x64_sys_pause", SLEEP)                                                                \
	X("anon_pipe_read", PIPE)                                                                  \
	X("anon_pipe_write", PIPE)                                                                 \
	X("balance_dirty_pages", DISK)                                                             \
	X("blk_mq_get_tag", DISK)                                                                  \
	X("do_epoll_wait", POLL)                                                                   \
	X("do_freezer_trap", STOPPED)                                                              \
	X("do_nanosleep", SLEEP)                                                                   \
	X("do_poll", POLL)                                                                         \
	X("do_select", POLL)                                                                       \
	X("do_signal_stop", STOPPED)                                                               \
	X("do_sys_poll", POLL)                                                                     \
	X("do_wait", CHILD)                                                                        \
	X("ep_poll", POLL)                                                                         \
	X("eventfd_read", PIPE)                                                                    \
	X("exc_page_fault", FAULT)                                                                 \
	X("fifo_open", PIPE)                                                                       \
	X("flock_lock_inode_wait", LOCK)                                                           \
	X("folio_wait_bit_common", DISK)                                                           \
	X("folio_wait_writeback", DISK)                                                            \
	X("futex_lock_pi", LOCK)                                                                   \
	X("futex_wait", LOCK)                                                                      \
	X("futex_wait_multiple", LOCK)                                                             \
	X("futex_wait_queue", LOCK)                                                                \
	X("futex_wait_requeue_pi", LOCK)                                                           \
	X("handle_mm_fault", FAULT)                                                                \
	X("handle_userfault", FAULT)                                                               \
	X("hrtimer_nanosleep", SLEEP)                                                              \
	X("inet_csk_accept", NETWORK)                                                              \
	X("inet_csk_wait_for_connect", NETWORK)                                                    \
	X("inotify_read", POLL)                                                                    \
	X("io_cqring_wait", POLL)                                                                  \
	X("io_schedule", DISK)                                                                     \
	X("io_schedule_timeout", DISK)                                                             \
	X("jbd2_log_wait_commit", DISK)                                                            \
	X("locks_lock_inode_wait", LOCK)                                                           \
	X("msleep", SLEEP)                                                                         \
	X("n_tty_read", PIPE)                                                                      \
	X("n_tty_write", PIPE)                                                                     \
	X("nfs_wait_bit_killable", DISK)                                                           \
	X("percpu_rwsem_wait", LOCK)                                                               \
	X("pipe_read", PIPE)                                                                       \
	X("pipe_write", PIPE)                                                                      \
	X("poll_schedule_timeout", POLL)                                                           \
	X("ptrace_stop", STOPPED)                                                                  \
	X("read_events", POLL)                                                                     \
	X("request_wait_answer", DISK)                                                             \
	X("rpc_wait_bit_killable", DISK)                                                           \
	X("rq_qos_wait", DISK)                                                                     \
	X("rt_mutex_slowlock", LOCK)                                                               \
	X("rwsem_down_read_slowpath", LOCK)                                                        \
	X("rwsem_down_write_slowpath", LOCK)                                                       \
	X("signalfd_read_iter", PIPE)                                                              \
	X("sk_stream_wait_connect", NETWORK)                                                       \
	X("sk_stream_wait_memory", NETWORK)                                                        \
	X("sk_wait_data", NETWORK)                                                                 \
	X("sock_alloc_send_pskb", NETWORK)                                                         \
	X("submit_bio_wait", DISK)                                                                 \
	X("tcp_recvmsg", NETWORK)                                                                  \
	X("throttle_cfs_rq_work", THROTTLED)                                                       \
	X("timerfd_read_iter", SLEEP)                                                              \
	X("tty_wait_until_sent", PIPE)                                                             \
	X("unix_accept", NETWORK)                                                                  \
	X("unix_stream_data_wait", NETWORK)                                                        \
	X("unix_stream_read_generic", NETWORK)                                                     \
	X("unix_wait_for_peer", NETWORK)                                                           \
	X("vsock_connectible_recvmsg", NETWORK)                                                    \
	X("wait_for_vfork_done", CHILD)                                                            \
	X("wait_on_page_bit", DISK)

struct function_state {
	const char *name;
	enum wall_state state;
};

static const struct function_state functions[] = {
#define X(name, state) {name, WALL_##state},
	FUNCTIONS(X)
#undef X
};

/* X(system call, state) */
#define CALLS(X)                                                                                   \
	X(accept, NETWORK)                                                                         \
	X(accept4, NETWORK)                                                                        \
	X(clock_nanosleep, SLEEP)                                                                  \
	X(connect, NETWORK)                                                                        \
	X(epoll_pwait, POLL)                                                                       \
	X(epoll_wait, POLL)                                                                        \
	X(fdatasync, DISK)                                                                         \
	X(flock, LOCK)                                                                             \
	X(fsync, DISK)                                                                             \
	X(futex, LOCK)                                                                             \
	X(io_getevents, POLL)                                                                      \
	X(io_uring_enter, POLL)                                                                    \
	X(msync, DISK)                                                                             \
	X(nanosleep, SLEEP)                                                                        \
	X(pause, SLEEP)                                                                            \
	X(poll, POLL)                                                                              \
	X(ppoll, POLL)                                                                             \
	X(pselect6, POLL)                                                                          \
	X(recvfrom, NETWORK)                                                                       \
	X(recvmmsg, NETWORK)                                                                       \
	X(recvmsg, NETWORK)                                                                        \
	X(select, POLL)                                                                            \
	X(semop, LOCK)                                                                             \
	X(semtimedop, LOCK)                                                                        \
	X(sendmmsg, NETWORK)                                                                       \
	X(sendmsg, NETWORK)                                                                        \
	X(sendto, NETWORK)                                                                         \
	X(sync, DISK)                                                                              \
	X(syncfs, DISK)                                                                            \
	X(vfork, CHILD)                                                                            \
	X(wait4, CHILD)                                                                            \
	X(waitid, CHILD)

static enum wall_state state_of_call(int call)
{
	switch (call) {
#define X(name, state)                                                                             \
	case SYS_##name:                                                                           \
		return WALL_##state;
		CALLS(X)
#undef X
	case VISIT_NO_CALL:
		return WALL_FAULT;
	default:
		return WALL_OTHER;
	}
}

enum wall_state wall_state_of_visit(const struct visit_account *visit, bool *open)
{
	*open = false;
	if (visit->found & (VISIT_ACCOUNT | VISIT_RUNNING))
		return WALL_NONE;
	if (visit->found & VISIT_THROTTLED)
		return WALL_THROTTLED;
	if (visit->found & VISIT_RUNNABLE)
		return WALL_RUNNABLE;
	if (visit->found & VISIT_STOPPED)
		return WALL_STOPPED;
	if (visit->found & VISIT_LOCK)
		return WALL_LOCK;
	*open = true;
	return visit->found & VISIT_IO_WAIT ? WALL_DISK : state_of_call(visit->call);
}

const char *const *wall_function_names(size_t *count)
{
	static const char *const names[] = {
#define X(name, state) name,
		FUNCTIONS(X)
#undef X
	};

	*count = sizeof(names) / sizeof(names[0]);
	return names;
}

static int compare_function(const void *key, const void *element)
{
	const char *name = key;
	const struct function_state *f = element;
	size_t length = strcspn(name, ".");
	int order = strncmp(name, f->name, length);

	return order ? order : -(f->name[length] != '\0');
}

enum wall_state wall_state_of_function(const char *name)
{
	const struct function_state *found = bsearch(name, functions,
						     sizeof(functions) / sizeof(functions[0]),
						     sizeof(functions[0]), compare_function);

	return found ? found->state : WALL_NONE;
}

static enum wall_state state_of_stack(const struct profile_builder *b, struct stack_id id)
{
	enum wall_state state = WALL_NONE;

	while (id.v && state == WALL_NONE) {
		const struct profile_stack *stack = profile_builder__get_stack(b, id);
		const char *name = profile_builder__function_name(b, stack->location);

		if (profile_builder__get_location(b, stack->location)->category != CATEGORY_KERNEL)
			break;
		if (name)
			state = wall_state_of_function(name);
		id = stack->parent;
	}
	return state;
}

/* Most waits have one of a few stacks. `known`: by stack, 0: not looked at. */
static void settle_thread(struct profile_builder *b, struct thread_id thread, uint8_t *known)
{
	struct builder_samples samples = profile_builder__samples(b, thread, SAMPLE_WALL);

	for (size_t i = 0; i < samples.count; i++) {
		uint8_t *of_stack = &known[samples.stack[i].v];
		uint8_t *state = &samples.state[i];

		if (!(*state & WALL_STATE_OPEN))
			continue;
		*state &= (uint8_t)~WALL_STATE_OPEN;
		if (!*of_stack)
			*of_stack = WALL_STATE_OPEN | state_of_stack(b, samples.stack[i]);
		if (*of_stack != WALL_STATE_OPEN)
			*state = *of_stack & (uint8_t)~WALL_STATE_OPEN;
	}
}

int wall_states__settle(struct profile_builder *b)
{
	_cleanup_free_ uint8_t *known = calloc(profile_builder__stack_count(b) + 1, 1);
	size_t threads = profile_builder__thread_count(b);

	if (!known)
		return -ENOMEM;
	for (uint32_t i = 1; i <= threads; i++)
		settle_thread(b, (struct thread_id){i}, known);
	return 0;
}
