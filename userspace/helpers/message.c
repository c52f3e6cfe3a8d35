/* SPDX-License-Identifier: BSD-2-Clause */
#include "helpers/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

void message__close_fds(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

int message__send(int socket, const struct message *message, int flags)
{
	const struct message_frame *frame = &message->frame;
	ssize_t sent;

	if (frame->size > MESSAGE_SIZE_MAX || message->fd_count > MESSAGE_FDS_MAX)
		return -EMSGSIZE;
	sent = fd_message__send(socket, frame, sizeof(*frame), message->bytes, frame->size,
				message->fds, message->fd_count, flags);
	return sent < 0 ? (int)sent : 0;
}

static bool is_message(const struct message_frame *frame, size_t size)
{
	return size >= sizeof(*frame) && frame->size == size - sizeof(*frame) &&
	       !(frame->flags & ~(uint32_t)MESSAGE_FLAGS);
}

int message__receive(int socket, struct message_buffer *buffer, int flags)
{
	const size_t room = offsetof(struct message_buffer, fds);
	ssize_t got;

	buffer->fd_count = MESSAGE_FDS_MAX;
	got = fd_message__receive(socket, buffer, room, buffer->fds, &buffer->fd_count, flags);
	if (got > 0 && is_message(&buffer->frame, (size_t)got))
		return 1;
	if (got >= 0) /* an empty packet may have descriptors, too */
		message__close_fds(buffer->fds, buffer->fd_count);
	buffer->fd_count = 0;
	return got > 0 || got == -EMSGSIZE ? -EBADMSG : (int)got;
}

int message__write(int socket, const struct message_buffer *buffer)
{
	return write_full(socket, buffer, sizeof(buffer->frame) + buffer->frame.size);
}

int message__read(int socket, struct message_buffer *buffer)
{
	const ssize_t room = offsetof(struct message_buffer, fds);
	ssize_t got;

	do /* beyond the room, where more than a message shows */
		got = read(socket, buffer, sizeof(*buffer));
	while (got < 0 && errno == EINTR);
	if (got > room || (got > 0 && !is_message(&buffer->frame, (size_t)got)))
		return -EBADMSG;
	return got < 0 ? -errno : got > 0;
}

/* ---- more than a packet ----------------------------------------------------------------------- */

int sealed_memory__new(const char *name, size_t size)
{
	_cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK))
		return -errno;
	return steal_fd(fd);
}

int sealed_memory__seal(int fd)
{
	return fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) ? -errno : 0;
}

int sealed_memory__read(int fd, void *bytes, size_t size)
{
	const int wanted = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & wanted) != wanted ||
	    pread_full(fd, bytes, size, 0) != (ssize_t)size)
		return -EPROTO;
	return 0;
}
