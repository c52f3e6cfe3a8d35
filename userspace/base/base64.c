/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/base64.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>

#include "base/cleanup.h"

#define OUTPUT_SIZE (64 * 1024) /* a multiple of 4 */
#define STREAM_SIZE (64 * 1024)

struct base64_stream {
	FILE *out;
	int error;	/* the first one, positive errno */
	uint32_t group; /* bytes that wait for a third one */
	unsigned int waiting;
	size_t used;
	char buffer[OUTPUT_SIZE];
};

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void flush_buffer(struct base64_stream *b)
{
	errno = 0;
	if (!b->error && b->used && fwrite(b->buffer, 1, b->used, b->out) != b->used)
		b->error = errno ? errno : EIO;
	b->used = 0;
}

void base64_group(char text[4], uint32_t group, unsigned int count)
{
	text[0] = alphabet[group >> 18 & 63];
	text[1] = alphabet[group >> 12 & 63];
	text[2] = count > 1 ? alphabet[group >> 6 & 63] : '=';
	text[3] = count > 2 ? alphabet[group & 63] : '=';
}

static void put_group(struct base64_stream *b, uint32_t group, unsigned int count)
{
	base64_group(b->buffer + b->used, group, count);
	b->used += 4;
	if (b->used == sizeof(b->buffer))
		flush_buffer(b);
}

static ssize_t base64_write(void *cookie, const char *data, size_t size)
{
	struct base64_stream *b = cookie;

	for (size_t i = 0; i < size; i++) {
		b->group = b->group << 8 | (unsigned char)data[i];
		if (++b->waiting < 3)
			continue;
		put_group(b, b->group & 0xffffff, 3);
		b->group = 0;
		b->waiting = 0;
	}
	if (b->error) {
		errno = b->error;
		return 0; /* how a cookie's write reports failure */
	}
	return (ssize_t)size;
}

static int base64_close(void *cookie)
{
	struct base64_stream *b = cookie;
	int error;

	if (b->waiting)
		put_group(b, b->group << 8 * (3 - b->waiting), b->waiting);
	flush_buffer(b);
	error = b->error;
	free(b);
	errno = error;
	return error ? -1 : 0;
}

FILE *base64_writer(FILE *out)
{
	const cookie_io_functions_t functions = {.write = base64_write, .close = base64_close};
	_cleanup_free_ struct base64_stream *b = calloc(1, sizeof(*b));
	FILE *stream;

	if (!b)
		return NULL;
	b->out = out;
	stream = fopencookie(b, "w", functions);
	if (!stream)
		return NULL;
	(void)steal_ptr(b); /* base64_close() frees it */
	setvbuf(stream, NULL, _IOFBF, STREAM_SIZE);
	return stream;
}

static int digit_of(char c)
{
	return c >= 'A' && c <= 'Z'   ? c - 'A'
	       : c >= 'a' && c <= 'z' ? c - 'a' + 26
	       : c >= '0' && c <= '9' ? c - '0' + 52
	       : c == '+'	      ? 62
	       : c == '/'	      ? 63
				      : -1;
}

int base64_decode(const char *text, size_t size, uint8_t **bytes, size_t *count)
{
	_cleanup_free_ uint8_t *out = malloc(size / 4 * 3 + 1);
	size_t used = 0, padding = 0;

	if (!out)
		return -ENOMEM;
	while (padding < 2 && padding < size && text[size - 1 - padding] == '=')
		padding++;
	if (size % 4)
		return -EBADMSG;
	for (size_t i = 0; i < size; i += 4) {
		size_t wanted = i + 4 == size ? 4 - padding : 4;
		uint32_t group = 0;

		for (size_t j = 0; j < 4; j++) {
			int digit = j < wanted ? digit_of(text[i + j]) : 0;

			if (digit < 0)
				return -EBADMSG;
			group = group << 6 | (uint32_t)digit;
		}
		for (size_t j = 0; j + 1 < wanted; j++)
			out[used++] = (uint8_t)(group >> (16 - 8 * j));
	}
	*bytes = steal_ptr(out);
	*count = used;
	return 0;
}
