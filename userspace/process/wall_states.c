/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two tables. Kernel functions say most: a read() waits for a pipe, a socket or a disk, by where it
 * is. The innermost function in the table decides, or the system call if no function does, because
 * its name is hidden or not in the table. Stacks begin at what waits, without the functions of the
 * kernel's own locks: such a wait is marked.
 */
#include "process/recorder.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

/* In byte order. Copies of a static function have a suffix, which is not compared. */
const struct wall_function wall_functions[] = {
	{"__do_semtimedop", WALL_LOCK},
	{"__down", WALL_LOCK},
	{"__down_interruptible", WALL_LOCK},
	{"__futex_wait", WALL_LOCK},
	{"__inet_stream_connect", WALL_NETWORK},
	{"__lock_sock", WALL_NETWORK},
	{"__mutex_lock", WALL_LOCK},
	{"__rt_mutex_slowlock", WALL_LOCK},
	{"__skb_recv_datagram", WALL_NETWORK},
	{"__skb_wait_for_more_packets", WALL_NETWORK},
	{"__wait_on_buffer", WALL_DISK},
	{"__x64_sys_pause", WALL_SLEEP},
	{"anon_pipe_read", WALL_PIPE},
	{"anon_pipe_write", WALL_PIPE},
	{"balance_dirty_pages", WALL_DISK},
	{"blk_mq_get_tag", WALL_DISK},
	{"devkmsg_read", WALL_PIPE},
	{"do_epoll_wait", WALL_POLL},
	{"do_freezer_trap", WALL_STOPPED},
	{"do_msgrcv", WALL_PIPE},
	{"do_msgsnd", WALL_PIPE},
	{"do_nanosleep", WALL_SLEEP},
	{"do_poll", WALL_POLL},
	{"do_select", WALL_POLL},
	{"do_signal_stop", WALL_STOPPED},
	{"do_sigtimedwait", WALL_SLEEP},
	{"do_sys_poll", WALL_POLL},
	{"do_wait", WALL_CHILD},
	{"ep_poll", WALL_POLL},
	{"eventfd_read", WALL_PIPE},
	{"eventfd_write", WALL_PIPE},
	{"exc_page_fault", WALL_FAULT},
	{"fanotify_read", WALL_POLL},
	{"fcntl_setlk", WALL_LOCK},
	{"fifo_open", WALL_PIPE},
	{"flock_lock_inode_wait", WALL_LOCK},
	{"folio_wait_bit_common", WALL_DISK},
	{"folio_wait_writeback", WALL_DISK},
	{"fuse_dev_do_read", WALL_PIPE},
	{"futex_lock_pi", WALL_LOCK},
	{"futex_wait", WALL_LOCK},
	{"futex_wait_multiple", WALL_LOCK},
	{"futex_wait_queue", WALL_LOCK},
	{"futex_wait_requeue_pi", WALL_LOCK},
	{"handle_mm_fault", WALL_FAULT},
	{"handle_userfault", WALL_FAULT},
	{"hrtimer_nanosleep", WALL_SLEEP},
	{"inet_csk_accept", WALL_NETWORK},
	{"inet_csk_wait_for_connect", WALL_NETWORK},
	{"inotify_read", WALL_POLL},
	{"io_cqring_wait", WALL_POLL},
	{"io_schedule", WALL_DISK},
	{"io_schedule_timeout", WALL_DISK},
	{"jbd2_log_wait_commit", WALL_DISK},
	{"locks_lock_inode_wait", WALL_LOCK},
	{"msleep", WALL_SLEEP},
	{"n_tty_read", WALL_PIPE},
	{"n_tty_write", WALL_PIPE},
	{"nfs_wait_bit_killable", WALL_DISK},
	{"percpu_rwsem_wait", WALL_LOCK},
	{"pipe_read", WALL_PIPE},
	{"pipe_wait_readable", WALL_PIPE},
	{"pipe_wait_writable", WALL_PIPE},
	{"pipe_write", WALL_PIPE},
	{"poll_schedule_timeout", WALL_POLL},
	{"ptrace_stop", WALL_STOPPED},
	{"read_events", WALL_POLL},
	{"request_wait_answer", WALL_DISK},
	{"rpc_wait_bit_killable", WALL_DISK},
	{"rq_qos_wait", WALL_DISK},
	{"rt_mutex_slowlock", WALL_LOCK},
	{"rwsem_down_read_slowpath", WALL_LOCK},
	{"rwsem_down_write_slowpath", WALL_LOCK},
	{"signalfd_read_iter", WALL_PIPE},
	{"sigsuspend", WALL_SLEEP},
	{"sk_stream_wait_connect", WALL_NETWORK},
	{"sk_stream_wait_memory", WALL_NETWORK},
	{"sk_wait_data", WALL_NETWORK},
	{"sock_alloc_send_pskb", WALL_NETWORK},
	{"submit_bio_wait", WALL_DISK},
	{"tcp_recvmsg", WALL_NETWORK},
	{"throttle_cfs_rq_work", WALL_THROTTLED},
	{"timerfd_read_iter", WALL_SLEEP},
	{"tty_wait_until_sent", WALL_PIPE},
	{"unix_accept", WALL_NETWORK},
	{"unix_stream_data_wait", WALL_NETWORK},
	{"unix_stream_read_generic", WALL_NETWORK},
	{"unix_wait_for_peer", WALL_NETWORK},
	{"userfaultfd_read_iter", WALL_PIPE},
	{"vsock_connectible_recvmsg", WALL_NETWORK},
	{"wait_for_vfork_done", WALL_CHILD},
	{"wait_on_page_bit", WALL_DISK},
	{"wq_sleep", WALL_PIPE},
};

const size_t wall_function_count = sizeof(wall_functions) / sizeof(wall_functions[0]);

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
	X(io_pgetevents, POLL)                                                                     \
	X(io_uring_enter, POLL)                                                                    \
	X(mq_timedreceive, PIPE)                                                                   \
	X(mq_timedsend, PIPE)                                                                      \
	X(msgrcv, PIPE)                                                                            \
	X(msgsnd, PIPE)                                                                            \
	X(msync, DISK)                                                                             \
	X(nanosleep, SLEEP)                                                                        \
	X(pause, SLEEP)                                                                            \
	X(poll, POLL)                                                                              \
	X(ppoll, POLL)                                                                             \
	X(pselect6, POLL)                                                                          \
	X(recvfrom, NETWORK)                                                                       \
	X(recvmmsg, NETWORK)                                                                       \
	X(recvmsg, NETWORK)                                                                        \
	X(rt_sigsuspend, SLEEP)                                                                    \
	X(rt_sigtimedwait, SLEEP)                                                                  \
	X(select, POLL)                                                                            \
	X(semop, LOCK)                                                                             \
	X(semtimedop, LOCK)                                                                        \
	X(sendmmsg, NETWORK)                                                                       \
	X(sendmsg, NETWORK)                                                                        \
	X(sendto, NETWORK)                                                                         \
	X(splice, PIPE)                                                                            \
	X(sync, DISK)                                                                              \
	X(syncfs, DISK)                                                                            \
	X(tee, PIPE)                                                                               \
	X(vfork, CHILD)                                                                            \
	X(vmsplice, PIPE)                                                                          \
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

static int compare_function(const void *key, const void *element)
{
	const char *name = key;
	const struct wall_function *f = element;
	size_t length = strcspn(name, ".");
	int order = strncmp(name, f->name, length);

	return order ? order : -(f->name[length] != '\0');
}

enum wall_state wall_state_of_function(const char *name)
{
	const struct wall_function *found = bsearch(name, wall_functions, wall_function_count,
						    sizeof(wall_functions[0]), compare_function);

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
