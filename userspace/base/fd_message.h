/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages with descriptors between processes of this program (SCM_RIGHTS). */
#ifndef BASE_FD_MESSAGE_H
#define BASE_FD_MESSAGE_H

#include <stddef.h>
#include <sys/types.h>

#define FD_MESSAGE_MAX 20 /* descriptors in one message */

/* `head`, then `data`, as one message with the descriptors. Bytes, or negative errno. */
ssize_t fd_message__send(int socket, const void *head, size_t head_size, const void *data,
			 size_t size, const int *fds, size_t fd_count, int flags);
/*
 * *fd_count: room in, how many came out; they close on exec. Bytes received, 0 at the end, negative errno. A
 * message that is longer than the room, or has more descriptors, is -EMSGSIZE, and nothing of it stays open.
 */
ssize_t fd_message__receive(int socket, void *data, size_t size, int *fds, size_t *fd_count,
			    int flags);

#endif
