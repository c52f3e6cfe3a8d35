/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/proc/command_line.h"

#include <ctype.h>
#include <string.h>

#include "base/order.h"

/*
 * The options of an interpreter. Letters: their argument is code, which is no subject; is the
 * subject; is another argument, in the same word or the next; is the rest of the word, if any. Long
 * options, with a space before and after each: they take the next word; they are code. Commands:
 * words that may come before the script.
 */
struct interpreter {
	const char *name;
	const char *code, *subject, *value, *rest;
	const char *long_value, *long_code;
	const char *commands;
};

/* Each takes the next word if it has no "=": all that `node --help` shows with a value. */
#define NODE_VALUES                                                                                \
	" --require --import --loader --experimental-loader --conditions "                         \
	"--env-file --env-file-if-exists --title --icu-data-dir "                                  \
	"--openssl-config --redirect-warnings --report-dir --report-directory "                    \
	"--report-filename --report-signal --trace-event-categories "                              \
	"--trace-event-file-pattern --trace-require-module "                                       \
	"--max-http-header-size --dns-result-order --watch-path --inspect-port "                   \
	"--debug-port --inspect-publish-uid --diagnostic-dir --disable-proto "                     \
	"--disable-warning --unhandled-rejections --input-type "                                   \
	"--experimental-default-type --experimental-policy --policy-integrity "                    \
	"--allow-fs-read --allow-fs-write --cpu-prof-dir --cpu-prof-interval "                     \
	"--cpu-prof-name --heap-prof-dir --heap-prof-interval --heap-prof-name "                   \
	"--heapsnapshot-near-heap-limit --heapsnapshot-signal "                                    \
	"--network-family-autoselection-attempt-timeout --secure-heap "                            \
	"--secure-heap-min --snapshot-blob --build-snapshot-config "                               \
	"--tls-cipher-list --tls-keylog --use-largepages --v8-pool-size "                          \
	"--localstorage-file "

#define RUBY_VALUES                                                                                \
	" --enable --disable --encoding --external-encoding --internal-encoding "                  \
	"--backtrace-limit --crash-report --parser --dump "

/* Behind "--" are arguments; the script is standard input. */
#define PHP_VALUES " --define --docroot --php-ini --server --zend-extension "
#define PHP_CODE   " --run --process-begin --process-code --process-end -- "

#define SHELL(name)                                                                                \
	{                                                                                          \
		name, "cs", "", "oO", "", " --rcfile --init-file ", "", ""                         \
	}

static const struct interpreter interpreters[] = {
	{"python", "c", "m", "WX", "", " --check-hash-based-pycs ", "", ""},
	{"pypy", "c", "m", "WX", "", "", "", ""},
	{"node", "ep", "", "rC", "", NODE_VALUES, " --eval --print --test ", ""},
	{"nodejs", "ep", "", "rC", "", NODE_VALUES, " --eval --print --test ", ""},
	{"deno", "", "", "cL", "",
	 " --config --import-map --lock --log-level --cert --location --seed --env-file ", "",
	 " run serve test "},
	{"bun", "ep", "", "rc", "", " --preload --config --cwd --env-file ", " --eval --print ",
	 " run test "},
	{"ruby", "e", "", "IrCE", "WKxTFi", RUBY_VALUES, "", ""},
	{"perl", "eE", "", "I", "MmFxCDVi:", "", "", ""},
	{"php", "rBRE", "f", "dcStz", "", PHP_VALUES, PHP_CODE, ""},
	{"lua", "", "", "el", "", "", "", ""},
	{"luajit", "", "", "el", "", "", "", ""},
	SHELL("sh"),
	SHELL("bash"),
	SHELL("dash"),
	SHELL("zsh"),
	SHELL("ksh"),
	SHELL("mksh"),
	SHELL("ash"),
};

/* Options of java that take the next word. */
static const char java_values[] =
	" -cp -classpath --class-path -p --module-path --upgrade-module-path --add-modules "
	"--limit-modules --add-opens --add-exports --add-reads --patch-module --source "
	"--enable-native-access -d --describe-module ";

/* Multi-call programs: the name they are called by selects the program. */
static const char multiple[] = " busybox toybox coreutils ";

#define PHP_FPM "php-fpm"

/* Names of many scripts: the directory is added. */
static const char common_names[] = " main index app server run start cli __main__ manage worker ";

static bool has_word(const char *words, const char *word, size_t length)
{
	for (const char *at = words; (at = strchr(at, ' ')) && at[1]; at++)
		if (!strncmp(at + 1, word, length) && at[1 + length] == ' ')
			return length > 0;
	return false;
}

/* "python", "python3", "python3.11", "python3.12d" */
static bool is_version_of(const char *program, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(program, name, length) &&
	       strspn(program + length, "0123456789.-dm") == strlen(program + length);
}

static const struct interpreter *find_interpreter(const char *program)
{
	return find_first(interpreters, sizeof(interpreters) / sizeof(interpreters[0]), known,
			  is_version_of(program, known->name));
}

bool command_is_interpreter(const char *program)
{
	return !strcmp(program, "java") || !strcmp(program, "dotnet") ||
	       has_word(multiple, program, strlen(program)) || is_version_of(program, PHP_FPM) ||
	       find_interpreter(program);
}

/* ---- the arguments --------------------------------------------------------------------------- */

const char *next_argument(struct arguments *a)
{
	const char *argument = a->at;
	const char *zero = a->at < a->end ? memchr(a->at, '\0', a->end - a->at) : NULL;

	if (!zero)
		return NULL;
	a->at = zero + 1;
	return argument;
}

bool command_line__skip_loader(struct arguments *a)
{
	static const char with_value[] =
		" --library-path --inhibit-rpath --audit --preload --argv0 "
		"--glibc-hwcaps-prepend --glibc-hwcaps-mask ";
	const char *word = next_argument(a);

	while ((word = next_argument(a)) && *word == '-')
		if (has_word(with_value, word, strlen(word)))
			next_argument(a);
	if (word)
		a->at = word;
	return word && *word;
}

static bool set_subject(char *subject, const char *text)
{
	size_t length = strnlen(text, COMMAND_SUBJECT_SIZE);

	if (!length || length == COMMAND_SUBJECT_SIZE)
		return false;
	memcpy(subject, text, length + 1);
	return true;
}

static const char *part_before(const char *path, const char *at)
{
	while (at > path && at[-1] == '/')
		at--;
	while (at > path && at[-1] != '/')
		at--;
	return at;
}

/* Code, or an address that may have a password or a token. */
static bool has_secret(const char *path)
{
	return !strncmp(path, "data:", 5) || (strstr(path, "://") && strpbrk(path, "?#@"));
}

static bool set_script(char *subject, const char *path)
{
	const char *name = strrchr(path, '/');
	const char *parent;

	/* a file that is open already, as of <(…): its name is a number */
	if (!strncmp(path, "/dev/fd/", 8) || !strncmp(path, "/proc/", 6) || has_secret(path))
		return false;
	name = name ? name + 1 : path;
	if (name == path || !has_word(common_names, name, strcspn(name, ".")))
		return set_subject(subject, name);
	parent = part_before(path, name);
	/* "./main.py" and "//main.py" have no directory that helps */
	return set_subject(subject, *parent == '/' || *parent == '.' ? name : parent);
}

/* "bundle exec puma" is puma. */
static bool set_script_or_launched(char *subject, const char *path, struct arguments *a)
{
	struct arguments behind = *a;
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *word;

	if (strcmp(name, "bundle") || !(word = next_argument(&behind)) || strcmp(word, "exec") ||
	    !(word = next_argument(&behind)) || *word == '-')
		return set_script(subject, path);
	return set_script(subject, word);
}

/* The kind of an option that takes the next word. */
enum option { OPTION_ALONE, OPTION_VALUE, OPTION_CODE, OPTION_SUBJECT };

/* A cluster of letters, "-Bm". *rest: the word after the letter that takes an argument. */
static enum option short_option(const struct interpreter *i, const char *word, const char **rest)
{
	for (const char *letter = word + 1; *letter; letter++) {
		*rest = letter + 1;
		if (strchr(i->rest, *letter))
			break;
		if (strchr(i->code, *letter))
			return OPTION_CODE;
		if (strchr(i->subject, *letter))
			return OPTION_SUBJECT;
		if (strchr(i->value, *letter))
			return OPTION_VALUE;
	}
	return OPTION_ALONE;
}

static enum option long_option(const struct interpreter *i, const char *word)
{
	size_t length = strcspn(word, "=");

	if (has_word(i->long_code, word, length))
		return OPTION_CODE;
	return !word[length] && has_word(i->long_value, word, length) ? OPTION_VALUE : OPTION_ALONE;
}

static bool script_subject(const struct interpreter *i, struct arguments *a, char *subject)
{
	const char *word, *rest;
	bool command = true;

	while ((word = next_argument(a))) {
		enum option option;

		rest = "";
		if ((*word != '-' && *word != '+') ||
		    (!strcmp(word, "--") && long_option(i, word) != OPTION_CODE)) {
			if (command && has_word(i->commands, word, strlen(word))) {
				command = false;
				continue;
			}
			word = *word == '-' ? next_argument(a) : word;
			return word && set_script_or_launched(subject, word, a);
		}
		if (!word[1]) /* standard input */
			return false;
		option = word[1] == '-' ? long_option(i, word) : short_option(i, word, &rest);
		if (option == OPTION_CODE)
			return false;
		if (option == OPTION_SUBJECT) {
			word = *rest ? rest : next_argument(a);
			return word && set_script(subject, word);
		}
		if (option == OPTION_VALUE && !*rest && !next_argument(a))
			return false;
	}
	return false;
}

static bool java_subject(struct arguments *a, char *subject)
{
	const char *word;

	while ((word = next_argument(a))) {
		if (!strcmp(word, "-jar")) {
			word = next_argument(a);
			return word && set_script(subject, word);
		}
		if (!strcmp(word, "-m") || !strcmp(word, "--module")) {
			word = next_argument(a);
			return word && set_subject(subject, word);
		}
		if (*word != '-' && *word != '@') /* a class, or a file of source */
			return strchr(word, '/') ? set_script(subject, word)
						 : set_subject(subject, word);
		if (has_word(java_values, word, strlen(word)) && !next_argument(a))
			return false;
	}
	return false;
}

static bool dotnet_subject(struct arguments *a, char *subject)
{
	const char *word;
	size_t length;

	while ((word = next_argument(a))) {
		length = strlen(word);
		if (*word != '-' && length > 4 && !strcmp(word + length - 4, ".dll"))
			return set_script(subject, word);
		if (*word != '-' && strcmp(word, "exec"))
			return false;
	}
	return false;
}

/* "/bin/ls -l", "busybox ls -l", and as a shell "-sh": which one it is. */
static bool applet_subject(const char *program, const char *first, struct arguments *a,
			   char *subject)
{
	const char *name = strrchr(first, '/') ? strrchr(first, '/') + 1 : first;
	const struct interpreter *shell;

	if (!strcmp(name, program) && (name = next_argument(a)))
		name = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	if (!name || !isalnum((unsigned char)name[*name == '-']))
		return false;
	name += *name == '-';
	shell = find_interpreter(name);
	return (shell && script_subject(shell, a, subject)) || set_subject(subject, name);
}

/*
 * The name of a process that overwrote its command line: "gunicorn: worker [shop]" is gunicorn,
 * "puma 5.6 (…)" is puma, "php-fpm: pool shop" is php-fpm/shop. The rest may be anything.
 */
static bool title_subject(const char *program, const char *title, const struct arguments *behind,
			  char *subject)
{
	static const char pool[] = PHP_FPM ": pool ";
	size_t length = strcspn(title, ": "), head = sizeof(PHP_FPM) - 1;

	for (const char *at = behind->at; at < behind->end; at++)
		if (*at)
			return false;
	if (!strncmp(title, pool, sizeof(pool) - 1) && strlen(title) < COMMAND_SUBJECT_SIZE) {
		memcpy(subject, PHP_FPM "/", head + 1);
		return set_subject(subject + head + 1, title + sizeof(pool) - 1);
	}
	if (!length || !title[length] || length >= COMMAND_SUBJECT_SIZE ||
	    !isalnum((unsigned char)*title) || memchr(title, '/', length) ||
	    !strncmp(title, program, length))
		return false;
	memcpy(subject, title, length);
	subject[length] = '\0';
	return !find_interpreter(subject);
}

bool command_line__subject(const char *program, const char *text, size_t size,
			   char subject[COMMAND_SUBJECT_SIZE])
{
	const struct interpreter *interpreter = find_interpreter(program);
	struct arguments arguments = {text, text + size};

	const char *first = next_argument(&arguments); /* its own name */

	if (!first)
		return false;
	if (has_word(multiple, program, strlen(program)))
		return applet_subject(program, first, &arguments, subject);
	if (title_subject(program, first, &arguments, subject))
		return true;
	if (!strcmp(program, "java"))
		return java_subject(&arguments, subject);
	if (!strcmp(program, "dotnet"))
		return dotnet_subject(&arguments, subject);
	return interpreter && script_subject(interpreter, &arguments, subject);
}
