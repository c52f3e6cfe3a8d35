/* SPDX-License-Identifier: BSD-2-Clause */
/* Stories and expectations as text: items separated by ", ". */
#ifndef TESTS_UNIT_STORY_TEXT_H
#define TESTS_UNIT_STORY_TEXT_H

#define each_item(at, text) for (const char *at = (text); at; at = next_item(at))

static inline const char *next_item(const char *at)
{
	const char *end = strstr(at, ", ");

	return end ? end + 2 : NULL;
}

struct story_text {
	char text[4096];
	size_t size;
};

__attribute__((format(printf, 2, 3))) static inline void add_item(struct story_text *t,
								  const char *format, ...)
{
	va_list arguments;

	if (t->size)
		t->size += (size_t)snprintf(t->text + t->size, sizeof(t->text) - t->size, ", ");
	va_start(arguments, format);
	t->size += (size_t)vsnprintf(t->text + t->size, sizeof(t->text) - t->size, format,
				     arguments);
	va_end(arguments);
	assert_true(t->size < sizeof(t->text));
}

#endif
