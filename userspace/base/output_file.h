/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Result files: written under a temporary name beside their target and renamed when whole; mode
 * 0600, owned by SUDO_UID:SUDO_GID if set.
 *
 * The target is resolved once, before the recording (struct output_place), then reached through a
 * descriptor of its directory. A name given by the user works as in any program: "-" is standard
 * output, a pipe or device is written to, and of a symbolic link the file behind it is replaced. A
 * name chosen by the program (a default, a sibling) is literal: a link itself is replaced.
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
 * 0, or negative errno: the directory is missing, …; -EISDIR; -EACCES also for a link or pipe of
 * another user in a world-writable directory. Creates nothing.
 */
int output_place__open(const char *path, enum output_name name, struct output_place **place);
/*
 * A chosen name in the directory that the path of `place` names, without following links; a
 * directory may have it. Not of standard output. 0 or negative errno.
 */
int output_place__beside(const struct output_place *place, const char *name,
			 struct output_place **beside);
void output_place__free(struct output_place *place); /* NULL is fine */
/* Standard output, a pipe or a device: written as it is, nothing is renamed. */
bool output_place__is_stream(const struct output_place *place);
/*
 * A directory on the way to the file where other users may replace it: world-writable and not
 * sticky, or not owned by root, our user or the caller of sudo. NULL: none. The place's own.
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
 * Flushes, checks every write, syncs the data, renames into place. Nothing may be written after
 * that. output_file__abort() then leaves the file in place.
 */
int output_file__finish(struct output_file *file);
/*
 * After -EISDIR from output_file__finish(), because a directory has taken the name: the same under
 * an unpredictable name, with "-XXXXXXXX" inserted after `stem` bytes.
 */
int output_file__finish_otherwise(struct output_file *file, size_t stem);
/* The path of its current name; the caller frees. NULL: none ("-", a pipe), or no memory. */
char *output_file__path(const struct output_file *file);
/* Remove what was put into place, if it is still there and ours, and free. */
void output_file__take_back(struct output_file *file);
/* finish and free. On failure nothing is left behind. */
int output_file__commit(struct output_file *file);
/* Remove the temporary file and free. NULL is fine. */
void output_file__abort(struct output_file *file);
/*
 * For a file that is useful before it is whole: flushes, renames into place now, and writing goes
 * on. Finish then only flushes, closes and checks that the file still has its name; abort leaves
 * it. Without a rename ("-", a pipe) it only flushes. If a directory has taken the name, as
 * output_file__finish_otherwise() before the last dot: output_file__moved(). 0 or negative errno.
 */
int output_file__publish(struct output_file *file);
/* Has it another name, because a directory had taken its own? */
bool output_file__moved(const struct output_file *file);
/* Path of its temporary name, for emergency removal: 0; -ENOENT: none (any more); -ENAMETOOLONG. */
int output_file__temporary(const struct output_file *file, char *path, size_t size);
/* The descriptor under the stream, for writes past the stream. It stays the file's. */
int output_file__fd(const struct output_file *file);

/* SUDO_UID, SUDO_GID. 1: set; 0: not set, or we are not root; negative errno: not two numbers. */
int find_sudo_user(uid_t *uid, gid_t *gid);
/* Give an open file to SUDO_UID:SUDO_GID, if those are set. 0 or negative errno. */
int give_to_sudo_user(int fd);

#endif
