/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rights of a process, borrowed for the moment in which one of its files is opened.
 *
 * A user chooses which file lies at such a name: a hard link to a file of root's, or one that was mounted over the
 * name in a private namespace. A check of owner and mode can be circumvented; the kernel's own check, with the
 * process's own identity, cannot. So no file is read that the process could not read itself.
 *
 * It is the real user's identity: a setuid program runs for the user who started it. Capabilities over files count
 * only where the process has them in our user namespace.
 */
#ifndef JITWATCH_JIT_RIGHTS_H
#define JITWATCH_JIT_RIGHTS_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define JIT_GROUPS_MAX 64 /* further ones are left out: they can only add rights */

struct jit_rights {
	uid_t uid;
	gid_t gid;
	unsigned int group_count;
	gid_t groups[JIT_GROUPS_MAX];
	uint64_t capabilities; /* in our user namespace */
};

/* Our own, while others are borrowed. */
struct jit_own_rights {
	bool borrowed, identity; /* identity: not only capabilities were left */
	gid_t gid;
	int group_count;
	gid_t groups[JIT_GROUPS_MAX];
	struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3];
};

/*
 * For the calling thread, until jit_rights__give_back(). 0; -EPERM: that is not allowed to us, and nothing has
 * changed. Without root the identity stays, without capabilities that the process does not have.
 */
int jit_rights__borrow(const struct jit_rights *rights, struct jit_own_rights *own);
void jit_rights__give_back(const struct jit_own_rights *own);

#endif
