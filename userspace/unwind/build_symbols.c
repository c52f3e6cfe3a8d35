/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/build_symbols.h"

#include <string.h>

#include "elf/elf_file.h"

#define STEPS                                                                                      \
	10 /* of build_budget__step(): a tenth of a microsecond, and that again for each name */

struct search {
	const struct build_names *names;
	struct build_symbols *symbols;
	struct build_budget budget;
};

/* Positive once all are found: a large table need not be read to its end. */
static int note_symbol(void *context, const struct elf_symbol *symbol)
{
	struct search *s = context;
	unsigned int missing = 0;

	for (unsigned int i = 0; i < BUILD_SYMBOLS_MAX && s->names->name[i][0]; i++) {
		if (!strncmp(symbol->name, s->names->name[i], sizeof(s->names->name[i])))
			s->symbols->address[i] = symbol->address;
		missing += !s->symbols->address[i];
	}
	return missing ? build_budget__step(&s->budget, STEPS) : 1;
}

int build_symbols__find(struct elf_file *file, const struct build_names *names,
			struct build_symbols *symbols, enum table_refusal *refusal)
{
	struct search s = {.names = names, .symbols = symbols};
	int err;

	build_budget__start(&s.budget, &BUILD_LIMITS);
	err = elf_file__each_object(file, true, note_symbol, &s);
	*refusal = s.budget.refusal;
	return err > 0 ? 0 : err;
}
