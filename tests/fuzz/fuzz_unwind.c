/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind tables: whatever .eh_frame says, the table is no larger than it can be, and every lookup ends in it. */
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "models/unwind_find.h"
#include "unwind/unwind_table.h"
#include "unwind/unwind_table_check.h"

#define TABLE_LIMIT   (16u << 20)
#define BUCKETS_TRIED 4096

static const char *const SECTIONS[] = {".eh_frame", ".debug_frame", ".plt", ".gopclntab", ".text"};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	return fuzz_mutate_section(SECTIONS, COUNT(SECTIONS), data, size, max_size, seed);
}

static void look_up(const struct unwind_table_image *image, uint64_t address)
{
	const struct unwind_rule *rule = unwind_table__find(image->bytes, &image->table, address);

	MUST(rule->cfa <= UNWIND_CFA_UNKNOWN && rule->fp <= UNWIND_FP_UNKNOWN);
	MUST(rule->ra <= UNWIND_RA_INFERRED && rule->cfa_register < 16);
	if (rule->ra == UNWIND_RA_INFERRED && rule->cfa == UNWIND_CFA_SP)
		MUST(rule->ra_offset == -8 && rule->cfa_offset >= 8);
	if (rule->ra == UNWIND_RA_REGISTER)
		MUST(rule->ra_offset >= 0 && rule->ra_offset < 16);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = fuzz_file(data, size);
	struct unwind_table_image image;
	struct elf_file *file;

	if (!elf_file__open(fd, &file)) {
		if (!unwind_table__build(file, TABLE_LIMIT, &image)) {
			const struct unwind_table *t = &image.table;

			MUST(image.size <= TABLE_LIMIT && image.rows <= TABLE_LIMIT);
			MUST(!unwind_table_image__check(&image));
			fuzz_read(image.bytes, image.size);
			for (uint64_t i = 0; i < t->buckets && i < BUCKETS_TRIED; i++)
				look_up(&image, t->base + (i << UNWIND_BUCKET_BITS) + (i & 255));
			look_up(&image, t->base - 1);
			look_up(&image, t->base + ((uint64_t)t->buckets << UNWIND_BUCKET_BITS));
			unwind_table_image__fini(&image);
		}
		elf_file__free(file);
	}
	close(fd);
	return 0;
}
