/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The multi interface, for its wake-up: another thread stops one that waits for an answer. Names
 * are looked up in a thread of libcurl's, which is left behind if it hangs (CURLOPT_QUICK_EXIT).
 *
 * libcurl sends a request again by itself if a kept connection turns out to be closed. The backend
 * may have had it the first time, so that is forbidden: if libcurl is about to send one again
 * (CURLOPT_PREREQFUNCTION) the transfer ends and counts as unanswered. The same call reports
 * whether anything was sent at all. libcurl allocates secret memory, see secret_memory.h.
 */
#include "agent/http.h"

#include <ctype.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/credentials.h"
#include "agent/secret_memory.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/utf8.h"

#define LIBRARY		"libcurl.so.4"
#define LEAST_VERSION	0x075000 /* 7.80: CURLOPT_PREREQFUNCTION */
#define NS_PER_MS	UINT64_C(1000000)
#define CONNECT_TIMEOUT 5000L /* ms */
#define TIMEOUT		(20000 * NS_PER_MS)
#define STALL_SECONDS	30L /* without a byte in either direction */
#define POLL_MS		1000
#define HEADERS_MAX	(64u * 1024) /* of an answer */
#define QUOTE_MAX	160	     /* of an answer's body, in an error */
#define FIELD_MAX	128

#define FUNCTIONS(X)                                                                               \
	X(global_init_mem)                                                                         \
	X(version_info)                                                                            \
	X(easy_init)                                                                               \
	X(easy_cleanup)                                                                            \
	X(easy_setopt)                                                                             \
	X(easy_getinfo)                                                                            \
	X(easy_strerror)                                                                           \
	X(multi_init)                                                                              \
	X(multi_cleanup)                                                                           \
	X(multi_setopt)                                                                            \
	X(multi_add_handle)                                                                        \
	X(multi_remove_handle)                                                                     \
	X(multi_perform)                                                                           \
	X(multi_poll)                                                                              \
	X(multi_wakeup)                                                                            \
	X(multi_info_read)                                                                         \
	X(multi_strerror)                                                                          \
	X(slist_append)                                                                            \
	X(slist_free_all)

struct library {
	int error;
	char text[128];
	unsigned int version;
#define X(name) __typeof__(curl_##name) *name;
	FUNCTIONS(X)
#undef X
};

struct http_client {
	const struct library *curl;
	CURL *easy;
	CURLM *multi;
	char *url, *ca_file, *tenant;
	char *bearer, *basic, *header; /* files */
	uint64_t timeout;
	char error[CURL_ERROR_SIZE];
	_Atomic uint64_t deadline; /* 0: none */
};

/* A request under way. */
struct transfer {
	const struct http_request *request;
	struct http_answer *answer;
	unsigned int begun; /* times that libcurl was about to send it */
	size_t header_bytes;
	bool body_cut, headers_cut, headers_done;
	char location[FIELD_MAX], retry_after[FIELD_MAX], date[FIELD_MAX];
};

/* ---- the library ----------------------------------------------------------------------------- */

static struct library library;
static pthread_once_t library_once = PTHREAD_ONCE_INIT;

#ifdef SYSPROF_STATIC /* libcurl is part of the program */
static int find_functions(struct library *l)
{
#define X(name) l->name = curl_##name;
	FUNCTIONS(X)
#undef X
	return 0;
}
#else
/* Never closed: it does not bear being unloaded, and its threads may outlive all clients. */
static int find_functions(struct library *l)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!handle)
		return -ENOPKG;
#define X(name)                                                                                    \
	*(void **)&l->name = dlsym(handle, "curl_" #name);                                         \
	if (!l->name)                                                                              \
		return -ENOPKG;
	FUNCTIONS(X)
#undef X
	return 0;
}
#endif

static void load_library(void)
{
	struct library *l = &library;

	snprintf(l->text, sizeof(l->text), "%s cannot be loaded", LIBRARY);
	l->error = find_functions(l);
	if (l->error)
		return;
	l->version = l->version_info(CURLVERSION_NOW)->version_num;
	if (l->version < LEAST_VERSION) {
		snprintf(l->text, sizeof(l->text), "%s is older than 7.80", LIBRARY);
		l->error = -ENOPKG;
		return;
	}
	if (l->global_init_mem(CURL_GLOBAL_ALL, secret_alloc, secret_free, secret_realloc,
			       secret_strdup, secret_calloc)) {
		snprintf(l->text, sizeof(l->text), "%s does not start", LIBRARY);
		l->error = -ENOMEM;
	}
}

static int need_library(const struct library **l, struct failure *failure)
{
	pthread_once(&library_once, load_library);
	*l = &library;
	if (!library.error)
		return 0;
	fail(failure, library.error, "%s", library.text);
	return fail_remedy(failure, library.error,
			   "install libcurl 7.80 or newer: apt install libcurl4");
}

/* ---- what libcurl calls ---------------------------------------------------------------------- */

static int before_request(void *context, char *remote, char *local, int remote_port, int local_port)
{
	struct transfer *t = context;

	(void)remote;
	(void)local;
	(void)remote_port;
	(void)local_port;
	if (t->begun++)
		return CURL_PREREQFUNC_ABORT;
	t->answer->sent = true;
	if (t->request->sending)
		t->request->sending(t->request->context);
	return CURL_PREREQFUNC_OK;
}

/* Programs that this process executes must not inherit connections. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
	(void)context;
	(void)purpose;
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
	struct transfer *t = context;
	struct http_answer *a = t->answer;
	size_t all = size * count, taken = min_u64(all, HTTP_BODY_MAX - a->size);

	memcpy(a->body + a->size, data, taken);
	a->size += taken;
	t->body_cut = taken < all;
	return taken; /* fewer than there are: libcurl ends the transfer */
}

/* The value of a header line, if it has this name. */
static bool take_field(const char *line, size_t size, const char *name, char *value,
		       size_t value_size)
{
	size_t length = strlen(name);

	if (size <= length || strncasecmp(line, name, length) || line[length] != ':')
		return false;
	line += length + 1;
	size -= length + 1;
	while (size && isspace((unsigned char)*line)) {
		line++;
		size--;
	}
	while (size && isspace((unsigned char)line[size - 1]))
		size--;
	if (size >= value_size || memchr(line, '\0', size))
		size = 0; /* nothing that is known is as long */
	memcpy(value, line, size);
	value[size] = '\0';
	return true;
}

static size_t take_header(char *line, size_t size, size_t count, void *context)
{
	struct transfer *t = context;
	struct http_answer *a = t->answer;

	size *= count;
	t->header_bytes += size;
	t->headers_cut = t->header_bytes > HEADERS_MAX;
	if (t->headers_cut)
		return 0;
	if (size >= 5 &&
	    !memcmp(line, "HTTP/",
		    5)) { /* another answer: the one before was a 1xx, or the proxy's */
		t->location[0] = t->retry_after[0] = t->date[0] = a->type[0] = '\0';
		t->headers_done = false;
	}
	if (size <= 2 && (!size || *line == '\r' || *line == '\n'))
		t->headers_done = true;
	if (!take_field(line, size, "Location", t->location, sizeof(t->location)) &&
	    !take_field(line, size, "Retry-After", t->retry_after, sizeof(t->retry_after)) &&
	    !take_field(line, size, "Date", t->date, sizeof(t->date)))
		take_field(line, size, "Content-Type", a->type, sizeof(a->type));
	return size;
}

/* ---- options --------------------------------------------------------------------------------- */

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text <= ' ' || *text == 0x7f)
			return false;
	return true;
}

/* Passwords in URLs get into process lists, logs and errors. */
static int check_url(const char *url, struct failure *failure)
{
	const char *host = !strncmp(url, "http://", 7)	  ? url + 7
			   : !strncmp(url, "https://", 8) ? url + 8
							  : NULL;

	if (!host)
		return fail(failure, -EINVAL,
			    "not a URL: it begins with neither http:// nor https://");
	if (strchr(host, '@')) {
		fail(failure, -EINVAL, "a URL with a user or a password in it is not taken");
		return fail_remedy(failure, -EINVAL, "put USER:PASSWORD into a file");
	}
	if (!*host || *host == '/' || strpbrk(host, "?#") || !is_plain(url))
		return fail(failure, -EINVAL, "not a URL with a host and a path alone");
	return 0;
}

static int check_options(const struct http_options *o, struct failure *failure)
{
	int err = check_url(o->url, failure);

	if (err)
		return err;
	if (o->credentials.bearer && o->credentials.basic)
		return fail(failure, -EINVAL, "a bearer token and a password: only one is sent");
	if (o->tenant && (!*o->tenant || !is_plain(o->tenant)))
		return fail(failure, -EINVAL, "the tenant is empty, or has blanks in it");
	if (o->ca_file && access(o->ca_file, R_OK))
		return fail(failure, -errno, "cannot read the CA file %s: %s", o->ca_file,
			    strerror(errno));
	return 0;
}

static int copy_string(const char *text, char **copy)
{
	if (!text)
		return 0;
	*copy = strdup(text);
	return *copy ? 0 : -ENOMEM;
}

static int copy_options(struct http_client *c, const struct http_options *o)
{
	size_t length = strlen(o->url);

	while (o->url[length - 1] == '/')
		length--;
	c->timeout = o->timeout ?: TIMEOUT;
	c->url = strndup(o->url, length);
	if (!c->url || copy_string(o->ca_file, &c->ca_file) || copy_string(o->tenant, &c->tenant) ||
	    copy_string(o->credentials.bearer, &c->bearer) ||
	    copy_string(o->credentials.basic, &c->basic) ||
	    copy_string(o->credentials.header, &c->header))
		return -ENOMEM;
	return 0;
}

static long milliseconds(uint64_t ns)
{
	return max_u64(1, min_u64(ns / NS_PER_MS, INT_MAX));
}

/* Those that are the same for all requests. */
static bool set_options(struct http_client *c)
{
	__typeof__(curl_easy_setopt) *set = c->curl->easy_setopt;
	CURL *e = c->easy;
	CURLcode bad = CURLE_OK;

	bad |= set(e, CURLOPT_NOSIGNAL, 1L);
	bad |= set(e, CURLOPT_POST, 1L);
	bad |= set(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	bad |= set(e, CURLOPT_FOLLOWLOCATION, 0L);
	if (c->curl->version >= 0x075500)
		bad |= set(e, CURLOPT_PROTOCOLS_STR, "http,https");
	else
		bad |= set(e, (CURLoption)181 /* CURLOPT_PROTOCOLS */,
			   (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
	if (c->curl->version >= 0x075700)
		bad |= set(e, CURLOPT_QUICK_EXIT, 1L);
	bad |= set(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT);
	bad |= set(e, CURLOPT_TIMEOUT_MS, milliseconds(c->timeout));
	bad |= set(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
	bad |= set(e, CURLOPT_LOW_SPEED_TIME, STALL_SECONDS);
	bad |= set(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	bad |= set(e, CURLOPT_USERAGENT, "sysprof/" SYSPROF_VERSION);
	bad |= set(e, CURLOPT_ERRORBUFFER, c->error);
	bad |= set(e, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	bad |= set(e, CURLOPT_PREREQFUNCTION, before_request);
	bad |= set(e, CURLOPT_HEADERFUNCTION, take_header);
	bad |= set(e, CURLOPT_WRITEFUNCTION, take_body);
	if (c->ca_file) {
		bad |= set(e, CURLOPT_CAINFO, c->ca_file);
		bad |= set(e, CURLOPT_CAPATH, NULL); /* it alone is trusted */
	}
#ifdef SYSPROF_STATIC /* a libcurl of the system has the system's path */
	else if (ca_file__of_system())
		bad |= set(e, CURLOPT_CAINFO, ca_file__of_system());
#endif
	return !bad;
}

int http_client__new(const struct http_options *o, struct http_client **client,
		     struct failure *failure)
{
	const struct library *curl;
	struct http_client *c;
	int err = check_options(o, failure) ?: need_library(&curl, failure);

	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->curl = curl;
	c->easy = curl->easy_init();
	c->multi = curl->multi_init();
	if (!c->easy || !c->multi || copy_options(c, o) || !set_options(c)) {
		http_client__free(c);
		return fail(failure, -ENOMEM, "cannot prepare requests");
	}
	*client = c;
	return 0;
}

void http_client__free(struct http_client *c)
{
	if (!c)
		return;
	if (c->easy)
		c->curl->easy_cleanup(c->easy);
	if (c->multi)
		c->curl->multi_cleanup(c->multi);
	free(c->url);
	free(c->ca_file);
	free(c->tenant);
	free(c->bearer);
	free(c->basic);
	free(c->header);
	free(c);
}

void http_client__stop(struct http_client *c, uint64_t deadline)
{
	atomic_store(&c->deadline, deadline ? deadline : 1);
	c->curl->multi_wakeup(c->multi);
}

/* ---- one request ----------------------------------------------------------------------------- */

static int add_header(struct http_client *c, struct curl_slist **list, const char *name,
		      const char *value)
{
	_cleanup_secret_ char *line = secret_alloc(strlen(name) + strlen(value) + 1);
	struct curl_slist *longer;

	if (!line)
		return -ENOMEM;
	snprintf(line, strlen(name) + strlen(value) + 1, "%s%s", name, value);
	longer = c->curl->slist_append(*list, line);
	if (!longer)
		return -ENOMEM;
	*list = longer;
	return 0;
}

static int make_headers(struct http_client *c, const struct http_request *r,
			const struct credentials *credentials, struct curl_slist **list)
{
	int err = add_header(c, list, "Content-Type: ", r->type);

	if (!err && *r->encoding)
		err = add_header(c, list, "Content-Encoding: ", r->encoding);
	if (!err)
		err = add_header(c, list, "Expect:", ""); /* a second round trip */
	if (!err && c->tenant)
		err = add_header(c, list, "X-Scope-OrgID: ", c->tenant);
	for (size_t i = 0; !err && i < credentials->header_count; i++)
		err = add_header(c, list, credentials->headers[i], "");
	return err;
}

static int make_url(const struct http_client *c, const struct http_request *r, char **url)
{
	if (asprintf(url, "%s%s", c->url, r->path) >= 0)
		return 0;
	*url = NULL;
	return -ENOMEM;
}

static int set_request(struct http_client *c, const struct http_request *r, const char *url,
		       struct curl_slist *headers, struct transfer *t)
{
	__typeof__(curl_easy_setopt) *set = c->curl->easy_setopt;
	CURLcode bad = set(c->easy, CURLOPT_URL, url);

	bad |= set(c->easy, CURLOPT_HTTPHEADER, headers);
	bad |= set(c->easy, CURLOPT_POSTFIELDS, r->body ? r->body : "");
	bad |= set(c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->size);
	bad |= set(c->easy, CURLOPT_PREREQDATA, t);
	bad |= set(c->easy, CURLOPT_HEADERDATA, t);
	bad |= set(c->easy, CURLOPT_WRITEDATA, t);
	c->error[0] = '\0';
	return bad ? -ENOMEM : 0;
}

/* Milliseconds to wait, 0: time is over. */
static int time_left(struct http_client *c)
{
	uint64_t deadline = atomic_load(&c->deadline), now = monotonic_ns();

	if (!deadline)
		return POLL_MS;
	if (deadline <= now)
		return 0;
	return min_u64(POLL_MS, (deadline - now) / NS_PER_MS + 1);
}

static CURLcode result_of(struct http_client *c)
{
	CURLMsg *message;
	int left;

	while ((message = c->curl->multi_info_read(c->multi, &left)))
		if (message->msg == CURLMSG_DONE)
			return message->data.result;
	return CURLE_ABORTED_BY_CALLBACK;
}

/* Until there is a result, or the deadline is over: then answer->stopped. */
static CURLcode run_transfer(struct http_client *c, struct http_answer *answer)
{
	int running = 1;

	for (;;) {
		int wait = time_left(c);

		answer->stopped = wait == 0;
		if (answer->stopped)
			return CURLE_ABORTED_BY_CALLBACK;
		if (c->curl->multi_perform(c->multi, &running))
			return CURLE_OUT_OF_MEMORY;
		if (!running)
			return result_of(c);
		if (c->curl->multi_poll(c->multi, NULL, 0, wait, NULL))
			return CURLE_OUT_OF_MEMORY;
	}
}

/* ---- what came of it ------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void describe(struct http_answer *a,
							   const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	utf8_sanitize(a->text, sizeof(a->text), text);
}

/* The first line or two of an error; never a text that could have a secret. */
static void describe_error(struct http_answer *a, const struct credentials *credentials)
{
	int length = min_u64(a->size, QUOTE_MAX);

	while (length && isspace((unsigned char)a->body[length - 1]))
		length--;
	if (!length)
		describe(a, "HTTP %ld", a->status);
	else if (credentials__are_in(credentials, a->body, a->size))
		describe(a, "HTTP %ld: (its answer repeats the credentials)", a->status);
	else
		describe(a, "HTTP %ld: %.*s", a->status, length, a->body);
}

/* Only the host that it redirects to: a path may have a token in it. */
static void describe_redirect(struct http_answer *a, const struct credentials *credentials,
			      const char *location)
{
	const char *host = strstr(location, "://");
	int length = host ? host - location + 3 + strcspn(host + 3, "/?#") : 0;

	if (!length || memchr(location, '@', length) ||
	    credentials__are_in(credentials, location, strlen(location)))
		describe(a, "HTTP %ld: redirects, which is not followed", a->status);
	else
		describe(a, "HTTP %ld: redirects to %.*s, which is not followed", a->status, length,
			 location);
}

static void describe_failure(struct http_client *c, const struct credentials *credentials,
			     struct transfer *t, CURLcode code)
{
	const char *why = c->error[0] ? c->error : c->curl->easy_strerror(code);

	if (t->answer->stopped)
		why = "stopped before there was an answer";
	else if (t->begun > 1)
		why = "the connection was closed without an answer";
	else if (t->headers_cut)
		why = "the headers of its answer do not end";
	else if (credentials__are_in(credentials, why, strlen(why)))
		why = c->curl->easy_strerror(code);
	describe(t->answer, "%s", why);
}

/*
 * A refusal counts even if its reason is cut short, success only if it came to its end: a proxy may
 * have begun it. An answer longer than we read is complete enough.
 */
static void judge_end(struct http_client *c, const struct credentials *credentials,
		      struct transfer *t, CURLcode code)
{
	struct http_answer *a = t->answer;
	long status = 0;

	c->curl->easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	if (t->begun != 1 || !t->headers_done || status < 200)
		status = 0;
	if (code != CURLE_OK && !t->body_cut && status < 300)
		status = 0;
	a->status = status;
	if (!status) {
		a->size = 0;
		a->type[0] = '\0';
		describe_failure(c, credentials, t,
				 code == CURLE_OK ? CURLE_WEIRD_SERVER_REPLY : code);
		return;
	}
	if (t->retry_after[0])
		a->retry_after = retry_after(t->retry_after, t->date, realtime_ns());
	if (status >= 300 && status < 400)
		describe_redirect(a, credentials, t->location);
	else
		describe_error(a, credentials);
}

static void cleanup_headers(struct curl_slist **list)
{
	if (*list)
		library.slist_free_all(*list);
}

static int transfer(struct http_client *c, const struct http_request *r,
		    const struct credentials *credentials, struct transfer *t)
{
	_cleanup_(cleanup_headers) struct curl_slist *headers = NULL;
	_cleanup_free_ char *url = NULL;
	CURLcode code;
	int err = make_url(c, r, &url)
			?: make_headers(c, r, credentials, &headers)
			?: set_request(c, r, url, headers, t);

	if (err)
		return err;
	if (c->curl->multi_add_handle(c->multi, c->easy))
		return -ENOMEM;
	code = run_transfer(c, t->answer);
	judge_end(c, credentials, t, code);
	c->curl->multi_remove_handle(c->multi, c->easy);
	c->curl->easy_setopt(c->easy, CURLOPT_HTTPHEADER, NULL);
	return 0;
}

_zero_registers_ int http_client__post(struct http_client *c, const struct http_request *r,
				       struct http_answer *answer)
{
	const struct credential_files files = {c->bearer, c->basic, c->header};
	_cleanup_(credentials__fini) struct credentials credentials = {};
	struct transfer t = {.request = r, .answer = answer};
	struct failure failure = {};
	int err;

	*answer = (struct http_answer){};
	err = credentials__read(&files, &credentials, &failure);
	if (err == -ENOMEM)
		return err;
	if (err) {
		answer->credentials_unreadable = true;
		describe(answer, "%s", failure.what);
		return 0;
	}
	answer->body = secret_alloc(HTTP_BODY_MAX); /* it may show what we have sent */
	if (!answer->body)
		return -ENOMEM;
	return transfer(c, r, &credentials, &t);
}

void http_answer__fini(struct http_answer *answer)
{
	secret_free(answer->body);
	*answer = (struct http_answer){};
}

/* ---- the CA file ----------------------------------------------------------------------------- */

static const char *const PLACES[] = {
	"/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Arch, Alpine */
	"/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, Red Hat */
	"/etc/ssl/ca-bundle.pem",	      /* openSUSE */
	"/etc/ssl/cert.pem",		      /* Alpine without its package */
};

const char *ca_file__first(const char *const *paths, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!access(paths[i], R_OK))
			return paths[i];
	return NULL;
}

const char *ca_file__of_system(void)
{
	const char *chosen = getenv("SSL_CERT_FILE");

	if (chosen && *chosen)
		return chosen;
	return ca_file__first(PLACES, sizeof(PLACES) / sizeof(PLACES[0]));
}
