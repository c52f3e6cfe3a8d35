/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between the collector and its helpers: what arrives, what is refused, and that no descriptor stays open. */
#include <dirent.h>
#include <sys/socket.h>

#include "unit.h"
#include "base/cleanup.h"
#include "tenants/message.h"
#include "unit/raw_packet.h"

static int ends[2];
static struct message_buffer buffer;

static void open_ends(void)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

static void close_ends(void)
{
	close(ends[0]);
	assert_int_equal(close(ends[1]), 0);
}

static size_t open_fds(void)
{
	DIR *directory = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static int receive(void)
{
	return message__receive(ends[1], &buffer, MSG_DONTWAIT);
}

TEST(all_of_it_arrives)
{
	static char bytes[MESSAGE_SIZE_MAX];
	int fds[MESSAGE_FDS_MAX];
	struct message m = {.frame = {7, 3, MESSAGE_DONE, sizeof(bytes)},
			    .bytes = bytes,
			    .fds = fds,
			    .fd_count = MESSAGE_FDS_MAX};
	size_t before = open_fds();

	memset(bytes, 'x', sizeof(bytes));
	for (size_t i = 0; i < MESSAGE_FDS_MAX; i++)
		fds[i] = ends[0];
	assert_int_equal(message__send(ends[0], &m, 0), 0);
	assert_int_equal(receive(), 1);
	assert_memory_equal(&buffer.frame, &m.frame, sizeof(m.frame));
	assert_memory_equal(buffer.bytes, bytes, sizeof(bytes));
	assert_int_equal(buffer.fd_count, MESSAGE_FDS_MAX);
	for (size_t i = 0; i < buffer.fd_count; i++)
		assert_true(fcntl(buffer.fds[i], F_GETFD) & FD_CLOEXEC);
	message__close_fds(buffer.fds, buffer.fd_count);
	assert_int_equal(open_fds(), before);
	m = (struct message){};
	assert_int_equal(message__send(ends[0], &m, 0), 0);
	assert_int_equal(receive(), 1);
	assert_int_equal(buffer.frame.size + buffer.fd_count, 0);
	assert_int_equal(receive(), -EAGAIN);
}

TEST(too_much_is_not_sent)
{
	static char bytes[MESSAGE_SIZE_MAX + 1];
	struct message m = {.frame = {.size = sizeof(bytes)}, .bytes = bytes};

	assert_int_equal(message__send(ends[0], &m, 0), -EMSGSIZE);
	m = (struct message){.fds = ends, .fd_count = MESSAGE_FDS_MAX + 1};
	assert_int_equal(message__send(ends[0], &m, 0), -EMSGSIZE);
	assert_int_equal(receive(), -EAGAIN);
}

static void send_raw(const void *bytes, size_t size, size_t fd_count)
{
	int fds[RAW_FDS_MAX];

	for (size_t i = 0; i < fd_count; i++)
		fds[i] = ends[0];
	assert_int_equal(send_packet(ends[0], bytes, size, fds, fd_count), size);
}

TEST(what_is_none_is_refused)
{
	static struct {
		struct message_frame frame;
		char bytes[MESSAGE_SIZE_MAX + 1];
	} m;
	const size_t head = sizeof(m.frame);
	size_t before = open_fds();

	for (size_t size = 1; size < head; size++) {
		send_raw(&m, size, 1);
		assert_int_equal(receive(), -EBADMSG);
	}
	m.frame.size = 8;
	send_raw(&m, head + 7, 2);
	assert_int_equal(receive(), -EBADMSG);
	send_raw(&m, head + 9, 2);
	assert_int_equal(receive(), -EBADMSG);
	m.frame.size = UINT64_MAX; /* and the frame together are less than the frame */
	send_raw(&m, head - 1, 2);
	assert_int_equal(receive(), -EBADMSG);
	m.frame.size = sizeof(m.bytes);
	send_raw(&m, head + sizeof(m.bytes), 2);
	assert_int_equal(receive(), -EBADMSG);
	m.frame = (struct message_frame){.flags = MESSAGE_FLAGS + 1};
	send_raw(&m, head, 3);
	assert_int_equal(receive(), -EBADMSG);
	m.frame.flags = 0;
	send_raw(&m, head, MESSAGE_FDS_MAX + 1);
	assert_int_equal(receive(), -EBADMSG);
	send_raw(&m, 0, 1); /* looks like the end */
	assert_int_equal(receive(), 0);
	assert_int_equal(open_fds(), before);
	send_raw(&m, head, 0);
	assert_int_equal(receive(), 1);
	shutdown(ends[0], SHUT_WR);
	assert_int_equal(receive(), 0);
}

TEST(read_and_write_do)
{
	static struct {
		struct message_frame frame;
		char bytes[MESSAGE_SIZE_MAX + 1];
	} m = {.frame.size = MESSAGE_SIZE_MAX};
	size_t before = open_fds();

	buffer.frame = (struct message_frame){7, 3, MESSAGE_DONE, 5};
	memcpy(buffer.bytes, "hello", 5);
	assert_int_equal(message__write(ends[0], &buffer), 0);
	buffer = (struct message_buffer){};
	assert_int_equal(receive(), 1);
	assert_true(buffer.frame.ticket == 7 && buffer.frame.size == 5);
	assert_memory_equal(buffer.bytes, "hello", 5);
	send_raw(&m, sizeof(m.frame) + MESSAGE_SIZE_MAX, 1);
	assert_int_equal(message__read(ends[1], &buffer), 1);
	assert_int_equal(buffer.frame.size, MESSAGE_SIZE_MAX);
	send_raw(&m, sizeof(m.frame) + MESSAGE_SIZE_MAX + 1, 0);
	assert_int_equal(message__read(ends[1], &buffer), -EBADMSG);
	m.frame.size++;
	send_raw(&m, sizeof(m.frame) + MESSAGE_SIZE_MAX + 1, 0);
	assert_int_equal(message__read(ends[1], &buffer), -EBADMSG);
	send_raw(&m, sizeof(m.frame) - 1, 0);
	assert_int_equal(message__read(ends[1], &buffer), -EBADMSG);
	assert_int_equal(open_fds(), before);
	shutdown(ends[0], SHUT_WR);
	assert_int_equal(message__read(ends[1], &buffer), 0);
}

TEST(memory_is_read_once_it_is_sealed)
{
	char bytes[16] = {}, more[17];
	_cleanup_close_ int fd = sealed_memory__new("test", sizeof(bytes)),
			    other = memfd_create("other", 0);
	void *map;

	assert_true(fd >= 0 && other >= 0);
	assert_int_equal(write(fd, "0123456789abcdef", sizeof(bytes)), sizeof(bytes));
	assert_int_equal(ftruncate(fd, 8), -1);
	assert_int_equal(ftruncate(fd, 32), -1);
	assert_int_equal(sealed_memory__read(fd, bytes, sizeof(bytes)), -EPROTO);
	map = mmap(NULL, sizeof(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_int_equal(sealed_memory__seal(fd), -EBUSY);
	munmap(map, sizeof(bytes));
	assert_int_equal(sealed_memory__seal(fd), 0);
	assert_int_equal(sealed_memory__read(fd, bytes, sizeof(bytes)), 0);
	assert_memory_equal(bytes, "0123456789abcdef", sizeof(bytes));
	assert_int_equal(sealed_memory__read(fd, more, sizeof(more)), -EPROTO);
	assert_int_equal(write(other, bytes, sizeof(bytes)), sizeof(bytes));
	assert_int_equal(sealed_memory__read(other, bytes, sizeof(bytes)), -EPROTO);
	assert_int_equal(sealed_memory__read(ends[0], bytes, sizeof(bytes)), -EPROTO);
}

EACH_TEST_WITH(open_ends, close_ends);
