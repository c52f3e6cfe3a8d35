/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer of a symbolizer for one address. stream/symbol_blob.h has it as bytes. */
#ifndef SYSPROF_SYMBOL_RESULT_H
#define SYSPROF_SYMBOL_RESULT_H

#include <stddef.h>
#include <stdint.h>

struct symbol_frame {
	const char *function;	   /* demangled, never NULL */
	uint64_t function_address; /* ELF virtual address (kernel: address); ~0 unknown */
	uint64_t function_size;	   /* 0 unknown */
	const char *file;	   /* of the executing line, NULL unknown */
	uint32_t line, column;	   /* 1-based, 0 unknown */
	const char *definition_file;
	uint32_t definition_line, definition_column;
};

struct symbol_result {
	uint64_t elf_address;		   /* ~0 if no segment covers the offset */
	const struct symbol_frame *frames; /* innermost first */
	size_t frame_count;		   /* 0: no symbol covers the address */
	/* ELF addresses up to this one have the same frames, as symbol tables say; 0: not known */
	uint64_t same_until;
};

/* Called once for each address, in order; `result` is valid during the call. Nonzero stops. */
typedef int (*symbol_sink_fn)(void *context, size_t index, const struct symbol_result *result);

#endif
