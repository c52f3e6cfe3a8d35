/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index of a module: what was written comes out, at every address; what no writer has written is refused; that of a
 * real module has the module's answers, in all fields.
 */
#include <elf.h>

#include "unit.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "elf/elf_sections.h"
#include "symbolize/module.h"
#include "symbolize/module_index.h"
#include "symbolize/radix.h"
#include "symbolize/symbol_index.h"
#include "symbolize/symbol_index_private.h"
#include "symbolize/symbol_index_writer.h"
#include "symbolize/symbol_names.h"

#define LIMIT	  ((size_t)1 << 20)
#define ROWS	  1000
#define ADDRESSES 4000

TEST(radix_sort_keeps_the_order_of_equal_keys)
{
	static struct radix_item items[5000];

	srandom(1);
	for (unsigned int bits = 0; bits <= 64; bits += 8) {
		for (size_t i = 0; i < 5000; i++) {
			uint64_t key = (uint64_t)random() << 33 ^ (uint64_t)random();

			items[i] = (struct radix_item){bits ? key >> (64 - bits) : 0, i};
		}
		assert_int_equal(radix_sort(items, 5000), 0);
		for (size_t i = 1; i < 5000; i++)
			assert_true(items[i - 1].key < items[i].key ||
				    (items[i - 1].key == items[i].key &&
				     items[i - 1].value < items[i].value));
	}
	assert_int_equal(radix_sort(items, 0), 0);
}

/* ---- written ones ---------------------------------------------------------------------------- */

#define LETTERS "abcdefghijklmnopqrstuvwxyz_0123456789~"
#define WORD	LETTERS LETTERS LETTERS LETTERS LETTERS LETTERS LETTERS LETTERS

/* Short ones, ones of several words that begin and end alike, a word that is longer than any, punctuation alone. */
static const char *const names[] = {
	"one",
	"two",
	"",
	"a name that is longer than the others",
	"std::vector<std::string, std::allocator<std::string> >::push_back(std::string const&)",
	"std::vector<std::string, std::allocator<std::string> >::push_back",
	"std::vector<std::string, std::allocator<std::string> >",
	"std::vector<int, std::allocator<int> >::~vector() [clone .cold]",
	"a name that is longer than the others, and this one is longer than that",
	WORD "::" WORD,
	WORD,
	"::<>::<>::<>::<>::<>::<>::<>::<>::<>",
	"f\303\274r::\303\274ber::\303\244hnlich::\303\244hnlich::\303\244hnlich",
};
static const char *const files[] = {"/src/a.c", NULL, "/src/b.h", "/src/c.h", "/src/a.c"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The answer of the row at this address, made from it. */
static size_t make_frames(uint64_t address, struct symbol_frame *frames)
{
	uint64_t number = address * 2654435761u >> 7;
	size_t count = number % 5 == 4 ? 70 : number % 5;

	for (size_t i = 0; i < count; i++, number = number * 31 + 7) {
		bool outermost = i + 1 == count;

		frames[i] = (struct symbol_frame){
			.function = names[number % COUNT(names)],
			.function_address = outermost ? address & ~255ull : PROFILE_UNKNOWN_ADDRESS,
			.function_size = outermost ? 256 : 0,
			.file = files[number % COUNT(files)],
			.line = number % 3 ? (uint32_t)number % 100000 : 0,
			.column = number % 90,
			.definition_file = files[number % 7 % COUNT(files)],
			.definition_line = number % 11 ? UINT32_MAX - (uint32_t)number % 100 : 0,
			.definition_column = number % 4,
		};
	}
	return count;
}

/* Rows 1 to 40 bytes apart; every 50th is a gap. */
static uint64_t step_of(size_t i)
{
	return 1 + i * 7 % 40;
}

static bool is_gap(size_t i)
{
	return i % 50 == 49;
}

static void *write_sample(size_t limit, size_t *size, int *err)
{
	struct index_writer *w = index_writer__new(limit, NULL);
	struct symbol_frame frames[70];
	uint64_t address = 0x401000;
	void *data = NULL;

	assert_non_null(w);
	assert_int_equal(index_writer__segment(w, 0x1000, 0x100000, 0x401000), 0);
	assert_int_equal(index_writer__segment(w, 0, 0x200000, 0x10000000), 0);
	*err = 0;
	for (size_t i = 0; i < ROWS && !*err; i++, address += step_of(i))
		*err = is_gap(i) ? index_writer__gap(w, address)
				 : index_writer__answer(w, address, frames,
							make_frames(address, frames));
	if (!*err)
		*err = index_writer__finish(w, SYMBOL_STATE_RESOLVED, &data, size);
	index_writer__free(w);
	return data;
}

static bool is_same_text(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

static bool is_same_frame(const struct symbol_frame *a, const struct symbol_frame *b)
{
	return is_same_text(a->function, b->function) &&
	       a->function_address == b->function_address && a->function_size == b->function_size &&
	       is_same_text(a->file, b->file) && a->line == b->line && a->column == b->column &&
	       is_same_text(a->definition_file, b->definition_file) &&
	       a->definition_line == b->definition_line &&
	       a->definition_column == b->definition_column;
}

static bool is_same(const struct symbol_result *a, const struct symbol_frame *frames, size_t count)
{
	if (a->frame_count != (count < SYMBOL_CHAIN_MAX ? count : SYMBOL_CHAIN_MAX))
		return false;
	for (size_t i = 0; i < a->frame_count; i++)
		if (!is_same_frame(&a->frames[i], &frames[i]))
			return false;
	return true;
}

TEST(every_address_has_the_answer_that_was_written)
{
	static struct symbol_answer answer;
	struct symbol_frame frames[70];
	uint64_t address = 0x401000;
	struct symbol_index *x;
	size_t size;
	int err;
	void *data = write_sample(LIMIT, &size, &err);

	assert_int_equal(err, 0);
	assert_int_equal(symbol_index__open(data, size, &x), 0);
	assert_int_equal(symbol_index__state(x), SYMBOL_STATE_RESOLVED);
	for (size_t i = 0; i < ROWS; i++, address += step_of(i)) {
		size_t count = make_frames(address, frames);

		for (uint64_t k = 0; k < step_of(i + 1); k++) {
			uint64_t offset = address + k - 0x400000;

			assert_int_equal(symbol_index__find(x, offset, &answer), !is_gap(i));
			assert_int_equal(answer.result.elf_address, address + k);
			if (!is_gap(i))
				assert_true(is_same(&answer.result, frames, count));
		}
	}
	/* by the second segment, behind the last row, which is a gap; and in none */
	assert_false(symbol_index__find(x, 0xfff, &answer));
	assert_int_equal(answer.result.elf_address, 0x10000fff);
	assert_true(symbol_index__find(x, 0x200000, &answer));
	assert_int_equal(answer.result.elf_address, PROFILE_UNKNOWN_ADDRESS);
	assert_int_equal(answer.result.frame_count, 0);
	symbol_index__free(x);
	symbol_index__free(NULL);
}

static size_t readable(const char *name, char *buffer, size_t size)
{
	return (size_t)snprintf(buffer, size, "<%s>", name);
}

/* Equal short names and files at several places are written once, and their neighbours have one row. */
TEST(equal_names_and_files_are_written_once)
{
	static char places[4][2][80];
	static struct symbol_answer answer;
	struct index_writer *w = index_writer__new(LIMIT, readable);
	size_t size, sizes[4];
	struct symbol_index *x;
	void *data;

	assert_non_null(w);
	assert_int_equal(index_writer__segment(w, 0, 0x1000, 0), 0);
	for (uint64_t i = 0; i < 4; i++) {
		struct symbol_frame frame = {.function = places[i][0], .file = places[i][1]};

		strcpy(places[i][0], "a::name that::is short");
		strcpy(places[i][1], "/src/a.c");
		/* the third has another line, the fourth that of the first */
		frame.line = i == 2 ? 8 : 7;
		assert_int_equal(index_writer__answer(w, 16 * i, &frame, 1), 0);
		sizes[i] = index_writer__size(w);
	}
	assert_int_equal(sizes[0], sizes[1]);
	assert_true(sizes[2] - sizes[1] < 4 && sizes[3] - sizes[2] < 4);
	assert_int_equal(index_writer__finish(w, SYMBOL_STATE_RESOLVED, &data, &size), 0);
	index_writer__free(w);
	assert_int_equal(symbol_index__open(data, size, &x), 0);
	for (uint64_t i = 0; i < 4; i++) {
		assert_true(symbol_index__find(x, 16 * i, &answer));
		assert_string_equal(answer.frames[0].function, "<a::name that::is short>");
		assert_string_equal(answer.frames[0].file, "/src/a.c");
		assert_int_equal(answer.frames[0].line, i == 2 ? 8 : 7);
	}
	symbol_index__free(x);
}

/* Names of few different bytes and of many, whole and up to one that is wanted. */
TEST(packed_names_unpack_to_what_they_were)
{
	char names[NAMES_BLOCK], unpacked[NAMES_UNPACKED_MAX];
	unsigned char packed[NAMES_PACKED_MAX];

	srandom(1);
	for (unsigned int kinds = 1; kinds <= 256; kinds *= 2)
		for (size_t size = 1; size <= NAMES_BLOCK; size = size * 3 / 2 + 1) {
			size_t packed_size, got;

			for (size_t i = 0; i < size; i++)
				names[i] = (char)(i % 40 == 39 ? 0 : 'a' + random() % kinds);
			packed_size = names_pack(names, size, packed);
			assert_true(packed_size <= sizeof(packed));
			assert_int_equal(names_unpack(packed, packed_size, unpacked, size), size);
			assert_memory_equal(unpacked, names, size);
			for (size_t at = 0; at < size; at += 40) {
				got = names_unpack(packed, packed_size, unpacked, at);
				assert_true(got > at && got <= size);
				assert_true(got == size || strlen(unpacked + at) < got - at);
				assert_memory_equal(unpacked, names, got);
			}
			/* a part is refused, or shorter */
			got = names_unpack(packed, packed_size - 1, unpacked, size);
			assert_true(got < size);
		}
}

TEST(an_index_beyond_the_limit_is_too_big)
{
	size_t size, whole;
	int err;

	free(write_sample(LIMIT, &whole, &err));
	assert_int_equal(err, 0);
	for (size_t limit = 64; limit < whole; limit = limit * 3 / 2 + 1) {
		assert_null(write_sample(limit, &size, &err));
		assert_int_equal(err, -EFBIG);
	}
	free(write_sample(whole, &size, &err));
	assert_int_equal(err, 0);
}

/* ---- forged ones ------------------------------------------------------------------------------ */

/* Reads all that an answer has. */
static size_t read_all(const struct symbol_index *x)
{
	static struct symbol_answer answer;
	size_t sum = 0;

	for (uint64_t offset = 0; offset < 0x9000; offset += 251) {
		symbol_index__find(x, offset, &answer);
		assert_true(answer.result.frame_count <= SYMBOL_CHAIN_MAX);
		for (size_t i = 0; i < answer.result.frame_count; i++) {
			const struct symbol_frame *f = &answer.frames[i];

			sum += strlen(f->function) + (f->file ? strlen(f->file) : 0) +
			       (f->definition_file ? strlen(f->definition_file) : 0);
		}
	}
	return sum;
}

/* False: it is refused. */
static bool opens(const void *bytes, size_t size)
{
	struct symbol_index *x;
	void *data = malloc(size + 1);
	int err;

	assert_non_null(data);
	memcpy(data, bytes, size);
	err = symbol_index__open(data, size, &x);
	assert_true(!err || err == -EBADMSG);
	if (err)
		return false;
	read_all(x);
	symbol_index__free(x);
	return true;
}

TEST(an_index_with_changed_bytes_is_refused_or_readable)
{
	static const unsigned char changes[] = {1, 0x10, 0x80, 0xff};
	size_t size, refused = 0;
	int err;
	_cleanup_free_ unsigned char *data = write_sample(LIMIT, &size, &err);

	assert_true(opens(data, size));
	for (size_t i = 0; i < size; i += i < 256 ? 1 : 421)
		for (size_t k = 0; k < COUNT(changes); k++) {
			data[i] ^= changes[k];
			refused += !opens(data, size);
			data[i] ^= changes[k];
		}
	assert_true(refused > 256);
	for (size_t cut = 0; cut < size; cut += 1 + cut / 4)
		assert_false(opens(data, cut));
}

static struct index_header *header_of(void *data)
{
	return data;
}

static unsigned char *section_of(void *data, enum index_section section)
{
	unsigned char *at = (unsigned char *)data + sizeof(struct index_header);

	for (size_t i = 0; i < section; i++)
		at += header_of(data)->sizes[i];
	return at;
}

/* A node that is around itself, a block that goes back, rows that do not ascend, a string that does not end. */
TEST(inconsistent_nodes_blocks_rows_and_strings_are_refused)
{
	struct index_block *blocks;
	unsigned char *nodes, *rows, *strings, kept;
	size_t size;
	int err;
	void *data = write_sample(LIMIT, &size, &err);

	nodes = section_of(data, INDEX_NODES);
	kept = nodes[NODE_FIRST + 1];
	nodes[NODE_FIRST + 1] = NODE_FIRST; /* the distance of the first */
	assert_false(opens(data, size));
	nodes[NODE_FIRST + 1] = kept;

	blocks = (struct index_block *)section_of(data, INDEX_BLOCKS);
	blocks[2].address = blocks[1].address;
	assert_false(opens(data, size));
	free(data);

	data = write_sample(LIMIT, &size, &err);
	rows = section_of(data, INDEX_ROWS);
	rows[0] |= 1; /* the first row of a block is at the block's address */
	assert_false(opens(data, size));
	rows[0] &= ~1;
	assert_true(opens(data, size));
	strings = section_of(data, INDEX_STRINGS);
	strings[header_of(data)->sizes[INDEX_STRINGS] - 1] = 'x';
	assert_false(opens(data, size));
	free(data);
}

/* A copy from before a block's begin, more bytes than there are, more than a block has; blocks at wrong positions. */
TEST(damaged_names_and_name_blocks_are_refused)
{
	static const unsigned char pieces[][4] = {
		{0x01, 1}, {0x11, 'a', 2}, {0xf0, 0xff, 0xff, 0x7f}, {0x1f, 'a', 0xff, 0xff}};
	unsigned char *names, kept[4];
	uint32_t *blocks;
	size_t size;
	int err;
	_cleanup_free_ void *data = write_sample(LIMIT, &size, &err);

	names = section_of(data, INDEX_NAMES);
	blocks = (uint32_t *)section_of(data, INDEX_NAME_BLOCKS);
	assert_true(header_of(data)->sizes[INDEX_NAMES] > 100 && !blocks[0]);
	memcpy(kept, names, sizeof(kept));
	for (size_t i = 0; i < COUNT(pieces); i++) {
		memcpy(names, pieces[i], sizeof(kept));
		assert_false(opens(data, size));
	}
	memcpy(names, kept, sizeof(kept));
	assert_true(opens(data, size));
	blocks[0] = 1;
	assert_false(opens(data, size));
	blocks[0] = header_of(data)->sizes[INDEX_NAMES];
	assert_false(opens(data, size));
}

/* ---- real ones -------------------------------------------------------------------------------- */

struct comparison {
	const struct symbol_index *index;
	const uint64_t *offsets;
	size_t frames, lines;
};

static int compare(void *context, size_t i, const struct symbol_result *result)
{
	static struct symbol_answer answer;
	struct comparison *c = context;

	assert_true(symbol_index__find(c->index, c->offsets[i], &answer));
	assert_int_equal(answer.result.elf_address, result->elf_address);
	assert_true(is_same(&answer.result, result->frames, result->frame_count));
	c->frames += result->frame_count;
	c->lines += result->frame_count && result->frames[0].line;
	return 0;
}

/* Of .text and around it, ascending. */
static void pick_offsets(int fd, uint64_t *offsets)
{
	struct elf_section text;
	struct elf_file *file;
	uint64_t start;

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_file__find_section(file, ".text", &text), 0);
	elf_file__free(file);
	start = text.offset - text.offset / 8;
	for (size_t i = 0; i < ADDRESSES; i++)
		offsets[i] = start + i * (text.size + text.offset / 4) / ADDRESSES;
}

/* The index of a file and the file's module have the same answers. */
static struct comparison compare_file(int fd, bool symbols_only, const uint64_t *offsets,
				      size_t count)
{
	struct module_files files = {.kind = DSO_FILE,
				     .debug_fd = -1,
				     .alt_fd = -1,
				     .symbols_only = symbols_only,
				     .elf_fd = fd};
	struct comparison comparison = {.offsets = offsets};
	struct module_report report;
	struct symbol_index *index;
	struct module *module;
	size_t size;
	void *data;

	assert_int_equal(module__open(&files, &module), 0);
	assert_int_equal(module__index(module, offsets, count, &data, &size), 0);
	assert_int_equal(symbol_index__open(data, size, &index), 0);
	comparison.index = index;
	assert_int_equal(module__resolve(module, offsets, count, compare, &comparison, &report), 0);
	assert_int_equal(symbol_index__state(index), report.state);
	symbol_index__free(index);
	module__free(module);
	close(fd);
	return comparison;
}

static struct comparison compare_program(bool symbols_only)
{
	static uint64_t offsets[ADDRESSES];
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	pick_offsets(fd, offsets);
	return compare_file(fd, symbols_only, offsets, ADDRESSES);
}

TEST(an_index_has_the_answers_of_its_module)
{
	struct comparison c = compare_program(false);

	assert_true(c.lines > ADDRESSES / 10);
	assert_true(c.frames > c.lines);
}

TEST(an_index_of_symbols_only_has_no_lines)
{
	struct comparison c = compare_program(true);

	assert_true(c.frames > ADDRESSES / 10);
	assert_int_equal(c.lines, 0);
}

/* ---- symbols that overlap in any way ------------------------------------------------------------ */

#define CODE	3000u /* bytes */
#define SYMBOLS 60u

static const char symbol_names[] = "\0f\0g\0longer\0$x\0.annobin\0f@@V1\0h";

struct forged_file {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[6]; /* none, code, .symtab, .strtab, .dynsym, .dynstr */
	Elf64_Sym symbols[2][SYMBOLS];
	char names[2][sizeof(symbol_names)];
	unsigned char code[CODE];
};

static Elf64_Sym forge_symbol(void)
{
	static const unsigned char types[] = {STT_FUNC, STT_FUNC, STT_NOTYPE, STT_GNU_IFUNC};
	static const unsigned char bindings[] = {STB_LOCAL, STB_GLOBAL, STB_WEAK};
	static const uint32_t places[] = {0, 1, 3, 5, 12, 15, 24, 30};
	uint64_t start = random() % 4 ? random() % CODE : random() % 8 * 100;

	return (Elf64_Sym){
		.st_name = places[random() % COUNT(places)],
		.st_info = ELF64_ST_INFO(bindings[random() % 3], types[random() % 4]),
		.st_shndx = random() % 4 ? 1 : SHN_ABS,
		.st_value = start,
		.st_size = random() % 3 ? random() % (random() % 2 ? 40 : 700) : 0,
	};
}

/* With the symbols of the first table, or their first ones, in the second one as well. */
static int forge_file(unsigned int seed)
{
	static const uint32_t types[] = {SHT_NULL,   SHT_PROGBITS, SHT_SYMTAB,
					 SHT_STRTAB, SHT_DYNSYM,   SHT_STRTAB};
	static struct forged_file f;
	int fd = memfd_create("forged", MFD_CLOEXEC);

	srandom(seed);
	f.header = (Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					    ELFDATA2LSB, EV_CURRENT},
				.e_type = ET_DYN,
				.e_machine = EM_X86_64,
				.e_version = EV_CURRENT,
				.e_phoff = offsetof(struct forged_file, segment),
				.e_shoff = offsetof(struct forged_file, sections),
				.e_ehsize = sizeof(f.header),
				.e_phentsize = sizeof(f.segment),
				.e_phnum = 1,
				.e_shentsize = sizeof(f.sections[0]),
				.e_shnum = 6};
	f.segment = (Elf64_Phdr){.p_type = PT_LOAD,
				 .p_flags = PF_R | PF_X,
				 .p_offset = offsetof(struct forged_file, code),
				 .p_filesz = CODE,
				 .p_memsz = CODE};
	for (size_t i = 0; i < 6; i++)
		f.sections[i].sh_type = types[i];
	f.sections[1].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	f.sections[1].sh_offset = offsetof(struct forged_file, code);
	f.sections[1].sh_size = CODE - seed % 3 * 200;
	for (size_t i = 0; i < 2; i++) {
		Elf64_Shdr *table = &f.sections[2 + 2 * i], *strings = table + 1;

		table->sh_link = 3 + 2 * i;
		table->sh_entsize = sizeof(f.symbols[0][0]);
		table->sh_offset = offsetof(struct forged_file, symbols[i]);
		table->sh_size = (1 + random() % SYMBOLS) * sizeof(f.symbols[0][0]);
		strings->sh_offset = offsetof(struct forged_file, names[i]);
		strings->sh_size = sizeof(symbol_names);
		memcpy(f.names[i], symbol_names, sizeof(symbol_names));
	}
	for (size_t i = 0; i < SYMBOLS; i++) {
		f.symbols[0][i] = forge_symbol();
		f.symbols[1][i] = random() % 3 ? f.symbols[0][i] : forge_symbol();
	}
	assert_int_equal(write(fd, &f, sizeof(f)), sizeof(f));
	return fd;
}

TEST(overlapping_symbols_are_resolved_as_by_the_module)
{
	static uint64_t offsets[CODE];
	size_t frames = 0;

	for (size_t i = 0; i < CODE; i++)
		offsets[i] = offsetof(struct forged_file, code) + i;
	for (unsigned int seed = 0; seed < 300; seed++)
		frames += compare_file(forge_file(seed), true, offsets, CODE).frames;
	assert_true(frames > 300 * CODE / 4); /* two empty answers are equal as well */
}

TEST(a_file_that_is_no_elf_has_no_index)
{
	struct module_files files = {.kind = DSO_FILE,
				     .debug_fd = -1,
				     .alt_fd = -1,
				     .elf_fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC)};
	struct module *module;
	size_t size;
	void *data;

	assert_int_equal(module__open(&files, &module), 0);
	assert_int_equal(module__index(module, NULL, 0, &data, &size), -ENODATA);
	module__free(module);
	close(files.elf_fd);
}
