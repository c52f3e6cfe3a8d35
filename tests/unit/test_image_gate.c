/* SPDX-License-Identifier: BSD-2-Clause */
/* How many files of a user a profile distinguishes. */
#include "unit.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "files/dso_archives.h"
#include "forge_zip.h"
#include "session/image_gate.h"
#include "tenants/quota.h"
#include "world/image_table.h"

static const struct mmap_event *mapping(struct mmap_event_space *s, uint32_t number, uint64_t start)
{
	struct mmap_event *e = &s->event;

	memset(s, 0, sizeof(*s));
	snprintf(e->path, 64, "/opt/file-%u", number);
	e->header = (struct event_header){.size = event_aligned(sizeof(*e) + strlen(e->path) + 1),
					  .type = EVENT_MMAP,
					  .time = 1};
	e->pid = e->tid = (uint32_t)getpid();
	e->start = start;
	e->length = 0x1000;
	e->inode = number + 1;
	e->file_state = FILE_STATE_RIGHT;
	return e;
}

TEST(images_are_limited_per_user_and_in_total)
{
	struct image_table *t = image_table__new();
	struct mmap_event_space s;
	enum outside_reason refusal;

	image_table__limit(t, 5, 8, 2);
	for (uint32_t i = 0; i < 5; i++)
		assert_true(image_table__admit(t, mapping(&s, i, 0), 1, &refusal));
	assert_false(image_table__admit(t, mapping(&s, 5, 0), 1, &refusal));
	assert_int_equal(refusal, OUTSIDE_BY_USER);
	assert_false(image_table__has(t, mapping(&s, 5, 0)));
	assert_true(image_table__has(t, mapping(&s, 4, 0)));
	for (uint32_t i = 10; i < 13; i++)
		assert_true(image_table__admit(t, mapping(&s, i, 0), 2, &refusal));
	/* all have enough: some for everybody, and root is not kept waiting */
	assert_false(image_table__admit(t, mapping(&s, 13, 0), 2, &refusal));
	assert_int_equal(refusal, OUTSIDE_BY_ALL);
	assert_true(image_table__admit(t, mapping(&s, 20, 0), 3, &refusal));
	assert_true(image_table__admit(t, mapping(&s, 21, 0), 3, &refusal));
	assert_false(image_table__admit(t, mapping(&s, 22, 0), 3, &refusal));
	for (uint32_t i = 30; i < 35; i++)
		assert_true(image_table__admit(t, mapping(&s, i, 0), 0, &refusal));
	assert_false(image_table__admit(t, mapping(&s, 35, 0), 0, &refusal));
	/* files without a mapping for two windows are given back */
	image_table__forget(t, true, NULL, NULL);
	assert_int_equal(image_table__forget(t, true, NULL, NULL), 15);
	for (uint32_t i = 0; i < 5; i++)
		assert_true(image_table__admit(t, mapping(&s, 40 + i, 0), 1, &refusal));
	image_table__free(t);
}

/* Too many: marked, counted, one image, and still a mapping that takes the place of the one before. */
TEST(mappings_over_the_limit_share_one_image)
{
	struct outside_books *books = outside_books__new();
	struct image_gate gate = {.world = world__new(NULL), .books = books};
	const uint32_t extra = 7;
	size_t marked = 0, images;
	struct image_id left = {0}, id;
	struct outside_row row;
	struct mmap_event_space s;

	for (uint32_t i = 0; i < quota_row(QUOTA_IMAGES)->user.limit + extra; i++) {
		const struct event_header *event = &mapping(&s, i, 0x10000)->header;

		image_gate__pass(&gate, &event);
		assert_int_equal(world__mmap(gate.world, (const void *)event, &id), 0);
		if (!(event->flags & EVENT_LEFT))
			continue;
		assert_true(!marked++ || id.v == left.v);
		left = id;
	}
	assert_int_equal(marked, extra);
	images = image_table__count(world__images(gate.world));
	assert_int_equal(images, quota_row(QUOTA_IMAGES)->user.limit + 1);
	assert_int_equal(image_table__get(world__images(gate.world), left)->dso.kind, DSO_UNKNOWN);
	assert_true(outside_books__take(books, &row));
	assert_true(row.user == getuid() && row.thing == OUTSIDE_IMAGES &&
		    row.reason == OUTSIDE_BY_USER && row.count == extra);
	assert_false(outside_books__take(books, &row));
	/* what is known is not one too many */
	for (uint32_t i = 0; i < 10; i++) {
		const struct event_header *event = &mapping(&s, i, 0x10000)->header;

		image_gate__pass(&gate, &event);
		assert_false(event->flags & EVENT_LEFT);
	}
	world__free(gate.world);
	outside_books__free(books);
}

/* A mapping with a build-id; given_up: its search was, so that nothing but the name and that is known. */
static uint64_t file_of(struct image_table *t, const char *path, bool given_up, uint64_t file)
{
	struct mmap_event_space s;
	struct mmap_event *e = &s.event;

	mapping(&s, 0, 0);
	snprintf(e->path, 64, "%s", path);
	e->inode = 0;
	e->header.flags = EVENT_BUILD_ID | (given_up ? EVENT_UNSHARED : 0);
	e->build_id_size = BUILD_ID_SIZE;
	memset(e->build_id, 7, BUILD_ID_SIZE);
	e->file_state = given_up ? FILE_STATE_LATE : FILE_STATE_RIGHT;
	e->file = file;
	return image_table__get(t, image_table__add(t, e))->file;
}

TEST(an_image_has_the_file_of_its_latest_mapping)
{
	struct image_table *t = image_table__new();

	assert_int_equal(file_of(t, "/lib/one", false, 0), 0);
	assert_int_equal(file_of(t, "/lib/one", false, 3), 3);
	assert_int_equal(file_of(t, "/lib/one", false, 0), 3);
	assert_int_equal(file_of(t, "/srv/lib/one", false, 4), 4); /* the same by its build-id */
	assert_int_equal(file_of(t, "/lib/one", false, 0), 4);
	image_table__free(t);
}

/* The file of the administrator with that build-id and name, whether it is found before or afterwards. */
TEST(a_search_that_is_given_up_gets_the_file_of_another)
{
	struct image_table *t = image_table__new();

	assert_int_equal(file_of(t, "/lib/one", true, 0), 0);
	assert_int_equal(file_of(t, "/lib/one", false, 3), 3);
	assert_int_equal(file_of(t, "/lib/one", true, 0), 3);
	/* it was forgotten, and found again */
	assert_int_equal(file_of(t, "/lib/one", false, 5), 5);
	assert_int_equal(file_of(t, "/lib/one", true, 0), 5);
	assert_int_equal(file_of(t, "/tmp/one", true, 0), 0);
	image_table__free(t);

	t = image_table__new();
	assert_int_equal(file_of(t, "/lib/one", false, 3), 3);
	assert_int_equal(file_of(t, "/lib/one", true, 0), 3);
	assert_int_equal(image_table__count(t), 2);
	image_table__free(t);
}

/* It has the build-id of a file of the administrator, and in another archive it begins elsewhere. */
TEST(a_library_in_an_archive_is_an_image_of_its_own)
{
	const struct lru_clock clock = {};
	struct image_table *t = image_table__new();
	struct mmap_event_space s, inner;
	struct image_id shared = {}, ids[2];
	_cleanup_(dso_archives__fini) struct dso_archives archives = {};
	struct forged_zip z[2];
	size_t size;
	_cleanup_free_ char *data = NULL;

	dso_archives__init(&archives, &clock, 2, NULL);
	assert_int_equal(read_file_at(AT_FDCWD, "/bin/sleep", 64 << 20, &data, &size), 0);
	for (uint32_t i = 0; i < 2; i++) {
		zip_begin(&z[i]);
		zip_add(&z[i], "assets", 0, data, i * 8192, 4096);
		zip_add(&z[i], "lib", 0, data, size, 4096);
		zip_end(&z[i], "");
		mapping(&s, i, 0);
		s.event.page_offset = z[i].entries[1].data;
		assert_int_equal(
			dso_archives__enter(&archives,
					    &(struct open_archive){i, z[i].fd, &(struct meter){}},
					    &s.event, &inner),
			1);
		close(z[i].fd);
		if (!i) {
			s = inner;
			s.event.header.flags = EVENT_BUILD_ID;
			s.event.file = 7;
			shared = image_table__add(t, &s.event);
		}
		ids[i] = image_table__add(t, &inner.event);
		assert_int_equal(image_table__add(t, &inner.event).v, ids[i].v);
	}
	assert_int_equal(image_table__get(t, shared)->file, 7);
	assert_int_not_equal(z[0].entries[1].data, z[1].entries[1].data);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(
			dso_archives__numbered(&archives, image_table__get(t, ids[i])->file)
				->offset,
			z[i].entries[1].data);
	image_table__free(t);
}
