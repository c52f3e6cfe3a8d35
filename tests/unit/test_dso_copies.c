/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums of the copies in memory: of a user, of all, given back, and made room for. */
#include "dso_caps_support.h"

#include "base/clocks.h"
#include "files/dso_search.h"
#include "tenants/outside_books.h"

#define MB (1ull << 20)

static struct outside_books *books;

static struct dso_opener *open_with_limits(void)
{
	books = outside_books__new();
	return open_capped((struct dso_opener_options){
		.copies_user = 100 * MB, .copies_all = 150 * MB, .books = books});
}

static void close_all(struct dso_opener *o)
{
	close_opener(o);
	outside_books__free(books);
}

/* A file of the user that came as a copy; its file. */
static uint32_t adopt(struct dso_opener *o, uint32_t number, uint32_t user, uint64_t bytes,
		      uint64_t time)
{
	const struct file_finding facts = {.device = 1, .inode = number, .copied = bytes};
	struct dso_search found = {
		.fd = memfd_create("copy", MFD_CLOEXEC), .owner = user, .facts = &facts};
	struct mapping m;
	uint32_t file;

	make_event(&m, 0, "/copy");
	found.mapping = &m.event;
	o->clock.now = time;
	assert_int_equal(dso_files__adopt(&o->files, &found, &file), 0);
	return file;
}

static void leave(struct dso_opener *o, uint32_t number, uint32_t user, bool by_itself)
{
	const struct file_finding facts = {.device = 1, .inode = number};

	dso_files__note_copy(&o->files, user, &facts, by_itself);
}

static void assert_left(uint32_t user, enum outside_reason reason, uint64_t count)
{
	struct outside_row row;

	assert_true(outside_books__take(books, &row));
	assert_int_equal(row.user, user);
	assert_int_equal(row.thing, OUTSIDE_FILE_COPIES);
	assert_int_equal(row.reason, reason);
	assert_int_equal(row.count, count);
	assert_false(outside_books__take(books, &row));
}

TEST(copies_are_limited_by_user_and_in_total)
{
	struct dso_opener *o = open_with_limits();
	uint64_t now = monotonic_ns();
	uint32_t file;

	assert_true(dso_files__copy_room(&o->files, 1, 60 * MB) == 60 * MB);
	file = adopt(o, 1, 1, 60 * MB, now);
	assert_true(dso_files__copy_room(&o->files, 1, 60 * MB) == 40 * MB);
	assert_true(dso_files__copy_room(&o->files, 2, 256 * MB) == 90 * MB);
	leave(o, 2, 1, false);
	assert_left(1, OUTSIDE_BY_USER, 1);
	/* all together */
	adopt(o, 3, 2, 85 * MB, now);
	assert_true(dso_files__copy_room(&o->files, 3, 60 * MB) == 5 * MB);
	assert_true(dso_files__copy_room(&o->files, 1, 60 * MB) == 5 * MB);
	leave(o, 4, 3, false);
	assert_left(3, OUTSIDE_BY_ALL, 1);
	/* what is closed is given back */
	dso_files__close(&o->files, file);
	assert_true(dso_files__copy_room(&o->files, 1, 200 * MB) == 65 * MB);
	assert_int_equal(quota__used(&o->files.copies, 1), 0);
	assert_int_equal(o->files.copies.total.used, 85 * MB);
	close_all(o);
}

TEST(a_file_left_out_is_counted_once)
{
	struct dso_opener *o = open_with_limits();

	for (int i = 0; i < 100; i++)
		leave(o, 1 + (uint32_t)i % 3, 1, true);
	assert_left(1, OUTSIDE_BY_ITSELF, 3);
	close_all(o);
}

/* What was not used for a while makes room, for its own user alone. */
TEST(idle_copies_make_room_for_their_own_user_only)
{
	struct dso_opener *o = open_with_limits();
	uint64_t now = monotonic_ns();
	uint32_t first, second;

	first = adopt(o, 1, 1, 40 * MB, now);
	second = adopt(o, 2, 1, 40 * MB, now + 2 * MINUTE);
	assert_true(dso_files__copy_room(&o->files, 1, 50 * MB) == 60 * MB - 10 * MB);
	assert_int_equal(o->files.files.data[first].fd, -1);
	assert_true(o->files.files.data[second].fd >= 0);
	o->clock.now += 2 * MINUTE;
	assert_true(dso_files__copy_room(&o->files, 2, 150 * MB) == 100 * MB);
	assert_true(o->files.files.data[second].fd >= 0);
	/* what is held stays */
	dso_files__hold(&o->files, second);
	assert_true(dso_files__copy_room(&o->files, 1, 90 * MB) == 60 * MB);
	dso_files__unhold(&o->files, second);
	close_all(o);
}
