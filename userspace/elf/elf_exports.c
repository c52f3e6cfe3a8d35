/* SPDX-License-Identifier: BSD-2-Clause */

#include "elf/elf_exports.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "elf/elf_file.h"
#include "elf/elf_file_private.h"
#include "elf/elf_symbols.h"

#define MAX_CHAIN 4096u /* symbols of one bucket; linkers make some two */
#define MAX_NAME  256u

int elf_exports__init(struct elf_exports *x, struct elf_file *file)
{
	struct elf_dynamic d = {};
	int err = elf_file__dynamic(file, &d);

	*x = (struct elf_exports){.file = file, .strings_size = d.strings_size};
	if (err || !d.gnu_hash || !d.symbols || !d.strings)
		return err ? err : -ENODATA;
	if (elf_file__offset_of_address(file, d.symbols, &x->symbols) ||
	    elf_file__offset_of_address(file, d.strings, &x->strings))
		return -EBADMSG;
	err = elf_file__gnu_hash(file, d.gnu_hash, &x->hash);
	return err || x->hash.bucket_count ? err : -ENODATA;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* The string at this offset is the name, with or without a version ("@@GLIBC_2.2.5"). */
static bool has_name(const struct elf_exports *x, uint32_t offset, const char *name)
{
	char read[MAX_NAME + 1] = "";
	size_t length = strlen(name);

	if (length >= MAX_NAME || offset >= x->strings_size)
		return false;
	if (elf_file__read(x->file, read, min_u64(length + 1, x->strings_size - offset),
			   x->strings + offset) < (ssize_t)length)
		return false;
	return !memcmp(read, name, length) && (read[length] == '\0' || read[length] == '@');
}

/* Number `i` of a table. */
static bool read_word(const struct elf_exports *x, uint64_t table, uint64_t i, uint32_t *word)
{
	return elf_file__read_records(x->file, table + i * sizeof(*word), ELF_T_WORD, word, 1) == 1;
}

int elf_exports__find(const struct elf_exports *x, const char *name, uint64_t *address)
{
	const size_t size = elf_file__record_size(x->file, ELF_T_SYM);
	const struct elf_gnu_hash *table = &x->hash;
	const uint32_t hash = gnu_hash(name);
	uint32_t index, word;

	if (!read_word(x, table->buckets, hash % table->bucket_count, &index))
		return -EBADMSG;
	if (index < table->first)
		return -ENOENT;
	for (unsigned int i = 0; i < MAX_CHAIN; i++, index++) {
		Elf64_Sym symbol;

		if (!read_word(x, table->chains, index - table->first, &word))
			return -EBADMSG;
		if ((word | 1) == (hash | 1) &&
		    elf_file__read_records(x->file, x->symbols + index * size, ELF_T_SYM, &symbol,
					   1) == 1 &&
		    symbol.st_shndx != SHN_UNDEF && has_name(x, symbol.st_name, name)) {
			*address = symbol.st_value;
			return 0;
		}
		if (word & 1)
			return -ENOENT;
	}
	x->file->left = true;
	return -EFBIG;
}

int elf_exports__u32(const struct elf_exports *x, const char *name, uint32_t *value)
{
	uint32_t word = 0;
	uint64_t address, offset;
	int err = elf_exports__find(x, name, &address);

	if (err)
		return err;
	if (!elf_file__offset_of_address(x->file, address, &offset) &&
	    !read_word(x, offset, 0, &word))
		return -EIO;
	*value = word;
	return 0;
}
