/* SPDX-License-Identifier: BSD-2-Clause */
/* Which code a mapping of a file has: elf_file__code_at() of segments that share pages, or are wrong. */
#include <elf.h>

#include "unit.h"
#include "elf/elf_file.h"

#include "unit/forge_elf.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

struct load {
	uint32_t flags;
	uint64_t offset, address, size;
};

static struct elf_file *open_loads(const struct load *loads, size_t count, int *fd)
{
	struct cursor c;
	struct image im;

	forge(&im, true, false);
	c = (struct cursor){&im, im.program_headers};
	for (size_t i = 0; i < count; i++)
		segment(&c, PT_LOAD, loads[i].flags, loads[i].offset, loads[i].address,
			loads[i].size, 0x1000);
	assert_true(c.at <= im.notes);
	header(&im, count, 6);
	return open_image(&im, fd);
}

/* The run that begins at `offset` of a mapping up to `end` has this address and ends there. */
static void expect_run(const struct elf_file *file, uint64_t offset, uint64_t end, uint64_t address,
		       uint64_t run_end)
{
	struct elf_code code = {};

	assert_int_equal(elf_file__code_at(file, offset, end, &code), 0);
	assert_int_equal(code.address, address);
	assert_int_equal(code.end, run_end);
}

static void expect_no_run(const struct elf_file *file, uint64_t offset, uint64_t end)
{
	struct elf_code code = {.address = 4711, .end = 4711};

	assert_int_equal(elf_file__code_at(file, offset, end, &code), -ENOENT);
	assert_int_equal(code.address, 4711);
	assert_int_equal(code.end, 4711);
}

#define R  PF_R
#define RX (PF_R | PF_X)
#define RW (PF_R | PF_W)

/* lld's layout: the page that the executable mapping begins with has the end of another segment. */
TEST(code_in_a_shared_page)
{
	static const struct load loads[] = {
		{R, 0, 0, 0xd5c},
		{RX, 0xd60, 0x1d60, 0x2860},
		{RW, 0x35c0, 0x55c0, 0x1d8},
	};
	struct elf_file *file;
	uint64_t address;
	int fd;

	file = open_loads(loads, COUNT(loads), &fd);
	expect_run(file, 0, 0x4000, 0x1000, 0x4000);
	expect_run(file, 0xd60, 0x4000, 0x1d60, 0x4000);
	/* a part of it, mapped by itself */
	expect_run(file, 0x2000, 0x3000, 0x3000, 0x3000);
	/* without any of its bytes another segment has to do */
	expect_run(file, 0, 0x800, 0, 0x800);
	expect_no_run(file, 0x4000, 0x5000);
	/* symbols see the same code at the same addresses */
	for (uint64_t at = 0xd60; at < 0xd60 + 0x2860; at += 0x10) {
		assert_int_equal(elf_file__address_of_offset(file, at, &address), 0);
		expect_run(file, at, 0x4000, address, 0x4000);
	}
	close_image(file, fd);
}

TEST(code_of_two_segments)
{
	static const struct load loads[] = {
		{RX, 0x1000, 0x401000, 0x800},
		{RX, 0x1a00, 0x601a00, 0x300}, /* in the same page */
		{R, 0x2000, 0x602000, 0x1000},
		{RX, 0x3000, 0x800000, 0x1000},
	};
	struct elf_file *file;
	int fd;

	file = open_loads(loads, COUNT(loads), &fd);
	/* both mappings of that page look like this, and each has code of one of them only */
	expect_run(file, 0x1000, 0x2000, 0x401000, 0x1a00);
	expect_run(file, 0x1a00, 0x2000, 0x601a00, 0x2000);
	/* the whole file, mapped at once */
	expect_run(file, 0, 0x4000, 0x400000, 0x1a00);
	expect_run(file, 0x1a00, 0x4000, 0x601a00, 0x3000);
	expect_run(file, 0x3000, 0x4000, 0x800000, 0x4000);
	close_image(file, fd);
}

/* Bases as prelink gave them, and those at either end of the address space. */
TEST(code_at_any_base)
{
	static const uint64_t bases[] = {0, 0x400000, 0x3ec5e00000, 0x7ffff7000000, ~0xffffffull};

	for (size_t i = 0; i < COUNT(bases); i++) {
		struct load loads[] = {{R, 0, bases[i], 0x1100},
				       {RX, 0x1100, bases[i] + 0x2100, 0x900}};
		struct elf_file *file;
		int fd;

		file = open_loads(loads, COUNT(loads), &fd);
		expect_run(file, 0x1000, 0x2000, bases[i] + 0x2000, 0x2000);
		close_image(file, fd);
	}
}

TEST(code_of_wrong_segments)
{
	static const struct load loads[] = {
		{RX, 0x100, 0x10100, 0},		    /* nothing */
		{RX, UINT64_MAX - 0x1005, 0x20000, 0x2000}, /* wraps in the file */
		{RX, 0x1000, UINT64_MAX - 5, 0x1000},	    /* wraps in memory */
		{RX, 0x5800, 0x100, 0x800},		    /* its page begins below 0 */
	};
	static const struct load overlapping[] = {
		{RX, 0x2000, 0x12000, 0x1000},
		{RX, 0x1000, 0x21000, 0x3000},
		{RX, 0x2800, 0x32800, 0x4000},
		{RX, UINT64_MAX - 0x1000, 0x40000, 0x1000},
	};
	struct elf_file *file;
	int fd;

	file = open_loads(loads, COUNT(loads), &fd);
	expect_no_run(file, 0, 0x1000);
	expect_no_run(file, 0x1000, 0x2000);
	expect_no_run(file, UINT64_MAX - 0xfff, UINT64_MAX);
	expect_run(file, 0x5000, 0x6000, 0x100 - 0x800ull, 0x6000);
	close_image(file, fd);

	file = open_loads(overlapping, COUNT(overlapping), &fd);
	/* of two segments the first in the table has the bytes, as for symbols */
	expect_run(file, 0x1000, 0x8000, 0x21000, 0x2000);
	expect_run(file, 0x2000, 0x8000, 0x12000, 0x2800);
	expect_run(file, 0x2800, 0x8000, 0x12800, 0x3000);
	expect_run(file, 0x3000, 0x8000, 0x23000, 0x4000);
	expect_run(file, 0x4000, 0x8000, 0x34000, 0x8000);
	expect_run(file, UINT64_MAX - 0x1fff, UINT64_MAX, 0x3f001, UINT64_MAX);
	close_image(file, fd);
}
