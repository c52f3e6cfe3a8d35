/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/fd_message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union fd_space {
	struct cmsghdr header;
	char space[CMSG_SPACE(FD_MESSAGE_MAX * sizeof(int))];
};

ssize_t fd_message__send(int socket, const void *head, size_t head_size, const void *data,
			 size_t size, const int *fds, size_t fd_count, int flags)
{
	struct iovec parts[2] = {{(void *)head, head_size}, {(void *)data, size}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	union fd_space control = {};
	ssize_t sent;

	if (fd_count > FD_MESSAGE_MAX)
		return -EINVAL;
	if (fd_count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
	}
	do {
		sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

static void close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static size_t fds_of(struct msghdr *message, int *fds)
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	size_t count;

	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
		return 0;
	count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(header), count * sizeof(int));
	return count;
}

ssize_t fd_message__receive(int socket, void *data, size_t size, int *fds, size_t *fd_count,
			    int flags)
{
	struct iovec part = {data, size};
	union fd_space control;
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	int received[FD_MESSAGE_MAX];
	size_t count;
	ssize_t got;

	do {
		got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	count = fds_of(&message, received);
	if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || count > *fd_count) {
		close_all(received, count);
		return -EMSGSIZE;
	}
	memcpy(fds, received, count * sizeof(int));
	*fd_count = count;
	return got;
}
