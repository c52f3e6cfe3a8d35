/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libzstd's streaming interface, which is stable since its version 1.0: the types are those of zstd.h.
 * A stream may want 128 MB of what came before at most, which is the library's own default.
 */
#include "stream/perf/perf_unpack.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define LIBRARY "libzstd.so.1"

struct zstd_input {
	const void *bytes;
	size_t size, at;
};

struct zstd_output {
	void *bytes;
	size_t size, at;
};

struct perf_unpacker {
	void *library, *stream;
	void *(*create)(void);
	size_t (*free)(void *stream);
	size_t (*unpack)(void *stream, struct zstd_output *out, struct zstd_input *in);
	unsigned int (*is_error)(size_t result);
};

#ifdef SYSPROF_STATIC /* a library of the host needs the host's C library */
void perf_unpack__prepare(void)
{
}

static int load(struct perf_unpacker *u)
{
	(void)u;
	return -ENOPKG;
}
#else
/* A library that is loaded is found by its name, without a look at the file system. */
void perf_unpack__prepare(void)
{
	(void)dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

static int load(struct perf_unpacker *u)
{
	u->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!u->library)
		return -ENOPKG;
	*(void **)&u->create = dlsym(u->library, "ZSTD_createDStream");
	*(void **)&u->free = dlsym(u->library, "ZSTD_freeDStream");
	*(void **)&u->unpack = dlsym(u->library, "ZSTD_decompressStream");
	*(void **)&u->is_error = dlsym(u->library, "ZSTD_isError");
	return u->create && u->free && u->unpack && u->is_error ? 0 : -ENOPKG;
}
#endif

int perf_unpacker__new(struct perf_unpacker **unpacker)
{
	struct perf_unpacker *u = calloc(1, sizeof(*u));
	int err = u ? load(u) : -ENOMEM;

	if (!err) {
		u->stream = u->create();
		err = u->stream ? 0 : -ENOMEM;
	}
	return finish_new(err, u, perf_unpacker__free, unpacker);
}

void perf_unpacker__free(struct perf_unpacker *u)
{
	if (!u)
		return;
	if (u->stream)
		u->free(u->stream);
	if (u->library)
		dlclose(u->library);
	free(u);
}

int perf_unpacker__step(struct perf_unpacker *u, struct cursor *in, void *to, size_t room,
			size_t *got)
{
	struct zstd_input input = {.bytes = in->at, .size = (size_t)(in->end - in->at)};
	struct zstd_output output = {.bytes = to, .size = room};
	size_t result = u->unpack(u->stream, &output, &input);

	if (u->is_error(result))
		return -EBADMSG;
	in->at += input.at;
	*got = output.at;
	return 0;
}
