/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sudo_user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "helpers/confine.h"

struct sudo_user {
	uid_t uid;
	gid_t gid;
};

/* 1: there is one; 0: there is none to become; or negative errno. */
static int find_sudo_user(struct sudo_user *user)
{
	const char *uid_text = getenv("SUDO_UID"), *gid_text = getenv("SUDO_GID");
	uint64_t uid, gid;

	if (geteuid() != 0 || !uid_text)
		return 0;
	if (!gid_text || parse_u64(uid_text, 0, UINT32_MAX - 1, &uid) ||
	    parse_u64(gid_text, 0, UINT32_MAX - 1, &gid))
		return -EINVAL;
	*user = (struct sudo_user){uid, gid};
	return uid != 0;
}

/* What a program of the user expects, and sudo has replaced or removed. */
static void set_environment(uid_t uid, const struct passwd *account)
{
	char runtime[64], bus[96];
	struct stat st;

	if (account) {
		setenv("HOME", account->pw_dir, 1);
		setenv("USER", account->pw_name, 1);
		setenv("LOGNAME", account->pw_name, 1);
	} else {
		setenv("HOME", "/", 1);
	}
	/* of root's session, if they are set at all */
	unsetenv("XDG_CACHE_HOME");
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("XDG_DATA_HOME");
	unsetenv("XDG_RUNTIME_DIR");
	unsetenv("DBUS_SESSION_BUS_ADDRESS");
	snprintf(runtime, sizeof(runtime), "/run/user/%u", uid);
	if (lstat(runtime, &st) || !S_ISDIR(st.st_mode) || st.st_uid != uid)
		return;
	setenv("XDG_RUNTIME_DIR", runtime, 1);
	snprintf(bus, sizeof(bus), "unix:path=%s/bus", runtime);
	setenv("DBUS_SESSION_BUS_ADDRESS", bus, 1);
}

static int become(const struct sudo_user *user)
{
	const struct passwd *account = getpwuid(user->uid);
	int err = account ? initgroups(account->pw_name, user->gid) : setgroups(1, &user->gid);

	if (err || setresgid(user->gid, user->gid, user->gid) ||
	    setresuid(user->uid, user->uid, user->uid))
		return -errno;
	set_environment(user->uid, account);
	return 0;
}

int drop_privileges(struct failure *failure)
{
	struct sudo_user user;
	int found = find_sudo_user(&user);
	int err = found < 0 ? found : 0;

	if (err)
		return fail(failure, err,
			    "cannot become the user who called sudo: SUDO_UID or "
			    "SUDO_GID is not a number");
	if (found)
		err = become(&user);
	if (!err)
		err = capabilities__keep(0);
	if (!err && found && (!setuid(0) || geteuid() != user.uid))
		err = -EPERM;
	return err ? fail(failure, err, "cannot give up root: %s", strerror(-err)) : 0;
}
