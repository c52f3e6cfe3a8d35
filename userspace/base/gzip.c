/* SPDX-License-Identifier: BSD-2-Clause */
/* gzip by zlib behind a FILE. Inflating is piece by piece: a size only claimed costs no memory. */
#include "base/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/types.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/minmax.h"

/*
 * MB/s and ratio (Firefox profile; Chrome trace) by level: 2: 86, 2.40; 273, 8.3. 4: 46, 2.48; 149,
 * 9.1. 6: 16, 2.56; 73, 10.7. Most of the time after the stop. `make bench SECTIONS=export`
 */
#define LEVEL	    2
#define OUTPUT_SIZE (64 * 1024)
#define SENT_LEVEL  4  /* for uploads: three fifths of the time of level 6, for the same bytes */
#define SENT_MEMORY 7  /* of zlib's: blocks of 8 K symbols at most */
#define CUT_SIZE    16 /* bytes that one more block may take */
#define STREAM_SIZE (64 * 1024)
#define INPUT_SIZE  (256 * 1024)
#define OUTPUT_STEP (1U << 30) /* zlib counts in unsigned int */
#define OS_UNKNOWN  255

struct gzip_stream {
	z_stream z;
	gz_header header;
	FILE *out;
	uint64_t *written; /* or NULL */
	int error;	   /* the first one, positive errno */
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
	if (gz->written)
		*gz->written += size - left;
	if (gz->error) {
		errno = gz->error;
		return 0; /* how a cookie's write reports failure */
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

FILE *gzip_writer(FILE *out, uint64_t *written)
{
	const cookie_io_functions_t functions = {.write = gzip_write, .close = gzip_close};
	_cleanup_free_ struct gzip_stream *gz = calloc(1, sizeof(*gz));
	FILE *stream;

	if (!gz)
		return NULL;
	gz->out = out;
	gz->written = written;
	if (written)
		*written = 0;
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

/* All of it; false: there is no room. */
static bool deflate_pieces(z_stream *z, const uint8_t *bytes, size_t size, const size_t *cuts,
			   size_t cut_count)
{
	size_t done = 0;

	z->next_in = (Bytef *)bytes;
	for (size_t i = 0; i < cut_count; i++) {
		if (cuts[i] <= done || cuts[i] >= size)
			continue;
		z->avail_in = (uInt)(cuts[i] - done);
		done = cuts[i];
		if (deflate(z, Z_BLOCK) != Z_OK || z->avail_in)
			return false;
	}
	z->avail_in = (uInt)(size - done);
	return deflate(z, Z_FINISH) == Z_STREAM_END;
}

int gzip_bytes(const uint8_t *bytes, size_t size, const size_t *cuts, size_t cut_count,
	       uint8_t **out, size_t *out_size)
{
	gz_header header = {.os = OS_UNKNOWN};
	z_stream z = {};
	_cleanup_free_ uint8_t *data = NULL;
	size_t room;
	int err = -ENOMEM;

	if (size > INT32_MAX || cut_count > size)
		return -EFBIG;
	if (deflateInit2(&z, SENT_LEVEL, Z_DEFLATED, MAX_WBITS + 16, SENT_MEMORY,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	room = deflateBound(&z, size) + 32 + CUT_SIZE * cut_count; /* with the header */
	data = malloc(room);
	if (data && deflateSetHeader(&z, &header) == Z_OK) {
		z.next_out = data;
		z.avail_out = (uInt)min_u64(room, UINT_MAX);
		room = z.avail_out;
		if (deflate_pieces(&z, bytes, size, cuts, cut_count))
			err = 0;
	}
	*out_size = room - z.avail_out;
	deflateEnd(&z);
	if (!err)
		*out = steal_ptr(data);
	return err;
}

uint32_t crc32_update(uint32_t crc, const void *data, size_t size)
{
	return crc32_z(crc, data, size);
}

/* crc32_combine(a, b, n) moves a over n zero bytes and adds b; a CRC is inverted at both ends. */
uint32_t crc32_zeros(uint32_t crc, uint64_t count)
{
	while (count) {
		uint64_t step = min_u64(count, OUTPUT_STEP);

		crc = ~(uint32_t)crc32_combine(~crc, 0, (z_off_t)step);
		count -= step;
	}
	return crc;
}

/* ---- inflating ------------------------------------------------------------------------------- */

#define GROW_SIZE (1U << 20)

struct inflater {
	z_stream z;
	int fd; /* of the input; -1: it is in `memory` */
	const uint8_t *memory;
	uint64_t offset, left; /* of the input, behind what zlib has */
	uint8_t *out;
	uint64_t done, room, limit; /* with room for less than the limit, `out` grows */
	uint8_t input[INPUT_SIZE];
};

bool is_gzip(const uint8_t *bytes, size_t size)
{
	return size >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8;
}

static int next_input(struct inflater *f)
{
	bool is_file = f->fd >= 0;
	size_t size = min_u64(f->left, is_file ? INPUT_SIZE : OUTPUT_STEP);
	ssize_t got = is_file ? pread_full(f->fd, f->input, size, f->offset) : (ssize_t)size;

	if (got < 0 || (size && !got))
		return got < 0 ? (int)got : -EBADMSG;
	f->z.next_in = is_file ? f->input : (Bytef *)f->memory + f->offset;
	f->z.avail_in = (uInt)got;
	f->offset += got;
	f->left -= got;
	return 0;
}

/* Doubles the room each time: realloc() moves pages, not bytes. */
static int grow_output(struct inflater *f)
{
	uint64_t room = min_u64(f->room ? 2 * f->room : GROW_SIZE, f->limit);
	uint8_t *out = realloc(f->out, room);

	if (!out)
		return -ENOMEM;
	f->out = out;
	f->room = room;
	return 0;
}

/* 1: a stream has ended; 0: go on; -ENODATA: it has no end. Requests a byte beyond the limit, to detect larger output. */
static int inflate_step(struct inflater *f)
{
	bool full = f->done == f->limit;
	int err = f->z.avail_in ? 0 : next_input(f), result;
	unsigned char beyond;
	uInt step;

	if (!err && !full && f->done == f->room)
		err = grow_output(f);
	if (err)
		return err;
	step = full ? 1 : (uInt)min_u64(f->room - f->done, OUTPUT_STEP);
	f->z.next_out = full ? &beyond : f->out + f->done;
	f->z.avail_out = step;
	result = inflate(&f->z, Z_NO_FLUSH);
	if (full && !f->z.avail_out)
		return -EFBIG;
	if (!full)
		f->done += step - f->z.avail_out;
	if (result == Z_STREAM_END)
		return 1;
	if (result == Z_MEM_ERROR)
		return -ENOMEM;
	if (result == Z_BUF_ERROR)
		return f->left ? 0 : -ENODATA;
	return result == Z_OK ? 0 : -EBADMSG;
}

/* Stream after stream, until `is_end`. */
static int inflate_all(struct inflater *f, int window_bits,
		       bool (*is_end)(const struct inflater *f))
{
	int result;

	if (inflateInit2(&f->z, window_bits) != Z_OK)
		return -ENOMEM;
	do {
		result = inflate_step(f);
		if (result > 0 && !is_end(f))
			result = inflateReset(&f->z) == Z_OK ? 0 : -EBADMSG;
	} while (!result);
	inflateEnd(&f->z);
	return result < 0 ? result : 0;
}

/* Linkers that compress in pieces write several streams, one behind the other. */
static bool is_whole(const struct inflater *f)
{
	return f->done == f->limit || (!f->left && !f->z.avail_in);
}

int inflate_at(int fd, uint64_t offset, uint64_t compressed, void *out, uint64_t size,
	       uint64_t *inflated)
{
	_cleanup_free_ struct inflater *f = calloc(1, sizeof(*f));
	int err;

	*inflated = 0;
	if (!f)
		return -ENOMEM;
	f->fd = fd;
	f->offset = offset;
	f->left = compressed;
	f->out = out;
	f->room = f->limit = size;
	err = inflate_all(f, MAX_WBITS, is_whole);
	*inflated = f->done;
	return err == -ENODATA ? -EBADMSG : err;
}

/* After a member of a gzip file zeros may follow. */
static bool has_only_zeros(const struct inflater *f)
{
	for (size_t i = 0; i < f->z.avail_in; i++)
		if (f->z.next_in[i])
			return false;
	for (size_t i = 0; i < f->left; i++)
		if (f->memory[f->offset + i])
			return false;
	return true;
}

int gunzip_bytes(const uint8_t *bytes, size_t size, uint64_t limit, uint8_t **out, size_t *out_size,
		 uint64_t *offset)
{
	_cleanup_free_ struct inflater *f = calloc(1, sizeof(*f));
	int err;

	*offset = 0;
	if (!f)
		return -ENOMEM;
	f->fd = -1;
	f->memory = bytes;
	f->left = size;
	f->limit = limit;
	err = inflate_all(f, MAX_WBITS + 16, has_only_zeros);
	*offset = f->offset - f->z.avail_in;
	if (err && err != -ENODATA) {
		free(f->out);
		return err;
	}
	*out = f->out;
	*out_size = f->done;
	return err;
}
