/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From (dso, address) to an inline chain of functions, files and lines.
 *
 * The symbolizer never sees a pid, and opens nothing by a name that a process chose: it is given
 * open files. So a dead process or a deleted binary is no problem, and it can run in a process of
 * its own without privileges.
 */
#ifndef SYSPROF_SYMBOLIZER_H
#define SYSPROF_SYMBOLIZER_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

struct symbolizer;

struct symbolizer_dso {
	enum dso_kind kind;
	int fd;	     /* the mapped file, -1 where it is not to be had; stays the caller's */
	int root_fd; /* its process's root directory (debug files are sought there first), or -1 */
	const char *path; /* for messages */
	uint8_t build_id_size;
	const uint8_t *build_id;
};

struct symbol_frame {
	const char *function; /* demangled, never NULL */
	uint64_t
		function_address; /* ELF virtual address (kernel: address); PROFILE_UNKNOWN_ADDRESS */
	uint64_t function_size;	  /* 0 unknown */
	const char *file;	  /* of the executing line, NULL unknown */
	uint32_t line, column;	  /* 1-based, 0 unknown */
	const char *definition_file;
	uint32_t definition_line, definition_column;
};

struct symbol_result {
	uint64_t elf_address; /* PROFILE_UNKNOWN_ADDRESS where no segment covers the offset */
	const struct symbol_frame *frames; /* innermost first */
	size_t frame_count;		   /* 0: no symbol covers the address */
};

/* Called once for each address, in order; `result` is valid during the call. Nonzero stops. */
typedef int (*symbol_sink_fn)(void *context, size_t index, const struct symbol_result *result);

struct symbolizer *symbolizer__new(void);
void symbolizer__free(struct symbolizer *s);

/* Whole lines of /proc/kallsyms, piece by piece, before the first kernel address is asked for. */
int symbolizer__add_kallsyms(struct symbolizer *s, const char *text, size_t size);

/*
 * Resolve `count` distinct addresses of one dso, sorted ascending (file offsets for DSO_FILE and
 * DSO_VDSO, virtual addresses for DSO_KERNEL). Returns 0 with *state saying how it went: a file that is
 * damaged or has no symbols is no error, its addresses come with no frames. Negative errno: no
 * memory, or what the sink returned.
 */
int symbolizer__resolve(struct symbolizer *s, const struct symbolizer_dso *dso,
			const uint64_t *addresses, size_t count, symbol_sink_fn sink, void *context,
			enum symbol_state *state);

#endif
