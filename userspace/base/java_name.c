/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/java_name.h"

#include <string.h>

#include "base/minmax.h"

/* ---- text ------------------------------------------------------------------------------------ */

/* Text that does not fit is left out. */
struct line {
	char *text;
	size_t size, used;
};

static struct line line_in(char *text, size_t size)
{
	*text = '\0';
	return (struct line){text, size, 0};
}

static void add_text(struct line *line, const char *text, size_t size)
{
	size = min_u64(size, line->size - 1 - line->used);
	memcpy(line->text + line->used, text, size);
	line->used += size;
	line->text[line->used] = '\0';
}

static void add_string(struct line *line, const char *text)
{
	add_text(line, text, strlen(text));
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
static bool add_type(struct line *line, const char **at)
{
	size_t dimensions = strspn(*at, "[");
	const char *type = *at + dimensions, *basic = basic_type(*type), *end;

	if (*type == 'L') {
		end = strchr(type, ';');
		if (!end)
			return false;
		add_text(line, type + 1, (size_t)(end - type) - 1);
		*at = end + 1;
	} else if (basic) {
		add_string(line, basic);
		*at = type + 1;
	} else {
		return false;
	}
	for (; dimensions; dimensions--)
		add_string(line, "[]");
	return true;
}

static void add_brief(struct line *line, const struct java_method *m)
{
	add_text(line, m->class_name, size_without_address(m->class_name, strlen(m->class_name)));
	add_string(line, ".");
	add_string(line, m->name);
}

static bool add_full(struct line *line, const struct java_method *m)
{
	const char *at = m->descriptor, *end = strrchr(at, ')'), *result = end ? end + 1 : at;

	if (*at++ != '(' || !end || !add_type(line, &result) || *result)
		return false;
	add_string(line, " ");
	add_brief(line, m);
	add_string(line, "(");
	for (const char *between = ""; *at != ')'; between = ", ") {
		add_string(line, between);
		if (!add_type(line, &at))
			return false;
	}
	add_string(line, ")");
	return true;
}

void java_name__full(char *full, size_t size, const struct java_method *method)
{
	struct line line = line_in(full, size);

	if (!add_full(&line, method)) {
		line = line_in(full, size);
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
	struct line brief = line_in(name->brief, sizeof(name->brief));
	char parts[JAVA_NAME_MAX];
	struct line line = line_in(parts, sizeof(parts));

	if (*text != 'L' || !end || end == text + 1)
		return false;
	*end = '\0';
	method = end + 1;
	method += !strncmp(method, "::", 2) ? 2 : 0;
	open = strchr(method, '(');
	add_text(&line, method, open ? (size_t)(open - method) : strlen(method));
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
	struct line brief = line_in(name->brief, sizeof(name->brief));
	struct line full = line_in(name->full, sizeof(name->full));
	size_t class_size;

	if (!space || !open || space > open || space == text || strchr(text, '[') == text)
		return false;
	method = memrchr(space, '.', (size_t)(open - space));
	if (!method || method == space + 1 || method + 1 == open || strstr(text, "::") ||
	    strcspn(text, ":<>*&,;") < (size_t)(space - text) ||
	    (strchr(open, ')') && strchr(open, ')')[1]))
		return false;
	class_size = size_without_address(space + 1, (size_t)(method - space) - 1);
	add_text(&brief, space + 1, class_size);
	add_text(&brief, method, (size_t)(open - method));
	add_text(&full, text, (size_t)(space - text) + 1);
	add_string(&full, name->brief);
	add_string(&full, open);
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
