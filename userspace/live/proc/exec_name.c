/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/proc/exec_name.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/suffix.h"
#include "live/proc/command_line.h"

#define WORDS_OF_EXEC 3 /* a script's path follows its interpreter and at most one argument */
#define CMDLINE_MAX   4096

/* As the kernel names a process that executes this file. */
static void set_name(char name[PROC_COMM_SIZE], const char *path)
{
	const char *base = path_base(path);

	snprintf(name, PROC_COMM_SIZE, "%.*s", (int)mapping_path_length(base), base);
}

static bool has_name(const char *path, const char *comm)
{
	char name[PROC_COMM_SIZE];

	set_name(name, path);
	return !strcmp(name, comm);
}

static bool comes_from_exec(const char *exe, const char *comm, struct arguments words)
{
	bool is_interpreter = command_is_interpreter(path_base(exe));
	const char *word = next_argument(&words);

	if (has_name(exe, comm) || (word && has_name(word, comm)))
		return true;
	/* the words of a program that interprets nothing may be any, but an executed path */
	for (int i = 1; i < WORDS_OF_EXEC && (word = next_argument(&words)); i++)
		if ((is_interpreter || strchr(word, '/')) && has_name(word, comm))
			return true;
	return false;
}

void exec_name__choose(const char *exe, const char *comm, const char *cmdline, size_t size,
		       char name[PROC_COMM_SIZE])
{
	struct arguments words = {cmdline, cmdline + size};
	struct arguments behind = words;

	if (is_loader_path(exe) && command_line__skip_loader(&behind))
		set_name(name, behind.at);
	else if (!*exe || comes_from_exec(exe, comm, words))
		snprintf(name, PROC_COMM_SIZE, "%s", comm);
	else
		set_name(name, exe);
}

void exec_name__read(int dir, char name[PROC_COMM_SIZE])
{
	char exe[PATH_MAX + 1], comm[PROC_COMM_SIZE], cmdline[CMDLINE_MAX];
	struct proc_stat stat;
	ssize_t length = readlinkat(dir, "exe", exe, sizeof(exe) - 1);
	ssize_t size;

	*name = '\0';
	if (length <= 0 || proc_read_stat(dir, "stat", &stat))
		return;
	exe[length] = '\0';
	proc_stat__comm(&stat, comm);
	size = proc_read_small(dir, "cmdline", cmdline, sizeof(cmdline));
	exec_name__choose(exe, comm, cmdline, size > 0 ? size : 0, name);
}
