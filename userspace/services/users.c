/* SPDX-License-Identifier: BSD-2-Clause */
#include "services/users.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/map.h"
#include "base/parse.h"

struct user {
	uint32_t uid;
	char name[USER_NAME_SIZE];
};
DEFINE_MAP_BY(user_map, struct user, uint32_t, uid);

struct users {
	struct user_map users;
};

/* "name:password:uid:…". False: a line that is none, which is left out. */
static bool parse_line(char *line, struct user *user)
{
	char *rest = line, *name = strsep(&rest, ":"), *number;
	uint64_t uid;

	strsep(&rest, ":");
	number = strsep(&rest, ":");
	if (!rest || !*name || strlen(name) >= sizeof(user->name) || *name == '+' || *name == '-' ||
	    parse_u64(number, 0, UINT32_MAX, &uid))
		return false;
	*user = (struct user){.uid = (uint32_t)uid};
	memcpy(user->name, name, strlen(name) + 1);
	return true;
}

/* 0; -EINVAL: no regular file, -EFBIG, -ENOMEM, … */
static int read_text(const char *path, char **text)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	_cleanup_free_ char *data = NULL;
	struct stat st;
	ssize_t got;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size > USERS_FILE_MAX)
		return -EFBIG;
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		return -ENOMEM;
	got = pread_full(fd, data, (size_t)st.st_size, 0);
	if (got < 0)
		return (int)got;
	data[got] = '\0';
	*text = steal_ptr(data);
	return 0;
}

int users__new(const char *path, struct users **users)
{
	struct users *u = calloc(1, sizeof(*u));
	_cleanup_free_ char *text = NULL;
	struct user user;
	char *rest, *line;
	int err;

	if (!u)
		return -ENOMEM;
	err = read_text(path, &text);
	rest = text;
	err = err == -ENOMEM ? err : 0;
	while (!err && u->users.count < USERS_MAX && (line = strsep(&rest, "\n")))
		if (parse_line(line, &user) && !user_map__need(&u->users, &user, NULL))
			err = -ENOMEM;
	if (err) {
		users__free(u);
		return err;
	}
	*users = u;
	return 0;
}

int users_find(const char *path, const char *name, uid_t *uid)
{
	_cleanup_free_ char *text = NULL;
	int err = read_text(path, &text);
	char *rest = text, *line;
	struct user user;

	while ((line = strsep(&rest, "\n"))) {
		if (!parse_line(line, &user) || strcmp(user.name, name))
			continue;
		*uid = user.uid;
		return 0;
	}
	return err == -ENOMEM ? err : -ENOENT;
}

void users__free(struct users *u)
{
	if (u)
		user_map__fini(&u->users);
	free(u);
}

void users__name(const struct users *u, uid_t uid, char name[USER_NAME_SIZE])
{
	const struct user *user = user_map__find(&u->users, uid);

	if (user)
		memcpy(name, user->name, sizeof(user->name));
	else
		snprintf(name, USER_NAME_SIZE, "%u", uid);
}
