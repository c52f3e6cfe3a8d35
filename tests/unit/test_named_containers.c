/* SPDX-License-Identifier: BSD-2-Clause */
/* Containers by id and name, from paths of control groups and forged files of a runtime. */
#include "unit.h"
#include "session/named_containers.h"

#include "unit/tools.h"

#define S    1000000000ull
#define ID   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID_2 "fedcba98765432100123456789abcdef0123456789abcdef0123456789abcdef"

static struct named_containers *containers;
static bool may_change; /* of the last answer */

static void set_up(void)
{
	make_scratch();
	containers = named_containers__new(scratch);
	assert_true(containers);
}

static void tear_down(void)
{
	named_containers__free(containers);
	remove_scratch();
}

static bool matches_at(const char *pattern, const char *path, uint64_t now)
{
	may_change = false;
	return named_containers__match(containers, pattern, path, now, &may_change);
}

static bool matches(const char *pattern, const char *path)
{
	return matches_at(pattern, path, S);
}

static void write_docker_name(const char *id, const char *name)
{
	static const char *const parts[] = {"/var", "/lib", "/docker", "/containers"};
	char path[512];
	FILE *f;
	int at = snprintf(path, sizeof(path), "%s", scratch);

	for (size_t i = 0; i < 4; i++) {
		at += snprintf(path + at, sizeof(path) - at, "%s", parts[i]);
		mkdir(path, 0755);
	}
	at += snprintf(path + at, sizeof(path) - at, "/%s", id);
	mkdir(path, 0755);
	snprintf(path + at, sizeof(path) - at, "/config.v2.json");
	f = fopen(path, "we");
	assert_non_null(f);
	fprintf(f, "{\"ID\":\"%s\",\"Name\":\"/%s\",\"Config\":{}}", id, name);
	assert_int_equal(fclose(f), 0);
}

TEST(ids_match_by_their_first_digits)
{
	assert_true(matches("0123456789ab", "/system.slice/docker-" ID ".scope"));
	assert_true(matches(ID, "/docker/" ID));
	assert_true(matches("0123456789ab", "/docker/" ID "/system.slice/x.service"));
	assert_true(matches("0123*", "/docker/" ID));
	assert_false(matches("0123456789a", "/docker/" ID));
	assert_false(matches("123456789abc", "/docker/" ID));
	assert_false(matches("0123456789ab", "/system.slice/x.service"));
	assert_false(matches("*", "/"));
}

TEST(names_match_with_those_within)
{
	assert_true(matches("web", "/lxc.payload.web"));
	assert_true(matches("we?", "/machine.slice/machine-web.scope/init.scope"));
	assert_false(matches("web", "/lxc.monitor.web"));
	write_docker_name(ID, "shop");
	assert_true(matches("shop", "/docker/" ID));
	assert_true(matches("sh*", "/docker/" ID "/docker/" ID_2));
	assert_true(matches("docker-*.scope/fedcba987654",
			    "/system.slice/docker-" ID ".scope/docker/" ID_2));
	assert_false(matches("other", "/docker/" ID));
	assert_false(may_change);
}

TEST(a_name_may_come_after_the_group)
{
	assert_false(matches_at("late", "/docker/" ID, S));
	assert_true(may_change);
	write_docker_name(ID, "late");
	/* looked for again after a moment */
	assert_true(matches_at("late", "/docker/" ID, 17 * S));
	assert_false(may_change);
	assert_false(matches_at("late", "/docker/" ID_2, S));
	assert_true(may_change);
	assert_false(matches_at("late", "/docker/" ID_2, 100 * S));
	assert_false(may_change);
}

TEST(owners_of_groups_name_no_containers)
{
	static const char of_user[] = "/user.slice/user-1000.slice/user@1000.service/libpod-" ID
				      ".scope";

	assert_false(matches("0123456789ab", of_user));
	assert_true(matches("user@1000.service/0123456789ab", of_user));
	assert_true(matches("user@*.service/0123*", of_user));
	assert_false(matches("user@1001.service/0123456789ab", of_user));
	assert_false(matches("fedcba987654", "/docker/" ID "/docker/" ID_2));
	assert_false(matches("web", "/docker/" ID "/lxc.payload.web"));
	assert_true(matches(ID "/web", "/docker/" ID "/lxc.payload.web"));
	write_docker_name(ID_2, "shop");
	assert_false(matches("shop", "/docker/" ID "/docker/" ID_2));
}

TEST(look_ups_are_metered)
{
	unsigned int awaited = 0;
	char path[128];

	/* more than a second has look-ups for: the others come later */
	for (unsigned int i = 0; i < 100; i++) {
		snprintf(path, sizeof(path), "/docker/%064x", i);
		assert_false(matches_at("late", path, S));
		awaited += may_change;
	}
	assert_int_equal(awaited, 100);
	snprintf(path, sizeof(path), "%064x", 99);
	write_docker_name(path, "late");
	snprintf(path, sizeof(path), "/docker/%064x", 99);
	assert_false(matches_at("late", path, S));
	assert_true(matches_at("late", path, 2 * S));
}

TEST(many_containers_without_a_name_settle)
{
	char path[128];

	for (unsigned int round = 0, awaited = 0; round < 2; round++, awaited = 0) {
		for (unsigned int i = 0; i < 500; i++) {
			snprintf(path, sizeof(path), "/docker/%064x", i);
			assert_false(matches_at("late", path, (1 + round * 1000 + i) * S));
			awaited += may_change;
		}
		assert_int_equal(awaited, round ? 0 : 500);
	}
}

TEST(paths_without_end_are_bounded)
{
	char path[4096] = "";

	for (size_t at = 0; at + 2 < sizeof(path); at += 2)
		memcpy(path + at, "/a", 3);
	memcpy(path + sizeof(path) - sizeof("/docker/" ID), "/docker/" ID, sizeof("/docker/" ID));
	assert_false(matches("web", path));
}

EACH_TEST_WITH(set_up, tear_down);
