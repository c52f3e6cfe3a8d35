/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gzip by zlib behind a FILE: bytes written to it come out compressed on another. And inflating of compressed
 * sections, piece by piece, so that a size that a file only claims costs no memory.
 */
#include "base/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/minmax.h"

/*
 * MB/s and ratio (Firefox profile; Chrome trace): 2: 86, 2.40; 273, 8.3. 4: 46, 2.48; 149, 9.1. 6: 16, 2.56; 73,
 * 10.7. It is most of the time after the stop. `make bench SECTIONS=export`
 */
#define LEVEL	    2
#define OUTPUT_SIZE (64 * 1024)
#define SENT_LEVEL  6  /* for uploads: a window of a busy host is 6 % smaller than with level 2 */
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

/*
 * crc32_combine(a, b, n) moves a over n bytes of 0 and adds b; the inversion at the begin and end of a CRC is undone
 * before and redone afterwards.
 */
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

struct inflater {
	z_stream z;
	int fd;
	uint64_t offset, left; /* input that was not read yet */
	unsigned char *out;
	uint64_t size, done;
	unsigned char input[INPUT_SIZE];
};

static int refill_input(struct inflater *f)
{
	size_t want = min_u64(f->left, sizeof(f->input));
	ssize_t got = want ? pread_full(f->fd, f->input, want, f->offset) : 0;

	if (got <= 0)
		return got < 0 ? (int)got : -EBADMSG;
	f->offset += got;
	f->left -= got;
	f->z.next_in = f->input;
	f->z.avail_in = got;
	return 0;
}

/* One call of inflate(): 0 go on, 1 at the end of a stream, or negative errno. */
static int inflate_step(struct inflater *f)
{
	uint64_t room = f->size - f->done;
	unsigned char spill;
	uInt step = min_u64(room, OUTPUT_STEP);
	int result;

	/* Behind the last byte there is room for one more, to see whether it would come. */
	f->z.next_out = step ? f->out + f->done : &spill;
	f->z.avail_out = step ? step : 1;
	result = inflate(&f->z, Z_NO_FLUSH);
	if (!step && !f->z.avail_out)
		return -EFBIG;
	if (step)
		f->done += step - f->z.avail_out;
	if (result == Z_STREAM_END)
		return 1;
	if (result == Z_MEM_ERROR)
		return -ENOMEM;
	return result == Z_OK || (result == Z_BUF_ERROR && !f->z.avail_in) ? 0 : -EBADMSG;
}

/* Linkers that compress in pieces write several streams, one behind the other. */
static int inflate_all(struct inflater *f)
{
	for (;;) {
		int result = f->z.avail_in ? 0 : refill_input(f);

		if (!result)
			result = inflate_step(f);
		if (result < 0)
			return result;
		if (!result)
			continue;
		if (f->done == f->size || (!f->left && !f->z.avail_in))
			return 0;
		if (inflateReset(&f->z) != Z_OK)
			return -EBADMSG;
	}
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
	f->size = size;
	if (inflateInit(&f->z) != Z_OK)
		return -ENOMEM;
	err = inflate_all(f);
	inflateEnd(&f->z);
	*inflated = f->done;
	return err;
}

/* ---- gzip files ------------------------------------------------------------------------------ */

#define GROW_SIZE (1U << 20)

struct unpacker {
	z_stream z;
	const uint8_t *in;
	size_t left; /* of the input, behind what zlib has */
	uint8_t *out;
	size_t done, room;
	uint64_t limit;
};

bool is_gzip(const uint8_t *bytes, size_t size)
{
	return size >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8;
}

/* Twice as much room each time, for the kernel moves pages, not bytes. */
static int grow_output(struct unpacker *u)
{
	uint64_t room = min_u64(u->room ? 2 * (uint64_t)u->room : GROW_SIZE, u->limit);
	uint8_t *out;

	if (u->done == u->limit)
		return -EFBIG;
	out = realloc(u->out, room);
	if (!out)
		return -ENOMEM;
	u->out = out;
	u->room = room;
	return 0;
}

/* 1: the member has ended; 0: go on. One byte beyond the limit is requested, to detect output that is too large. */
static int unpack_step(struct unpacker *u)
{
	unsigned char beyond;
	bool full = u->done == u->limit;
	uInt step;
	int err = !full && u->done == u->room ? grow_output(u) : 0, result;

	if (err)
		return err;
	if (!u->z.avail_in) {
		u->z.next_in = (Bytef *)u->in;
		u->z.avail_in = (uInt)min_u64(u->left, OUTPUT_STEP);
		u->in += u->z.avail_in;
		u->left -= u->z.avail_in;
	}
	step = full ? 1 : (uInt)min_u64(u->room - u->done, OUTPUT_STEP);
	u->z.next_out = full ? &beyond : u->out + u->done;
	u->z.avail_out = step;
	result = inflate(&u->z, Z_NO_FLUSH);
	if (full && !u->z.avail_out)
		return -EFBIG;
	if (!full)
		u->done += step - u->z.avail_out;
	if (result == Z_STREAM_END)
		return 1;
	if (result == Z_MEM_ERROR)
		return -ENOMEM;
	if (result == Z_OK || (result == Z_BUF_ERROR && u->left))
		return 0;
	return -EBADMSG;
}

static bool only_zeros_left(const struct unpacker *u)
{
	for (size_t i = 0; i < u->z.avail_in; i++)
		if (u->z.next_in[i])
			return false;
	for (size_t i = 0; i < u->left; i++)
		if (u->in[i])
			return false;
	return true;
}

static int unpack_members(struct unpacker *u)
{
	for (;;) {
		int result = unpack_step(u);

		if (result < 0)
			return result;
		if (!result)
			continue;
		if (only_zeros_left(u))
			return 0;
		if (inflateReset(&u->z) != Z_OK)
			return -EBADMSG;
	}
}

int gunzip_bytes(const uint8_t *bytes, size_t size, uint64_t limit, uint8_t **out, size_t *out_size,
		 uint64_t *offset)
{
	struct unpacker u = {.in = bytes, .left = size, .limit = limit};
	int err;

	*offset = 0;
	if (inflateInit2(&u.z, MAX_WBITS + 16) != Z_OK)
		return -ENOMEM;
	err = unpack_members(&u);
	*offset = (uint64_t)(u.in - bytes) - u.z.avail_in;
	inflateEnd(&u.z);
	if (err) {
		free(u.out);
		return err;
	}
	*out = u.out;
	*out_size = u.done;
	return 0;
}
