/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/serving.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file_url.h"
#include "base/io.h"
#include "base/output_file.h"
#include "base/parse.h"
#include "base/proc_task.h"
#include "cli/commands.h"
#include "cli/give_up.h"
#include "cli/serving_files.h"
#include "cli/summary.h"
#include "serve/server.h"
#include "serve/source_api.h"
#include "tenants/child.h"
#include "tenants/confine.h"

#define PROFILER_DEFAULT "https://profiler.firefox.com"
#define URL_SIZE	 1024
#define SSH_SIZE	 256
#define HEADER_MAX	 (32 * 1024)
#define IDLE_SECONDS	 30
#define UNRESERVED	 "-._~" /* beside letters and digits, as for encodeURIComponent() */
#define WORDS_MAX	 16
#define ANCESTORS_MAX	 6 /* sudo, its monitor, a script or two */
#define ENVIRONMENT_MAX	 (256 * 1024)
#define SSH_PORT_DEFAULT 22

struct serving {
	const struct serving_options *options;
	struct serving_files files;
	struct server *server;
	char profiler_url[URL_SIZE];
	char ssh[SSH_SIZE];
};

/* ---- the user behind sudo -------------------------------------------------------------------- */

/* Variables that the user's programs need, and sudo has replaced or removed. */
static void set_environment(uid_t uid, const struct passwd *account)
{
	char runtime[64], bus[96];
	struct stat st;

	if (account) {
		setenv("HOME", account->pw_dir, 1);
		setenv("USER", account->pw_name, 1);
		setenv("LOGNAME", account->pw_name, 1);
	} else {
		setenv("HOME", "/", 1);
	}
	/* of root's session, if they are set at all */
	unsetenv("XDG_CACHE_HOME");
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("XDG_DATA_HOME");
	unsetenv("XDG_RUNTIME_DIR");
	unsetenv("DBUS_SESSION_BUS_ADDRESS");
	snprintf(runtime, sizeof(runtime), "/run/user/%u", uid);
	if (lstat(runtime, &st) || !S_ISDIR(st.st_mode) || st.st_uid != uid)
		return;
	setenv("XDG_RUNTIME_DIR", runtime, 1);
	snprintf(bus, sizeof(bus), "unix:path=%s/bus", runtime);
	setenv("DBUS_SESSION_BUS_ADDRESS", bus, 1);
}

/* Work that needs no privileges is done as that user. */
static int become(uid_t uid, gid_t gid)
{
	const struct passwd *account = getpwuid(uid);
	int err = account ? initgroups(account->pw_name, gid) : setgroups(1, &gid);

	if (err || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return -errno;
	set_environment(uid, account);
	return 0;
}

/*
 * Gives up all privileges for good: root called by sudo becomes its caller (SUDO_UID, SUDO_GID),
 * with groups and home directory, and no capability is kept. 0, or negative errno with `failure`
 * filled: then the process must not continue.
 */
static int drop_privileges(struct failure *failure)
{
	uid_t uid = 0;
	gid_t gid;
	int err = find_sudo_user(&uid, &gid);

	if (err < 0)
		return fail(failure, err,
			    "cannot become the user who called sudo: SUDO_UID or "
			    "SUDO_GID is not a number");
	err = (uid ? become(uid, gid) : 0) ?: capabilities__keep(0);
	if (!err && uid && (!setuid(0) || geteuid() != uid))
		err = -EPERM;
	return err ? fail(failure, err, "cannot give up root: %s", strerror(-err)) : 0;
}

/* ---- the user's browser, and what to do if it is on another machine -------------------------- */

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value;
}

static bool can_open_browser(void)
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

/* A browser's output is not for our user, nor our terminal for the browser. */
static void detach(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		dup2(null, fd);
	give_up__restore_signals();
}

/* Does not wait for it. False: none could be started. */
static bool open_browser(const char *url)
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
		/*
		 * Twice, so that init adopts it and it needs no wait. posix_spawn() cannot do that,
		 * nor give the signals back as our caller left them.
		 */
		if (fork())
			_exit(0);
		detach();
		exec_browser(url);
		/* our caller waits for this, or for the end of file that execve brings */
		_exit(write(pipes[1], "x", 1) != 1);
	}
	close(pipes[1]);
	if (pid < 0)
		return false;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return read(failed, &byte, 1) == 0;
}

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
		size_t size;

		if (proc_process_state(pid, &identity) != PROC_ALIVE || identity.ppid <= 1)
			return NULL;
		pid = identity.ppid;
		if (read_file_at(AT_FDCWD, proc_path(pid, "environ").text, ENVIRONMENT_MAX,
				 &environment, &size))
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

/*
 * In an ssh session: the command for the user's own machine that makes `port` of our loopback
 * interface reachable there; "" elsewhere. If sudo has removed the variables, it looks at the
 * processes above us, which needs privileges.
 */
static void describe_ssh_forward(uint16_t port, char *text, size_t size)
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

/* ---- addresses ------------------------------------------------------------------------------- */

/* Where the Firefox Profiler is: PROFILER_URL can name one of one's own. */
static const char *profiler_base(void)
{
	const char *wanted = getenv("PROFILER_URL");

	return wanted && (!strncmp(wanted, "https://", 8) || !strncmp(wanted, "http://", 7))
		       ? wanted
		       : PROFILER_DEFAULT;
}

static void make_profiler_url(struct serving *s)
{
	const char *base = profiler_base();
	char file[URL_SIZE], encoded_file[3 * URL_SIZE], encoded_server[3 * URL_SIZE];
	int length = strlen(base);

	snprintf(file, sizeof(file), "%s/" PROFILE_NAME, server__url(s->server));
	percent_encode(encoded_file, file, UNRESERVED);
	percent_encode(encoded_server, server__url(s->server), UNRESERVED);
	while (length && base[length - 1] == '/')
		length--;
	snprintf(s->profiler_url, sizeof(s->profiler_url),
		 "%.*s/from-url/%.300s/?symbolServer=%.200s", length > 400 ? 400 : length, base,
		 encoded_file, encoded_server);
}

static void print_addresses(const struct serving *s)
{
	const char *url = server__url(s->server);

	fprintf(stderr,
		"sysprof: serving %s until Ctrl-C\n"
		"  page:              %s/\n"
		"  Firefox Profiler:  %s\n"
		"  all formats:       %s/" FORMATS_NAME "\n",
		s->options->what, url, s->profiler_url, url);
	if (*s->ssh)
		fprintf(stderr,
			"  over ssh: run this on your own machine, then open the address there:\n"
			"    %s\n",
			s->ssh);
}

static void announce(const struct serving *s)
{
	const struct serving_options *options = s->options;
	bool opened;

	if (!options->quiet)
		print_addresses(s);
	opened = options->browser && can_open_browser() &&
		 open_browser(server__entry_url(s->server));
	/* the page's address is needed, however quiet */
	if (options->quiet && !opened)
		fprintf(stderr, "%s/\n", server__url(s->server));
}

/* ---- serving --------------------------------------------------------------------------------- */

static int start_server(struct serving *s, const struct profile *profile, struct failure *failure)
{
	struct server_options options = {
		.port = s->options->port,
		.header_max = HEADER_MAX,
		.body_max = API_REQUEST_MAX,
		.idle_seconds = IDLE_SECONDS,
		.context = &s->files,
	};
	int err = serving_files__init(&s->files, profile, s->options->what);

	if (err)
		return fail(failure, err, "cannot start the server: %s", strerror(-err));
	options.routes = s->files.routes;
	options.route_count = s->files.route_count;
	err = server__new(&options, &s->server, failure);
	if (err)
		return err;
	make_profiler_url(s);
	s->files.profiler_url = s->profiler_url;
	return 0;
}

/*
 * The order matters: a port below 1024 and the variables of processes above us need privileges,
 * nothing later does. A change of the user cancels the request to end with `parent`.
 */
int serving__run(const struct profile *profile, const struct serving_options *options, pid_t parent,
		 struct failure *failure)
{
	struct serving s = {.options = options};
	int signal_fd = give_up__watch();
	int err = signal_fd < 0 ? fail(failure, signal_fd, "cannot watch for signals: %s",
				       strerror(-signal_fd))
				: 0;

	if (!err)
		err = start_server(&s, profile, failure);
	if (!err) {
		describe_ssh_forward(server__port(s.server), s.ssh, sizeof(s.ssh));
		err = drop_privileges(failure);
	}
	if (!err && parent && (prctl(PR_SET_PDEATHSIG, SIGTERM) || getppid() != parent))
		err = fail(failure, -ESRCH, "sysprof has ended before its server began");
	if (!err) {
		give_up__nothing_to_lose();
		announce(&s);
		err = server__run(s.server, signal_fd, UINT64_MAX);
		if (err > 0)
			err = 0;
		else if (err)
			fail(failure, err, "the server stopped: %s", strerror(-err));
	}
	server__free(s.server);
	serving_files__fini(&s.files);
	if (signal_fd >= 0)
		close(signal_fd);
	return err;
}

/* ---- in a child ------------------------------------------------------------------------------ */

struct child_work {
	const struct profile *profile;
	const struct serving_options *options;
};

/* A server must not have descriptors of the recording (programs, maps, files of all users). */
static int run_child(const struct child_self *self)
{
	const struct child_work *work = self->data;
	struct failure failure = {};
	int err;

	close(CHILD_SOCKET);
	err = serving__run(work->profile, work->options, self->parent, &failure);
	if (err)
		print_failure(&failure);
	return err ? EXIT_FAILED : EXIT_DONE;
}

int serving__start(const struct profile *profile, const struct serving_options *options,
		   pid_t *child, struct failure *failure)
{
	const struct child_work work = {profile, options};
	const struct child_plan plan = {
		.class = HELPER_SERVER, .run = run_child, .type = SOCK_STREAM, .data = &work};
	pid_t pid;
	int socket;

	/* a reader of the address may end us before we wait for the child */
	give_up__nothing_to_lose();
	fflush(NULL);
	pid = child__start(&plan, &socket);
	if (pid < 0)
		return fail(failure, pid, "cannot start the server: %s", strerror(-pid));
	close(socket);
	*child = pid;
	return 0;
}

int serving__supervise(pid_t child, int signal_fd)
{
	_cleanup_close_ int pidfd = syscall(SYS_pidfd_open, child, 0);
	struct pollfd fds[] = {
		{.fd = signal_fd, .events = POLLIN},
		{.fd = pidfd, .events = POLLIN},
	};
	bool from_terminal;
	int status;

	while (pidfd >= 0 && !fds[1].revents) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (give_up__signalled(&from_terminal)) {
			kill(child, SIGTERM);
			give_up__expect_one_more();
		}
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}
