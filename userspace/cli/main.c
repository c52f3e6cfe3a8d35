/* SPDX-License-Identifier: BSD-2-Clause */
/* sysprof: find the command, run it. */
#include <errno.h>
#include <malloc.h>
#ifdef SYSPROF_STATIC
#include <nss.h>
#endif
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/give_up.h"
#include "cli/habits.h"

static const struct command *find_command(const char *name)
{
	for (const struct command *const *c = commands; *c; c++)
		if (!strcmp((*c)->name, name))
			return *c;
	return NULL;
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

static int refuse_command(const char *name)
{
	const char *instead = habit__find(NULL, name);

	if (!instead && (strchr(name, '/') || *name == '-'))
		instead = *name == '-' ? "options follow the command, as in 'sysprof record -a'"
				       : "to record a program write 'sysprof record -- COMMAND'";
	log_print(LOG_ERROR, "unknown command '%s': %s", name, instead ?: "see 'sysprof help'");
	return EXIT_USAGE;
}

static int print_help(int argc, char **argv)
{
	const struct command *command;
	int err = 0;

	if (argc < 2) {
		print_overview(stdout);
		return print_ended(0) ? EXIT_FAILED : EXIT_DONE;
	}
	command = find_command(argv[1]);
	if (!command)
		return refuse_command(argv[1]);
	/* more than a buffer: a later write would not say why this one failed */
	if (printf("usage: sysprof %s %s\n\n%s", command->name, command->arguments, command->help) <
	    0)
		err = -errno;
	if (command->print_options)
		command->print_options(stdout);
	return print_ended(err) ? EXIT_FAILED : EXIT_DONE;
}

/*
 * Large blocks are mapped, and returned to the system when they are freed. By default glibc keeps
 * them after the first one (its threshold grows): building one big unwind table cost 40 MB for the
 * rest of the recording.
 */
static void give_memory_back(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
#endif
}

/*
 * The C library of a static program looks names up by the system's configuration, with modules of a
 * C library that may differ. So it uses only files, and DNS for hosts. What else it lacks is
 * printed with the version.
 */
#ifdef SYSPROF_STATIC
#define VARIANT "\nstatic: without debuginfod; hosts by /etc/hosts and DNS, users by /etc/passwd"

static void keep_to_itself(void)
{
	__nss_configure_lookup("hosts", "files dns");
	__nss_configure_lookup("passwd", "files");
	__nss_configure_lookup("group", "files");
}
#else
#define VARIANT ""

static void keep_to_itself(void)
{
}
#endif

int main(int argc, char **argv)
{
	const struct command *command;

	keep_to_itself();
	give_memory_back();
	give_up__ignore_sigpipe();
	if (argc < 2) {
		print_overview(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return print_help(argc - 1, argv + 1);
	if (!strcmp(argv[1], "version") || !strcmp(argv[1], "--version")) {
		printf("sysprof %s%s\n", SYSPROF_VERSION, VARIANT);
		return print_ended(0) ? EXIT_FAILED : EXIT_DONE;
	}
	command = find_command(argv[1]);
	if (!command)
		return refuse_command(argv[1]);
	if (argc == 3 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h")))
		return print_help(2, argv);
	return command->run(argc - 1, argv + 1);
}
