/* SPDX-License-Identifier: BSD-2-Clause */
/* Debug files from servers: good ones, broken ones, slow ones, none. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "unit.h"
#include "symbolize/debug_file.h"
#include "symbolize/debuginfod.h"
#include "symbolize/file_finder.h"

#include "unit/debug_file_support.h"

#define SECOND	     UINT64_C(1000000000)
#define LATE_SECONDS 4

/* ---- servers --------------------------------------------------------------------------------- */

enum server_mode {
	SERVE_FILE, /* "served" */
	SERVE_404,
	SERVE_500,
	SERVE_HTML,    /* a page, as captive portals do */
	SERVE_NOTHING, /* accepts and is silent */
	SERVE_START,   /* the start of a file, and then nothing */
	SERVE_LATE,    /* the file after LATE_SECONDS */
	SERVE_ENDLESS, /* a body without end or length */
	SERVE_CUT,     /* half of what it promised */
};

struct server {
	pid_t pid;
	int port;
};

static uint32_t *requests; /* to the latest server; shared with it */

static void send_all(int fd, const void *data, size_t size)
{
	while (size) {
		ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		data = (const char *)data + sent;
		size -= sent;
	}
}

static void send_file(int fd, bool cut)
{
	size_t size;
	unsigned char *data = read_scratch("served", &size);
	char head[128];

	snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", size);
	send_all(fd, head, strlen(head));
	send_all(fd, data, cut ? size / 2 : size);
	free(data);
}

static void send_endless(int fd)
{
	static const char head[] = "HTTP/1.1 200 OK\r\n\r\n";
	static char body[65536];

	send_all(fd, head, sizeof(head) - 1);
	for (int i = 0; i < 4096; i++) { /* 256 MB, were they read */
		if (send(fd, body, sizeof(body), MSG_NOSIGNAL) <= 0)
			return;
	}
}

static void send_text(int fd, const char *text)
{
	send_all(fd, text, strlen(text));
}

static void answer_request(int fd, enum server_mode mode)
{
	char request[4096];
	ssize_t size = recv(fd, request, sizeof(request) - 1, 0);

	if (size <= 0)
		return;
	request[size] = '\0';
	++*requests;
	if (!strstr(request, "GET /buildid/") || !strstr(request, "/debuginfo"))
		send_text(fd, "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n");
	else if (mode == SERVE_LATE && !sleep(LATE_SECONDS))
		send_file(fd, false);
	else if (mode == SERVE_FILE || mode == SERVE_CUT)
		send_file(fd, mode == SERVE_CUT);
	else if (mode == SERVE_404)
		send_text(fd, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
	else if (mode == SERVE_500)
		send_text(fd, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
	else if (mode == SERVE_HTML)
		send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n<html>Log in</html>\n");
	else if (mode == SERVE_START)
		send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n\177ELF");
	if (mode == SERVE_NOTHING || mode == SERVE_START)
		sleep(30);
	else if (mode == SERVE_ENDLESS)
		send_endless(fd);
}

static struct server start_server(enum server_mode mode)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct server server;
	char url[64];

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	server.port = ntohs(address.sin_port);
	*requests = 0;
	server.pid = fork();
	assert_true(server.pid >= 0);
	if (!server.pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int client; !server.pid;) {
		client = accept(fd, NULL, NULL);
		if (client < 0)
			_exit(0);
		answer_request(client, mode);
		close(client);
	}
	close(fd);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", server.port);
	setenv("DEBUGINFOD_URLS", url, 1);
	run("rm -rf client");
	return server;
}

static void stop_server(struct server *server)
{
	kill(server->pid, SIGKILL);
	waitpid(server->pid, NULL, 0);
}

static int cancel_later(void *context, const char *what, uint64_t done, uint64_t total)
{
	int *left = context;

	assert_non_null(what);
	assert_true(!total || done <= total);
	return (*left)-- <= 0;
}

static struct answer query_servers(struct debug_file_counts counts, int *patience)
{
	struct debug_file_request request = {
		.elf_fd = open_scratch("id1.stripped", O_RDONLY),
		.root_fd = open_scratch("root", O_PATH | O_DIRECTORY),
		.path = "/opt/app/prog",
		.debuginfod = true,
		.progress = patience ? cancel_later : NULL,
		.context = patience,
	};
	struct answer a = {.counts = counts};
	int debug = -1, alternate = -1;

	a.error = debug_file_find(&request, &debug, &alternate, &a.counts);
	name_of(debug, a.debug, sizeof(a.debug));
	close(request.elf_fd);
	close(request.root_fd);
	return a;
}

static struct answer query_server(enum server_mode mode)
{
	struct server server = start_server(mode);
	struct answer a = query_servers((struct debug_file_counts){}, NULL);

	stop_server(&server);
	assert_int_equal(a.error, 0);
	return a;
}

/* The client's limits and cache; false: it is not installed. */
static bool prepare_client(void)
{
	uint8_t id[20] = {1};
	char cache[512];
	int fd;

	empty_root();
	scratch_path("client", cache, sizeof(cache));
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	setenv("DEBUGINFOD_TIMEOUT", "2", 1);
	setenv("DEBUGINFOD_MAXTIME", "5", 1);
	setenv("DEBUGINFOD_RETRY_LIMIT", "1", 1);
	unsetenv("DEBUGINFOD_MAXSIZE");
	setenv("DEBUGINFOD_URLS", " ", 1);
	assert_int_equal(debuginfod_fetch(id, sizeof(id), NULL, NULL, NULL, &fd), -EDESTADDRREQ);
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1/", 1);
	if (debuginfod_fetch(id, sizeof(id), NULL, NULL, NULL, &fd) != -ENOPKG)
		return true;
	print_message("skipped: there is no libdebuginfod\n");
	return false;
}

TEST_WITH(only_missing_files_are_fetched_and_are_cached, empty_root, NULL)
{
	struct answer a;

	if (!prepare_client())
		skip();
	run("cp id1.debug served");
	a = query_server(SERVE_FILE);
	assert_int_equal(*requests, 1);
	assert_int_equal(a.counts.by_debuginfod, 1);
	assert_int_equal(a.counts.debuginfod_failures, 0);
	assert_non_null(strstr(a.debug, "client/"));
	/* from its cache, without a server */
	a = query_servers((struct debug_file_counts){}, NULL);
	assert_int_equal(a.counts.by_debuginfod, 1);
	/* no request for what is there already */
	place_for("root", "id1", "id1.debug");
	a = query_server(SERVE_404);
	assert_int_equal(*requests, 0);
	assert_int_equal(a.counts.by_debuginfod, 0);
	assert_int_equal(a.counts.by_build_id, 1);
}

TEST_WITH(a_bad_server_gives_no_debug_file, empty_root, NULL)
{
	struct answer a;

	if (!prepare_client())
		skip();
	a = query_server(SERVE_404);
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.debuginfod_failures, 0);
	a = query_server(SERVE_500);
	assert_string_equal(a.debug, "");
	run("cp id2.debug served");
	a = query_server(SERVE_FILE);
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.wrong_build_id, 1);
	assert_int_equal(a.counts.by_debuginfod, 0);
	a = query_server(SERVE_HTML);
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.wrong_build_id, 1);
	run("cp id1.debug served");
	a = query_server(SERVE_CUT);
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.by_debuginfod, 0);
	a = query_server(SERVE_NOTHING);
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.debuginfod_failures, 1);
	assert_int_equal(a.counts.debuginfod_error, -ETIME);
	setenv("DEBUGINFOD_MAXSIZE", "1000000", 1);
	a = query_server(SERVE_ENDLESS);
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.debuginfod_error, -EFBIG);
}

static struct answer query_impatiently(enum server_mode mode, int *patience)
{
	struct server server = start_server(mode);
	struct answer a = query_servers((struct debug_file_counts){}, patience);

	stop_server(&server);
	assert_int_equal(a.error, 0);
	assert_string_equal(a.debug, "");
	return a;
}

TEST_WITH(a_cancelled_download_ends_without_a_file, empty_root, NULL)
{
	struct answer a;
	int patience = 1;

	if (!prepare_client())
		skip();
	a = query_impatiently(SERVE_START, &patience);
	assert_int_equal(patience, -1); /* it is not called again once it has cancelled */
	assert_int_equal(a.counts.debuginfod_failures, 0);
	/* since elfutils 0.190 the library calls nothing before the first bytes: the timeout ends this */
	patience = 1;
	a = query_impatiently(SERVE_NOTHING, &patience);
	assert_int_equal(patience, -1);
	if (a.counts.debuginfod_failures)
		assert_int_equal(a.counts.debuginfod_error, -ETIME);
}

TEST_WITH(a_server_may_be_slower_than_the_silence_limit, empty_root, NULL)
{
	const struct finder_limits limits = {
		.silence_ns = 2 * SECOND, .user_ns = 60 * SECOND, .others_ns = 60 * SECOND};
	struct debug_file_request request = {
		.elf_fd = open_scratch("id1.stripped", O_RDONLY),
		.root_fd = open_scratch("root", O_PATH | O_DIRECTORY),
		.path = "/opt/app/prog",
		.debuginfod = true,
	};
	struct debug_file_counts counts = {};
	struct found_files found;
	struct file_finder *f;
	struct server server;

	if (!prepare_client())
		skip();
	setenv("DEBUGINFOD_TIMEOUT", "20", 1);
	setenv("DEBUGINFOD_MAXTIME", "30", 1);
	run("cp id1.debug served");
	server = start_server(SERVE_LATE);
	f = file_finder__new(&limits);
	assert_non_null(f);
	assert_int_equal(file_finder__find(f, &request, &counts, &found), 0);
	assert_int_equal(counts.by_debuginfod, 1);
	close(found.debug_fd);
	file_finder__free(f);
	stop_server(&server);
	close(request.elf_fd);
	close(request.root_fd);
}

TEST_WITH(servers_are_not_used_after_repeated_failures, empty_root, NULL)
{
	struct answer a = {};
	struct server server;

	if (!prepare_client())
		skip();
	run("rm -rf client");
	for (int i = 1; i <= 3; i++) {
		setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1/", 1);
		a = query_servers(a.counts, NULL);
		assert_int_equal(a.counts.debuginfod_failures, i);
		assert_true(a.counts.debuginfod_error < 0);
		assert_true(*debuginfod_strerror(a.counts.debuginfod_error));
	}
	run("cp id1.debug served");
	server = start_server(SERVE_FILE);
	a = query_servers(a.counts, NULL);
	assert_string_equal(a.debug, "");
	assert_int_equal(*requests, 0);
	a = query_servers((struct debug_file_counts){}, NULL);
	assert_int_equal(a.counts.by_debuginfod, 1);
	assert_int_equal(*requests, 1);
	stop_server(&server);
}

static void setup_all(void)
{
	requests = mmap(NULL, sizeof(*requests), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	assert_true(requests != MAP_FAILED);
	setup();
}

ALL_TESTS_WITH(setup_all, teardown);
