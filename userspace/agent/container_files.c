/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/containers.h"

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
#include "import/json.h"

#define NAMESPACES_MAX 16 /* of containerd */

void container_names__fini(struct container_names *t)
{
	free(t->pod);
	free(t->pod_namespace);
	free(t->container);
	free(t->name);
	free(t->image);
	free(t->service);
	*t = (struct container_names){};
}

/* ---- what is in them ------------------------------------------------------------------------- */

/*
 * Annotations and labels that name something, the better ones first: the offset of the text that they are, and of those
 * with one offset the first in this list counts.
 */
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

/* A string of JSON as a text of its own; nothing if it is none, empty or too long. 0 or -ENOMEM. */
static int take_text(const struct json_text *json, struct json_value value, char **text)
{
	char *copy = NULL;
	int err;

	if (*text || json_type(value) != JSON_STRING ||
	    value.end - value.at > 6 * CONTAINER_TEXT_MAX)
		return 0;
	err = json_string_copy(json, value, &copy);
	if (err || !*copy || strlen(copy) > CONTAINER_TEXT_MAX) {
		free(copy);
		return err == -ENOMEM ? err : 0;
	}
	*text = copy;
	return 0;
}

/* The values of known keys; those of which there are several are decided when all were seen. */
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
			       {"Name", &name});

	if (!err)
		err = take_keys(&json, annotations, names)
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

/* What is not there, or not sound, is no error. 0 or -ENOMEM. */
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

/* The containers of containerd are in a directory of their namespace: "k8s.io", "moby", "default". */
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
static int take_podman_name(const struct json_text *json, struct json_value container,
			    const char *id, struct container_names *names)
{
	struct json_value id_value = {}, list = {};
	_cleanup_free_ char *own = NULL;
	struct json_walk walk;
	int err;

	if (json_type(container) != JSON_OBJECT)
		return 0;
	err = json_members(json, container, {"id", &id_value}, {"names", &list});
	if (!err)
		err = take_text(json, id_value, &own);
	if (err || !own || strcmp(own, id) || json_type(list) != JSON_ARRAY)
		return err;
	err = json_walk__init(&walk, json, list.at, JSON_ARRAY);
	if (!err && json_walk__next(&walk) > 0)
		err = take_text(json, walk.value, &names->name);
	return err;
}

static int read_podman_list(int root_fd, const char *id, struct container_names *names)
{
	_cleanup_free_ char *bytes = NULL;
	struct import_failure failure;
	struct json_text json;
	struct json_walk walk;
	size_t size = 0;
	int more, err = read_own_file(
			  root_fd, "var/lib/containers/storage/overlay-containers/containers.json",
			  &bytes, &size);

	if (err)
		return err == -ENOMEM ? err : 0;
	json = (struct json_text){bytes, bytes + size, &failure};
	err = json_walk__init(&walk, &json, bytes, JSON_ARRAY);
	while (!err && (more = json_walk__next(&walk)))
		err = more < 0 ? more : take_podman_name(&json, walk.value, id, names);
	return err == -ENOMEM ? err : 0;
}

int container_files__read(int root_fd, const char *id, struct container_names *names)
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
		err = read_podman_list(root_fd, id, names);
	return err;
}
