/* SPDX-License-Identifier: BSD-2-Clause */
/* Root directories of processes, which come and go. */
#include "base/clocks.h"

#include "dso_caps_support.h"

#include "tenants/tenant_user.h"

/* A process in a root of its own, where /program has this number. */
static pid_t start_in_root(uint32_t root_number, uint32_t program_number)
{
	char *root = numbered("root", root_number), *program;
	pid_t pid;

	mkdir(root, 0755);
	assert_true(asprintf(&program, "%s/program", root) > 0);
	make_program(program, program_number);
	pid = start_in(root);
	free(program);
	return pid;
}

static void see_in_root(struct dso_opener *o, uint32_t root_number, uint32_t program_number,
			uint64_t time, struct mapping *m)
{
	pid_t pid = start_in_root(root_number, program_number);
	char *root = numbered("root", root_number), *program;

	assert_true(asprintf(&program, "%s/program", root) > 0);
	make_perf_event(m, pid, "/program", program);
	m->event.header.time = time;
	assert_int_equal(see(o, m), FILE_STATE_RIGHT);
	stop_program(pid);
	free(program);
}

static bool has_root(struct dso_opener *o, const struct mapping *m, uint32_t root_number)
{
	char *root = numbered("root", root_number);
	struct file_answer file = request(o, m);
	struct stat st, expected;

	assert_true(file.fd >= 0);
	assert_int_equal(stat(root, &expected), 0);
	return file.root_fd >= 0 && !fstat(file.root_fd, &st) && st.st_ino == expected.st_ino;
}

static bool may_chroot(void)
{
	if (geteuid() == 0)
		return true;
	print_message("chroot needs privileges: not tested\n");
	return false;
}

/* More roots than there is room for come and go: there is always room for the next. */
TEST(roots_used_least_recently_make_room_for_others)
{
	struct dso_opener *o = open_capped((struct dso_opener_options){.roots_max = 4});
	uint64_t time = monotonic_ns();
	static struct mapping m[MANY];

	if (!may_chroot()) {
		close_opener(o);
		skip();
	}
	for (uint32_t i = 0; i < MANY; i++) {
		see_in_root(o, i, 2000 + i, time += 2 * MINUTE, &m[i]);
		assert_true(has_root(o, &m[i], i));
		assert_true(stats_of(o).roots <= 4);
	}
	assert_int_equal(stats_of(o).files, MANY);
	for (uint32_t i = 0; i < MANY; i++) { /* the files are open still */
		assert_int_equal(has_root(o, &m[i], i), i >= MANY - 3); /* and one is ours */
		assert_int_equal(request(o, &m[i]).root_fd >= 0, i >= MANY - 3);
	}
	/* a process of a root that had to go: its file has one again */
	see_in_root(o, 0, 2000, time += 2 * MINUTE, &m[0]);
	assert_true(has_root(o, &m[0], 0));
	/* the root of a file that is mapped all the time stays, whoever maps it */
	for (uint32_t i = 1; i < FEW; i++) {
		m[0].event.pid = m[0].event.tid = 0;
		m[0].event.header.time = time += 2 * MINUTE;
		assert_int_equal(see(o, &m[0]), FILE_STATE_RIGHT);
		see_in_root(o, i, 2000 + i, time, &m[i]);
	}
	assert_true(has_root(o, &m[0], 0));
	assert_false(has_root(o, &m[1], 1));
	close_opener(o);
}

/* What no image refers to is closed, since it keeps a mount busy. */
TEST(roots_that_no_image_refers_to_are_closed)
{
	struct dso_opener *o = open_capped((struct dso_opener_options){});
	uint64_t time = monotonic_ns();
	struct mapping m, closed, text;
	size_t fds;

	if (!may_chroot()) {
		close_opener(o);
		skip();
	}
	see_in_root(o, 0, 2000, time, &m);
	fds = count_fds();
	for (uint32_t i = 1; i < FEW; i++) {
		char *path;
		pid_t pid = start_in_root(i, 2000); /* the same program */

		assert_true(asprintf(&path, "%s/root-%u/text", directory, i) > 0);
		write_text(path, "text");
		make_inode_event(&text, pid, path, 0);
		snprintf(text.event.path, sizeof(text.path), "/program");
		text.event.header.time = time;
		assert_int_equal(see(o, &text), FILE_STATE_REPLACED); /* not its inode */
		stop_program(pid);
		free(path);
	}
	assert_int_equal(stats_of(o).roots, FEW + 1);
	assert_int_equal(count_fds(), fds + FEW - 1);
	see_program(o, 0, time += MINUTE / 2, &closed);
	assert_int_equal(stats_of(o).roots, FEW + 1);
	see_program(o, 0, time += 2 * MINUTE, &closed);
	assert_int_equal(stats_of(o).roots, 2); /* ours, and that of an image */
	assert_true(has_root(o, &m, 0));
	assert_int_equal(count_fds(), fds + 1);
	close_opener(o);
}

/* ---- of processes that had a pid ------------------------------------------------------------- */

static struct process_times times_of(pid_t pid)
{
	struct proc_identity identity;

	assert_int_equal(proc_process_state(pid, &identity), PROC_ALIVE);
	return (struct process_times){identity.start_time, 0, identity.start_time};
}

/* The number of its root, of the first two; -1: it is unknown, and so is its user. */
static int root_of(struct dso_opener *o, pid_t pid, const struct process_times *times)
{
	uint32_t user;
	int fd = dso_opener__root_of(o, pid, times, &user);
	struct stat st, expected;

	assert_int_equal(user, fd < 0 ? TENANT_UNKNOWN : 0);
	if (fd < 0)
		return -1;
	assert_int_equal(fstat(fd, &st), 0);
	for (uint32_t number = 0; number < 2; number++)
		if (!stat(numbered("root", number), &expected) && expected.st_ino == st.st_ino)
			return (int)number;
	return -2;
}

static struct process_times older(struct process_times times)
{
	times.born -= SECOND;
	return times;
}

/* By its birth: a process without an end may have ended, if that event was lost. */
TEST(a_process_that_runs_has_its_root)
{
	struct dso_opener *o = open_capped((struct dso_opener_options){});
	struct process_times times, other, unborn;
	pid_t pid;

	if (!may_chroot()) {
		close_opener(o);
		skip();
	}
	pid = start_in_root(0, 2000);
	times = unborn = times_of(pid);
	other = older(times);
	unborn.born = 0;
	assert_int_equal(root_of(o, pid, &times), 0);
	assert_int_equal(root_of(o, pid, &other), -1);
	assert_int_equal(root_of(o, pid, &unborn), -1);
	times.end = monotonic_ns();
	assert_int_equal(root_of(o, pid, &times), -1); /* and nothing was noted */
	stop_program(pid);
	close_opener(o);
}

TEST(a_process_that_ended_has_the_root_that_was_noted)
{
	struct dso_opener *o = open_capped((struct dso_opener_options){});
	struct process_times times, other;
	uint64_t before;
	pid_t pid;

	if (!may_chroot()) {
		close_opener(o);
		skip();
	}
	pid = start_in_root(0, 2000);
	times = times_of(pid);
	before = monotonic_ns();
	dso_opener__note_process(o, pid);
	stop_program(pid);
	assert_int_equal(root_of(o, pid, &times), 0); /* the event of its end was lost */
	times.end = monotonic_ns();
	assert_int_equal(root_of(o, pid, &times), 0);
	other = older(times);
	assert_int_equal(root_of(o, pid, &other), -1);
	other.end = 0;
	assert_int_equal(root_of(o, pid, &other), -1);
	other = times;
	other.end = before; /* the note is of the next one */
	assert_int_equal(root_of(o, pid, &other), -1);
	other = times;
	other.start = times.end; /* of the one before */
	assert_int_equal(root_of(o, pid, &other), -1);
	close_opener(o);
}

#define LAST_PID "/proc/sys/kernel/ns_last_pid"

/* Others may take the pid: 0. */
static pid_t start_with_pid(pid_t wanted, uint32_t root_number)
{
	char text[16];

	for (int i = 0; i < 100; i++) {
		int fd = open(LAST_PID, O_WRONLY | O_CLOEXEC);
		int length = snprintf(text, sizeof(text), "%d", wanted - 1);
		pid_t pid;

		assert_true(fd >= 0 && write(fd, text, length) == length);
		close(fd);
		pid = start_in_root(root_number, 2000);
		if (pid == wanted)
			return pid;
		stop_program(pid);
	}
	return 0;
}

TEST(a_process_never_has_the_root_of_a_later_one_with_its_pid)
{
	struct dso_opener *o = open_capped((struct dso_opener_options){});
	struct process_times first, second, lost;
	pid_t pid;

	if (!may_chroot() || access(LAST_PID, W_OK)) {
		close_opener(o);
		skip();
	}
	pid = start_in_root(0, 2000);
	first = times_of(pid);
	dso_opener__note_process(o, pid);
	stop_program(pid);
	first.end = monotonic_ns();
	lost = older(first);
	lost.end = 0;
	if (!start_with_pid(pid, 1)) {
		close_opener(o);
		skip();
	}
	second = times_of(pid);
	assert_int_equal(root_of(o, pid, &second), 1);
	assert_int_equal(root_of(o, pid, &first), 0);
	assert_int_equal(root_of(o, pid, &lost), -1);
	dso_opener__note_process(o, pid);
	assert_int_equal(root_of(o, pid, &first), -1);
	assert_int_equal(root_of(o, pid, &lost), -1);
	stop_program(pid);
	second.end = monotonic_ns();
	assert_int_equal(root_of(o, pid, &first), -1);
	assert_int_equal(root_of(o, pid, &lost), -1);
	assert_int_equal(root_of(o, pid, &second), 1);
	close_opener(o);
}

ALL_TESTS_WITH(make_directory, remove_directory);
