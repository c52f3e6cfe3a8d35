/* SPDX-License-Identifier: BSD-2-Clause */
#include "tenants/message.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
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

union fd_space {
	struct cmsghdr header;
	char space[CMSG_SPACE(MESSAGE_FDS_MAX * sizeof(int))];
};

int message__send(int socket, const struct message *message, int flags)
{
	const struct message_frame *frame = &message->frame;
	struct iovec parts[2] = {{(void *)frame, sizeof(*frame)},
				 {(void *)message->bytes, frame->size}};
	struct msghdr packet = {.msg_iov = parts, .msg_iovlen = 2};
	size_t size = message->fd_count * sizeof(int);
	union fd_space control = {};
	ssize_t sent;

	if (frame->size > MESSAGE_SIZE_MAX || message->fd_count > MESSAGE_FDS_MAX)
		return -EMSGSIZE;
	if (size) {
		packet.msg_control = &control;
		packet.msg_controllen = CMSG_SPACE(size);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(&control.header), message->fds, size);
	}
	do
		sent = sendmsg(socket, &packet, flags | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

bool message__is_for_now(int error)
{
	return error == -EAGAIN || error == -ENOBUFS || error == -ENOMEM || error == -ETOOMANYREFS;
}

static bool is_message(const struct message_frame *frame, size_t size)
{
	return size >= sizeof(*frame) && frame->size == size - sizeof(*frame) &&
	       !(frame->flags & ~(uint32_t)MESSAGE_FLAGS);
}

static size_t fds_of(struct msghdr *packet, int *fds)
{
	struct cmsghdr *header = CMSG_FIRSTHDR(packet);
	size_t size;

	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
		return 0;
	size = header->cmsg_len - CMSG_LEN(0);
	memcpy(fds, CMSG_DATA(header), size);
	return size / sizeof(int);
}

int message__receive(int socket, struct message_buffer *buffer, int flags)
{
	struct iovec part = {buffer, offsetof(struct message_buffer, fds)};
	union fd_space control;
	struct msghdr packet = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = &control,
				.msg_controllen = sizeof(control)};
	ssize_t got;

	buffer->fd_count = 0;
	do
		got = recvmsg(socket, &packet, flags | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	buffer->fd_count = fds_of(&packet, buffer->fds);
	if (!(packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	    is_message(&buffer->frame, (size_t)got))
		return 1;
	/* an empty packet may have descriptors as well */
	message__close_fds(buffer->fds, buffer->fd_count);
	buffer->fd_count = 0;
	return got ? -EBADMSG : 0;
}

int message__write(int socket, const struct message_buffer *buffer)
{
	return write_full(socket, buffer, sizeof(buffer->frame) + buffer->frame.size);
}

int message__read(int socket, struct message_buffer *buffer)
{
	const ssize_t room = offsetof(struct message_buffer, fds);
	ssize_t got;

	do /* beyond the room, to detect a packet that is too long */
		got = read(socket, buffer, sizeof(*buffer));
	while (got < 0 && errno == EINTR);
	if (got > room || (got > 0 && !is_message(&buffer->frame, (size_t)got)))
		return -EBADMSG;
	return got < 0 ? -errno : got > 0;
}

/* ---- more than a packet ---------------------------------------------------------------------- */

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
