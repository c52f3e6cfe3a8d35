/* SPDX-License-Identifier: BSD-2-Clause */
/* Images of sections: copied, inflated, cut, and read again by elf_file; and the inflater alone. */
#include <zlib.h>

#include "unit.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "elf/elf_image.h"
#include "elf/elf_sections.h"
#include "unit/forge_dwarf.h"

#define LIMIT (UINT64_C(1) << 30)

static const char *const names[] = {".debug_one", ".debug_two", ".debug_three"};

static void forge_pattern(struct forge *f, size_t size)
{
	for (size_t i = 0; i < size; i++)
		forge_number(f, (i >> 8) ^ i * 7, 1);
}

/* The content as zlib writes it, behind what is in `out` already. */
static void deflate_into(struct forge *out, const struct forge *content)
{
	uLongf size = compressBound(content->size);
	_cleanup_free_ unsigned char *packed = malloc(size);

	assert_non_null(packed);
	assert_int_equal(compress(packed, &size, content->data, content->size), Z_OK);
	forge_bytes(out, packed, size);
}

static struct elf_image *load(int fd, uint64_t limit, int expected)
{
	struct elf_image *image = NULL;
	struct elf_file *file;

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_image__load(file, names, 3, limit, true, &image), expected);
	elf_file__free(file);
	return image;
}

/* One section plain, one compressed, one compressed the old way, and one without use. */
static int forge_file(size_t size)
{
	struct forged_section sections[4] = {{".debug_one", {}, 0},
					     {".debug_two", {}, SHF_COMPRESSED},
					     {".zdebug_three", {}, 0},
					     {".debug_loc", {}, 0}};
	Elf64_Chdr header = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = size, .ch_addralign = 1};
	struct forge content = {};
	int fd;

	forge_pattern(&content, size);
	forge_bytes(&sections[0].content, content.data, size);
	forge_bytes(&sections[1].content, &header, sizeof(header));
	deflate_into(&sections[1].content, &content);
	forge_bytes(&sections[2].content, "ZLIB", 4);
	forge_number(&sections[2].content, __builtin_bswap64(size), 8);
	deflate_into(&sections[2].content, &content);
	forge_bytes(&sections[3].content, content.data, size);
	fd = forge_elf(sections, 4, ET_DYN);
	for (size_t i = 0; i < 4; i++)
		forge_free(&sections[i].content);
	forge_free(&content);
	return fd;
}

TEST(an_image_has_its_sections_inflated_and_sealed)
{
	const size_t size = 700000;
	_cleanup_close_ int fd = forge_file(size);
	struct elf_image *image = load(fd, LIMIT, 0);
	struct forge content = {};
	struct elf_section found;
	struct elf_file *file;
	size_t image_size;
	void *bytes;

	forge_pattern(&content, size);
	for (size_t i = 0; i < 3; i++) {
		struct elf_image_section *section = elf_image__section(image, names[i]);

		assert_non_null(section);
		assert_int_equal(section->size, size);
		assert_memory_equal(section->data, content.data, size);
	}
	assert_null(elf_image__section(image, ".debug_loc"));
	assert_false(image->damaged);
	assert_int_equal(image->inflated, 2 * size);
	assert_int_equal(elf_image__finish(image, &bytes, &image_size), 0);
	assert_int_equal(elf_file__open(image->fd, &file), 0);
	assert_int_equal(elf_file__find_section(file, ".debug_three", &found), 0);
	assert_int_equal(found.size, size);
	assert_memory_equal((char *)bytes + found.offset, content.data, size);
	assert_int_equal(pwrite(image->fd, "x", 1, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(image->fd, 0), -1);
	elf_file__free(file);
	elf_image__free(image);
	elf_image__free(NULL);
	forge_free(&content);
}

TEST(an_image_larger_than_its_limit_is_an_error)
{
	_cleanup_close_ int fd = forge_file(1000);

	assert_null(load(fd, 2999, -EFBIG));
	elf_image__free(load(fd, 3000, 0));
}

TEST(a_file_without_debug_sections_has_no_image)
{
	struct forged_section other = {".text", {}, 0};
	_cleanup_close_ int fd = -1;

	forge_text(&other.content, "code");
	fd = forge_elf(&other, 1, ET_DYN);
	assert_null(load(fd, LIMIT, -ENODATA));
	forge_free(&other.content);
}

/* Two sections claim 2^63 bytes each: too much for any limit, also where their sum overflows. */
TEST(sizes_whose_sum_overflows_exceed_every_limit)
{
	Elf64_Chdr header = {.ch_type = 2, .ch_size = UINT64_C(1) << 63, .ch_addralign = 1};
	struct forged_section sections[2] = {{".debug_one", {}, SHF_COMPRESSED},
					     {".debug_two", {}, SHF_COMPRESSED}};
	int fd;

	for (size_t i = 0; i < 2; i++) {
		forge_bytes(&sections[i].content, &header, sizeof(header));
		forge_text(&sections[i].content, "not zstd");
	}
	fd = forge_elf(sections, 2, ET_DYN);
	assert_null(load(fd, UINT64_MAX, -EFBIG));
	close(fd);
	fd = forge_elf(sections, 1, ET_DYN);
	assert_null(load(fd, UINT64_MAX, -EFBIG));
	close(fd);
	forge_free(&sections[0].content);
	forge_free(&sections[1].content);
}

/* What cannot be inflated here is copied whole, however little it claims to become. */
TEST(a_section_that_cannot_be_inflated_is_copied_whole)
{
	Elf64_Chdr header = {.ch_type = 2, .ch_size = 1, .ch_addralign = 1};
	struct forged_section section = {".debug_one", {}, SHF_COMPRESSED};
	struct elf_image_section *copied;
	struct elf_image *image;
	size_t size;
	int fd;

	forge_bytes(&section.content, &header, sizeof(header));
	forge_pattern(&section.content, 100000);
	size = section.content.size;
	fd = forge_elf(&section, 1, ET_DYN);
	assert_null(load(fd, size - 1, -EFBIG));
	image = load(fd, size, 0);
	copied = elf_image__section(image, ".debug_one");
	assert_non_null(copied);
	assert_int_equal(copied->size, size);
	assert_memory_equal(copied->data, section.content.data, size);
	elf_image__free(image);
	close(fd);
	forge_free(&section.content);
}

/* ---- the inflater ---------------------------------------------------------------------------- */

static int file_of(const struct forge *f)
{
	int fd = memfd_create("stream", MFD_CLOEXEC);

	assert_int_equal(write(fd, f->data, f->size), f->size);
	return fd;
}

TEST(inflating_fills_only_its_room_and_rejects_bad_streams)
{
	const size_t size = 600000;
	struct forge content = {}, stream = {};
	_cleanup_free_ unsigned char *out = malloc(2 * size);
	uint64_t inflated;
	int fd;

	assert_non_null(out);
	forge_pattern(&content, size);
	forge_text(&stream, "before");
	deflate_into(&stream, &content);
	fd = file_of(&stream);
	assert_int_equal(inflate_at(fd, 7, stream.size - 7, out, size, &inflated), 0);
	assert_int_equal(inflated, size);
	assert_memory_equal(out, content.data, size);
	/* room for more than comes; for less; nothing left out of the bound */
	assert_int_equal(inflate_at(fd, 7, stream.size - 7, out, 2 * size, &inflated), 0);
	assert_int_equal(inflated, size);
	memset(out, 0xee, 2 * size);
	assert_int_equal(inflate_at(fd, 7, stream.size - 7, out, size - 1, &inflated), -EFBIG);
	assert_int_equal(inflated, size - 1);
	assert_int_equal(out[size - 1], 0xee);
	assert_int_equal(inflate_at(fd, 7, stream.size - 7, out, 0, &inflated), -EFBIG);
	/* cut, and not a stream at all */
	assert_int_equal(inflate_at(fd, 7, stream.size / 2, out, size, &inflated), -EBADMSG);
	assert_true(inflated > 0 && inflated < size);
	assert_memory_equal(out, content.data, inflated);
	assert_int_equal(inflate_at(fd, 7, stream.size + 100, out, 2 * size, &inflated), -EBADMSG);
	assert_int_equal(inflate_at(fd, 0, stream.size, out, size, &inflated), -EBADMSG);
	assert_int_equal(inflate_at(fd, stream.size, 10, out, size, &inflated), -EBADMSG);
	close(fd);
	/* two streams, one behind the other */
	deflate_into(&stream, &content);
	fd = file_of(&stream);
	assert_int_equal(inflate_at(fd, 7, stream.size - 7, out, 2 * size, &inflated), 0);
	assert_int_equal(inflated, 2 * size);
	assert_memory_equal(out + size, content.data, size);
	close(fd);
	forge_free(&content);
	forge_free(&stream);
}
