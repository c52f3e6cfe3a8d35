/* SPDX-License-Identifier: BSD-2-Clause */
/* The DWARF reader against forged files: what is right in them, and every way to be wrong. */
#include <time.h>
#include <zlib.h>

#include "unit.h"
#include "base/clocks.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "stream/symbol_blob.h"
#include "symbolize/dwarf.h"
#include "symbolize/module.h"
#include "unit/forge_dwarf.h"

#define LIMIT	 (UINT64_C(256) << 20)
#define BASE	 0x10000
#define MUTATION 3000

static int open_reader(int fd, uint64_t limit, struct dwarf_reader **reader)
{
	const struct dwarf_options options = {.alt_fd = -1, .memory_limit = limit};

	return dwarf_reader__open(fd, &options, reader);
}

/* Of the running test: the file that is forged, and what reads it. */
static struct forged_dwarf d;
static struct dwarf_reader *r;

static void tear_down(void)
{
	dwarf_reader__free(r);
	r = NULL;
}

static void open_forged(void)
{
	_cleanup_close_ int fd = forge_finish(&d);

	tear_down();
	assert_int_equal(open_reader(fd, LIMIT, &r), 0);
}

static const struct dwarf_frame *resolve(uint64_t address, size_t expected)
{
	struct dwarf_chain chain = {};

	assert_int_equal(dwarf_reader__resolve(r, address, &chain), 0);
	assert_int_equal(chain.count, expected);
	assert_true(chain.until > address || address == UINT64_MAX);
	return chain.frames;
}

static struct dwarf_stats stats(void)
{
	struct dwarf_stats stats;

	dwarf_reader__stats(r, &stats);
	return stats;
}

static void assert_named(uint64_t address, const char *name)
{
	assert_string_equal(resolve(address, 1)[0].name, name);
}

/* outer [0, 0x100) with middle [0x10, 0x40) in it, and inner [0x18, 0x20) in that. */
static void forge_chain(struct forged_dwarf *d)
{
	uint32_t middle, inner;

	forge_unit(d, BASE, 0x100);
	middle = forge_abstract(d, "middle", 1, 31);
	inner = forge_abstract(d, "inner", 2, 32);
	forge_function(d, "outer", 33, BASE, 0x100);
	forge_uleb(forge_info(d), BLOCK);
	forge_inlined(d, INLINED, middle, BASE + 0x10, 0x30, 101);
	forge_inlined(d, LEAF_INLINED, inner, BASE + 0x18, 8, 102);
	forge_end(d);
	forge_end(d);
	forge_end(d);
	forge_unit_end(d);
}

static int chain_file(void)
{
	forge_begin(&d);
	forge_chain(&d);
	return forge_finish(&d);
}

TEST(an_address_has_its_chain_of_inlined_calls)
{
	const struct dwarf_frame *f;

	forge_begin(&d);
	forge_chain(&d);
	open_forged();
	f = resolve(BASE + 0x18, 3);
	assert_string_equal(f[0].name, "inner");
	assert_string_equal(f[0].where.file, "/work/lib/file.c");
	assert_int_equal(f[0].where.line, 20);
	assert_string_equal(f[0].where.definition_file, "/work/build/include/file.h");
	assert_int_equal(f[0].where.definition_line, 32);
	assert_true(f[0].where.function_address == PROFILE_UNKNOWN_ADDRESS);
	assert_string_equal(f[1].name, "middle");
	assert_int_equal(f[1].where.line, 102);
	assert_string_equal(f[1].where.definition_file, "/work/lib/file.c");
	assert_string_equal(f[2].name, "outer");
	assert_int_equal(f[2].where.line, 101);
	assert_int_equal(f[2].where.function_address, BASE);
	assert_int_equal(f[2].where.function_size, 0x100);
	assert_int_equal(f[2].where.definition_line, 33);
	assert_null(f[2].where.definition_file);
	assert_int_equal(resolve(BASE + 0x3f, 2)[0].where.line, 20);
	assert_int_equal(resolve(BASE, 1)[0].where.line, 10);
	resolve(BASE + 0x40, 1);
	resolve(BASE + 0xff, 1);
	resolve(BASE + 0x100, 0);
	resolve(BASE - 1, 0);
	resolve(UINT64_MAX, 0);
	assert_int_equal(stats().units, 1);
	assert_int_equal(stats().units_indexed, 1);
	assert_int_equal(stats().units_skipped, 0);
	assert_false(stats().incomplete);
}

TEST(without_usable_dwarf_there_is_no_reader)
{
	struct forged_section other = {".text", {}, SHF_EXECINSTR};
	struct dwarf_reader *reader = NULL;
	int fd;

	forge_text(&other.content, "code");
	fd = forge_elf(&other, 1, ET_DYN);
	assert_int_equal(open_reader(fd, LIMIT, &reader), -ENODATA);
	assert_int_equal(ftruncate(fd, 3), 0);
	assert_int_equal(open_reader(fd, LIMIT, &reader), -ENODATA);
	close(fd);
	forge_free(&other.content);
	/* an object file: its addresses are all 0 yet */
	forge_begin(&d);
	forge_chain(&d);
	fd = forge_elf(d.sections, FORGED_SECTIONS, ET_REL);
	assert_int_equal(open_reader(fd, LIMIT, &reader), -ENODATA);
	close(fd);
	close(forge_finish(&d));
	assert_null(reader);
}

/* ---- units ----------------------------------------------------------------------------------- */

enum header_fault { VERSION, ADDRESS_SIZE, ABBREVIATIONS, NO_DIE, FAULTS };

TEST(a_unit_with_a_bad_header_is_skipped)
{
	for (enum header_fault fault = 0; fault < FAULTS; fault++) {
		size_t bad;

		forge_begin(&d);
		forge_simple_unit(&d, "first", BASE);
		bad = forge_info(&d)->size;
		forge_simple_unit(&d, "second", BASE + 0x1000);
		forge_simple_unit(&d, "third", BASE + 0x2000);
		if (fault == VERSION)
			forge_patch(forge_info(&d), bad + 4, 99, 2);
		if (fault == ADDRESS_SIZE)
			forge_patch(forge_info(&d), bad + 10, 3, 1);
		if (fault == ABBREVIATIONS)
			forge_patch(forge_info(&d), bad + 6, 0x7fffffff, 4);
		if (fault == NO_DIE)
			forge_patch(forge_info(&d), bad + 11, 0x7f, 1);
		open_forged();
		assert_named(BASE + 8, "first");
		assert_named(BASE + 0x2008, "third");
		resolve(BASE + 0x1008, 0);
		if (fault != NO_DIE)
			assert_int_equal(stats().units_skipped, 1);
	}
}

TEST(a_bad_unit_length_makes_the_reading_incomplete)
{
	static const uint32_t lengths[] = {0, 3, 0x7fffffff, 0xfffffff5, 0xffffffff};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		size_t bad;

		forge_begin(&d);
		forge_simple_unit(&d, "first", BASE);
		bad = forge_info(&d)->size;
		forge_simple_unit(&d, "second", BASE + 0x1000);
		forge_patch(forge_info(&d), bad, lengths[i], 4);
		open_forged();
		assert_named(BASE + 8, "first");
		resolve(BASE + 0x1008, 0);
		assert_int_equal(stats().units_skipped, 1);
		assert_true(stats().incomplete);
	}
}

/* GNU ld lets the copies of an inline function that it dropped claim the one it kept: the first. */
TEST(the_first_function_that_claims_code_names_it)
{
	forge_begin(&d);
	forge_simple_unit(&d, "kept", BASE);
	forge_simple_unit(&d, "dropped", BASE);
	forge_unit(&d, BASE, 0x10000); /* one that is all around them */
	forge_function(&d, "around", 7, BASE, 0x10000);
	forge_end(&d);
	forge_unit_end(&d);
	open_forged();
	assert_named(BASE + 8, "kept");
	assert_named(BASE + 0x108, "around");
}

TEST(units_without_ranges_are_found_by_functions)
{
	forge_begin(&d);
	forge_header(&d);
	forge_uleb(forge_info(&d), BARE_UNIT);
	forge_text(forge_info(&d), "bare.c");
	forge_function(&d, "hidden", 7, BASE + 0x40, 0x10);
	forge_end(&d);
	forge_unit_end(&d);
	forge_simple_unit(&d, "plain", BASE + 0x1000);
	open_forged();
	assert_named(BASE + 0x1008, "plain");
	assert_int_equal(stats().units_indexed, 1);
	assert_named(BASE + 0x48, "hidden");
	resolve(BASE + 0x50, 0);
}

/* ---- hostile DIEs ---------------------------------------------------------------------------- */

/* Blocks, each in the one before, and in the last one an inlined call. The function is open. */
static void forge_deep_function(struct forged_dwarf *d, unsigned int blocks)
{
	uint32_t origin = forge_abstract(d, "deep", 1, 5);

	forge_function(d, "outer", 33, BASE, 0x100);
	for (unsigned int i = 0; i < blocks; i++)
		forge_uleb(forge_info(d), BLOCK);
	forge_inlined(d, LEAF_INLINED, origin, BASE, 0x100, 1);
	for (unsigned int i = 0; i < blocks; i++)
		forge_end(d);
}

/* A million blocks; what is inlined down there is passed over. */
TEST(calls_in_too_deep_blocks_are_left_out)
{
	uint64_t start = process_cpu_ns();

	forge_begin(&d);
	forge_unit(&d, BASE, 0x100);
	forge_deep_function(&d, 1000000);
	forge_function(&d, "behind", 34, BASE + 0x80, 0x10);
	forge_end(&d);
	forge_end(&d);
	forge_unit_end(&d);
	forge_simple_unit(&d, "other", BASE + 0x1000);
	open_forged();
	assert_false(stats().left);
	assert_named(BASE + 8, "outer");
	assert_true(stats().left);
	assert_named(BASE + 0x88, "behind");
	assert_named(BASE + 0x1008, "other");
	assert_true(process_cpu_ns() - start < UINT64_C(10000000000));
}

/* As deep as inlined calls may nest, and one of them outside of what it is in. */
TEST(hundreds_of_nested_inlined_calls_are_resolved)
{
	uint32_t origin;

	forge_begin(&d);
	forge_unit(&d, BASE, 0x1000);
	origin = forge_abstract(&d, "level", 1, 5);
	forge_function(&d, "outer", 33, BASE, 0x1000);
	for (unsigned int i = 0; i < 200; i++)
		forge_inlined(&d, INLINED, origin, BASE + i, 0x1000 - i, i);
	for (unsigned int i = 0; i < 200; i++)
		forge_end(&d);
	forge_end(&d);
	forge_unit_end(&d);
	open_forged();
	resolve(BASE, 2);
	resolve(BASE + 99, 101);
	resolve(BASE + 0xfff, 201);
	assert_false(stats().left);
}

TEST(frames_with_a_bad_origin_have_no_name)
{
	uint32_t first, second;

	forge_begin(&d);
	forge_unit(&d, BASE, 0x100);
	first = forge_here(&d);
	second = first + 5;
	forge_uleb(forge_info(&d), REFERRING);
	forge_number(forge_info(&d), second, 4);
	forge_uleb(forge_info(&d), REFERRING);
	forge_number(forge_info(&d), first, 4);
	forge_function(&d, "outer", 33, BASE, 0x100);
	forge_inlined(&d, LEAF_INLINED, first, BASE, 0x10, 1);
	forge_inlined(&d, LEAF_INLINED, 0x7ffffff0, BASE + 0x20, 0x10, 2);
	forge_inlined(&d, LEAF_INLINED, 3, BASE + 0x30, 0x10, 3);
	/* one that is its own origin */
	forge_inlined(&d, LEAF_INLINED, forge_here(&d), BASE + 0x40, 0x10, 4);
	forge_end(&d);
	forge_unit_end(&d);
	open_forged();
	for (unsigned int at = 0; at < 0x50; at += 8) {
		const struct dwarf_frame *f;

		if (at >= 0x10 && at < 0x20) { /* nothing is inlined there */
			assert_named(BASE + at, "outer");
			continue;
		}
		f = resolve(BASE + at, 2);
		assert_null(f[0].name);
		assert_null(f[0].linkage);
		assert_int_equal(f[0].where.definition_line, 0);
		assert_string_equal(f[1].name, "outer");
	}
}

TEST(strings_beyond_their_section_give_no_name)
{
	static const uint32_t offsets[] = {2, 8, 9, 0x7fffffff, UINT32_MAX};

	forge_begin(&d);
	forge_unit(&d, BASE, 0x1000);
	for (unsigned int i = 0; i < 5; i++) {
		forge_uleb(forge_info(&d), FAR_STRING);
		forge_number(forge_info(&d), offsets[i], 4);
		forge_number(forge_info(&d), BASE + i * 0x10, 8);
		forge_number(forge_info(&d), 0x10, 8);
	}
	forge_unit_end(&d);
	open_forged();
	assert_string_equal(resolve(BASE, 1)[0].name, "string");
	for (unsigned int i = 1; i < 5; i++) {
		const char *name = resolve(BASE + i * 0x10, 1)[0].name;

		assert_true(!name || !*name);
	}
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static void add_range(struct forged_dwarf *d, uint64_t start, uint64_t end)
{
	forge_number(&d->sections[RANGES].content, start, 8);
	forge_number(&d->sections[RANGES].content, end, 8);
}

static void add_ranged(struct forged_dwarf *d, const char *name, uint32_t ranges)
{
	forge_uleb(forge_info(d), RANGED);
	forge_text(forge_info(d), name);
	forge_number(forge_info(d), ranges, 4);
}

TEST(valid_ranges_of_a_function_lead_to_it)
{
	uint32_t unit, parts, removed, odd;

	forge_begin(&d);
	parts = d.sections[RANGES].content.size;
	add_range(&d, BASE + 0x40, BASE + 0x50); /* where it is entered */
	add_range(&d, BASE + 0x10, BASE + 0x20); /* its cold part */
	add_range(&d, 0, 0);
	removed = d.sections[RANGES].content.size;
	add_range(&d, 1, 0x50000);
	add_range(&d, 0, 0);
	odd = d.sections[RANGES].content.size;
	add_range(&d, BASE + 0x90, BASE + 0x80);
	add_range(&d, BASE + 0x60, BASE + 0x60);
	add_range(&d, UINT64_MAX - 1, UINT64_MAX);
	add_range(&d, BASE + 0xa0, BASE + 0xa8);
	add_range(&d, 0, 0);
	unit = d.sections[RANGES].content.size;
	add_range(&d, BASE, BASE + 0x100);
	add_range(&d, 0, 0);
	forge_ranged_unit(&d, unit);
	add_ranged(&d, "parts", parts);
	add_ranged(&d, "removed", removed);
	add_ranged(&d, "far", 0x7fffffff);
	add_ranged(&d, "odd", odd);
	forge_unit_end(&d);
	open_forged();
	assert_named(BASE + 0x18, "parts");
	assert_named(BASE + 0x48, "parts");
	assert_int_equal(resolve(BASE + 0x18, 1)[0].where.function_address, BASE + 0x40);
	assert_int_equal(resolve(BASE + 0x18, 1)[0].where.function_size, 0x10);
	resolve(BASE + 0x30, 0);
	assert_named(BASE + 0xa4, "odd");
	assert_int_equal(stats().units_skipped, 1);
}

/* Functions that share one list of 100,000 ranges, all overlapping: 10^9 to look at, were they. */
TEST(too_many_ranges_are_cut_in_bounded_time)
{
	uint64_t start = process_cpu_ns();

	forge_begin(&d);
	for (unsigned int i = 0; i < 100000; i++)
		add_range(&d, BASE + i, BASE + 0x100000 - i);
	add_range(&d, 0, 0);
	forge_ranged_unit(&d, 0);
	for (unsigned int i = 0; i < 10000; i++)
		add_ranged(&d, "many", 0);
	forge_unit_end(&d);
	forge_simple_unit(&d, "other", BASE + 0x200000);
	open_forged();
	assert_named(BASE + 0x1000, "many");
	assert_named(BASE + 0x200008, "other");
	assert_int_equal(stats().units_skipped, 0);
	assert_true(stats().left);
	assert_true(process_cpu_ns() - start < UINT64_C(60000000000));
}

/* ---- abbreviations and lines ----------------------------------------------------------------- */

TEST(garbage_abbreviations_spoil_only_their_unit)
{
	static const unsigned char garbage[] = {1,    0x11, 1,	  0xff, 0xff, 0xff,
						0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
						0xff, 0xff, 0xff, 0x01, 0x80, 0x80};

	for (size_t size = 1; size <= sizeof(garbage); size++) {
		uint32_t offset;

		forge_begin(&d);
		forge_simple_unit(&d, "first", BASE);
		offset = d.sections[ABBREV].content.size;
		forge_bytes(&d.sections[ABBREV].content, garbage, size);
		forge_simple_unit(&d, "second", BASE + 0x1000);
		forge_patch(forge_info(&d), d.unit + 6, offset, 4);
		open_forged();
		assert_named(BASE + 8, "first");
		resolve(BASE + 0x1008, 0);
	}
}

static void forge_long_lines(struct forge *f, uint64_t rows)
{
	forge_lines(f, BASE + 0x1000, 0x100);
	f->size -= 3; /* its end */
	for (uint64_t i = 0; i < rows; i++)
		forge_number(f, 255, 1);
}

TEST(a_line_table_beyond_the_limit_gives_no_lines)
{
	uint64_t start = process_cpu_ns();
	struct forge *lines;
	size_t table;

	forge_begin(&d);
	lines = &d.sections[LINE].content;
	forge_simple_unit(&d, "first", BASE);
	table = lines->size;
	forge_simple_unit(&d, "second", BASE + 0x1000);
	lines->size = table;
	forge_long_lines(lines, 4 << 20);
	forge_patch(lines, table, lines->size - table - 4, 4);
	open_forged();
	assert_int_equal(resolve(BASE + 8, 1)[0].where.line, 10);
	assert_false(stats().left);
	/* 4 million rows are more than the limit allows */
	assert_int_equal(resolve(BASE + 0x1008, 1)[0].where.line, 0);
	assert_true(stats().left);
	assert_named(BASE + 0x1008, "second");
	assert_true(process_cpu_ns() - start < UINT64_C(10000000000));
}

TEST(a_cut_line_table_leaves_names_without_files)
{
	forge_begin(&d);
	forge_simple_unit(&d, "first", BASE);
	forge_patch(&d.sections[LINE].content, 0, 0x7fffffff, 4);
	open_forged();
	assert_named(BASE + 8, "first");
	assert_null(resolve(BASE + 8, 1)[0].where.file);
}

/* A second sequence lies within the first one, with all kinds of opcodes. */
TEST(a_line_sequence_within_another_takes_precedence)
{
	static const unsigned char program[] = {DW_LNS_advance_line,
						29,
						DW_LNS_set_file,
						2,
						DW_LNS_copy,
						DW_LNS_fixed_advance_pc,
						8,
						0,
						DW_LNS_const_add_pc, /* by 17 */
						DW_LNS_set_isa,
						0x80,
						1,
						0,
						4,
						0x80,
						1,
						2,
						3,	     /* an unknown one of 4 bytes */
						13 + 14 + 6, /* address + 1, line + 1 */
						DW_LNS_advance_pc,
						6,
						0,
						1,
						DW_LNE_end_sequence};
	static const struct {
		unsigned int offset, line;
	} expected[] = {{8, 10},    {0x3f, 20}, {0x40, 30}, {0x59, 30},
			{0x5a, 31}, {0x5f, 31}, {0x60, 0}};
	struct forge *lines;

	forge_begin(&d);
	lines = &d.sections[LINE].content;
	forge_simple_unit(&d, "first", BASE);
	forge_number(lines, 0, 1);
	forge_uleb(lines, 9);
	forge_number(lines, DW_LNE_set_address, 1);
	forge_number(lines, BASE + 0x40, 8);
	forge_bytes(lines, program, sizeof(program));
	forge_patch(lines, 0, lines->size - 4, 4);
	open_forged();
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
		assert_int_equal(resolve(BASE + expected[i].offset, 1)[0].where.line,
				 expected[i].line);
	assert_string_equal(resolve(BASE + 0x3f, 1)[0].where.file, "/work/lib/file.c");
	assert_string_equal(resolve(BASE + 0x40, 1)[0].where.file, "/work/build/include/file.h");
}

/* ---- compressed sections --------------------------------------------------------------------- */

/* The section deflated, behind a header that claims `claimed` bytes. */
static void compress_section(struct forged_section *s, uint32_t type, uint64_t claimed)
{
	Elf64_Chdr header = {.ch_type = type, .ch_size = claimed, .ch_addralign = 1};
	uLongf size = compressBound(s->content.size);
	unsigned char *packed = malloc(size);
	struct forge f = {};

	assert_non_null(packed);
	assert_int_equal(compress(packed, &size, s->content.data, s->content.size), Z_OK);
	forge_bytes(&f, &header, sizeof(header));
	forge_bytes(&f, packed, size);
	free(packed);
	forge_free(&s->content);
	s->content = f;
	s->flags = SHF_COMPRESSED;
}

TEST(compressed_sections_are_inflated)
{
	forge_begin(&d);
	forge_chain(&d);
	compress_section(&d.sections[INFO], ELFCOMPRESS_ZLIB, forge_info(&d)->size);
	compress_section(&d.sections[LINE], ELFCOMPRESS_ZLIB, d.sections[LINE].content.size);
	open_forged();
	assert_int_equal(resolve(BASE + 0x18, 3)[0].where.line, 20);
	assert_true(stats().inflated > 0);
}

static int open_result(int fd, uint64_t limit)
{
	struct dwarf_reader *reader = NULL;
	int err = open_reader(fd, limit, &reader);

	dwarf_reader__free(reader);
	return err;
}

TEST(a_false_size_of_compressed_data_is_an_error)
{
	static const uint64_t claims[] = {UINT64_C(1) << 60, UINT64_MAX, 1 << 30, 0};

	for (size_t i = 0; i < 4; i++) {
		_cleanup_close_ int fd = -1;

		forge_begin(&d);
		forge_chain(&d);
		compress_section(&d.sections[INFO], ELFCOMPRESS_ZLIB, claims[i]);
		fd = forge_finish(&d);
		assert_int_equal(open_result(fd, LIMIT), -EBADMSG);
	}
}

TEST(files_beyond_the_memory_limit_are_refused)
{
	_cleanup_close_ int fd = -1;

	fd = chain_file();
	assert_int_equal(open_result(fd, 100), -EFBIG);
	assert_int_equal(open_result(fd, LIMIT), 0);
}

/* The first unit came out before the stream broke off. */
TEST(units_before_a_cut_in_the_stream_are_read)
{
	forge_begin(&d);
	forge_simple_unit(&d, "first", BASE);
	srandom(1);
	for (unsigned int i = 1; i < 2000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "f%lx%lx", random(), random());
		forge_simple_unit(&d, name, BASE + i * 0x1000);
	}
	compress_section(&d.sections[INFO], ELFCOMPRESS_ZLIB, forge_info(&d)->size);
	forge_info(&d)->size /= 2;
	open_forged();
	assert_named(BASE + 8, "first");
	resolve(BASE + 1999 * 0x1000 + 8, 0);
	assert_true(stats().incomplete);
}

TEST(unknown_compression_is_not_supported)
{
	_cleanup_close_ int fd = -1;

	forge_begin(&d);
	forge_chain(&d);
	compress_section(&d.sections[INFO], 77, forge_info(&d)->size);
	fd = forge_finish(&d);
	assert_int_equal(open_result(fd, LIMIT), -ENOTSUP);
}

/* ---- everything else ------------------------------------------------------------------------- */

static unsigned char *read_all(int fd, size_t *size)
{
	off_t end = lseek(fd, 0, SEEK_END);
	unsigned char *data = malloc(end);

	assert_non_null(data);
	assert_int_equal(pread_full(fd, data, end, 0), end);
	*size = end;
	return data;
}

/* Whether it opens: then every address has an answer. */
static bool request_everything(int fd)
{
	struct dwarf_chain chain;
	int err;

	tear_down();
	err = open_reader(fd, LIMIT, &r);
	if (err) {
		assert_true(err == -ENODATA || err == -EBADMSG || err == -EFBIG || err == -ENOTSUP);
		return false;
	}
	for (uint64_t at = 0; at < 0x100; at += 4)
		assert_int_equal(dwarf_reader__resolve(r, BASE + at, &chain), 0);
	return true;
}

TEST(a_file_cut_anywhere_fails_only_to_open)
{
	_cleanup_close_ int fd = chain_file();
	size_t size;

	free(read_all(fd, &size));
	while (size--) {
		assert_int_equal(ftruncate(fd, size), 0);
		assert_false(request_everything(fd));
	}
}

TEST(addresses_resolve_in_mutated_files_that_open)
{
	_cleanup_close_ int fd = chain_file();
	unsigned int opened = 0;
	_cleanup_free_ unsigned char *good = NULL;
	size_t size;

	good = read_all(fd, &size);
	srandom(4);
	for (unsigned int round = 0; round < MUTATION; round++) {
		unsigned int changes = 1 + random() % 4;

		assert_int_equal(pwrite(fd, good, size, 0), size);
		while (changes--) {
			unsigned char byte = random();

			/* the headers are test_elf_file's */
			assert_int_equal(pwrite(fd, &byte, 1, 120 + random() % (size - 120)), 1);
		}
		opened += request_everything(fd);
	}
	assert_in_range(opened, MUTATION / 2, MUTATION - 1);
}

/* ---- module.c -------------------------------------------------------------------------------- */

struct seen {
	size_t calls, frames;
	char function[64];
	uint32_t line;
};

static int see(void *context, size_t index, const struct symbol_result *result)
{
	struct seen *seen = context;

	assert_int_equal(index, seen->calls);
	seen->calls++;
	seen->frames += result->frame_count;
	if (result->frame_count) {
		snprintf(seen->function, sizeof(seen->function), "%s", result->frames[0].function);
		seen->line = result->frames[0].line;
	}
	return 0;
}

TEST(the_report_of_a_module_has_its_dwarf_state)
{
	static const uint64_t addresses[] = {4, BASE + 0x18, 0x200000};
	struct module_files files = {
		.kind = DSO_FILE, .elf_fd = chain_file(), .debug_fd = -1, .alt_fd = -1};
	struct module_report report;
	struct seen seen = {};

	assert_int_equal(module_resolve(&files, addresses, 3, see, &seen, &report), 0);
	assert_int_equal(seen.calls, 3);
	assert_int_equal(seen.frames, 3);
	assert_string_equal(seen.function, "inner");
	assert_int_equal(seen.line, 20);
	assert_int_equal(report.state, SYMBOL_STATE_RESOLVED);
	assert_int_equal(report.dwarf, DWARF_STATE_READ);
	assert_int_equal(report.addresses, 3);
	assert_int_equal(report.with_lines, 1);
	assert_int_equal(report.with_symbol, 0);
	assert_int_equal(report.left, 0);
	assert_true(module_report__is_whole(&report, true));

	seen = (struct seen){};
	files.symbols_only = true;
	assert_int_equal(module_resolve(&files, addresses, 3, see, &seen, &report), 0);
	assert_int_equal(seen.frames, 0);
	assert_int_equal(report.state, SYMBOL_STATE_NO_SYMBOLS);
	assert_int_equal(report.dwarf, DWARF_STATE_NONE);

	seen = (struct seen){};
	files.symbols_only = false;
	files.memory_limit = 100;
	assert_int_equal(module_resolve(&files, addresses, 3, see, &seen, &report), 0);
	assert_int_equal(report.dwarf, DWARF_STATE_TOO_BIG);
	close(files.elf_fd);
}

/* The report says that a limit left out a part, which is no damage, and the answers are not kept. */
TEST(parts_left_out_by_a_limit_are_reported)
{
	static const uint64_t address = BASE + 8;
	struct module_files files = {.kind = DSO_FILE, .debug_fd = -1, .alt_fd = -1};
	struct module_report report;
	struct seen seen = {};

	forge_begin(&d);
	forge_unit(&d, BASE, 0x100);
	forge_deep_function(&d, 300);
	forge_end(&d);
	forge_unit_end(&d);
	files.elf_fd = forge_finish(&d);
	assert_int_equal(module_resolve(&files, &address, 1, see, &seen, &report), 0);
	assert_string_equal(seen.function, "outer");
	assert_int_equal(report.state, SYMBOL_STATE_RESOLVED);
	assert_int_equal(report.dwarf, DWARF_STATE_CUT);
	assert_int_equal(report.left, 1u << OUTSIDE_DEBUG_INFO);
	assert_false(module_report__is_whole(&report, true));
	close(files.elf_fd);
}

/* Of more calls inlined into each other than an answer has, that some are left is in the report. */
TEST(chains_longer_than_an_answer_are_reported_as_cut)
{
	static const uint64_t address = BASE + 8;

	for (uint32_t count = SYMBOL_CHAIN_MAX - 1; count <= SYMBOL_CHAIN_MAX; count++) {
		struct module_files files = {.kind = DSO_FILE, .debug_fd = -1, .alt_fd = -1};
		bool is_cut = count + 1 > SYMBOL_CHAIN_MAX;
		struct module_report report;
		struct seen seen = {};
		uint32_t inner;

		forge_begin(&d);
		forge_unit(&d, BASE, 0x100);
		inner = forge_abstract(&d, "inner", 2, 32);
		forge_function(&d, "outer", 33, BASE, 0x100);
		for (uint32_t i = 0; i < count; i++)
			forge_inlined(&d, INLINED, inner, BASE, 0x100, i + 1);
		for (uint32_t i = 0; i <= count; i++)
			forge_end(&d);
		forge_unit_end(&d);
		files.elf_fd = forge_finish(&d);
		assert_int_equal(module_resolve(&files, &address, 1, see, &seen, &report), 0);
		assert_int_equal(seen.frames, count + 1);
		assert_string_equal(seen.function, "inner");
		assert_int_equal(report.left, is_cut ? 1u << OUTSIDE_DEBUG_INFO : 0);
		assert_int_equal(module_report__is_whole(&report, true), !is_cut);
		close(files.elf_fd);
	}
}

EACH_TEST_WITH(NULL, tear_down);
