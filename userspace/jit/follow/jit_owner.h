/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef JIT_FOLLOW_JIT_OWNER_H
#define JIT_FOLLOW_JIT_OWNER_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct __user_cap_data_struct;
struct jit_owner;

/*
 * The rights of a process, borrowed while one of its files is opened.
 *
 * A user can put any file at such a name: a hard link to a file of root, or a mount over the name
 * in a private namespace. Checks of owner and mode can be circumvented; the kernel's check, with
 * the process's identity, cannot. So no file is read that the process could not read itself.
 *
 * The identity is the real user's: a setuid program runs for the user who started it. Capabilities
 * over files count only if the process has them in our user namespace.
 */

#define JIT_GROUPS_MAX 64 /* others are left out: groups can only add rights */

struct jit_rights {
	uid_t uid;
	gid_t gid;
	unsigned int group_count;
	gid_t groups[JIT_GROUPS_MAX];
	uint64_t capabilities; /* in our user namespace */
};

/* Our own, while others are borrowed. */
struct jit_own_rights {
	bool borrowed, identity; /* identity: uid, gid and groups were changed as well */
	gid_t gid;
	int group_count;
	gid_t groups[JIT_GROUPS_MAX];
	struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3];
};

/*
 * For the calling thread, until jit_rights__give_back(). 0; -EPERM: not permitted, nothing changed.
 * Without root the identity stays, and only capabilities that the process lacks are dropped.
 */
int jit_rights__borrow(const struct jit_rights *rights, struct jit_own_rights *own);
void jit_rights__give_back(const struct jit_own_rights *own);

/* Same pid and start, to within the grain. */
bool jit_owner__is_process(const struct jit_owner *a, const struct jit_owner *b);
/* … and the same users. */
bool jit_owner__is_same(const struct jit_owner *a, const struct jit_owner *b);

/* 0 or negative errno: -ESRCH, … */
int jit_owner__read(pid_t pid, struct jit_owner *owner);
/* Reads it again if its users have changed: a daemon may have dropped privileges. Same errors. */
int jit_owner__refresh(struct jit_owner *owner);

#endif
