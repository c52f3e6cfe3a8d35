/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machine code as text, for views. Nothing else depends on it: unwinding has a decoder of its own,
 * elf/x86_code, whose lengths of instructions are used here as well.
 */
#ifndef ELF_DISASSEMBLY_H
#define ELF_DISASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISASSEMBLY_SIZE_MAX (16u << 20) /* bytes of code */
#define DISASSEMBLY_NO_JUMP  UINT64_MAX

enum disassembly_syntax {
	SYNTAX_INTEL,
	SYNTAX_ATT, /* x86 only: others have one syntax */
	SYNTAX_COUNT
};

struct instruction {
	uint32_t offset;
	uint32_t size;
	size_t text;	 /* into disassembly.texts; ".byte 0x06" if it is no known code */
	uint64_t target; /* address that it jumps to or calls, or DISASSEMBLY_NO_JUMP */
};

struct disassembly {
	struct instruction *data;
	size_t count;
	char *texts; /* one behind the other, each with its NUL */
};

struct disassembly_request {
	const uint8_t *code;
	size_t size;
	uint64_t address; /* of the first byte */
	uint16_t machine; /* as ELF has it: EM_X86_64, EM_AARCH64 */
	enum disassembly_syntax syntax;
};

/*
 * 0; -ENOPKG: the library is not installed; -EOPNOTSUPP: another machine; -EFBIG; -ENOMEM. After 0
 * the instructions cover all bytes, in order.
 */
int disassemble(const struct disassembly_request *request, struct disassembly *disassembly);
void disassembly__fini(struct disassembly *disassembly);

static inline const char *disassembly__text(const struct disassembly *d, size_t i)
{
	return d->texts + d->data[i].text;
}

/* The size of an instruction, 0 if it is not known. */
size_t instruction_size(uint16_t machine, const uint8_t *code, size_t left);

/* A sentence for an error of disassemble(). */
const char *disassembly_strerror(int error);

/* "intel" or "att"; NULL for other numbers. */
const char *disassembly_syntax_name(enum disassembly_syntax syntax);

#endif
