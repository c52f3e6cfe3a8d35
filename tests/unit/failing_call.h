/* SPDX-License-Identifier: BSD-2-Clause */
/* A function during which the kernel refuses a system call. To be included after cmocka.h. */
#ifndef TESTS_UNIT_FAILING_CALL_H
#define TESTS_UNIT_FAILING_CALL_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

struct failing_call {
	unsigned int call; /* SYS_… */
	unsigned int error;
	void (*run)(void *context);
	void *context;
	int err;
};

/* A filter is a thread's own, and ends with it. */
static inline void *run_filtered(void *data)
{
	struct failing_call *f = data;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, f->call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | f->error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	f->err = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		 prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	if (!f->err)
		f->run(f->context);
	return NULL;
}

/* `run` may not assert: it runs in a thread. */
static inline void while_call_fails(unsigned int call, unsigned int error,
				    void (*run)(void *context), void *context)
{
	struct failing_call f = {.call = call, .error = error, .run = run, .context = context};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run_filtered, &f), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(f.err, 0);
}

#endif
