/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names that say nothing about whose profile it is: libc, the kernel, public runtimes and their
 * libraries, words of languages and of sysprof itself. Anonymous profiles keep them (anonymize.h);
 * docs/FORMATS.md has the list.
 */
#ifndef PROFILE_PUBLIC_NAMES_H
#define PROFILE_PUBLIC_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Languages whose qualified names begin with a package or namespace. */
enum name_language { NAME_NATIVE, NAME_MANAGED };

/* The name of a file, without directories: "libc.so.6", "python3.12". */
bool is_public_module(const char *name);
/* A module of the kernel, without brackets: "ext4". */
bool is_public_kernel_module(const char *name, size_t length);
/*
 * What is kept of the path of a file of a runtime's own library, wherever it is installed: "node:fs",
 * "/lib/python3.12/json/decoder.py" of "/opt/python/lib/python3.12/json/decoder.py"; NULL: no such file.
 */
const char *public_source(const char *path);
/* A word: "int", "lambda", "str2". */
bool is_public_word(const char *word, size_t length);
/*
 * The length of the function at `name` that many files have one of, be they public or not: "_start",
 * "memcpy" of "memcpy.part.0"; or 0.
 */
size_t public_function(const char *name);
/* The length of what comparisons look for before a number: "lambda$" of "lambda$12"; or 0. */
size_t public_mark(const char *at);
/*
 * The length of the qualified name at `name` ("java.util.HashMap.get"), up to its arguments, if its
 * package or namespace is one of a runtime; or 0.
 */
size_t public_qualified_name(const char *name, enum name_language language);
/* The length of a directory of every host that a path begins with: that of "/usr/lib/"; or 0. */
size_t public_directory(const char *path);

#endif
