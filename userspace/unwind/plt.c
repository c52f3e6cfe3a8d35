/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An entry is 16 bytes: a jump through the global offset table, and where symbols are bound lazily
 * the number of the symbol is pushed and the first entry jumped to, which pushes one word more
 * (System V ABI, AMD64 supplement, "Procedure Linkage Table"; with CET the jumps are in .plt.sec).
 */
#include "unwind/plt.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define PLT_MAX (64u << 20)

/* Behind which byte of an entry the symbol's number has been pushed; 0: it never is. */
static unsigned int pushed_after(const unsigned char *entry)
{
	static const unsigned char ENDBR64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	static const unsigned char JUMP[] = {0xff, 0x25};

	if (!memcmp(entry, JUMP, sizeof(JUMP)) && entry[6] == 0x68)
		return 11;
	if (!memcmp(entry, ENDBR64, sizeof(ENDBR64)) && entry[4] == 0x68)
		return 9;
	return 0;
}

int plt_find(struct elf_file *file, struct plt tables[PLT_COUNT_MAX])
{
	static const char *const NAMES[PLT_COUNT_MAX] = {".plt", ".plt.sec", ".plt.got"};
	int count = 0;

	for (size_t i = 0; i < PLT_COUNT_MAX; i++) {
		_cleanup_free_ void *code = NULL;
		struct elf_section section;
		size_t size;
		int err;

		if (elf_file__find_section(file, NAMES[i], &section) ||
		    !(section.flags & SHF_EXECINSTR) || section.address % PLT_ENTRY_SIZE)
			continue;
		err = elf_file__section_data(file, NAMES[i], PLT_MAX, &code, &size);
		if (err == -ENOMEM)
			return err;
		if (err || !size)
			continue;
		tables[count++] = (struct plt){
			.start = section.address,
			.end = section.address + size,
			.pushed_after =
				size < 2 * PLT_ENTRY_SIZE
					? 0
					: pushed_after((unsigned char *)code + PLT_ENTRY_SIZE),
		};
	}
	return count;
}
