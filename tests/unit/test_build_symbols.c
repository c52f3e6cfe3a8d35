/* SPDX-License-Identifier: BSD-2-Clause */
/* Exported variables of a file: not looked for where that would take long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "elf/elf_file.h"
#include "unwind/build_symbols.h"

/* A file of 2^24 exported symbols, or of a gigabyte of names, most of it a hole: that is not looked through. */
static void huge_test(void **state)
{
	struct build_names wanted = {};

	(void)state;
	strcpy(wanted.name[0], "gHotSpotVMStructs");
	for (int names = 0; names < 2; names++) {
		const uint64_t symbols = names ? 24 : 24ull << 24, strings = names ? 1 << 30 : 24;
		Elf64_Ehdr header = {
			.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			.e_type = ET_DYN,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_ehsize = sizeof(header),
			.e_shoff = sizeof(header),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = 3};
		const Elf64_Shdr sections[] = {
			{},
			{.sh_type = SHT_DYNSYM,
			 .sh_offset = 4096,
			 .sh_size = symbols,
			 .sh_entsize = sizeof(Elf64_Sym),
			 .sh_link = 2},
			{.sh_type = SHT_STRTAB, .sh_offset = 4096, .sh_size = strings},
		};
		int fd = memfd_create("libjvm.so", MFD_CLOEXEC);
		struct build_symbols found = {};
		enum table_refusal refusal;
		struct elf_file *file = NULL;

		assert_int_equal(write_full(fd, &header, sizeof(header)), 0);
		assert_int_equal(write_full(fd, sections, sizeof(sections)), 0);
		assert_int_equal(ftruncate(fd, 4096 + (names ? 1 << 30 : 24ll << 24)), 0);
		assert_int_equal(elf_file__open(fd, &file), 0);
		assert_int_equal(build_symbols__find(file, &wanted, &found, &refusal), -EFBIG);
		elf_file__free(file);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(huge_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
