/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbols of .symtab and .dynsym, or of the dynamic linker's tables if there are no section
 * headers.
 *
 * A symbol table is read in pieces, its strings as a whole because callers keep names. If only a
 * few names of a large table are wanted (20 MB, say), these are read one by one. Versions are cut
 * off in place: names that share their ends share the version too.
 *
 * A million symbols could point at the start of one endless name. So the bytes that are read for
 * names have a budget, a multiple of the string table.
 */
#include "elf/elf_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "elf/elf_file_private.h"

#define MAX_STRINGS (UINT64_C(1) << 30)
#define MAX_SYMBOLS (UINT64_C(1) << 24)
#define MAX_EXPORTED                                                                               \
	(UINT64_C(1) << 16) /* symbols of a file in which exported objects are searched … */
#define MAX_EXPORTED_NAMES (UINT64_C(1) << 20) /* … and bytes of their names */
#define MAX_NAME	   (64 * 1024)
#define MAX_DYNAMIC	   1024
#define SYMBOLS_AT_ONCE	   2048
#define AHEAD		   8			 /* names that are prefetched */
#define NAMES_ALONE	   (UINT64_C(256) << 10) /* smaller string tables are read whole */
#define NAMES_ALONE_SHARE  2048 /* with more than one name per so many bytes, all are read */
#define NAME_READ	   512	/* first read of a single name, bytes: few are longer */
#define WORDS_AT_ONCE	   1024

MAP_FUNCTIONS_BY(elf_name_map, struct elf_name, uint64_t, offset);

struct table {
	struct elf_file *file;
	uint64_t offset, count;
	struct elf_strings *strings;
	uint64_t name_budget;
	bool objects;  /* not functions */
	bool exported; /* only exported ones, if they are few */
	bool dynamic, partial, damaged;
	int err; /* of reading a name: -ENOMEM */
	elf_symbol_fn visit;
	elf_symbol_wanted_fn wanted; /* NULL: all are */
	void *context;
};

/* All strings, unless an earlier walk read them. A short read sets `damaged`. */
static int read_strings(struct table *t)
{
	struct elf_strings *strings = t->strings;
	_cleanup_free_ char *data = NULL;
	ssize_t got;

	if (strings->data)
		return 0;
	data = malloc(strings->size + 1);
	if (!data)
		return -ENOMEM;
	got = strings->size ? elf_file__read(t->file, data, strings->size, strings->offset) : 0;
	if (got < 0)
		return got;
	data[got] = '\0';
	t->damaged |= (size_t)got < strings->size;
	strings->size = got;
	strings->data = steal_ptr(data);
	return 0;
}

/* Single names are faster to read. */
static bool is_for_few(const struct table *t)
{
	return t->wanted && t->strings->size >= NAMES_ALONE &&
	       t->strings->names.count < t->strings->size / NAMES_ALONE_SHARE;
}

/* Sets `damaged` if part of the table is missing. */
static int load_strings(struct table *t, uint64_t offset, uint64_t size)
{
	uint64_t readable = elf_file__available(t->file, offset, size);
	int err;

	t->damaged |= readable < size;
	t->file->left |= readable > MAX_STRINGS;
	readable = min_u64(readable, MAX_STRINGS);
	if (t->exported && readable > MAX_EXPORTED_NAMES)
		return -EFBIG;
	if (!t->strings->data) {
		t->strings->offset = offset;
		t->strings->size = readable;
	}
	err = is_for_few(t) ? 0 : read_strings(t);
	t->name_budget = t->strings->size * 8 + (16 << 20);
	return err;
}

/* Copies up to MAX_NAME bytes of a name; `offset` is below the size. NULL: t->err has the error. */
static char *copy_name(struct table *t, uint32_t offset)
{
	const struct elf_strings *strings = t->strings;
	size_t limit = min_u64(strings->size - offset, MAX_NAME), size = min_u64(limit, NAME_READ);
	char *name;

	for (;; size = limit) {
		_cleanup_free_ char *text = malloc(size);
		ssize_t got = text ? elf_file__read(t->file, text, size, strings->offset + offset)
				   : -ENOMEM;
		size_t length = got < 0 ? 0 : strnlen(text, got);

		if (got < 0) {
			t->err = got == -ENOMEM ? got : 0;
			return NULL;
		}
		if (length == size && size < limit)
			continue;
		name = strndup(text, length);
		t->err = name ? 0 : -ENOMEM;
		return name;
	}
}

/* The name lives as long as the file. NULL: it cannot be read. */
static char *single_name(struct table *t, uint32_t offset)
{
	struct elf_name_map *names = &t->strings->names;
	struct elf_name new = {.offset = offset}, *known = elf_name_map__find(names, offset);

	if (known)
		return known->text;
	new.text = copy_name(t, offset);
	if (!new.text)
		return NULL;
	if (elf_name_map__need(names, &new, NULL))
		return new.text;
	free(new.text);
	t->err = -ENOMEM;
	return NULL;
}

/* `offset` is below the size. NULL: the name cannot be read. */
static char *find_name(struct table *t, uint32_t offset)
{
	if (!t->strings->data && !is_for_few(t)) {
		t->err = read_strings(t);
		if (t->err || offset >= t->strings->size)
			return NULL;
	}
	return t->strings->data ? t->strings->data + offset : single_name(t, offset);
}

/* The name without its version; leaves it NULL if there is none or it is damaged. */
static void read_name(struct table *t, uint32_t offset, struct elf_symbol *symbol)
{
	size_t limit, length;
	char *name, *version;

	if (!offset)
		return;
	name = offset < t->strings->size ? find_name(t, offset) : NULL;
	if (!name) {
		t->damaged = true;
		return;
	}
	limit = t->strings->size - offset;
	length = strnlen(name, min_u64(limit, MAX_NAME));
	t->name_budget -= min_u64(length, t->name_budget);
	if (length == MAX_NAME) {
		t->file->left = true;
		return;
	}
	version = memchr(name, '@', length);
	if (version)
		*version = '\0';
	symbol->name_length = version ? (size_t)(version - name) : length;
	symbol->name = symbol->name_length ? name : NULL;
}

static const Elf64_Shdr *symbol_section(const struct table *t, const Elf64_Sym *symbol)
{
	size_t index = symbol->st_shndx;

	if (index >= SHN_LORESERVE || index >= t->file->sections.count)
		return NULL;
	return &t->file->sections.data[index];
}

/* Assembly without .type leaves STT_NOTYPE on functions, but also on local labels and data. */
static bool is_function(const Elf64_Sym *symbol, const Elf64_Shdr *section)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	return type == STT_NOTYPE && section && section->sh_flags & SHF_EXECINSTR;
}

static bool is_object(const Elf64_Sym *symbol)
{
	return symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT;
}

/* Marks of assemblers and annotating compilers name no function: $x, $d.1, .L12, .annobin_… */
static bool is_label(const char *name)
{
	return name[0] == '$' || name[0] == '.';
}

static int report_symbol(struct table *t, const Elf64_Sym *symbol)
{
	const Elf64_Shdr *section = symbol_section(t, symbol);
	struct elf_symbol reported = {
		.address = symbol->st_value,
		.size = symbol->st_size,
		.type = ELF64_ST_TYPE(symbol->st_info),
		.binding = ELF64_ST_BIND(symbol->st_info),
		.dynamic = t->dynamic,
		.partial = t->partial,
	};

	if (t->objects ? !is_object(symbol) : !is_function(symbol, section))
		return 0;
	if (t->wanted && !t->wanted(t->context, &reported))
		return 0;
	read_name(t, symbol->st_name, &reported);
	if (t->err)
		return t->err;
	if (!reported.name || (reported.type == STT_NOTYPE && is_label(reported.name)))
		return 0;
	if (section &&
	    __builtin_add_overflow(section->sh_addr, section->sh_size, &reported.section_end))
		reported.section_end = 0;
	return t->visit(t->context, &reported);
}

/* 0 (check t->damaged), the visitor's result, or negative errno. */
static int report_table(struct table *t)
{
	size_t size = elf_file__record_size(t->file, ELF_T_SYM);
	_cleanup_free_ Elf64_Sym *symbols = NULL;

	t->file->left |= t->count > MAX_SYMBOLS;
	t->count = min_u64(t->count, MAX_SYMBOLS);
	if (t->exported && t->count > MAX_EXPORTED)
		return -EFBIG;
	symbols = malloc(SYMBOLS_AT_ONCE * sizeof(*symbols));
	if (!symbols)
		return -ENOMEM;
	for (uint64_t done = 0; done < t->count;) {
		uint64_t left = t->count - done;
		ssize_t got = elf_file__read_records(t->file, t->offset + done * size, ELF_T_SYM,
						     symbols, min_u64(left, SYMBOLS_AT_ONCE));

		if (got < 0)
			return got;
		for (ssize_t i = 0; i < got; i++) {
			int result;

			if (t->strings->data && i + AHEAD < got)
				__builtin_prefetch(t->strings->data + symbols[i + AHEAD].st_name);
			result = report_symbol(t, &symbols[i]);
			if (result)
				return result;
		}
		t->damaged |= !got;
		t->file->left |= !t->name_budget;
		if (!got || !t->name_budget)
			return 0;
		done += got;
	}
	return 0;
}

/* The first of a type: a file has at most one .symtab and one .dynsym. */
static const Elf64_Shdr *find_section(const struct elf_file *file, uint32_t type)
{
	for (size_t i = 0; i < file->sections.count; i++) {
		if (file->sections.data[i].sh_type == type)
			return &file->sections.data[i];
	}
	return NULL;
}

static int report_section(struct table *t, const Elf64_Shdr *section)
{
	size_t size = elf_file__record_size(t->file, ELF_T_SYM);
	const Elf64_Shdr *strings = section->sh_link < t->file->sections.count
					    ? &t->file->sections.data[section->sh_link]
					    : NULL;
	int err;

	if (section->sh_entsize != size || !strings || strings->sh_type != SHT_STRTAB ||
	    (section->sh_flags | strings->sh_flags) & SHF_COMPRESSED) {
		t->damaged = true;
		return 0;
	}
	err = load_strings(t, strings->sh_offset, strings->sh_size);
	if (err)
		return err;
	t->offset = section->sh_offset;
	t->count = section->sh_size / size;
	return report_table(t);
}

/* ---- without section headers ----------------------------------------------------------------- */

/* NULL: not needed. */
static uint64_t *dynamic_value(struct elf_dynamic *d, int64_t tag)
{
	switch (tag) {
	case DT_SYMTAB:
		return &d->symbols;
	case DT_STRTAB:
		return &d->strings;
	case DT_STRSZ:
		return &d->strings_size;
	case DT_HASH:
		return &d->hash;
	case DT_GNU_HASH:
		return &d->gnu_hash;
	case DT_RELA:
		return &d->relocations;
	case DT_RELASZ:
		return &d->relocations_size;
	default:
		return NULL;
	}
}

int elf_file__dynamic(const struct elf_file *file, struct elf_dynamic *dynamic)
{
	size_t size = elf_file__record_size(file, ELF_T_DYN), count;
	_cleanup_free_ Elf64_Dyn *entries = NULL;
	const Elf64_Phdr *segment = NULL;
	ssize_t got;

	for (size_t i = 0; i < file->segments.count && !segment; i++) {
		if (file->segments.data[i].p_type == PT_DYNAMIC)
			segment = &file->segments.data[i];
	}
	if (!segment)
		return -ENODATA;
	count = min_u64(segment->p_filesz / size, MAX_DYNAMIC);
	entries = calloc(count + 1, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	got = elf_file__read_records(file, segment->p_offset, ELF_T_DYN, entries, count);
	for (ssize_t i = 0; i < got && entries[i].d_tag != DT_NULL; i++) {
		uint64_t *value = dynamic_value(dynamic, entries[i].d_tag);

		if (value)
			*value = entries[i].d_un.d_val;
	}
	return got < 0 ? (int)got : 0;
}

/* DT_HASH begins with the numbers of buckets and chain words; each symbol has one chain word. */
static int count_by_hash(const struct elf_file *file, uint64_t address, uint64_t *count)
{
	uint32_t words[2];
	uint64_t offset;

	if (elf_file__offset_of_address(file, address, &offset) ||
	    elf_file__read_records(file, offset, ELF_T_WORD, words, 2) != 2)
		return -EBADMSG;
	*count = words[1];
	return 0;
}

/* The first symbol of the last chain: the largest number in all buckets. */
static int last_bucket(const struct elf_file *file, uint64_t offset, uint32_t bucket_count,
		       uint32_t *last)
{
	uint32_t words[WORDS_AT_ONCE], largest = 0;

	for (uint64_t done = 0; done < bucket_count;) {
		uint64_t left = bucket_count - done;
		ssize_t got = elf_file__read_records(file, offset + done * sizeof(*words),
						     ELF_T_WORD, words,
						     min_u64(left, WORDS_AT_ONCE));

		if (got <= 0)
			return -EBADMSG;
		for (ssize_t i = 0; i < got; i++)
			largest = words[i] > largest ? words[i] : largest;
		done += got;
	}
	*last = largest;
	return 0;
}

/* Words of the chain at `offset`: its last one is odd. */
static int chain_length(const struct elf_file *file, uint64_t offset, uint64_t *length)
{
	uint32_t words[WORDS_AT_ONCE];

	for (uint64_t done = 0; done < MAX_SYMBOLS;) {
		ssize_t got = elf_file__read_records(file, offset + done * sizeof(*words),
						     ELF_T_WORD, words, WORDS_AT_ONCE);

		if (got <= 0)
			return -EBADMSG;
		for (ssize_t i = 0; i < got; i++) {
			if (words[i] & 1) {
				*length = done + i + 1;
				return 0;
			}
		}
		done += got;
	}
	return -EBADMSG;
}

/*
 * DT_GNU_HASH: header (buckets, first hashed symbol, words of the filter, shift), filter, buckets,
 * and a chain word for each symbol from the first hashed one on.
 */
int elf_file__gnu_hash(const struct elf_file *file, uint64_t address, struct elf_gnu_hash *hash)
{
	uint32_t header[4];
	uint64_t offset;

	if (elf_file__offset_of_address(file, address, &offset) ||
	    elf_file__read_records(file, offset, ELF_T_WORD, header, 4) != 4)
		return -EBADMSG;
	hash->bucket_count = header[0];
	hash->first = header[1];
	hash->buckets = offset + sizeof(header) + (uint64_t)header[2] * (file->is_64 ? 8 : 4);
	hash->chains = hash->buckets + (uint64_t)header[0] * sizeof(uint32_t);
	return 0;
}

static int count_by_gnu_hash(const struct elf_file *file, uint64_t address, uint64_t *count)
{
	struct elf_gnu_hash hash;
	uint64_t length = 0;
	uint32_t last = 0;
	int err = elf_file__gnu_hash(file, address, &hash)
			  ?: last_bucket(file, hash.buckets, hash.bucket_count, &last);

	if (err)
		return err;
	if (last < hash.first) { /* nothing is hashed */
		*count = hash.first;
		return 0;
	}
	err = chain_length(file, hash.chains + (uint64_t)(last - hash.first) * sizeof(uint32_t),
			   &length);
	*count = last + length;
	return err;
}

static int count_symbols(const struct elf_file *file, const struct elf_dynamic *d, uint64_t *count)
{
	int err = d->hash ? count_by_hash(file, d->hash, count) : -ENODATA;

	return err && d->gnu_hash ? count_by_gnu_hash(file, d->gnu_hash, count) : err;
}

/* As report_table(). Sets *missing if there is no dynamic symbol table. */
static int report_dynamic(struct table *t, bool *missing)
{
	struct elf_dynamic d = {};
	uint64_t strings;
	int err = elf_file__dynamic(t->file, &d)
			  ?: (d.symbols && d.strings ? count_symbols(t->file, &d, &t->count)
						     : -ENODATA);

	*missing = err == -ENODATA;
	if (err == -ENODATA)
		return 0;
	if (!err && (elf_file__offset_of_address(t->file, d.symbols, &t->offset) ||
		     elf_file__offset_of_address(t->file, d.strings, &strings)))
		err = -EBADMSG;
	if (!err)
		err = load_strings(t, strings, d.strings_size);
	if (err)
		return err;
	return report_table(t);
}

static int report_all(struct elf_file *file, bool objects, bool exported, elf_symbol_fn visit,
		      elf_symbol_wanted_fn wanted, void *context)
{
	struct table symtab = {.file = file,
			       .strings = &file->symbol_names,
			       .objects = objects,
			       .exported = exported,
			       .visit = visit,
			       .wanted = wanted,
			       .context = context};
	struct table dynsym = symtab;
	const Elf64_Shdr *section, *dynamic_section;
	bool missing = false;
	int err = elf_file__load_sections(file);

	if (err)
		return err;
	dynsym.strings = &file->dynamic_names;
	dynsym.dynamic = true;
	dynamic_section = find_section(file, SHT_DYNSYM);
	section = find_section(file, SHT_SYMTAB);
	dynsym.partial = !section;
	if (exported && dynamic_section)
		section = NULL;
	if (section)
		err = report_section(&symtab, section);
	if (!err && dynamic_section)
		err = report_section(&dynsym, dynamic_section);
	else if (!err && !section)
		err = report_dynamic(&dynsym, &missing);
	if (err)
		return err;
	if (missing)
		return file->sections_damaged ? -EBADMSG : -ENODATA;
	return symtab.damaged || dynsym.damaged ? -EBADMSG : 0;
}

int elf_file__each_symbol(struct elf_file *file, elf_symbol_fn visit, void *context)
{
	return report_all(file, false, false, visit, NULL, context);
}

int elf_file__each_wanted_symbol(struct elf_file *file, elf_symbol_wanted_fn wanted,
				 elf_symbol_fn visit, void *context)
{
	return report_all(file, false, false, visit, wanted, context);
}

bool elf_file__has_dynamic_name(const struct elf_file *file, const char *name)
{
	const struct elf_strings *s = &file->dynamic_names;

	return s->data && name >= s->data && name < s->data + s->size;
}

void elf_strings__fini(struct elf_strings *s)
{
	for (size_t i = 0; i < s->names.count; i++)
		free(s->names.data[i].text);
	elf_name_map__fini(&s->names);
	free(s->data);
}

void elf_file__forget_dynamic_names(struct elf_file *file)
{
	free(file->dynamic_names.data);
	file->dynamic_names.data = NULL;
}

int elf_file__each_object(struct elf_file *file, bool exported, elf_symbol_fn visit, void *context)
{
	return report_all(file, true, exported, visit, NULL, context);
}
