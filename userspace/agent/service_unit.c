/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/service_unit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/parse.h"

#define NAME	  "starts"
#define KEPT_MOST 16
#define SIZE_MOST 4096

/* ---- messages -------------------------------------------------------------------------------- */

void notify_manager(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = path ? strlen(path) : 0;
	_cleanup_close_ int fd = -1;

	if (!length || length >= sizeof(address.sun_path) || (*path != '/' && *path != '@'))
		return;
	memcpy(address.sun_path, path, length);
	if (*path == '@') /* the abstract namespace */
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
}

uint64_t notify_interval(void)
{
	const char *period = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t usec, meant;

	if (!period || parse_u64(period, 1, UINT64_MAX / 1000, &usec))
		return 0;
	if (pid && (parse_u64(pid, 1, INT32_MAX, &meant) || meant != (uint64_t)getpid()))
		return 0;
	return usec * 1000 / 2;
}

/* ---- starts ---------------------------------------------------------------------------------- */

struct starts {
	uint64_t times[KEPT_MOST]; /* of the last ten minutes, in order */
	size_t count;
};

static int open_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* A clock that was set back has starts that are still to come: they are left. */
static void parse(const char *text, uint64_t now, struct starts *starts)
{
	char *end;

	for (; starts->count < KEPT_MOST; text = end + 1) {
		uint64_t time = strtoull(text, &end, 10);

		if (end == text || *end != '\n')
			return;
		if (time <= now && now - time < START_LOG_NS)
			starts->times[starts->count++] = time;
	}
}

static int write_starts(int directory, const struct starts *starts)
{
	_cleanup_close_ int fd = openat(directory, NAME ".new",
					O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
					0600);
	char text[SIZE_MOST];
	size_t size = 0;
	int err;

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < starts->count; i++)
		size += snprintf(text + size, sizeof(text) - size, "%" PRIu64 "\n",
				 starts->times[i]);
	err = write_full(fd, text, size);
	if (!err && (fsync(fd) || renameat(directory, NAME ".new", directory, NAME)))
		err = -errno;
	return err;
}

int start_log__begin(const char *directory, uint64_t now, bool *safe)
{
	_cleanup_close_ int fd = open_directory(directory);
	_cleanup_free_ char *text = NULL;
	struct starts starts = {};
	size_t size;
	int err;

	*safe = false;
	if (fd < 0)
		return fd;
	if (!read_file_at(fd, NAME, SIZE_MOST, &text, &size))
		parse(text, now, &starts);
	*safe = starts.count >= START_LOG_FAILURES;
	if (starts.count == KEPT_MOST)
		memmove(starts.times, starts.times + 1, --starts.count * sizeof(*starts.times));
	starts.times[starts.count++] = now;
	err = write_starts(fd, &starts);
	return err;
}

int start_log__end(const char *directory)
{
	_cleanup_close_ int fd = open_directory(directory);

	if (fd < 0)
		return fd;
	return unlinkat(fd, NAME, 0) && errno != ENOENT ? -errno : 0;
}
