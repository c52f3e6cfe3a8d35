/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order matters: limits while /proc can still be read, then steps that need a privilege
 * (bounding set, root directory, user), then the capabilities. If a step fails, the others follow
 * nevertheless.
 */
#include "tenants/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/minmax.h"

/* Uids that no user has (unused in systemd's table); each process gets its own. */
#define UID_BASE	0x7f000000u
#define UID_NOBODY	65534u

#define BIT(capability) (1ull << (capability))

static int first_error(int err, int next)
{
	return err ? err : next;
}

/* ---- limits ---------------------------------------------------------------------------------- */

static int set_limit(int resource, uint64_t soft, uint64_t hard)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return -errno;
	limit.rlim_cur = min_u64(soft, limit.rlim_max);
	limit.rlim_max = min_u64(hard, limit.rlim_max);
	return setrlimit(resource, &limit) ? -errno : 0;
}

/* Address space that the process has already, bytes: the limit is on top of it. */
static uint64_t address_space(void)
{
	char line[128];

	if (read_line("/proc/self/statm", line, sizeof(line)))
		return 0;
	return strtoull(line, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

int confine__lower_memory(uint64_t by)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit))
		return -errno;
	limit.rlim_cur -= min_u64(by, limit.rlim_cur);
	limit.rlim_max = limit.rlim_cur;
	return setrlimit(RLIMIT_AS, &limit) ? -errno : 0;
}

static int limit_memory(uint64_t bytes)
{
	uint64_t space = saturating_add_u64(address_space(), bytes);

	/* RLIMIT_AS does not limit memory files */
	return first_error(set_limit(RLIMIT_AS, space, space),
			   set_limit(RLIMIT_FSIZE, bytes, bytes));
}

static int limit_resources(const struct helper_class *class, const struct confine_options *options)
{
	unsigned int seconds = options->cpu_seconds ? options->cpu_seconds : class->cpu_seconds;
	int err = set_limit(RLIMIT_CORE, 0, 0);

	if (class->memory)
		err = first_error(err, limit_memory(options->memory ?: class->memory));
	if (class->cpu_seconds)
		err = first_error(err, set_limit(RLIMIT_CPU, seconds, seconds + 1));
	if (class->files)
		err = first_error(err, set_limit(RLIMIT_NOFILE, class->files, class->files));
	if (class->user == HELPER_USER_OWN)
		err = first_error(err, set_limit(RLIMIT_MEMLOCK, 0, 0));
	return err;
}

/* Needs /proc, so call it before enter_empty_root(). */
static void offer_to_be_killed(void)
{
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		write_full(fd, "1000", 4);
}

/* ---- root and user --------------------------------------------------------------------------- */

/* An almost empty directory: it only lists descriptors that are open anyway. */
static int enter_empty_root(void)
{
	if (chroot("/proc/self/fdinfo"))
		return 0; /* not root */
	return chdir("/") ? -errno : 0;
}

static void become_own_user(void)
{
	uid_t own = UID_BASE + (uid_t)getpid();

	/* a user namespace may not map these uids: then the user stays, without capabilities */
	if (setgroups(0, NULL) ||
	    (setresgid(own, own, own) && setresgid(UID_NOBODY, UID_NOBODY, UID_NOBODY)))
		return;
	if (setresuid(own, own, own) && setresuid(UID_NOBODY, UID_NOBODY, UID_NOBODY))
		return;
}

static int become_user(uid_t uid, gid_t gid)
{
	return setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid) ? -errno
											  : 0;
}

static int change_user(const struct helper_class *class, const struct confine_options *options)
{
	switch (class->user) {
	case HELPER_USER_OWN:
		if (geteuid() == 0)
			become_own_user();
		return 0;
	case HELPER_USER_GIVEN:
		return become_user(options->uid, options->gid);
	default:
		return 0;
	}
}

/* ---- capabilities ---------------------------------------------------------------------------- */

/* Both fail if there is no privilege to drop. */
static void drop_bounding_set(void)
{
	for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
		prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

int capabilities__keep(uint64_t wanted)
{
	struct __user_cap_header_struct version = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};

	if (syscall(SYS_capget, &version, data))
		return -errno;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(wanted >> (32 * i));
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &version, data) ? -errno : 0;
}

static bool has_capability(int number)
{
	struct __user_cap_header_struct version = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};

	return !syscall(SYS_capget, &version, data) &&
	       data[CAP_TO_INDEX(number)].permitted & CAP_TO_MASK(number);
}

int confine(const struct helper_class *class, const struct confine_options *options)
{
	uint64_t kept = class->capabilities;
	int err;

	if (class->first_to_go)
		offer_to_be_killed();
	err = limit_resources(class, options);
	drop_bounding_set();
	if (class->empty_root)
		err = first_error(err, enter_empty_root());
	err = first_error(err, change_user(class, options));
	err = first_error(err, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0);
	if (class->user == HELPER_USER_OWN)
		set_limit(RLIMIT_NPROC, 0, 0);
	/* /proc/PID/map_files needs either of them */
	if (has_capability(CAP_CHECKPOINT_RESTORE))
		kept &= ~BIT(CAP_SYS_ADMIN);
	return first_error(err, capabilities__keep(kept));
}
