/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What makes room for what: openers with small caps that see more than they can keep, in days of
 * events' time.
 */
#include "dso_caps_support.h"

#include <sys/resource.h>

#include "base/clocks.h"
#include "tenants/pool.h"

#include "forge_zip.h"

/* ---- descriptors ------------------------------------------------------------------------------ */

TEST(the_least_recently_used_descriptor_is_closed)
{
	struct dso_opener *o = open_capped((struct dso_opener_options){.fds_max = FEW});
	static struct mapping m[MANY];
	uint64_t time = monotonic_ns(), opens;
	size_t fds = count_fds();

	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(see_program(o, i, time += 2 * MINUTE, &m[i]), FILE_STATE_RIGHT);
		assert_true(stats_of(o).fds <= FEW);
		/* one that is used all the time stays */
		opens = opens_of(o);
		assert_int_equal(see_program(o, 0, time, &m[0]), FILE_STATE_RIGHT);
		assert_int_equal(opens_of(o), opens);
	}
	assert_int_equal(stats_of(o).files, MANY);
	assert_int_equal(stats_of(o).forgotten, 0);
	assert_int_equal(stats_of(o).evicted, MANY - (FEW - 1)); /* one is our root */
	assert_int_equal(count_fds(), fds + FEW - 1);
	/* closed, but known: opened again by the next mapping, and by a request */
	opens = opens_of(o);
	assert_int_equal(see_program(o, 1, time += 2 * MINUTE, &m[1]), FILE_STATE_RIGHT);
	assert_int_equal(opens_of(o), opens + 1);
	for (uint32_t i = 0; i < MANY; i++)
		assert_true(request_is_right(o, &m[i]));
	assert_true(stats_of(o).fds <= FEW);
	assert_int_equal(count_fds(), fds + FEW - 1);
	close_opener(o);
	assert_int_equal(count_fds(), fds - 1);
}

TEST(files_in_use_are_not_closed_for_others)
{
	struct dso_opener *o = open_capped((struct dso_opener_options){.fds_max = FEW});
	static struct mapping m[MANY];
	uint64_t time = monotonic_ns() + MINUTE;
	size_t fds;

	for (uint32_t i = 0; i < MANY; i++) {
		enum file_state expected = i < FEW - 1 ? FILE_STATE_RIGHT : FILE_STATE_NO_FDS;

		assert_int_equal(see_program(o, i, time + i, &m[i]), expected);
	}
	fds = count_fds();
	assert_int_equal(see_program(o, MANY - 1, time, &m[MANY - 1]), FILE_STATE_NO_FDS);
	for (uint32_t i = 0; i < MANY; i++)
		assert_true(request_is_right(o, &m[i]));
	assert_int_equal(count_fds(), fds);
	assert_int_equal(stats_of(o).evicted, 0);
	/* days later it is gone by */
	time += 48 * 60 * MINUTE;
	assert_int_equal(see_program(o, MANY - 1, time, &m[MANY - 1]), FILE_STATE_RIGHT);
	assert_int_equal(stats_of(o).evicted, 1);
	close_opener(o);
}

/* A file that was closed and is not there any more: never another one in its place. */
TEST(a_closed_file_is_never_answered_by_its_replacement)
{
	struct dso_opener *o = open_capped((struct dso_opener_options){.fds_max = 3});
	struct mapping gone, text, m;
	uint64_t time = monotonic_ns();
	char *path = numbered("program", 1000), *other = numbered("text", 1000);

	assert_int_equal(see_program(o, 1000, time += 2 * MINUTE, &gone), FILE_STATE_RIGHT);
	assert_int_equal(see_text(o, 1000, time += 2 * MINUTE, &text), FILE_STATE_RIGHT);
	assert_int_equal(see_program(o, 1, time += 2 * MINUTE, &m), FILE_STATE_RIGHT);
	assert_int_equal(see_program(o, 2, time += 2 * MINUTE, &m), FILE_STATE_RIGHT);
	assert_int_equal(stats_of(o).evicted, 2);
	make_program(path, 1001);
	assert_int_equal(request(o, &gone).fd, -ESTALE);
	gone.event.header.time = time += 2 * MINUTE;
	assert_int_equal(see(o, &gone), FILE_STATE_REPLACED);
	unlink(path);
	assert_int_equal(request(o, &gone).fd, -ENOENT);
	assert_true(request(o, &text).fd >= 0);
	make_program(other, 1);
	assert_int_equal(see_program(o, 1, time += 2 * MINUTE, &m), FILE_STATE_RIGHT);
	assert_int_equal(see_program(o, 2, time += 2 * MINUTE, &m), FILE_STATE_RIGHT);
	assert_int_equal(request(o, &text).fd, -ESTALE);
	unlink(other);
	close_opener(o);
}

/* ---- the limit of the process ---------------------------------------------------------------- */

enum { FEW_FDS = 300, FILES = 200 };

struct read_text {
	char text[100];
	int fd;
};

static int read_text(void *context, uint32_t key, const struct file_answer *answer)
{
	struct read_text *read = context;

	read->fd = answer->fd;
	return answer->fd >= 0 && pread(answer->fd, read->text, sizeof(read->text) - 1, 0) < 0;
}

static void see_many_files(void **state)
{
	struct rlimit limit = {100, FEW_FDS}, now;
	unsigned int kept = 0, found = 0;
	uint64_t numbers[FILES];
	struct dso_opener *o;
	struct mapping m;

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	o = open_opener();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
	assert_int_equal(now.rlim_cur, FEW_FDS);
	assert_int_equal(stats_of(o).fd_limit, FEW_FDS / 2);
	for (int i = 0; i < FILES; i++) {
		see_text(o, i, 0, &m);
		assert_true(m.event.file_state == FILE_STATE_RIGHT ||
			    m.event.file_state == FILE_STATE_NO_FDS);
		kept += m.event.file_state == FILE_STATE_RIGHT;
		numbers[i] = m.event.file;
	}
	assert_in_range(kept, FEW_FDS / 2 - 3, FEW_FDS / 2);
	for (int i = 0; i < FILES; i++) {
		char *path = numbered("text", i);
		struct read_text read = {};
		const struct file_request request = {read_text, &read, 0};

		if (i == FILES - 1)
			write_text(path, "written over");
		assert_int_equal(dso_opener__request(o, numbers[i], &request), 0);
		if (i == FILES - 1)
			assert_int_equal(read.fd, -ESTALE);
		else
			found += !strcmp(read.text, path);
	}
	assert_int_equal(found, FILES - 1); /* the others are opened on request */
	assert_true(stats_of(o).fds <= FEW_FDS / 2);
	close_opener(o);
}

TEST(half_of_the_descriptor_limit_is_used_for_files)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		const struct CMUnitTest tests[] = {cmocka_unit_test(see_many_files)};

		_exit(cmocka_run_group_tests_name("few descriptors", tests, NULL, NULL));
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

/* ---- images ---------------------------------------------------------------------------------- */

TEST(only_the_most_recent_images_are_kept)
{
	struct dso_opener *o = open_capped((struct dso_opener_options){.images_max = FEW});
	static struct mapping program[MANY], text[MANY];
	uint64_t time = monotonic_ns();

	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < MANY; i++) {
			time += 2 * MINUTE;
			assert_int_equal(see_program(o, i, time, &program[i]), FILE_STATE_RIGHT);
			assert_int_equal(see_text(o, i, time, &text[i]), FILE_STATE_RIGHT);
			assert_true(stats_of(o).files <= FEW);
			assert_true(stats_of(o).fds <= FEW + 1);
		}
		for (uint32_t i = 0; i < MANY; i++) {
			bool known = i >= MANY - FEW / 2;

			assert_int_equal(request_is_right(o, &program[i]), known);
			assert_int_equal(request(o, &text[i]).fd >= 0, known);
		}
	}
	assert_int_equal(stats_of(o).forgotten, 3 * 2 * MANY - FEW);
	close_opener(o);
}

TEST(newcomers_are_not_kept_if_all_images_are_used)
{
	struct dso_opener *o = open_capped((struct dso_opener_options){.images_max = FEW});
	uint64_t time = monotonic_ns() + MINUTE;
	struct mapping m;
	size_t fds;

	for (uint32_t i = 0; i < FEW; i++)
		assert_int_equal(see_program(o, i, time, &m), FILE_STATE_RIGHT);
	fds = count_fds();
	make_perf_event(&m, getpid(), PROGRAM, PROGRAM);
	m.event.header.time = time;
	assert_int_equal(see(o, &m), FILE_STATE_NO_FDS);
	assert_true(m.event.build_id_size > 0);
	assert_int_equal(find(o, &m), -ENOENT);
	assert_int_equal(count_fds(), fds);
	m.event.header.time = time + 2 * MINUTE;
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_true(find(o, &m) >= 0);
	close_opener(o);
}

/* Another user's, in a process of his. */
static enum file_state see_program_of(struct dso_opener *o, pid_t pid, uint32_t number,
				      uint64_t time)
{
	char *path = numbered("program", number);
	struct mapping m;

	make_program(path, number);
	assert_int_equal(chown(path, 65534, 65534), 0);
	make_perf_event(&m, pid, path, path);
	m.event.header.time = time;
	return see(o, &m);
}

/* All of them in use, by somebody: another one gets what he needs, and he does not. */
TEST(users_with_all_images_make_room_for_another_user)
{
	struct dso_opener *o;
	uint64_t time = monotonic_ns() + MINUTE;
	struct mapping m;
	int changed[2];
	pid_t child;
	char byte;

	if (geteuid())
		skip(); /* needs root */
	assert_int_equal(pipe2(changed, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		if (setgid(65534) || setuid(65534) || write(changed[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(changed[1]);
	assert_int_equal(read(changed[0], &byte, 1), 1);
	close(changed[0]);
	o = open_capped((struct dso_opener_options){.images_max = FEW});
	for (uint32_t i = 0; i < FEW; i++)
		assert_int_equal(see_program_of(o, child, i, time), FILE_STATE_RIGHT);
	assert_int_equal(see_program_of(o, child, FEW, time), FILE_STATE_NO_FDS);
	make_perf_event(&m, getpid(), PROGRAM, PROGRAM);
	m.event.header.time = time;
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_true(find(o, &m) >= 0);
	assert_int_equal(stats_of(o).forgotten, 1);
	assert_int_equal(see_program_of(o, child, FEW + 1, time), FILE_STATE_NO_FDS);
	assert_true(find(o, &m) >= 0);
	close_opener(o);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Images of one inode, written over again and again: those that are left are found by it still. */
TEST(the_latest_image_of_an_overwritten_file_is_found)
{
	struct dso_opener *o = open_capped((struct dso_opener_options){.images_max = 4});
	char *path = in_directory("changing"), content[32];
	uint64_t time = monotonic_ns();
	struct mapping m, other;
	struct stat st;

	for (uint32_t i = 0; i < 20; i++) {
		snprintf(content, sizeof(content), "%*u", i + 1, i);
		write_text(path, content);
		make_inode_event(&m, getpid(), path, 0);
		m.event.header.time = time += 2 * MINUTE;
		assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
		assert_int_equal(fstat(find(o, &m), &st), 0);
		assert_int_equal(st.st_size, i + 1);
		assert_int_equal(see_text(o, i, time, &other), FILE_STATE_RIGHT);
	}
	assert_true(stats_of(o).files <= 4);
	assert_true(stats_of(o).forgotten > 30);
	close_opener(o);
	unlink(path);
}

/* What the file was is forgotten; what it is stays, and is found under another name. */
TEST(the_older_image_of_an_inode_is_forgotten_first)
{
	struct dso_opener *o = open_capped((struct dso_opener_options){.images_max = 2});
	char *path = in_directory("changing"), *other = in_directory("changing-2");
	uint64_t time = monotonic_ns();
	struct mapping m, text;

	write_text(path, "one");
	assert_int_equal(link(path, other), 0);
	make_inode_event(&m, getpid(), path, 0);
	m.event.header.time = time += 2 * MINUTE;
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	write_text(path, "three");
	m.event.header.time = time += 2 * MINUTE;
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_int_equal(stats_of(o).files, 2);
	assert_int_equal(see_text(o, 0, time += 2 * MINUTE, &text), FILE_STATE_RIGHT);
	assert_int_equal(stats_of(o).forgotten, 1);
	make_inode_event(&m, getpid(), other, 0);
	m.event.header.time = time += 2 * MINUTE;
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_int_equal(stats_of(o).forgotten, 1);
	close_opener(o);
	unlink(path);
	unlink(other);
}

/* What is no ELF file is not looked at each time, but again after a while: its inode may be another's. */
TEST(files_without_elf_header_are_not_opened_each_time)
{
	struct dso_opener *o = open_capped((struct dso_opener_options){});
	char *path = in_directory("code (deleted)");
	uint64_t time = monotonic_ns();
	struct mapping m;

	write_text(path, "code");
	make_inode_event(&m, getpid(), path, 0);
	for (int i = 0; i < 100; i++) {
		m.event.header.time = time + i;
		assert_int_equal(see(o, &m), FILE_STATE_NONE);
	}
	assert_int_equal(opens_of(o), 1);
	make_program(path, 0);
	make_inode_event(&m, getpid(), path, 0);
	m.event.header.time = time + 2 * MINUTE;
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	close_opener(o);
	unlink(path);
}

/* ---- sightings ------------------------------------------------------------------------------- */

TEST(sightings_are_evicted_by_cap_and_with_their_image)
{
	struct dso_opener_options options = {.sightings_max = FEW, .images_max = 3};
	struct dso_opener *o = open_capped(options);
	char *path = in_directory("linked"), *link_path;
	uint64_t time = monotonic_ns(), opens;
	static struct mapping m[MANY];
	struct mapping other;

	write_text(path, "one file of many names");
	for (uint32_t i = 0; i < MANY; i++) { /* at first: a link is a change of the file */
		link_path = numbered("link", i);
		assert_int_equal(link(path, link_path), 0);
	}
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < MANY; i++) {
			link_path = numbered("link", i);
			make_inode_event(&m[i], getpid(), link_path, 0);
			m[i].event.header.time = time += 2 * MINUTE;
			assert_int_equal(see(o, &m[i]), FILE_STATE_RIGHT);
			opens = opens_of(o);
			assert_int_equal(see(o, &m[i]), FILE_STATE_RIGHT);
			assert_int_equal(opens_of(o), opens);
		}
		assert_int_equal(stats_of(o).files, 1);
		for (uint32_t i = 0; i < MANY; i++)
			assert_int_equal(is_sighted(o, &m[i]), i >= MANY - FEW);
	}
	/* with the image its sightings go, all of them */
	for (uint32_t i = 0; i < 3; i++)
		see_text(o, i, time += 2 * MINUTE, &other);
	assert_int_equal(stats_of(o).forgotten, 1);
	for (uint32_t i = 0; i < MANY; i++)
		assert_false(is_sighted(o, &m[i]) || find(o, &m[i]) >= 0);
	/* and their places are others' */
	for (uint32_t i = 0; i < MANY; i++) {
		m[i].event.header.time = time;
		assert_int_equal(see(o, &m[i]), FILE_STATE_RIGHT);
	}
	for (uint32_t i = 0; i < MANY;
	     i++) /* all at one time: the first have the room, but for the last text's */
		assert_int_equal(is_sighted(o, &m[i]), i < FEW - 1);
	close_opener(o);
}

/* Of several sightings of one identity (here of two generations, distinguished by that) each finds its own. */
TEST(sightings_of_two_generations_are_evicted_separately)
{
	struct dso_opener *o = open_capped((struct dso_opener_options){.sightings_max = 2});
	char *path = in_directory("identity");
	uint64_t time = monotonic_ns();
	struct mapping a, b, c;

	write_text(path, "text");
	make_inode_event(&a, getpid(), path, 3);
	a.event.header.time = time += 2 * MINUTE;
	assert_int_equal(see(o, &a), FILE_STATE_RIGHT);
	make_inode_event(&b, getpid(), path, 4);
	b.event.header.time = time += 2 * MINUTE;
	assert_int_equal(see(o, &b), FILE_STATE_RIGHT);
	assert_int_equal(a.event.inode_generation, 3);
	assert_int_equal(b.event.inode_generation, 4);
	assert_int_equal(find(o, &a), find(o, &b));
	assert_true(find(o, &a) >= 0);
	b.event.header.time = time += 2 * MINUTE;
	assert_int_equal(see(o, &b), FILE_STATE_RIGHT);
	assert_int_equal(see_text(o, 0, time += 2 * MINUTE, &c), FILE_STATE_RIGHT);
	assert_false(is_sighted(o, &a));
	assert_true(is_sighted(o, &b) && is_sighted(o, &c));
	assert_true(find(o, &a) >= 0); /* the file is still there */
	close_opener(o);
}

/* It is mapped, then deleted: the kernel adds what its name ends with already. */
TEST(a_file_whose_name_ends_like_a_deleted_one_is_sighted)
{
	struct dso_opener *o = open_capped((struct dso_opener_options){});
	char *path = in_directory("code (deleted)");
	struct mapping m;

	make_program(path, 0);
	for (int i = 0; i < 3; i++) {
		make_inode_event(&m, getpid(), path, 0);
		if (i)
			strcat(m.event.path, " (deleted)");
		assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
		assert_int_equal(opens_of(o), 1 + !!i);
	}
	close_opener(o);
	unlink(path);
}

/* ---- archives -------------------------------------------------------------------------------- */

enum { LIBRARIES = 6 };

/* An archive with libraries that are numbered from `first` on. */
static void make_archive(const char *path, uint32_t first, struct forged_zip *z)
{
	char *data, *library = in_directory("library"), name[32];
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	size_t size;

	zip_begin(z);
	for (uint32_t i = 0; i < LIBRARIES; i++) {
		make_program(library, first + i);
		assert_int_equal(read_file_at(AT_FDCWD, library, 4096, &data, &size), 0);
		snprintf(name, sizeof(name), "lib/%u", first + i);
		zip_add(z, name, 0, data, size, 4096);
		free(data);
	}
	zip_end(z, "");
	data = calloc(1, z->size);
	assert_int_equal(pread_full(z->fd, data, z->size, 0), z->size);
	assert_int_equal(write_full(fd, data, z->size), 0);
	close(fd);
	close(z->fd);
	free(data);
}

static void see_library(struct dso_opener *o, const char *archive, const struct forged_zip *z,
			uint32_t i, uint64_t time, struct mapping *m)
{
	make_inode_event(m, getpid(), archive, 0);
	m->event.page_offset = z->entries[i].data;
	m->event.header.time = time;
	assert_int_equal(see(o, m), FILE_STATE_RIGHT);
}

TEST(only_the_last_libraries_of_an_archive_are_kept)
{
	struct dso_opener_options options = {.members_max = 4, .images_max = 2};
	struct dso_opener *o = open_capped(options);
	char *path = in_directory("some.apk");
	struct mapping m[LIBRARIES], other;
	uint64_t time = monotonic_ns();
	struct forged_zip z;

	make_archive(path, 500, &z);
	for (int round = 0; round < 100;
	     round++) /* more often than an archive is looked into a minute */
		for (uint32_t i = 0; i < LIBRARIES; i++) {
			see_library(o, path, &z, i, time += 2 * MINUTE, &m[i]);
			assert_non_null(strstr(m[i].event.path, "!/lib/50"));
		}
	for (uint32_t i = 0; i < LIBRARIES; i++) {
		struct file_answer file = request(o, &m[i]);

		assert_int_equal(file.fd >= 0, i >= LIBRARIES - 4);
		if (file.fd >= 0)
			assert_int_equal(file.base, z.entries[i].data);
	}
	/* all in use: the archive is reported */
	for (uint32_t i = 0; i < LIBRARIES; i++)
		see_library(o, path, &z, i, time, &m[i]);
	assert_string_equal(m[0].event.path, path);
	/* with the archive its libraries go */
	for (uint32_t i = 0; i < 2; i++)
		see_program(o, i, time += 2 * MINUTE, &other);
	assert_int_equal(stats_of(o).forgotten, 1);
	for (uint32_t i = 0; i < LIBRARIES; i++)
		assert_int_equal(find(o, &m[i]), -ENOENT);
	see_library(o, path, &z, 0, time += 2 * MINUTE, &m[0]);
	assert_non_null(strstr(m[0].event.path, "!/lib/500"));
	assert_true(find(o, &m[0]) >= 0);
	close_opener(o);
	unlink(path);
}

/* A library is needed again after its archive was closed; before a reader has opened it, others are mapped. */
TEST(a_library_is_not_evicted_while_its_archive_is_reopened)
{
	static const helper_serve_fn services[] = {file_search__serve};
	const struct helper_pool_options readers = {.services = services,
						    .service_count = COUNT(services),
						    .class = HELPER_READER,
						    .keeper = HELPER_READER_KEEPER};
	struct dso_opener *o = open_capped((struct dso_opener_options){.members_max = 2});
	char *apks[] = {in_directory("wanted.apk"), in_directory("other.apk")};
	struct file_answer answer = {.fd = -EINVAL};
	const struct file_request request = {keep_file, &answer, 0};
	uint64_t time = monotonic_ns() + MINUTE;
	struct helper_pool *pool;
	struct forged_zip z[2];
	struct mapping m[2];

	for (uint32_t i = 0; i < 2; i++) {
		make_archive(apks[i], 600 + i * LIBRARIES, &z[i]);
		see_library(o, apks[i], &z[i], 0, time += 2 * MINUTE, &m[i]);
	}
	assert_int_equal(helper_pool__new(&readers, &pool), 0);
	o->waits.readers = pool;
	dso_files__close(&o->files,
			 dso_archives__numbered(&o->files.archives, m[0].event.file)->archive);
	assert_int_equal(dso_opener__request(o, m[0].event.file, &request), 0);
	assert_int_equal(answer.fd, -EINVAL);
	for (uint32_t i = 1; i < LIBRARIES; i++)
		see_library(o, apks[1], &z[1], i, time += 2 * MINUTE, &m[1]);
	assert_int_equal(dso_opener__settle(o, MINUTE), 0);
	assert_true(answer.fd >= 0);
	assert_int_equal(answer.base, z[0].entries[0].data);
	/* afterwards it is */
	for (uint32_t i = 0; i < 2; i++)
		see_library(o, apks[1], &z[1], i, time += 2 * MINUTE, &m[1]);
	assert_int_equal(find(o, &m[0]), -ENOENT);
	close_opener(o);
	helper_pool__free(pool);
	for (uint32_t i = 0; i < 2; i++)
		unlink(apks[i]);
}

/* ---- answers --------------------------------------------------------------------------------- */

static int refuse_event(void *context, struct mmap_event *event)
{
	++*(unsigned int *)context;
	return -EXDEV;
}

static int refuse_file(void *context, uint32_t key, const struct file_answer *answer)
{
	++*(unsigned int *)context;
	return -EXDEV;
}

struct requester {
	struct dso_opener *o;
	struct mapping *m;
	uint64_t time;
	unsigned int depth;
};

/* Asks for more in the middle of an answer, whose descriptor stays what it is. */
static int request_more(void *context, uint32_t key, const struct file_answer *answer)
{
	struct requester *requester = context, deeper = *requester;
	struct file_request request = {request_more, &deeper, 0};
	uint8_t id[BUILD_ID_SIZE];
	struct mapping m;

	assert_int_equal(key, requester->depth);
	if (requester->depth < FEW) {
		deeper.m++;
		deeper.depth++;
		request.key = deeper.depth;
		assert_int_equal(dso_opener__request(deeper.o, deeper.m->event.file, &request), 0);
		for (uint32_t i = MANY; i < MANY + 5; i++)
			see_program(requester->o, i,
				    requester->time + (requester->depth * FEW + i) * 2 * MINUTE,
				    &m);
	}
	assert_true(answer->fd >= 0);
	assert_int_equal(build_id_of(answer->fd, id), BUILD_ID_SIZE);
	assert_memory_equal(id, requester->m->event.build_id, BUILD_ID_SIZE);
	return 0;
}

TEST(a_descriptor_stays_valid_while_its_answer_requests_more)
{
	struct dso_opener_options options = {.fds_max = 4, .images_max = MANY + 2};
	struct dso_opener *o = open_capped(options);
	static struct mapping m[MANY];
	struct requester requester = {.o = o, .m = m};
	unsigned int answers = 0;
	const struct file_request refused = {refuse_file, &answers, 0},
				  more = {request_more, &requester, 0};
	uint64_t time = monotonic_ns();

	for (uint32_t i = 0; i < MANY; i++)
		see_program(o, i, time += 2 * MINUTE, &m[i]);
	/* what the answer returns is what the call returns */
	assert_int_equal(dso_opener__see(o, &m[0].event, 0, refuse_event, &answers), -EXDEV);
	assert_int_equal(dso_opener__request(o, m[MANY - 1].event.file, &refused), -EXDEV);
	assert_int_equal(answers, 2);
	for (uint32_t i = 0; i < MANY; i++) /* all but fresh */
		assert_int_equal(see_program(o, i, time += 2 * MINUTE, &m[i]), FILE_STATE_RIGHT);
	requester.time = time;
	requester.m = m + MANY - FEW - 1;
	assert_int_equal(dso_opener__request(o, requester.m->event.file, &more), 0);
	close_opener(o);
}

/* ---- weeks ----------------------------------------------------------------------------------- */

enum { LOTS = 4000, LOTS_KEPT = 64 };

/* Thousands of files that come, are mapped and go: descriptors and tables stay as small as they are. */
TEST(thousands_of_files_do_not_exceed_the_caps)
{
	struct dso_opener_options options = {
		.fds_max = LOTS_KEPT,
		.images_max = 2 * LOTS_KEPT,
		.sightings_max = 2 * LOTS_KEPT,
	};
	struct dso_opener *o = open_capped(options);
	uint64_t time = monotonic_ns();
	size_t fds = count_fds();
	struct mapping m, text;

	for (uint32_t i = 0; i < LOTS; i++) {
		char *program = numbered("program", 10000 + i), *path = numbered("text", 10000 + i);

		assert_int_equal(see_program(o, 10000 + i, time += MINUTE, &m), FILE_STATE_RIGHT);
		assert_int_equal(see_text(o, 10000 + i, time, &text), FILE_STATE_RIGHT);
		unlink(program);
		unlink(path);
		assert_true(request_is_right(o, &m)); /* deleted, but open */
		if (i % 500 == 0 || i == LOTS - 1)
			assert_true(count_fds() < fds + LOTS_KEPT);
	}
	assert_int_equal(stats_of(o).files, 2 * LOTS_KEPT);
	assert_int_equal(stats_of(o).forgotten, 2 * LOTS - 2 * LOTS_KEPT);
	close_opener(o);
	assert_int_equal(count_fds(), fds - 1);
}

ALL_TESTS_WITH(make_directory, remove_directory);
