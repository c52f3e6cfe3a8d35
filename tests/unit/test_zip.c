/* SPDX-License-Identifier: BSD-2-Clause */
/* Stored entries of zip archives: whole ones, ones that lie, and ones cut at every byte. */
#include "unit.h"
#include "files/zip.h"
#include "forge_zip.h"

#define STORED	 0
#define DEFLATED 8

static const char DATA[] = "twelve bytes";

static void expect(const struct forged_zip *z, uint64_t offset, const char *name)
{
	struct zip_entry entry = {};

	assert_int_equal(zip_find(z->fd, offset, &entry), name ? 0 : -ENOENT);
	if (!name)
		return;
	assert_string_equal(entry.name, name);
	assert_true(offset >= entry.offset && offset < entry.offset + entry.size);
	assert_int_equal(entry.size, sizeof(DATA));
}

static void forge(struct forged_zip *z, const char *comment)
{
	zip_begin(z);
	zip_add(z, "one.txt", DEFLATED, DATA, sizeof(DATA), 1);
	zip_add(z, "lib/two.so", STORED, DATA, sizeof(DATA), 4096);
	zip_add(z, "three", STORED, DATA, sizeof(DATA), 1);
	zip_add(z, "lib/four.so", STORED, DATA, sizeof(DATA), 4096);
	zip_end(z, comment);
}

TEST(an_offset_finds_the_stored_entry_that_contains_it)
{
	static const char *const comments[] = {"", "a comment",
					       "PK\5\6 that looks like the end record"};
	struct forged_zip z;

	for (size_t i = 0; i < sizeof(comments) / sizeof(*comments); i++) {
		struct zip_entry entry;

		forge(&z, comments[i]);
		assert_true(zip_is_archive(z.fd));
		expect(&z, 0, NULL);
		expect(&z, z.entries[0].data, NULL); /* compressed */
		expect(&z, z.entries[1].header, NULL);
		expect(&z, z.entries[1].data - 1, NULL);
		assert_int_equal(z.entries[1].data, 4096);
		expect(&z, 4096, "lib/two.so");
		expect(&z, 4096 + sizeof(DATA) - 1, "lib/two.so");
		expect(&z, 4096 + sizeof(DATA), NULL);
		expect(&z, z.entries[2].data, "three");
		expect(&z, 8192, "lib/four.so");
		expect(&z, z.directory + 10, NULL);
		expect(&z, UINT64_MAX, NULL);
		assert_int_equal(zip_find_name(z.fd, "lib/four.so", &entry), 0);
		assert_int_equal(entry.offset, 8192);
		assert_int_equal(zip_find_name(z.fd, "one.txt", &entry), -ENOENT);
		assert_int_equal(zip_find_name(z.fd, "lib/four", &entry), -ENOENT);
		assert_int_equal(zip_find_name(z.fd, "", &entry), -ENOENT);
		close(z.fd);
	}
}

static void overwrite(const struct forged_zip *z, uint64_t offset, uint64_t value, size_t size)
{
	struct forged_zip at = {.fd = z->fd, .size = offset};

	zip_number(&at, value, size);
}

static void expect_error(struct forged_zip *z, uint64_t offset, int err)
{
	struct zip_entry entry;

	assert_int_equal(zip_find(z->fd, offset, &entry), err);
	close(z->fd);
}

TEST(forged_headers_and_entries_are_errors)
{
	struct forged_zip z;
	char name[300] = "";

	forge(&z, ""); /* the directory is behind the end, or larger than the file */
	overwrite(&z, z.size - 6, z.size, 4);
	expect_error(&z, 4096, -EBADMSG);
	forge(&z, "");
	overwrite(&z, z.size - 10, UINT32_MAX, 4);
	expect_error(&z, 4096, -EBADMSG);
	forge(&z, ""); /* the 64-bit kind */
	overwrite(&z, z.size - 6, UINT32_MAX, 4);
	expect_error(&z, 4096, -EBADMSG);
	forge(&z, ""); /* there is no header where it says */
	overwrite(&z, z.entries[1].header, 0, 4);
	expect_error(&z, 4096, -EBADMSG);
	forge(&z, ""); /* texts that reach behind the file's end */
	overwrite(&z, z.entries[3].header + 26, 0xffff, 2);
	overwrite(&z, z.entries[3].header + 28, 0xffff, 2);
	expect_error(&z, 8192, -EBADMSG);
	forge(&z, ""); /* an entry that is larger than the file; the directory counts */
	overwrite(&z, z.directory + 46 + 7 + 24, UINT32_MAX - 1, 4);
	expect_error(&z, 4096, -EBADMSG);
	forge(&z, ""); /* a text in the directory that reaches behind it: the rest is not there */
	overwrite(&z, z.directory + 30, 0xffff, 2);
	expect_error(&z, 4096, -ENOENT);
	forge(&z, ""); /* encrypted */
	overwrite(&z, z.directory + 46 + 7 + 8, 1, 2);
	expect_error(&z, 4096, -ENOENT);
	forge(&z, ""); /* a name with a NUL in it */
	overwrite(&z, z.directory + 46 + 7 + 46 + 3, 0, 1);
	expect_error(&z, 4096, -ENOENT);

	memset(name, 'n', ZIP_NAME_MAX); /* a name that is too long */
	zip_begin(&z);
	zip_add(&z, name, STORED, DATA, sizeof(DATA), 4096);
	zip_end(&z, "");
	expect_error(&z, 4096, -EFBIG);
	zip_begin(&z); /* a directory that is too large, of which nothing is read */
	zip_end(&z, "");
	zip_end_large(&z);
	expect_error(&z, 4096, -EFBIG);
}

TEST(an_archive_cut_short_has_no_entries)
{
	struct zip_entry entry;
	struct forged_zip z;

	forge(&z, "comment");
	while (z.size-- > 0) {
		int err;

		assert_int_equal(ftruncate(z.fd, (off_t)z.size), 0);
		err = zip_find(z.fd, 4096, &entry);
		assert_true(err == -EBADMSG || err == -ENOENT);
		assert_int_equal(zip_is_archive(z.fd), z.size >= 4);
	}
	close(z.fd);
	assert_false(zip_is_archive(-1));
	assert_int_equal(zip_find(-1, 0, &entry), -EBADF);
}
