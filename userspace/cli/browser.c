/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/serving.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/proc_task.h"
#include "cli/give_up.h"

#define WORDS_MAX	 16
#define ANCESTORS_MAX	 6 /* sudo, its monitor, a script or two */
#define ENVIRONMENT_MAX	 (256 * 1024)
#define SSH_PORT_DEFAULT 22

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value;
}

bool browser__can_open(void)
{
	return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
}

/* "firefox --new-window %s": words, no shell. The address is added if there is no %s. */
static void try_command(char *command, const char *url)
{
	char *words[WORDS_MAX + 2], *word;
	bool placed = false;
	size_t count = 0;

	while ((word = strsep(&command, " ")) && count < WORDS_MAX) {
		if (!*word)
			continue;
		if (!strcmp(word, "%s")) {
			word = (char *)url;
			placed = true;
		}
		words[count++] = word;
	}
	if (!count)
		return;
	if (!placed)
		words[count++] = (char *)url;
	words[count] = NULL;
	execvp(words[0], words);
}

/* Returns only if nothing could be started. */
static void exec_browser(const char *url)
{
	const char *wanted = getenv("BROWSER");
	char *commands = strdup(wanted ? wanted : ""), *command;
	char fallback[] = "xdg-open";

	while (commands && (command = strsep(&commands, ":")))
		try_command(command, url);
	try_command(fallback, url);
}

/* What a browser writes is not for our user, and our terminal is not for it. */
static void detach(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		dup2(null, fd);
	give_up__restore_signals();
}

bool browser__open(const char *url)
{
	_cleanup_close_ int failed = -1;
	int pipes[2], status;
	char byte;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC))
		return false;
	failed = pipes[0];
	pid = fork();
	if (!pid) {
		/* twice, so that init adopts it and it needs no wait */
		if (fork())
			_exit(0);
		detach();
		exec_browser(url);
		/* our caller waits for this, or for the end of the file that execve brings */
		_exit(write(pipes[1], "x", 1) != 1);
	}
	close(pipes[1]);
	if (pid < 0)
		return false;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return read(failed, &byte, 1) == 0;
}

/* ---- ssh ------------------------------------------------------------------------------------- */

/* The value of a variable in the text of /proc/PID/environ, or NULL. */
static const char *find_variable(const char *environment, size_t size, const char *name)
{
	size_t length = strlen(name);

	for (size_t at = 0; at < size; at += strlen(environment + at) + 1)
		if (!strncmp(environment + at, name, length) && environment[at + length] == '=')
			return environment + at + length + 1;
	return NULL;
}

/* SSH_CONNECTION of the nearest process above us that has it. The caller frees. */
static char *find_connection_above(void)
{
	struct proc_identity identity;
	pid_t pid = getpid();

	for (int i = 0; i < ANCESTORS_MAX; i++) {
		_cleanup_free_ char *environment = NULL;
		const char *value;
		char path[64];
		size_t size;

		if (proc_process_state(pid, &identity) != PROC_ALIVE || identity.ppid <= 1)
			return NULL;
		pid = identity.ppid;
		snprintf(path, sizeof(path), "/proc/%d/environ", pid);
		if (read_file_at(AT_FDCWD, path, ENVIRONMENT_MAX, &environment, &size))
			continue;
		value = find_variable(environment, size, "SSH_CONNECTION");
		if (value)
			return strdup(value);
	}
	return NULL;
}

/* It is pasted into a shell: nothing in it may mean anything there. */
static bool is_plain(const char *text)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:_-%";

	return *text && *text != '-' && !text[strspn(text, letters)];
}

void describe_ssh_forward(uint16_t port, char *text, size_t size)
{
	const char *own = getenv("SSH_CONNECTION");
	const char *user = is_set("SUDO_USER") ? getenv("SUDO_USER") : getenv("USER");
	_cleanup_free_ char *connection = own		       ? strdup(own)
					  : is_set("SUDO_UID") ? find_connection_above()
							       : NULL;
	char *rest = connection, *fields[4] = {};
	bool named = user && is_plain(user);
	char option[32] = "";
	uint64_t ssh_port;

	*text = 0;
	/* the client's address and port, ours and ours */
	for (size_t i = 0; i < 4 && rest; i++)
		fields[i] = strsep(&rest, " ");
	if (!fields[3] || !is_plain(fields[2]) || parse_u64(fields[3], 1, UINT16_MAX, &ssh_port))
		return;
	if (ssh_port != SSH_PORT_DEFAULT)
		snprintf(option, sizeof(option), "-p %u ", (unsigned int)ssh_port);
	snprintf(text, size, "ssh -N -L %u:127.0.0.1:%u %s%s%s%s", port, port, option,
		 named ? user : "", named ? "@" : "", fields[2]);
}
