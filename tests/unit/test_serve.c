/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's parts: tokens and hosts, evicted connections, and the files that it serves. */
#include <cjson/cJSON.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "unit.h"
#include "base/clocks.h"
#include "serve/listener.h"
#include "serve/server_private.h"
#include "serve/server_request.h"
#include "base/json_writer.h"
#include "serve/source_api.h"

#define SECOND 1000000000ull

/* ---- tokens and hosts ------------------------------------------------------------------------ */

TEST(tokens_differ_and_only_the_whole_token_matches)
{
	char token[TOKEN_SIZE + 1], other[TOKEN_SIZE + 1], text[TOKEN_SIZE + 3];

	assert_int_equal(token__make(token), 0);
	assert_int_equal(token__make(other), 0);
	assert_string_not_equal(token, other);
	assert_int_equal(strspn(token, "0123456789abcdef"), TOKEN_SIZE);
	assert_int_equal(strlen(token), TOKEN_SIZE);
	assert_true(token__equal(token, token, token + TOKEN_SIZE));
	assert_false(token__equal(token, other, other + TOKEN_SIZE));
	assert_false(token__equal(token, token, token + TOKEN_SIZE - 1));
	assert_false(token__equal(token, token, token));
	snprintf(text, sizeof(text), "%s0", token);
	assert_false(token__equal(token, text, text + TOKEN_SIZE + 1));
	for (size_t i = 0; i < TOKEN_SIZE; i++) {
		memcpy(text, token, TOKEN_SIZE + 1);
		text[i] ^= 1;
		assert_false(token__equal(token, text, text + TOKEN_SIZE));
	}
}

TEST(only_loopback_names_with_our_port_are_ours)
{
	static const char *const ours[] = {"127.0.0.1:8123", "localhost:8123", "LocalHost:8123",
					   "[::1]:8123"};
	static const char *const foreign[] = {"",
					      "127.0.0.1",
					      "127.0.0.1:8124",
					      "127.0.0.1:81230",
					      "evil.com",
					      "evil.com:8123",
					      "127.0.0.1.evil.com:8123",
					      "localhost",
					      "localhost.:8123",
					      "127.0.0.1:8123 ",
					      "0.0.0.0:8123",
					      "::1:8123",
					      "127.1:8123",
					      "a127.0.0.1:8123"};
	struct listener listener = {.port = 8123};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		assert_true(listener__is_our_host(&listener, ours[i]));
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		assert_false(listener__is_our_host(&listener, foreign[i]));
	/* browsers leave out the port that http has by itself */
	listener.port = 80;
	assert_true(listener__is_our_host(&listener, "localhost"));
	assert_false(listener__is_our_host(&listener, "localhost:8123"));
}

TEST(opening_a_used_port_fails_with_a_remedy)
{
	struct listener one, two;
	struct failure failure = {};

	assert_int_equal(listener__open_loopback(&one, 0, NULL), 0);
	assert_true(one.port);
	assert_int_equal(listener__open_loopback(&two, one.port, &failure), -EADDRINUSE);
	assert_non_null(strstr(failure.what, "127.0.0.1:"));
	assert_non_null(strstr(failure.remedy, "--port"));
	listener__close(&one);
	listener__close(&two);
	assert_int_equal(one.fds[0], -1);
}

/* ---- peers ----------------------------------------------------------------------------------- */

struct line {
	int ours, theirs;
	struct peer *peer;
};

static void connect_peer(struct peers *peers, struct line *line, uint64_t now)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	line->ours = fds[0];
	line->theirs = fds[1];
	peers__make_room(peers);
	line->peer = peers__add(peers, line->ours, now);
	assert_non_null(line->peer);
}

static void disconnect_peer(struct line *line)
{
	peer__remove(line->peer);
	close(line->ours);
	close(line->theirs);
}

/* Its end of the stream has come. */
static bool is_cut_off(const struct line *line)
{
	char byte;

	return recv(line->theirs, &byte, 1, MSG_DONTWAIT) == 0;
}

TEST(the_oldest_peer_without_a_token_makes_room)
{
	struct line lines[2 * STRANGERS_MAX];
	struct peers peers = {};

	for (size_t i = 0; i < STRANGERS_MAX; i++)
		connect_peer(&peers, &lines[i], i);
	for (size_t i = 0; i < STRANGERS_MAX; i++)
		assert_false(is_cut_off(&lines[i]));
	/* the oldest has shown the token by now: the next one goes */
	peer__trust(lines[0].peer);
	peer__trust(lines[0].peer);
	connect_peer(&peers, &lines[STRANGERS_MAX], STRANGERS_MAX);
	assert_false(is_cut_off(&lines[1]));
	connect_peer(&peers, &lines[STRANGERS_MAX + 1], STRANGERS_MAX);
	assert_true(is_cut_off(&lines[1]));
	assert_false(is_cut_off(&lines[0]));
	/* one that was dropped is not counted twice, neither when it shows the token nor when it closes */
	peer__trust(lines[1].peer);
	assert_int_equal(peers.strangers, STRANGERS_MAX);
	for (size_t i = STRANGERS_MAX + 2; i < 2 * STRANGERS_MAX; i++)
		connect_peer(&peers, &lines[i], i);
	assert_int_equal(peers.strangers, STRANGERS_MAX);
	assert_int_equal(peers.count, 2 * STRANGERS_MAX);
	assert_false(is_cut_off(&lines[0]));
	assert_false(is_cut_off(&lines[2 * STRANGERS_MAX - 1]));
	for (size_t i = 0; i < 2 * STRANGERS_MAX; i++)
		disconnect_peer(&lines[i]);
	assert_int_equal(peers.count, 0);
	assert_int_equal(peers.strangers, 0);
	assert_true(LIST_EMPTY(&peers.list));
}

TEST(peers_with_slow_requests_are_dropped)
{
	struct line slow, waiting;
	struct peers peers = {};

	connect_peer(&peers, &slow, 0);
	connect_peer(&peers, &waiting, 0);
	peer__trust(waiting.peer);
	peer__is_answered(waiting.peer);
	peers__drop_slow(&peers, REQUEST_SECONDS * SECOND);
	assert_false(is_cut_off(&slow));
	peers__drop_slow(&peers, REQUEST_SECONDS * SECOND + 1);
	assert_true(is_cut_off(&slow));
	assert_false(is_cut_off(&waiting));
	/* the next request has the same time, also with a token */
	peer__is_done(waiting.peer, 50 * SECOND);
	peers__drop_slow(&peers, (50 + REQUEST_SECONDS) * SECOND);
	assert_false(is_cut_off(&waiting));
	peers__drop_slow(&peers, (51 + REQUEST_SECONDS) * SECOND);
	assert_true(is_cut_off(&waiting));
	disconnect_peer(&slow);
	disconnect_peer(&waiting);
}

/* ---- sources --------------------------------------------------------------------------------- */

struct sources {
	char dir[64];
	char *paths[8]; /* sorted */
	struct source_list list;
};

enum { BIG, BINARY, DIRECTORY, EMPTY, FIFO, GONE, LINK, TEXT };

static void make_file(const char *path, const char *text, size_t size)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	close(fd);
}

static struct sources *sources; /* of the running test */

static void set_up_sources(void)
{
	static const char *const names[] = {"big.c",  "binary.c", "directory.c", "empty.c",
					    "fifo.c", "gone.c",	  "link.c",	 "text.c"};
	static const char text[] = "int main(void)\n{\n\treturn \"\xc3\xa4\xff\"[0];\n}\n";
	struct sources *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	snprintf(s->dir, sizeof(s->dir), "/tmp/sources.XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	for (size_t i = 0; i < 8; i++)
		assert_true(asprintf(&s->paths[i], "%s/%s", s->dir, names[i]) > 0);
	s->list.paths = (const char *const *)s->paths;
	s->list.count = 8;
	make_file(s->paths[BIG], "x", 1);
	assert_int_equal(truncate(s->paths[BIG], SOURCE_MAX + 1), 0);
	make_file(s->paths[BINARY],
		  "\x7f"
		  "ELF\0\1",
		  6);
	assert_int_equal(mkdir(s->paths[DIRECTORY], 0700), 0);
	make_file(s->paths[EMPTY], "", 0);
	assert_int_equal(mkfifo(s->paths[FIFO], 0600), 0);
	make_file(s->paths[TEXT], text, sizeof(text) - 1);
	assert_int_equal(symlink(s->paths[TEXT], s->paths[LINK]), 0);
	sources = s;
}

static void tear_down_sources(void)
{
	struct sources *s = sources;

	for (size_t i = 0; i < 8; i++) {
		remove(s->paths[i]);
		free(s->paths[i]);
	}
	rmdir(s->dir);
	free(s);
}

static cJSON *send_request(const struct source_list *list, const char *name, const char *request)
{
	char *answer;
	size_t size;
	cJSON *json;

	assert_int_equal(source_api__answer(list, name, request, strlen(request), &answer, &size),
			 0);
	assert_int_equal(strlen(answer), size);
	json = cJSON_Parse(answer);
	assert_non_null(json);
	free(answer);
	return json;
}

static void assert_refused(const struct source_list *list, const char *request, const char *why)
{
	cJSON *json = send_request(list, "source/v1", request);
	const char *error = cJSON_GetStringValue(cJSON_GetObjectItem(json, "error"));

	assert_null(cJSON_GetObjectItem(json, "source"));
	assert_non_null(error);
	if (!strstr(error, why))
		fail_msg("%s: %s", request, error);
	cJSON_Delete(json);
}

static void assert_file_refused(const struct source_list *list, const char *path, const char *why)
{
	char request[256];

	snprintf(request, sizeof(request),
		 "{\"debugName\":\"a\",\"debugId\":\"0\",\"moduleOffset\":\"0x1\",\"file\":\"%s\"}",
		 path);
	assert_refused(list, request, why);
}

TEST_WITH(only_listed_text_files_are_served, set_up_sources, tear_down_sources)
{
	struct sources *s = sources;
	char request[256], path[128];
	cJSON *json;

	snprintf(request, sizeof(request), "{\"file\":\"%s\"}", s->paths[TEXT]);
	json = send_request(&s->list, "source/v1", request);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(json, "file")),
			    s->paths[TEXT]);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(json, "source")),
			    "int main(void)\n{\n\treturn \"\xc3\xa4\xef\xbf\xbd\"[0];\n}\n");
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(json, "symbolsLastModified")));
	cJSON_Delete(json);

	/* listed, and not what a source file is */
	assert_file_refused(&s->list, s->paths[BIG], "too big");
	assert_file_refused(&s->list, s->paths[BINARY], "not a text file");
	assert_file_refused(&s->list, s->paths[LINK], "symbolic link");
	assert_file_refused(&s->list, s->paths[FIFO], "");
	assert_file_refused(&s->list, s->paths[DIRECTORY], "");
	assert_file_refused(&s->list, s->paths[EMPTY], "");
	assert_file_refused(&s->list, s->paths[GONE], "No such file");

	/* not listed: whether it exists is not said */
	assert_file_refused(&s->list, "/etc/passwd", "does not refer");
	assert_file_refused(&s->list, "/nowhere", "does not refer");
	assert_file_refused(&s->list, "", "does not refer");
	assert_file_refused(&s->list, "text.c", "does not refer");
	snprintf(path, sizeof(path), "%s/../%s", s->dir, s->paths[TEXT] + strlen("/tmp/"));
	assert_file_refused(&s->list, path, "does not refer");
	snprintf(path, sizeof(path), "%s/", s->paths[TEXT]);
	assert_file_refused(&s->list, path, "does not refer");

	/* not even a request */
	assert_refused(&s->list, "", "not JSON");
	assert_refused(&s->list, "{", "not JSON");
	assert_refused(&s->list, "[]", "no \"file\"");
	assert_refused(&s->list, "{\"file\":1}", "no \"file\"");
	assert_refused(&s->list, "null", "no \"file\"");
}

/* /proc has no sizes, and other users' secrets */
TEST(files_in_proc_are_refused)
{
	static const char *const paths[] = {"/proc/self/environ", "/proc/self/maps"};
	const struct source_list list = {.paths = paths, .count = 2};

	assert_file_refused(&list, paths[0], "");
	assert_file_refused(&list, paths[1], "");
}

static const char *own_text(void *context, const char *path)
{
	return strcmp(path, "own.c") ? NULL : context;
}

static const char *own_code(void *context, const struct code_request *request,
			    struct json_writer *w)
{
	if (request->address != 0x1234)
		return "no such code";
	json_key_uint(w, "size", request->size + request->whole);
	json_key_string(w, "startAddress", request->name);
	return NULL;
}

static void assert_member(const struct source_list *list, const char *name, const char *request,
			  const char *member, const char *expected)
{
	cJSON *json = send_request(list, name, request);

	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(json, member)), expected);
	cJSON_Delete(json);
}

/* What the profile has itself comes first, and needs no file. */
TEST(texts_and_code_of_the_profile_are_served)
{
	const struct source_list list = {.context = "int x;\n", .text = own_text, .code = own_code};
	const struct source_list none = {};

	assert_member(&list, "source/v1", "{\"file\":\"own.c\"}", "source", "int x;\n");
	assert_member(&list, "source/v1", "{\"file\":\"other.c\"}", "error",
		      "the profile does not refer to this file");
	assert_member(&list, "asm/v1",
		      "{\"debugName\":\"a\",\"startAddress\":\"0x1234\",\"size\":\"0x10\","
		      "\"continueUntilFunctionEnd\":true}",
		      "startAddress", "a");
	assert_member(&list, "asm/v1", "{\"startAddress\":\"0x1235\",\"size\":\"0x1\"}", "error",
		      "no such code");
	assert_member(&none, "asm/v1", "{\"startAddress\":\"0x1235\",\"size\":\"0x1\"}", "error",
		      "the profile has no machine code");
	assert_member(&list, "asm/v1", "{\"startAddress\":\"1234\",\"size\":\"0x1\"}", "error",
		      "the request has no \"startAddress\" or no \"size\"");
	assert_member(&list, "asm/v1", "{\"startAddress\":1,\"size\":\"0x1z\"}", "error",
		      "the request has no \"startAddress\" or no \"size\"");
}

TEST(only_source_and_asm_requests_are_supported)
{
	const struct source_list none = {};
	cJSON *json = send_request(&none, "symbolicate/v5", "{\"jobs\":[]}");

	assert_true(cJSON_IsString(cJSON_GetObjectItem(json, "error")));
	cJSON_Delete(json);
	assert_true(source_api__has_request("source/v1"));
	assert_true(source_api__has_request("asm/v1"));
	assert_false(source_api__has_request("source/v2"));
	assert_false(source_api__has_request(""));
}

/* As deep as a request can be: an error, and no crash. */
TEST(a_deeply_nested_request_is_an_error)
{
	const struct source_list none = {};
	char *request = malloc(API_REQUEST_MAX + 1);

	assert_non_null(request);
	memset(request, '[', API_REQUEST_MAX);
	request[API_REQUEST_MAX] = 0;
	assert_refused(&none, request, "not JSON");
	free(request);
}

/* ---- the server ------------------------------------------------------------------------------ */

static int connect_client(const struct server *s)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
					    .sin_port = htons(server__port(s)),
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

TEST(a_connection_waits_idly_until_a_descriptor_is_free)
{
	const struct server_options options = {.header_max = 8192, .idle_seconds = 10};
	struct failure failure;
	struct server *s;
	struct rlimit before, few;
	uint64_t cpu;
	int client, wake = eventfd(0, EFD_CLOEXEC), next;

	assert_int_equal(server__new(&options, &s, &failure), 0);
	client = connect_client(s);
	next = dup(client);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	cpu = thread_cpu_ns();
	assert_int_equal(server__run(s, wake, monotonic_ns() + SECOND), 0);
	cpu = thread_cpu_ns() - cpu;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(s->peers.count, 0);
	assert_in_range(cpu, 0, SECOND / 10);
	for (int i = 0; i < 100 && !s->peers.count; i++)
		assert_int_equal(server__run(s, wake, monotonic_ns() + SECOND / 10), 0);
	assert_int_equal(s->peers.count, 1);
	server__free(s);
	close(client);
	close(wake);
}
