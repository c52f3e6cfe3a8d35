/* SPDX-License-Identifier: BSD-2-Clause */
/* Inflating .gnu_debugdata, within bounds of input, output and memory. */
#include "symbolize/minidebug.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "elf/elf_sections.h"

#define INPUT_MAX   (64u << 20)
#define MEMORY_MAX  (128u << 20) /* xz -9 needs 65 MB to decode */
#define OUTPUT_STEP (128u << 10)

static int error_of(lzma_ret result)
{
	switch (result) {
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	case LZMA_MEMLIMIT_ERROR:
		return -EFBIG;
	default:
		return -EBADMSG;
	}
}

/* Decode to the end of the stream; a stream that is cut short is damaged. */
static int decode_stream(lzma_stream *stream, uint64_t limit, int out)
{
	_cleanup_free_ uint8_t *buffer = malloc(OUTPUT_STEP);
	lzma_ret result;

	if (!buffer)
		return -ENOMEM;
	do {
		size_t made;
		int err;

		stream->next_out = buffer;
		stream->avail_out = OUTPUT_STEP;
		result = lzma_code(stream, LZMA_FINISH);
		made = OUTPUT_STEP - stream->avail_out;
		if (result != LZMA_OK && result != LZMA_STREAM_END)
			return error_of(result);
		if (stream->total_out > limit)
			return -EFBIG;
		err = write_full(out, buffer, made);
		if (err)
			return err;
	} while (result != LZMA_STREAM_END);
	return 0;
}

static int inflate_section(const uint8_t *data, size_t size, uint64_t limit, int out)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret result = lzma_stream_decoder(&stream, MEMORY_MAX, 0);
	int err;

	if (result != LZMA_OK)
		return error_of(result);
	stream.next_in = data;
	stream.avail_in = size;
	err = decode_stream(&stream, limit, out);
	lzma_end(&stream);
	return err;
}

int minidebug_inflate(struct elf_file *file, uint64_t limit, int *inflated)
{
	_cleanup_free_ void *data = NULL;
	_cleanup_close_ int out = -1;
	size_t size;
	int err = elf_file__section_data(file, ".gnu_debugdata", INPUT_MAX, &data, &size);

	if (err)
		return err == -ENOTSUP ? -EBADMSG : err;
	out = memfd_create("gnu_debugdata", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (out < 0)
		return -errno;
	err = inflate_section(data, size, limit, out);
	if (err)
		return err;
	if (fcntl(out, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
		return -errno;
	*inflated = steal_fd(out);
	return 0;
}
