/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening what is mapped: real processes whose files are deleted, replaced, in another root or gone
 * with them, and events like perf's where no process is needed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "forge_zip.h"
#include "procfs/dso_opener.h"
#include "procfs/proc_snapshot.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define PROGRAM	     "/bin/sleep"
#define OTHER	     "/bin/cat"

static char directory[] = "/tmp/sysprof-test-XXXXXX";

static char *in_directory(const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s", directory, name) > 0);
	return path;
}

static void copy_file(const char *from, const char *to)
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

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
	close(fd);
}

/* Size of the build-id. */
static int build_id_of(int fd, uint8_t *id)
{
	struct elf_file *elf;
	int size;

	assert_int_equal(elf_file__open(fd, &elf), 0);
	size = elf_file__build_id(elf, id, BUILD_ID_SIZE);
	elf_file__free(elf);
	return size;
}

static int build_id_of_path(const char *path, uint8_t *id)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int size = build_id_of(fd, id);

	close(fd);
	return size;
}

/* ---- events ---------------------------------------------------------------------------------- */

struct mapping {
	struct mmap_event event;
	char path[EVENT_PATH_MAX];
};

static void make_event(struct mapping *m, pid_t pid, const char *path)
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

/* As perf tells a program with a build-id: without an inode. */
static void make_perf_event(struct mapping *m, pid_t pid, const char *path, const char *like)
{
	make_event(m, pid, path);
	m->event.build_id_size = build_id_of_path(like, m->event.build_id);
	m->event.header.flags |= EVENT_BUILD_ID;
}

/* As perf or /proc tell a file without a build-id. */
static void make_inode_event(struct mapping *m, pid_t pid, const char *path, uint64_t generation)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	make_event(m, pid, path);
	m->event.major = major(st.st_dev);
	m->event.minor = minor(st.st_dev);
	m->event.inode = st.st_ino;
	m->event.inode_generation = generation;
}

static struct dso_identity identity_of(const struct mapping *m)
{
	return (struct dso_identity){
		.path = m->event.path,
		.build_id = m->event.build_id,
		.build_id_size = m->event.build_id_size,
		.major = m->event.major,
		.minor = m->event.minor,
		.inode = m->event.inode,
		.inode_generation = m->event.inode_generation,
	};
}

static int find(struct dso_opener *o, const struct mapping *m)
{
	struct dso_identity identity = identity_of(m);

	uint64_t base;

	return dso_opener__find(o, &identity, NULL, &base);
}

static struct dso_opener *open_opener(void)
{
	struct dso_opener *o = NULL;

	assert_int_equal(dso_opener__new(&o), 0);
	return o;
}

static enum file_state see(struct dso_opener *o, struct mapping *m)
{
	assert_int_equal(dso_opener__see(o, &m->event, 0), 0);
	return m->event.file_state;
}

static uint64_t opens_of(const struct dso_opener *o)
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

static int see_event(void *context, struct event_header *event)
{
	struct seen *seen = context;
	struct mapping m = {};

	if (event->type != EVENT_MMAP)
		return 0;
	assert_int_equal(dso_opener__see(seen->opener, (struct mmap_event *)event, 0), 0);
	memcpy(&m, event, event->size);
	assert_int_equal(vec_push(&seen->mappings, m), 0);
	return 0;
}

static void see_process(struct seen *seen, pid_t pid)
{
	struct proc_snapshot *s;

	assert_int_equal(proc_snapshot__new(&s), 0);
	seen->mappings.count = 0;
	assert_int_equal(proc_snapshot__process(s, pid, true, see_event, seen), 0);
	proc_snapshot__free(s);
}

static struct mapping *seen_path(struct seen *seen, const char *part)
{
	for (size_t i = 0; i < seen->mappings.count; i++) {
		if (strstr(seen->mappings.data[i].event.path, part))
			return &seen->mappings.data[i];
	}
	return NULL;
}

static pid_t start_program(const char *path)
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

static void stop_program(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

/* ---- live processes -------------------------------------------------------------------------- */

static void test_this_process(void **state)
{
	struct seen seen = {.opener = open_opener()};
	struct dso_opener_stats stats;
	struct mapping *m;
	uint64_t opens;
	uint8_t id[BUILD_ID_SIZE];

	(void)state;
	see_process(&seen, getpid());
	assert_true(seen.mappings.count >= 3);
	m = seen_path(&seen, "test_dso_opener");
	assert_non_null(m);
	assert_int_equal(m->event.file_state, FILE_STATE_RIGHT);
	assert_true(m->event.header.flags & EVENT_BUILD_ID);
	assert_int_equal(m->event.build_id_size, build_id_of_path("/proc/self/exe", id));
	assert_memory_equal(m->event.build_id, id, m->event.build_id_size);
	m = seen_path(&seen, "/libc.so");
	assert_non_null(m);
	assert_int_equal(m->event.file_state, FILE_STATE_RIGHT);
	assert_true(find(seen.opener, m) >= 0);
	m = seen_path(&seen, "[vdso]");
	assert_non_null(m);
	assert_int_equal(m->event.file_state, FILE_STATE_RIGHT);
	assert_true(m->event.build_id_size > 0);
	assert_int_equal(build_id_of(find(seen.opener, m), id), m->event.build_id_size);
	assert_memory_equal(m->event.build_id, id, m->event.build_id_size);
	m = seen_path(&seen, "[vsyscall]");
	if (m)
		assert_int_equal(m->event.file_state, FILE_STATE_NONE);

	opens = opens_of(seen.opener);
	see_process(&seen, getpid());
	see_process(&seen, getpid());
	assert_int_equal(opens_of(seen.opener), opens); /* all known */
	dso_opener__stats(seen.opener, &stats);
	assert_true(stats.files <= seen.mappings.count);
	assert_true(stats.fds >= stats.files);
	vec_free(&seen.mappings);
	dso_opener__free(seen.opener);
	dso_opener__free(NULL);
}

static void test_perf_and_proc_agree(void **state)
{
	struct seen seen = {.opener = open_opener()};
	pid_t pid = start_program(PROGRAM);
	struct mapping perf, *proc;
	uint64_t opens;

	(void)state;
	see_process(&seen, pid);
	proc = seen_path(&seen, "/sleep");
	assert_non_null(proc);
	make_perf_event(&perf, 99999999, "/any/name", PROGRAM); /* nobody to open it from */
	opens = opens_of(seen.opener);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(see(seen.opener, &perf), FILE_STATE_RIGHT);
	assert_int_equal(opens_of(seen.opener), opens);
	assert_int_equal(proc->event.build_id_size, perf.event.build_id_size);
	assert_memory_equal(proc->event.build_id, perf.event.build_id, BUILD_ID_SIZE);
	assert_int_equal(find(seen.opener, proc), find(seen.opener, &perf));
	stop_program(pid);
	vec_free(&seen.mappings);
	dso_opener__free(seen.opener);
}

static void expect_program(struct dso_opener *o, const struct mapping *m, const char *like)
{
	uint8_t expected[BUILD_ID_SIZE], id[BUILD_ID_SIZE];
	int size = build_id_of_path(like, expected);
	int fd = find(o, m);

	assert_int_equal(m->event.file_state, FILE_STATE_RIGHT);
	assert_int_equal(m->event.build_id_size, size);
	assert_memory_equal(m->event.build_id, expected, size);
	assert_true(fd >= 0);
	assert_int_equal(build_id_of(fd, id), size);
	assert_memory_equal(id, expected, size);
}

static void test_deleted_and_replaced_programs(void **state)
{
	struct seen seen = {.opener = open_opener()};
	char *gone = in_directory("gone"), *replaced = in_directory("replaced");
	char *new = in_directory("new");
	pid_t pid;

	(void)state;
	if (geteuid() != 0) {
		print_message("map_files needs privileges: not tested\n");
		skip();
	}
	copy_file(PROGRAM, gone);
	pid = start_program(gone);
	unlink(gone);
	see_process(&seen, pid);
	expect_program(seen.opener, seen_path(&seen, "/gone (deleted)"), PROGRAM);
	stop_program(pid);
	expect_program(seen.opener, seen_path(&seen, "/gone (deleted)"), PROGRAM);
	dso_opener__free(seen.opener);

	seen.opener = open_opener();
	copy_file(PROGRAM, replaced);
	pid = start_program(replaced);
	copy_file(OTHER, new);
	assert_int_equal(rename(new, replaced), 0);
	see_process(&seen, pid);
	expect_program(seen.opener, seen_path(&seen, "/replaced (deleted)"), PROGRAM);
	stop_program(pid);
	vec_free(&seen.mappings);
	dso_opener__free(seen.opener);
	free(gone);
	free(replaced);
	free(new);
}

static void test_processes_that_are_gone(void **state)
{
	struct dso_opener *o = open_opener();
	char *replaced = in_directory("elsewhere");
	pid_t pid = start_program(PROGRAM);
	struct mapping m;

	(void)state;
	copy_file(OTHER, replaced);
	stop_program(pid);
	make_perf_event(&m, pid, PROGRAM, PROGRAM);
	assert_int_equal(dso_opener__see(o, &m.event, getpid()), 0);
	expect_program(o, &m, PROGRAM);
	dso_opener__free(o);

	o = open_opener(); /* without knowing the parent: by our own root */
	make_perf_event(&m, pid, PROGRAM, PROGRAM);
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	make_perf_event(&m, pid, replaced, "/proc/self/exe");
	assert_int_equal(see(o, &m), FILE_STATE_REPLACED);
	assert_int_equal(find(o, &m), -1);
	make_perf_event(&m, pid, "/nonexistent/program", "/proc/self/exe");
	assert_int_equal(see(o, &m), FILE_STATE_MISSING);
	assert_int_equal(m.event.build_id_size,
			 build_id_of_path("/proc/self/exe", m.event.build_id));
	assert_int_equal(find(o, &m), -1);
	make_inode_event(&m, pid, replaced, 0);
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_true(m.event.build_id_size > 0);
	make_inode_event(&m, pid, replaced, 0);
	m.event.inode++;
	assert_int_equal(see(o, &m), FILE_STATE_REPLACED);
	dso_opener__free(o);
	free(replaced);
}

static void test_another_root(void **state)
{
	struct dso_opener *o = open_opener();
	char *root = in_directory("root"), *program = in_directory("root/program");
	uint64_t base;
	struct dso_identity identity;
	int fd, root_fd, ready[2], status;
	struct stat st, found;
	struct mapping m;
	char byte;
	pid_t pid;

	(void)state;
	if (geteuid() != 0) {
		print_message("chroot needs privileges: not tested\n");
		skip();
	}
	assert_int_equal(mkdir(root, 0755), 0);
	copy_file(PROGRAM, program);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (chroot(root) || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	make_perf_event(&m, pid, "/program", PROGRAM);
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	identity = identity_of(&m);
	fd = dso_opener__find(o, &identity, &root_fd, &base);
	assert_true(fd >= 0 && root_fd >= 0);
	assert_int_equal(fstat(fd, &found), 0);
	assert_int_equal(stat(program, &st), 0);
	assert_int_equal(found.st_ino, st.st_ino);
	assert_int_equal(fstat(root_fd, &found), 0);
	assert_int_equal(stat(root, &st), 0);
	assert_int_equal(found.st_ino, st.st_ino);
	/* a later process of that root that is gone already: the root is still known */
	write_text(program, "no program");
	m.event.build_id_size = 0;
	make_inode_event(&m, pid, program, 0);
	snprintf(m.event.path, sizeof(m.path), "/program");
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	close(ready[0]);
	close(ready[1]);
	dso_opener__free(o);
	free(root);
	free(program);
}

/* ---- kinds of files -------------------------------------------------------------------------- */

static void test_what_is_no_file(void **state)
{
	static const char *const names[] = {
		"",
		"//anon",
		"[heap]",
		"[stack]",
		"[vsyscall]",
		"[anon:.bss]",
		"/dev/zero",
		"/dev/zero (deleted)",
		"anon_inode:[perf_event]",
		"/SYSV00000000",
		"/SYSV00000000 (deleted)",
		"/anon_hugepage (deleted)",
		"[uprobes]",
	};
	struct dso_opener *o = open_opener();
	struct mapping m;

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		make_event(&m, getpid(), names[i]);
		m.event.inode = 5;
		assert_int_equal(see(o, &m), FILE_STATE_NONE);
	}
	make_event(&m, getpid(), "/bin/sh"); /* no build-id, no inode: nothing to verify */
	assert_int_equal(see(o, &m), FILE_STATE_UNOPENED);
	make_event(&m, getpid(), "[vdso]");
	m.event.length = 0x100000;
	assert_int_equal(see(o, &m), FILE_STATE_UNOPENED);
	assert_int_equal(opens_of(o), 0);
	dso_opener__free(o);
}

static void test_files_that_cannot_be_read(void **state)
{
	struct dso_opener *o = open_opener();
	char *fifo = in_directory("fifo2"), *huge = in_directory("huge");
	char *loop = in_directory("loop"), *folder = in_directory("folder");
	struct mapping m;
	int fd;

	(void)state;
	assert_int_equal(mkfifo(fifo, 0600), 0);
	make_inode_event(&m, getpid(), fifo, 0);
	assert_int_equal(see(o, &m), FILE_STATE_NOT_REGULAR);
	assert_int_equal(mkdir(folder, 0700), 0);
	make_inode_event(&m, getpid(), folder, 0);
	assert_int_equal(see(o, &m), FILE_STATE_NOT_REGULAR);
	fd = open(huge, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (!ftruncate(fd, 9LL << 30)) {
		make_inode_event(&m, getpid(), huge, 0);
		assert_int_equal(see(o, &m), FILE_STATE_TOO_BIG);
	}
	close(fd);
	assert_int_equal(symlink(loop, loop), 0);
	make_perf_event(&m, getpid(), loop, PROGRAM);
	assert_int_equal(see(o, &m), FILE_STATE_MISSING);
	dso_opener__free(o);
	free(fifo);
	free(huge);
	free(loop);
	free(folder);
}

/* Map a memfd and look at our own mappings. */
static void expect_memfd(const char *content, enum file_state state)
{
	struct seen seen = {.opener = open_opener()};
	int fd = memfd_create("code", MFD_CLOEXEC);
	struct mapping *m;
	uint64_t opens;
	size_t size;
	char *data;
	void *page;

	assert_int_equal(read_file_at(AT_FDCWD, content, 64 << 20, &data, &size), 0);
	assert_int_equal(write_full(fd, data, size), 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	assert_true(page != MAP_FAILED);
	see_process(&seen, getpid());
	m = seen_path(&seen, "/memfd:code");
	assert_non_null(m);
	assert_int_equal(m->event.file_state, state);
	assert_int_equal(find(seen.opener, m) >= 0, state == FILE_STATE_RIGHT);
	opens = opens_of(seen.opener);
	see_process(&seen, getpid());
	assert_int_equal(seen_path(&seen, "/memfd:code")->event.file_state, state);
	assert_int_equal(opens_of(seen.opener), opens);
	munmap(page, 4096);
	close(fd);
	free(data);
	vec_free(&seen.mappings);
	dso_opener__free(seen.opener);
}

static void test_memory_files(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("map_files needs privileges: not tested\n");
		skip();
	}
	expect_memfd(PROGRAM, FILE_STATE_RIGHT);
	expect_memfd("/proc/self/cmdline", FILE_STATE_NONE);
}

/* ---- files without a build-id ---------------------------------------------------------------- */

static void test_one_identity_whoever_tells(void **state)
{
	struct dso_opener *o = open_opener();
	char *path = in_directory("plain");
	struct mapping m;
	int fd;

	(void)state;
	write_text(path, "no ELF file");
	make_inode_event(&m, getpid(), path, 77); /* perf knows the generation */
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_int_equal(m.event.build_id_size, 0);
	assert_int_equal(m.event.inode_generation, 77);
	fd = find(o, &m);
	assert_true(fd >= 0);
	make_inode_event(&m, getpid(), path, 0); /* /proc does not */
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_int_equal(m.event.inode_generation, 77);
	assert_int_equal(find(o, &m), fd);
	m.event.inode_generation = 78;
	assert_int_equal(find(o, &m), -1);
	/* the suffix is no part of the identity */
	m.event.inode_generation = 77;
	strcat(m.event.path, " (deleted)");
	assert_int_equal(find(o, &m), fd);
	assert_int_equal(opens_of(o), 1);
	dso_opener__free(o);

	o = open_opener(); /* the other way round */
	make_inode_event(&m, getpid(), path, 0);
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	make_inode_event(&m, getpid(), path, 77);
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_int_equal(m.event.inode_generation, 0);
	assert_int_equal(opens_of(o), 1);
	dso_opener__free(o);
	free(path);
}

static void test_files_that_are_written_over(void **state)
{
	struct dso_opener *o = open_opener();
	char *path = in_directory("changing");
	struct mapping m, program;
	char *data;
	size_t size;
	int fd;

	(void)state;
	write_text(path, "one");
	make_inode_event(&m, getpid(), path, 0);
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_true(find(o, &m) >= 0);
	write_text(path, "three");
	assert_int_equal(find(o, &m), -1); /* that is not what was mapped */
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_true(find(o, &m) >= 0);
	assert_int_equal(opens_of(o), 2);

	/* an ELF file is the same as long as its build-id is */
	unlink(path);
	copy_file(PROGRAM, path);
	make_inode_event(&program, getpid(), path, 0);
	assert_int_equal(see(o, &program), FILE_STATE_RIGHT);
	assert_int_equal(read_file_at(AT_FDCWD, PROGRAM, 64 << 20, &data, &size), 0);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(write_full(fd, "more", 4), 0);
	close(fd);
	assert_true(find(o, &program) >= 0);
	write_text(path, "not at all");
	assert_int_equal(find(o, &program), -1);
	/* but if the true one turns up again, it is taken */
	make_perf_event(&m, getpid(), PROGRAM, PROGRAM);
	uint64_t base;
	struct dso_identity identity = identity_of(&m);
	assert_true(dso_opener__open_by_identity(o, &identity, &base) >= 0);
	assert_true(find(o, &program) >= 0);
	free(data);
	free(path);
	dso_opener__free(o);
}

/* ---- few descriptors ------------------------------------------------------------------------- */

enum { FEW_FDS = 300, FILES = 200 };

static void see_many_files(void **state)
{
	struct rlimit limit = {100, FEW_FDS}, now;
	struct dso_opener_stats stats;
	unsigned int kept = 0, found = 0;
	struct dso_opener *o;
	struct mapping m;

	(void)state;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	o = open_opener();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
	assert_int_equal(now.rlim_cur, FEW_FDS);
	dso_opener__original_limit(o, &now);
	assert_int_equal(now.rlim_cur, 100);
	dso_opener__stats(o, &stats);
	assert_int_equal(stats.fd_limit, FEW_FDS / 2);
	for (int i = 0; i < FILES; i++) {
		char name[32], *path;

		snprintf(name, sizeof(name), "many-%d", i);
		path = in_directory(name);
		write_text(path, name);
		make_inode_event(&m, getpid(), path, 0);
		see(o, &m);
		assert_true(m.event.file_state == FILE_STATE_RIGHT ||
			    m.event.file_state == FILE_STATE_NO_FDS);
		kept += m.event.file_state == FILE_STATE_RIGHT;
		free(path);
	}
	assert_in_range(kept, FEW_FDS / 2 - 3, FEW_FDS / 2);
	for (int i = 0; i < FILES; i++) {
		char name[32], *path, text[32] = "";
		int fd;

		snprintf(name, sizeof(name), "many-%d", i);
		path = in_directory(name);
		make_inode_event(&m, getpid(), path, 0);
		if (i == FILES - 1)
			write_text(path, "written over");
		fd = find(o, &m);
		if (fd >= 0 && pread(fd, text, sizeof(text), 0) > 0 && !strcmp(text, name))
			found++;
		free(path);
	}
	assert_int_equal(found, FILES - 1); /* the others are opened when they are asked for */
	dso_opener__free(o);
}

static void test_few_descriptors(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		const struct CMUnitTest tests[] = {cmocka_unit_test(see_many_files)};

		_exit(cmocka_run_group_tests_name("few descriptors", tests, NULL, NULL));
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

/* ---- archives -------------------------------------------------------------------------------- */

static void save_archive(const char *path, const struct forged_zip *z)
{
	char *data = calloc(1, z->size);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_int_equal(pread_full(z->fd, data, z->size, 0), z->size);
	assert_int_equal(write_full(fd, data, z->size), 0);
	close(fd);
	close(z->fd);
	free(data);
}

/* A file with two programs in it, and something else, at the path. */
static void make_archive(const char *path, struct forged_zip *z)
{
	static const char *const programs[] = {PROGRAM, OTHER};
	char *data;
	size_t size;

	zip_begin(z);
	for (size_t i = 0; i < COUNT(programs); i++) {
		assert_int_equal(read_file_at(AT_FDCWD, programs[i], 64 << 20, &data, &size), 0);
		zip_add(z, i ? "lib/other" : "lib/program", 0, data, size, 4096);
		free(data);
	}
	zip_add(z, "classes.dex", 0, "no ELF file", 12, 4096);
	zip_end(z, "");
	save_archive(path, z);
}

static void expect_inside(struct dso_opener *o, const char *path, uint64_t begin, const char *name,
			  const char *like)
{
	struct mmap_event_space inner;
	struct dso_identity identity;
	uint8_t id[BUILD_ID_SIZE];
	struct mapping m = {};
	uint64_t base;
	int size = build_id_of_path(like, id);

	make_inode_event(&m, getpid(), path, 0);
	m.event.page_offset = begin + 0x2000;
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_int_equal(dso_opener__enter(o, &m.event, &inner), 1);
	assert_int_equal(inner.event.page_offset, 0x2000);
	assert_int_equal(inner.event.start, m.event.start);
	assert_true(inner.event.header.flags & EVENT_BUILD_ID);
	assert_int_equal(inner.event.build_id_size, size);
	assert_memory_equal(inner.event.build_id, id, size);
	assert_int_equal(strncmp(inner.event.path, path, strlen(path)), 0);
	assert_string_equal(inner.event.path + strlen(path), name);
	assert_int_equal(inner.event.header.size % EVENT_ALIGN, 0);
	assert_true(inner.event.header.size > sizeof(inner.event) + strlen(inner.event.path));
	memcpy(&m, &inner, inner.event.header.size);
	identity = identity_of(&m);
	assert_true(dso_opener__find(o, &identity, NULL, &base) >= 0);
	assert_int_equal(base, begin);
	/* it is not entered twice */
	assert_int_equal(dso_opener__enter(o, &m.event, &inner), 0);
}

static void test_archive(void **state)
{
	char *path = in_directory("app.apk"), *name;
	struct dso_opener *o = open_opener();
	struct mmap_event_space inner;
	struct dso_identity identity;
	struct forged_zip z;
	struct mapping m;
	uint64_t base;

	(void)state;
	make_archive(path, &z);
	expect_inside(o, path, z.entries[0].data, "!/lib/program", PROGRAM);
	expect_inside(o, path, z.entries[1].data, "!/lib/other", OTHER);
	expect_inside(o, path, z.entries[0].data, "!/lib/program", PROGRAM);
	assert_int_equal(opens_of(o), 1);
	/* what is no library, and what is no entry */
	make_inode_event(&m, getpid(), path, 0);
	m.event.page_offset = z.entries[2].data;
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_int_equal(dso_opener__enter(o, &m.event, &inner), 0);
	m.event.page_offset = 1ull << 40;
	assert_int_equal(dso_opener__enter(o, &m.event, &inner), 0);
	dso_opener__free(o);

	/* without a process, by the name alone */
	o = open_opener();
	assert_true(asprintf(&name, "%s!/lib/other", path) > 0);
	make_inode_event(&m, 0, path, 0);
	m.event.build_id_size = build_id_of_path(OTHER, m.event.build_id);
	identity = identity_of(&m);
	identity.path = name;
	assert_true(dso_opener__open_by_identity(o, &identity, &base) >= 0);
	assert_int_equal(base, z.entries[1].data);
	identity.build_id = (const uint8_t *)"01234567890123456789";
	assert_true(dso_opener__open_by_identity(o, &identity, &base) < 0);
	dso_opener__free(o);
	unlink(path);
	free(name);
	free(path);
}

/* An archive with a program, with its build-id or without; where it begins in there. */
static uint64_t make_small_archive(const char *path, bool has_build_id)
{
	uint8_t id[BUILD_ID_SIZE];
	struct forged_zip z;
	char *data, *bytes;
	size_t size;
	int id_size;

	assert_int_equal(read_file_at(AT_FDCWD, PROGRAM, 64 << 20, &data, &size), 0);
	id_size = build_id_of_path(PROGRAM, id);
	bytes = memmem(data, size, id, id_size);
	assert_non_null(bytes);
	if (!has_build_id)
		bytes[-8] = 99; /* the note's type, in front of its name */
	zip_begin(&z);
	zip_add(&z, "lib/program", 0, data, size, 4096);
	zip_end(&z, "");
	free(data);
	save_archive(path, &z);
	return z.entries[0].data;
}

/* See an archive's library as it is mapped; who it is. */
static void see_inside(struct dso_opener *o, const char *path, uint64_t begin, uint64_t generation,
		       struct mapping *inside)
{
	struct mmap_event_space inner;
	struct mapping m;

	make_inode_event(&m, getpid(), path, generation);
	m.event.page_offset = begin;
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_int_equal(dso_opener__enter(o, &m.event, &inner), 1);
	memcpy(inside, &inner, inner.event.header.size);
}

/* Without a build-id, the archive's device and generation tell libraries apart, as well as its inode. */
static void test_members_of_others(void **state)
{
	char *path = in_directory("other.apk");
	struct dso_opener *o = open_opener();
	struct mapping inside, other;

	(void)state;
	see_inside(o, path, make_small_archive(path, false), 3, &inside);
	assert_int_equal(inside.event.build_id_size, 0);
	assert_true(find(o, &inside) >= 0);
	other = inside;
	other.event.major++;
	assert_int_equal(find(o, &other), -1);
	other = inside;
	other.event.minor++;
	assert_int_equal(find(o, &other), -1);
	other = inside;
	other.event.inode_generation++;
	assert_int_equal(find(o, &other), -1);
	other = inside;
	other.event.inode++;
	assert_int_equal(find(o, &other), -1);
	dso_opener__free(o);
	unlink(path);
	free(path);
}

/* A library that is in two archives is found in the second when the first was written over. */
static void test_member_of_two(void **state)
{
	char *first = in_directory("first.apk"), *second = in_directory("second.apk");
	struct dso_opener *o = open_opener();
	struct mapping inside, again;

	(void)state;
	see_inside(o, first, make_small_archive(first, true), 0, &inside);
	see_inside(o, second, make_small_archive(second, true), 0, &again);
	assert_true(find(o, &inside) >= 0);
	assert_int_equal(truncate(first, 100), 0);
	assert_true(find(o, &inside) >= 0);
	assert_int_equal(truncate(second, 100), 0);
	assert_int_equal(find(o, &inside), -1);
	dso_opener__free(o);
	unlink(first);
	unlink(second);
	free(first);
	free(second);
}

/* ---- without processes ----------------------------------------------------------------------- */

static void test_by_identity(void **state)
{
	struct dso_opener *o = open_opener();
	char *text = in_directory("text");
	uint64_t base;
	struct dso_identity identity;
	uint8_t id[BUILD_ID_SIZE];
	struct mapping m;
	int fd;

	(void)state;
	make_perf_event(&m, 0, PROGRAM, PROGRAM);
	identity = identity_of(&m);
	assert_int_equal(dso_opener__find(o, &identity, NULL, &base), -1);
	fd = dso_opener__open_by_identity(o, &identity, &base);
	assert_true(fd >= 0);
	assert_int_equal(dso_opener__open_by_identity(o, &identity, &base), fd);
	assert_int_equal(dso_opener__find(o, &identity, NULL, &base), fd);
	make_perf_event(&m, 0, OTHER, "/proc/self/exe");
	identity = identity_of(&m);
	assert_int_equal(dso_opener__open_by_identity(o, &identity, &base), -ESTALE);
	identity.path = "/nonexistent";
	assert_int_equal(dso_opener__open_by_identity(o, &identity, &base), -ENOENT);
	identity.path = "[vdso]";
	assert_int_equal(dso_opener__open_by_identity(o, &identity, &base), -ENOENT);
	identity.path = NULL;
	assert_int_equal(dso_opener__open_by_identity(o, &identity, &base), -ENOENT);

	identity = (struct dso_identity){.path = "[vdso]"};
	fd = dso_opener__open_by_identity(o, &identity, &base);
	assert_true(fd >= 0);
	identity.build_id_size = build_id_of(fd, id);
	identity.build_id = id;
	assert_int_equal(dso_opener__open_by_identity(o, &identity, &base), fd);

	write_text(text, "text");
	make_inode_event(&m, 0, text, 3);
	identity = identity_of(&m);
	fd = dso_opener__open_by_identity(o, &identity, &base);
	assert_true(fd >= 0);
	assert_int_equal(dso_opener__find(o, &identity, NULL, &base), fd);
	identity.inode++;
	assert_int_equal(dso_opener__open_by_identity(o, &identity, &base), -ESTALE);
	identity.inode = 0;
	assert_int_equal(dso_opener__open_by_identity(o, &identity, &base), -ENOENT);
	dso_opener__free(o);
	free(text);
}

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	char command[300];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_this_process),
		cmocka_unit_test(test_perf_and_proc_agree),
		cmocka_unit_test(test_deleted_and_replaced_programs),
		cmocka_unit_test(test_processes_that_are_gone),
		cmocka_unit_test(test_another_root),
		cmocka_unit_test(test_what_is_no_file),
		cmocka_unit_test(test_files_that_cannot_be_read),
		cmocka_unit_test(test_memory_files),
		cmocka_unit_test(test_one_identity_whoever_tells),
		cmocka_unit_test(test_files_that_are_written_over),
		cmocka_unit_test(test_few_descriptors),
		cmocka_unit_test(test_archive),
		cmocka_unit_test(test_members_of_others),
		cmocka_unit_test(test_member_of_two),
		cmocka_unit_test(test_by_identity),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
