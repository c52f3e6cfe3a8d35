/* SPDX-License-Identifier: BSD-2-Clause */
/* Root directories of processes, which come and go. */
#include "base/clocks.h"

#include "dso_caps_support.h"

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

ALL_TESTS_WITH(make_directory, remove_directory);
