/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/process_title.h"

#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/utf8.h"

#define PART_MAX  72 /* bytes of each of three parts */
#define COMM_SIZE 15 /* a longer name of a program is cut by the kernel */

struct title {
	char *text;
	size_t size;
};

static void add(struct title *t, const char *separator, const char *part, size_t most)
{
	int length = (int)utf8_cut(part, most);

	t->size += (size_t)snprintf(t->text + t->size, PROCESS_TITLE_SIZE - t->size, "%s%.*s",
				    separator, length, part);
}

/* The service's name repeats it. */
static bool is_said(const char *service, const char *name)
{
	return !*name || !strcmp(service, name) ||
	       (strlen(name) == COMM_SIZE && !strncmp(service, name, COMM_SIZE));
}

/* The service "nginx" of "nginx.service"; in a user's own there are all of his. */
static bool is_place(const char *service, const char *unit)
{
	size_t length = strcspn(unit, "@.");

	return *unit && strncmp(unit, "user@", 5) &&
	       (strlen(service) != length || strncmp(service, unit, length) != 0);
}

static void add_place(struct title *t, const struct profile *p, const struct profile_names *names,
		      const char *separator)
{
	const char *service = profile__string(p, names->service);
	const char *container = profile__string(p, names->container);
	const char *unit = profile__string(p, names->unit);

	if (names->pod.v && names->name_space.v) {
		add(t, separator, profile__string(p, names->name_space), PART_MAX / 3);
		add(t, "/", profile__string(p, names->pod), 2 * PART_MAX / 3);
	} else if (names->pod.v) {
		add(t, separator, profile__string(p, names->pod), PART_MAX);
	} else if (!is_said(service, container)) {
		add(t, separator, container, PART_MAX);
	} else if (is_place(service, unit)) {
		add(t, separator, unit, PART_MAX);
	}
}

const char *process_title(const struct profile *p, const struct profile_process *process,
			  char title[PROCESS_TITLE_SIZE])
{
	const char *name = profile__string(p, process->name);
	const char *service = profile__string(p, process->names.service);
	struct title t = {title, 0};
	size_t begin;

	/* of a kernel thread, and of what nothing is known of, the name is all */
	if (!*service || process->is_kernel || !strcmp(service, "unknown"))
		return name;
	add(&t, "", service, PART_MAX);
	begin = t.size;
	if (!is_said(service, name))
		add(&t, " (", name, PART_MAX);
	add_place(&t, p, &process->names, t.size > begin ? ", " : " (");
	if (t.size > begin)
		add(&t, ")", "", 1);
	return t.size ? title : name;
}

void write_process_names(const struct profile *p, const struct profile_process *process,
			 struct json_writer *w)
{
#define X(field, label)                                                                            \
	if (process->names.field.v)                                                                \
		json_key_string(w, label, profile__string(p, process->names.field));
	PROCESS_NAMES(X)
#undef X
}
