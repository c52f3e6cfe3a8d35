/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet as a helper that was taken over may send it. The input: how many descriptors it has, 7 bytes without meaning,
 * then the packet. It is a message, and means the same when it is sent again, or nothing of it stays open.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "tenants/message.h"
#include "unit/raw_packet.h"

#define CONTROL	      8
#define SIZE_MAX_SENT (2 * MESSAGE_SIZE_MAX)

static int ends[2] = {-1, -1};

/* The lowest descriptor that is free. */
static int next_fd(void)
{
	int fd = fcntl(ends[0], F_DUPFD, 0);

	MUST(fd >= 0 && !close(fd));
	return fd;
}

static void try_again(const struct message_buffer *got)
{
	const struct message m = {.frame = got->frame,
				  .bytes = got->bytes,
				  .fds = got->fds,
				  .fd_count = got->fd_count};
	static struct message_buffer again;

	MUST(!message__send(ends[0], &m, 0));
	MUST(message__receive(ends[1], &again, MSG_DONTWAIT) == 1);
	MUST(!memcmp(&again.frame, &got->frame, sizeof(again.frame)));
	MUST(!memcmp(again.bytes, got->bytes, got->frame.size) && again.fd_count == got->fd_count);
	message__close_fds(again.fds, again.fd_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct message_buffer buffer;
	int fds[RAW_FDS_MAX], before, got;
	size_t fd_count;

	if (size < CONTROL || size > SIZE_MAX_SENT)
		return 0;
	if (ends[0] < 0)
		MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	fd_count = data[0] % (RAW_FDS_MAX + 1);
	for (size_t i = 0; i < fd_count; i++)
		fds[i] = ends[i % 2];
	before = next_fd();
	MUST(send_packet(ends[0], data + CONTROL, size - CONTROL, fds, fd_count) ==
	     (ssize_t)(size - CONTROL));
	got = message__receive(ends[1], &buffer, MSG_DONTWAIT);
	MUST(got == 1 || got == -EBADMSG || (!got && size == CONTROL));
	if (got == 1) {
		MUST(buffer.frame.size == size - CONTROL - sizeof(buffer.frame));
		MUST(buffer.frame.size <= MESSAGE_SIZE_MAX && buffer.fd_count == fd_count);
		MUST(!(buffer.frame.flags & ~(uint32_t)MESSAGE_FLAGS));
		fuzz_read(buffer.bytes, buffer.frame.size);
		try_again(&buffer);
		message__close_fds(buffer.fds, buffer.fd_count);
	}
	if (!fd_count && size > CONTROL) {
		MUST(write(ends[0], data + CONTROL, size - CONTROL) == (ssize_t)(size - CONTROL));
		MUST(message__read(ends[1], &buffer) == got);
	}
	MUST(next_fd() == before);
	return 0;
}
