/* SPDX-License-Identifier: BSD-2-Clause */
/* Files, mappings of them and processes that have them, for the tests of the opener. */
#ifndef TESTS_UNIT_DSO_SUPPORT_H
#define TESTS_UNIT_DSO_SUPPORT_H

#include <sys/prctl.h>
#include <sys/sysmacros.h>

#include "unit.h"
#include "base/io.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "files/dso_opener.h"
#include "live/proc/proc_snapshot.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define PROGRAM	     "/bin/sleep"
#define OTHER	     "/bin/cat"

static char directory[] = "/tmp/sysprof-test-XXXXXX";

static VEC(char *) paths; /* in it, freed with it */

static inline char *in_directory(const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s", directory, name) > 0);
	assert_int_equal(vec_push(&paths, path), 0);
	return path;
}

static inline void copy_file(const char *from, const char *to)
{
	char *data;
	size_t size;
	int fd;

	assert_int_equal(read_file_at(AT_FDCWD, from, 64 << 20, &data, &size), 0);
	fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, data, size), 0);
	close(fd);
	free(data);
}

static inline void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
	close(fd);
}

/* Size of the build-id. */
static inline int build_id_of(int fd, uint8_t *id)
{
	struct elf_file *elf;
	int size;

	assert_int_equal(elf_file__open(fd, &elf), 0);
	size = elf_file__build_id(elf, id, BUILD_ID_SIZE);
	elf_file__free(elf);
	return size;
}

static inline int build_id_of_path(const char *path, uint8_t *id)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int size = build_id_of(fd, id);

	close(fd);
	return size;
}

static inline void make_directory(void)
{
	assert_true(mkdtemp(directory));
}

static inline void remove_directory(void)
{
	char command[300];

	for (size_t i = 0; i < paths.count; i++)
		free(paths.data[i]);
	vec_free(&paths);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	assert_int_equal(system(command), 0);
}

/* ---- events ---------------------------------------------------------------------------------- */

struct mapping {
	struct mmap_event event;
	char path[EVENT_PATH_MAX];
};

static inline void make_event(struct mapping *m, pid_t pid, const char *path)
{
	memset(m, 0, sizeof(*m));
	m->event.header.size = sizeof(*m);
	m->event.header.type = EVENT_MMAP;
	m->event.pid = m->event.tid = pid;
	m->event.start = 0x7f0000000000;
	m->event.length = 0x1000;
	m->event.protection = PROT_READ | PROT_EXEC;
	snprintf(m->event.path, sizeof(m->path), "%s", path);
}

/* As recorded, with a build-id. */
static inline void make_recorded_event(struct mapping *m, const char *path, const char *like)
{
	make_event(m, 0, path);
	m->event.build_id_size = build_id_of_path(like, m->event.build_id);
	m->event.header.flags |= EVENT_BUILD_ID;
}

/* As perf or /proc report a file without a build-id. */
static inline void make_inode_event(struct mapping *m, pid_t pid, const char *path,
				    uint64_t generation)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	make_event(m, pid, path);
	m->event.major = major(st.st_dev);
	m->event.minor = minor(st.st_dev);
	m->event.inode = st.st_ino;
	m->event.inode_generation = generation;
}

/* As perf reports a mapping: by a name in the process's root, and the numbers of the file `like`. */
static inline void make_perf_event(struct mapping *m, pid_t pid, const char *path, const char *like)
{
	make_inode_event(m, pid, like, 77);
	snprintf(m->event.path, sizeof(m->path), "%s", path);
}

/* ---- the opener ------------------------------------------------------------------------------- */

static inline struct dso_opener *open_opener(void)
{
	struct dso_opener *o = NULL;

	assert_int_equal(dso_opener__new(NULL, &o), 0);
	return o;
}

struct answer {
	unsigned int count;
	struct mapping mapping;
};

static inline int keep_event(void *context, struct mmap_event *event)
{
	struct answer *answer = context;

	answer->count++;
	assert_true(event->header.size <= sizeof(answer->mapping));
	memcpy(&answer->mapping, event, event->header.size);
	return 0;
}

/* `m` becomes the event that is the answer. */
static inline enum file_state see_child(struct dso_opener *o, struct mapping *m, pid_t parent)
{
	struct answer answer = {};

	assert_int_equal(dso_opener__see(o, &m->event, parent, keep_event, &answer), 0);
	assert_int_equal(answer.count, 1);
	assert_true(dso_opener__pending_since(o) == UINT64_MAX);
	*m = answer.mapping;
	return m->event.file_state;
}

static inline enum file_state see(struct dso_opener *o, struct mapping *m)
{
	return see_child(o, m, 0);
}

static inline int keep_file(void *context, uint32_t key, const struct file_answer *answer)
{
	(void)key;
	*(struct file_answer *)context = *answer;
	return 0;
}

/* Until the next request, if there is room, its descriptor stays valid. */
static inline struct file_answer request(struct dso_opener *o, const struct mapping *m)
{
	struct file_answer answer = {.fd = -EINVAL};
	const struct file_request request = {keep_file, &answer, 0};

	assert_int_equal(dso_opener__request(o, m->event.file, &request), 0);
	return answer;
}

static inline int find(struct dso_opener *o, const struct mapping *m)
{
	return request(o, m).fd;
}

/* Of a recorded mapping, found on this machine. */
static inline struct file_answer find_recorded(struct dso_opener *o, struct mapping *m)
{
	int err = dso_opener__find(o, &m->event);

	return err ? (struct file_answer){.fd = err, .root_fd = -1} : request(o, m);
}

static inline uint64_t opens_of(const struct dso_opener *o)
{
	struct dso_opener_stats stats;

	dso_opener__stats(o, &stats);
	return stats.opens;
}

/* What a snapshot of a process says, seen by the opener. */
struct seen {
	struct dso_opener *opener;
	VEC(struct mapping) mappings;
};

static inline int see_event(void *context, struct event_header *event)
{
	struct seen *seen = context;
	struct mapping m = {};

	if (event->type != EVENT_MMAP)
		return 0;
	memcpy(&m, event, event->size);
	see(seen->opener, &m);
	assert_int_equal(vec_push(&seen->mappings, m), 0);
	return 0;
}

static inline void see_process(struct seen *seen, pid_t pid)
{
	struct proc_snapshot *s;

	assert_int_equal(proc_snapshot__new(&s), 0);
	seen->mappings.count = 0;
	assert_int_equal(proc_snapshot__process(s, pid, true, see_event, seen), 0);
	proc_snapshot__free(s);
}

static inline struct mapping *seen_path(struct seen *seen, const char *part)
{
	for (size_t i = 0; i < seen->mappings.count; i++) {
		if (strstr(seen->mappings.data[i].event.path, part))
			return &seen->mappings.data[i];
	}
	return NULL;
}

static inline pid_t start_program(const char *path)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, path, "100", NULL);
		_exit(127);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0); /* execve closes it */
	close(ready[0]);
	return pid;
}

/* A process in that root. */
static inline pid_t start_in(const char *root)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (chroot(root) || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static inline void stop_program(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

#endif
