/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cache by id. The names of kubelet's log files are an index of all pods for one readdir, read if
 * a container is unknown, at most every INDEX_INTERVAL. Podman's list of names is parsed again only
 * if it has changed.
 */
#include "services/containers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/map.h"
#include "base/order.h"
#include "formats/in/json.h"

#define S	       1000000000ull
#define INDEX_INTERVAL (10 * S)
#define INDEX_MAX      16384u /* names in it */
#define TRIES	       5
#define TRY_INTERVAL   (15 * S)
#define KEY_SIZE       96
#define NAMESPACES_MAX 16 /* of containerd */

void container_names__fini(struct container_names *t)
{
#define X(field, key) free(t->field);
	CONTAINER_NAMES(X)
#undef X
	*t = (struct container_names){};
}

bool container_names__take_facts(struct container_names *names,
				 const char *(*fact)(const void *context, const char *key),
				 const void *context)
{
	bool found = false;

#define X(field, key)                                                                              \
	names->field = (char *)fact(context, CONTAINER_FACT key);                                  \
	found |= names->field != NULL;
	CONTAINER_NAMES(X)
#undef X
	return found;
}

/* ---- what is in them ------------------------------------------------------------------------- */

/* Annotations and labels by the offset of the text that each is; of one offset the first counts. */
#define TEXT(name) offsetof(struct container_names, name)
static const struct {
	const char *key;
	size_t text;
} known_keys[] = {
	{"pyroscope.io/service_name", TEXT(service)},
	{"tags.datadoghq.com/service", TEXT(service)},
	{"resource.opentelemetry.io/service.name", TEXT(service)},
	{"io.kubernetes.cri.sandbox-name", TEXT(pod)},
	{"io.kubernetes.pod.name", TEXT(pod)},
	{"io.kubernetes.cri.sandbox-namespace", TEXT(pod_namespace)},
	{"io.kubernetes.pod.namespace", TEXT(pod_namespace)},
	{"io.kubernetes.cri.container-name", TEXT(container)},
	{"io.kubernetes.container.name", TEXT(container)},
	{"com.docker.compose.service", TEXT(name)},
	{"com.docker.swarm.service.name", TEXT(name)},
	{"nerdctl/name", TEXT(name)},
	{"io.kubernetes.cri.image-name", TEXT(image)},
	{"io.kubernetes.cri-o.ImageName", TEXT(image)},
};
#define KEYS (sizeof(known_keys) / sizeof(known_keys[0]))

/* A text that is set already stays; a value that is empty or too long is left out. 0 or -ENOMEM. */
static int set_text(char **text, const char *value)
{
	if (*text || !value || !*value || strlen(value) > CONTAINER_TEXT_MAX)
		return 0;
	*text = strdup(value);
	return *text ? 0 : -ENOMEM;
}

/* The same of a string of JSON; of another value nothing. */
static int take_text(const struct json_text *json, struct json_value value, char **text)
{
	_cleanup_free_ char *copy = NULL;
	int err;

	if (*text || json_type(value) != JSON_STRING ||
	    value.end - value.at > 6 * CONTAINER_TEXT_MAX)
		return 0;
	err = json_string_copy(json, value, &copy);
	return err ? (err == -ENOMEM ? err : 0) : set_text(text, copy);
}

/* The values of known keys, taken in the order of the table after all were read. */
static int take_keys(const struct json_text *json, struct json_value object,
		     struct container_names *names)
{
	struct json_value found[KEYS] = {};
	struct json_walk walk;
	int more, err;

	if (json_type(object) != JSON_OBJECT)
		return 0;
	err = json_walk__init(&walk, json, object.at, JSON_OBJECT);
	if (err)
		return err;
	while ((more = json_walk__next(&walk)) > 0)
		for (size_t i = 0; i < KEYS; i++)
			if (json_walk__key_is(&walk, known_keys[i].key))
				found[i] = walk.value;
	err = more;
	for (size_t i = 0; i < KEYS && !err; i++)
		err = take_text(json, found[i],
				(char **)(void *)((char *)names + known_keys[i].text));
	return err;
}

/* "/web" of Docker */
static int take_docker_name(const struct json_text *json, struct json_value value,
			    struct container_names *names)
{
	bool had = names->name;
	int err = take_text(json, value, &names->name);

	if (!err && !had && names->name && *names->name == '/')
		memmove(names->name, names->name + 1, strlen(names->name));
	return err;
}

static int take_docker_config(const struct json_text *json, struct json_value config,
			      struct container_names *names)
{
	struct json_value labels = {}, image = {};
	int err;

	if (json_type(config) != JSON_OBJECT)
		return 0;
	err = json_members(json, config, {"Labels", &labels}, {"Image", &image});
	return err ?: take_keys(json, labels, names) ?: take_text(json, image, &names->image);
}

int container_config__parse(const char *bytes, size_t size, struct container_names *names)
{
	struct import_failure failure;
	struct json_text json = {bytes, bytes + size, &failure};
	struct json_value annotations = {}, config = {}, name = {}, whole = {bytes, bytes + size};
	int err = json_members(&json, whole, {"annotations", &annotations}, {"Config", &config},
			       {"Name", &name}) ?: take_keys(&json, annotations, names)
			      ?: take_docker_config(&json, config, names);

	/* what Compose calls it is better: its containers are numbered */
	return err ?: take_docker_name(&json, name, names);
}

/* ---- reading them ---------------------------------------------------------------------------- */

/* Is it the administrator's, and not writable by others? */
static bool is_ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) && (st->st_uid == 0 || st->st_uid == geteuid()) &&
	       !(st->st_mode & S_IWOTH);
}

/* 0, -ENOENT, -EPERM: not ours, -EFBIG, -ENOMEM, … */
static int read_own_file(int root_fd, const char *path, char **bytes, size_t *size)
{
	_cleanup_close_ int fd = openat(root_fd, path,
					O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_cleanup_free_ char *data = NULL;
	struct stat st;
	ssize_t got;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!is_ours(&st))
		return -EPERM;
	if (st.st_size > CONTAINER_FILE_MAX)
		return -EFBIG;
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		return -ENOMEM;
	got = pread_full(fd, data, (size_t)st.st_size, 0);
	if (got < 0)
		return (int)got;
	data[got] = '\0';
	*bytes = steal_ptr(data);
	*size = (size_t)got;
	return 0;
}

/* A file that is missing or invalid is no error. 0 or -ENOMEM. */
static int read_config(int root_fd, const char *path, struct container_names *names)
{
	_cleanup_free_ char *bytes = NULL;
	size_t size = 0;
	int err = read_own_file(root_fd, path, &bytes, &size);

	if (err == -ENOENT || err == -ENOTDIR || err == -ENOMEM)
		return err == -ENOMEM ? err : 0;
	if (!err)
		err = container_config__parse(bytes, size, names);
	return err == -ENOMEM ? err : 0;
}

/* containerd has a directory for each namespace: "k8s.io", "moby", "default". */
static int read_containerd(int root_fd, const char *id, struct container_names *names)
{
	static const char place[] = "run/containerd/io.containerd.runtime.v2.task";
	_cleanup_closedir_ DIR *dir = open_names(root_fd, place);
	struct dirent *entry;
	int err = 0;

	for (int i = 0; dir && i < NAMESPACES_MAX && !err && (entry = readdir(dir)); i++) {
		char path[512];

		if (*entry->d_name == '.' ||
		    snprintf(path, sizeof(path), "%s/%s/%s/config.json", place, entry->d_name,
			     id) >= (int)sizeof(path))
			continue;
		err = read_config(root_fd, path, names);
	}
	return err;
}

/* Podman has the names of all in one list: [{"id": "…", "names": ["web"]}] */
struct listed_name {
	char key[KEY_SIZE]; /* its id */
	char *name;
};
DEFINE_MAP_BY_STRING(listed_names, struct listed_name, key);

struct podman_list {
	struct listed_names names;
	struct stat as_of;
};

static void forget_list(struct podman_list *list)
{
	for (size_t i = 0; i < list->names.count; i++)
		free(list->names.data[i].name);
	listed_names__clear(&list->names);
	list->as_of = (struct stat){};
}

static int list_name(struct podman_list *list, const char *id, const char *name)
{
	struct listed_name entry = {.name = strdup(name)};
	bool is_new = false;
	int err = entry.name ? 0 : -ENOMEM;

	snprintf(entry.key, sizeof(entry.key), "%s", id);
	if (!err && !listed_names__need(&list->names, &entry, &is_new))
		err = -ENOMEM;
	if (err || !is_new)
		free(entry.name);
	return err;
}

static int take_podman_name(const struct json_text *json, struct json_value container,
			    struct podman_list *list)
{
	struct json_value id_value = {}, names = {};
	_cleanup_free_ char *id = NULL, *name = NULL;
	struct json_walk walk;
	int err;

	if (json_type(container) != JSON_OBJECT)
		return 0;
	err = json_members(json, container, {"id", &id_value}, {"names", &names})
		      ?: take_text(json, id_value, &id);
	if (err || !id || strlen(id) >= KEY_SIZE || json_type(names) != JSON_ARRAY)
		return err;
	err = json_walk__init(&walk, json, names.at, JSON_ARRAY);
	if (!err && json_walk__next(&walk) > 0)
		err = take_text(json, walk.value, &name);
	return !err && name ? list_name(list, id, name) : err;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* A list that is missing or invalid is no error. 0 or -ENOMEM. */
static int read_podman_list(int root_fd, struct podman_list *list)
{
	static const char path[] = "var/lib/containers/storage/overlay-containers/containers.json";
	_cleanup_free_ char *bytes = NULL;
	struct import_failure failure;
	struct json_text json;
	struct json_walk walk;
	struct stat as_of;
	size_t size = 0;
	int more, err;

	if (fstatat(root_fd, path, &as_of, AT_SYMLINK_NOFOLLOW)) {
		forget_list(list);
		return 0;
	}
	if (is_same_file(&as_of, &list->as_of))
		return 0;
	forget_list(list);
	err = read_own_file(root_fd, path, &bytes, &size);
	json = (struct json_text){bytes, bytes + size, &failure};
	if (!err)
		err = json_walk__init(&walk, &json, bytes, JSON_ARRAY);
	while (!err && list->names.count < INDEX_MAX && (more = json_walk__next(&walk)))
		err = more < 0 ? more : take_podman_name(&json, walk.value, list);
	if (err == -ENOMEM)
		return err;
	list->as_of = as_of;
	return 0;
}

static int take_listed(int root_fd, struct podman_list *list, const char *id,
		       struct container_names *names)
{
	int err = read_podman_list(root_fd, list);
	const struct listed_name *entry = err ? NULL : listed_names__find(&list->names, id);

	return entry ? set_text(&names->name, entry->name) : err;
}

static int read_files(int root_fd, struct podman_list *list, const char *id,
		      struct container_names *names)
{
	static const char *const places[] = {
		"run/containers/storage/overlay-containers/%s/userdata/config.json",
		"var/lib/containers/storage/overlay-containers/%s/userdata/config.json",
		"var/lib/docker/containers/%s/config.v2.json",
	};
	int err = read_containerd(root_fd, id, names);

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !err; i++) {
		char path[512];

		if (snprintf(path, sizeof(path), places[i], id) < (int)sizeof(path))
			err = read_config(root_fd, path, names);
	}
	if (!err && !names->pod && !names->name)
		err = take_listed(root_fd, list, id, names);
	return err;
}

/* ---- a host ---------------------------------------------------------------------------------- */

struct known_container {
	char key[KEY_SIZE]; /* its id, or "pod:" and the uid of its pod */
	struct container_names names;
	uint64_t used; /* counts calls */
	uint64_t first_try, next_try;
	unsigned int tries;
	bool found;
};
DEFINE_MAP_BY_STRING(known_containers, struct known_container, key);

/* "<pod>_<namespace>_<container>-<id>.log", "<namespace>_<pod>_<uid>" */
struct logged_pod {
	char key[KEY_SIZE];
	char *names; /* the name of the file, its separators replaced by NULs */
	const char *pod, *pod_namespace, *container;
};
DEFINE_MAP_BY_STRING(logged_pods, struct logged_pod, key);

struct containers {
	int root_fd;
	struct known_containers known;
	struct logged_pods logged;
	struct podman_list podman;
	bool was_indexed;
	uint64_t indexed, uses;
	struct containers_stats stats;
};

int containers__new(const char *root, struct containers **containers)
{
	struct containers *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->root_fd = root ? open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (root && c->root_fd < 0) {
		err = -errno;
		containers__free(c);
		return err;
	}
	*containers = c;
	return 0;
}

static void forget_index(struct containers *c)
{
	for (size_t i = 0; i < c->logged.count; i++)
		free(c->logged.data[i].names);
	logged_pods__clear(&c->logged);
}

void containers__free(struct containers *c)
{
	if (!c)
		return;
	if (c->root_fd >= 0)
		close(c->root_fd);
	forget_index(c);
	forget_list(&c->podman);
	for (size_t i = 0; i < c->known.count; i++)
		container_names__fini(&c->known.data[i].names);
	known_containers__fini(&c->known);
	logged_pods__fini(&c->logged);
	listed_names__fini(&c->podman.names);
	free(c);
}

/* ---- the names of log files ------------------------------------------------------------------ */

/* Cuts at the next "_": what is before it, or NULL. */
static const char *cut_part(char **rest)
{
	char *part = *rest, *separator = part ? strchr(part, '_') : NULL;

	if (!separator || separator == part)
		return NULL;
	*separator = '\0';
	*rest = separator + 1;
	return part;
}

/* "<pod>_<namespace>_<container>-<id>.log" */
static bool parse_container_log(struct logged_pod *entry)
{
	size_t length = strlen(entry->names);
	char *rest = entry->names, *dash;

	if (length < 5 || strcmp(rest + length - 4, ".log"))
		return false;
	rest[length - 4] = '\0';
	entry->pod = cut_part(&rest);
	entry->pod_namespace = entry->pod ? cut_part(&rest) : NULL;
	dash = entry->pod_namespace ? strrchr(rest, '-') : NULL;
	if (!dash || dash == rest || !dash[1] || strlen(dash + 1) >= KEY_SIZE)
		return false;
	*dash = '\0';
	entry->container = rest;
	snprintf(entry->key, sizeof(entry->key), "%s", dash + 1);
	return true;
}

/* "<namespace>_<pod>_<uid>" */
static bool parse_pod_directory(struct logged_pod *entry)
{
	char *rest = entry->names;

	entry->pod_namespace = cut_part(&rest);
	entry->pod = entry->pod_namespace ? cut_part(&rest) : NULL;
	return entry->pod && *rest &&
	       snprintf(entry->key, sizeof(entry->key), "pod:%s", rest) < (int)sizeof(entry->key);
}

static int add_logged(struct containers *c, const char *name,
		      bool (*parse)(struct logged_pod *entry))
{
	struct logged_pod entry = {.names = strdup(name)};
	bool is_new = false;
	int err = entry.names ? 0 : -ENOMEM;

	if (!err && parse(&entry) && !logged_pods__need(&c->logged, &entry, &is_new))
		err = -ENOMEM;
	if (err || !is_new)
		free(entry.names);
	return err;
}

static int index_directory(struct containers *c, const char *path,
			   bool (*parse)(struct logged_pod *entry))
{
	_cleanup_closedir_ DIR *dir = open_names(c->root_fd, path);
	struct dirent *entry;
	int err = 0;

	while (dir && !err && c->logged.count < INDEX_MAX && (entry = readdir(dir)))
		err = add_logged(c, entry->d_name, parse);
	return err;
}

static int read_index(struct containers *c, uint64_t now)
{
	int err;

	if (c->was_indexed && now < c->indexed + INDEX_INTERVAL)
		return 0;
	c->indexed = now;
	forget_index(c);
	err = index_directory(c, "var/log/containers", parse_container_log)
		      ?: index_directory(c, "var/log/pods", parse_pod_directory);
	c->was_indexed = !err;
	return err;
}

static int take_logged(struct containers *c, const char *key, struct container_names *names)
{
	const struct logged_pod *entry = logged_pods__find(&c->logged, key);

	if (!entry)
		return 0;
	return set_text(&names->pod, entry->pod)
			?: set_text(&names->pod_namespace, entry->pod_namespace)
			?: set_text(&names->container, entry->container);
}

/* ---- the cache ------------------------------------------------------------------------------- */

/* An id becomes part of a path. */
static bool is_plain(const char *id)
{
	return strspn(id, "0123456789abcdefABCDEF-") == strlen(id);
}

static bool is_something(const struct container_names *t)
{
	return t->pod || t->pod_namespace || t->container || t->name || t->image || t->service;
}

static int look_up(struct containers *c, struct known_container *known, const char *id,
		   const char *pod_key)
{
	struct container_names *names = &known->names;
	int err = 0;

	c->stats.looked_up++;
	if (*id)
		err = read_files(c->root_fd, &c->podman, id, names) ?: take_logged(c, id, names);
	if (!err && *pod_key)
		err = take_logged(c, pod_key, names);
	known->found = is_something(names);
	c->stats.found += known->found;
	return err;
}

DEFINE_ORDER(compare_used, struct known_container, DESCENDING(used));

/* Evicts the half that was not used lately. */
static void make_room(struct containers *c)
{
	size_t kept = CONTAINERS_KEPT / 2;

	if (c->known.count < CONTAINERS_KEPT)
		return;
	qsort(c->known.data, c->known.count, sizeof(*c->known.data), compare_used);
	for (size_t i = kept; i < c->known.count; i++)
		container_names__fini(&c->known.data[i].names);
	c->stats.evicted += c->known.count - kept;
	c->known.count = kept;
	known_containers__reindex(&c->known);
}

static struct known_container *need(struct containers *c, const char *key)
{
	struct known_container *known = known_containers__find(&c->known, key), added = {};

	if (known)
		return known;
	snprintf(added.key, sizeof(added.key), "%s", key);
	make_room(c);
	return known_containers__need(&c->known, &added, NULL);
}

/* The pod's key; the entry's is the id or else this. False: there is no such container. */
static bool make_keys(const char *id, const char *pod_uid, char pod_key[KEY_SIZE])
{
	*pod_key = '\0';
	if (!is_plain(id) || !is_plain(pod_uid) || (!*id && !*pod_uid) || strlen(id) >= KEY_SIZE)
		return false;
	return !*pod_uid || snprintf(pod_key, KEY_SIZE, "pod:%s", pod_uid) < KEY_SIZE;
}

static bool is_due(const struct containers *c, const struct known_container *known, uint64_t now)
{
	return c->root_fd >= 0 && !known->found && known->tries < TRIES &&
	       (!known->tries || now >= known->next_try);
}

static const struct known_container *find_known(const struct containers *c, const char *id,
						const char *pod_uid)
{
	char pod_key[KEY_SIZE];

	return make_keys(id, pod_uid, pod_key)
		       ? known_containers__find(&c->known, *id ? id : pod_key)
		       : NULL;
}

bool containers__is_due(const struct containers *c, const char *id, const char *pod_uid,
			uint64_t now)
{
	const struct known_container *known = find_known(c, id, pod_uid);

	return known ? is_due(c, known, now) : c->root_fd >= 0;
}

uint64_t containers__first_try(const struct containers *c, const char *id, const char *pod_uid)
{
	const struct known_container *known = find_known(c, id, pod_uid);

	return known ? known->first_try : 0;
}

const struct container_names *containers__find(struct containers *c, const char *id,
					       const char *pod_uid, uint64_t now)
{
	struct known_container *known;
	char pod_key[KEY_SIZE];

	if (!make_keys(id, pod_uid, pod_key))
		return NULL;
	known = need(c, *id ? id : pod_key);
	if (!known)
		return NULL;
	known->used = ++c->uses;
	if (is_due(c, known, now)) {
		if (!known->first_try)
			known->first_try = now;
		known->tries++;
		known->next_try = now + TRY_INTERVAL;
		if (read_index(c, now) || look_up(c, known, id, pod_key))
			known->tries--; /* no memory */
	}
	return known->found ? &known->names : NULL;
}

int containers__put(struct containers *c, const char *id, const char *pod_uid,
		    const struct container_names *names)
{
	struct known_container *known;
	char pod_key[KEY_SIZE];
	int err = 0;

	if (!is_something(names) || !make_keys(id, pod_uid, pod_key))
		return 0;
	known = need(c, *id ? id : pod_key);
	if (!known)
		return -ENOMEM;
	known->used = ++c->uses;
	known->found = true;
#define X(field, key) err = err ? err : set_text(&known->names.field, names->field);
	CONTAINER_NAMES(X)
#undef X
	return err;
}

void containers__stats(const struct containers *c, struct containers_stats *stats)
{
	*stats = c->stats;
}
