/* SPDX-License-Identifier: BSD-2-Clause */
#include "jitwatch/jvm_requests.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/clocks.h"
#include "base/minmax.h"
#include "jitwatch/jvm_attach.h"

#define REQUEST_INTERVAL 10000000000ull /* ns */
#define REQUEST_PATIENCE 5000000000ull
#define KILL_PATIENCE	 1000000000ull
#define REQUEST_TRIES	 20 /* of a JVM that does not catch SIGQUIT yet */
#define RETRY_INTERVAL	 200000000ull
#define REAP_INTERVAL	 5000000ull

int jvm_requests__add(struct jvm_requests *a, const struct jit_owner *owner)
{
	const struct jvm_request jvm = {.owner = *owner};

	return jvm_is_one(owner->pid) ? vec_push(&a->jvms, jvm) : 0;
}

void jvm_requests__forget(struct jvm_requests *a, pid_t pid)
{
	for (size_t i = 0; i < a->jvms.count; i++)
		a->jvms.data[i].gone |= a->jvms.data[i].owner.pid == pid;
}

/*
 * The child has ended, or has taken too long. A JVM without an answer gets no further request. A child that does not
 * end when it is killed hangs in a file of the JVM: it is abandoned. True: no child is left.
 */
static bool reap_child(struct jvm_request *jvm, uint64_t now)
{
	int status = 0;

	if (now > jvm->began + REQUEST_PATIENCE)
		kill(jvm->child, SIGKILL);
	if (waitpid(jvm->child, &status, WNOHANG) == 0) {
		if (now < jvm->began + REQUEST_PATIENCE + KILL_PATIENCE)
			return false;
		status = -1;
	}
	jvm->child = 0;
	jvm->gone |= !WIFEXITED(status) || WEXITSTATUS(status);
	jvm->next = jvm->began + REQUEST_INTERVAL;
	return true;
}

static void begin_request(struct jvm_request *jvm, uint64_t now)
{
	pid_t child = jvm_attach__begin(&jvm->owner);

	if (child > 0) {
		jvm->began = now;
		jvm->child = child;
	} else if (++jvm->tries < REQUEST_TRIES) { /* it has only just started */
		jvm->next = now + RETRY_INTERVAL;
	} else {
		jvm->gone = true;
	}
}

static void update_request(struct jvm_requests *a, size_t i, uint64_t now,
			   const struct jvm_requests_caller *caller)
{
	struct jvm_request *jvm = &a->jvms.data[i];

	if (jvm->child) {
		if (reap_child(jvm, now))
			caller->answered(caller->context, jvm->owner.pid);
	} else if (jvm->gone) {
		*jvm = a->jvms.data[--a->jvms.count];
	} else if (now >= jvm->next) {
		caller->touch(caller->context, &jvm->owner);
		begin_request(jvm, now);
		caller->touch(caller->context, NULL);
	}
}

void jvm_requests__send_due(struct jvm_requests *a, bool at_end,
			    const struct jvm_requests_caller *caller)
{
	uint64_t now = monotonic_ns();

	for (size_t i = 0; i < a->jvms.count && at_end && !a->sent_at_end; i++)
		a->jvms.data[i].next = 0;
	a->sent_at_end |= at_end;
	for (size_t i = a->jvms.count; i-- > 0;)
		update_request(a, i, now, caller);
}

bool jvm_requests__are_pending(const struct jvm_requests *a)
{
	for (size_t i = 0; i < a->jvms.count; i++)
		if (a->jvms.data[i].child)
			return true;
	return false;
}

uint64_t jvm_requests__next_due(const struct jvm_requests *a, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < a->jvms.count; i++)
		next = min_u64(next,
			       a->jvms.data[i].child ? now + REAP_INTERVAL : a->jvms.data[i].next);
	return next;
}

void jvm_requests__stop(struct jvm_requests *a)
{
	for (size_t i = 0; i < a->jvms.count; i++) {
		if (!a->jvms.data[i].child)
			continue;
		kill(a->jvms.data[i].child, SIGKILL);
		waitpid(a->jvms.data[i].child, NULL, WNOHANG);
		a->jvms.data[i].child = 0;
	}
}

void jvm_requests__fini(struct jvm_requests *a)
{
	vec_free(&a->jvms);
}
