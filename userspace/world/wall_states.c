/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two tables. Kernel functions say most: a read() waits for a pipe, a socket or a disk, by where it
 * is. The innermost function in the table decides, or the system call if no function does, because
 * its name is hidden or not in the table. Stacks begin at what waits, without the functions of the
 * kernel's own locks: such a wait is marked.
 */
#include "world/wall_states.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "world/recorder.h"

/*
 * In byte order. Copies of a static function have a suffix, which is not compared. A static function
 * may also be a part of its caller, and then it is in no stack: the row says what stands for it.
 * On the way out of the kernel a thread does not wait for what its system call or its fault did: for
 * the core dump of its process, or because its control group uses too much memory.
 */
const struct wall_function wall_functions[] = {
	{"__do_semtimedop", WALL_LOCK, NULL},
	{"__down", WALL_LOCK, NULL},
	{"__down_interruptible", WALL_LOCK, NULL},
	{"__futex_wait", WALL_LOCK, "futex_wait"},
	{"__inet_stream_connect", WALL_NETWORK, NULL},
	{"__lock_sock", WALL_NETWORK, NULL},
	{"__mem_cgroup_handle_over_high", WALL_FAULT, "mem_cgroup_handle_over_high"},
	{"__mutex_lock", WALL_LOCK, NULL},
	{"__rt_mutex_slowlock", WALL_LOCK, "rt_mutex_slowlock_block"},
	{"__skb_recv_datagram", WALL_NETWORK, NULL},
	{"__skb_wait_for_more_packets", WALL_NETWORK, NULL},
	{"__wait_on_buffer", WALL_DISK, NULL},
	{"__x64_sys_pause", WALL_SLEEP, NULL},
	{"anon_pipe_read", WALL_PIPE, "pipe_read"},
	{"anon_pipe_write", WALL_PIPE, "pipe_write"},
	{"balance_dirty_pages", WALL_DISK, NULL},
	{"blk_mq_get_tag", WALL_DISK, NULL},
	{"devkmsg_read", WALL_PIPE, NULL},
	{"do_epoll_wait", WALL_POLL, NULL},
	{"do_exit", WALL_OTHER, NULL},
	{"do_freezer_trap", WALL_STOPPED, WALL_BY_READINGS},
	{"do_msgrcv", WALL_PIPE, NULL},
	{"do_msgsnd", WALL_PIPE, NULL},
	{"do_nanosleep", WALL_SLEEP, NULL},
	{"do_poll", WALL_POLL, "do_sys_poll"},
	{"do_select", WALL_POLL, NULL},
	{"do_signal_stop", WALL_STOPPED, NULL},
	{"do_sigtimedwait", WALL_SLEEP, NULL},
	{"do_sys_poll", WALL_POLL, NULL},
	{"do_wait", WALL_CHILD, NULL},
	{"ep_poll", WALL_POLL, "do_epoll_wait"},
	{"eventfd_read", WALL_PIPE, NULL},
	{"eventfd_write", WALL_PIPE, NULL},
	{"exc_page_fault", WALL_FAULT, NULL},
	{"fanotify_read", WALL_POLL, NULL},
	{"fcntl_setlk", WALL_LOCK, NULL},
	{"fifo_open", WALL_PIPE, NULL},
	{"flock_lock_inode_wait", WALL_LOCK, "locks_lock_inode_wait"},
	{"folio_wait_bit_common", WALL_DISK, "wait_on_page_bit"},
	{"folio_wait_writeback", WALL_DISK, NULL},
	{"fuse_dev_do_read", WALL_PIPE, WALL_OF_MODULE},
	{"futex_lock_pi", WALL_LOCK, NULL},
	{"futex_wait", WALL_LOCK, NULL},
	{"futex_wait_multiple", WALL_LOCK, NULL},
	{"futex_wait_queue", WALL_LOCK, "futex_wait"},
	{"futex_wait_requeue_pi", WALL_LOCK, NULL},
	{"get_signal", WALL_OTHER, NULL},
	{"handle_mm_fault", WALL_FAULT, NULL},
	{"handle_userfault", WALL_FAULT, NULL},
	{"hrtimer_nanosleep", WALL_SLEEP, NULL},
	{"inet_csk_accept", WALL_NETWORK, NULL},
	{"inet_csk_wait_for_connect", WALL_NETWORK, "inet_csk_accept"},
	{"inotify_read", WALL_POLL, NULL},
	{"io_cqring_wait", WALL_POLL, WALL_BY_CALL},
	{"io_schedule", WALL_DISK, NULL},
	{"io_schedule_timeout", WALL_DISK, NULL},
	{"jbd2_log_wait_commit", WALL_DISK, WALL_OF_MODULE},
	{"kernel_clone", WALL_CHILD, NULL},
	{"locks_lock_inode_wait", WALL_LOCK, NULL},
	{"mem_cgroup_handle_over_high", WALL_FAULT, WALL_OF_MODULE},
	{"msleep", WALL_SLEEP, NULL},
	{"n_tty_read", WALL_PIPE, NULL},
	{"n_tty_write", WALL_PIPE, NULL},
	{"nfs_wait_bit_killable", WALL_DISK, WALL_OF_MODULE},
	{"percpu_rwsem_wait", WALL_LOCK, NULL},
	{"pipe_read", WALL_PIPE, "anon_pipe_read"},
	{"pipe_wait_readable", WALL_PIPE, NULL},
	{"pipe_wait_writable", WALL_PIPE, NULL},
	{"pipe_write", WALL_PIPE, "anon_pipe_write"},
	{"poll_schedule_timeout", WALL_POLL, "do_select"},
	{"ptrace_stop", WALL_STOPPED, NULL},
	{"read_events", WALL_POLL, NULL},
	{"request_wait_answer", WALL_DISK, WALL_OF_MODULE},
	{"rpc_wait_bit_killable", WALL_DISK, WALL_OF_MODULE},
	{"rq_qos_wait", WALL_DISK, NULL},
	{"rt_mutex_slowlock", WALL_LOCK, "rt_mutex_slowlock_block"},
	{"rt_mutex_slowlock_block", WALL_LOCK, "rt_mutex_slowlock"},
	{"rwsem_down_read_slowpath", WALL_LOCK, NULL},
	{"rwsem_down_write_slowpath", WALL_LOCK, NULL},
	{"signalfd_read", WALL_PIPE, "signalfd_read_iter"},
	{"signalfd_read_iter", WALL_PIPE, "signalfd_read"},
	{"sigsuspend", WALL_SLEEP, NULL},
	{"sk_stream_wait_connect", WALL_NETWORK, NULL},
	{"sk_stream_wait_memory", WALL_NETWORK, NULL},
	{"sk_wait_data", WALL_NETWORK, NULL},
	{"sock_alloc_send_pskb", WALL_NETWORK, NULL},
	{"submit_bio_wait", WALL_DISK, NULL},
	{"task_work_run", WALL_OTHER, NULL},
	{"tcp_recvmsg", WALL_NETWORK, NULL},
	{"throttle_cfs_rq_work", WALL_THROTTLED, WALL_BY_READINGS},
	{"timerfd_read", WALL_SLEEP, "timerfd_read_iter"},
	{"timerfd_read_iter", WALL_SLEEP, "timerfd_read"},
	{"tty_wait_until_sent", WALL_PIPE, NULL},
	{"unix_accept", WALL_NETWORK, NULL},
	{"unix_stream_data_wait", WALL_NETWORK, "unix_stream_read_generic"},
	{"unix_stream_read_generic", WALL_NETWORK, NULL},
	{"unix_wait_for_peer", WALL_NETWORK, NULL},
	{"userfaultfd_read", WALL_PIPE, "userfaultfd_read_iter"},
	{"userfaultfd_read_iter", WALL_PIPE, "userfaultfd_read"},
	{"vsock_connectible_recvmsg", WALL_NETWORK, WALL_OF_MODULE},
	{"wait_for_vfork_done", WALL_CHILD, "kernel_clone"},
	{"wait_on_page_bit", WALL_DISK, "folio_wait_bit_common"},
	{"wq_sleep", WALL_PIPE, NULL},
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

/* The kernel counts any wait in io_uring_enter() as one for I/O (from 6.5 on): it says nothing. */
static bool waits_for_disk(const struct visit_account *visit)
{
	return visit->found & VISIT_PENDING ||
	       (visit->found & VISIT_IO_WAIT && visit->call != SYS_io_uring_enter);
}

enum wall_state wall_state_of_visit(const struct visit_account *visit, uint8_t *open)
{
	*open = 0;
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
	*open = WALL_STATE_OPEN | (visit->found & VISIT_PENDING ? WALL_STATE_PENDING : 0);
	return waits_for_disk(visit) ? WALL_DISK : state_of_call(visit->call);
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
		bool pending = *state & WALL_STATE_PENDING;

		if (!(*state & WALL_STATE_OPEN))
			continue;
		*state &= (uint8_t) ~(WALL_STATE_OPEN | WALL_STATE_PENDING);
		if (!*of_stack)
			*of_stack = WALL_STATE_OPEN | state_of_stack(b, samples.stack[i]);
		if (*of_stack != WALL_STATE_OPEN &&
		    !(pending && *of_stack == (WALL_STATE_OPEN | WALL_POLL)))
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
