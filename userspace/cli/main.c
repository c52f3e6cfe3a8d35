/* SPDX-License-Identifier: BSD-2-Clause */
/* sysprof: find the command, run it. */
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/give_up.h"

static const struct command *const commands[] = {
	&cmd_record, &cmd_convert, &cmd_report, &cmd_open, &cmd_perf_map, &cmd_check, NULL,
};

static const struct command *find_command(const char *name)
{
	for (const struct command *const *c = commands; *c; c++)
		if (!strcmp((*c)->name, name))
			return *c;
	return NULL;
}

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

static void print_overview(FILE *out)
{
	fprintf(out,
		"sysprof %s: a whole-system sampling profiler (not GNOME Sysprof)\n\n"
		"  sudo sysprof record -p PID          profile a running process until Ctrl-C\n"
		"  sudo sysprof record -a -d 10        profile the whole system for ten seconds\n"
		"  sudo sysprof record -- COMMAND      run a command and profile it\n\n"
		"Commands:\n",
		SYSPROF_VERSION);
	for (const struct command *const *c = commands; *c; c++)
		fprintf(out, "  %-9s %s\n", (*c)->name, (*c)->summary);
	fprintf(out, "  %-9s %s\n  %-9s %s\n", "version", "print the version", "help",
		"help [COMMAND]: print this, or a command's options");
}

static int print_help(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		print_overview(stdout);
		return EXIT_DONE;
	}
	command = find_command(argv[1]);
	if (!command) {
		log_print(LOG_ERROR, "unknown command '%s': see 'sysprof help'", argv[1]);
		return EXIT_USAGE;
	}
	printf("usage: sysprof %s %s\n\n%s", command->name, command->arguments, command->help);
	return EXIT_DONE;
}

/*
 * Large blocks are mapped, and go back to the system when they are freed. Left to itself glibc keeps
 * them from the first one on (its threshold grows), and building one big unwind table cost 40 MB for
 * the rest of the recording.
 */
static void give_memory_back(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
#endif
}

int main(int argc, char **argv)
{
	const struct command *command;

	give_memory_back();
	give_up__ignore_sigpipe();
	if (argc < 2) {
		print_overview(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return print_help(argc - 1, argv + 1);
	if (!strcmp(argv[1], "version") || !strcmp(argv[1], "--version")) {
		printf("sysprof %s\n", SYSPROF_VERSION);
		return EXIT_DONE;
	}
	command = find_command(argv[1]);
	if (!command) {
		log_print(LOG_ERROR, "unknown command '%s': see 'sysprof help'", argv[1]);
		return EXIT_USAGE;
	}
	if (argc == 3 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h")))
		return print_help(2, argv);
	return command->run(argc - 1, argv + 1);
}
