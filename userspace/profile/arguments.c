/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/arguments.h"

#include <stdbool.h>
#include <string.h>

#include <sysprof/profile.h>

#include "base/text_line.h"

struct words {
	const char *at, *end; /* the next word; its end is that of the text after the last one */
};

static struct words first_word(const char *text)
{
	return (struct words){text, text + strcspn(text, " ")};
}

static bool go_on(struct words *w)
{
	if (!*w->end)
		return false;
	*w = first_word(w->end + 1);
	return true;
}

static bool is_word(const struct words *w, const char *word)
{
	size_t length = strlen(word);

	return (size_t)(w->end - w->at) == length && !memcmp(w->at, word, length);
}

static void add_word(struct text_line *line, const struct words *w)
{
	add_text(line, "%s%.*s", line->used ? " " : "", (int)(w->end - w->at), w->at);
}

/* Behind "--": a program and its arguments. */
static void add_program(struct text_line *line, struct words *w)
{
	add_word(line, w);
	if (!go_on(w))
		return;
	add_word(line, w);
	if (*w->end)
		add_text(line, " " ARGUMENTS_LEFT_OUT);
}

/* Behind "record". Options of the recorder are left out, too: other facts have what they chose. */
static void shorten_record(struct text_line *line, struct words *w)
{
	if (!is_word(w, "--"))
		add_text(line, " " ARGUMENTS_LEFT_OUT);
	if (is_word(w, ARGUMENTS_LEFT_OUT) && !go_on(w))
		return;
	if (is_word(w, "--"))
		add_program(line, w);
}

/* "-- ./orders …", "--service shop -p 12": up to "--" it is the recorder's. */
static void shorten_target(struct text_line *line, const char *target)
{
	struct words w = first_word(target);

	while (!is_word(&w, "--")) {
		add_word(line, &w);
		if (!go_on(&w))
			return;
	}
	add_program(line, &w);
}

/* "sysprof record … -- ./orders …", "sysprof agent" */
static void shorten_command(struct text_line *line, const char *command)
{
	struct words w = first_word(command);
	bool records, has_more;

	add_word(line, &w);
	has_more = go_on(&w);
	records = has_more && is_word(&w, "record");
	if (records || (has_more && is_word(&w, "agent"))) {
		add_word(line, &w);
		has_more = go_on(&w);
	}
	if (has_more && records)
		shorten_record(line, &w);
	else if (has_more)
		add_text(line, " " ARGUMENTS_LEFT_OUT);
}

const char *value_without_arguments(const char *key, const char *value,
				    char buffer[ARGUMENTS_TEXT_SIZE])
{
	struct text_line line = {buffer, ARGUMENTS_TEXT_SIZE, 0};

	buffer[0] = '\0';
	if (!strcmp(key, META_COMMAND) || !strcmp(key, META_COMMAND_SHORT))
		shorten_command(&line, value);
	else if (!strcmp(key, META_TARGET))
		shorten_target(&line, value);
	else
		return value;
	return buffer;
}
