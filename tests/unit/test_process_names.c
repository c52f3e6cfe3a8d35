/* SPDX-License-Identifier: BSD-2-Clause */
/* What processes are called where there is room for one name, and users by the host's list of them. */
#include <sysprof/profile_builder.h>

#include "text_cases.h"
#include "base/utf8.h"
#include "formats/out/process_title.h"
#include "services/users.h"

#include "unit/tools.h"

static struct string_id *field_of(struct profile_names *names, const char *label)
{
#define X(field, key)                                                                              \
	if (!strcmp(label, key))                                                                   \
		return &names->field;
	PROCESS_NAMES(X)
#undef X
	fail_msg("no label %s", label);
	return NULL;
}

/* "NAME[ LABEL=VALUE]…"; "~" is a blank. */
static void put_title(FILE *out, char *input)
{
	struct profile_builder *b = profile_builder__new();
	struct profile_process process = {};
	char title[PROCESS_TITLE_SIZE];
	const char *text;

	for (char *at = input; *at; at++)
		*at = *at == ' ' ? '\n' : *at == '~' ? ' ' : *at;
	process.name = profile_builder__string(b, strsep(&input, "\n"));
	for (char *word; (word = strsep(&input, "\n"));) {
		char *label = strsep(&word, "=");

		if (!strcmp(label, "kernel"))
			process.is_kernel = true;
		else
			*field_of(&process.names, label) = profile_builder__string(b, word);
	}
	text = process_title(profile_builder__view(b), &process, title);
	fputs(text, out);
	for (size_t i = 0; text[i]; i += utf8_sequence(text + i, strlen(text + i)))
		assert_true(utf8_sequence(text + i, strlen(text + i)) > 0);
	profile_builder__free(b);
}

/* Lines of the file; the last one has the numbers of users. */
static void put_users(FILE *out, char *input)
{
	char name[USER_NAME_SIZE], path[128], *last = strrchr(input, '\n');
	struct users *users;

	make_scratch();
	snprintf(path, sizeof(path), "%s/passwd", scratch);
	if (last) {
		FILE *file = fopen(path, "w");

		assert_non_null(file);
		fwrite(input, 1, last + 1 - input, file);
		fclose(file);
	}
	assert_int_equal(users__new(path, &users), 0);
	for (char *number, *rest = last ? last + 1 : input; (number = strsep(&rest, " "));) {
		users__name(users, (uid_t)strtoul(number, NULL, 10), name);
		fprintf(out, "%s%s", name, rest ? " " : "");
	}
	users__free(users);
	remove_scratch();
}

static const struct text_verb verbs[] = {{"title", put_title}, {"users", put_users}, {}};

TEXT_TABLE("process_names", verbs, NULL, NULL);

TEST(users_are_found_by_each_of_their_names)
{
	char path[128];
	FILE *file;
	uid_t uid;

	make_scratch();
	snprintf(path, sizeof(path), "%s/passwd", scratch);
	assert_int_equal(users_find(path, "root", &uid), -ENOENT);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs("root:x:0:0::/:/bin/sh\ntoor:x:0:0::/:/bin/sh\n+nis:x:7:0::/:/bin/sh\nlast:x:12:0::/:",
	      file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(users_find(path, "toor", &uid), 0);
	assert_int_equal(uid, 0);
	assert_int_equal(users_find(path, "last", &uid), 0);
	assert_int_equal(uid, 12);
	assert_int_equal(users_find(path, "nis", &uid), -ENOENT);
	assert_int_equal(users_find(path, "las", &uid), -ENOENT);
	/* a pipe would never have an end */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(users_find(path, "root", &uid), -ENOENT);
	remove_scratch();
}

TEST(long_names_are_cut_between_characters)
{
	struct profile_builder *b = profile_builder__new();
	struct profile_process process = {};
	char title[PROCESS_TITLE_SIZE], longest[600];

	for (size_t i = 0; i + 3 < sizeof(longest); i += 3)
		memcpy(longest + i, "\xe2\x82\xac", 4);
	process.name = profile_builder__string(b, longest);
	assert_string_equal(process_title(profile_builder__view(b), &process, title), longest);
	process.names.service = profile_builder__string(b, longest + 3);
	process.names.pod = profile_builder__string(b, longest + 6);
	process.names.name_space = profile_builder__string(b, longest + 9);
	assert_ptr_equal(process_title(profile_builder__view(b), &process, title), title);
	assert_true(strlen(title) > 200 && strlen(title) < sizeof(title));
	assert_string_equal(title + strlen(title) - 4, "\xe2\x82\xac)");
	profile_builder__free(b);
}
