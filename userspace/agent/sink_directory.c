/* SPDX-License-Identifier: BSD-2-Clause */
/* A sink that is a directory: a file for each request. Nothing in it is ever deleted: that is its owner's affair. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/sink_private.h"
#include "base/cleanup.h"
#include "base/output_file.h"

/* The name has been on disk since it was made. */
static bool is_file_name(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/');
}

static void cleanup_place(struct output_place **place)
{
	output_place__free(*place);
}

int sink_directory__write(const char *directory, const struct sink_request *r)
{
	_cleanup_(cleanup_place) struct output_place *place = NULL;
	_cleanup_free_ char *path = NULL;
	struct output_file *file;
	int err;

	if (!is_file_name(r->path))
		return -EINVAL;
	if (asprintf(&path, "%s/%s", directory, r->path) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	err = output_place__open(path, OUTPUT_CHOSEN, &place);
	if (!err)
		err = output_file__open_at(place, &file);
	if (err)
		return err;
	if (r->size)
		fwrite(r->body, 1, r->size, output_file__stream(file));
	return output_file__commit(file);
}
