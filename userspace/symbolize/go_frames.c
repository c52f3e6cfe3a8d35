/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of Go code.
 *
 * The table does not say in which file an inlined function is defined. It is the file it executes
 * in: a Go function is in one file, unless //line comments say otherwise. The function around them
 * is defined in the file of its first instruction.
 */
#include "symbolize/module_private.h"

#include <stdbool.h>

size_t go_frames(struct gopclntab *t, uint64_t address, struct symbol_frame *frames,
		 uint64_t *until)
{
	struct go_frame levels[GO_MAX_FRAMES];
	struct go_function function;
	size_t number;
	int count;

	if (gopclntab__find(t, address, &number) || gopclntab__function(t, number, &function) ||
	    !function.name[0])
		return 0;
	count = gopclntab__frames(t, number, address, levels, until);
	for (int i = 0; i < count; i++) {
		bool outermost = i + 1 == count;

		frames[i] = (struct symbol_frame){
			.function = levels[i].name,
			.function_address = outermost ? function.start : PROFILE_UNKNOWN_ADDRESS,
			.function_size = outermost ? function.end - function.start : 0,
			.file = levels[i].file,
			.line = levels[i].line,
			.definition_file = outermost ? gopclntab__file(t, number) : levels[i].file,
			.definition_line = levels[i].start_line,
		};
	}
	return count > 0 ? count : 0;
}
