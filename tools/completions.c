/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * completions bash|zsh|fish: a shell's completions of the command line, from the tables that the program itself
 * parses it by. What an option does is taken from its line of the help.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/settings.h"
#include "cli/commands.h"

/* One option of a command. */
struct flag {
	const char *name;
	char letter; /* 0: none */
	bool has_value, repeats;
	char text[128]; /* what it does; may be "" */
};

/* The words behind "--name VALUE  " in the help. */
static void find_text(const char *help, struct flag *flag)
{
	char wanted[64];
	const char *line = help;

	snprintf(wanted, sizeof(wanted), "--%s", flag->name);
	while ((line = strstr(line, wanted))) {
		const char *at = line + strlen(wanted);
		const char *words = strstr(at, "  "), *end = strchr(at, '\n');

		line = at;
		if (!strchr(" \n[", *at) || !words || !end || words > end)
			continue;
		while (*words == ' ')
			words++;
		snprintf(flag->text, sizeof(flag->text), "%.*s", (int)(end - words), words);
		return;
	}
}

/* In single quotes: how a shell has a quote there, and what else wants a backslash. */
static void print_quoted(const char *text, const char *quote, const char *special)
{
	for (; *text; text++)
		if (*text == '\'')
			printf("%s", quote);
		else
			printf(strchr(special, *text) ? "\\%c" : "%c", *text);
}

typedef void (*flag_fn)(const struct command *command, const struct flag *flag);

static void each_setting(const struct command *command, flag_fn show)
{
	for (const struct setting *s = agent_settings__table(); s->key; s++) {
		struct flag flag = {.name = s->key,
				    .letter = s->flag,
				    .has_value = s->argument != NULL,
				    .repeats = s->is_list || s->of_sink};
		char line[256];

		snprintf(line, sizeof(line), "--%s  %s\n", s->key, s->help);
		find_text(line, &flag);
		show(command, &flag);
	}
}

static const char *words_of(const struct command *command)
{
	return command == &cmd_perf_map ? "find tidy update" : "";
}

static void each_flag(const struct command *command, flag_fn show)
{
	if (command == &cmd_agent)
		each_setting(command, show);
	for (const struct cli_option *o = command->options; o->name; o++) {
		struct flag flag = {
			.name = o->name,
			.letter = o->letter,
			.has_value = o->has_value,
		};

		find_text(command->help, &flag);
		show(command, &flag);
	}
}

static void print_commands(const char *between)
{
	for (const struct command *const *c = commands; *c; c++)
		printf("%s%s", (*c)->name, between);
	printf("version%shelp", between);
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void print_bash_flag(const struct command *command, const struct flag *flag)
{
	(void)command;
	if (flag->letter)
		printf("-%c ", flag->letter);
	if (flag->name)
		printf("--%s ", flag->name);
}

static void print_bash(void)
{
	printf("_sysprof() {\n\tlocal word=${COMP_WORDS[COMP_CWORD]} words=\n"
	       "\tif ((COMP_CWORD == 1)); then\n\t\twords='");
	print_commands(" ");
	printf("'\n\telse\n\t\tcase ${COMP_WORDS[1]} in\n");
	for (const struct command *const *c = commands; *c; c++) {
		printf("\t\t%s) words='", (*c)->name);
		each_flag(*c, print_bash_flag);
		printf("'\n\t\t\t[[ $word == -* ]] || words='%s' ;;\n", words_of(*c));
	}
	printf("\t\tesac\n\tfi\n"
	       "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n}\n"
	       "complete -o default -F _sysprof sysprof\n");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

static void print_zsh_name(const struct flag *flag, const char *dashes, const char *name)
{
	printf(" \\\n\t\t\t'%s%s%s[", flag->repeats ? "*" : "", dashes, name);
	print_quoted(flag->text, "'\\''", "[]:\\");
	printf("]%s'", flag->has_value ? ":value:_files" : "");
}

static void print_zsh_flag(const struct command *command, const struct flag *flag)
{
	(void)command;
	if (flag->letter)
		print_zsh_name(flag, "-", (char[]){flag->letter, '\0'});
	if (flag->name)
		print_zsh_name(flag, "--", flag->name);
}

static void print_zsh(void)
{
	printf("#compdef sysprof\n\n_sysprof() {\n\tlocal -a commands=(\n");
	for (const struct command *const *c = commands; *c; c++)
		printf("\t\t'%s:%s'\n", (*c)->name, (*c)->summary);
	printf("\t\t'version:print the version'\n\t\t'help:print the options of a command'\n\t)\n"
	       "\tif ((CURRENT == 2)); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n"
	       "\tshift words\n\t((CURRENT--))\n\tcase $words[1] in\n");
	for (const struct command *const *c = commands; *c; c++) {
		printf("\t%s)\n\t\t_arguments", (*c)->name);
		each_flag(*c, print_zsh_flag);
		if (*words_of(*c))
			printf(" \\\n\t\t\t'1:command:(%s)'", words_of(*c));
		printf(" \\\n\t\t\t'*:file:_files' ;;\n");
	}
	printf("\tesac\n}\n\n_sysprof \"$@\"\n");
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void print_fish_flag(const struct command *command, const struct flag *flag)
{
	printf("complete -c sysprof -n '__fish_seen_subcommand_from %s'", command->name);
	if (flag->name)
		printf(" -l %s", flag->name);
	if (flag->letter)
		printf(" -s %c", flag->letter);
	printf("%s -d '", flag->has_value ? " -r" : "");
	print_quoted(flag->text, "\\'", "\\");
	printf("'\n");
}

static void print_fish(void)
{
	for (const struct command *const *c = commands; *c; c++) {
		printf("complete -c sysprof -f -n __fish_use_subcommand -a %s -d '%s'\n",
		       (*c)->name, (*c)->summary);
		if (*words_of(*c))
			printf("complete -c sysprof -n '__fish_seen_subcommand_from %s' -a '%s'\n",
			       (*c)->name, words_of(*c));
		each_flag(*c, print_fish_flag);
	}
	printf("complete -c sysprof -f -n __fish_use_subcommand -a 'version help'\n");
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "bash"))
		print_bash();
	else if (argc == 2 && !strcmp(argv[1], "zsh"))
		print_zsh();
	else if (argc == 2 && !strcmp(argv[1], "fish"))
		print_fish();
	else
		return fprintf(stderr, "usage: completions bash|zsh|fish\n"), 2;
	return fflush(stdout) || ferror(stdout);
}
