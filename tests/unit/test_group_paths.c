/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of control groups by their ids: reported, looked up, and too many. */
#include "unit.h"
#include "live/capture/target.h"
#include "live/proc/group_paths.h"

static struct group_paths *paths_of(const char *root)
{
	struct group_paths *p = NULL;

	assert_int_equal(group_paths__new(root, &p), 0);
	return p;
}

TEST(reported_paths_are_kept)
{
	struct group_paths *p = paths_of(NULL);
	size_t count;

	assert_null(group_paths__find(p, 7));
	assert_int_equal(group_paths__add(p, 7, "/a"), 0);
	assert_int_equal(group_paths__add(p, 7, "/b"), 0); /* no group is renamed */
	assert_int_equal(group_paths__add(p, 1ull << 40, "/c"), 0);
	assert_string_equal(group_paths__find(p, 7)->path, "/a");
	assert_string_equal(group_paths__find(p, 1ull << 40)->path, "/c");
	assert_false(group_paths__find(p, 7)->excluded);
	group_paths__all(p, &count);
	assert_int_equal(count, 2);
	group_paths__free(p);
}

/* The kernel is queried for groups without an event; if it has no answer, they are unknown. */
TEST(groups_that_are_there)
{
	const char *root = target_cgroup_root();
	struct group_paths *p;
	struct stat st;

	if (!root)
		skip();
	assert_int_equal(stat(root, &st), 0);
	p = paths_of(root);
	assert_non_null(group_paths__find(p, st.st_ino));
	assert_string_equal(group_paths__find(p, st.st_ino)->path, "/");
	assert_null(group_paths__find(p, ~0ull));
	group_paths__free(p);
	/* a directory that is none of control groups */
	p = paths_of("/proc/self");
	assert_null(group_paths__find(p, st.st_ino));
	group_paths__free(p);
}

TEST(number_and_bytes_are_limited)
{
	struct group_paths *p = paths_of(NULL);
	char path[4096];
	size_t count;

	for (uint64_t id = 1; id <= 3 * GROUP_PATHS_MAX; id++) {
		snprintf(path, sizeof(path), "/g%llu", (unsigned long long)id);
		assert_int_equal(group_paths__add(p, id, path), 0);
		assert_string_equal(group_paths__find(p, 1)->path, "/g1"); /* it is used */
		group_paths__all(p, &count);
		assert_true(count <= GROUP_PATHS_MAX);
	}
	assert_null(group_paths__find(p, 2));
	assert_non_null(group_paths__find(p, 3 * GROUP_PATHS_MAX));
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	for (uint64_t id = 100000; id < 102000; id++)
		assert_int_equal(group_paths__add(p, id, path), 0);
	group_paths__all(p, &count);
	assert_true(count * sizeof(path) <= GROUP_PATHS_BYTES);
	assert_non_null(group_paths__find(p, 101999));
	assert_null(group_paths__find(p, 100000));
	group_paths__free(p);
}
