/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening what is mapped: real processes whose files are deleted, replaced, in another root or gone
 * with them, and events like perf's where no process is needed.
 */
#include <sys/auxv.h>

#include "base/clocks.h"
#include "dso_support.h"

/* ---- live processes -------------------------------------------------------------------------- */

TEST(files_of_this_process_are_right_and_opened_once)
{
	struct seen seen = {.opener = open_opener()};
	struct dso_opener_stats stats;
	struct mapping *m;
	uint64_t opens;
	uint8_t id[BUILD_ID_SIZE];

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

/* Of a file that stands for its build-id the state is read once a second, of a user's file at each later mapping. */
TEST(only_user_files_are_checked_at_each_mapping)
{
	struct dso_opener *o = open_opener();
	struct mapping mapping, again, original;
	struct dso_opener_stats before, after;

	if (geteuid() != 0)
		skip();
	for (int users = 0; users < 2; users++) {
		char *own = in_directory(users ? "users" : "roots");

		copy_file(PROGRAM, own);
		assert_int_equal(chmod(own, 0755) | chown(own, users * 65534, users * 65534), 0);
		make_perf_event(&mapping, getpid(), own, own);
		again = original = mapping;
		assert_int_equal(see(o, &mapping), FILE_STATE_RIGHT);
		/* the first look at its state */
		again.event.header.time = monotonic_ns();
		assert_int_equal(see(o, &again), FILE_STATE_RIGHT);
		assert_int_equal(truncate(own, 1 << 24), 0);
		dso_opener__stats(o, &before);
		again = original;
		again.event.header.time = monotonic_ns();
		assert_int_equal(see(o, &again), FILE_STATE_RIGHT);
		dso_opener__stats(o, &after);
		assert_int_equal(after.opens - before.opens, users);
		again = original;
		again.event.header.time = monotonic_ns() + 1000000001;
		assert_int_equal(see(o, &again), FILE_STATE_RIGHT);
		dso_opener__stats(o, &after);
		assert_int_equal(after.opens - before.opens, 1);
		unlink(own);
	}
	dso_opener__free(o);
}

/* Two files say that they are one: only the administrator's word counts for others. */
TEST(the_build_id_of_user_files_is_unshared)
{
	char *own = in_directory("own"), *forged = in_directory("forged");
	struct mapping first, second, again, original;
	struct dso_opener *o = open_opener();
	struct stat st[2], seen[2];

	if (geteuid() != 0)
		skip();
	copy_file(PROGRAM, own);
	copy_file(PROGRAM, forged);
	assert_int_equal(chmod(own, 0755), 0);
	assert_int_equal(chown(forged, 65534, 65534), 0);
	make_perf_event(&first, getpid(), forged, forged);
	make_perf_event(&second, getpid(), own, own);
	again = original = first;
	assert_int_equal(see(o, &first), FILE_STATE_RIGHT);
	assert_int_equal(see(o, &second), FILE_STATE_RIGHT);
	assert_true(first.event.header.flags & EVENT_UNSHARED);
	assert_true(first.event.inode != 0);
	assert_false(second.event.header.flags & EVENT_UNSHARED);
	assert_int_equal(fstat(find(o, &first), &seen[0]) | fstat(find(o, &second), &seen[1]), 0);
	assert_int_equal(stat(forged, &st[0]) | stat(own, &st[1]), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(seen[i].st_ino, st[i].st_ino);
	/* once more it is the same, and written over it is another */
	assert_int_equal(see(o, &again), FILE_STATE_RIGHT);
	assert_int_equal(again.event.inode_generation, first.event.inode_generation);
	assert_int_equal(truncate(forged, st[0].st_size + 1), 0);
	again = original;
	again.event.header.time = monotonic_ns(); /* it is mapped afterwards */
	assert_int_equal(see(o, &again), FILE_STATE_RIGHT);
	assert_int_not_equal(again.event.inode_generation, first.event.inode_generation);
	dso_opener__free(o);
	unlink(own);
	unlink(forged);
}

TEST(deleted_and_replaced_programs_are_still_found)
{
	struct seen seen = {.opener = open_opener()};
	char *gone = in_directory("gone"), *replaced = in_directory("replaced");
	char *new = in_directory("new");
	pid_t pid;

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
}

TEST(files_of_ended_processes_are_found_if_they_match)
{
	struct dso_opener *o = open_opener();
	char *replaced = in_directory("elsewhere");
	pid_t pid = start_program(PROGRAM);
	struct mapping m;

	copy_file(OTHER, replaced);
	stop_program(pid);
	make_perf_event(&m, pid, PROGRAM, PROGRAM);
	assert_int_equal(see_child(o, &m, getpid()), FILE_STATE_RIGHT);
	expect_program(o, &m, PROGRAM);
	dso_opener__free(o);

	o = open_opener(); /* without knowing the parent: by our own root */
	make_perf_event(&m, pid, PROGRAM, PROGRAM);
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	make_perf_event(&m, pid, replaced, "/proc/self/exe");
	assert_int_equal(see(o, &m), FILE_STATE_REPLACED);
	assert_true(find(o, &m) < 0);
	make_perf_event(&m, pid, "/nonexistent/program", "/proc/self/exe");
	assert_int_equal(see(o, &m), FILE_STATE_MISSING);
	assert_true(find(o, &m) < 0);
	make_inode_event(&m, pid, replaced, 0);
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_true(m.event.build_id_size > 0);
	make_inode_event(&m, pid, replaced, 0);
	m.event.inode++;
	assert_int_equal(see(o, &m), FILE_STATE_REPLACED);
	dso_opener__free(o);
}

TEST(a_file_that_was_seen_is_known_by_its_numbers_when_a_process_has_ended)
{
	struct dso_opener *o = open_opener();
	char *path = in_directory("seen-before");
	pid_t pid = start_program(PROGRAM);
	struct mapping m, gone;

	stop_program(pid);
	copy_file(PROGRAM, path);
	make_inode_event(&m, getpid(), path, 77);
	make_inode_event(&gone, pid, path, 77);
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	unlink(path); /* it is found nowhere else */
	gone.event.inode_generation = 78;
	assert_int_equal(see(o, &gone), FILE_STATE_MISSING);
	gone.event.inode_generation = 77;
	assert_int_equal(see(o, &gone), FILE_STATE_RIGHT);
	assert_int_equal(gone.event.file, m.event.file);
	dso_opener__free(o);
}

TEST(files_are_found_in_the_root_of_ended_processes)
{
	struct dso_opener *o = open_opener();
	char *root = in_directory("root"), *program = in_directory("root/program");
	struct file_answer answer;
	struct stat st, found;
	struct mapping m;
	pid_t pid;

	if (geteuid() != 0) {
		print_message("chroot needs privileges: not tested\n");
		skip();
	}
	assert_int_equal(mkdir(root, 0755), 0);
	copy_file(PROGRAM, program);
	pid = start_in(root);
	make_perf_event(&m, pid, "/program", program);
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	stop_program(pid);
	answer = request(o, &m);
	assert_true(answer.fd >= 0 && answer.root_fd >= 0);
	assert_int_equal(fstat(answer.fd, &found), 0);
	assert_int_equal(stat(program, &st), 0);
	assert_int_equal(found.st_ino, st.st_ino);
	assert_int_equal(fstat(answer.root_fd, &found), 0);
	assert_int_equal(stat(root, &st), 0);
	assert_int_equal(found.st_ino, st.st_ino);
	/* a later process of that root that is gone already: the root is still known */
	write_text(program, "no program");
	m.event.build_id_size = 0;
	make_inode_event(&m, pid, program, 0);
	snprintf(m.event.path, sizeof(m.path), "/program");
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	dso_opener__free(o);
}

/* ---- kinds of files -------------------------------------------------------------------------- */

TEST(mappings_without_a_file_or_identity_open_nothing)
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

TEST(a_rejected_file_has_the_reason_as_state)
{
	struct dso_opener *o = open_opener();
	char *fifo = in_directory("fifo2"), *huge = in_directory("huge");
	char *loop = in_directory("loop"), *folder = in_directory("folder");
	struct mapping m;
	int fd;

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

/* As mappings on overlayfs: with an inode that stat does not have. */
static enum file_state see_other_inode(const char *path, const void *page, uint16_t flags,
				       dev_t device)
{
	struct dso_opener *o = open_opener();
	struct mapping m;
	enum file_state state;

	make_event(&m, getpid(), path);
	m.event.header.flags |= flags;
	m.event.major = major(device);
	m.event.minor = minor(device);
	m.event.start = (uintptr_t)page;
	m.event.length = 4096;
	m.event.inode = UINT32_MAX;
	state = see(o, &m);
	dso_opener__free(o);
	return state;
}

static enum file_state see_as_on_overlayfs(const char *path, const void *page)
{
	return see_other_inode(path, page, EVENT_FROM_PROC, 0);
}

static void *map_page(const char *path, void *at)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *page = mmap(at, 4096, PROT_READ, MAP_PRIVATE | (at ? MAP_FIXED : 0), fd, 0);

	assert_true(page != MAP_FAILED);
	close(fd);
	return page;
}

TEST(a_file_mapped_since_the_mappings_were_read_is_rejected)
{
	char *read = in_directory("read"), *deleted = in_directory("read (deleted)");
	char *later = in_directory("read-later");
	struct stat st;
	void *page;

	if (geteuid() != 0)
		skip(); /* map_files needs privileges */
	copy_file(PROGRAM, read);
	copy_file(OTHER, later);
	page = map_page(read, NULL);
	assert_int_equal(stat(read, &st), 0);
	assert_int_equal(see_other_inode(read, page, 0, 0), FILE_STATE_RIGHT);
	assert_int_equal(see_other_inode(read, page, 0, st.st_dev), FILE_STATE_REPLACED);
	assert_int_equal(see_as_on_overlayfs(read, page), FILE_STATE_RIGHT);
	assert_int_equal(see_as_on_overlayfs(deleted, page), FILE_STATE_REPLACED);
	unlink(read);
	assert_int_equal(see_as_on_overlayfs(deleted, page), FILE_STATE_RIGHT);
	assert_int_equal(see_as_on_overlayfs(read, page), FILE_STATE_RIGHT);
	map_page(later, page);
	assert_int_equal(see_as_on_overlayfs(deleted, page), FILE_STATE_REPLACED);
	assert_int_equal(see_as_on_overlayfs(read, page), FILE_STATE_REPLACED);
	assert_int_equal(see_other_inode(read, page, 0, 0), FILE_STATE_REPLACED);
	munmap(page, 4096);
}

TEST(a_memfd_is_opened_only_if_it_is_elf)
{
	if (geteuid() != 0) {
		print_message("map_files needs privileges: not tested\n");
		skip();
	}
	expect_memfd(PROGRAM, FILE_STATE_RIGHT);
	expect_memfd("/proc/self/cmdline", FILE_STATE_NONE);
}

/* ---- files without a build-id ---------------------------------------------------------------- */

TEST(perf_and_proc_events_of_an_inode_share_identity)
{
	struct dso_opener *o = open_opener();
	char *path = in_directory("plain");
	struct mapping m;
	int fd;

	write_text(path, "no ELF file");
	make_inode_event(&m, getpid(), path, 77); /* perf has the generation */
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_int_equal(m.event.build_id_size, 0);
	assert_int_equal(m.event.inode_generation, 77);
	fd = find(o, &m);
	assert_true(fd >= 0);
	make_inode_event(&m, getpid(), path, 0); /* /proc does not */
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_int_equal(m.event.inode_generation, 77);
	assert_int_equal(find(o, &m), fd);
	/* the suffix is no part of the identity */
	strcat(m.event.path, " (deleted)");
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_int_equal(find(o, &m), fd);
	assert_int_equal(opens_of(o), 1);
	make_inode_event(&m, getpid(), path, 78);
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_int_equal(opens_of(o), 2);
	dso_opener__free(o);

	o = open_opener(); /* the other way round */
	make_inode_event(&m, getpid(), path, 0);
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	make_inode_event(&m, getpid(), path, 77);
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_int_equal(m.event.inode_generation, 0);
	assert_int_equal(opens_of(o), 1);
	dso_opener__free(o);
}

TEST(an_overwritten_file_is_not_found_for_old_mappings)
{
	struct dso_opener *o = open_opener();
	char *path = in_directory("changing");
	struct mapping m, program;
	char *data;
	size_t size;
	int fd;

	write_text(path, "one");
	make_inode_event(&m, getpid(), path, 0);
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_true(find(o, &m) >= 0);
	write_text(path, "three");
	assert_true(find(o, &m) < 0); /* that is not what was mapped */
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
	assert_true(find(o, &program) < 0);
	/* but if the true one turns up again, it is taken */
	make_recorded_event(&m, PROGRAM, PROGRAM);
	assert_true(find_recorded(o, &m).fd >= 0);
	assert_true(find(o, &program) >= 0);
	free(data);
	dso_opener__free(o);
}

/* ---- without processes ----------------------------------------------------------------------- */

TEST(files_are_found_by_identity_without_a_process)
{
	struct dso_opener *o = open_opener();
	char *text = in_directory("text");
	struct mapping m;
	int fd;

	make_recorded_event(&m, PROGRAM, PROGRAM);
	assert_int_equal(find(o, &m), -ENOENT);
	fd = find_recorded(o, &m).fd;
	assert_true(fd >= 0);
	assert_int_equal(find_recorded(o, &m).fd, fd);
	assert_int_equal(find(o, &m), fd);
	make_recorded_event(&m, OTHER, "/proc/self/exe");
	assert_int_equal(find_recorded(o, &m).fd, -ESTALE);
	assert_int_equal(m.event.file, 0);
	strcpy(m.event.path, "/nonexistent");
	assert_int_equal(find_recorded(o, &m).fd, -ENOENT);
	strcpy(m.event.path, "[vdso]");
	assert_int_equal(find_recorded(o, &m).fd, -ENOENT);
	strcpy(m.event.path, "");
	assert_int_equal(find_recorded(o, &m).fd, -ENOENT);

	make_event(&m, 0, "[vdso]");
	assert_int_equal(find_recorded(o, &m).fd, -ENOENT); /* it may be another kernel's */
	fd = memfd_create("vdso", MFD_CLOEXEC);
	assert_int_equal(write_full(fd, (const void *)getauxval(AT_SYSINFO_EHDR), 4096), 0);
	m.event.build_id_size = build_id_of(fd, m.event.build_id);
	close(fd);
	m.event.header.flags |= EVENT_BUILD_ID;
	assert_true(find_recorded(o, &m).fd >= 0);

	write_text(text, "text");
	make_inode_event(&m, 0, text, 3);
	fd = find_recorded(o, &m).fd;
	assert_true(fd >= 0);
	assert_int_equal(find(o, &m), fd);
	m.event.inode++;
	assert_int_equal(find_recorded(o, &m).fd, -ESTALE);
	m.event.inode = 0;
	assert_int_equal(find_recorded(o, &m).fd, -ENOENT);
	dso_opener__free(o);
}

ALL_TESTS_WITH(make_directory, remove_directory);
