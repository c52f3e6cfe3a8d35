/* SPDX-License-Identifier: BSD-2-Clause */
/* Sections by name and the links to debug files, of files made by cc and objcopy, then damaged. */
#include <elf.h>

#include "unit.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "elf/elf_file.h"

#include "elf/elf_sections.h"
#include "unit/tools.h"

static const char SOURCE[] = "static int zeroes[100]; int main(void) { return zeroes[1]; }\n";

static void setup(void)
{
	make_scratch();
	write_scratch("prog.c", SOURCE, sizeof(SOURCE) - 1);
	write_scratch("words", "some words", 10);
	run("${CC:-cc} -g -o plain prog.c && "
	    "objcopy --add-section .words=words --add-gnu-debuglink=words plain prog && "
	    "objcopy --compress-debug-sections=zlib prog compressed");
}

struct opened {
	int fd;
	struct elf_file *file;
};

static struct opened open_elf(const char *name)
{
	struct opened o = {.fd = open_scratch(name, O_RDONLY)};

	assert_int_equal(elf_file__open(o.fd, &o.file), 0);
	return o;
}

static void close_elf(struct opened *o)
{
	elf_file__free(o->file);
	close(o->fd);
}

TEST(sections_are_found_by_their_whole_name)
{
	struct opened o = open_elf("prog");
	struct elf_section section;

	assert_int_equal(elf_file__find_section(o.file, ".words", &section), 0);
	assert_int_equal(section.size, 10);
	assert_int_equal(section.type, SHT_PROGBITS);
	assert_int_equal(elf_file__find_section(o.file, ".text", &section), 0);
	assert_true(section.flags & SHF_EXECINSTR && section.address && section.size);
	assert_int_equal(elf_file__find_section(o.file, ".bss", &section), 0);
	assert_int_equal(section.type, SHT_NOBITS);
	section.size = 7;
	assert_int_equal(elf_file__find_section(o.file, ".word", &section), -ENOENT);
	assert_int_equal(elf_file__find_section(o.file, ".words2", &section), -ENOENT);
	assert_int_equal(section.size, 7);
	close_elf(&o);
}

TEST(only_plain_sections_within_the_limit_have_data)
{
	struct opened o = open_elf("prog"), compressed = open_elf("compressed");
	void *data = NULL;
	size_t size = 7;

	assert_int_equal(elf_file__section_data(o.file, ".words", 9, &data, &size), -EFBIG);
	assert_int_equal(elf_file__section_data(o.file, ".bss", 1 << 20, &data, &size), -ENOENT);
	assert_int_equal(elf_file__section_data(o.file, ".none", 1 << 20, &data, &size), -ENOENT);
	assert_int_equal(
		elf_file__section_data(compressed.file, ".debug_info", 1 << 20, &data, &size),
		-ENOTSUP);
	assert_null(data);
	assert_int_equal(size, 7);
	assert_int_equal(elf_file__section_data(o.file, ".words", 10, &data, &size), 0);
	assert_int_equal(size, 10);
	assert_string_equal(data, "some words");
	free(data);
	close_elf(&o);
	close_elf(&compressed);
}

TEST(debug_links_have_names_with_crc_or_build_id)
{
	struct opened o = open_elf("prog"), without = open_elf("plain");
	uint8_t id[8];
	char name[64];
	uint32_t crc = 0;

	assert_int_equal(elf_file__debug_link(without.file, name, sizeof(name), &crc), -ENOENT);
	assert_int_equal(elf_file__alternate_link(o.file, name, sizeof(name), id, 8), -ENOENT);
	assert_int_equal(elf_file__debug_link(o.file, name, 5, &crc), -ENAMETOOLONG);
	assert_int_equal(elf_file__debug_link(o.file, name, 6, &crc), 0);
	assert_string_equal(name, "words");
	assert_int_equal(crc, crc32_update(0, "some words", 10));
	close_elf(&o);
	close_elf(&without);
	write_scratch("link", "dwz\0\1\2\3", 7);
	run("objcopy --add-section .gnu_debugaltlink=link plain alternate");
	o = open_elf("alternate");
	assert_int_equal(elf_file__alternate_link(o.file, name, sizeof(name), id, 2), -EFBIG);
	assert_int_equal(elf_file__alternate_link(o.file, name, 3, id, 8), -ENAMETOOLONG);
	assert_int_equal(elf_file__alternate_link(o.file, name, 4, id, 8), 3);
	assert_string_equal(name, "dwz");
	assert_memory_equal(id, "\1\2\3", 3);
	close_elf(&o);
	write_scratch("link", "dwz\0", 4);
	run("objcopy --add-section .gnu_debugaltlink=link plain alternate");
	o = open_elf("alternate");
	assert_int_equal(elf_file__alternate_link(o.file, name, sizeof(name), id, 8), -EBADMSG);
	close_elf(&o);
}

TEST(the_crc_of_a_big_endian_link_is_converted)
{
	static const unsigned char names[] = "\0.gnu_debuglink\0.shstrtab";
	static const unsigned char link[] = {'a', 0, 0, 0, 0x12, 0x34, 0x56, 0x78};
	unsigned char image[512] = "\177ELF\1\2\1"; /* 32 bits, big-endian */
	_cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC);
	struct elf_file *file;
	uint32_t crc = 0;
	char name[8];

	image[17] = ET_DYN;
	image[23] = EV_CURRENT;
	image[35] = 0x80; /* e_shoff */
	image[41] = sizeof(Elf32_Ehdr);
	image[47] = sizeof(Elf32_Shdr);
	image[49] = 3;
	image[51] = 2; /* e_shstrndx */
	for (int i = 1; i < 3; i++) {
		unsigned char *section = image + 0x80 + i * sizeof(Elf32_Shdr);

		section[3] = i == 1 ? 1 : 16;
		section[7] = i == 1 ? SHT_PROGBITS : SHT_STRTAB;
		section[18] = 1; /* offset 0x100, 0x140 */
		section[19] = i == 1 ? 0 : 0x40;
		section[23] = i == 1 ? sizeof(link) : sizeof(names);
	}
	memcpy(image + 0x100, link, sizeof(link));
	memcpy(image + 0x140, names, sizeof(names));
	assert_int_equal(pwrite(fd, image, sizeof(image), 0), sizeof(image));
	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_file__debug_link(file, name, sizeof(name), &crc), 0);
	assert_string_equal(name, "a");
	assert_int_equal(crc, 0x12345678);
	elf_file__free(file);
}

/* More sections than e_shstrndx can count. */
TEST(sections_beyond_the_16_bit_count_are_found)
{
	struct elf_section section;
	struct opened o;

	run("(i=0; while [ $i -lt 66000 ]; do echo \".section .s$i,\\\"a\\\"; .byte 1\"; "
	    "i=$((i+1)); done) >many.s && ${CC:-cc} -c -o many.o many.s");
	o = open_elf("many.o");
	assert_int_equal(elf_file__find_section(o.file, ".s65999", &section), 0);
	assert_int_equal(section.size, 1);
	assert_int_equal(elf_file__find_section(o.file, ".s66000", &section), -ENOENT);
	close_elf(&o);
}

/* Nothing but the errors that are promised, and only whole data. */
static void check_image(const unsigned char *data, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC), err;
	struct elf_file *file;
	struct elf_section section;
	void *bytes = NULL;
	size_t bytes_size;
	uint32_t crc;
	char name[16];

	assert_int_equal(pwrite(fd, data, size, 0), (ssize_t)size);
	if (!elf_file__open(fd, &file)) {
		err = elf_file__find_section(file, ".words", &section);
		assert_true(!err || err == -ENOENT || err == -EBADMSG);
		err = elf_file__section_data(file, ".words", 1000, &bytes, &bytes_size);
		assert_true(err ? !bytes : bytes && bytes_size <= 1000);
		free(bytes);
		elf_file__debug_link(file, name, sizeof(name), &crc);
		elf_file__free(file);
	}
	close(fd);
}

TEST(damaged_files_give_bounded_data_or_an_error)
{
	size_t size;
	_cleanup_free_ unsigned char *good = read_scratch("prog", &size);
	_cleanup_free_ unsigned char *bad = malloc(size);
	uint64_t seed = 0x9e3779b97f4a7c15, headers;

	memcpy(&headers, good + offsetof(Elf64_Ehdr, e_shoff), sizeof(headers));
	for (size_t cut = 0; cut < size; cut += 1 + size / 500)
		check_image(good, cut);
	for (int round = 0; round < 5000; round++) {
		memcpy(bad, good, size);
		for (uint64_t n = 1 + next_random(&seed) % 4; n; n--) {
			size_t at = next_random(&seed) % 3
					    ? headers + next_random(&seed) % (size - headers)
					    : next_random(&seed) % 64;

			bad[at] = next_random(&seed) % 2 ? next_random(&seed) : 0xff;
		}
		check_image(bad, size);
	}
}

ALL_TESTS_WITH(setup, remove_scratch);
