/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbols of .symtab and .dynsym, or of the tables of the dynamic linker. */
#ifndef ELF_ELF_SYMBOLS_H
#define ELF_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_file.h"

struct elf_dynamic;
struct elf_strings;

int elf_file__each_symbol(struct elf_file *file, elf_symbol_fn visit, void *context);

int elf_file__each_wanted_symbol(struct elf_file *file, elf_symbol_wanted_fn wanted,
				 elf_symbol_fn visit, void *context);

/*
 * Is this reported name stored with those of .dynsym, which mostly repeat .symtab? If the caller
 * keeps none of them, it can free them; they are read again when needed.
 */
bool elf_file__has_dynamic_name(const struct elf_file *file, const char *name);

void elf_file__forget_dynamic_names(struct elf_file *file);

/*
 * elf_file__each_symbol() for data (STT_OBJECT). `exported`: from .dynsym only, if there is one;
 * -EFBIG: more than 65,536 symbols or 1 MB of names. The limit bounds the time that a file's owner
 * can cost us.
 */
int elf_file__each_object(struct elf_file *file, bool exported, elf_symbol_fn visit, void *context);

void elf_strings__fini(struct elf_strings *strings);

/* 0, -ENODATA: there is no such segment, -ENOMEM, … */
int elf_file__dynamic(const struct elf_file *file, struct elf_dynamic *dynamic);

/* Reads the table's header at this address. 0 or -EBADMSG. */
int elf_file__gnu_hash(const struct elf_file *file, uint64_t address, struct elf_gnu_hash *hash);

#endif
