/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole reads and writes, and result files.
 *
 * A result file is written under a temporary name in the directory of its target and renamed at
 * the end. Everything is done relative to one descriptor of that directory, so it can be cleaned up
 * even when the directory was moved away meanwhile; its path is compared before the rename, since a
 * result that is not where the user was told to look is none.
 *
 * Root writes into directories that others can write to (-o /tmp/x), so names are not trusted:
 * whether a symbolic link may be followed is the kernel's decision (stat and open obey
 * fs.protected_symlinks, realpath does not), and what the resolved name leads to must be the very
 * file that the kernel found.
 *
 * The stream is a cookie over the descriptor, because stdio forgets errno: the first error of any
 * write is kept and told by commit.
 */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"

#define READ_STEP      4096
#define STREAM_SIZE    (64 * 1024)
#define TEMP_SUFFIX    ".sysprof-"
#define TEMP_NAME_PART 100 /* of the target's name: leaves room within any NAME_MAX */
#define TEMP_RANDOM    8
#define MAX_TEMP_TRIES 100

int write_full(int fd, const void *data, size_t size)
{
	const char *p = data;

	while (size) {
		ssize_t written = write(fd, p, size);

		if (written < 0 && errno == EAGAIN) { /* a pipe that somebody made non-blocking */
			struct pollfd wait = {.fd = fd, .events = POLLOUT};

			if (poll(&wait, 1, -1) < 0 && errno != EINTR)
				return -errno;
			continue;
		}
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		p += written;
		size -= written;
	}
	return 0;
}

ssize_t pread_full(int fd, void *data, size_t size, uint64_t offset)
{
	size_t done = 0;

	if (offset > INT64_MAX || size > INT64_MAX - offset)
		return -EOVERFLOW;
	while (done < size) {
		ssize_t got = pread(fd, (char *)data + done, size - done, offset + done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		done += got;
	}
	return done;
}

/* Like pread_full, from the descriptor's position on. */
static ssize_t read_full(int fd, void *data, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = read(fd, (char *)data + done, size - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		done += got;
	}
	return done;
}

int read_file_at(int dirfd, const char *path, size_t limit, char **data, size_t *size)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	_cleanup_free_ char *text = NULL;
	size_t used = 0, capacity = 0;

	if (fd < 0)
		return -errno;
	for (;;) {
		size_t next = capacity ? capacity * 2 : READ_STEP;
		char *grown;
		ssize_t got;

		if (limit < SIZE_MAX - 2 && next > limit + 2)
			next = limit + 2; /* one byte more than allowed, and the NUL */
		grown = realloc(text, next);
		if (!grown)
			return -ENOMEM;
		text = grown;
		capacity = next;
		got = read_full(fd, text + used, capacity - 1 - used);
		if (got < 0)
			return got;
		used += got;
		if (used > limit)
			return -EFBIG;
		if (used < capacity - 1)
			break;
	}
	text[used] = '\0';
	*data = steal_ptr(text);
	*size = used;
	return 0;
}

int read_line(const char *path, char *buffer, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	_cleanup_free_ char *text = NULL;
	const char *newline;
	ssize_t got;

	if (fd < 0)
		return -errno;
	if (!size)
		return -EFBIG;
	text = malloc(size);
	if (!text)
		return -ENOMEM;
	got = read_full(fd, text, size);
	if (got < 0)
		return got;
	newline = memchr(text, '\n', got);
	if (newline)
		got = newline - text;
	if ((size_t)got == size)
		return -EFBIG;
	memcpy(buffer, text, got);
	buffer[got] = '\0';
	return 0;
}

int give_to_sudo_user(int fd)
{
	const char *uid_text = getenv("SUDO_UID"), *gid_text = getenv("SUDO_GID");
	uint64_t uid, gid;
	int err;

	if (!uid_text || !gid_text || geteuid() != 0)
		return 0;
	err = parse_u64(uid_text, 0, UINT32_MAX - 1, &uid); /* -1 would mean "leave it" */
	if (!err)
		err = parse_u64(gid_text, 0, UINT32_MAX - 1, &gid);
	if (err)
		return err;
	return fchown(fd, uid, gid) ? -errno : 0;
}

struct output_file {
	FILE *stream;
	int fd;
	int error; /* the first that a write met: negative errno */
	/* of a file that is renamed at the end; else temp_name is NULL */
	int dir_fd;
	char *dir_path, *name, *temp_name;
};

static ssize_t stream_write(void *cookie, const char *data, size_t size)
{
	struct output_file *file = cookie;

	if (!file->error)
		file->error = write_full(file->fd, data, size);
	if (!file->error)
		return size;
	errno = -file->error;
	return 0; /* how a cookie's write says that it failed */
}

static int make_stream(struct output_file *file)
{
	const cookie_io_functions_t functions = {.write = stream_write};

	file->stream = fopencookie(file, "w", functions);
	if (!file->stream)
		return -ENOMEM;
	setvbuf(file->stream, NULL, _IOFBF, STREAM_SIZE);
	return 0;
}

static int open_stdout(struct output_file *file)
{
	if (fflush(stdout))
		return -errno;
	file->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return file->fd < 0 ? -errno : 0;
}

/* A pipe, a terminal, /dev/null. */
static int open_special(struct output_file *file, const char *path)
{
	file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return file->fd < 0 ? -errno : 0;
}

/* Split a path into its directory, opened, and the last component. */
static int open_directory(struct output_file *file, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	if (!*name)
		return *path ? -EISDIR : -ENOENT;
	file->name = strdup(name);
	if (!slash)
		file->dir_path = strdup(".");
	else
		file->dir_path = strndup(path, slash == path ? 1 : slash - path);
	if (!file->name || !file->dir_path)
		return -ENOMEM;
	file->dir_fd = open(file->dir_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return file->dir_fd < 0 ? -errno : 0;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The directory and name behind all links of a path that the kernel resolved to `found`. */
static int open_real_directory(struct output_file *file, const char *path, const struct stat *found)
{
	_cleanup_free_ char *real = realpath(path, NULL);
	struct stat st;
	int err;

	if (!real)
		return -errno;
	err = open_directory(file, real);
	if (err)
		return err;
	if (fstatat(file->dir_fd, file->name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	return same_file(&st, found) ? 0 : -ESTALE; /* a link changed under our hands */
}

/*
 * A symbolic link whose target does not exist yet. The kernel creates that, as it would for anybody
 * who wrote to the link, which shows where it is; it is removed until there is something in it.
 */
static int open_dangling(struct output_file *file, const char *path)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
	struct stat st;
	int err;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	err = open_real_directory(file, path, &st);
	if (err)
		return err;
	if (st.st_size) /* somebody else was quicker: a file to replace, like any other */
		return 0;
	return unlinkat(file->dir_fd, file->name, 0) ? -errno : 0;
}

/* A new file beside the target, for its owner alone: ".NAME.sysprof-XXXXXXXX". */
static int create_temp(struct output_file *file)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
	unsigned char random[TEMP_RANDOM];
	char text[TEMP_RANDOM + 1] = "";

	for (int i = 0; i < MAX_TEMP_TRIES; i++) {
		_cleanup_free_ char *name = NULL;

		if (getrandom(random, sizeof(random), 0) != sizeof(random))
			return -errno;
		for (int j = 0; j < TEMP_RANDOM; j++)
			text[j] = letters[random[j] % 32];
		if (asprintf(&name, ".%.*s" TEMP_SUFFIX "%s", TEMP_NAME_PART, file->name, text) <
		    0) {
			name = NULL;
			return -ENOMEM;
		}
		file->fd = openat(file->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
				  0600);
		if (file->fd >= 0) {
			file->temp_name = steal_ptr(name);
			return fchmod(file->fd, 0600) ? -errno : 0; /* whatever the umask */
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static int open_target(struct output_file *file, const char *path)
{
	struct stat st;
	int err;

	if (!strcmp(path, "-"))
		return open_stdout(file);
	if (!stat(path, &st)) {
		if (S_ISDIR(st.st_mode))
			return -EISDIR;
		if (!S_ISREG(st.st_mode))
			return open_special(file, path);
		err = open_real_directory(file, path, &st);
	} else if (errno != ENOENT) {
		return -errno;
	} else if (!lstat(path, &st) && S_ISLNK(st.st_mode)) {
		err = open_dangling(file, path);
	} else {
		err = open_directory(file, path);
	}
	if (!err && strlen(file->name) > NAME_MAX)
		err = -ENAMETOOLONG; /* or only the rename would tell */
	if (err)
		return err;
	err = create_temp(file);
	if (!err)
		give_to_sudo_user(file->fd); /* at worst it stays root's, which loses nothing */
	return err;
}

int output_file__open(const char *path, struct output_file **file)
{
	struct output_file *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->fd = f->dir_fd = -1;
	err = open_target(f, path);
	if (!err)
		err = make_stream(f);
	if (err) {
		output_file__abort(f);
		return err;
	}
	*file = f;
	return 0;
}

FILE *output_file__stream(struct output_file *file)
{
	return file->stream;
}

void output_file__abort(struct output_file *file)
{
	if (!file)
		return;
	if (!file->error)
		file->error = -ECANCELED; /* what stdio still holds is not written any more */
	if (file->stream)
		fclose(file->stream);
	if (file->temp_name)
		unlinkat(file->dir_fd, file->temp_name, 0);
	if (file->fd >= 0)
		close(file->fd);
	if (file->dir_fd >= 0)
		close(file->dir_fd);
	free(file->dir_path);
	free(file->name);
	free(file->temp_name);
	free(file);
}

static int flush_stream(struct output_file *file)
{
	int failed = fflush(file->stream);

	if (!failed && !ferror(file->stream))
		return 0;
	return file->error ? file->error : -EIO;
}

/* close() as well can be the one to tell (NFS, quota). */
static int close_data(struct output_file *file)
{
	return close(steal_fd(file->fd)) && errno != EINTR ? -errno : 0;
}

/* Is the directory still what the user was told? */
static int check_directory(const struct output_file *file)
{
	struct stat now, then;

	if (stat(file->dir_path, &now) || fstat(file->dir_fd, &then))
		return -errno;
	return same_file(&now, &then) ? 0 : -ENOENT;
}

/* A published file may have been removed, moved or replaced while it was written. */
static int check_published(const struct output_file *file)
{
	struct stat now, ours;
	int err = check_directory(file);

	if (err)
		return err;
	if (fstatat(file->dir_fd, file->name, &now, AT_SYMLINK_NOFOLLOW) || fstat(file->fd, &ours))
		return -errno;
	return same_file(&now, &ours) ? 0 : -ENOENT;
}

static int rename_into_place(struct output_file *file)
{
	int err = check_directory(file);

	if (err)
		return err;
	if (renameat(file->dir_fd, file->temp_name, file->dir_fd, file->name))
		return -errno;
	free(steal_ptr(file->temp_name)); /* nothing is left to remove */
	return 0;
}

int output_file__error(const struct output_file *file)
{
	return file->error;
}

int output_file__publish(struct output_file *file)
{
	int err = flush_stream(file);

	return err || !file->temp_name ? err : rename_into_place(file);
}

int output_file__temporary(const struct output_file *file, char *path, size_t size)
{
	int n;

	if (!file->temp_name)
		return -ENOENT;
	n = snprintf(path, size, "%s/%s", file->dir_path, file->temp_name);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int output_file__fd(const struct output_file *file)
{
	return file->fd;
}

int output_file__commit(struct output_file *file)
{
	int err = flush_stream(file);

	if (!err && file->dir_path && !file->temp_name)
		err = check_published(file);
	if (!err && file->temp_name && fsync(file->fd))
		err = -errno;
	if (!err)
		err = close_data(file);
	if (!err && file->temp_name)
		err = rename_into_place(file);
	output_file__abort(file);
	return err;
}
