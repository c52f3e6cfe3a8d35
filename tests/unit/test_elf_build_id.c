/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Build-ids at a bounded price: what test_elf_file.c asks of an open file holds for a descriptor too, and no file, whatever it
 * promises, is read for more than 64 KB.
 */
#include "unit.h"
#include "base/cleanup.h"
#include "elf/elf_build_id.h"
#include "elf/elf_file.h"
#include "unit/forge_elf.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define READ_MAX     (64u << 10)
#define MB	     (1u << 20)

/* Bytes that this process has read so far; to ask takes some of its own. */
static uint64_t bytes_read(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/io", "re");
	unsigned long long bytes;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "rchar: %llu", &bytes), 1);
	return bytes;
}

static int request(int fd, uint8_t *id)
{
	uint64_t before = bytes_read();
	int result = elf_read_build_id(fd, 0, id, 20);

	assert_in_range(bytes_read() - before, 0, READ_MAX + 4096);
	return result;
}

TEST(build_ids_are_read_from_every_elf_variant)
{
	for (size_t i = 0; i < COUNT(variants); i++) {
		_cleanup_close_ int fd = -1, behind = -1;
		struct image im;
		uint8_t id[20];

		forge(&im, variants[i].is_64, variants[i].big);
		fd = make_file(im.bytes, im.size);
		assert_int_equal(request(fd, id), 20);
		assert_memory_equal(id, BUILD_ID, 20);
		assert_int_equal(elf_read_build_id(fd, 0, id, 5), 5);
		behind = make_file("0123456789", 10);
		assert_int_equal(pwrite(behind, im.bytes, im.size, 10), im.size);
		assert_int_equal(elf_read_build_id(behind, 10, id, 20), 20);
		assert_int_equal(elf_read_build_id(behind, 9, id, 20), -ENOEXEC);
		assert_int_equal(elf_read_build_id(behind, UINT64_MAX, id, 20), -ENOEXEC);
	}
}

TEST(a_truncated_file_gives_its_id_or_an_error)
{
	struct image im;
	uint8_t id[20];

	forge(&im, true, false);
	for (size_t size = 0; size < im.size; size += 3) {
		_cleanup_close_ int fd = make_file(im.bytes, size);
		int result = request(fd, id);

		assert_true(result == 20 || result == -ENOENT || result == -ENOEXEC ||
			    result == -EBADMSG);
		assert_true(result != 20 || size > im.notes);
	}
	assert_int_equal(elf_read_build_id(-1, 0, id, 20), -EBADF);
}

/* Many ranges of notes, all of them the same megabyte of small notes, and as many sections as can be. */
TEST(notes_beyond_the_read_limit_are_an_error)
{
	_cleanup_free_ unsigned char *bytes = calloc(2, MB);
	struct cursor c;
	struct image im;
	uint8_t id[20];
	_cleanup_close_ int fd = -1;

	assert_non_null(bytes);
	memset(&im, 0, sizeof(im));
	im.is_64 = true;
	im.program_headers = 64;
	im.section_headers = 2 * MB;
	c = (struct cursor){&im, 64};
	for (int i = 0; i < 60; i++)
		segment(&c, PT_NOTE, PF_R, MB, 0, MB, 4);
	header(&im, 60, 0);
	memcpy(bytes, im.bytes, im.size);
	fd = make_file(bytes, 2 * MB);
	assert_int_equal(ftruncate(fd, 2 * MB + (64 << 18)), 0);
	assert_int_equal(pwrite(fd, &(Elf64_Shdr){.sh_size = 1 << 18}, 64, 2 * MB), 64);
	assert_int_equal(request(fd, id), -EFBIG);
}

/* The ranges are far from each other and from their table: each costs a read, and there are 16. */
TEST(too_many_scattered_notes_are_refused)
{
	struct cursor c;
	struct image im;
	uint8_t id[20];
	_cleanup_close_ int fd = -1;

	memset(&im, 0, sizeof(im));
	im.is_64 = true;
	im.program_headers = 64;
	c = (struct cursor){&im, 64};
	for (uint64_t i = 1; i <= 40; i++)
		segment(&c, PT_NOTE, PF_R, i * MB, 0, 4096, 4);
	header(&im, 40, 0);
	fd = make_file(im.bytes, im.size);
	assert_int_equal(ftruncate(fd, 64 * MB), 0);
	assert_int_equal(request(fd, id), -EFBIG);
}

/* `count` empty segments, as of one that is there in vain. */
static int request_of_segments(size_t count, uint8_t *id)
{
	const Elf64_Phdr note = {.p_type = PT_NOTE, .p_offset = 64 << 10, .p_filesz = 1};
	struct image im = {.is_64 = true, .program_headers = 64};
	int fd, result;

	header(&im, count, 0);
	fd = make_file(im.bytes, im.size);
	assert_int_equal(ftruncate(fd, 64 << 10), 0);
	assert_int_equal(pwrite(fd, &note, sizeof(note), 64), sizeof(note));
	result = request(fd, id);
	close(fd);
	return result;
}

TEST(the_number_of_segments_is_limited)
{
	uint8_t id[20];

	assert_int_equal(request_of_segments(256, id), -ENOENT);
	assert_int_equal(request_of_segments(257, id), -EFBIG);
}
