/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Result files: written under a temporary name beside their target and renamed when they are whole, mode 0600, owned
 * by SUDO_UID:SUDO_GID where those are set.
 *
 * Where a file goes is decided once, before the recording (struct output_place), and is reached through a descriptor
 * of its directory from then on. A name that the user gave is used as by any program: "-" is standard output, a pipe
 * or a device is written to, and of a symbolic link the file behind it is replaced. A name that the program chose (a
 * default, a sibling) is taken literally: the file of that name is replaced, and a link is replaced as a link.
 */
#ifndef BASE_OUTPUT_FILE_H
#define BASE_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

enum output_name {
	OUTPUT_GIVEN,  /* by the user */
	OUTPUT_CHOSEN, /* by the program */
};

struct output_place;

/*
 * 0, or negative errno: the directory is missing, …; -EISDIR; -EACCES too for a link or a pipe that another user has
 * put into a world-writable directory. Creates nothing.
 */
int output_place__open(const char *path, enum output_name name, struct output_place **place);
/*
 * A chosen name in the directory that the path of `place` names, whatever links lead on from there; a directory may
 * have it. 0 or negative errno. Not of standard output.
 */
int output_place__beside(const struct output_place *place, const char *name,
			 struct output_place **beside);
void output_place__free(struct output_place *place); /* NULL is fine */
/* Standard output, a pipe or a device: written as it is, nothing is renamed. */
bool output_place__is_stream(const struct output_place *place);
/*
 * A directory on the way to the file in which other users may replace it: it is world-writable and not sticky, or its
 * owner is not root, our user or the caller of sudo. NULL: there is none. The place's own.
 */
const char *output_place__shared(const struct output_place *place);

struct output_file;

/* 0, or negative errno: the directory is not writable, … The place may go before the file. */
int output_file__open_at(const struct output_place *place, struct output_file **file);
/* The same for a path that the user gave. */
int output_file__open(const char *path, struct output_file **file);
FILE *output_file__stream(struct output_file *file);
/* The first error that a write met, which stdio forgets; 0: none so far. */
int output_file__error(const struct output_file *file);
/*
 * Flushes, checks every write, syncs the data, renames into place. After that the file may only be passed to
 * output_file__take_back() and output_file__abort(), of which the latter leaves what is in place.
 */
int output_file__finish(struct output_file *file);
/*
 * After output_file__finish() has given -EISDIR, since a directory has taken the name meanwhile: the same under an
 * unpredictable name, with "-XXXXXXXX" put in behind `stem` bytes of it.
 */
int output_file__finish_otherwise(struct output_file *file, size_t stem);
/* The path of its name as it is now; the caller frees. NULL: it has none ("-", a pipe), or there is no memory. */
char *output_file__path(const struct output_file *file);
/* Remove what was put into place, if it is still there and ours, and free. */
void output_file__take_back(struct output_file *file);
/* finish and free. On failure nothing is left behind. */
int output_file__commit(struct output_file *file);
/* Remove the temporary file and free. NULL is fine. */
void output_file__abort(struct output_file *file);
/*
 * For a file that is of use before it is whole: flush, rename it into place now and go on writing. From then on
 * finish only flushes, closes and checks that the file still has its name, and abort leaves it there. Where nothing
 * would be renamed ("-", a pipe) it just flushes. Where a directory has taken the name, it does as
 * output_file__finish_otherwise(), before the last dot: output_file__moved(). 0 or negative errno.
 */
int output_file__publish(struct output_file *file);
/* Has it got another name than it was to have? */
bool output_file__moved(const struct output_file *file);
/*
 * Path of its temporary name, for an emergency removal: 0, -ENOENT (there is none, or not any more), -ENAMETOOLONG.
 */
int output_file__temporary(const struct output_file *file, char *path, size_t size);
/* The descriptor under the stream, for writes past the stream. It stays the file's. */
int output_file__fd(const struct output_file *file);

/* SUDO_UID and SUDO_GID. 1: set; 0: not set, or we are not root; negative errno: no numbers, or only the former. */
int find_sudo_user(uid_t *uid, gid_t *gid);
/* Give an open file to SUDO_UID:SUDO_GID, if those are set. 0 or negative errno. */
int give_to_sudo_user(int fd);

#endif
