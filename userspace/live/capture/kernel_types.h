/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's types (BTF), as far as programs refer to them.
 *
 * libbpf compares the name of each type of a program with those of all types of the kernel, about
 * 130,000: 0.3 ms each. So it gets a file that has no others than those of such a name, and what
 * they contain.
 */
#ifndef LIVE_CAPTURE_KERNEL_TYPES_H
#define LIVE_CAPTURE_KERNEL_TYPES_H

#include <stdbool.h>
#include <stddef.h>

struct btf;
struct kernel_types;

/* Reads the kernel's types, or has libbpf read what this cannot. NULL: there are none. */
struct kernel_types *kernel_types__read(void);
void kernel_types__free(struct kernel_types *types);

static inline void kernel_types__cleanup(struct kernel_types **types)
{
	kernel_types__free(*types);
}

/* For bpf_object_open_opts.btf_custom_path: a file in memory, empty as yet. NULL: libbpf looks itself. */
const char *kernel_types__path(const struct kernel_types *types);

/* Writes the types that these programs may refer to into the file, if need be all. 0 or negative errno. */
int kernel_types__select(const struct kernel_types *types, const struct btf *programs);

/* Does the kernel describe all of these functions? */
bool kernel_types__have_functions(const struct kernel_types *types, const char *const *names,
				  size_t count);

#endif
