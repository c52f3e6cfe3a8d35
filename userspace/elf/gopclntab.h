/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Go's function table (.gopclntab), from Go 1.18 on. Every Go program has it, stripped or not:
 * functions, names, files, lines, inlined calls, and the depth of the stack at each instruction.
 *
 * The file is untrusted: every count and offset in it is checked.
 */
#ifndef ELF_GOPCLNTAB_H
#define ELF_GOPCLNTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbol_result.h>

struct gopclntab;

struct go_function {
	uint64_t start, end; /* ELF virtual addresses; ascending by number, without overlap */
	/* As in the file ("runtime.mallocgc", "main.(*T).Do"), "" if damaged; valid until the table
	 * is freed. Before Go 1.21 without type arguments: "main.Map[...]". */
	const char *name;
	bool writes_sp; /* it sets the stack pointer itself, so depths do not always hold */
	bool is_top;	/* no caller: the stack ends here */
	uint8_t id;	/* abi.FuncID; numbers differ between versions of Go */
};

size_t gopclntab__count(const struct gopclntab *t);
/* 0, or -EBADMSG: its record is damaged. */
int gopclntab__function(const struct gopclntab *t, size_t number, struct go_function *function);
/* The number of the function at this address. 0 or -ENOENT. */
int gopclntab__find(const struct gopclntab *t, uint64_t address, size_t *number);

/*
 * Visits the ranges [start, end) of a function's instructions, ascending, with the bytes between
 * stack pointer and return address (0 at the entry). Padding at the function's end has no depth,
 * nor have some functions. Nonzero from `visit` stops and is returned. 0; -EBADMSG: damaged from
 * here on.
 */
typedef int (*go_depth_fn)(void *context, uint64_t start, uint64_t end, int32_t depth);
int gopclntab__each_depth(const struct gopclntab *t, size_t number, go_depth_fn visit,
			  void *context);

#define GO_MAX_FRAMES 256

/*
 * The frames at an address of function `number`, innermost first, the function itself last. How
 * many (1 to GO_MAX_FRAMES), or -EBADMSG. Strings are valid until the table is freed; a damaged
 * name is "". Go before 1.20 has no lines of definitions. If inlined calls cannot be read, the
 * function alone is returned, without its line. *until is lowered to the address at which the
 * frames may change. Ascending addresses are fastest.
 */
int gopclntab__frames(struct gopclntab *t, size_t number, uint64_t address,
		      struct symbol_frame *frames, uint64_t *until);
/* Has a limit left out inlined calls or lines? */
bool gopclntab__left(const struct gopclntab *t);
/* Are inlined calls read? Not if moduledata is missing or that of an unsupported version of Go. */
bool gopclntab__has_trees(const struct gopclntab *t);
/* The file that defines the function, or NULL. */
const char *gopclntab__file(struct gopclntab *t, size_t number);

#endif
