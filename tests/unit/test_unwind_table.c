/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables hold the rows that they were made of: of the C library, and of forged files. */
#include "unit.h"
#include "c_library.h"
#include "base/cleanup.h"
#include "elf/elf_sections.h"
#include "models/unwind_find.h"
#include "unit/forge_dwarf.h"
#include "unit/tools.h"
#include "unwind/unwind_table.h"

#define LIMIT (UINT64_C(64) << 20)
#define TEXT  (sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr)) /* of the first section */

/* The latest table. */
static struct unwind_table_image image;

static void tear_down(void)
{
	unwind_table_image__fini(&image);
	image = (struct unwind_table_image){};
}

static int build(int fd, size_t limit)
{
	struct elf_file *file;
	int err = elf_file__open(fd, &file);

	if (err)
		return err;
	tear_down();
	err = unwind_table__build(file, limit, &image);
	elf_file__free(file);
	return err;
}

static int build_forged(struct forged_section *sections, size_t count, size_t limit)
{
	int fd = forge_elf(sections, count, ET_DYN), err = build(fd, limit);

	close(fd);
	return err;
}

static struct unwind_rule find(uint64_t address)
{
	return *unwind_table__find(image.bytes, &image.table, address);
}

struct walk {
	uint64_t address;
	struct unwind_rule rule;
	size_t rows, starters;
};

/* From one row up to the next the table has the row's rule. Where a .plt is not described, it has more. */
static int compare(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct walk *w = context;

	if (w->rows++ && w->rule.cfa != UNWIND_CFA_NONE && address > w->address) {
		const uint64_t places[] = {w->address, address - 1, (w->address + address) / 2};

		for (size_t i = 0; i < 3; i++) {
			struct unwind_rule found = find(places[i]);

			if (found.cfa == UNWIND_CFA_STARTER)
				w->starters++; /* the padding before makecontext()'s */
			else
				assert_memory_equal(&found, &w->rule, sizeof(found));
		}
	}
	w->address = address;
	w->rule = *rule;
	return 0;
}

TEST(the_c_library_table_has_its_cfi_rules)
{
	_cleanup_close_ int fd = open_c_library();
	_cleanup_free_ void *data = NULL;
	struct cfi_section section = {.is_eh_frame = true};
	struct elf_section header;
	struct cfi_counts counts;
	struct elf_file *file;
	struct walk walk = {};
	struct unwind_rule here;
	size_t size;

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(unwind_table__build(file, LIMIT, &image), 0);
	assert_int_equal(elf_file__find_section(file, ".eh_frame", &header), 0);
	assert_int_equal(elf_file__section_data(file, ".eh_frame", LIMIT, &data, &section.size), 0);
	section.data = data;
	section.address = header.address;
	section.entry = elf_file__entry(file); /* it is a program, too */
	assert_int_equal(cfi_each_row(&section, compare, &walk, &counts), 0);
	assert_true(counts.functions > 1000 && walk.rows > 3000 && walk.starters <= 1);
	assert_int_equal(counts.damaged + counts.unsupported, 0);
	here = find(image.table.base - 1);
	assert_int_equal(here.cfa, UNWIND_CFA_NONE);
	here = find(UINT64_MAX);
	assert_int_equal(here.cfa, UNWIND_CFA_NONE);
	size = image.size;
	assert_int_equal(build(fd, size), 0);
	assert_int_equal(image.size, size);
	/* what is not essential is left out */
	while (!build(fd, size - 1)) {
		assert_true(image.size < size);
		size = image.size;
	}
	assert_int_equal(build(fd, size - 1), -EFBIG);
	assert_null(image.bytes);
	elf_file__free(file);
}

/* ---- forged ---------------------------------------------------------------------------------- */

static void put_entry(struct forge *f, const void *body, size_t size)
{
	forge_number(f, size, 4);
	forge_bytes(f, body, size);
}

/* At the start of the section: CFA is rsp + 8, the return address below it. */
static void put_cie(struct forge *f)
{
	static const uint8_t CIE[] = "\0\0\0\0\1zR\0\1\x78\x10\1\0\x0c\7\x08\x90\1";

	put_entry(f, CIE, sizeof(CIE) - 1);
}

static void put_fde(struct forge *f, uint64_t start, uint64_t size,
		    const struct forge *instructions)
{
	struct forge fde = {};

	forge_number(&fde, f->size + 4, 4);
	forge_number(&fde, start, 8);
	forge_number(&fde, size, 8);
	forge_number(&fde, 0, 1);
	if (instructions)
		forge_bytes(&fde, instructions->data, instructions->size);
	put_entry(f, fde.data, fde.size);
	forge_free(&fde);
}

/* Functions of one byte each, every one with a rule of its own: more than a byte can number. */
TEST(rule_numbers_take_two_bytes_if_there_are_many)
{
	struct forged_section section = {".eh_frame", {}, 0};
	uint64_t code = 0x10000;

	put_cie(&section.content);
	for (unsigned int i = 0; i < 1000; i++) {
		struct forge instructions = {};

		forge_number(&instructions, DW_CFA_def_cfa_offset, 1);
		forge_uleb(&instructions, 8 * i);
		put_fde(&section.content, code + i, 1, &instructions);
		forge_free(&instructions);
	}
	assert_int_equal(build_forged(&section, 1, LIMIT), 0);
	assert_int_equal(image.counts.functions, 1000);
	assert_int_equal(image.table.number_size, 2);
	for (unsigned int i = 0; i < 1000; i++)
		assert_int_equal(find(code + i).cfa_offset, 8 * i);
	assert_int_equal(find(code + 1000).cfa, UNWIND_CFA_NONE);
	forge_free(&section.content);
}

/* A .debug_frame with too many rows is reported as too big, also if it is all that there is. */
TEST(a_debug_frame_beyond_the_limit_is_too_big)
{
	static const uint8_t CIE[] = "\xff\xff\xff\xff\3\0\1\x78\x10\x0c\7\x08\x90\1";
	struct forged_section section = {".debug_frame", {}, 0};

	put_entry(&section.content, CIE, sizeof(CIE) - 1);
	for (unsigned int i = 0; i < 1000; i++) {
		struct forge fde = {};

		forge_number(&fde, 0, 4);
		forge_number(&fde, 0x10000 + i, 8);
		forge_number(&fde, 1, 8);
		forge_number(&fde, DW_CFA_def_cfa_offset, 1);
		forge_uleb(&fde, 8 * i);
		put_entry(&section.content, fde.data, fde.size);
		forge_free(&fde);
	}
	assert_int_equal(build_forged(&section, 1, LIMIT), 0);
	assert_int_equal(image.counts.functions, 1000);
	assert_int_equal(build_forged(&section, 1, 1000), -EFBIG);
	forge_free(&section.content);
}

TEST(a_file_without_cfi_or_code_has_no_table)
{
	struct forged_section section = {".text", {}, 0};

	forge_number(&section.content, 0xc3, 1);
	assert_int_equal(build_forged(&section, 1, LIMIT), -ENODATA);
	forge_free(&section.content);
}

/* Text that no FDE covers has the rules of its instructions; but for Go's, which describes itself elsewhere. */
TEST(code_without_cfi_has_inferred_rules_except_in_go)
{
	struct forged_section sections[] = {{".text", {}, SHF_EXECINSTR}, {".gopclntab", {}, 0}};
	struct unwind_rule rule;

	forge_bytes(&sections[0].content, "\x53\x5b\xc3", 3); /* push, pop, ret */
	for (int i = 0; i < 29; i++)
		forge_number(&sections[0].content, 0x90, 1);
	assert_int_equal(build_forged(sections, 1, LIMIT), 0);
	for (uint64_t at = 0; at < 3; at++) {
		rule = find(TEXT + at);
		assert_int_equal(rule.cfa, UNWIND_CFA_SP);
		assert_int_equal(rule.cfa_offset, at == 1 ? 16 : 8);
		assert_int_equal(rule.ra, UNWIND_RA_INFERRED);
	}
	rule = find(TEXT + 32);
	assert_int_equal(rule.cfa, UNWIND_CFA_NONE);
	assert_int_equal(rule.ra, UNWIND_RA_NONE);
	assert_int_equal(build_forged(sections, 2, LIMIT), -ENODATA);
	forge_free(&sections[0].content);
}

static void put_code(struct forge *f, const char *code, size_t size, size_t up_to)
{
	forge_bytes(f, code, size);
	while (f->size < up_to)
		forge_number(f, 0x90, 1);
}

/* Where a stretch between two functions begins with what is followed in vain, that is known as well. */
TEST(code_whose_inference_failed_is_marked_as_inferred)
{
	struct forged_section sections[] = {{".text", {}, SHF_EXECINSTR}, {".eh_frame", {}, 0}};
	struct unwind_rule rule;

	put_code(&sections[0].content, "\xc3", 1, 32);
	put_code(&sections[0].content, "\xff\xe0\x90\xc3", 4, 64); /* jmp *rax; nop; ret */
	put_code(&sections[0].content, "\xc3", 1, 96);
	put_cie(&sections[1].content);
	put_fde(&sections[1].content, TEXT, 32, NULL);
	put_fde(&sections[1].content, TEXT + 64, 32, NULL);
	assert_int_equal(build_forged(sections, 2, LIMIT), 0);
	rule = find(TEXT + 31);
	assert_int_equal(rule.ra, UNWIND_RA_AT_CFA);
	rule = find(TEXT + 32);
	assert_int_equal(rule.cfa, UNWIND_CFA_NONE);
	assert_int_equal(rule.ra, UNWIND_RA_INFERRED);
	rule = find(TEXT + 35);
	assert_int_equal(rule.cfa, UNWIND_CFA_SP);
	assert_int_equal(rule.ra, UNWIND_RA_INFERRED);
	rule = find(TEXT + 64);
	assert_int_equal(rule.ra, UNWIND_RA_AT_CFA);
	forge_free(&sections[0].content);
	forge_free(&sections[1].content);
}

/* Where there is no room for the rules of code without a description, the described code keeps its own. */
TEST(inferred_rules_are_dropped_if_they_exceed_the_limit)
{
	struct forged_section sections[] = {{".text", {}, 0}, {".eh_frame", {}, 0}};
	size_t size;

	put_code(&sections[0].content, "\xc3", 1, 32);
	for (int i = 0; i < 1000; i++)
		put_code(&sections[0].content, "\x53\x5b", 2, 0); /* push, pop */
	put_code(&sections[0].content, "\xc3", 1, 0);
	put_cie(&sections[1].content);
	put_fde(&sections[1].content, TEXT, 32, NULL);
	/* as if it were no code */
	assert_int_equal(build_forged(sections, 2, LIMIT), 0);
	size = image.size;
	sections[0].flags = SHF_EXECINSTR;
	assert_int_equal(build_forged(sections, 2, LIMIT), 0);
	assert_true(image.size > size + 2000);
	assert_int_equal(find(TEXT + 33).cfa_offset, 16);
	assert_int_equal(build_forged(sections, 2, size), 0);
	assert_int_equal(image.size, size);
	assert_int_equal(image.counts.functions, 1);
	assert_int_equal(find(TEXT).cfa, UNWIND_CFA_SP);
	assert_int_equal(find(TEXT + 33).cfa, UNWIND_CFA_NONE);
	assert_int_equal(build_forged(sections, 2, size - 1), -EFBIG);
	forge_free(&sections[0].content);
	forge_free(&sections[1].content);
}

/* So it is with rbx, which makes one rule a hundred here. */
TEST(rbx_rules_are_dropped_if_they_exceed_the_limit)
{
	struct forged_section section = {".eh_frame", {}, 0};
	const uint64_t code = 0x10000;
	struct forge by_rbx = {};
	struct unwind_rule rule;
	size_t size;

	forge_bytes(&by_rbx, (const uint8_t[]){DW_CFA_def_cfa, UNWIND_X86_RBX, 16}, 3);
	put_cie(&section.content);
	put_fde(&section.content, code, 16, &by_rbx);
	for (uint8_t i = 1; i <= 100; i++) {
		struct forge saved = {};

		forge_bytes(&saved, (const uint8_t[]){DW_CFA_offset | UNWIND_X86_RBX, i}, 2);
		put_fde(&section.content, code + 16 * i, 16, &saved);
		forge_free(&saved);
	}
	assert_int_equal(build_forged(&section, 1, LIMIT), 0);
	rule = find(code + 16 * 50);
	assert_int_equal(rule.rbx, UNWIND_RBX_AT_CFA);
	assert_int_equal(rule.cfa_addend, -8 * 50);
	size = image.size;
	assert_int_equal(build_forged(&section, 1, size - 1), 0);
	assert_true(image.size < size);
	rule = find(code + 16 * 50);
	assert_int_equal(rule.cfa, UNWIND_CFA_SP);
	assert_int_equal(rule.rbx, UNWIND_RBX_UNTOLD);
	forge_free(&by_rbx);
	forge_free(&section.content);
}

/* ---- where fibers begin ---------------------------------------------------------------------- */

#define STARTER 80 /* its offset in the text */

/* ret; lea STARTER(%rip),%rax; ret; …; what is before the starter; the starter. */
static bool is_starter(const char *taken, const char *before, const char *starter, size_t size)
{
	struct forged_section section = {".text", {}, SHF_EXECINSTR};
	bool found;

	put_code(&section.content, "\xc3", 1, 16);
	put_code(&section.content, taken, 7, 23);
	put_code(&section.content, "\xc3", 1, STARTER - 5);
	forge_bytes(&section.content, before, 5);
	put_code(&section.content, starter, size, 128);
	assert_int_equal(build_forged(&section, 1, LIMIT), 0);
	found = find(TEXT + STARTER - 1).cfa == UNWIND_CFA_STARTER;
	for (uint64_t at = 0; at < 128; at++)
		assert_true(at == STARTER - 1 || find(TEXT + at).cfa != UNWIND_CFA_STARTER);
	forge_free(&section.content);
	return found;
}

#define LEA   "\x48\x8d\x05\x39\0\0\0" /* STARTER - 23 */
#define NOPS  "\x90\x90\x90\x90\x90"
#define BEGIN "\x31\xff\xe8\1\2\3\0\xf4" /* xor %edi,%edi; call; hlt */

TEST(fiber_starters_are_recognized_by_their_code)
{
	assert_true(is_starter(LEA, NOPS, BEGIN, 8));
	/* as in makecontext()'s: a branch within */
	assert_true(is_starter(LEA, NOPS, "\x48\x85\xff\x74\5\xe8\1\2\3\0\xe8\1\2\3\0\xf4", 16));
	assert_true(is_starter(LEA, "\x90\x90\x55\xff\xe3", BEGIN, 8)); /* jmp *%rbx before */
	/* its address is not taken; another one is */
	assert_false(is_starter("\x48\x8b\x05\x39\0\0\0", NOPS, BEGIN, 8));
	assert_false(is_starter("\x48\x8d\x05\x3a\0\0\0", NOPS, BEGIN, 8));
	/* it is a return address, or the byte before is an instruction */
	assert_false(is_starter(LEA, "\xe8\1\2\3\0", BEGIN, 8));
	assert_false(is_starter(LEA, "\x90\x90\x90\xff\xd0", BEGIN, 8));
	assert_false(is_starter(LEA, "\x90\x90\x90\x90\xc3", BEGIN, 8));
	/* it returns, or goes on elsewhere, or nothing says that it does not return */
	assert_false(is_starter(LEA, NOPS, "\x90\xc3\xe8\1\2\3\0\xf4", 8));
	assert_false(is_starter(LEA, NOPS, "\x74\x20\xe8\1\2\3\0\xf4", 8));
	assert_false(is_starter(LEA, NOPS, "\xeb\0\xe8\1\2\3\0\xf4", 8));
	assert_false(is_starter(LEA, NOPS, "\x31\xff\xe8\1\2\3\0\x90", 8));
	/* a call of what is so far away is other bytes */
	assert_false(is_starter(LEA, NOPS, "\x31\xff\xe8\1\2\3\2\xf4", 8));
}

/* In a program of any size; this starter is where two pieces of the search meet. */
TEST(a_starter_between_two_search_pieces_is_found)
{
	enum { LARGE = 17 << 20, AT = (4 << 20) + 13 };
	struct forged_section sections[] = {
		{".text", {}, SHF_EXECINSTR}, {".eh_frame", {}, 0}, {".interp", {}, 0}};
	char *text = calloc(1, LARGE);

	assert_non_null(text);
	memset(text, 0x90, LARGE);
	memcpy(text + AT - STARTER + 16, LEA, 7);
	memcpy(text + AT, BEGIN, 8);
	forge_bytes(&sections[0].content, text, LARGE);
	put_cie(&sections[1].content);
	put_fde(&sections[1].content, TEXT, LARGE, NULL);
	forge_text(&sections[2].content, "/lib64/ld.so");
	assert_int_equal(build_forged(sections, 3, LIMIT), 0);
	assert_int_equal(find(TEXT + AT - 1).cfa, UNWIND_CFA_STARTER);
	assert_int_not_equal(find(TEXT + AT).cfa, UNWIND_CFA_STARTER);
	free(text);
	for (size_t i = 0; i < 3; i++)
		forge_free(&sections[i].content);
}

/* The first function of a greenlet has no caller, only in the library that is called so. */
TEST(inner_bootstrap_is_a_root_only_in_greenlet)
{
	static const char *const exported[] = {"PyInit__greenlet", "PyInit__greener"};
	static const char first[] = "_ZN8greenlet12UserGreenlet15inner_bootstrapEv";

	make_scratch();
	for (size_t i = 0; i < 2; i++) {
		char text[64] = "";
		uint64_t address;
		int fd;

		run("echo 'int %s(int (*f)(void)) { return f() + 1; } int %s(int (*f)(void)) "
		    "{ return f() + 2; } asm(\".set %s.cold,PyInit_other;.type %s.cold,@function;"
		    ".size %s.cold,4\"); int PyInit_other(void) { return 0; }' >lib.c && "
		    "${CC:-cc} -O1 -shared -fPIC -o lib.so lib.c && "
		    "nm lib.so | grep ' %s$' >address",
		    exported[i], first, first, first, first, first);
		fd = open_scratch("address", O_RDONLY);
		assert_true(read(fd, text, sizeof(text) - 1) > 16);
		close(fd);
		address = strtoull(text, NULL, 16);
		fd = open_scratch("lib.so", O_RDONLY);
		assert_int_equal(build(fd, LIMIT), 0);
		assert_int_equal(find(address).cfa == UNWIND_CFA_ROOT, !i);
		assert_int_equal(find(address + 7).cfa == UNWIND_CFA_ROOT, !i);
		assert_int_not_equal(find(address - 1).cfa, UNWIND_CFA_ROOT);
		close(fd);
	}
	remove_scratch();
}

EACH_TEST_WITH(NULL, tear_down);
