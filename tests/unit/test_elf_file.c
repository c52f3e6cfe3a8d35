/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_file against forged files of both classes and byte orders, cut at every byte and mutated at
 * random, and against the real ones this test runs with.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"
#include "base/clocks.h"
#include "base/io.h"
#include "elf/elf_file.h"

#include "elf/elf_symbols.h"
#include "unit/forge_elf.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* ---- what a visitor collects ----------------------------------------------------------------- */

struct seen {
	size_t count, dynamic_count, typed_count;
	size_t name_bytes;
	char names[8][16]; /* of the first few */
	struct elf_symbol symbols[8];
	size_t stop_after;
	const char *wanted;
	uint64_t wanted_address;
};

static int see(void *context, const struct elf_symbol *s)
{
	struct seen *seen = context;

	assert_true(*s->name);
	assert_null(strchr(s->name, '@'));
	seen->name_bytes += strlen(s->name); /* reads it to its end */
	if (seen->count < 8) {
		snprintf(seen->names[seen->count], 16, "%s", s->name);
		seen->symbols[seen->count] = *s;
	}
	seen->count++;
	seen->dynamic_count += s->dynamic;
	seen->typed_count += s->dynamic && s->type != STT_NOTYPE;
	if (seen->wanted && !strcmp(s->name, seen->wanted))
		seen->wanted_address = s->address;
	return seen->stop_after && seen->count == seen->stop_after ? 42 : 0;
}

/* ---- forged, whole --------------------------------------------------------------------------- */

TEST(reads_every_class_and_order)
{
	for (size_t i = 0; i < COUNT(variants); i++) {
		struct seen seen = {};
		struct image im;
		uint8_t id[32];
		struct elf_file *file;
		int fd;

		forge(&im, variants[i].is_64, variants[i].big);
		file = open_image(&im, &fd);
		assert_int_equal(elf_file__build_id(file, id, sizeof(id)), 20);
		assert_memory_equal(id, BUILD_ID, 20);
		assert_int_equal(elf_file__build_id(file, id, 5), 5);
		assert_int_equal(elf_file__each_symbol(file, see, &seen), 0);
		assert_int_equal(seen.count, 4);
		assert_int_equal(seen.dynamic_count, 0);
		assert_string_equal(seen.names[0], "first");
		assert_string_equal(seen.names[1], "second");
		assert_string_equal(seen.names[2], "label");
		assert_string_equal(seen.names[3], "ifunc");
		assert_int_equal(seen.symbols[1].address, 0x2210);
		assert_int_equal(seen.symbols[1].size, 0x20);
		assert_int_equal(seen.symbols[1].type, STT_FUNC);
		assert_int_equal(seen.symbols[1].binding, STB_GLOBAL);
		assert_int_equal(seen.symbols[1].section_end, 0x2300);
		assert_int_equal(elf_file__each_symbol(file, see, &seen), 0); /* again */
		assert_int_equal(seen.count, 8);
		close_image(file, fd);
	}
}

TEST(translates_addresses)
{
	static const struct {
		uint64_t offset, address;
		int err;
	} places[] = {
		{0, 0x1000, 0},		  {0x1ff, 0x11ff, 0},
		{0x200, 0x2200, 0},	  {0x2ff, 0x22ff, 0},
		{0x300, 0x5300, 0},	  {0x3ff, 0x53ff, 0},
		{0x400, 0x5400, -ENOENT}, {UINT64_MAX, UINT64_MAX, -ENOENT},
	};
	struct elf_file *file;
	struct image im;
	int fd;

	forge(&im, true, false);
	file = open_image(&im, &fd);
	for (size_t i = 0; i < COUNT(places); i++) {
		uint64_t address = 4711, offset = 4711;

		assert_int_equal(elf_file__address_of_offset(file, places[i].offset, &address),
				 places[i].err);
		assert_int_equal(address, places[i].err ? 4711 : places[i].address);
		assert_int_equal(elf_file__offset_of_address(file, places[i].address, &offset),
				 places[i].err);
		assert_int_equal(offset, places[i].err ? 4711 : places[i].offset);
	}
	close_image(file, fd);
}

TEST(visitor_can_stop)
{
	struct seen seen = {.stop_after = 2};
	struct elf_file *file;
	struct image im;
	int fd;

	forge(&im, true, false);
	file = open_image(&im, &fd);
	assert_int_equal(elf_file__each_symbol(file, see, &seen), 42);
	assert_int_equal(seen.count, 2);
	close_image(file, fd);
	elf_file__free(NULL);
}

/* ---- forged, wrong --------------------------------------------------------------------------- */

static void expect_refusal(const void *bytes, size_t size, int err)
{
	struct elf_file *file = NULL;
	int fd = make_file(bytes, size);

	assert_int_equal(elf_file__open(fd, &file), err);
	assert_null(file);
	close(fd);
}

TEST(refuses_what_is_no_elf)
{
	struct elf_file *file = NULL;
	struct image im;
	int fd;

	expect_refusal("", 0, -ENOEXEC);
	expect_refusal("#!/bin/sh\necho a script, longer than a header\n", 46, -ENOEXEC);
	expect_refusal("\177ELF", 4, -ENOEXEC);
	forge(&im, true, false);
	expect_refusal(im.bytes, 63, -ENOEXEC);
	im.bytes[EI_CLASS] = 3;
	expect_refusal(im.bytes, im.size, -EBADMSG);
	forge(&im, true, false);
	im.bytes[EI_DATA] = 0;
	expect_refusal(im.bytes, im.size, -EBADMSG);
	forge(&im, true, false);
	expect_refusal(im.bytes, 64, -EBADMSG); /* a header that promises tables */
	fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(elf_file__open(fd, &file), -EISDIR);
	close(fd);
	assert_int_equal(elf_file__open(-1, &file), -EBADF);
}

/* Every question about a file, whatever is wrong with it; the number of symbols. */
static size_t exercise(struct elf_file *file)
{
	struct seen seen = {};
	uint8_t id[20];
	uint64_t value;
	int err = elf_file__build_id(file, id, sizeof(id));

	assert_true((err > 0 && err <= 20) || err == -ENOENT || err == -EFBIG);
	for (uint64_t at = 0; at < 0x6000; at += 0x1ff) {
		elf_file__address_of_offset(file, at, &value);
		elf_file__offset_of_address(file, at, &value);
	}
	err = elf_file__each_symbol(file, see, &seen);
	assert_true(err == 0 || err == -ENODATA || err == -EBADMSG);
	return seen.count;
}

TEST(survives_truncation_at_every_byte)
{
	for (size_t i = 0; i < COUNT(variants); i++) {
		struct image im;

		forge(&im, variants[i].is_64, variants[i].big);
		for (size_t size = 0; size <= im.size; size++) {
			struct elf_file *file = NULL;
			int fd = make_file(im.bytes, size);
			int err = elf_file__open(fd, &file);

			if (size < 52)
				assert_int_equal(err, -ENOEXEC);
			assert_true(err == 0 || err == -ENOEXEC || err == -EBADMSG);
			if (!err && size < im.size)
				assert_true(exercise(file) <= 4);
			else if (!err)
				assert_int_equal(exercise(file), 4);
			elf_file__free(file);
			close(fd);
		}
	}
}

TEST(survives_truncation_while_reading)
{
	for (size_t i = 0; i < COUNT(variants); i++) {
		struct image im;

		forge(&im, variants[i].is_64, variants[i].big);
		for (size_t size = 0; size <= im.size; size += 3) {
			struct seen seen = {};
			struct elf_file *file;
			int fd;

			file = open_image(&im, &fd);
			assert_int_equal(ftruncate(fd, size), 0);
			exercise(file);
			elf_file__free(file);
			/* between two looks, with the sections known */
			assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
			assert_int_equal(write_full(fd, im.bytes, im.size), 0);
			assert_int_equal(elf_file__open(fd, &file), 0);
			seen.stop_after = 1;
			assert_int_equal(elf_file__each_symbol(file, see, &seen), 42);
			assert_int_equal(ftruncate(fd, size), 0);
			exercise(file);
			close_image(file, fd);
		}
	}
}

/* A few thousand files with some bytes changed, mostly in the headers. The seed is fixed. */
TEST(survives_mutation)
{
	uint64_t random = 88172645463325252, deadline = monotonic_ns() + 60 * UINT64_C(1000000000);
	static const unsigned char evil[] = {0, 1, 2, 3, 4, 8, 0x7f, 0x80, 0xff};

	for (int round = 0; round < 8000; round++) {
		struct elf_file *file;
		struct image im;
		int fd;

		forge(&im, variants[round % 4].is_64, variants[round % 4].big);
		for (int i = 0; i < 1 + round % 7; i++) {
			size_t at;

			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			at = (random >> 20) % 3
				     ? (random >> 24) % 0x180
				     : im.section_headers - 0x200 + (random >> 24) % 0x380;
			im.bytes[at % im.size] = random & 1 ? evil[(random >> 8) % sizeof(evil)]
							    : random >> 8;
		}
		fd = make_file(im.bytes, im.size);
		if (!elf_file__open(fd, &file)) {
			exercise(file);
			elf_file__free(file);
		}
		close(fd);
		assert_true(monotonic_ns() < deadline);
	}
}

TEST(without_sections_the_note_segment_counts)
{
	struct seen seen = {};
	struct elf_file *file;
	struct image im;
	uint8_t id[20];
	int fd;

	forge(&im, true, false);
	put(&im, E_SHOFF(&im), 0, 8);
	put(&im, E_SHNUM(&im), 0, 2);
	file = open_image(&im, &fd);
	assert_int_equal(elf_file__build_id(file, id, 20), 20);
	assert_int_equal(elf_file__each_symbol(file, see, &seen), -ENODATA);
	close_image(file, fd);
}

TEST(without_segments_the_note_section_counts)
{
	for (size_t i = 0; i < COUNT(variants); i++) {
		struct elf_file *file;
		struct image im;
		uint8_t id[20];
		int fd;

		forge(&im, variants[i].is_64, variants[i].big);
		put(&im, E_PHNUM(&im), 0, 2);
		file = open_image(&im, &fd);
		assert_int_equal(elf_file__build_id(file, id, 20), 20);
		assert_memory_equal(id, BUILD_ID, 20);
		assert_int_equal(exercise(file), 4);
		close_image(file, fd);

		forge(&im, variants[i].is_64, variants[i].big);
		put(&im, E_PHOFF(&im), im.size + 1, WORD(&im)); /* past the end */
		file = open_image(&im, &fd);
		assert_int_equal(elf_file__build_id(file, id, 20), 20);
		close_image(file, fd);
	}
}

TEST(extended_numbering)
{
	for (size_t i = 0; i < COUNT(variants); i++) {
		struct elf_file *file;
		struct image im;
		uint64_t address;
		int fd;

		forge(&im, variants[i].is_64, variants[i].big);
		put(&im, E_SHNUM(&im), 0, 2);
		put(&im, SECTION(&im, 0, sh_size), 6, WORD(&im));
		put(&im, E_PHNUM(&im), PN_XNUM, 2);
		put(&im, SECTION(&im, 0, sh_info), 4, 4);
		file = open_image(&im, &fd);
		assert_int_equal(exercise(file), 4);
		assert_int_equal(elf_file__address_of_offset(file, 0x300, &address), 0);
		assert_int_equal(address, 0x5300);
		close_image(file, fd);

		/* the same, lying: as many as a field can say */
		put(&im, SECTION(&im, 0, sh_size), UINT64_MAX, WORD(&im));
		put(&im, SECTION(&im, 0, sh_info), UINT32_MAX, 4);
		file = open_image(&im, &fd);
		assert_int_equal(exercise(file), 4);
		close_image(file, fd);

		forge(&im, variants[i].is_64, variants[i].big);
		put(&im, E_SHNUM(&im), 65535, 2);
		file = open_image(&im, &fd);
		assert_int_equal(exercise(file), 4);
		close_image(file, fd);
	}
}

static int symbols_error(const struct image *im, size_t expected_count)
{
	struct seen seen = {};
	struct elf_file *file;
	int fd, err;

	file = open_image(im, &fd);
	err = elf_file__each_symbol(file, see, &seen);
	assert_int_equal(seen.count, expected_count);
	close_image(file, fd);
	return err;
}

TEST(detects_damaged_symbol_tables)
{
	struct image im;

	forge(&im, true, false); /* string table in a section that does not exist */
	put(&im, SECTION(&im, 3, sh_link), 100, 4);
	assert_int_equal(symbols_error(&im, 0), -EBADMSG);
	forge(&im, true, false); /* … that is none */
	put(&im, SECTION(&im, 3, sh_link), 1, 4);
	assert_int_equal(symbols_error(&im, 0), -EBADMSG);
	forge(&im, true, false); /* entries of another size */
	put(&im, SECTION(&im, 3, sh_entsize), 0, 8);
	assert_int_equal(symbols_error(&im, 0), -EBADMSG);
	forge(&im, true, false); /* larger than the file */
	put(&im, SECTION(&im, 4, sh_size), UINT64_MAX, 8);
	assert_int_equal(symbols_error(&im, 4), -EBADMSG);
	forge(&im, true, false); /* beyond the file */
	put(&im, SECTION(&im, 3, sh_offset), UINT64_MAX - 8, 8);
	assert_int_equal(symbols_error(&im, 0), -EBADMSG);
	forge(&im, true, false); /* strings that start behind the file's end */
	put(&im, SECTION(&im, 4, sh_offset), UINT64_MAX, 8);
	assert_int_equal(symbols_error(&im, 0), -EBADMSG);
	forge(&im, true, false); /* a name behind the strings' end */
	put(&im, im.symbols + 24, sizeof(strings), 4);
	assert_int_equal(symbols_error(&im, 3), -EBADMSG);
	forge(&im, true, false); /* section headers of another size */
	put(&im, E_SHENTSIZE(&im), 63, 2);
	assert_int_equal(symbols_error(&im, 0), -EBADMSG);
	forge(&im, true, false); /* strings without a NUL at their end */
	put(&im, SECTION(&im, 4, sh_size), IFUNC + 3, 8);
	put(&im, im.symbols + 10 * 24, 0, 4);
	assert_int_equal(symbols_error(&im, 4), 0);
}

TEST(overlapping_segments_prefer_code)
{
	struct elf_file *file;
	struct cursor c;
	struct image im;
	uint64_t address;
	int fd;

	forge(&im, true, false);
	c = (struct cursor){&im, im.program_headers};
	segment(&c, PT_LOAD, PF_R, 0, 0x10000, 0x400, 0x1000);
	segment(&c, PT_LOAD, PF_R | PF_X, 0x100, 0x20100, 0x100, 0x1000);
	segment(&c, PT_LOAD, PF_R | PF_X, UINT64_MAX - 5, 0x30000, 100, 0x1000); /* wraps */
	segment(&c, PT_LOAD, PF_R | PF_X, 0x150, UINT64_MAX - 5, 100, 0x1000);
	file = open_image(&im, &fd);
	assert_int_equal(elf_file__address_of_offset(file, 0x80, &address), 0);
	assert_int_equal(address, 0x10080);
	assert_int_equal(elf_file__address_of_offset(file, 0x180, &address), 0);
	assert_int_equal(address, 0x20180);
	assert_int_equal(elf_file__address_of_offset(file, UINT64_MAX - 3, &address), -ENOENT);
	assert_int_equal(elf_file__offset_of_address(file, UINT64_MAX - 3, &address), -ENOENT);
	close_image(file, fd);
}

TEST(build_ids_of_many_kinds)
{
	struct elf_file *file;
	struct cursor c;
	struct image im;
	uint8_t id[20] = {};
	int fd;

	forge(&im, true, false); /* notes aligned to 8, as .note.gnu.property */
	memset(im.bytes + im.notes, 0, 0x80);
	c = (struct cursor){&im, im.program_headers};
	segment(&c, PT_NOTE, PF_R, im.notes, 0x1180, 0x80, 8);
	c.at = im.notes;
	note(&c, "GNU", 5, "123456789", 8);
	note(&c, "GNU", NT_GNU_BUILD_ID, "abcdefg", 8);
	put(&im, E_SHNUM(&im), 0, 2);
	file = open_image(&im, &fd);
	assert_int_equal(elf_file__build_id(file, id, 20), 7);
	assert_memory_equal(id, "abcdefg", 7);
	close_image(file, fd);

	forge(&im, true, false); /* an empty one, another vendor's, then the real one */
	memset(im.bytes + im.notes, 0, 0x80);
	c.at = im.notes;
	note(&c, "GNU", NT_GNU_BUILD_ID, "", 4);
	note(&c, "XNU", NT_GNU_BUILD_ID, "wrong", 4);
	note(&c, "GNU", NT_GNU_BUILD_ID, "a", 4);
	file = open_image(&im, &fd);
	assert_int_equal(elf_file__build_id(file, id, 20), 1);
	assert_int_equal(id[0], 'a');
	close_image(file, fd);

	forge(&im, true, false); /* a size that leads out of the segment */
	put(&im, im.notes, UINT32_MAX, 4);
	file = open_image(&im, &fd);
	assert_int_equal(elf_file__build_id(file, id, 20), -ENOENT);
	close_image(file, fd);

	forge(&im, true, false); /* the first segment is damaged, the second is not */
	c = (struct cursor){&im, im.program_headers};
	segment(&c, PT_NOTE, PF_R, im.size + 100, 0, 0x80, 4);
	segment(&c, PT_NOTE, PF_R, im.notes, 0, UINT64_MAX, 4);
	file = open_image(&im, &fd);
	assert_int_equal(elf_file__build_id(file, id, 20), 20);
	close_image(file, fd);
}

/* Very many symbols that share one very long name: time must not be their product. */
TEST(endless_names_are_cut_short)
{
	enum { SYMBOLS = 400000, NAME = 60000 };
	size_t size = 0x1000 + SYMBOLS * 24 + NAME;
	unsigned char *bytes = calloc(1, size);
	uint64_t start = monotonic_ns();
	struct seen seen = {};
	struct elf_file *file;
	struct cursor c;
	struct image im;
	int fd;

	assert_non_null(bytes);
	forge(&im, true, false);
	c = (struct cursor){&im, 0x800};
	symbol(&c, 1, STT_FUNC, 1, 0x2200, 4);
	put(&im, SECTION(&im, 3, sh_offset), 0x1000, 8);
	put(&im, SECTION(&im, 3, sh_size), SYMBOLS * 24, 8);
	put(&im, SECTION(&im, 4, sh_offset), 0x1000 + SYMBOLS * 24, 8);
	put(&im, SECTION(&im, 4, sh_size), NAME, 8);
	memcpy(bytes, im.bytes, im.size);
	for (size_t i = 0; i < SYMBOLS; i++)
		memcpy(bytes + 0x1000 + i * 24, im.bytes + 0x800, 24);
	memset(bytes + 0x1000 + SYMBOLS * 24, 'n', NAME);
	fd = make_file(bytes, size);
	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_file__each_symbol(file, see, &seen), 0);
	assert_true(elf_file__left(file));
	assert_true(seen.count > 100 && seen.count < 5000);
	assert_true(monotonic_ns() - start < 10 * UINT64_C(1000000000));
	close_image(file, fd);
	free(bytes);
}

/* ---- real files ------------------------------------------------------------------------------ */

TEST(reads_itself)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct seen seen = {.wanted = "reads_itself"};
	uint64_t offset, address, page = sysconf(_SC_PAGESIZE);
	unsigned char in_file[16];
	struct elf_file *file;

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_file__each_symbol(file, see, &seen), 0);
	assert_true(seen.wanted_address != 0);
	assert_int_equal(((uintptr_t)reads_itself - seen.wanted_address) % page, 0);
	assert_int_equal(elf_file__offset_of_address(file, seen.wanted_address, &offset), 0);
	assert_int_equal(elf_file__address_of_offset(file, offset, &address), 0);
	assert_int_equal(address, seen.wanted_address);
	assert_int_equal(pread_full(fd, in_file, sizeof(in_file), offset), sizeof(in_file));
	assert_memory_equal(in_file, (void *)(uintptr_t)reads_itself, sizeof(in_file));
	close_image(file, fd);
}

/* The C library this process runs with, as the dynamic linker sees it. */
struct libc_facts {
	char path[512];
	uint8_t build_id[20];
	uint64_t bias;
};

static int find_libc(struct dl_phdr_info *info, size_t size, void *context)
{
	struct libc_facts *facts = context;

	(void)size;
	if (!strstr(info->dlpi_name, "/libc.so"))
		return 0;
	snprintf(facts->path, sizeof(facts->path), "%s", info->dlpi_name);
	facts->bias = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const char *notes = (const char *)(info->dlpi_addr + p->p_vaddr);

		for (size_t at = 0; p->p_type == PT_NOTE && at + 36 <= p->p_filesz; at += 4) {
			if (!memcmp(notes + at, "\4\0\0\0\24\0\0\0\3\0\0\0GNU", 16))
				memcpy(facts->build_id, notes + at + 16, 20);
		}
	}
	return 1;
}

TEST(reads_the_c_library)
{
	struct libc_facts facts = {};
	/* a function that neither sanitizers nor anybody else interposes */
	struct seen seen = {.wanted = "gnu_get_libc_version"};
	struct seen bare = {.wanted = "gnu_get_libc_version"};
	struct elf_file *file;
	uint8_t id[32];
	size_t size;
	char *data;
	int fd;

	assert_int_equal(dl_iterate_phdr(find_libc, &facts), 1);
	fd = open(facts.path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_file__build_id(file, id, sizeof(id)), 20);
	assert_memory_equal(id, facts.build_id, 20);
	assert_int_equal(elf_file__each_symbol(file, see, &seen), 0);
	assert_true(seen.dynamic_count > 1000);
	assert_int_equal(seen.wanted_address + facts.bias, (uintptr_t)gnu_get_libc_version);
	close_image(file, fd);

	/* without its section headers: the same, by the dynamic linker's hash table */
	assert_int_equal(read_file_at(AT_FDCWD, facts.path, 64 << 20, &data, &size), 0);
	((ElfW(Ehdr) *)data)->e_shoff = 0;
	((ElfW(Ehdr) *)data)->e_shnum = 0;
	fd = make_file(data, size);
	free(data);
	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_file__each_symbol(file, see, &bare), 0);
	assert_int_equal(bare.count, seen.typed_count);
	assert_int_equal(bare.dynamic_count, bare.count);
	assert_int_equal(bare.wanted_address, seen.wanted_address);
	assert_int_equal(elf_file__build_id(file, id, sizeof(id)), 20);
	close_image(file, fd);
}

/* The library again, cut short in steps and with its hash tables scrambled. */
TEST(survives_a_damaged_c_library)
{
	struct libc_facts facts = {};
	uint64_t random = 7;
	size_t size;
	char *data;

	assert_int_equal(dl_iterate_phdr(find_libc, &facts), 1);
	assert_int_equal(read_file_at(AT_FDCWD, facts.path, 64 << 20, &data, &size), 0);
	((ElfW(Ehdr) *)data)->e_shoff = 0;
	((ElfW(Ehdr) *)data)->e_shnum = 0;
	for (int i = 0; i < 200; i++) {
		struct elf_file *file;
		size_t cut;
		int fd;

		random = random * 6364136223846793005 + 1442695040888963407;
		cut = 4096 + (random >> 24) % 200000; /* notes, hashes, symbols, strings */
		fd = make_file(data, cut < size ? cut : size);
		assert_int_equal(elf_file__open(fd, &file), 0);
		exercise(file);
		close_image(file, fd);
		for (int j = 0; j < 20; j++) {
			random = random * 6364136223846793005 + 1442695040888963407;
			data[64 + (random >> 24) % 100000] = random >> 40;
		}
	}
	free(data);
}
