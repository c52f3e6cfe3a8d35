/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the symbolizer; the table of the kernel's symbols. */
#ifndef SYMBOLIZE_SYMBOLIZE_H
#define SYMBOLIZE_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#include "base/quota.h"

struct symbolizer {
	struct kallsyms *kallsyms; /* the first reading */
	/* a later one of all but the image, which replaces what that has; or NULL */
	struct kallsyms *modules;
	struct kallsyms *incoming; /* the next of these, not complete; or NULL */
	unsigned int added;	   /* since the last reading */
	bool unknown;
	struct symbol_cache *cache; /* NULL: not wanted yet */
	unsigned int cache_uses;
	struct sealed_pool *pool;   /* where children are kept; NULL: they are not */
	struct file_finder *finder; /* that stays from call to call; NULL: none was needed yet */
	struct quota cpu;	    /* of the processes that read modules, in all calls */
};

/*
 * The cache that is kept between calls. Its directory is reopened now and then, because it may be
 * another one. NULL: no memory.
 */
struct symbol_cache *symbolize_cache(struct symbolizer *s);

/* Report to the sink what kallsyms has about one address. What the sink returned. */
int symbolize_kernel_address(struct symbolizer *s, size_t index, uint64_t address,
			     symbol_sink_fn sink, void *context);
enum symbol_state symbolize_kernel_state(const struct symbolizer *s);
/* Are there more symbols than are kept? */
bool symbolize_kernel_left(const struct symbolizer *s);
/* Is the address in the kernel's own image, not in a module? */
bool symbolize_in_kernel_image(struct symbolizer *s, uint64_t address);

/* ---- kallsyms.c: the kernel's own symbol table, from the text of /proc/kallsyms -------------- */

struct kallsyms;

struct kernel_function {
	const char *name; /* valid until text is added or the table is freed */
	uint64_t address;
	uint64_t size; /* to the next symbol; 0 where that is too far to mean anything */
	/* Where it is from: "[ext4]", "[bpf]" (programs, trampolines, dispatchers), "[ftrace]",
	 * "[kprobes]"; NULL: the kernel's own image. */
	const char *module;
};

struct kallsyms *kallsyms__new(void); /* NULL: no memory */
void kallsyms__free(struct kallsyms *k);

/*
 * Whole lines "ADDRESS TYPE NAME [MODULE]". Other lines are counted and skipped. 0, -ENOMEM.
 */
int kallsyms__add(struct kallsyms *k, const char *text, size_t size);

/* The function at the address: 0, or -ENOENT. */
int kallsyms__find(struct kallsyms *k, uint64_t address, struct kernel_function *function);

/* Where the kernel's text begins (_stext): what vmlinux calls by the same name lies as many bytes
 * away from it as everything else does. 0, or -ENOENT. */
int kallsyms__text_start(const struct kallsyms *k, uint64_t *address);

/* Lines were there, and every one of them had address 0: kptr_restrict. */
bool kallsyms__hidden(const struct kallsyms *k);
bool kallsyms__empty(const struct kallsyms *k);
uint64_t kallsyms__malformed(const struct kallsyms *k);
/* Has a limit left out lines? */
bool kallsyms__left(const struct kallsyms *k);

#endif
