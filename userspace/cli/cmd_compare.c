/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sysprof compare: two commands, recorded in alternation (ABBA…, so drift affects both), and
 * compared. Each recording is a `sysprof record` in a process of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "cli/diffing.h"
#include "cli/summary.h"

#define PAIRS_DEFAULT 5
#define PAIRS_MAX     (COMPARE_FILES_MAX / COMPARE_SIDES)
#define CLEAR_LINE    "\r\033[K"
#define OURSELVES     "/proc/self/exe"
#define OUT_OF_MEMORY "cannot compare: out of memory"

extern char **environ;

struct compare_arguments {
	struct diffing diffing;
	unsigned int pairs, max; /* 0: as many as `pairs` */
	const char *keep;	 /* a directory for the recordings */
	char **command[COMPARE_SIDES];
};

/* The recordings so far. */
struct pairs {
	const struct compare_arguments *arguments;
	const char *directory;
	VEC(char *) paths[COMPARE_SIDES]; /* the first one is of the warm-up */
	bool is_terminal;		  /* stderr: it shows what is being recorded */
};

static volatile sig_atomic_t running; /* the pid of `record`; 0: none */
static volatile sig_atomic_t stopped; /* by a signal */

static void clear_line(const struct pairs *p)
{
	if (p->is_terminal)
		fputs(CLEAR_LINE, stderr);
}

/* ---- one recording --------------------------------------------------------------------------- */

/* Ctrl-C comes from the kernel and reaches `record`, too; a signal of kill(1) is passed on. */
static void stop(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	stopped = 1;
	if (running && info->si_code != SI_KERNEL)
		kill((pid_t)running, SIGTERM);
}

/*
 * COMMAND's input and output are /dev/null: ours is the comparison. Its errors are shown. `mask`:
 * signals that it has blocked.
 */
static int spawn(char **argv, const sigset_t *mask, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t defaults;
	int err;

	sigemptyset(&defaults);
	sigaddset(&defaults, SIGINT);
	sigaddset(&defaults, SIGTERM);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setsigmask(&attributes, mask);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	err = posix_spawn(pid, OURSELVES, &files, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return -err;
}

/* 0, its exit status, or negative errno. */
static int record(char **command, const char *path)
{
	VEC(char *) argv = {};
	char *before[] = {"sysprof", "record", "-q", "-o", (char *)path, "--"};
	int status = 0, err = vec_append(&argv, before, sizeof(before) / sizeof(*before));
	sigset_t all, mask;
	pid_t pid;

	do
		err = err ? err : vec_push(&argv, *command);
	while (*command++);
	/* a signal comes before the start, or when there is a process to pass it to */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	if (!err)
		err = stopped ? -EINTR : spawn(argv.data, &mask, &pid);
	running = err ? 0 : pid;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	vec_free(&argv);
	if (err)
		return err;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	running = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNAL_BASE + WTERMSIG(status);
}

static int record_side(struct pairs *p, enum compare_side side, struct failure *failure)
{
	static const char *const names[] = {"old", "new"};
	size_t number = p->paths[side].count;
	char *path;
	int status;

	if (asprintf(&path, "%s/%s-%zu.sysprof", p->directory, names[side], number) < 0)
		return fail(failure, -ENOMEM, OUT_OF_MEMORY);
	if (vec_push(&p->paths[side], path)) {
		free(path);
		return fail(failure, -ENOMEM, OUT_OF_MEMORY);
	}
	if (p->is_terminal)
		fprintf(stderr, CLEAR_LINE "%s of pair %zu", names[side], number);
	status = record(p->arguments->command[side], path);
	if (stopped)
		return fail(failure, -EINTR, "stopped; nothing was compared");
	if (status > 0)
		return fail(failure, -ECHILD,
			    "recording %s ended with status %d; nothing was compared",
			    p->arguments->command[side][0], status);
	return status ? fail(failure, status, "cannot record %s: %s; nothing was compared",
			     p->arguments->command[side][0], strerror(-status))
		      : 0;
}

static int record_pair(struct pairs *p, struct failure *failure)
{
	enum compare_side first = p->paths[COMPARE_OLD].count % 2 ? COMPARE_OLD : COMPARE_NEW;
	int err = record_side(p, first, failure);

	return err ? err
		   : record_side(p, first == COMPARE_OLD ? COMPARE_NEW : COMPARE_OLD, failure);
}

/* ---- until it is answered -------------------------------------------------------------------- */

/* Pairs after which the question is put: doubled each time, up to the maximum. */
static unsigned int next_look(const struct compare_arguments *a, unsigned int pairs)
{
	return 2 * pairs < a->max ? 2 * pairs : a->max;
}

static unsigned int looks_of(const struct compare_arguments *a)
{
	unsigned int looks = 1;

	for (unsigned int pairs = a->pairs; pairs < a->max; pairs = next_look(a, pairs))
		looks++;
	return looks;
}

static int compare(struct pairs *p, bool last, enum compare_answer *answer)
{
	struct diffing diffing = p->arguments->diffing;

	for (int side = 0; side < COMPARE_SIDES; side++) {
		diffing.files[side] = p->paths[side].data + 1;
		diffing.file_count[side] = p->paths[side].count - 1;
	}
	diffing.compare.looks = looks_of(p->arguments);
	diffing.stopped = &stopped;
	clear_line(p);
	return diffing__run(&diffing, last, answer);
}

static int run_pairs(struct pairs *p, enum compare_answer *answer, struct failure *failure)
{
	const struct compare_arguments *a = p->arguments;
	unsigned int wanted = a->pairs, pairs = 0;
	int err = record_pair(p, failure); /* the warm-up */

	for (;;) {
		while (!err && pairs < wanted) {
			err = record_pair(p, failure);
			pairs++;
		}
		if (err)
			return err;
		err = compare(p, wanted >= a->max, answer);
		if (err || wanted >= a->max || *answer != COMPARE_CANNOT_TELL)
			return err;
		wanted = next_look(a, wanted);
	}
}

/* ---- the directory --------------------------------------------------------------------------- */

static void remove_recordings(struct pairs *p, bool keep)
{
	for (int side = 0; side < COMPARE_SIDES; side++) {
		for (size_t i = 0; i < p->paths[side].count; i++) {
			if (!keep || !i)
				unlink(p->paths[side].data[i]);
			free(p->paths[side].data[i]);
		}
		vec_free(&p->paths[side]);
	}
	if (!keep)
		rmdir(p->directory);
}

static int make_directory(const struct compare_arguments *a, char **directory,
			  struct failure *failure)
{
	const char *temporary = getenv("TMPDIR");

	if (a->keep) {
		*directory = strdup(a->keep);
		return *directory ? 0 : fail(failure, -ENOMEM, OUT_OF_MEMORY);
	}
	if (asprintf(directory, "%s/sysprof-compare.XXXXXX",
		     temporary && *temporary ? temporary : "/tmp") < 0)
		return fail(failure, -ENOMEM, OUT_OF_MEMORY);
	return mkdtemp(*directory)
		       ? 0
		       : fail(failure, -errno, "cannot create %s: %s", *directory, strerror(errno));
}

static int run(const struct compare_arguments *arguments, enum compare_answer *answer)
{
	const struct sigaction stopping = {.sa_sigaction = stop, .sa_flags = SA_SIGINFO};
	struct pairs p = {.arguments = arguments};
	_cleanup_free_ char *directory = NULL;
	struct failure failure = {};
	int err = make_directory(arguments, &directory, &failure);

	if (!err) {
		p.directory = directory;
		p.is_terminal = isatty(STDERR_FILENO);
		sigaction(SIGINT, &stopping, NULL);
		sigaction(SIGTERM, &stopping, NULL);
		err = run_pairs(&p, answer, &failure);
		clear_line(&p);
		remove_recordings(&p, arguments->keep);
	}
	if (err && *failure.what)
		print_failure(&failure);
	return err;
}

/* ---- options --------------------------------------------------------------------------------- */

static const struct cli_option rows[] = {
	{"pairs", 'n', .has_value = true, .take = option_number,
	 .field = offsetof(struct compare_arguments, pairs), .min = COMPARE_RUNS_MIN,
	 .max = PAIRS_MAX},
	{"max", .has_value = true, .take = option_number,
	 .field = offsetof(struct compare_arguments, max), .min = COMPARE_RUNS_MIN,
	 .max = PAIRS_MAX},
	{"keep", .has_value = true, .take = option_text,
	 .field = offsetof(struct compare_arguments, keep)},
	DIFFING_ROWS,
	{},
};

static int take_commands(struct compare_arguments *a, int argc, char **argv, int dashes)
{
	int between = dashes + 1;

	if (dashes >= argc || optind < dashes)
		return usage_error(&cmd_compare, "no commands: -- OLD… --- NEW…");
	while (between < argc && strcmp(argv[between], "---"))
		between++;
	if (between == dashes + 1 || between + 1 >= argc)
		return usage_error(&cmd_compare, "two commands are needed: -- OLD… --- NEW…");
	argv[between] = NULL;
	a->command[COMPARE_OLD] = argv + dashes + 1;
	a->command[COMPARE_NEW] = argv + between + 1;
	return 0;
}

static int parse_options(struct compare_arguments *a, int argc, char **argv)
{
	int dashes = 1, status;

	while (dashes < argc && strcmp(argv[dashes], "--"))
		dashes++;
	status = options__parse(&cmd_compare, a, dashes, argv);
	if (!status)
		status = take_commands(a, argc, argv, dashes);
	if (!status)
		status = diffing__check(&a->diffing, &cmd_compare);
	if (!status && a->max && a->max < a->pairs)
		status = usage_error(&cmd_compare, "--max is less than --pairs");
	if (!a->max)
		a->max = a->pairs;
	return status;
}

static int run_compare(int argc, char **argv)
{
	struct compare_arguments arguments = {.diffing = DIFFING_DEFAULTS, .pairs = PAIRS_DEFAULT};
	int status = parse_options(&arguments, argc, argv);
	enum compare_answer answer;

	if (!status && run(&arguments, &answer))
		status = EXIT_FAILED;
	else if (!status)
		status = diffing__exit_code(&arguments.diffing, answer);
	profile_filter__fini(&arguments.diffing.in.filter);
	return status;
}

const struct command cmd_compare = {
	.name = "compare",
	.arguments = "[-n PAIRS] [--max PAIRS] [--keep DIR] [options of diff] -- OLD… --- NEW…",
	.summary = "record two commands in alternation, and compare them",
	.help = "  sudo sysprof compare -- ./old input --- ./new input\n"
		"  sudo sysprof compare -n 10 --fail-if 'total > 2%' -- ./old --- ./new\n"
		"  sudo sysprof compare -n 4 --max 32 --view share -- python3 a.py --- python3 b.py\n"
		"\n"
		"Runs both commands once to warm up, then in the order OLD NEW NEW OLD …, and prints what `diff`\n"
		"does. Their input and output are /dev/null.\n"
		"\n"
		"  -n, --pairs PAIRS    how often each is recorded, 3 to 100; default 5\n"
		"      --max PAIRS      continue up to that many until the rules can be judged (without rules: until a\n"
		"                       difference is found); the level of 5 % is shared out among the looks\n"
		"      --keep DIR       keep the recordings there, for `diff`, `report` and `open`\n"
		"\n"
		"As for diff:\n"
		"      --view VIEW      share, second, run or auto, the default: run\n"
		"      --per N          CPU time per unit of work: how much work each run does\n"
		"      --per-old N      the same for OLD alone\n"
		"      --per-new N      the same for NEW alone\n"
		"      --run-noise SHARE  of no use here: the noise of runs is measured\n"
		"      --fail-if RULE   'total > 2%' or 'function NAME > 5%'; NAME may have * and ?; also 'waiting > 5%'\n"
		"                       or 'state lock > 10%'\n"
		"      --top N          number of rows, default: 20\n"
		"      --json           print JSON (docs/diff.schema.json)\n"
		"      --markdown       print Markdown for a pull request\n"
		"  -o, --output FILE    write to a file, in a format by its suffix\n"
		"\n" INPUT_FILTER_HELP "\n"
		"Exit status: as of diff; 1 if a command fails.\n",
	.run = run_compare,
	.options = rows,
};
