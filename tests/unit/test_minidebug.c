/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * .gnu_debugdata, made as Fedora makes it: with nm, objcopy and xz. Then damaged, cut, and built to
 * do harm.
 */
#include "unit.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "elf/elf_file.h"
#include "elf/elf_sections.h"
#include "symbolize/minidebug.h"
#include "symbolize/module.h"
#include "symbolize/sealed.h"
#include "symbolize/module_private.h"

#include "symbolize/symbol_table.h"
#include "unit/tools.h"

static const char SOURCE[] = "static int __attribute__((noinline)) hidden_one(int x)\n"
			     "{ return x * 3 + 1; }\n"
			     "static int __attribute__((noinline)) hidden_two(int x)\n"
			     "{ return hidden_one(x) ^ 5; }\n"
			     "int main(int argc, char **argv)\n"
			     "{ (void)argv; return hidden_two(argc); }\n";

/* A binary `name` that has the bytes of `data` as its .gnu_debugdata. */
static void attach(const char *name, const char *data)
{
	run("objcopy --add-section .gnu_debugdata=%s stripped %s", data, name);
}

static void setup(void)
{
	make_scratch();
	write_scratch("prog.c", SOURCE, sizeof(SOURCE) - 1);
	run("${CC:-cc} -O1 -g -o prog prog.c");
	run("nm prog --format=posix --defined-only | awk '$2 == \"t\" || $2 == \"T\" { print $1 }' "
	    ">keep");
	run("objcopy -S --keep-symbols=keep prog mini && strip -o stripped prog");
	/* with threads, by default since xz 5.6, headers of blocks have their sizes */
	run("xz -T1 -k mini && xz -T2 -k mini -c >threads.xz");
	attach("fedora", "mini.xz");
	attach("fedora-threads", "threads.xz");
}

static uint64_t address_of(const char *symbol)
{
	char command[256];
	unsigned long long address = 0;
	FILE *nm;

	snprintf(command, sizeof(command), "nm %s/prog | grep ' %s$'", scratch, symbol);
	nm = popen(command, "r");
	assert_non_null(nm);
	assert_int_equal(fscanf(nm, "%llx", &address), 1);
	pclose(nm);
	return address;
}

static void assert_name(struct elf_file *file, const char *name)
{
	uint64_t address = address_of(name) + 1;
	struct symbol_match match = {};

	assert_int_equal(
		symbol_table__match(&(struct symbol_source){.file = file}, &address, 1, &match), 0);
	assert_string_equal(match.name, name);
	assert_int_equal(match.address, address - 1);
	assert_true(match.size > 1);
}

/* As minidebug_inflate(), of an open file; no ELF file has nothing of the kind. */
static int inflate(int fd, uint64_t limit, int *inflated)
{
	struct elf_file *file;
	int err = elf_file__open(fd, &file);

	if (err)
		return err == -ENOEXEC ? -ENOENT : err;
	err = minidebug_inflate(file, limit, inflated);
	elf_file__free(file);
	return err;
}

TEST(inflated_debugdata_has_hidden_names_and_is_sealed)
{
	_cleanup_close_ int fd = open_scratch("fedora", O_RDONLY), inflated = -1;
	uint64_t address = address_of("hidden_one");
	struct symbol_match match;
	struct elf_file *file;

	/* the file itself does not show it */
	assert_int_equal(elf_file__open(fd, &file), 0);
	symbol_table__match(&(struct symbol_source){.file = file}, &address, 1, &match);
	assert_true(!match.name || strcmp(match.name, "hidden_one"));
	elf_file__free(file);
	assert_int_equal(inflate(fd, MINIDEBUG_LIMIT, &inflated), 0);
	assert_int_equal(elf_file__open(inflated, &file), 0);
	assert_name(file, "hidden_one");
	assert_name(file, "hidden_two");
	assert_name(file, "main");
	elf_file__free(file);
	/* it cannot change any more */
	assert_int_equal(write(inflated, "x", 1), -1);
	assert_int_equal(ftruncate(inflated, 1), -1);
	assert_int_equal(fcntl(inflated, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

static int keep_name(void *context, size_t index, const struct symbol_result *result)
{
	char *name = context;

	assert_int_equal(index, 0);
	snprintf(name, 64, "%s", result->frame_count ? result->frames[0].function : "");
	return 0;
}

/* In the sealed child it works as well. */
static void assert_child_says(const struct module_files *files, uint64_t offset,
			      const char *expected)
{
	char said[64] = "";
	struct sealed_job job = {
		.files = *files,
		.root_fd = -1,
		.addresses = &offset,
		.count = 1,
		.sink = keep_name,
		.context = said,
	};

	assert_int_equal(sealed_run(&job, 1, 1, NULL, NULL, &(struct sealed_work){}), 0);
	assert_string_equal(said, expected);
}

/* The whole way: the module's answer to an address of hidden_one. */
static void assert_module_says(const char *name, const char *expected)
{
	struct module_files files = {.kind = DSO_FILE, .debug_fd = -1, .alt_fd = -1};
	uint64_t address = address_of("hidden_one"), offset;
	struct module_report report;
	struct elf_file *file;
	char said[64] = "";

	files.elf_fd = open_scratch(name, O_RDONLY);
	assert_int_equal(elf_file__open(files.elf_fd, &file), 0);
	assert_int_equal(elf_file__offset_of_address(file, address, &offset), 0);
	elf_file__free(file);
	assert_int_equal(module_resolve(&files, &offset, 1, keep_name, said, &report), 0);
	assert_string_equal(said, expected);
	assert_child_says(&files, offset, expected);
	close(files.elf_fd);
}

TEST(a_module_takes_names_from_gnu_debugdata)
{
	assert_module_says("stripped", "");
	assert_module_says("fedora", "hidden_one");
	assert_module_says("fedora-threads", "hidden_one");
	assert_module_says("prog", "hidden_one");
}

/* The result for a file, which must not hand out a descriptor when it fails. */
static int inflate_named(const char *name, uint64_t limit)
{
	int fd = open_scratch(name, O_RDONLY), inflated = -1, err;

	err = inflate(fd, limit, &inflated);
	assert_true(err ? inflated == -1 : inflated >= 0);
	if (!err)
		close(inflated);
	close(fd);
	return err;
}

TEST(files_without_an_xz_stream_cannot_be_inflated)
{
	assert_int_equal(inflate_named("stripped", MINIDEBUG_LIMIT), -ENOENT);
	assert_int_equal(inflate_named("prog.c", MINIDEBUG_LIMIT), -ENOENT);
	assert_true(inflate_named("", MINIDEBUG_LIMIT) < 0); /* a directory */
	write_scratch("empty", "", 0);
	assert_int_equal(inflate_named("empty", MINIDEBUG_LIMIT), -ENOENT);
	attach("with-empty", "empty");
	assert_true(inflate_named("with-empty", MINIDEBUG_LIMIT) < 0);
	attach("with-source", "prog.c");
	assert_int_equal(inflate_named("with-source", MINIDEBUG_LIMIT), -EBADMSG);
	run("xz -k --format=lzma mini -c >mini.lzma");
	attach("with-lzma", "mini.lzma");
	assert_int_equal(inflate_named("with-lzma", MINIDEBUG_LIMIT), -EBADMSG);
}

TEST(debugdata_larger_than_the_limit_is_refused)
{
	struct stat st;
	char path[512];

	scratch_path("mini", path, sizeof(path));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(inflate_named("fedora", st.st_size), 0);
	assert_int_equal(inflate_named("fedora", st.st_size - 1), -EFBIG);
	assert_int_equal(inflate_named("fedora", 0), -EFBIG);
	/* 40 MB of nothing in a few kilobytes */
	run("head -c 40M /dev/zero | xz -0 >bomb.xz");
	attach("bomb", "bomb.xz");
	assert_int_equal(inflate_named("bomb", 39 << 20), -EFBIG);
	assert_int_equal(inflate_named("bomb", MINIDEBUG_LIMIT), 0);
}

/* A block header that asks for a dictionary of 4 GB, with its checksum right. */
TEST(a_block_with_a_huge_dictionary_is_too_big)
{
	static const unsigned char header[] = {0x02, 0x00, 0x21, 0x01};
	size_t size;
	_cleanup_free_ unsigned char *data = read_scratch("mini.xz", &size);
	uint32_t crc;

	assert_memory_equal(data + 12, header, sizeof(header));
	data[16] = 40;
	crc = crc32_update(0, data + 12, 8);
	for (int i = 0; i < 4; i++)
		data[20 + i] = crc >> 8 * i;
	write_scratch("dictionary.xz", data, size);
	attach("dictionary", "dictionary.xz");
	assert_int_equal(inflate_named("dictionary", MINIDEBUG_LIMIT), -EFBIG);
}

static int ignore(void *context, size_t index, const struct symbol_result *result)
{
	return 0;
}

static uint32_t left_of(const char *name)
{
	static const uint64_t offset = 0x1000;
	struct module_files files = {.kind = DSO_FILE,
				     .elf_fd = open_scratch(name, O_RDONLY),
				     .debug_fd = -1,
				     .alt_fd = -1};
	struct module_report report;

	assert_int_equal(module_resolve(&files, &offset, 1, ignore, NULL, &report), 0);
	close(files.elf_fd);
	return report.left;
}

/* Symbols that a limit left out are in the module's report. */
TEST(symbols_left_out_by_a_limit_are_reported)
{
	assert_int_equal(left_of("dictionary"), 1u << OUTSIDE_MINIDEBUG);
	assert_int_equal(left_of("fedora"), 0);
	assert_int_equal(left_of("with-source"), 0); /* it is damaged */
}

/* Where the compressed bytes are in "fedora". */
static struct elf_section find_data(void)
{
	int fd = open_scratch("fedora", O_RDONLY);
	struct elf_section section;
	struct elf_file *file;

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_file__find_section(file, ".gnu_debugdata", &section), 0);
	elf_file__free(file);
	close(fd);
	return section;
}

static int inflate_bytes(const void *data, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC), inflated = -1, err;

	assert_int_equal(pwrite(fd, data, size, 0), (ssize_t)size);
	err = inflate(fd, 1 << 20, &inflated);
	if (!err)
		close(inflated);
	close(fd);
	return err;
}

TEST(damaged_or_truncated_debugdata_is_an_error)
{
	struct elf_section section = find_data();
	uint64_t seed = 0x2545f4914f6cdd1d;
	size_t size;
	_cleanup_free_ unsigned char *good = read_scratch("fedora", &size);
	_cleanup_free_ unsigned char *bad = malloc(size);

	assert_int_equal(inflate_bytes(good, size), 0);
	for (int round = 0; round < 1500; round++) {
		size_t at = section.offset + next_random(&seed) % section.size;
		int err;

		/* the stream is under a CRC as a whole, but for its padding */
		memcpy(bad, good, size);
		bad[at] ^= 1 << next_random(&seed) % 8;
		err = inflate_bytes(bad, size);
		assert_true(err == -EBADMSG || err == -EFBIG);
		/* zeroes from somewhere on */
		memcpy(bad, good, size);
		memset(bad + at, 0, section.offset + section.size - at);
		assert_true(inflate_bytes(bad, size) < 0);
	}
	for (size_t cut = 0; cut < size; cut += 1 + size / 300)
		assert_true(inflate_bytes(good, cut) < 0);
}

ALL_TESTS_WITH(setup, remove_scratch);
