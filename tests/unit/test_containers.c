/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of containers from a host's files, forged in a directory: each runtime's, damaged ones, thousands of them. */
#include "unit.h"
#include "base/clocks.h"
#include "services/containers.h"

#include "base/cleanup.h"
#include "unit/tools.h"

#define S  1000000000ull
#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct containers *containers;

static void write_text(const char *path, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Into a file below the scratch directory, with the directories above it. */
static void write_text(const char *path, const char *format, ...)
{
	char name[512];
	va_list arguments;
	FILE *f;

	snprintf(name, sizeof(name), "%s/%s", scratch, path);
	for (char *slash = name + strlen(scratch) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(name, 0755);
		*slash = '/';
	}
	f = fopen(name, "we");
	assert_non_null(f);
	va_start(arguments, format);
	vfprintf(f, format, arguments);
	va_end(arguments);
	assert_int_equal(fclose(f), 0);
}

static void set_up(void)
{
	make_scratch();
	assert_int_equal(containers__new(scratch, &containers), 0);
}

static void tear_down(void)
{
	containers__free(containers);
	remove_scratch();
}

static const struct container_names *find(const char *id, const char *pod)
{
	return containers__find(containers, id, pod, S);
}

static struct containers_stats stats(void)
{
	struct containers_stats s;

	containers__stats(containers, &s);
	return s;
}

/* ---- one runtime after the other ------------------------------------------------------------- */

TEST(containerd)
{
	const struct container_names *names;

	write_text("run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json",
		   "{\"process\": {\"env\": [\"SECRET=x\"]}, \"annotations\": {"
		   "\"io.kubernetes.cri.sandbox-name\": \"shop-7d9f-x\","
		   "\"io.kubernetes.cri.sandbox-namespace\": \"prod\","
		   "\"io.kubernetes.cri.container-name\": \"web\","
		   "\"io.kubernetes.cri.image-name\": \"registry:5000/shop:1.2\"}}");
	names = find(ID, "");
	assert_non_null(names);
	assert_string_equal(names->pod, "shop-7d9f-x");
	assert_string_equal(names->pod_namespace, "prod");
	assert_string_equal(names->container, "web");
	assert_string_equal(names->image, "registry:5000/shop:1.2");
	assert_null(names->name);
	assert_null(names->service);
	/* once, and from then on it is known, whatever becomes of the file */
	assert_ptr_equal(find(ID, ""), names);
	assert_int_equal(stats().looked_up, 1);
}

TEST(docker)
{
	const struct container_names *names;

	write_text("var/lib/docker/containers/" ID "/config.v2.json",
		   "{\"Name\": \"/shop-web-1\", \"Config\": {\"Image\": \"shop:7\", \"Labels\": {"
		   "\"com.docker.compose.service\": \"web\"}, \"Env\": [\"PW=x\"]}}");
	names = find(ID, "");
	assert_non_null(names);
	assert_string_equal(names->name, "web");
	assert_string_equal(names->image, "shop:7");
	assert_null(names->pod);
}

TEST(docker_without_compose)
{
	write_text("var/lib/docker/containers/" ID "/config.v2.json",
		   "{\"Config\": {\"Labels\": null}, \"Name\": \"/web\"}");
	assert_string_equal(find(ID, "")->name, "web");
}

TEST(cri_o_and_podman)
{
	static const char other[] =
		"f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

	write_text("run/containers/storage/overlay-containers/" ID "/userdata/config.json",
		   "{\"annotations\": {\"io.kubernetes.pod.name\": \"db-0\","
		   "\"io.kubernetes.pod.namespace\": \"prod\","
		   "\"io.kubernetes.container.name\": \"db\","
		   "\"pyroscope.io/service_name\": \"database\"}}");
	assert_string_equal(find(ID, "")->pod, "db-0");
	assert_string_equal(find(ID, "")->container, "db");
	assert_string_equal(find(ID, "")->service, "database");
	write_text("var/lib/containers/storage/overlay-containers/containers.json",
		   "[{\"id\": \"0\", \"names\": [\"not me\"]}, {\"names\": [\"cache\", \"x\"], "
		   "\"id\": \"%s\"}, {}, 7]",
		   other);
	assert_string_equal(find(other, "")->name, "cache");
}

/* One reading has the names of all; a list that has changed is read again. */
TEST(a_list_of_names_is_read_once)
{
	static const char list[] = "var/lib/containers/storage/overlay-containers/containers.json";
	char id[80];

	write_text(list,
		   "[{\"id\": \"%064x\", \"names\": [\"one\"]}, "
		   "{\"id\": \"%064x\", \"names\": [\"two\"]}]",
		   1, 2);
	snprintf(id, sizeof(id), "%064x", 1);
	assert_string_equal(find(id, "")->name, "one");
	snprintf(id, sizeof(id), "%064x", 2);
	assert_string_equal(find(id, "")->name, "two");
	snprintf(id, sizeof(id), "%064x", 3);
	assert_true(containers__is_due(containers, id, "", S));
	assert_int_equal(containers__first_try(containers, id, ""), 0);
	assert_null(find(id, ""));
	assert_false(containers__is_due(containers, id, "", S));
	assert_int_equal(containers__first_try(containers, id, ""), S);
	write_text("new.json", "[{\"id\": \"%064x\", \"names\": [\"three\"]}]", 3);
	run("mv new.json %s", list);
	assert_true(containers__is_due(containers, id, "", 100 * S));
	assert_string_equal(containers__find(containers, id, "", 100 * S)->name, "three");
	assert_false(containers__is_due(containers, id, "", 200 * S));
	/* without the list there is no name of it */
	run("rm %s", list);
	snprintf(id, sizeof(id), "%064x", 4);
	assert_null(find(id, ""));
}

TEST(kubelet)
{
	static const char uid[] = "12345678-1234-1234-1234-123456789abc";
	const struct container_names *names;

	write_text("var/log/containers/shop-0_prod_web-server-" ID ".log", "x");
	write_text("var/log/containers/no_good.log", "x");
	write_text("var/log/containers/_.log", "x");
	write_text("var/log/containers/a_b_c-.log", "x");
	write_text("var/log/containers/a_b_-x.log", "x");
	write_text("var/log/containers/.log", "x");
	write_text("var/log/pods/prod_shop-0_%s/web/0.log", "%s", uid);
	run("mkdir -p var/log/pods/prod_other-1_%s", uid);
	names = find(ID, "");
	assert_non_null(names);
	assert_string_equal(names->pod, "shop-0");
	assert_string_equal(names->pod_namespace, "prod");
	assert_string_equal(names->container, "web-server");
	/* by the pod's uid alone: the container is unknown */
	names = find("", uid);
	assert_non_null(names);
	assert_string_equal(names->pod, "other-1");
	assert_null(names->container);
	assert_null(find("abc", ""));
}

/* ---- what is not sound ----------------------------------------------------------------------- */

TEST(files_that_are_damaged)
{
	static const char *const texts[] = {
		"",
		"x",
		"{",
		"[]",
		"null",
		"{\"annotations\": {\"io.kubernetes.cri.sandbox-name\": \"",
		"{\"annotations\": [], \"Config\": 7, \"Name\": null}",
		"{\"annotations\": {\"io.kubernetes.cri.sandbox-name\": 7}}",
		"{\"annotations\": {\"io.kubernetes.cri.sandbox-name\": \"\"}}",
		"{\"annotations\": {}, \"annotations\": {}}",
		"{\"annotations\": {\"io.kubernetes.cri.sandbox-name\": \"\\ud800\"}",
	};
	_cleanup_(container_names__fini) struct container_names found = {};
	_cleanup_free_ char *text = NULL;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *copy = malloc(strlen(texts[i]) + 1); /* for ASan to guard */

		memcpy(copy, texts[i], strlen(texts[i]));
		container_config__parse(copy, strlen(texts[i]), &found);
		free(copy);
		assert_null(found.pod);
	}
	/* a megabyte of brackets, of one name, of members */
	text = malloc(CONTAINER_FILE_MAX);
	memset(text, '[', CONTAINER_FILE_MAX);
	memcpy(text, "{\"annotations\":", 15);
	assert_int_not_equal(container_config__parse(text, CONTAINER_FILE_MAX, &found), 0);
	memset(text, 'x', CONTAINER_FILE_MAX);
	memcpy(text, "{\"Name\":\"", 9);
	memcpy(text + CONTAINER_FILE_MAX - 2, "\"}", 2);
	assert_int_equal(container_config__parse(text, CONTAINER_FILE_MAX, &found), 0);
	assert_null(found.name);
}

TEST(files_of_others)
{
	static const char place[] = "var/lib/docker/containers/" ID "/config.v2.json";

	/* too big, writable for everybody, a link, a pipe: none is read */
	write_text(place, "{\"Name\": \"/web\"}");
	run("truncate -s 2M %s", place);
	assert_null(find(ID, ""));
	run("rm %s; echo '{\"Name\": \"/web\"}' > x; chmod 666 x; mv x %s", place, place);
	assert_null(containers__find(containers, ID, "", 100 * S));
	run("rm %s; echo '{\"Name\": \"/web\"}' > x; ln -s $PWD/x %s", place, place);
	assert_null(containers__find(containers, ID, "", 200 * S));
	run("rm %s; mkfifo %s", place, place);
	assert_null(containers__find(containers, ID, "", 300 * S));
	/* what is there at last is read; then it was tried often enough */
	run("rm %s x; echo '{\"Name\": \"/web\"}' > %s", place, place);
	assert_non_null(containers__find(containers, ID, "", 400 * S));
	assert_int_equal(stats().looked_up, 5);
}

TEST(ids_that_are_no_ids)
{
	write_text("config.json", "{\"Name\": \"/web\"}");
	assert_null(find("../../../../../..", ""));
	assert_null(find("a/b", ""));
	assert_null(find("", "../x"));
	assert_null(find("", ""));
	assert_int_equal(stats().looked_up, 0);
}

/* ---- many of them ---------------------------------------------------------------------------- */

TEST(thousands)
{
	uint64_t began;
	char id[80];

	for (unsigned int i = 0; i < 2000; i++) {
		char path[256];

		snprintf(path, sizeof(path), "var/lib/docker/containers/%064x/config.v2.json", i);
		write_text(path, "{\"Name\": \"/web-%u\", \"Config\": {\"Image\": \"x:%u\"}}", i,
			   i);
	}
	began = thread_cpu_ns();
	for (unsigned int i = 0; i < 2000; i++) {
		snprintf(id, sizeof(id), "%064x", i);
		assert_non_null(find(id, ""));
	}
	print_message("2,000 containers: %.1f ms once", (thread_cpu_ns() - began) / 1e6);
	began = thread_cpu_ns();
	for (unsigned int i = 0; i < 2000; i++) {
		snprintf(id, sizeof(id), "%064x", i);
		assert_non_null(find(id, ""));
	}
	print_message(", then %.2f ms\n", (thread_cpu_ns() - began) / 1e6);
	assert_int_equal(stats().looked_up, 2000);
	/* those that are not there are not looked for in every window */
	for (int round = 0; round < 20; round++)
		for (unsigned int i = 5000; i < 5100; i++) {
			snprintf(id, sizeof(id), "%064x", i);
			assert_null(containers__find(containers, id, "", (1 + round) * 100 * S));
		}
	assert_true(stats().looked_up <= 2000 + 100 * 5);
	/* more than are kept: those that were used last stay */
	for (unsigned int i = 10000; i < 10000 + 3 * CONTAINERS_KEPT; i++) {
		snprintf(id, sizeof(id), "%064x", i);
		assert_null(find(id, ""));
	}
	assert_true(stats().evicted >= 2 * CONTAINERS_KEPT - CONTAINERS_KEPT / 2);
	snprintf(id, sizeof(id), "%064x", 7);
	assert_string_equal(find(id, "")->name, "web-7");
}

EACH_TEST_WITH(set_up, tear_down);
