/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Root writes into directories that other users can write to (-o /tmp/x), so nothing there is trusted.
 *
 * Links are followed one by one, each read in a directory that is open, and only if the link's owner may decide where
 * we write: in a world-writable directory these are the directory's owner and our own user. Linux has that rule too
 * (fs.protected_symlinks, fs.protected_fifos), but not everywhere. The result is an open directory and a name in it,
 * which no other process can move.
 *
 * If others may replace the file afterwards (they own the directory, or it is not sticky), none of this helps:
 * output_place__shared() returns that directory.
 */
#include "base/output_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/magic.h>

#include "base/cleanup.h"

#define LINKS_MAX 40 /* as the kernel */

/* ---- directories ----------------------------------------------------------------------------- */

void directory__close(struct directory *d)
{
	if (d->fd >= 0)
		close(d->fd);
	free(d->path);
	*d = (struct directory){.fd = -1};
}

int directory__copy(const struct directory *d, struct directory *copy)
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

/* Split a path, which `base` (NULL: ours) is the working directory of, into its directory and its last component. */
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

/* May others replace files in it? */
static bool directory__is_shared(const struct directory *d)
{
	struct stat st;
	uid_t uid;
	gid_t gid;

	if (fstat(d->fd, &st))
		return false;
	if (st.st_mode & S_IWOTH && !(st.st_mode & S_ISVTX))
		return true;
	if (st.st_uid == 0 || st.st_uid == geteuid())
		return false;
	return find_sudo_user(&uid, &gid) <= 0 || uid != st.st_uid;
}

bool is_strangers(const struct directory *d, const struct stat *file)
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

/* Go on to where the link leads whose name the place has. */
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
 * A link of procfs (/dev/stdout leads to one). A file that is not regular can be opened through it only; a regular
 * one has a path, which is compared with it. 1: done, 0: a link like others.
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
	return same_file(&behind, &found) ? 1 : -ESTALE;
}

/* One step. 1: the place is what it will be. */
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
	if (err) {
		output_place__free(p);
		return err;
	}
	*place = p;
	return 0;
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
		err = directory__copy(&place->named, &p->named);
	if (!err)
		err = directory__copy(&place->named, &p->real);
	if (err) {
		output_place__free(p);
		return err;
	}
	*beside = p;
	return 0;
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
