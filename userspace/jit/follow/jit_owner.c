/* SPDX-License-Identifier: BSD-2-Clause */
/* The identity of a process, read from /proc. */
#include "jit/follow/jit_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/proc_task.h"
#include "jit/follow/jit_find.h"
#include "tenants/tenant_user.h"

#define STATUS_MAX     (64u * 1024)
#define STATUS_HEAD    2048	   /* the part with the users */
#define START_GRAIN_NS 10000000ull /* more than two conversions of one start time differ by */

/* ---- /proc/PID/status ------------------------------------------------------------------------ */

/* The text after "\nKEY:", or NULL. */
static const char *find_field(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? at + strlen(key) : NULL;
}

/* The next number of a line. False: there is none. */
static bool next_number(const char **line, unsigned int *number)
{
	int size;

	if (sscanf(*line, "%*[ \t]%u%n", number, &size) != 1)
		return false;
	*line += size;
	return true;
}

static pid_t last_number(const char *line)
{
	unsigned int number = 0;

	while (next_number(&line, &number))
		;
	return (pid_t)number;
}

static void read_groups(const char *line, struct jit_rights *rights)
{
	while (line && rights->group_count < JIT_GROUPS_MAX &&
	       next_number(&line, &rights->groups[rights->group_count]))
		rights->group_count++;
}

static bool parse_status(const char *text, struct jit_owner *owner)
{
	const char *uids = find_field(text, "\nUid:"), *gids = find_field(text, "\nGid:");
	const char *pids = find_field(text, "\nNSpid:"), *caps = find_field(text, "\nCapEff:");
	const char *caught = find_field(text, "\nSigCgt:");
	gid_t gid;

	if (!uids || !gids || !next_number(&uids, &owner->uid) ||
	    !next_number(&uids, &owner->euid) || !next_number(&gids, &gid) ||
	    !next_number(&gids, &owner->egid))
		return false;
	owner->has_quit_handler = caught && strtoull(caught, NULL, 16) >> (SIGQUIT - 1) & 1;
	owner->own_pid = pids ? last_number(pids) : owner->pid;
	owner->rights = (struct jit_rights){.uid = owner->uid, .gid = gid};
	if (caps)
		owner->rights.capabilities = strtoull(caps, NULL, 16);
	read_groups(find_field(text, "\nGroups:"), &owner->rights);
	return owner->own_pid > 0;
}

/* ---- its user namespace ---------------------------------------------------------------------- */

static int read_namespace(struct jit_owner *owner)
{
	int err = tenant_user__of(owner->pid, owner->uid, &owner->user, &owner->apart);

	if (owner->apart)
		owner->rights.capabilities = 0;
	return err;
}

int jit_owner__read(pid_t pid, struct jit_owner *owner)
{
	_cleanup_free_ char *text = NULL;
	struct proc_identity identity;
	struct jit_owner found = {.pid = pid};
	size_t size;
	int err = read_file_at(AT_FDCWD, proc_path(pid, "status").text, STATUS_MAX, &text, &size);

	if (err)
		return err;
	if (!parse_status(text, &found) || proc_process_state(pid, &identity) != PROC_ALIVE)
		return -ESRCH;
	found.start = identity.start_time;
	found.user = found.uid;
	err = read_namespace(&found);
	if (!err)
		*owner = found;
	return err;
}

int jit_owner__refresh(struct jit_owner *owner)
{
	_cleanup_close_ int fd = open(proc_path(owner->pid, "status").text, O_RDONLY | O_CLOEXEC);
	char text[STATUS_HEAD + 1];
	ssize_t size = fd < 0 ? -1 : read(fd, text, STATUS_HEAD);
	uid_t uid, euid;
	const char *uids;

	if (size < 0)
		return -ESRCH;
	text[size] = 0;
	uids = find_field(text, "\nUid:");
	if (uids && next_number(&uids, &uid) && next_number(&uids, &euid) && uid == owner->uid &&
	    euid == owner->euid)
		return 0;
	return jit_owner__read(owner->pid, owner);
}

bool jit_owner__is_process(const struct jit_owner *a, const struct jit_owner *b)
{
	uint64_t apart = a->start > b->start ? a->start - b->start : b->start - a->start;

	return a->pid == b->pid && apart < START_GRAIN_NS;
}

bool jit_owner__is_same(const struct jit_owner *a, const struct jit_owner *b)
{
	return jit_owner__is_process(a, b) && a->uid == b->uid && a->euid == b->euid &&
	       a->apart == b->apart && a->user == b->user;
}

/* ---- rights ---------------------------------------------------------------------------------- */

/*
 * Raw system calls, because libc's functions would change all threads. Only what matters to open a
 * file is changed: fsuid, fsgid, groups, capabilities over files. CAP_SYS_PTRACE stays, which the
 * process's root needs.
 */

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

/* Drops capabilities over files that the process does not have. */
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

/* setfsuid() and setfsgid() report no errors; an invalid second call returns the present value. */
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
	if (own->identity) /* if it fails, they had not been changed either */
		(void)!syscall(SYS_setgroups, own->group_count, own->groups);
}
