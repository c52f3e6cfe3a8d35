/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of the kernel, its modules and BPF programs, from the text of /proc/kallsyms. */
#ifndef SYMBOLIZE_KALLSYMS_H
#define SYMBOLIZE_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* 0; negative errno ends the calls. */
typedef int (*kernel_function_fn)(void *context, const struct kernel_function *function);

/*
 * Other code is or was in the range: functions outside of the image that begin there are passed to
 * `gone` and no longer found, and one that reaches into it ends there. 0, -ENOMEM, what `gone`
 * returned.
 */
int kallsyms__void(struct kallsyms *k, uint64_t start, uint64_t end, kernel_function_fn gone,
		   void *context);

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
