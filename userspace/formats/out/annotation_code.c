/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/annotation_code.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* A call's return address was moved into the call, so an instruction has the counts of all its bytes. */
static void sum_bytes(struct annotation_code *code, const struct annotation_counts *bytes,
		      size_t instruction)
{
	const struct instruction *i = &code->text.data[instruction];
	struct annotation_counts *sum = &code->counts[instruction];

	for (uint32_t k = i->offset; k < i->offset + i->size; k++) {
		sum->self += bytes[k].self;
		sum->total += bytes[k].total;
		sum->self_square += bytes[k].self_square;
		sum->total_square += bytes[k].total_square;
	}
}

static int add_figures(struct annotation_code *code, const struct annotation_copy *copy)
{
	_cleanup_free_ struct annotation_counts *bytes = annotation__bytes(code->a, copy);

	code->counts = calloc(code->text.count, sizeof(*code->counts));
	code->rows = calloc(code->text.count, sizeof(*code->rows));
	if (!bytes || !code->counts || !code->rows)
		return -ENOMEM;
	for (size_t i = 0; i < code->text.count; i++) {
		sum_bytes(code, bytes, i);
		code->rows[i] = profile__code_row(code->a->p, copy->code,
						  code->text.data[i].offset);
	}
	return 0;
}

int annotation_code__init(struct annotation_code *code, const struct annotation *a,
			  const struct annotation_copy *copy, enum disassembly_syntax syntax)
{
	struct disassembly_request request = {.syntax = syntax};
	int err;

	*code = (struct annotation_code){.a = a, .is_own = annotation_copy__is_own(a, copy)};
	if (!copy->code) {
		code->problem = annotation_no_code(a->p);
		return 0;
	}
	code->address = request.address = copy->code->address + copy->to_elf;
	request.code = copy->code->bytes;
	request.size = copy->code->size;
	request.machine = elf_machine_of(copy->code->machine);
	err = disassemble(&request, &code->text);
	if (err && err != -ENOMEM) {
		code->problem = disassembly_strerror(err);
		return 0;
	}
	return err ?: add_figures(code, copy);
}

void annotation_code__fini(struct annotation_code *code)
{
	disassembly__fini(&code->text);
	free(code->counts);
	free(code->rows);
}

bool annotation_code__is_shown(const struct annotation_code *code, size_t i)
{
	const struct profile_code_row *row = code->rows[i];

	return code->is_own || code->counts[i].total ||
	       (row && row->function.v && code->a->wanted[row->function.v]);
}
