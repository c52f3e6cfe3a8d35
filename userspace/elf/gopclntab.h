/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Go's function table (.gopclntab), which is in every Go program, stripped or not: functions, their names, files and
 * lines, what was inlined, and how deep the stack is at each instruction. Go 1.18 on.
 *
 * The file is untrusted: every count and offset of it is checked.
 */
#ifndef ELF_GOPCLNTAB_H
#define ELF_GOPCLNTAB_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbol_result.h>

#include "elf/elf_file.h"

struct gopclntab;

/*
 * `file` must outlive the table. 0; -ENOENT: not a Go program; -ENOTSUP: another version or machine; -EBADMSG;
 * -EFBIG: the search read too much; -E2BIG: the table is too large; -ENOMEM; -EIO.
 */
int gopclntab__open(struct elf_file *file, struct gopclntab **table);
/* The same for one of at most `size_max` bytes. */
int gopclntab__open_within(struct elf_file *file, uint64_t size_max, struct gopclntab **table);
/* Bytes that it takes in memory. */
size_t gopclntab__size(const struct gopclntab *t);
void gopclntab__free(struct gopclntab *t);

struct go_function {
	uint64_t start, end; /* ELF virtual addresses; ascending by number, without overlap */
	/* As in the file ("runtime.mallocgc", "main.(*T).Do"), "" if that is damaged; valid until the
	 * table is freed. Before Go 1.21 type arguments are left out: "main.Map[...]". */
	const char *name;
	bool writes_sp; /* it sets the stack pointer itself: depths do not hold throughout */
	bool is_top;	/* nothing calls it: the stack ends here */
	uint8_t id;	/* abi.FuncID; numbers differ between versions of Go */
};

size_t gopclntab__count(const struct gopclntab *t);
/* 0, or -EBADMSG: its record is damaged. */
int gopclntab__function(const struct gopclntab *t, size_t number, struct go_function *function);
/* The function that has this address: 0 and its number, or -ENOENT. */
int gopclntab__find(const struct gopclntab *t, uint64_t address, size_t *number);

/*
 * Bytes between the stack pointer and the return address (0 at the entry), for each stretch of
 * instructions of a function, ascending: [start, end). Padding at the function's end is in none, and
 * some functions have no depths at all. `visit` nonzero stops and is returned. 0; -EBADMSG: damaged
 * from here on.
 */
typedef int (*go_depth_fn)(void *context, uint64_t start, uint64_t end, int32_t depth);
int gopclntab__each_depth(const struct gopclntab *t, size_t number, go_depth_fn visit,
			  void *context);

#define GO_MAX_FRAMES 256

/*
 * The frames at an address of function `number`, innermost first, the function itself last: how many (1 to
 * GO_MAX_FRAMES), or -EBADMSG. Strings are valid until the table is freed, a damaged name is "", and before Go 1.20 there are
 * no lines of definitions. If the inlined calls cannot be read: the function without its line. Ascending addresses
 * are quickest; *until becomes less where the frames may change before that.
 */
int gopclntab__frames(struct gopclntab *t, size_t number, uint64_t address,
		      struct symbol_frame *frames, uint64_t *until);
/* The file that the function is defined in, or NULL. */
const char *gopclntab__file(struct gopclntab *t, size_t number);

#endif
