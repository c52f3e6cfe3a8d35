/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_file against forged files of both classes and byte orders, cut at every byte and mutated at
 * random, and against the real ones this test runs with.
 */
#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>

#include "text_cases.h"

#include "base/cleanup.h"
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

static size_t exercise(struct elf_file *file);

/* ---- the table ------------------------------------------------------------------------------- */

/* A number that a field gets; "all": as many as it can say. */
static uint64_t number(char **at)
{
	const bool all = !strncmp(*at, "all", 3);
	uint64_t value = all ? UINT64_MAX : strtoull(*at, at, 0);

	*at += all ? 3 : 0;
	*at += **at == ',';
	return value;
}

/* shnum=0, or s3.link=100 of a section, or name1=79 of a symbol. */
static void change_field(struct image *im, const char *name, char *value)
{
	const size_t word = (size_t)WORD(im);
	const unsigned int n = (unsigned int)strtoul(name + strcspn(name, "0123456789"), NULL, 10);
	const char *of_section = strchr(name, '.');
	const struct {
		const char *name;
		size_t at, size;
	} fields[] = {
		{"shoff", E_SHOFF(im), word},
		{"shnum", E_SHNUM(im), 2},
		{"phoff", E_PHOFF(im), word},
		{"phnum", E_PHNUM(im), 2},
		{"shentsize", E_SHENTSIZE(im), 2},
		{".link", SECTION(im, n, sh_link), 4},
		{".info", SECTION(im, n, sh_info), 4},
		{".size", SECTION(im, n, sh_size), word},
		{".offset", SECTION(im, n, sh_offset), word},
		{".entsize", SECTION(im, n, sh_entsize), word},
		{"name", im->symbols + n * (im->is_64 ? 24 : 16), 4},
	};
	size_t i = 0;

	while (strncmp(fields[i].name, of_section ? of_section : name, strlen(fields[i].name)))
		assert_true(++i < COUNT(fields));
	put(im, fields[i].at, number(&value), fields[i].size);
}

/* A field; "load=" and "notes=" replace program headers, "note=" the notes; the rest are places that are looked up. */
static void change_image(struct image *im, char *word, struct cursor *headers, struct cursor *notes)
{
	const char *name = strsep(&word, "=");
	uint64_t n[5] = {};

	if (!word)
		return;
	if (!strcmp(name, "note")) {
		if (!notes->at)
			memset(im->bytes + im->notes, 0, 0x80);
		notes->at = notes->at ?: im->notes;
		name = strsep(&word, ",");
		n[0] = number(&word);
		n[1] = number(&word);
		note(notes, name, n[0], word, n[1]);
		return;
	}
	if (strcmp(name, "load") && strcmp(name, "notes")) {
		change_field(im, name, word);
		return;
	}
	for (size_t i = 0; i < COUNT(n) && *word; i++)
		n[i] = number(&word);
	segment(headers, *name == 'l' ? PT_LOAD : PT_NOTE, n[0], n[1], n[2], n[3], n[4]);
}

/* Each place as an offset in the file, and as an address; what fails leaves its result alone. */
static void put_place(FILE *out, struct elf_file *file, char *word)
{
	uint64_t address = 4711, offset = 4711, place = number(&word);
	int err = elf_file__address_of_offset(file, place, &address);

	assert_true(!err || (err == -ENOENT && address == 4711));
	fprintf(out, err ? ", %llx is nowhere" : ", %llx is at %llx", (unsigned long long)place,
		(unsigned long long)address);
	assert_int_equal(elf_file__offset_of_address(file, err ? place : address, &offset), err);
	assert_true(offset == (err ? 4711 : place));
}

static void put_image(FILE *out, const struct image *im, char *places)
{
	struct seen seen = {};
	struct elf_file *file;
	uint8_t id[32];
	int fd, err, size;

	file = open_image(im, &fd);
	size = elf_file__build_id(file, id, sizeof(id));
	if (size < 0)
		text_put_error(out, size);
	else
		fprintf(out, "%.*s", size, (char *)id);
	assert_int_equal(elf_file__build_id(file, id, 5), size < 5 ? size : 5);
	err = elf_file__each_symbol(file, see, &seen);
	fprintf(out, ", %zu symbols", seen.count);
	if (err)
		fputc(' ', out), text_put_error(out, err);
	exercise(file);
	for (char *word; (word = strsep(&places, " "));)
		if (*word && !strchr(word, '=') && !strcmp(word, "symbols"))
			for (size_t i = 0; i < seen.count; i++)
				fprintf(out, "\n%s %llx+%llx type %u binding %u up to %llx",
					seen.names[i], (unsigned long long)seen.symbols[i].address,
					(unsigned long long)seen.symbols[i].size,
					seen.symbols[i].type, seen.symbols[i].binding,
					(unsigned long long)seen.symbols[i].section_end);
		else if (*word && !strchr(word, '='))
			put_place(out, file, word);
	assert_int_equal(seen.dynamic_count, 0);
	seen.count = 0;
	assert_int_equal(elf_file__each_symbol(file, see, &seen), err); /* again */
	close_image(file, fd);
}

/* Changes of the forged file, in words: of all classes and byte orders, which say the same, or of "64" alone. */
static void read_image(FILE *out, char *input)
{
	const bool only_64 = !strncmp(input, "64 ", 3) && (input += 3);
	const size_t variant_count = only_64 ? 1 : COUNT(variants);
	_cleanup_free_ char *first = NULL;

	for (size_t i = 0; i < variant_count; i++) {
		_cleanup_free_ char *copy = strdup(input), *said = NULL;
		struct cursor headers, notes;
		char *words = copy, *word;
		struct image im;
		size_t size;
		FILE *text = open_memstream(&said, &size);

		forge(&im, variants[i].is_64, variants[i].big);
		headers = (struct cursor){&im, im.program_headers};
		notes = (struct cursor){&im, 0};
		while ((word = strsep(&words, " "))) {
			_cleanup_free_ char *change = strdup(word);

			change_image(&im, change, &headers, &notes);
		}
		memcpy(copy, input, strlen(input));
		put_image(text, &im, copy);
		fclose(text);
		if (first)
			assert_string_equal(said, first);
		else
			first = strdup(said);
	}
	fputs(first, out);
}

static const struct text_verb verbs[] = {{"elf", read_image}, {}};

TEXT_TABLE("elf_file", verbs, NULL, NULL);

/* ---- forged, whole --------------------------------------------------------------------------- */

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
	_cleanup_close_ int fd = make_file(bytes, size);

	assert_int_equal(elf_file__open(fd, &file), err);
	assert_null(file);
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
			_cleanup_close_ int fd = make_file(im.bytes, size);
			int err = elf_file__open(fd, &file);

			if (size < 52)
				assert_int_equal(err, -ENOEXEC);
			assert_true(err == 0 || err == -ENOEXEC || err == -EBADMSG);
			if (!err && size < im.size)
				assert_true(exercise(file) <= 4);
			else if (!err)
				assert_int_equal(exercise(file), 4);
			elf_file__free(file);
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
	uint64_t random = 88172645463325252, deadline = thread_cpu_ns() + 60 * UINT64_C(1000000000);
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
		assert_true(thread_cpu_ns() < deadline);
	}
}

/* Very many symbols that share one very long name: time must not be their product. */
TEST(endless_names_are_cut_short)
{
	enum { SYMBOLS = 400000, NAME = 60000 };
	size_t size = 0x1000 + SYMBOLS * 24 + NAME;
	_cleanup_free_ unsigned char *bytes = calloc(1, size);
	uint64_t start = thread_cpu_ns();
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
	assert_true(thread_cpu_ns() - start < 10 * UINT64_C(1000000000));
	close_image(file, fd);
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
	_cleanup_free_ char *data = NULL;

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
}
