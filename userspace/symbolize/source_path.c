/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of source files: joined with the directory of the compilation, normalised by their text. */
#include "symbolize/dwarf_private.h"

#include <errno.h>
#include <string.h>

struct path {
	char *buffer;
	size_t size, length;
};

static int append_piece(struct path *p, const char *text, size_t length)
{
	if (length >= p->size - p->length)
		return -ENAMETOOLONG;
	memcpy(p->buffer + p->length, text, length);
	p->length += length;
	p->buffer[p->length] = '\0';
	return 0;
}

/* Back to before the last slash; the root has no parent. */
static void drop_component(struct path *p)
{
	while (p->length && p->buffer[p->length - 1] != '/')
		p->length--;
	if (p->length)
		p->length--;
	p->buffer[p->length] = '\0';
}

/* Add the components of `text` to an absolute path, each with a slash before it. */
static int append_components(struct path *p, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "/");
		int err;

		if (length == 2 && !memcmp(text, "..", 2)) {
			drop_component(p);
		} else if (length && !(length == 1 && *text == '.')) {
			err = append_piece(p, "/", 1);
			if (!err)
				err = append_piece(p, text, length);
			if (err)
				return err;
		}
		text += length;
		text += *text == '/';
	}
	return 0;
}

int source_path(const char *directory, const char *name, char *buffer, size_t size)
{
	struct path p = {.buffer = buffer, .size = size};
	int err = 0;

	buffer[0] = '\0';
	if (*name == '/')
		directory = NULL;
	if (*name == '/' || (directory && *directory == '/')) {
		if (directory)
			err = append_components(&p, directory);
		if (!err)
			err = append_components(&p, name);
		return err ? err : p.length ? 0 : append_piece(&p, "/", 1);
	}
	if (directory && *directory) {
		err = append_piece(&p, directory, strlen(directory));
		if (!err)
			err = append_piece(&p, "/", 1);
	}
	return err ? err : append_piece(&p, name, strlen(name));
}
