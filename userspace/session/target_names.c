/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/target_names.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "base/parse.h"
#include "base/text_line.h"
#include "filter/pattern.h"
#include "services/cgroup_path.h"
#include "services/users.h"
#include "session/named_containers.h"

#define PATTERN_MAX 1024 /* bytes */
#define COMM_MAX    15	 /* bytes that the kernel keeps */
#define STATES	    64	 /* of a struct name_glob */

struct target_pattern {
	enum target_name kind;
	bool excludes;
	const char *text;
	struct pattern *expression; /* of a service */
};

struct target_names {
	struct target_pattern patterns[TARGET_NAMES_MAX];
	size_t count;
	unsigned int states;		     /* used ones of the last glob */
	struct named_containers *containers; /* NULL: no pattern is of one */
	struct name_rules rules;
};

static const char *const options[] = {
#define X(id, text) text,
	TARGET_NAMES(X)
#undef X
};

/* What the kernel side compares for them. */
static const uint32_t kernel_kinds[] = {
	[TARGET_BY_COMM] = NAMED_BY_COMM,	[TARGET_BY_EXE] = NAMED_BY_EXE,
	[TARGET_BY_USER] = NAMED_BY_USER,	[TARGET_BY_UNIT] = NAMED_BY_GROUP,
	[TARGET_BY_CONTAINER] = NAMED_BY_GROUP, [TARGET_BY_SERVICE] = NAMED_BY_SERVICE,
};

/* ---- names of programs, for the kernel ------------------------------------------------------- */

/* The size of the part of a pattern at `at` that matches one byte. */
static size_t element_size(const char *at)
{
	const char *end = at + 1;

	if (*at == '\\' && at[1])
		return 2;
	if (*at != '[')
		return 1;
	end += *end == '!' || *end == '^';
	end += *end == ']';
	while (*end && *end != ']') {
		const char *close = *end == '[' && end[1] && strchr(":.=", end[1])
					    ? strstr(end + 2, (char[]){end[1], ']', '\0'})
					    : NULL;

		end = close ? close + 2 : end + 1;
	}
	return *end ? (size_t)(end + 1 - at) : 1;
}

/* Which bytes does it match? A bracket matches what fnmatch() says. */
static void accept_bytes(struct name_glob *glob, const char *at, size_t size, unsigned int state)
{
	char element[PATTERN_MAX + 1], text[2] = "";

	memcpy(element, at, size);
	element[size] = '\0';
	if (size == 1 && *at == '[') /* it has no end */
		memcpy(element, "\\[", sizeof("\\["));
	for (unsigned int byte = 1; byte < 256; byte++) {
		text[0] = (char)byte;
		if (!fnmatch(element, text, 0))
			glob->accepts[byte] |= 1ull << state;
	}
}

static size_t count_elements(const char *pattern)
{
	size_t count = 0;

	for (const char *at = pattern; *at; at += element_size(at))
		count += *at != '*';
	return count;
}

static void compile_into(struct name_glob *glob, unsigned int state, const char *pattern,
			 bool excludes)
{
	glob->start |= 1ull << state;
	for (const char *at = pattern; *at; at += element_size(at)) {
		if (*at == '*')
			glob->loops |= 1ull << state;
		else
			accept_bytes(glob, at, element_size(at), state++);
	}
	*(excludes ? &glob->exclude : &glob->include) |= 1ull << state;
}

static int add_comm(struct target_names *names, bool excludes, const char *pattern,
		    struct failure *failure)
{
	struct name_rules *rules = &names->rules;
	size_t needs = count_elements(pattern) + 1;

	if (needs > COMM_MAX + 1)
		return fail(
			failure, -EINVAL,
			"no process has a name of more than %d bytes: give the first %d, or --exe",
			COMM_MAX, COMM_MAX);
	if (!rules->glob_count || names->states + needs > STATES) {
		if (rules->glob_count == NAME_GLOBS)
			return fail(failure, -E2BIG, "too many names of processes");
		rules->glob_count++;
		names->states = 0;
	}
	compile_into(&rules->globs[rules->glob_count - 1], names->states, pattern, excludes);
	names->states += needs;
	return 0;
}

/* ---- users ----------------------------------------------------------------------------------- */

static int add_user(struct target_names *names, bool excludes, const char *text,
		    struct failure *failure)
{
	struct name_rules *rules = &names->rules;
	struct name_user *user = rules->users;
	uint64_t number;
	uid_t uid = 0;
	int err = users_find("/etc/passwd", text, &uid);

	if (err == -ENOMEM)
		return err;
	number = uid;
	if (err && parse_u64(text, 0, UINT32_MAX - 1, &number)) {
		fail(failure, -EINVAL, "there is no user of this name in /etc/passwd");
		return fail_remedy(failure, -EINVAL, "its number, as shown by id -u %s", text);
	}
	while (user < rules->users + rules->user_count && user->uid != number)
		user++;
	if (user == rules->users + NAME_USERS)
		return fail(failure, -E2BIG, "too many users");
	if (user == rules->users + rules->user_count)
		rules->user_count++;
	user->uid = (uint32_t)number;
	user->verdict |= excludes ? NAME_EXCLUDED : NAME_INCLUDED;
	return 0;
}

/* ---- services -------------------------------------------------------------------------------- */

static int add_service(bool excludes, const char *text, struct pattern **expression,
		       struct failure *failure)
{
	struct failure reason = {};

	*expression = pattern__new(text, &reason);
	if (*expression || !*reason.what)
		return *expression ? 0 : -ENOMEM;
	return fail(failure, -EINVAL, "--%sservice %s: %s", excludes ? "exclude-" : "", text,
		    reason.what);
}

static bool matches_service(struct pattern *expression, const char *name)
{
	pattern__begin(expression);
	return pattern__matches(expression, name, strlen(name)) == 1;
}

/* ---- the list -------------------------------------------------------------------------------- */

int target_names__add(struct target_names **result, enum target_name kind, bool excludes,
		      const char *pattern, struct failure *failure)
{
	struct target_names *names = *result ? *result : calloc(1, sizeof(*names));
	struct pattern *expression = NULL;
	int err = 0;

	if (!names)
		return -ENOMEM;
	*result = names;
	if (!*pattern || strlen(pattern) > PATTERN_MAX)
		return fail(failure, -EINVAL, "the name is %s", *pattern ? "too long" : "empty");
	if (names->count == TARGET_NAMES_MAX)
		return fail(failure, -E2BIG, "more than %u names", TARGET_NAMES_MAX);
	if (kind == TARGET_BY_COMM)
		err = add_comm(names, excludes, pattern, failure);
	else if (kind == TARGET_BY_USER)
		err = add_user(names, excludes, pattern, failure);
	else if (kind == TARGET_BY_SERVICE)
		err = add_service(excludes, pattern, &expression, failure);
	else if (kind == TARGET_BY_CONTAINER && !names->containers &&
		 !(names->containers = named_containers__new("/")))
		err = -ENOMEM;
	if (err)
		return err;
	*(excludes ? &names->rules.exclude : &names->rules.include) |= kernel_kinds[kind];
	names->patterns[names->count++] = (struct target_pattern){kind, excludes, pattern,
								  expression};
	return 0;
}

void target_names__free(struct target_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->count; i++)
		pattern__free(names->patterns[i].expression);
	named_containers__free(names->containers);
	free(names);
}

bool target_names__include(const struct target_names *names)
{
	return names && names->rules.include;
}

/* As a shell takes it. */
static void add_quoted(struct text_line *line, const char *text)
{
	if (!text[strcspn(text, " \t\n*?[]\\'\"$&;|<>()#~`!{}")]) {
		add_text(line, "%s", text);
		return;
	}
	add_text(line, "'");
	for (; *text; text++)
		add_text(line, *text == '\'' ? "'\\''" : "%c", *text);
	add_text(line, "'");
}

size_t target_names__describe(const struct target_names *names, char *text, size_t size)
{
	struct text_line line = {text, size, 0};

	*text = '\0';
	for (size_t i = 0; names && i < names->count; i++) {
		const struct target_pattern *p = &names->patterns[i];

		add_text(&line, "%s--%s%s ", i ? " " : "", p->excludes ? "exclude-" : "",
			 options[p->kind]);
		add_quoted(&line, p->text);
	}
	return strlen(text);
}

/* ---- what is judged by its path -------------------------------------------------------------- */

/* Names have backslashes and brackets, which are special in patterns. */
static bool matches_text(const char *pattern, const char *text)
{
	return !strcmp(pattern, text) || !fnmatch(pattern, text, 0);
}

static bool matches_exe(const char *pattern, const char *path)
{
	const char *slash = strrchr(path, '/');

	return matches_text(pattern, strchr(pattern, '/') || !slash ? path : slash + 1);
}

/* "nginx" is nginx.service. */
static bool is_unit(const char *pattern, const char *name)
{
	char service[PATTERN_MAX + sizeof(".service")];

	snprintf(service, sizeof(service), "%s.service", pattern);
	return matches_text(pattern, name) || matches_text(service, name);
}

/* A group of the path has the unit's name. */
static bool matches_unit(const char *pattern, const char *path)
{
	char name[CGROUP_NAME_SIZE];

	while (pattern && *path) {
		path = cgroup_path_part(path, name);
		if (*name && is_unit(pattern, name))
			return true;
		pattern = cgroup_pattern_below(pattern, name);
	}
	return false;
}

static bool matches(const struct target_names *names, const struct target_pattern *p,
		    const char *path, bool *may_change)
{
	switch (p->kind) {
	case TARGET_BY_EXE:
		return matches_exe(p->text, path);
	case TARGET_BY_UNIT:
		return matches_unit(p->text, path);
	case TARGET_BY_SERVICE:
		return matches_service(p->expression, path);
	default:
		return named_containers__match(names->containers, p->text, path, monotonic_ns(),
					       may_change);
	}
}

/* A name_judge_fn. */
static uint32_t judge(void *context, uint32_t kind, const char *path)
{
	const struct target_names *names = context;
	bool may_change = false;
	uint32_t verdict = 0;

	for (size_t i = 0; i < names->count; i++) {
		const struct target_pattern *p = &names->patterns[i];

		if (kernel_kinds[p->kind] == kind && matches(names, p, path, &may_change))
			verdict |= p->excludes ? NAME_EXCLUDED : NAME_INCLUDED;
	}
	return verdict | (may_change ? NAME_MAY_CHANGE : 0);
}

struct name_judge target_names__judge(struct target_names *names)
{
	if (!names)
		return (struct name_judge){};
	return (struct name_judge){.rules = &names->rules, .judge = judge, .context = names};
}
