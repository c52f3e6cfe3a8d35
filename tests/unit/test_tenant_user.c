/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose a process is, whatever it does about it. */
#include <sched.h>
#include <sys/prctl.h>

#include "unit.h"
#include "base/io.h"
#include "tenants/tenant_user.h"

#define NOBODY 65534

TEST(only_an_existing_process_has_a_user)
{
	assert_int_equal(tenant_user(getpid()), getuid());
	assert_int_equal(tenant_user(0x7fffffff), TENANT_UNKNOWN);
	assert_int_equal(tenant_user(0), TENANT_UNKNOWN);
}

/* Its directory in /proc belongs to root then, and its name is full of fields. */
TEST(a_process_cannot_disguise_its_user)
{
	uid_t user = getuid() ? getuid() : NOBODY;
	int ready[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (setresuid(user, user, user) || prctl(PR_SET_NAME, "x\nUid:\t0\t0") ||
		    prctl(PR_SET_DUMPABLE, 0) || write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(tenant_user(child), user);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(tenant_user(child), TENANT_UNKNOWN);
	close(ready[0]);
	close(ready[1]);
}

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -1 : write_full(fd, text, strlen(text));
}

/* In a namespace of his own he is 1000, and makes another one. 0, or there is no such thing here. */
static int enter_namespaces(uid_t user)
{
	char map[32];

	if (setresgid(user, user, user) || setresuid(user, user, user) ||
	    prctl(PR_SET_DUMPABLE, 1) || unshare(CLONE_NEWUSER))
		return -1;
	snprintf(map, sizeof(map), "1000 %u 1", user);
	return put("/proc/self/uid_map", map) || put("/proc/self/setgroups", "deny") ||
	       put("/proc/self/gid_map", map) || unshare(CLONE_NEWUSER);
}

/* A user's namespaces, one in the other, with other uids in them: it is he. */
TEST(a_user_namespace_does_not_change_the_user)
{
	uid_t user = getuid() ? getuid() : NOBODY;
	int ready[2];
	uint32_t reported;
	char byte = 0;
	bool apart;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		byte = enter_namespaces(user) != 0;
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	if (!byte) {
		assert_int_equal(tenant_user(child), user);
		assert_int_equal(tenant_user__of(child, 12345, &reported, &apart), 0);
		assert_int_equal(reported, user);
		assert_true(apart);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	if (byte)
		skip(); /* no user namespaces here */
}
