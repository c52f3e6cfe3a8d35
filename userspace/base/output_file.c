/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Root writes into directories that others can write to (-o /tmp/x), so nothing there is trusted.
 *
 * Links are followed one by one, each read in an open directory, and only if the link's owner may
 * decide where we write: in a world-writable directory, the directory's owner and our own user.
 * Linux has that rule (fs.protected_symlinks, fs.protected_fifos), but not everywhere. The result
 * is an open directory and a name in it, which no other process can move.
 *
 * If others may replace the file afterwards (they own the directory, or it is not sticky), this
 * does not help: output_place__shared() returns that directory.
 *
 * The file is created under an unpredictable name with O_EXCL and renamed, which replaces a link
 * instead of following it. A directory cannot be replaced: an error. All is relative to the
 * descriptor of the directory (struct output_place); its path is compared before the rename,
 * because the result must be where the messages say.
 *
 * The stream is a cookie over the descriptor, because stdio forgets errno: finish returns the first
 * write error.
 */
#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/parse.h"

#define LINKS_MAX      40 /* as the kernel */
#define STREAM_SIZE    (64 * 1024)
#define TEMP_SUFFIX    ".sysprof-"
#define TEMP_NAME_PART 100 /* of the target's name: leaves room within any NAME_MAX */
#define TEMP_RANDOM    8
#define MAX_TEMP_TRIES 100

struct directory {
	int fd; /* O_PATH; -1: none */
	char *path;
};

enum place_kind {
	PLACE_FILE,    /* a regular file, or nothing yet */
	PLACE_STDOUT,  /* "-" */
	PLACE_SPECIAL, /* a pipe, a terminal, /dev/null */
	PLACE_MAGIC,   /* the same, behind a link of procfs, which is more than its text */
};

struct output_place {
	enum place_kind kind;
	struct directory named; /* by the path */
	struct directory real;	/* behind all links; `name` is in it */
	char *name;
};

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

/* ---- directories ----------------------------------------------------------------------------- */

static void directory__close(struct directory *d)
{
	if (d->fd >= 0)
		close(d->fd);
	free(d->path);
	*d = (struct directory){.fd = -1};
}

static int directory__copy(const struct directory *d, struct directory *copy)
{
	struct directory new = {.fd = fcntl(d->fd, F_DUPFD_CLOEXEC, 3)};

	if (new.fd < 0)
		return -errno;
	new.path = strdup(d->path);
	if (!new.path) {
		directory__close(&new);
		return -ENOMEM;
	}
	*copy = new;
	return 0;
}

/* Splits a path, relative to `base` (NULL: where we are), into directory and last component. */
static int directory__split(const struct directory *base, const char *path,
			    struct directory *directory, char **name)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *last = strdup(slash ? slash + 1 : path);
	_cleanup_free_ char *way = slash ? strndup(path, slash == path ? 1 : slash - path)
					 : strdup(".");
	struct directory new;

	if (!last || !way)
		return -ENOMEM;
	if (!*last)
		return *path ? -EISDIR : -ENOENT;
	if (strlen(last) > NAME_MAX)
		return -ENAMETOOLONG; /* else only the rename would fail */
	new.fd = openat(base ? base->fd : AT_FDCWD, way, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (new.fd < 0)
		return -errno;
	if (!base || *way == '/')
		new.path = steal_ptr(way);
	else if (asprintf(&new.path, "%s/%s", base->path, way) < 0)
		new.path = NULL;
	if (!new.path) {
		directory__close(&new);
		return -ENOMEM;
	}
	*directory = new;
	*name = steal_ptr(last);
	return 0;
}

/* May others replace files in it? The groups of root and of the user are theirs alone. */
static bool directory__is_shared(const struct directory *d)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	mode_t others = S_IWOTH;
	struct stat st;

	if (fstat(d->fd, &st))
		return false;
	(void)find_sudo_user(&uid, &gid); /* else it leaves both */
	if (st.st_gid != 0 && st.st_gid != gid)
		others |= S_IWGRP;
	if (st.st_mode & others && !(st.st_mode & S_ISVTX))
		return true;
	return st.st_uid != 0 && st.st_uid != uid;
}

/* Another user has put this link or pipe into a world-writable directory. */
static bool is_strangers(const struct directory *d, const struct stat *file)
{
	struct stat st;

	if (fstat(d->fd, &st))
		return true;
	return st.st_mode & S_IWOTH && file->st_uid != st.st_uid && file->st_uid != geteuid();
}

/* ---- places ---------------------------------------------------------------------------------- */

/* The text of a link. The caller frees. */
static int read_link(const struct directory *d, const char *name, char **target)
{
	char text[PATH_MAX];
	ssize_t size = readlinkat(d->fd, name, text, sizeof(text));

	if (size < 0)
		return -errno;
	if (size == sizeof(text))
		return -ENAMETOOLONG;
	*target = strndup(text, size);
	return *target ? 0 : -ENOMEM;
}

/* Replaces the name of the place, a link, by the name that it leads to. */
static int follow_link(struct output_place *p)
{
	_cleanup_free_ char *target = NULL;
	struct directory next;
	char *name;
	int err = read_link(&p->real, p->name, &target)
			  ?: directory__split(&p->real, target, &next, &name);

	if (err)
		return err;
	directory__close(&p->real);
	p->real = next;
	free(p->name);
	p->name = name;
	return 0;
}

static bool is_procfs(const struct directory *d)
{
	struct statfs fs;

	return !fstatfs(d->fd, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

/*
 * A link of procfs (/dev/stdout leads to one). If the file is not regular, only the link opens it;
 * if it is, its path must lead to the same file. 1: done; 0: a link like others.
 */
static int resolve_magic(struct output_place *p)
{
	struct stat behind, found;
	int err;

	if (fstatat(p->real.fd, p->name, &behind, 0))
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(behind.st_mode))
		return -EISDIR;
	if (!S_ISREG(behind.st_mode)) {
		p->kind = PLACE_MAGIC;
		return 1;
	}
	err = follow_link(p);
	if (err)
		return err;
	if (fstatat(p->real.fd, p->name, &found, AT_SYMLINK_NOFOLLOW))
		return -errno;
	return is_same_inode(&behind, &found) ? 1 : -ESTALE;
}

/* One step. 1: the place is resolved. */
static int resolve_step(struct output_place *p)
{
	struct stat st;
	int err;

	if (fstatat(p->real.fd, p->name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 1 : -errno;
	if (S_ISREG(st.st_mode))
		return 1;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (is_strangers(&p->real, &st))
		return -EACCES;
	if (!S_ISLNK(st.st_mode)) {
		p->kind = PLACE_SPECIAL;
		return 1;
	}
	if (is_procfs(&p->real)) {
		err = resolve_magic(p);
		if (err)
			return err;
	}
	return follow_link(p);
}

static int resolve_given(struct output_place *p)
{
	for (int i = 0; i <= LINKS_MAX; i++) {
		int done = resolve_step(p);

		if (done)
			return done < 0 ? done : 0;
	}
	return -ELOOP;
}

/* A rename replaces everything but a directory. */
static int check_chosen(const struct output_place *p)
{
	struct stat st;

	if (fstatat(p->real.fd, p->name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	return S_ISDIR(st.st_mode) ? -EISDIR : 0;
}

static struct output_place *new_place(void)
{
	struct output_place *p = calloc(1, sizeof(*p));

	if (p)
		p->named.fd = p->real.fd = -1;
	return p;
}

void output_place__free(struct output_place *p)
{
	if (!p)
		return;
	directory__close(&p->named);
	directory__close(&p->real);
	free(p->name);
	free(p);
}

int output_place__open(const char *path, enum output_name name, struct output_place **place)
{
	struct output_place *p = new_place();
	int err;

	if (!p)
		return -ENOMEM;
	if (name == OUTPUT_GIVEN && !strcmp(path, "-")) {
		p->kind = PLACE_STDOUT;
		*place = p;
		return 0;
	}
	err = directory__split(NULL, path, &p->named, &p->name)
			?: directory__copy(&p->named, &p->real)
			?: (name == OUTPUT_GIVEN ? resolve_given(p) : check_chosen(p));
	return finish_new(err, p, output_place__free, place);
}

int output_place__beside(const struct output_place *place, const char *name,
			 struct output_place **beside)
{
	struct output_place *p = new_place();
	int err;

	if (!p)
		return -ENOMEM;
	p->name = strdup(name);
	err = !p->name ? -ENOMEM : strlen(name) > NAME_MAX ? -ENAMETOOLONG : 0;
	if (!err)
		err = directory__copy(&place->named, &p->named)
			      ?: directory__copy(&place->named, &p->real);
	return finish_new(err, p, output_place__free, beside);
}

bool output_place__is_stream(const struct output_place *p)
{
	return p->kind != PLACE_FILE;
}

const char *output_place__shared(const struct output_place *p)
{
	if (p->kind != PLACE_FILE)
		return NULL;
	if (directory__is_shared(&p->named))
		return p->named.path;
	return directory__is_shared(&p->real) ? p->real.path : NULL;
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
	return 0; /* how a cookie's write reports failure */
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

/* The file may have been replaced since it was checked. */
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
	return finish_new(err, f, output_file__abort, file);
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
	return is_same_inode(&now, &then) ? 0 : -ENOENT;
}

/* Is our file still at `name`? It may have been removed, moved or replaced. */
static int check_name(struct output_file *file, const char *name)
{
	struct stat now;
	int err = check_directory(file);

	if (err)
		return err;
	if (fstatat(file->directory.fd, name, &now, AT_SYMLINK_NOFOLLOW) ||
	    fstat(file->fd, &file->own))
		return -errno;
	return is_same_inode(&now, &file->own) ? 0 : -ENOENT;
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

	/* inode numbers are reused at once */
	if (file->name && !file->temp_name &&
	    !fstatat(file->directory.fd, file->name, &now, AT_SYMLINK_NOFOLLOW) &&
	    is_same_inode(&now, &file->own) && now.st_size == file->own.st_size)
		unlinkat(file->directory.fd, file->name, 0);
	output_file__abort(file);
}
