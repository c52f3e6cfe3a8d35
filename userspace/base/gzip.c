/* SPDX-License-Identifier: BSD-2-Clause */
/* gzip by zlib behind a FILE: what is written to it comes out compressed on another. */
#include "base/gzip.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <zlib.h>

#include "base/cleanup.h"

/* 6 is 4 % smaller on profiles, and takes 3 times as long: most of the time after the stop */
#define LEVEL	    4
#define OUTPUT_SIZE (64 * 1024)
#define STREAM_SIZE (64 * 1024)
#define OS_UNKNOWN  255

struct gzip_stream {
	z_stream z;
	gz_header header;
	FILE *out;
	int error; /* the first one, positive errno */
	unsigned char buffer[OUTPUT_SIZE];
};

static void note_error(struct gzip_stream *gz, int error)
{
	if (!gz->error)
		gz->error = error ? error : EIO;
}

/* Run deflate until it has taken its input (or, with Z_FINISH, written its last byte). */
static void compress_input(struct gzip_stream *gz, int flush)
{
	int result;

	do {
		size_t size;

		gz->z.next_out = gz->buffer;
		gz->z.avail_out = sizeof(gz->buffer);
		result = deflate(&gz->z, flush);
		if (result == Z_STREAM_ERROR)
			return note_error(gz, EINVAL);
		size = sizeof(gz->buffer) - gz->z.avail_out;
		errno = 0;
		if (size && fwrite(gz->buffer, 1, size, gz->out) != size)
			return note_error(gz, errno);
	} while (flush == Z_FINISH ? result != Z_STREAM_END : gz->z.avail_out == 0);
}

static ssize_t gzip_write(void *cookie, const char *data, size_t size)
{
	struct gzip_stream *gz = cookie;
	size_t left = size;

	while (left && !gz->error) {
		uInt part = left < (1U << 30) ? left : 1U << 30;

		gz->z.next_in = (Bytef *)data + (size - left);
		gz->z.avail_in = part;
		compress_input(gz, Z_NO_FLUSH);
		left -= part;
	}
	if (gz->error) {
		errno = gz->error;
		return 0; /* how a cookie's write says that it failed */
	}
	return size;
}

static int gzip_close(void *cookie)
{
	struct gzip_stream *gz = cookie;
	int error;

	gz->z.next_in = NULL;
	gz->z.avail_in = 0;
	if (!gz->error)
		compress_input(gz, Z_FINISH);
	errno = 0;
	if (fflush(gz->out) || ferror(gz->out))
		note_error(gz, errno);
	deflateEnd(&gz->z);
	error = gz->error;
	free(gz);
	errno = error;
	return error ? -1 : 0;
}

FILE *gzip_writer(FILE *out)
{
	const cookie_io_functions_t functions = {.write = gzip_write, .close = gzip_close};
	_cleanup_free_ struct gzip_stream *gz = calloc(1, sizeof(*gz));
	FILE *stream;

	if (!gz)
		return NULL;
	gz->out = out;
	gz->header.os = OS_UNKNOWN; /* no time, no name, no system: equal input, equal bytes */
	if (deflateInit2(&gz->z, LEVEL, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK) {
		errno = ENOMEM;
		return NULL;
	}
	stream = deflateSetHeader(&gz->z, &gz->header) == Z_OK ? fopencookie(gz, "w", functions)
							       : NULL;
	if (!stream) {
		deflateEnd(&gz->z);
		errno = ENOMEM;
		return NULL;
	}
	(void)steal_ptr(gz); /* gzip_close() frees it */
	setvbuf(stream, NULL, _IOFBF, STREAM_SIZE);
	return stream;
}

uint32_t crc32_update(uint32_t crc, const void *data, size_t size)
{
	return crc32_z(crc, data, size);
}
