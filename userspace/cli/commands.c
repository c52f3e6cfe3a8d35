/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/commands.h"

#include <stdarg.h>

#include "base/log.h"

const struct command *const commands[] = {
	&cmd_record, &cmd_convert, &cmd_report,	  &cmd_diff,  &cmd_compare,
	&cmd_open,   &cmd_agent,   &cmd_perf_map, &cmd_check, NULL,
};

int usage_error(const struct command *command, const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	log_print(LOG_ERROR, "%s: %s", command->name, text);
	log_print(LOG_ERROR, "see 'sysprof help %s'", command->name);
	return EXIT_USAGE;
}
