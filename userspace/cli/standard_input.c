/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/standard_input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/commands.h"
#include "formats/in/import.h"
#include "stream/recording_file.h"
#include "window/replay.h"

#define COPY_STEP (1u << 20)
#define COPY_MAX  (UINT64_C(64) << 30) /* bytes of disk */

bool is_standard_input(const char *path)
{
	return path[0] == '-' && (!path[1] || path[1] == '@');
}

int standard_input__check(const struct command *command, char *const *words, size_t count)
{
	size_t named = 0;

	for (size_t i = 0; i < count; i++)
		named += is_standard_input(words[i]);
	if (named > 1)
		return usage_error(command, "- is given twice: standard input can be read once");
	if (named && isatty(STDIN_FILENO))
		return usage_error(command, "standard input is a terminal: pipe a profile to it");
	return 0;
}

static int make_file(const char *directory)
{
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
	_cleanup_free_ char *path = NULL;

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	if (asprintf(&path, "%s/sysprof-XXXXXX", directory) < 0) {
		path = NULL;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

/* Where the copy is, and how large it may become. */
struct room {
	const char *directory;
	uint64_t most; /* bytes */
};

static int make_room(struct room *room)
{
	const char *wanted = getenv("TMPDIR");
	int fd;

	*room = (struct room){wanted && *wanted ? wanted : "/tmp", COPY_MAX};
	fd = make_file(room->directory);
	if (fd >= 0)
		return fd;
	*room = (struct room){"memory", IMPORT_SIZE_MAX};
	fd = memfd_create("sysprof-input", MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Bytes; 0: the end; or negative errno. */
static ssize_t read_some(char *buffer, size_t size)
{
	struct pollfd wait = {.fd = STDIN_FILENO, .events = POLLIN};
	ssize_t got;

	/* a pipe that another process made non-blocking */
	while ((got = read(STDIN_FILENO, buffer, size)) < 0 && (errno == EINTR || errno == EAGAIN))
		if (errno == EAGAIN && poll(&wait, 1, -1) < 0 && errno != EINTR)
			break;
	return got < 0 ? -errno : got;
}

/* Only recordings and perf.data are read piece by piece. */
static uint64_t limit_of(int fd, const struct room *room)
{
	return recording_probe(fd) || perf_data_probe(fd) ? room->most : IMPORT_SIZE_MAX;
}

static int copy_all(int to, const struct room *room, uint64_t *size, struct failure *failure)
{
	_cleanup_free_ char *buffer = malloc(COPY_STEP);
	ssize_t got;
	int err;

	if (!buffer)
		return fail(failure, -ENOMEM, "cannot read standard input: out of memory");
	while ((got = read_some(buffer, COPY_STEP)) > 0) {
		*size += (uint64_t)got;
		if (*size > IMPORT_SIZE_MAX && *size > limit_of(to, room))
			return fail(failure, -E2BIG,
				    "cannot read standard input: it is larger than %llu GiB",
				    (unsigned long long)(limit_of(to, room) >> 30));
		err = write_full(to, buffer, (size_t)got);
		if (err) {
			fail(failure, err, "cannot copy standard input to %s: %s", room->directory,
			     strerror(-err));
			return fail_remedy(failure, err, "set TMPDIR to a directory with room");
		}
	}
	return got < 0 ? fail(failure, (int)got, "cannot read standard input: %s",
			      strerror((int)-got))
		       : 0;
}

/* A file that is redirected, from its beginning. */
static bool is_whole_file(const struct stat *st)
{
	return S_ISREG(st->st_mode) && !lseek(STDIN_FILENO, 0, SEEK_CUR);
}

int standard_input__open(uint64_t *size, struct failure *failure)
{
	_cleanup_close_ int fd = -1;
	struct room room;
	struct stat st;
	int err;

	*size = 0;
	if (fstat(STDIN_FILENO, &st)) /* closed: a new file would take its place */
		return fail(failure, -errno, "cannot read standard input: %s", strerror(errno));
	if (is_whole_file(&st)) {
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		*size = (uint64_t)st.st_size;
		return fd < 0 ? fail(failure, -errno, "cannot read standard input: %s",
				     strerror(errno))
			      : steal_fd(fd);
	}
	fd = make_room(&room);
	if (fd < 0)
		return fail(failure, fd, "cannot make room for standard input: %s", strerror(-fd));
	err = copy_all(fd, &room, size, failure);
	return err ? err : steal_fd(fd);
}
