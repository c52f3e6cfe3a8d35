/* SPDX-License-Identifier: BSD-2-Clause */
/* A packet that need not be a message of tenants/message.h, with more descriptors than one may have. */
#ifndef TESTS_UNIT_RAW_PACKET_H
#define TESTS_UNIT_RAW_PACKET_H

#include <sys/socket.h>

#define RAW_FDS_MAX 20

static inline ssize_t send_packet(int socket, const void *bytes, size_t size, const int *fds,
				  size_t fd_count)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(RAW_FDS_MAX * sizeof(int))];
	} control = {};
	struct iovec part = {(void *)bytes, size};
	struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd_count) {
		packet.msg_control = &control;
		packet.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
	}
	return sendmsg(socket, &packet, MSG_NOSIGNAL);
}

#endif
