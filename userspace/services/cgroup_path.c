/* SPDX-License-Identifier: BSD-2-Clause */
#include "services/cgroup_path.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"

#define ID_DIGITS  64 /* of most runtimes */
#define ECS_DIGITS 32

/* A part of a path; not NUL-terminated. */
struct part {
	const char *at;
	size_t size;
};

static bool begins(struct part p, const char *text)
{
	size_t size = strlen(text);

	return p.size >= size && !memcmp(p.at, text, size);
}

static bool cut_end(struct part *p, const char *text)
{
	size_t size = strlen(text);

	if (p->size < size || memcmp(p->at + p->size - size, text, size))
		return false;
	p->size -= size;
	return true;
}

static struct part without(struct part p, size_t first)
{
	return (struct part){p.at + first, p.size - first};
}

static void set_text(char *text, size_t size, struct part p)
{
	size_t length = min_u64(p.size, size - 1);

	memcpy(text, p.at, length);
	text[length] = '\0';
}

static bool are_hex(const char *at, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!isdigit((unsigned char)at[i]) && (at[i] < 'a' || at[i] > 'f'))
			return false;
	return true;
}

static size_t digits_at_end(struct part p)
{
	size_t count = 0;

	while (count < p.size && isdigit((unsigned char)p.at[p.size - 1 - count]))
		count++;
	return count;
}

/* systemd writes what may not be in a name as "\x2d". */
static void unescape(char *text)
{
	char *to = text, digits[3] = "";

	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && from[1] == 'x' && isxdigit((unsigned char)from[2]) &&
		    isxdigit((unsigned char)from[3])) {
			memcpy(digits, from + 2, 2);
			*to = (char)strtoul(digits, NULL, 16);
			from += 4;
		} else {
			*to = *from++;
		}
		if (!*to)
			*to = '_';
	}
	*to = '\0';
}

/* ---- containers ------------------------------------------------------------------------------ */

/* "<64 digits>", "docker-<64>.scope", "x.slice:cri-containerd:<64>", "<32 digits>-<number>" */
static bool take_id(struct cgroup_place *place, struct part p)
{
	size_t number;

	cut_end(&p, ".scope");
	cut_end(&p, ".service");
	if (p.size >= ID_DIGITS && are_hex(p.at + p.size - ID_DIGITS, ID_DIGITS) &&
	    (p.size == ID_DIGITS || !are_hex(p.at + p.size - ID_DIGITS - 1, 1))) {
		struct part before = {p.at, p.size - ID_DIGITS};

		place->is_monitor = memmem(before.at, before.size, "conmon", 6) != NULL;
		set_text(place->container, sizeof(place->container), without(p, before.size));
		return true;
	}
	number = digits_at_end(p);
	if (!number || p.size != ECS_DIGITS + 1 + number || p.at[ECS_DIGITS] != '-' ||
	    !are_hex(p.at, ECS_DIGITS))
		return false;
	set_text(place->container, sizeof(place->container), p);
	place->is_monitor = false;
	return true;
}

static bool take_container_name(struct cgroup_place *place, struct part p)
{
	static const char *const prefixes[] = {"lxc.payload.", "lxc.monitor.", "machine-"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		struct part name = p;

		if (!begins(p, prefixes[i]) ||
		    (i == 2 && !cut_end(&name, ".scope") && !cut_end(&name, ".service")))
			continue;
		name = without(name, strlen(prefixes[i]));
		if (!name.size)
			return false;
		set_text(place->container_name, sizeof(place->container_name), name);
		unescape(place->container_name);
		place->is_monitor = i == 1;
		place->container[0] = '\0';
		return true;
	}
	return false;
}

/* "pod<uid>", "kubepods-burstable-pod<uid with _>.slice" */
static bool take_pod(struct cgroup_place *place, struct part p)
{
	const char *dash;

	cut_end(&p, ".slice");
	dash = memmem(p.at, p.size, "-pod", 4);
	if (!begins(p, "pod") && !(begins(p, "kubepods") && dash))
		return false;
	p = without(p, begins(p, "pod") ? 3 : (size_t)(dash - p.at) + 4);
	if (p.size < 32 || p.size >= sizeof(place->pod_uid))
		return false;
	for (size_t i = 0; i < p.size; i++)
		if (!are_hex(p.at + i, 1) && p.at[i] != '_' && p.at[i] != '-')
			return false;
	set_text(place->pod_uid, sizeof(place->pod_uid), p);
	for (char *c = place->pod_uid; *c; c++)
		*c = *c == '_' ? '-' : *c;
	return true;
}

/* ---- units ----------------------------------------------------------------------------------- */

/* "run-u12", "run-r<digits>", "run-p12-i13": of systemd-run without a name */
static bool is_transient(struct part p)
{
	if (!begins(p, "run-"))
		return false;
	for (size_t i = 4; i < p.size; i++)
		if (!are_hex(p.at + i, 1) && !strchr("-urpi", p.at[i]))
			return false;
	return true;
}

/* A number that is random, or counts: one behind the name of an application. */
static void cut_random(struct part *p)
{
	size_t digits = digits_at_end(*p);

	if (digits && digits + 1 < p->size && p->at[p->size - digits - 1] == '-')
		p->size -= digits + 1;
}

/* A unit that is no service; names found further out are discarded. */
static void take_none(struct cgroup_place *place, struct part unit)
{
	set_text(place->unit, sizeof(place->unit), unit);
	place->instance[0] = place->unit_service[0] = '\0';
}

static void take_named(struct cgroup_place *place, struct part name, const char *suffix)
{
	const char *at = memchr(name.at, '@', name.size);
	struct part before = {name.at, at ? (size_t)(at - name.at) : name.size};

	set_text(place->unit_service, sizeof(place->unit_service), before);
	place->instance[0] = '\0';
	if (at && at > name.at)
		set_text(place->instance, sizeof(place->instance), without(name, before.size + 1));
	/* one for each connection: a number and addresses */
	if (strchr(place->instance, ':'))
		place->instance[0] = '\0';
	snprintf(place->unit, sizeof(place->unit), "%.*s%s%s", (int)min_u64(before.size, 200),
		 name.at, at ? "@" : "", suffix);
	unescape(place->unit_service);
	unescape(place->instance);
}

static void take_service(struct cgroup_place *place, struct part name)
{
	if (begins(name, "user@"))
		take_none(place, (struct part){"user@.service", 13});
	else if (is_transient(name))
		take_none(place, (struct part){"", 0});
	else
		take_named(place, name, ".service");
}

/* "app-gnome-firefox-1234" is the application; sessions, jobs and systemd-run have no name. */
static void take_scope(struct cgroup_place *place, struct part unit, struct part name)
{
	if (begins(name, "app-")) {
		cut_random(&name);
		take_named(place, name, ".scope");
		memmove(place->unit_service, place->unit_service + 4,
			strlen(place->unit_service) - 3);
	} else if (begins(name, "session-") || is_transient(name)) {
		take_none(place, (struct part){"", 0});
	} else {
		take_none(place, unit);
	}
}

static void take_unit(struct cgroup_place *place, struct part p)
{
	struct part name = p;

	if (cut_end(&name, ".service") && name.size)
		take_service(place, name);
	else if (cut_end(&name, ".scope") && name.size)
		take_scope(place, p, name);
}

/* "kubepods-pod<uid>.slice:cri-containerd:<id>": all in one part */
static void take_pod_before(struct cgroup_place *place, struct part p)
{
	const char *colon = memchr(p.at, ':', p.size);

	if (colon)
		take_pod(place, (struct part){p.at, colon - p.at});
}

void cgroup_place__parse(struct cgroup_place *place, const char *path)
{
	*place = (struct cgroup_place){};
	while (*path) {
		struct part p = {path, strcspn(path, "/")};

		path += p.size + (path[p.size] == '/');
		if (!p.size)
			continue;
		if (take_id(place, p)) {
			take_pod_before(place, p);
			place->container_name[0] = '\0';
			take_none(place, (struct part){"", 0});
		} else if (take_container_name(place, p)) {
			take_none(place, (struct part){"", 0});
		} else if (!take_pod(place, p)) {
			take_unit(place, p);
		}
	}
}

void cgroup_place__of_process(struct cgroup_place *place, const char *path)
{
	cgroup_place__parse(place, path);
	if (place->is_monitor)
		place->container[0] = place->container_name[0] = place->pod_uid[0] = '\0';
}

/* ---- owners ---------------------------------------------------------------------------------- */

const char *cgroup_path_part(const char *path, char name[CGROUP_NAME_SIZE])
{
	size_t size = strcspn(path, "/");

	*name = '\0';
	if (size < CGROUP_NAME_SIZE)
		set_text(name, CGROUP_NAME_SIZE, (struct part){path, size});
	return path + size + (path[size] == '/');
}

enum cgroup_owner cgroup_owner_of(const char *name)
{
	struct part p = {name, strlen(name)};
	struct cgroup_place place = {};

	if (take_id(&place, p) || take_container_name(&place, p))
		return CGROUP_OF_CONTAINER;
	return begins(p, "user@") && cut_end(&p, ".service") ? CGROUP_OF_USER : CGROUP_OF_NONE;
}

const char *cgroup_pattern_below(const char *pattern, const char *name)
{
	const char *below = strchr(pattern, '/');
	char owner[CGROUP_NAME_SIZE];

	if (cgroup_owner_of(name) == CGROUP_OF_NONE)
		return pattern;
	if (!below || (size_t)(below - pattern) >= sizeof(owner))
		return NULL;
	set_text(owner, sizeof(owner), (struct part){pattern, below - pattern});
	return strcmp(owner, name) && fnmatch(owner, name, 0) ? NULL : below + 1;
}
