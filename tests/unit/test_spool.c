/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The spool: what was put comes out again, in order and byte for byte, after a crash at any moment; caps; a disk that takes
 * no more, and takes it again; another process in the same directory.
 */
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

#include "agent/spool_file.h"
#include "unit/spool_support.h"

/* ---- what it is for -------------------------------------------------------------------------- */

TEST(windows_come_out_in_order_and_unchanged)
{
	struct spool *s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	struct spool_window *w;
	struct stat st;

	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(put(s, i, 1 + i % 3, 100 * i), 0);
	assert_int_equal(stats_of(s).windows, 20);
	assert_int_equal(count_files(NULL), 20);
	assert_int_equal(stat(directory, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	/* given back, it is the oldest again */
	assert_int_equal(spool__take(s, &w), 0);
	assert_int_equal(number_of(w), 0);
	assert_int_equal(stats_of(s).windows, 20);
	spool__give_back(s, w, false);
	for (uint64_t i = 0; i < 10; i++)
		expect_next(s, i, 1 + i % 3, 100 * i);
	spool__free(s);
	/* after a restart as well */
	s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	assert_int_equal(put(s, 20, 1, 10), 0);
	for (uint64_t i = 10; i < 20; i++)
		expect_next(s, i, 1 + i % 3, 100 * i);
	expect_next(s, 20, 1, 10);
	expect_empty(s);
	assert_int_equal(count_files(NULL), 0);
	assert_int_equal(stats_of(s).strange, 0);
	spool__free(s);
}

TEST(progress_of_requests_outlasts_a_restart)
{
	struct spool *s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	struct spool_window *w;

	assert_int_equal(put(s, 7, 4, 1000), 0);
	assert_int_equal(spool__take(s, &w), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(spool_file__state(w->file, i), REQUEST_UNSENT);
	spool_file__set_state(w->file, 0, REQUEST_ACCEPTED);
	spool_file__set_state(w->file, 1, REQUEST_DROPPED + 3);
	spool_file__set_state(w->file, 2, REQUEST_UNSURE);
	spool__give_back(s, w, false);
	spool__free(s);
	s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	assert_int_equal(spool__take(s, &w), 0);
	assert_int_equal(spool_file__state(w->file, 0), REQUEST_ACCEPTED);
	assert_int_equal(spool_file__state(w->file, 1), REQUEST_DROPPED + 3);
	assert_int_equal(spool_file__state(w->file, 2), REQUEST_UNSURE);
	assert_int_equal(spool_file__state(w->file, 3), REQUEST_UNSENT);
	for (size_t i = 0; i < 4; i++)
		check_request(w, i, 7, 1000);
	spool__give_back(s, w, true);
	expect_empty(s);
	spool__free(s);
}

/* ---- caps ------------------------------------------------------------------------------------ */

TEST(the_oldest_windows_make_room_for_new_ones)
{
	struct spool *s = open_spool(50000, 3000 * NS_PER_SECOND);
	struct spool_window *w;

	for (uint64_t i = 0; i < 10; i++) {
		assert_int_equal(put(s, i, 1, 9500), 0);
		assert_true(stats_of(s).bytes <= 50000);
	}
	assert_int_equal(stats_of(s).no_room, 5);
	assert_int_equal(count_files(NULL), 5);
	/* what is under way stays */
	assert_int_equal(spool__take(s, &w), 0);
	assert_int_equal(number_of(w), 5);
	assert_int_equal(put(s, 10, 1, 9500), 0);
	check_request(w, 0, 5, 9500);
	spool__give_back(s, w, false);
	assert_int_equal(stats_of(s).no_room, 6);
	/* one that is larger than all */
	assert_int_equal(put(s, 11, 1, 50001), -ENOSPC);
	assert_int_equal(stats_of(s).no_room, 7);
	assert_int_equal(stats_of(s).error, 0);
	expect_next(s, 5, 1, 9500);
	for (uint64_t i = 7; i < 11; i++)
		expect_next(s, i, 1, 9500);
	expect_empty(s);
	spool__free(s);
	/* a smaller cap than before */
	s = open_spool(50000, 3000 * NS_PER_SECOND);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(put(s, i, 1, 9500), 0);
	spool__free(s);
	s = open_spool(20000, 3000 * NS_PER_SECOND);
	assert_int_equal(stats_of(s).no_room, 3);
	expect_next(s, 3, 1, 9500);
	spool__free(s);
}

TEST(windows_that_are_too_old_are_dropped)
{
	struct spool *s = open_spool(MEGABYTE, 100 * NS_PER_SECOND);
	struct sealed_window w;

	w = make_window(1, 1, 10);
	w.start_realtime -= 99 * NS_PER_SECOND;
	assert_int_equal(spool__put(s, &w), 0);
	w = make_window(2, 1, 10);
	w.start_realtime -= 150 * NS_PER_SECOND;
	assert_int_equal(spool__put(s, &w), 0);
	w = make_window(3, 1, 10); /* of a clock that was set back since */
	w.start_realtime += 1000 * NS_PER_SECOND;
	assert_int_equal(spool__put(s, &w), 0);
	w = make_window(4, 1, 10); /* of one that began in 1970 */
	w.start_realtime = 5;
	assert_int_equal(spool__put(s, &w), 0);
	expect_next(s, 1, 1, 10);
	expect_next(s, 3, 1, 10);
	expect_empty(s);
	assert_int_equal(stats_of(s).too_old, 2);
	assert_int_equal(count_files(NULL), 0);
	spool__free(s);
}

TEST(without_a_directory_the_newest_windows_stay_in_memory)
{
	const struct spool_options options = {.bytes = 1000, .age = 100 * NS_PER_SECOND};
	struct spool *s;

	assert_int_equal(spool__new(&options, &s, NULL), 0);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(put(s, i, 2, 5000), 0);
	assert_int_equal(stats_of(s).no_room, 10 - SPOOL_MEMORY_WINDOWS);
	assert_int_equal(stats_of(s).error, 0); /* nobody wanted a disk */
	for (uint64_t i = 10 - SPOOL_MEMORY_WINDOWS; i < 10; i++)
		expect_next(s, i, 2, 5000);
	expect_empty(s);
	assert_int_equal(put(s, 11, 1, 10), 0);
	spool__free(s);
}

/* ---- two processes --------------------------------------------------------------------------- */

static int open_in_child(void)
{
	const struct spool_options options = {.directory = directory, .bytes = 1000, .age = 1};
	pid_t pid = fork();
	int status;

	if (!pid) {
		struct failure failure = {};
		struct spool *s;
		int err = spool__new(&options, &s, &failure);

		_exit(err == -EBUSY && strstr(failure.what, directory) && failure.remedy[0] ? 77
											    : -err);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(a_directory_has_one_spool_at_a_time)
{
	struct spool *s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	pid_t sleeping;

	assert_int_equal(open_in_child(), 77);
	/* a child of ours that is still there does not keep it */
	sleeping = fork();
	if (!sleeping) {
		pause();
		_exit(0);
	}
	spool__free(s);
	assert_int_equal(open_in_child(), 0);
	kill(sleeping, SIGKILL);
	assert_int_equal(waitpid(sleeping, NULL, 0), sleeping);
}

/* ---- a disk that fails ----------------------------------------------------------------------- */

TEST(windows_stay_in_memory_while_the_disk_is_full)
{
	struct spool *s;
	char path[512];
	char *filling = calloc(1, 200 * 1024);

	assert_int_equal(mkdir(directory, 0700), 0);
	if (mount("none", directory, "tmpfs", 0, "size=256k,mode=0700")) {
		print_message("mount: %s (needs CAP_SYS_ADMIN)\n", strerror(errno));
		skip();
	}
	s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	assert_int_equal(put(s, 0, 1, 20000), 0);
	path_in("filling", path);
	write_bytes(path, filling, 200 * 1024);
	for (uint64_t i = 1; i <= 6; i++)
		assert_int_equal(put(s, i, 1, 60000), 0);
	assert_int_equal(stats_of(s).error, -ENOSPC);
	assert_int_equal(stats_of(s).windows, 1 + SPOOL_MEMORY_WINDOWS);
	assert_int_equal(stats_of(s).no_room, 2); /* 1 and 2, the oldest in memory */
	assert_int_equal(count_files(NULL), 2);	  /* nothing half written */
	expect_next(s, 0, 1, 20000);
	expect_next(s, 3, 1, 60000);
	/* it works again: those in memory go there with the next one, in order */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(put(s, 7, 1, 100), 0);
	assert_int_equal(stats_of(s).error, 0);
	assert_int_equal(count_files(NULL), 4);
	spool__free(s);
	s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	for (uint64_t i = 4; i <= 6; i++)
		expect_next(s, i, 1, 60000);
	expect_next(s, 7, 1, 100);
	expect_empty(s);
	spool__free(s);
	free(filling);
	assert_int_equal(umount(directory), 0);
}

TEST(a_read_only_disk_gets_its_windows_once_writable)
{
	struct spool *s;

	assert_int_equal(mkdir(directory, 0700), 0);
	if (mount("none", directory, "tmpfs", 0, "size=256k,mode=0700")) {
		print_message("mount: %s (needs CAP_SYS_ADMIN)\n", strerror(errno));
		skip();
	}
	s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	assert_int_equal(put(s, 1, 1, 1000), 0);
	spool__free(s);
	assert_int_equal(mount("none", directory, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	/* windows are kept in memory, until it changes */
	s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	assert_int_equal(stats_of(s).error, -EROFS);
	assert_int_equal(put(s, 3, 1, 1000), 0);
	assert_int_equal(stats_of(s).windows, 1);
	assert_int_equal(mount("none", directory, NULL, MS_REMOUNT, NULL), 0);
	assert_int_equal(put(s, 4, 1, 1000), 0);
	assert_int_equal(count_files(NULL), 3);
	spool__free(s);
	/* it changes, and nothing is put any more */
	assert_int_equal(mount("none", directory, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	assert_int_equal(put(s, 5, 1, 1000), 0);
	assert_int_equal(put(s, 6, 1, 1000), 0);
	assert_int_equal(mount("none", directory, NULL, MS_REMOUNT, NULL), 0);
	spool__free(s);
	s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	expect_next(s, 1, 1, 1000); /* what was there is seen now, and is the oldest */
	expect_next(s, 3, 1, 1000);
	for (uint64_t i = 4; i <= 6; i++)
		expect_next(s, i, 1, 1000);
	expect_empty(s);
	spool__free(s);
	assert_int_equal(umount(directory), 0);
}

TEST(a_deleted_directory_is_recreated_for_the_next_window)
{
	struct spool *s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);

	assert_int_equal(put(s, 1, 1, 1000), 0);
	run("rm -rf %s", directory);
	assert_int_equal(put(s, 2, 1, 1000), 0);
	assert_int_equal(stats_of(s).error, 0);
	assert_int_equal(count_files(NULL), 1);
	expect_next(s, 2, 1, 1000);
	expect_empty(s);
	assert_int_equal(stats_of(s).strange, 1);
	spool__free(s);
}

/* A file size limit stands for a disk that fails at any byte. */
TEST(a_write_cut_short_leaves_no_file)
{
	struct rlimit saved, limit;
	struct sealed_window w = make_window(1, 2, 150);
	struct spool *s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	struct spool_file *file;
	uint64_t size;

	assert_int_equal(spool_file__pack(&w, &file), 0);
	size = spool_file__head(file)->file_size;
	spool_file__free(file);
	sealed_window__fini(&w);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &saved);
	for (uint64_t at = 0; at < size; at += 13) {
		limit = (struct rlimit){at, saved.rlim_max};
		setrlimit(RLIMIT_FSIZE, &limit);
		assert_int_equal(put(s, at, 2, 150), 0);
		setrlimit(RLIMIT_FSIZE, &saved);
		assert_int_equal(stats_of(s).error, -EFBIG);
		assert_int_equal(count_files(NULL), 0);
	}
	assert_int_equal(stats_of(s).windows, SPOOL_MEMORY_WINDOWS);
	spool__free(s); /* takes those in memory to the disk */
	assert_int_equal(count_files(NULL), SPOOL_MEMORY_WINDOWS);
}

/* ---- a crash at every step ------------------------------------------------------------------- */

#define CRASH_WINDOWS 3

/* The output of a process before it was killed. */
struct reported {
	volatile uint32_t put, accepted, deleted;
	volatile uint32_t began; /* requests that were marked before they were sent */
};

/* Three windows of two requests are put, and two of them sent. */
static void put_and_send(struct reported *reported)
{
	const struct spool_options options = {
		.directory = directory, .bytes = MEGABYTE, .age = 3000 * NS_PER_SECOND};
	struct spool *s;

	if (spool__new(&options, &s, NULL))
		_exit(1);
	for (uint64_t i = 0; i < CRASH_WINDOWS; i++) {
		struct sealed_window w = make_window(i, 2, 100);

		if (spool__put(s, &w))
			_exit(2);
		reported->put++;
	}
	for (int i = 0; i < 2; i++) {
		struct spool_window *w;

		if (spool__take(s, &w))
			_exit(3);
		for (size_t j = 0; j < 2; j++) {
			spool_file__set_state(w->file, j, REQUEST_UNSURE);
			reported->began++;
			spool_file__set_state(w->file, j, REQUEST_ACCEPTED);
			reported->accepted++;
		}
		spool__give_back(s, w, true);
		reported->deleted++;
	}
	_exit(0);
}

/* Killed before or after its system call number `at`. Did it get so far? */
static bool crash_at(struct reported *reported, int at)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		put_and_send(reported);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (int i = 0; i < at; i++) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status)) {
			assert_int_equal(WEXITSTATUS(status), 0);
			return false;
		}
		assert_true(WIFSTOPPED(status));
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return true;
}

static void check_after_crash(const struct reported *reported)
{
	struct spool *s = open_spool(MEGABYTE, 3000 * NS_PER_SECOND);
	uint64_t next = reported->deleted;
	struct spool_window *w;
	uint32_t accepted = reported->deleted * 2, unsure = 0;

	assert_int_equal(stats_of(s).strange, 0);
	while (!spool__take(s, &w)) {
		uint64_t number = number_of(w);

		/* in order; one that was just being deleted may be gone */
		assert_true(number == next || (number == next + 1 && next == reported->deleted));
		if (number == next + 1)
			accepted += 2;
		next = number + 1;
		for (size_t i = 0; i < 2; i++) {
			check_request(w, i, number, 100);
			accepted += spool_file__state(w->file, i) == REQUEST_ACCEPTED;
			unsure += spool_file__state(w->file, i) == REQUEST_UNSURE;
		}
		spool__give_back(s, w, true);
	}
	/* each that was put, and one more if it was just being put */
	assert_in_range(next, reported->put, reported->put + 1);
	/* nothing that was accepted is sent again, but for one that is known to be unsure */
	assert_in_range(accepted, reported->accepted, reported->accepted + 1);
	assert_in_range(accepted + unsure, reported->began, reported->began + 1);
	assert_true(unsure <= 1);
	spool__free(s);
	assert_int_equal(count_files(NULL), 0);
}

TEST(a_crash_at_any_step_loses_no_window)
{
	struct reported *reported = mmap(NULL, sizeof(*reported), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int at;

	assert_ptr_not_equal(reported, MAP_FAILED);
	for (at = 1; crash_at(reported, at); at++) {
		assert_true(at < 5000);
		check_after_crash(reported);
		*reported = (struct reported){};
	}
	assert_int_equal(reported->deleted, 2);
	assert_true(at > 100); /* it was stopped where it works */
	munmap(reported, sizeof(*reported));
}

EACH_TEST_WITH(fresh_directory, NULL);
ALL_TESTS_WITH(make_scratch, remove_scratch);
