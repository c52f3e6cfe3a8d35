/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The system calls themselves, which concern one thread: libc's functions would change all threads of the
 * program. Only what counts at the opening of a file is changed (fsuid, fsgid, groups, capabilities over files);
 * CAP_SYS_PTRACE, by which the process's root is reached, stays.
 */
#include "jitwatch/jit_rights.h"

#include <errno.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/minmax.h"

#define BIT(capability) (1ull << (capability))
#define OVER_FILES                                                                                 \
	(BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER) | BIT(CAP_MAC_OVERRIDE))

static struct __user_cap_header_struct header_of_thread(void)
{
	return (struct __user_cap_header_struct){.version = _LINUX_CAPABILITY_VERSION_3};
}

static int set_capabilities(const struct __user_cap_data_struct *data)
{
	struct __user_cap_header_struct header = header_of_thread();

	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

static int note_own(struct jit_own_rights *own)
{
	struct __user_cap_header_struct header = header_of_thread();

	if (syscall(SYS_capget, &header, own->capabilities))
		return -errno;
	own->gid = getegid();
	own->group_count = (int)syscall(SYS_getgroups, JIT_GROUPS_MAX, own->groups);
	return own->group_count < 0 ? -errno : 0;
}

/* What we have ourselves, less what the process has not. */
static int limit_capabilities(uint64_t capabilities)
{
	struct __user_cap_header_struct header = header_of_thread();
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	uint64_t lost = OVER_FILES & ~capabilities;

	if (syscall(SYS_capget, &header, data))
		return -errno;
	data[0].effective &= ~(uint32_t)lost;
	data[1].effective &= ~(uint32_t)(lost >> 32);
	return set_capabilities(data);
}

/* setfsuid() and setfsgid() do not report errors: a second call that changes nothing returns the value. */
static bool become(const struct jit_rights *rights)
{
	setfsgid(rights->gid);
	setfsuid(rights->uid);
	return (gid_t)setfsgid((gid_t)-1) == rights->gid &&
	       (uid_t)setfsuid((uid_t)-1) == rights->uid;
}

int jit_rights__borrow(const struct jit_rights *rights, struct jit_own_rights *own)
{
	unsigned int count = (unsigned int)min_u64(rights->group_count, JIT_GROUPS_MAX);

	memset(own, 0, sizeof(*own));
	if (note_own(own))
		return -EPERM;
	own->borrowed = true;
	own->identity = !geteuid();
	if ((!own->identity ||
	     (!syscall(SYS_setgroups, count, rights->groups) && become(rights))) &&
	    !limit_capabilities(rights->capabilities))
		return 0;
	jit_rights__give_back(own);
	return -EPERM;
}

void jit_rights__give_back(const struct jit_own_rights *own)
{
	if (!own->borrowed)
		return;
	if (own->identity) {
		setfsuid(0);
		setfsgid(own->gid);
	}
	set_capabilities(own->capabilities);
	if (own->identity) /* without the right to set groups they were not lost either */
		(void)!syscall(SYS_setgroups, own->group_count, own->groups);
}
