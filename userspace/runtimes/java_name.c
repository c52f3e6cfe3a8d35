/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/java_name.h"

#include <string.h>

#include "base/text_line.h"

/* ---- text ------------------------------------------------------------------------------------ */

static struct text_line line_in(char *text, size_t size)
{
	*text = '\0';
	return (struct text_line){text, size, 0};
}

static void dots_for_slashes(char *name)
{
	for (; *name; name++)
		if (*name == '/')
			*name = '.';
}

/*
 * Size of a class name without its address: "W$$Lambda+0x00007f86a4001000" in memory, with a slash
 * in a perf map, with a dot in JVMTI.
 */
static size_t size_without_address(const char *name, size_t size)
{
	size_t at = size;

	while (at && strchr("0123456789abcdef", name[at - 1]))
		at--;
	if (at == size || at < 4 || name[at - 1] != 'x' || name[at - 2] != '0' ||
	    !strchr("+/.", name[at - 3]))
		return size;
	return at - 3;
}

/* ---- from descriptors ------------------------------------------------------------------------ */

static const char *basic_type(char letter)
{
	static const struct {
		char letter;
		const char *name;
	} types[] = {
		{'B', "byte"}, {'C', "char"},  {'D', "double"},	 {'F', "float"}, {'I', "int"},
		{'J', "long"}, {'S', "short"}, {'Z', "boolean"}, {'V', "void"},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].letter == letter)
			return types[i].name;
	return NULL;
}

/* One type of a descriptor: "[Ljava/lang/String;". False: it is none. */
static bool add_type(struct text_line *line, const char **at)
{
	size_t dimensions = strspn(*at, "[");
	const char *type = *at + dimensions, *basic = basic_type(*type), *end;

	if (*type == 'L') {
		end = strchr(type, ';');
		if (!end)
			return false;
		add_text(line, "%.*s", (int)(end - type - 1), type + 1);
		*at = end + 1;
	} else if (basic) {
		add_text(line, "%s", basic);
		*at = type + 1;
	} else {
		return false;
	}
	for (; dimensions; dimensions--)
		add_text(line, "[]");
	return true;
}

static void add_brief(struct text_line *line, const struct java_method *m)
{
	int size = (int)size_without_address(m->class_name, strlen(m->class_name));

	add_text(line, "%.*s.%s", size, m->class_name, m->name);
}

static bool add_full(struct text_line *line, const struct java_method *m)
{
	const char *at = m->descriptor, *end = strrchr(at, ')'), *result = end ? end + 1 : at;

	if (*at++ != '(' || !end || !add_type(line, &result) || *result)
		return false;
	add_text(line, " ");
	add_brief(line, m);
	add_text(line, "(");
	for (const char *between = ""; *at != ')'; between = ", ") {
		add_text(line, "%s", between);
		if (!add_type(line, &at))
			return false;
	}
	add_text(line, ")");
	return true;
}

void java_name__full(char *full, size_t size, const struct java_method *method)
{
	struct text_line line = line_in(full, size);

	if (!add_full(&line, method)) {
		line.used = 0;
		add_brief(&line, method);
	}
	dots_for_slashes(full);
}

/* ---- names of JIT code ----------------------------------------------------------------------- */

/* LCLASS;METHOD, LCLASS;METHODDESCRIPTOR, LCLASS;::METHOD */
static bool parse_descriptors(struct java_name *name, char *text)
{
	char *end = strchr(text, ';'), *open, *method;
	struct java_method m = {.class_name = text + 1, .descriptor = ""};
	struct text_line brief = line_in(name->brief, sizeof(name->brief));
	char parts[JAVA_NAME_MAX];
	struct text_line line = line_in(parts, sizeof(parts));

	if (*text != 'L' || !end || end == text + 1)
		return false;
	*end = '\0';
	method = end + 1;
	method += !strncmp(method, "::", 2) ? 2 : 0;
	open = strchr(method, '(');
	add_text(&line, "%.*s", (int)strcspn(method, "("), method);
	m.name = parts;
	m.descriptor = open ? open : "";
	if (!*parts || strpbrk(parts, " .;:/") || strpbrk(m.class_name, " ()<>:"))
		return false;
	add_brief(&brief, &m);
	dots_for_slashes(name->brief);
	java_name__full(name->full, sizeof(name->full), &m);
	return true;
}

/* TYPE CLASS.METHOD(TYPES), where the end may be cut off. */
static bool parse_signature(struct java_name *name, const char *text)
{
	const char *space = strchr(text, ' '), *open = strchr(text, '('), *method;
	struct text_line brief = line_in(name->brief, sizeof(name->brief));
	struct text_line full = line_in(name->full, sizeof(name->full));
	size_t class_size;

	if (!space || !open || space > open || space == text || strchr(text, '[') == text)
		return false;
	method = memrchr(space, '.', (size_t)(open - space));
	if (!method || method == space + 1 || method + 1 == open || strstr(text, "::") ||
	    strcspn(text, ":<>*&,;") < (size_t)(space - text) ||
	    (strchr(open, ')') && strchr(open, ')')[1]))
		return false;
	class_size = size_without_address(space + 1, (size_t)(method - space) - 1);
	add_text(&brief, "%.*s%.*s", (int)class_size, space + 1, (int)(open - method), method);
	add_text(&full, "%.*s %s%s", (int)(space - text), text, name->brief, open);
	return true;
}

bool java_name__parse(struct java_name *name, const char *text, size_t size)
{
	char copy[JAVA_NAME_MAX];

	if (size >= sizeof(copy) || memchr(text, '\0', size))
		return false;
	memcpy(copy, text, size);
	copy[size] = '\0';
	return parse_signature(name, copy) || parse_descriptors(name, copy);
}
