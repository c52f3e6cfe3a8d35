/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file is created under an unpredictable name, with O_EXCL, and renamed, which replaces a link instead of
 * following it. A directory cannot be replaced: that is an error. Everything is relative to the descriptor of the
 * directory that was decided on (output_place.c); its path is compared before the rename, because the result must be
 * where the messages say it is.
 *
 * The stream is a cookie over the descriptor, because stdio forgets errno: the first error of any write is kept and
 * returned by finish.
 */
#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/output_private.h"
#include "base/parse.h"

#define STREAM_SIZE    (64 * 1024)
#define TEMP_SUFFIX    ".sysprof-"
#define TEMP_NAME_PART 100 /* of the target's name: leaves room within any NAME_MAX */
#define TEMP_RANDOM    8
#define MAX_TEMP_TRIES 100

int find_sudo_user(uid_t *uid, gid_t *gid)
{
	const char *uid_text = getenv("SUDO_UID"), *gid_text = getenv("SUDO_GID");
	uint64_t u, g;
	int err;

	if (!uid_text || geteuid() != 0)
		return 0;
	err = gid_text ? parse_u64(uid_text, 0, UINT32_MAX - 1, &u) /* -1 would mean "leave it" */
		       : -EINVAL;
	if (!err)
		err = parse_u64(gid_text, 0, UINT32_MAX - 1, &g);
	if (err)
		return err;
	*uid = u;
	*gid = g;
	return 1;
}

int give_to_sudo_user(int fd)
{
	uid_t uid;
	gid_t gid;
	int found = find_sudo_user(&uid, &gid);

	if (found <= 0)
		return found;
	return fchown(fd, uid, gid) ? -errno : 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

struct output_file {
	FILE *stream;
	int fd;
	int error; /* the first that a write met: negative errno */
	/* of a file that is renamed at the end */
	struct directory directory;
	char *name, *temp_name; /* temp_name NULL: it is in place, or nothing is renamed */
	struct stat own;
	bool moved; /* a directory had taken its name */
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

/* It may have become something else since it was looked at. */
static int open_special(struct output_file *file, const struct output_place *p)
{
	int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
	struct stat st;

	if (p->kind == PLACE_SPECIAL)
		flags |= O_NOFOLLOW;
	file->fd = openat(p->real.fd, p->name, flags);
	if (file->fd < 0 || fstat(file->fd, &st))
		return -errno;
	if (S_ISREG(st.st_mode) || (p->kind == PLACE_SPECIAL && is_strangers(&p->real, &st)))
		return -ESTALE;
	return 0;
}

/* An unpredictable part of a name. */
static int random_letters(char text[TEMP_RANDOM + 1])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
	unsigned char random[TEMP_RANDOM];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -errno;
	for (int i = 0; i < TEMP_RANDOM; i++)
		text[i] = letters[random[i] % 32];
	text[TEMP_RANDOM] = '\0';
	return 0;
}

/* A new file beside the target, for its owner alone: ".NAME.sysprof-XXXXXXXX". */
static int create_temp(struct output_file *file)
{
	char text[TEMP_RANDOM + 1];

	for (int i = 0; i < MAX_TEMP_TRIES; i++) {
		_cleanup_free_ char *name = NULL;
		int err = random_letters(text);

		if (err)
			return err;
		if (asprintf(&name, ".%.*s" TEMP_SUFFIX "%s", TEMP_NAME_PART, file->name, text) <
		    0) {
			name = NULL;
			return -ENOMEM;
		}
		file->fd = openat(file->directory.fd, name,
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (file->fd >= 0) {
			file->temp_name = steal_ptr(name);
			return fchmod(file->fd, 0600) ? -errno : 0; /* whatever the umask */
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static int open_regular(struct output_file *file, const struct output_place *p)
{
	int err = directory__copy(&p->real, &file->directory);

	if (err)
		return err;
	file->name = strdup(p->name);
	if (!file->name)
		return -ENOMEM;
	err = create_temp(file);
	if (err)
		return err;
	give_to_sudo_user(file->fd); /* at worst it stays root's, which loses nothing */
	return 0;
}

static int open_place(struct output_file *file, const struct output_place *p)
{
	switch (p->kind) {
	case PLACE_STDOUT:
		return open_stdout(file);
	case PLACE_SPECIAL:
	case PLACE_MAGIC:
		return open_special(file, p);
	default:
		return open_regular(file, p);
	}
}

int output_file__open_at(const struct output_place *place, struct output_file **file)
{
	struct output_file *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->fd = f->directory.fd = -1;
	err = open_place(f, place) ?: make_stream(f);
	if (err) {
		output_file__abort(f);
		return err;
	}
	*file = f;
	return 0;
}

int output_file__open(const char *path, struct output_file **file)
{
	struct output_place *place;
	int err = output_place__open(path, OUTPUT_GIVEN, &place);

	if (err)
		return err;
	err = output_file__open_at(place, file);
	output_place__free(place);
	return err;
}

/* ---- writing --------------------------------------------------------------------------------- */

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
		unlinkat(file->directory.fd, file->temp_name, 0);
	if (file->fd >= 0)
		close(file->fd);
	directory__close(&file->directory);
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

/* close() can fail as well (NFS, quota). */
static int close_data(struct output_file *file)
{
	return close(steal_fd(file->fd)) && errno != EINTR ? -errno : 0;
}

/* Is the directory still the one that messages name? */
static int check_directory(const struct output_file *file)
{
	struct stat now, then;

	if (stat(file->directory.path, &now) || fstat(file->directory.fd, &then))
		return -errno;
	return same_file(&now, &then) ? 0 : -ENOENT;
}

/* Has `name` still the file that we write? It may have been removed, moved or replaced. */
static int check_name(struct output_file *file, const char *name)
{
	struct stat now;
	int err = check_directory(file);

	if (err)
		return err;
	if (fstatat(file->directory.fd, name, &now, AT_SYMLINK_NOFOLLOW) ||
	    fstat(file->fd, &file->own))
		return -errno;
	return same_file(&now, &file->own) ? 0 : -ENOENT;
}

static int rename_into_place(struct output_file *file)
{
	if (renameat(file->directory.fd, file->temp_name, file->directory.fd, file->name))
		return -errno;
	free(steal_ptr(file->temp_name)); /* nothing is left to remove */
	return 0;
}

int output_file__error(const struct output_file *file)
{
	return file->error;
}

int output_file__temporary(const struct output_file *file, char *path, size_t size)
{
	int n;

	if (!file->temp_name)
		return -ENOENT;
	n = snprintf(path, size, "%s/%s", file->directory.path, file->temp_name);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int output_file__fd(const struct output_file *file)
{
	return file->fd;
}

int output_file__finish(struct output_file *file)
{
	int err = flush_stream(file);

	if (!err && file->temp_name && fsync(file->fd))
		err = -errno;
	if (!err && file->name)
		err = check_name(file, file->temp_name ? file->temp_name : file->name);
	if (!err)
		err = close_data(file);
	if (!err && file->temp_name)
		err = rename_into_place(file);
	return err;
}

int output_file__finish_otherwise(struct output_file *file, size_t stem)
{
	char text[TEMP_RANDOM + 1], *name;
	int err = random_letters(text);

	if (err)
		return err;
	if (asprintf(&name, "%.*s-%s%s", (int)stem, file->name, text, file->name + stem) < 0)
		return -ENOMEM;
	free(file->name);
	file->name = name;
	file->moved = true;
	return rename_into_place(file);
}

int output_file__publish(struct output_file *file)
{
	const char *dot = file->name ? strrchr(file->name, '.') : NULL;
	int err = flush_stream(file);

	if (err || !file->temp_name)
		return err;
	err = check_name(file, file->temp_name) ?: rename_into_place(file);
	if (err == -EISDIR)
		err = output_file__finish_otherwise(file, dot ? (size_t)(dot - file->name)
							      : strlen(file->name));
	return err;
}

bool output_file__moved(const struct output_file *file)
{
	return file->moved;
}

char *output_file__path(const struct output_file *file)
{
	char *path;

	if (!file->name)
		return NULL;
	if (!strcmp(file->directory.path, "."))
		return strdup(file->name);
	return asprintf(&path, "%s/%s", file->directory.path, file->name) < 0 ? NULL : path;
}

int output_file__commit(struct output_file *file)
{
	int err = output_file__finish(file);

	output_file__abort(file);
	return err;
}

void output_file__take_back(struct output_file *file)
{
	struct stat now;

	/* numbers of files are given out again at once */
	if (file->name && !file->temp_name &&
	    !fstatat(file->directory.fd, file->name, &now, AT_SYMLINK_NOFOLLOW) &&
	    same_file(&now, &file->own) && now.st_size == file->own.st_size)
		unlinkat(file->directory.fd, file->name, 0);
	output_file__abort(file);
}
