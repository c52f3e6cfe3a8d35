/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capstone is loaded when it is first needed: four of five commands never disassemble, and its
 * tables have megabytes. Only the part of its interface that is equal in versions 4 and 5 is used,
 * so its header is not needed to build. An instruction's text lies behind its bytes, of which these
 * versions keep 16 and 24.
 *
 * How long an instruction of x86 is, elf/x86_code says: capstone 4 does not know all of them, and
 * after one that it does not know it would go on in the middle of it.
 */
#include "elf/disassembly.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "elf/x86_code.h"

#define LIBRARY "libcapstone"

/* capstone.h */
#define CS_ARCH_ARM64	    1
#define CS_ARCH_X86	    3
#define CS_MODE_64	    (1 << 3)
#define CS_OPT_SYNTAX	    1
#define CS_OPT_SYNTAX_INTEL 1
#define CS_OPT_SYNTAX_ATT   2
#define MNEMONIC_SIZE	    32
#define OPERANDS_SIZE	    160
#define ARM64_SIZE	    4
#define TEXT_SIZE	    (8 + MNEMONIC_SIZE + OPERANDS_SIZE + 2)
#define EVEX		    0x62 /* AVX-512 */
#define EVEX_OPCODE	    4	 /* its place */
#define REPEAT		    0xf3
#define NO_TRACK	    0x3e

/* The start of cs_insn */
struct cs_insn {
	unsigned int id;
	uint64_t address;
	uint16_t size;
	uint8_t bytes[];
};

#define FUNCTIONS(X)                                                                               \
	X(unsigned int, version, (int *major, int *minor))                                         \
	X(int, open, (int arch, int mode, size_t *handle))                                         \
	X(int, close, (size_t * handle))                                                           \
	X(int, option, (size_t handle, int type, size_t value))                                    \
	X(struct cs_insn *, malloc, (size_t handle))                                               \
	X(void, free, (struct cs_insn * insn, size_t count))                                       \
	X(bool, disasm_iter,                                                                       \
	  (size_t handle, const uint8_t **code, size_t *size, uint64_t *address,                   \
	   struct cs_insn *insn))

struct library {
	void *handle;
#define X(type, name, arguments) type(*name) arguments;
	FUNCTIONS(X)
#undef X
};

struct disassembler {
	const struct disassembly_request *request;
	struct library cs;
	bool is_open;
	size_t handle;
	struct cs_insn *insn;
	size_t bytes_kept; /* of cs_insn */
	VEC(struct instruction) instructions;
	VEC(char) texts;
};

/* ---- the library ----------------------------------------------------------------------------- */

#ifdef SYSPROF_STATIC /* it is part of the program */
#define X(type, name, arguments) extern type cs_##name arguments;
FUNCTIONS(X)
#undef X

static int library__init(struct library *l)
{
#define X(type, name, arguments) l->name = cs_##name;
	FUNCTIONS(X)
#undef X
	return 0;
}
#else
static int library__init(struct library *l)
{
	/* NODELETE: it is used again by the next view */
	l->handle = dlopen(LIBRARY ".so.5", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!l->handle)
		l->handle = dlopen(LIBRARY ".so.4", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!l->handle)
		return -ENOPKG;
#define X(type, name, arguments)                                                                   \
	*(void **)&l->name = dlsym(l->handle, "cs_" #name);                                        \
	if (!l->name)                                                                              \
		return -ENOPKG;
	FUNCTIONS(X)
#undef X
	return 0;
}
#endif

static int disassembler__init(struct disassembler *d)
{
	const bool is_x86 = d->request->machine == EM_X86_64;
	const size_t syntax = d->request->syntax == SYNTAX_ATT ? CS_OPT_SYNTAX_ATT
							       : CS_OPT_SYNTAX_INTEL;
	int major = 0, minor, err;

	if (!is_x86 && d->request->machine != EM_AARCH64)
		return -EOPNOTSUPP;
	if (d->request->size > DISASSEMBLY_SIZE_MAX)
		return -EFBIG;
	err = library__init(&d->cs);
	if (err)
		return err;
	d->cs.version(&major, &minor);
	if (major != 4 && major != 5)
		return -ENOPKG;
	d->bytes_kept = major == 4 ? 16 : 24;
	if (d->cs.open(is_x86 ? CS_ARCH_X86 : CS_ARCH_ARM64, is_x86 ? CS_MODE_64 : 0, &d->handle))
		return -EOPNOTSUPP;
	d->is_open = true;
	if (is_x86)
		d->cs.option(d->handle, CS_OPT_SYNTAX, syntax);
	d->insn = d->cs.malloc(d->handle);
	return d->insn ? 0 : -ENOMEM;
}

static void disassembler__fini(struct disassembler *d)
{
	if (d->insn)
		d->cs.free(d->insn, 1);
	if (d->is_open)
		d->cs.close(&d->handle);
	if (d->cs.handle)
		dlclose(d->cs.handle);
	vec_free(&d->instructions);
	vec_free(&d->texts);
}

/* ---- one instruction ------------------------------------------------------------------------- */

size_t instruction_size(uint16_t machine, const uint8_t *code, size_t left)
{
	struct x86_instruction instruction;

	if (machine == EM_AARCH64)
		return left < ARM64_SIZE ? 0 : ARM64_SIZE;
	if (machine != EM_X86_64 || !x86_decode(code, left, &instruction))
		return 0;
	return instruction.size;
}

static bool has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* Drops blanks before commas and braces, which capstone prints in operands of AVX-512. */
static void close_gaps(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++)
		if (*from != ' ' || (from[1] != ',' && from[1] != '{'))
			*to++ = *from;
	*to = '\0';
}

static bool is_gather(uint8_t opcode)
{
	return (opcode >= 0x90 && opcode <= 0x93) || (opcode >= 0xa0 && opcode <= 0xa3) ||
	       opcode == 0xc6 || opcode == 0xc7;
}

/*
 * capstone 4 takes incssp for lfence.
 *
 * Of AVX-512 instructions with registers from 16 on capstone 4 takes an index for a vector register,
 * or in a gather or scatter for none.
 */
static bool is_misread(const uint8_t *code, size_t size, const char *text)
{
	const char *memory = strpbrk(text, "[(");
	const char *end = memory ? strpbrk(memory, "])") : NULL;
	const char *vector = memory ? strstr(memory, "mm") : NULL;
	bool takes_vector;

	if (code[0] == REPEAT && has_prefix(text, "lfence"))
		return true;
	if (size <= EVEX_OPCODE || code[0] != EVEX || !end)
		return false;
	takes_vector = (code[1] & 7) == 2 && is_gather(code[EVEX_OPCODE]);
	return (vector && vector < end) != takes_vector;
}

/* "mov eax, dword ptr [rbp - 4]"; false: capstone does not know it, or by another length. */
static bool print_code(struct disassembler *d, uint32_t offset, size_t *size, char text[TEXT_SIZE])
{
	const uint8_t *const code = d->request->code + offset;
	const bool is_x86 = d->request->machine == EM_X86_64;
	bool no_track;
	const uint8_t *at = code;
	size_t left = *size ? *size : d->request->size - offset;
	uint64_t address = d->request->address + offset;
	const char *mnemonic = (const char *)d->insn->bytes + d->bytes_kept;
	const char *operands = mnemonic + MNEMONIC_SIZE;

	if (!d->cs.disasm_iter(d->handle, &at, &left, &address, d->insn) || !d->insn->size ||
	    (*size && d->insn->size != *size))
		return false;
	*size = d->insn->size;
	no_track = is_x86 && code[0] == NO_TRACK &&
		   (has_prefix(mnemonic, "jmp") || has_prefix(mnemonic, "call"));
	snprintf(text, TEXT_SIZE, "%s%.*s%s%.*s", no_track ? "notrack " : "", MNEMONIC_SIZE,
		 mnemonic, *operands ? " " : "", OPERANDS_SIZE, operands);
	close_gaps(text);
	return !is_x86 || !is_misread(code, *size, text);
}

/* ".byte 0x62, 0xf1" */
static void print_bytes(const struct disassembler *d, uint32_t offset, size_t size,
			char text[TEXT_SIZE])
{
	size_t length = snprintf(text, TEXT_SIZE, ".byte");

	for (size_t i = 0; i < size; i++)
		length += snprintf(text + length, TEXT_SIZE - length, "%s 0x%02x", i ? "," : "",
				   d->request->code[offset + i]);
}

/* Does it jump or call, to an address that is its last operand? */
static bool is_direct(const struct disassembler *d, const char *mnemonic)
{
	static const char *const x86[] = {"j", "call", "loop", "xbegin"};
	static const char *const arm64[] = {"b ", "b.", "bl ", "cbz ", "cbnz ", "tbz ", "tbnz "};
	const bool is_x86 = d->request->machine == EM_X86_64;
	const char *const *names = is_x86 ? x86 : arm64;
	const size_t count = is_x86 ? sizeof(x86) / sizeof(*x86) : sizeof(arm64) / sizeof(*arm64);

	if (is_x86 && (has_prefix(mnemonic, "bnd ") || has_prefix(mnemonic, "notrack ")))
		mnemonic = strchr(mnemonic, ' ') + 1;
	for (size_t i = 0; i < count; i++)
		if (has_prefix(mnemonic, names[i]))
			return true;
	return false;
}

static uint64_t target_of(const struct disassembler *d, const char *text)
{
	const char *operand = strrchr(text, ' ');
	unsigned long long target;
	char *end;

	if (!operand || !is_direct(d, text))
		return DISASSEMBLY_NO_JUMP;
	operand += 1 + (operand[1] == '#');
	if (!has_prefix(operand, "0x"))
		return DISASSEMBLY_NO_JUMP;
	target = strtoull(operand, &end, 16);
	return *end ? DISASSEMBLY_NO_JUMP : target;
}

/* Appends the instruction at the offset, and moves it behind. */
static int add_instruction(struct disassembler *d, uint32_t *offset)
{
	const uint8_t *code = d->request->code + *offset;
	const size_t left = d->request->size - *offset;
	size_t size = instruction_size(d->request->machine, code, left);
	struct instruction added = {.offset = *offset, .text = d->texts.count};
	char text[TEXT_SIZE];

	added.target = DISASSEMBLY_NO_JUMP;
	if (print_code(d, *offset, &size, text)) {
		added.target = target_of(d, text);
	} else {
		size = size ? size : 1;
		print_bytes(d, *offset, size, text);
	}
	added.size = size;
	*offset += size;
	return vec_append(&d->texts, text, strlen(text) + 1) ?: vec_push(&d->instructions, added);
}

int disassemble(const struct disassembly_request *request, struct disassembly *disassembly)
{
	_cleanup_(disassembler__fini) struct disassembler d = {.request = request};
	int err = disassembler__init(&d);

	for (uint32_t offset = 0; !err && offset < request->size;)
		err = add_instruction(&d, &offset);
	if (err)
		return err;
	*disassembly = (struct disassembly){.count = d.instructions.count,
					    .data = steal_ptr(d.instructions.data),
					    .texts = steal_ptr(d.texts.data)};
	return 0;
}

void disassembly__fini(struct disassembly *disassembly)
{
	free(disassembly->data);
	free(disassembly->texts);
	*disassembly = (struct disassembly){};
}

const char *disassembly_strerror(int error)
{
	switch (-error) {
	case ENOPKG:
		return LIBRARY " is not installed";
	case EOPNOTSUPP:
		return "instructions of this machine are not known";
	case EFBIG:
		return "the function is too large";
	default:
		return strerror(-error);
	}
}

const char *disassembly_syntax_name(enum disassembly_syntax syntax)
{
	static const char *const names[SYNTAX_COUNT] = {"intel", "att"};

	return (unsigned int)syntax < SYNTAX_COUNT ? names[syntax] : NULL;
}
