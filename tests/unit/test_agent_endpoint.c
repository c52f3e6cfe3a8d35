/* SPDX-License-Identifier: BSD-2-Clause */
/* The endpoint against clients that send requests, unfinished requests, and nonsense. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "unit.h"
#include "agent/endpoint.h"
#include "agent/publisher.h"
#include "base/cleanup.h"
#include "base/clocks.h"

#define PATIENCE_MS 60000
#define METRICS	    "# HELP a b\n# TYPE a gauge\na 1\n"

/* Of the running test: the endpoint, and what was received last. */
static struct endpoint *e;
static char buffer[4096];

/* ---- a client -------------------------------------------------------------------------------- */

static int connect_to_it(void)
{
	const char *address = endpoint__address(e);
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	bool is_unix = !strncmp(address, "unix:", 5);
	int fd = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (is_unix)
		snprintf(un.sun_path, sizeof(un.sun_path), "%s", address + 5);
	else
		in.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
	if (is_unix)
		assert_int_equal(connect(fd, (void *)&un, sizeof(un)), 0);
	else
		assert_int_equal(connect(fd, (void *)&in, sizeof(in)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What comes until the server closes, within PATIENCE_MS. Its status; 0: nothing that is one. */
static int receive(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	size_t used = 0;
	int status = 0;
	ssize_t got;

	while (used < sizeof(buffer) - 1 && poll(&poll_fd, 1, PATIENCE_MS) == 1 &&
	       (got = recv(fd, buffer + used, sizeof(buffer) - 1 - used, 0)) > 0)
		used += (size_t)got;
	buffer[used] = '\0';
	close(fd);
	if (sscanf(buffer, "HTTP/1.%*d %d", &status) != 1)
		return 0;
	return status;
}

static int begin(const char *path)
{
	char request[8192];
	int fd = connect_to_it();

	snprintf(request, sizeof(request),
		 "GET %s HTTP/1.1\r\nHost: localhost:%s\r\nConnection: close\r\n\r\n", path,
		 strrchr(endpoint__address(e), ':') + 1);
	say(fd, request);
	return fd;
}

static int get(const char *path)
{
	return receive(begin(path));
}

static void start_with(struct endpoint_options options)
{
	struct failure failure = {};

	if (!options.address)
		options.address = "127.0.0.1:0";
	if (endpoint__new(&options, &e, &failure))
		fail_msg("%s", failure.what);
}

static void start(void)
{
	start_with((struct endpoint_options){});
}

static void end(void)
{
	endpoint__free(e);
	e = NULL;
}

static void restart_with(struct endpoint_options options)
{
	end();
	start_with(options);
}

static void publish(const char *illness)
{
	assert_int_equal(endpoint__publish(e, strdup(METRICS), strlen(METRICS), illness), 0);
}

/* ---- what is published ------------------------------------------------------------------------ */

TEST(metrics_and_health_are_those_published_last)
{
	assert_int_equal(get("/metrics"), 503);
	assert_int_equal(get("/healthz"), 200);
	publish(NULL);
	assert_int_equal(get("/metrics"), 200);
	assert_non_null(strstr(buffer, "\r\n\r\n" METRICS));
	assert_non_null(strstr(buffer, "text/plain; version=0.0.4; charset=utf-8\r\n"));
	publish("nothing was sent\nfor three windows\x1b");
	assert_int_equal(get("/healthz"), 503);
	assert_non_null(strstr(buffer, "\r\n\r\nnothing was sent\\x0afor three windows\\x1b\n"));
	publish(NULL);
	assert_int_equal(get("/healthz"), 200);
	assert_int_equal(get("/"), 404);
	assert_int_equal(get("/metrics/"), 404);
	endpoint__free(NULL);
}

TEST(health_fails_if_the_collector_is_stuck)
{
	restart_with((struct endpoint_options){.stuck_after = 300000000});

	usleep(500000);
	assert_int_equal(get("/healthz"), 503);
	assert_non_null(strstr(buffer, "the collector is stuck"));
	/* what was measured last is there all the same */
	publish(NULL);
	assert_int_equal(get("/metrics"), 200);
	/* one that publishes is not stuck */
	restart_with((struct endpoint_options){.stuck_after = 60000000000});
	publish(NULL);
	assert_int_equal(get("/healthz"), 200);
}

static atomic_uint errors_said;

static void count_error(const char *text)
{
	errors_said += strstr(text, "cannot serve 127.0.0.1:") != NULL;
}

TEST(a_poll_error_is_logged_once_and_serving_continues)
{
	struct rlimit before, few;
	_cleanup_close_ int fd = -1;

	restart_with((struct endpoint_options){.say = count_error});
	fd = connect_to_it();
	publish(NULL);
	assert_int_equal(get("/healthz"), 200);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){.rlim_cur = 3, .rlim_max = before.rlim_max}; /* it polls four */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	say(fd, "GET /healthz HTTP/1.1\r\n");
	for (int i = 0; i < PATIENCE_MS / 10 && !errors_said; i++)
		usleep(10000);
	usleep(1500000); /* another try, which fails as well */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(errors_said, 1);
	assert_int_equal(get("/healthz"), 200);
}

TEST(health_fails_after_three_windows_that_reached_no_sink)
{
	struct health h = {};

	assert_true(health__is_well(&h));
	health__window(&h, 100, 0, 1);
	health__window(&h, 100, 0, 1);
	assert_true(health__is_well(&h));
	health__window(&h, 100, 0, 1);
	assert_false(health__is_well(&h));
	health__window(&h, 0, 0, 1); /* no samples: no better */
	assert_false(health__is_well(&h));
	health__window(&h, 0, 1, 1);
	assert_true(health__is_well(&h));
	for (int i = 0; i < 10; i++)
		health__window(&h, 0, 1, 1); /* nothing to send */
	assert_true(health__is_well(&h));
	for (int i = 0; i < 10; i++)
		health__window(&h, 5, 1, 0); /* no sink */
	assert_true(health__is_well(&h));
	for (unsigned int i = 0; i < 10; i++) {
		health__window(&h, 5, 1, 2);
		assert_int_equal(health__is_well(&h), i < 2);
	}
}

/* ---- profiles -------------------------------------------------------------------------------- */

static struct endpoint_request await_request(void)
{
	struct pollfd fd = {.fd = endpoint__fd(e), .events = POLLIN};
	struct endpoint_request request;

	assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
	assert_true(endpoint__take_request(e, &request));
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_true(endpoint__is_wanted(e, request.id));
	return request;
}

TEST(profile_requests_are_served_one_at_a_time)
{
	struct endpoint_request request, none;
	int fd;

	assert_false(endpoint__take_request(e, &none));
	fd = begin("/debug/pprof/profile?seconds=7&pid=4711");
	request = await_request();
	assert_int_equal(request.seconds, 7);
	assert_int_equal(request.pid, 4711);
	assert_string_equal(request.service, "");
	/* one at a time; the rest goes on */
	assert_int_equal(get("/debug/pprof/profile"), 503);
	assert_non_null(strstr(buffer, "Retry-After: 10\r\n"));
	publish(NULL);
	assert_int_equal(get("/metrics"), 200);
	endpoint__grant(e, request.id, memcpy(malloc(5), "a\0b\0c", 5), 5);
	assert_int_equal(receive(fd), 200);
	assert_non_null(strstr(buffer, "application/octet-stream"));
	assert_non_null(strstr(buffer, "Content-Length: 5\r\n"));
	assert_memory_equal(strstr(buffer, "\r\n\r\n") + 4, "a\0b\0c", 5);
	assert_false(endpoint__is_wanted(e, request.id));

	fd = begin("/debug/pprof/profile?service=a%20shop%2Fcart");
	request = await_request();
	assert_int_equal(request.seconds, 30);
	assert_string_equal(request.service, "a shop/cart");
	endpoint__refuse(e, request.id + 1, 404, "another's");
	endpoint__refuse(e, request.id, 404, "no such service");
	assert_int_equal(receive(fd), 404);
	assert_non_null(strstr(buffer, "\r\n\r\nno such service\n"));
}

TEST(an_invalid_profile_query_is_a_bad_request)
{
	static const char *const QUERIES[] = {
		"seconds=0",	  "seconds=-1",	     "seconds=1e9",
		"seconds=601",	  "seconds=",	     "pid=0",
		"pid=4294967297", "pid=1&service=a", "service=",
		"service=%ff",	  "service=a%0ab",   "pid=0%00",
		"seconds=5%205",  "service=%c0%af",  "seconds=99999999999999999999",
	};
	struct endpoint_request request;
	char path[6000], name[3000];

	for (size_t i = 0; i < sizeof(QUERIES) / sizeof(*QUERIES); i++) {
		snprintf(path, sizeof(path), "/debug/pprof/profile?%s", QUERIES[i]);
		if (get(path) != 400)
			fail_msg("%s: %s", QUERIES[i], buffer);
	}
	memset(name, 'a', sizeof(name));
	name[LABEL_VALUE_MAX + 1] = '\0';
	snprintf(path, sizeof(path), "/debug/pprof/profile?service=%s", name);
	assert_int_equal(get(path), 400);
	assert_false(endpoint__take_request(e, &request));
}

TEST(a_client_that_disconnects_frees_the_profile_slot)
{
	struct endpoint_request request;
	uint64_t until = monotonic_ns() + PATIENCE_MS * 1000000ull;
	int fd;

	for (int i = 0; i < 3; i++) {
		fd = begin("/debug/pprof/profile?seconds=500");
		request = await_request();
		close(fd);
		while (endpoint__is_wanted(e, request.id) && monotonic_ns() < until)
			usleep(10000);
		assert_false(endpoint__is_wanted(e, request.id));
		endpoint__grant(e, request.id, strdup("late"), 4);
	}
	fd = begin("/debug/pprof/profile");
	request = await_request();
	endpoint__grant(e, request.id, strdup("mine"), 4);
	assert_int_equal(receive(fd), 200);
	assert_non_null(strstr(buffer, "\r\n\r\nmine"));
	/* a client that waits at the end gets an answer */
	fd = begin("/debug/pprof/profile");
	await_request();
	end();
	assert_int_equal(receive(fd), 503);
}

/* ---- nonsense and crowds --------------------------------------------------------------------- */

TEST(malformed_and_foreign_requests_get_no_metrics)
{
	static char huge[256 * 1024];
	static const char *const NONSENSE[] = {
		"GET\r\n\r\n",
		"GET /metrics HTTP/9.9\r\n\r\n",
		"GET /metrics HTTP/1.1\r\n: x\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
		"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabcde",
		"DELETE /debug/pprof/profile HTTP/1.1\r\nConnection: close\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
		"GET /../../etc/passwd HTTP/1.1\r\nConnection: close\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
	};

	publish(NULL);
	memset(huge, 'A', sizeof(huge) - 1);
	for (int round = 0; round < 10; round++) {
		for (size_t i = 0; i < sizeof(NONSENSE) / sizeof(*NONSENSE); i++) {
			int fd = connect_to_it(), status;

			say(fd, NONSENSE[i]);
			shutdown(fd, SHUT_WR);
			status = receive(fd);
			if (status == 200)
				fail_msg("%s: %s", NONSENSE[i], buffer);
			assert_null(strstr(buffer, "a 1\n"));
		}
		{
			/* TLS: a line that does not end */
			_cleanup_close_ int fd = connect_to_it();

			say(fd, "\x16\x03\x01\x02\x01\xfc\x03\x03");
		}
		/* a header that never ends: closed before all of it is taken */
		for (int kind = 0; kind < 2; kind++) {
			int fd = connect_to_it();

			say(fd, kind ? "GET /metrics HTTP/1.1\r\nX: " : "GET /");
			send(fd, huge, sizeof(huge) - 1, MSG_NOSIGNAL);
			assert_int_not_equal(receive(fd), 200);
		}
		assert_int_equal(get("/metrics"), 200);
	}
}

TEST(an_unfinished_request_is_dropped_and_delays_no_other)
{
	int empty = connect_to_it(), half = connect_to_it();

	publish(NULL);
	say(empty, "\r\n\r\n");
	say(half, "GET /metrics HTTP/1.1\r\nHo");
	assert_int_equal(get("/metrics"), 200);
	assert_int_equal(receive(empty), 0);
	assert_int_not_equal(receive(half), 200);
}

TEST(requests_are_answered_among_a_crowd_of_silent_clients)
{
	enum { CROWD = 10000, HELD = 300 };
	static int held[HELD];
	struct endpoint_request request;
	int waiting;

	publish(NULL);
	waiting = begin("/debug/pprof/profile?seconds=600");
	request = await_request();
	for (int i = 0; i < CROWD; i++) {
		if (i >= HELD)
			close(held[i % HELD]);
		held[i % HELD] = connect_to_it();
		if (i % 3)
			send(held[i % HELD], "GET /metr", i % 9, MSG_NOSIGNAL);
		if (i % 500 == 499)
			assert_int_equal(get("/metrics"), 200);
	}
	assert_int_equal(get("/healthz"), 200);
	/* the client that waits for a profile was not disturbed */
	assert_true(endpoint__is_wanted(e, request.id));
	endpoint__grant(e, request.id, strdup("mine"), 4);
	assert_int_equal(receive(waiting), 200);
	for (int i = 0; i < HELD; i++)
		close(held[i]);
}

/* ---- addresses ------------------------------------------------------------------------------- */

TEST(only_a_dead_unix_socket_is_replaced)
{
	char directory[] = "/tmp/endpoint-XXXXXX", path[64], address[80];
	struct endpoint_options options = {.address = address};
	struct endpoint *second = NULL;
	struct failure failure = {};
	struct stat file;
	int fd;

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/agent.sock", directory);
	snprintf(address, sizeof(address), "unix:%s", path);
	restart_with(options);
	assert_string_equal(endpoint__address(e), address);
	publish(NULL);
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_mode & 07777, 0660);
	fd = connect_to_it();
	say(fd, "GET /metrics HTTP/1.1\r\nHost: any.name\r\nConnection: close\r\n\r\n");
	assert_int_equal(receive(fd), 200);
	/* a living one is not replaced */
	assert_int_equal(endpoint__new(&options, &second, &failure), -EADDRINUSE);
	assert_non_null(strstr(failure.what, path));
	end();
	assert_int_equal(access(path, F_OK), -1);
	/* a dead one is */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	{
		struct sockaddr_un un = {.sun_family = AF_UNIX};

		snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
		assert_int_equal(bind(fd, (void *)&un, sizeof(un)), 0);
	}
	close(fd);
	assert_int_equal(access(path, F_OK), 0);
	restart_with(options);
	end();
	/* what is no socket stays */
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	assert_int_equal(endpoint__new(&options, &second, &failure), -EADDRINUSE);
	assert_int_equal(stat(path, &file), 0);
	assert_true(S_ISREG(file.st_mode));
	unlink(path);
	rmdir(directory);
}

TEST(malformed_addresses_are_refused_with_a_remedy)
{
	static const char *const WRONG[] = {
		"",
		"9090",
		"localhost:9090",
		"127.0.0.1",
		"127.0.0.1:",
		"1.2.3:80",
		"127.0.0.1:65536",
		"[::1:80",
		"::1:80",
		"unix:",
		"127.0.0.1:-1",
		"127.0.0.1:80x",
		"unix:/0123456789012345678901234567890123456789012345678901234567890123456789"
		"0123456789012345678901234567890123456789",
	};
	struct endpoint *refused;
	int fd;

	for (size_t i = 0; i < sizeof(WRONG) / sizeof(*WRONG); i++) {
		const struct endpoint_options options = {.address = WRONG[i]};
		struct failure failure = {};

		assert_int_equal(endpoint__new(&options, &refused, &failure), -EINVAL);
		assert_true(*failure.what && *failure.remedy);
	}
	/* one that everybody can reach has any name */
	restart_with((struct endpoint_options){.address = "0.0.0.0:0"});
	publish(NULL);
	fd = connect_to_it();
	say(fd, "GET /metrics HTTP/1.1\r\nHost: node-7:9090\r\nConnection: close\r\n\r\n");
	assert_int_equal(receive(fd), 200);
}

EACH_TEST_WITH(start, end);
