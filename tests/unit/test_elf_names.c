/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of a large table: those of a few symbols are read alone and are the same as of all; too many, or a table that is cut. */
#include "unit.h"
#include "base/cleanup.h"
#include "elf/elf_private.h"

#include "elf/elf_symbols.h"
#include "unit/forge_elf.h"

#define SYMBOLS	   4000u
#define NAME_ROOM  300u /* bytes from one name to the next … */
#define LONG	   7u	/* … but for these: as long as a few, … */
#define ENDLESS	   8u	/* … longer than a name can be, … */
#define VERSIONED  9u	/* … and one with a version */
#define SYMBOLS_AT 0x1000u
#define STRINGS_AT (SYMBOLS_AT + SYMBOLS * sizeof(Elf64_Sym))
#define STRINGS	   (1u + SYMBOLS * NAME_ROOM)
#define LONG_SIZE  70000u

static char *expected_name(unsigned int i, char *text)
{
	int length = snprintf(text, NAME_ROOM, "f%u_", i);

	memset(text + length, 'x', 50 + i % 200);
	text[length + 50 + i % 200] = '\0';
	return text;
}

/* A file with SYMBOLS functions; LONG and ENDLESS share the end of the table with others. */
static int make_large_file(size_t cut)
{
	_cleanup_free_ unsigned char *bytes = calloc(1, STRINGS_AT + STRINGS + 2 * LONG_SIZE);
	Elf64_Sym *symbols = (void *)(bytes + SYMBOLS_AT);
	char *names = (char *)bytes + STRINGS_AT;
	size_t size = STRINGS_AT + STRINGS + 2 * LONG_SIZE;
	struct image im;

	forge(&im, true, false);
	put(&im, SECTION(&im, 3, sh_offset), SYMBOLS_AT, 8);
	put(&im, SECTION(&im, 3, sh_size), SYMBOLS * sizeof(Elf64_Sym), 8);
	put(&im, SECTION(&im, 4, sh_offset), STRINGS_AT, 8);
	put(&im, SECTION(&im, 4, sh_size), STRINGS + 2 * LONG_SIZE, 8);
	memcpy(bytes, im.bytes, im.size);
	for (unsigned int i = 0; i < SYMBOLS; i++) {
		symbols[i] = (Elf64_Sym){.st_name = 1 + i * NAME_ROOM,
					 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					 .st_shndx = 1,
					 .st_value = 0x10000 + i * 16,
					 .st_size = 16};
		expected_name(i, names + 1 + i * NAME_ROOM);
	}
	symbols[LONG].st_name = STRINGS;
	memset(names + STRINGS, 'l', 2000);
	symbols[ENDLESS].st_name = STRINGS + LONG_SIZE;
	memset(names + STRINGS + LONG_SIZE, 'e', LONG_SIZE);
	strcpy(names + 1 + VERSIONED * NAME_ROOM, "old@@V1");
	return make_file(bytes, cut ? cut : size);
}

/* Its symbol table is .dynsym. */
static void dynamic_symbols(int fd)
{
	struct image im;
	const uint32_t type = SHT_DYNSYM;

	forge(&im, true, false);
	assert_int_equal(pwrite(fd, &type, sizeof(type), (off_t)SECTION(&im, 3, sh_type)), 4);
}

struct walk {
	unsigned int step, reported, wanted; /* one of so many is wanted */
};

static bool want(void *context, const struct elf_symbol *s)
{
	struct walk *w = context;
	bool wanted = !((s->address - 0x10000) / 16 % w->step);

	w->wanted += wanted;
	return wanted;
}

static int check_name(void *context, const struct elf_symbol *s)
{
	unsigned int i = (s->address - 0x10000) / 16;
	struct walk *w = context;
	char text[NAME_ROOM];

	w->reported++;
	if (i == LONG)
		assert_int_equal(strlen(s->name), 2000);
	else if (i == VERSIONED)
		assert_string_equal(s->name, "old");
	else
		assert_string_equal(s->name, expected_name(i, text));
	return 0;
}

TEST(few_names_are_read_alone)
{
	struct walk w = {.step = 997};
	_cleanup_close_ int fd = make_large_file(0);
	struct elf_file *file;

	assert_int_equal(elf_file__open(fd, &file), 0);
	for (int again = 0; again < 3; again++)
		assert_int_equal(elf_file__each_wanted_symbol(file, want, check_name, &w), 0);
	assert_int_equal(w.reported, 3 * 5);
	assert_null(file->symbol_names.data);
	assert_int_equal(file->symbol_names.names.count, 5);
	w = (struct walk){.step = LONG * VERSIONED};
	assert_int_equal(elf_file__each_wanted_symbol(file, want, check_name, &w), 0);
	assert_null(file->symbol_names.data);
	/* all of them: the name that does not end is reported, and left out */
	w = (struct walk){.step = 1};
	assert_false(elf_file__left(file));
	assert_int_equal(elf_file__each_wanted_symbol(file, want, check_name, &w), 0);
	assert_true(elf_file__left(file));
	assert_non_null(file->symbol_names.data);
	assert_int_equal(w.reported, SYMBOLS - 1);
	elf_file__free(file);
}

TEST(special_names_alone)
{
	static const unsigned int steps[] = {LONG, VERSIONED, ENDLESS};
	_cleanup_close_ int fd = make_large_file(0);

	for (size_t i = 0; i < 3; i++) {
		struct walk w = {.step = steps[i] * 100};
		struct elf_file *file;

		/* all others, then with the special one at number `step` */
		assert_int_equal(elf_file__open(fd, &file), 0);
		assert_int_equal(elf_file__each_wanted_symbol(file, want, check_name, &w), 0);
		assert_null(file->symbol_names.data);
		w.step = steps[i] * 1;
		assert_int_equal(elf_file__each_wanted_symbol(file, want, check_name, &w), 0);
		assert_int_equal(elf_file__left(file), w.step == ENDLESS);
		elf_file__free(file);
	}
}

TEST(a_table_that_is_cut)
{
	struct walk w = {.step = 997};
	_cleanup_close_ int fd = make_large_file(STRINGS_AT + STRINGS - 100 * NAME_ROOM);
	struct elf_file *file;

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_file__each_wanted_symbol(file, want, check_name, &w), -EBADMSG);
	assert_int_equal(w.wanted, 5);
	assert_int_equal(w.reported, 4); /* of 3,988 there is none */
	elf_file__free(file);
}

TEST(all_without_a_choice)
{
	struct walk w = {.step = 1};
	_cleanup_close_ int fd = make_large_file(0);
	struct elf_file *file;

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_file__each_symbol(file, check_name, &w), 0);
	assert_int_equal(w.reported, SYMBOLS - 1);
	elf_file__free(file);
}

TEST(dynamic_names_are_given_back)
{
	struct walk w = {.step = 1};
	_cleanup_close_ int fd = make_large_file(0);
	struct elf_file *file;

	dynamic_symbols(fd);
	assert_int_equal(elf_file__open(fd, &file), 0);
	for (unsigned int again = 1; again <= 2; again++) {
		assert_int_equal(elf_file__each_symbol(file, check_name, &w), 0);
		assert_int_equal(w.reported, again * (SYMBOLS - 1));
		assert_true(elf_file__has_dynamic_name(file, file->dynamic_names.data + 1));
		assert_false(elf_file__has_dynamic_name(file, "f1"));
		elf_file__forget_dynamic_names(file);
		assert_null(file->dynamic_names.data);
	}
	elf_file__free(file);
}
