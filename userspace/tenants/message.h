/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between the collector and its helpers: a frame, bytes and descriptors in one packet of a
 * SOCK_SEQPACKET socket. The receiver checks the frame and all lengths, a service its bytes. Data
 * too large for a packet is passed as a descriptor of sealed memory.
 */
#ifndef TENANTS_MESSAGE_H
#define TENANTS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_SIZE_MAX 8192 /* bytes after the frame */
#define MESSAGE_FDS_MAX	 16   /* root directories of one search (files/file_search.h) */

enum message_flag {
	MESSAGE_PROGRESS = 1, /* the helper is ready, or still at work */
	MESSAGE_DONE = 2,     /* the answer to a request */
	MESSAGE_FLAGS = MESSAGE_PROGRESS | MESSAGE_DONE
};

struct message_frame {
	uint64_t ticket; /* the request's; the answer repeats it */
	uint32_t service;
	uint32_t flags;
	uint64_t size; /* of the bytes after the frame */
};

struct message {
	struct message_frame frame;
	const void *bytes;
	const int *fds; /* the caller's */
	size_t fd_count;
};

/* The bytes are aligned to 8. */
struct message_buffer {
	struct message_frame frame;
	char bytes[MESSAGE_SIZE_MAX];
	int fds[MESSAGE_FDS_MAX]; /* the receiver's, to close */
	size_t fd_count;
};

/* Flags of sendmsg(). 0 or negative errno; -EMSGSIZE: too many bytes or descriptors. */
int message__send(int socket, const struct message *message, int flags);
/* The kernel had no room or memory for it: not the other end's fault, and over soon. */
bool message__is_for_now(int error);
/*
 * Flags of recvmsg(). 1; 0: the other end is closed; negative errno. -EBADMSG: not a message; its
 * descriptors are closed.
 */
int message__receive(int socket, struct message_buffer *buffer, int flags);
/* Without descriptors, so that read() and write() are enough for a process with a filter. */
int message__write(int socket, const struct message_buffer *buffer);
int message__read(int socket, struct message_buffer *buffer);
/* Closes those that are not -1. */
void message__close_fds(const int *fds, size_t count);

/* ---- more than a packet ---------------------------------------------------------------------- */

/* A memfd of fixed size that another process may write. The descriptor or negative errno. */
int sealed_memory__new(const char *name, size_t size);
/* Forbids writing. 0 or negative errno; -EBUSY: it is mapped for writing. */
int sealed_memory__seal(int fd);
/* Reads `size` bytes. 0; -EPROTO: it can still be written or resized, or has fewer bytes. */
int sealed_memory__read(int fd, void *bytes, size_t size);

#endif
