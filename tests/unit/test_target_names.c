/* SPDX-License-Identifier: BSD-2-Clause */
/* Targets by name: patterns in the kernel's form against fnmatch(), and which paths they match. */
#include "unit.h"
#include <fnmatch.h>
#include "session/target_names.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct target_names *names; /* of the running test */

static void tear_down(void)
{
	target_names__free(names);
	names = NULL;
}

static int add(enum target_name kind, bool excludes, const char *pattern)
{
	struct failure failure = {};
	int err = target_names__add(&names, kind, excludes, pattern, &failure);

	assert_int_equal(!*failure.what, !err);
	return err;
}

/* As the kernel side does it, with the end of another name behind the NUL. */
static uint32_t verdict_behind(const char *comm, const char *rest)
{
	const struct name_rules *rules = target_names__judge(names).rules;
	uint32_t verdict = 0;
	char bytes[16];

	snprintf(bytes, sizeof(bytes), "%s", rest);
	snprintf(bytes, sizeof(bytes), "%s", comm);
	for (uint32_t i = 0; i < rules->glob_count; i++) {
		uint64_t states = rules->globs[i].start;
		__u64 ended = 0;

		for (size_t at = 0; at < sizeof(bytes) - 1; at++)
			states = name_glob_step_comm(&rules->globs[i], states, (uint8_t)bytes[at],
						     &ended);
		verdict |= states & rules->globs[i].include ? NAME_INCLUDED : 0;
		verdict |= states & rules->globs[i].exclude ? NAME_EXCLUDED : 0;
	}
	return verdict;
}

static uint32_t verdict_on(const char *comm)
{
	return verdict_behind(comm, "");
}

static uint32_t judge(uint32_t kind, const char *path)
{
	const struct name_judge judge = target_names__judge(names);

	return judge.judge(judge.context, kind, path);
}

static uint32_t number;

static unsigned int draw(unsigned int limit)
{
	number = number * 1664525u + 1013904223u;
	return (number >> 8) % limit;
}

static void draw_text(char *text, const char *const *parts, unsigned int count, unsigned int most)
{
	*text = '\0';
	for (unsigned int i = draw(most + 1); i; i--)
		strcat(text, parts[draw(count)]);
}

TEST(random_patterns_match_what_fnmatch_says)
{
	static const char *const elements[] = {
		"a",	"b",	       "*",    "?", "[ab]",	   "[!a]", "[b-d]", "\\*",
		"[]x]", "[[:digit:]]", "\xff", "/", "[\xf0-\xff]", ".",	   "[",	    "-"};
	static const char *const letters[] = {"a", "b",	   "c", "*", "x", "]",
					      "7", "\xff", "/", "-", ".", "["};
	unsigned int matched = 0, compared = 0;
	char patterns[3][128], comm[16];

	for (number = 1; compared < 30000;) {
		uint32_t expected = 0;

		for (unsigned int i = 0; i < 3; i++) {
			do
				draw_text(patterns[i], elements, 16, 8);
			while (!*patterns[i]);
			assert_int_equal(add(TARGET_BY_COMM, i == 2, patterns[i]), 0);
		}
		for (unsigned int texts = 0; texts < 20; texts++, compared++) {
			draw_text(comm, letters, 12, 6);
			expected = 0;
			for (unsigned int i = 0; i < 3; i++)
				if (!fnmatch(patterns[i], comm, 0))
					expected |= i == 2 ? NAME_EXCLUDED : NAME_INCLUDED;
			matched += expected != 0;
			if (verdict_behind(comm, "abc-xab/77bacx.") != expected)
				fail_msg("\"%s\" by \"%s\" \"%s\" but not \"%s\": not %u", comm,
					 patterns[0], patterns[1], patterns[2], expected);
		}
		tear_down();
	}
	assert_true(matched > compared / 20);
}

/* Before Linux 5.17. */
TEST(what_is_behind_the_end_of_a_name_is_no_part_of_it)
{
	assert_int_equal(add(TARGET_BY_COMM, false, "sh"), 0);
	assert_int_equal(add(TARGET_BY_COMM, false, "nginx*"), 0);
	assert_int_equal(add(TARGET_BY_COMM, true, "*worker"), 0);
	assert_int_equal(verdict_behind("sh", "bash-5.2-worker"), NAME_INCLUDED);
	assert_int_equal(verdict_behind("sh", "kthreadd"), NAME_INCLUDED);
	assert_int_equal(verdict_behind("s", "xsh"), 0);
	assert_int_equal(verdict_behind("", "sh"), 0);
	assert_int_equal(verdict_behind("nginx", "123456-worker"), NAME_INCLUDED);
	assert_int_equal(verdict_behind("my-worker", "123456789012345"), NAME_EXCLUDED);
}

TEST(many_patterns_share_the_states)
{
	char pattern[16], comm[16];
	unsigned int count = 0;

	for (; count < TARGET_NAMES_MAX; count++) {
		static char kept[TARGET_NAMES_MAX][16];

		snprintf(kept[count], sizeof(kept[count]), "name-%u", count);
		if (add(TARGET_BY_COMM, count % 2, kept[count]))
			break;
	}
	assert_true(count >= 48);
	for (unsigned int i = 0; i < count; i++) {
		snprintf(comm, sizeof(comm), "name-%u", i);
		assert_int_equal(verdict_on(comm), i % 2 ? NAME_EXCLUDED : NAME_INCLUDED);
	}
	snprintf(pattern, sizeof(pattern), "name-%u", count + 100);
	assert_int_equal(verdict_on(pattern), 0);
}

TEST(patterns_that_no_name_can_match_are_rejected)
{
	assert_int_equal(add(TARGET_BY_COMM, false, "123456789012345"), 0);
	assert_int_equal(add(TARGET_BY_COMM, false, "*12345*6789012345*"), 0);
	assert_int_equal(add(TARGET_BY_COMM, false, "1234567890123456"), -EINVAL);
	assert_int_equal(add(TARGET_BY_COMM, false, ""), -EINVAL);
	assert_int_equal(add(TARGET_BY_USER, false, "no user has this name"), -EINVAL);
	assert_int_equal(add(TARGET_BY_USER, false, "4294967295"), -EINVAL);
}

TEST(users_are_named_or_numbered)
{
	const struct name_rules *rules;

	assert_int_equal(add(TARGET_BY_USER, false, "root"), 0);
	assert_int_equal(add(TARGET_BY_USER, false, "12345"), 0);
	assert_int_equal(add(TARGET_BY_USER, true, "0"), 0);
	rules = target_names__judge(names).rules;
	assert_int_equal(rules->user_count, 2);
	assert_int_equal(rules->users[0].uid, 0);
	assert_int_equal(rules->users[0].verdict, NAME_INCLUDED | NAME_EXCLUDED);
	assert_int_equal(rules->users[1].uid, 12345);
	assert_int_equal(rules->include, NAMED_BY_USER);
	assert_int_equal(rules->exclude, NAMED_BY_USER);
}

TEST(programs_match_by_path_or_by_name)
{
	assert_int_equal(add(TARGET_BY_EXE, false, "python3*"), 0);
	assert_int_equal(add(TARGET_BY_EXE, false, "/opt/*/bin/x"), 0);
	assert_int_equal(add(TARGET_BY_EXE, true, "/usr/lib/*"), 0);
	assert_int_equal(judge(NAMED_BY_EXE, "/usr/bin/python3.11"), NAME_INCLUDED);
	assert_int_equal(judge(NAMED_BY_EXE, "/usr/lib/python3"), NAME_INCLUDED | NAME_EXCLUDED);
	assert_int_equal(judge(NAMED_BY_EXE, "/opt/a/b/bin/x"), NAME_INCLUDED);
	assert_int_equal(judge(NAMED_BY_EXE, "/opt/bin/x"), 0);
	assert_int_equal(judge(NAMED_BY_EXE, "/usr/bin/perl"), 0);
	assert_int_equal(judge(NAMED_BY_GROUP, "/usr/bin/python3.11"), 0);
}

TEST(units_match_by_any_group_of_the_path)
{
	assert_int_equal(add(TARGET_BY_UNIT, false, "nginx"), 0);
	assert_int_equal(add(TARGET_BY_UNIT, false, "postgresql@*"), 0);
	assert_int_equal(add(TARGET_BY_UNIT, true, "user-1000.slice"), 0);
	assert_int_equal(judge(NAMED_BY_GROUP, "/system.slice/nginx.service"), NAME_INCLUDED);
	assert_int_equal(judge(NAMED_BY_GROUP, "/system.slice/nginx.service/worker"),
			 NAME_INCLUDED);
	assert_int_equal(judge(NAMED_BY_GROUP,
			       "/system.slice/system-postgresql.slice/postgresql@14-main.service"),
			 NAME_INCLUDED);
	assert_int_equal(judge(NAMED_BY_GROUP, "/user.slice/user-1000.slice/session-1.scope"),
			 NAME_EXCLUDED);
	assert_int_equal(judge(NAMED_BY_GROUP, "/system.slice/my-nginx.service"), 0);
	assert_int_equal(judge(NAMED_BY_GROUP, "/"), 0);
}

TEST(names_with_what_is_special_in_patterns_match_themselves)
{
	assert_int_equal(add(TARGET_BY_UNIT, false, "dev-disk-by\\x2did.swap"), 0);
	assert_int_equal(add(TARGET_BY_UNIT, true, "my\\x2dapp"), 0);
	assert_int_equal(add(TARGET_BY_EXE, false, "/usr/bin/["), 0);
	assert_int_equal(add(TARGET_BY_EXE, true, "/opt/a[1]/x"), 0);
	assert_int_equal(judge(NAMED_BY_GROUP, "/system.slice/dev-disk-by\\x2did.swap"),
			 NAME_INCLUDED);
	assert_int_equal(judge(NAMED_BY_GROUP, "/system.slice/my\\x2dapp.service"), NAME_EXCLUDED);
	assert_int_equal(judge(NAMED_BY_EXE, "/usr/bin/["), NAME_INCLUDED);
	assert_int_equal(judge(NAMED_BY_EXE, "/opt/a[1]/x"), NAME_EXCLUDED);
	assert_int_equal(judge(NAMED_BY_EXE, "/opt/a1/x"), NAME_EXCLUDED);
}

TEST(owners_of_groups_name_no_units)
{
	static const char of_user[] =
		"/user.slice/user-1000.slice/user@1000.service/app.slice/nginx.service";

	assert_int_equal(add(TARGET_BY_UNIT, false, "nginx"), 0);
	assert_int_equal(add(TARGET_BY_UNIT, true, "user@1001.service/*.service"), 0);
	assert_int_equal(judge(NAMED_BY_GROUP, of_user), 0);
	assert_int_equal(judge(NAMED_BY_GROUP, "/user.slice/user@1001.service/nginx.service"),
			 NAME_EXCLUDED);
	assert_int_equal(judge(NAMED_BY_GROUP, "/lxc.payload.web/nginx.service"), 0);
	assert_int_equal(judge(NAMED_BY_GROUP, "/system.slice/docker-" ID ".scope/nginx.service"),
			 0);
	tear_down();
	assert_int_equal(add(TARGET_BY_UNIT, false, "user@1000.service"), 0);
	assert_int_equal(add(TARGET_BY_UNIT, true, "docker-*.scope/nginx"), 0);
	assert_int_equal(judge(NAMED_BY_GROUP, of_user), NAME_INCLUDED);
	assert_int_equal(judge(NAMED_BY_GROUP, "/system.slice/docker-" ID ".scope/a/nginx.service"),
			 NAME_EXCLUDED);
}

TEST(services_match_by_expressions)
{
	struct failure failure = {};

	assert_int_equal(add(TARGET_BY_SERVICE, false, "^shop-[0-9]+$"), 0);
	assert_int_equal(add(TARGET_BY_SERVICE, false, "(?i)cart"), 0);
	assert_int_equal(add(TARGET_BY_SERVICE, true, "test"), 0);
	assert_int_equal(add(TARGET_BY_EXE, true, "*"), 0);
	assert_int_equal(judge(NAMED_BY_SERVICE, "shop-12"), NAME_INCLUDED);
	assert_int_equal(judge(NAMED_BY_SERVICE, "shop-"), 0);
	assert_int_equal(judge(NAMED_BY_SERVICE, "eu/Cart-test"), NAME_INCLUDED | NAME_EXCLUDED);
	assert_int_equal(judge(NAMED_BY_SERVICE, ""), 0);
	assert_int_equal(judge(NAMED_BY_GROUP, "/shop-12"), 0);
	assert_int_equal(target_names__judge(names).rules->include, NAMED_BY_SERVICE);
	assert_int_equal(target_names__add(&names, TARGET_BY_SERVICE, true, "shop(", &failure),
			 -EINVAL);
	assert_string_equal(failure.what, "--exclude-service shop(: invalid regular expression: "
					  "byte 5: missing )");
	/* each name has all steps of an expression */
	assert_int_equal(add(TARGET_BY_SERVICE, false, "((a|b)*(a|b)*c){1,99}z"), 0);
	for (int i = 0; i < 20000; i++)
		assert_int_equal(judge(NAMED_BY_SERVICE, "abababababababababababababab"), 0);
	assert_int_equal(judge(NAMED_BY_SERVICE, "abcz"), NAME_INCLUDED);
}

TEST(the_description_can_be_given_to_a_shell)
{
	char text[256];
	size_t size;

	add(TARGET_BY_COMM, false, "it's*");
	add(TARGET_BY_EXE, true, "/bin/sh");
	size = target_names__describe(names, text, sizeof(text));
	assert_int_equal(size, strlen(text));
	assert_string_equal(text, "--comm 'it'\\''s*' --exclude-exe /bin/sh");
	target_names__describe(names, text, 12);
	assert_int_equal(strlen(text), 11);
	target_names__describe(NULL, text, sizeof(text));
	assert_string_equal(text, "");
}

EACH_TEST_WITH(NULL, tear_down);
