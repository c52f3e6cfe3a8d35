/* SPDX-License-Identifier: BSD-2-Clause */
/* Libraries that are mapped from inside zip archives. */
#include "dso_support.h"

#include <elf.h>

#include "base/cleanup.h"
#include "tenants/outside_books.h"

#include "forge_zip.h"

/* ---- archives -------------------------------------------------------------------------------- */

static void save_archive(const char *path, const struct forged_zip *z)
{
	_cleanup_free_ char *data = calloc(1, z->size);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_int_equal(pread_full(z->fd, data, z->size, 0), z->size);
	assert_int_equal(write_full(fd, data, z->size), 0);
	close(z->fd);
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
	struct file_answer file;
	uint8_t id[BUILD_ID_SIZE];
	struct mapping m;
	int size = build_id_of_path(like, id);

	make_inode_event(&m, getpid(), path, 0);
	m.event.page_offset = begin + 0x2000;
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_int_equal(m.event.page_offset, 0x2000);
	assert_int_equal(m.event.start, 0x7f0000000000);
	assert_true(m.event.header.flags & EVENT_BUILD_ID);
	assert_int_equal(m.event.build_id_size, size);
	assert_memory_equal(m.event.build_id, id, size);
	assert_int_equal(strncmp(m.event.path, path, strlen(path)), 0);
	assert_string_equal(m.event.path + strlen(path), name);
	assert_int_equal(m.event.header.size % EVENT_ALIGN, 0);
	assert_true(m.event.header.size > sizeof(m.event) + strlen(m.event.path));
	file = request(o, &m);
	assert_true(file.fd >= 0);
	assert_int_equal(file.base, begin);
}

TEST(libraries_in_an_archive_are_named_by_their_entry)
{
	char *path = in_directory("app.apk"), *name;
	struct dso_opener *o = open_opener();
	struct file_answer file;
	struct forged_zip z;
	struct mapping m;

	make_archive(path, &z);
	expect_inside(o, path, z.entries[0].data, "!/lib/program", PROGRAM);
	expect_inside(o, path, z.entries[1].data, "!/lib/other", OTHER);
	expect_inside(o, path, z.entries[0].data, "!/lib/program", PROGRAM);
	assert_int_equal(opens_of(o), 1);
	/* what is no library, and what is no entry */
	make_inode_event(&m, getpid(), path, 0);
	m.event.page_offset = z.entries[2].data;
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_string_equal(m.event.path, path);
	m.event.page_offset = 1ull << 40;
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_string_equal(m.event.path, path);
	dso_opener__free(o);

	/* without a process, by the name alone */
	o = open_opener();
	assert_true(asprintf(&name, "%s!/lib/other", path) > 0);
	make_inode_event(&m, 0, path, 0);
	m.event.build_id_size = build_id_of_path(OTHER, m.event.build_id);
	m.event.header.flags |= EVENT_BUILD_ID | EVENT_UNSHARED;
	strcpy(m.event.path, name);
	file = find_recorded(o, &m);
	assert_true(file.fd >= 0);
	assert_int_equal(file.base, z.entries[1].data);
	memcpy(m.event.build_id, "01234567890123456789", BUILD_ID_SIZE);
	assert_true(find_recorded(o, &m).fd < 0);
	dso_opener__free(o);
	unlink(path);
	free(name);
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

/* See an archive's library as it is mapped. */
static void see_inside(struct dso_opener *o, const char *path, uint64_t begin, uint64_t generation,
		       struct mapping *inside)
{
	make_inode_event(inside, getpid(), path, generation);
	inside->event.page_offset = begin;
	assert_int_equal(see(o, inside), FILE_STATE_RIGHT);
	assert_non_null(strstr(inside->event.path, "!/lib/program"));
}

/* With a build-id or without, a library is that of its archive: another one may have forged it. */
TEST(a_library_is_found_in_its_archive_alone)
{
	char *first = in_directory("first.apk"), *second = in_directory("second.apk");

	for (int has_build_id = 0; has_build_id < 2; has_build_id++) {
		struct dso_opener *o = open_opener();
		struct mapping inside, other;

		see_inside(o, first, make_small_archive(first, has_build_id), 3, &inside);
		see_inside(o, second, make_small_archive(second, has_build_id), 3, &other);
		assert_int_equal(inside.event.build_id_size > 0, has_build_id);
		assert_true(find(o, &inside) >= 0);
		assert_true(find(o, &other) >= 0);
		assert_int_not_equal(find(o, &inside), find(o, &other));
		assert_int_equal(truncate(first, 100), 0);
		assert_int_equal(find(o, &inside), -ESTALE);
		assert_true(find(o, &other) >= 0);
		dso_opener__free(o);
		unlink(first);
		unlink(second);
	}
}

static void assert_left(struct outside_books *books, enum outside_thing thing, uint64_t count)
{
	struct outside_row row;

	assert_true(outside_books__take(books, &row));
	assert_int_equal(row.user, getuid());
	assert_int_equal(row.thing, thing);
	assert_int_equal(row.reason, OUTSIDE_BY_ITSELF);
	assert_int_equal(row.count, count);
	assert_false(outside_books__take(books, &row));
}

/* A directory of 5 MB, and a program with more segments than are searched for a build-id. */
TEST(archives_and_build_ids_beyond_the_limits_are_counted)
{
	char *path = in_directory("large.apk"), *file = in_directory("segments");
	struct outside_books *books = outside_books__new();
	const struct dso_opener_options options = {.books = books};
	const Elf64_Ehdr header = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_machine = EM_X86_64,
		.e_phoff = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 300};
	struct dso_opener *o = NULL;
	struct forged_zip z;
	struct mapping m;
	int fd;

	assert_int_equal(dso_opener__new(&options, &o), 0);
	zip_begin(&z);
	zip_add(&z, "lib", 0, "no ELF file", 12, 4096);
	zip_end_large(&z);
	save_archive(path, &z);
	make_inode_event(&m, getpid(), path, 0);
	m.event.page_offset = 4096;
	for (int again = 0; again < 2; again++) {
		assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
		assert_string_equal(m.event.path, path);
		assert_left(books, OUTSIDE_ARCHIVES, 1);
	}
	fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	assert_int_equal(ftruncate(fd, 64 << 10), 0);
	close(fd);
	make_inode_event(&m, getpid(), file, 0);
	assert_int_equal(see(o, &m), FILE_STATE_RIGHT);
	assert_int_equal(m.event.build_id_size, 0);
	assert_left(books, OUTSIDE_BUILD_IDS, 1);
	dso_opener__free(o);
	outside_books__free(books);
	unlink(path);
	unlink(file);
}

ALL_TESTS_WITH(make_directory, remove_directory);
