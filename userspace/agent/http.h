/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The only user of libcurl, which is loaded when a client is opened: it brings some thirty
 * libraries, and a recording needs none of them.
 *
 * A client belongs to one thread, but for http_client__stop(). It keeps its connection open between
 * requests, makes one at a time, follows no redirect, and never sends one twice by itself.
 */
#ifndef AGENT_HTTP_H
#define AGENT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

/* Credentials, read from files for each request (tokens are rotated) into memory without dumps. */

#define CREDENTIAL_HEADERS 16

/* NULL: none. The strings stay the caller's. */
struct credential_files {
	const char *bearer; /* a token */
	const char *basic;  /* "user:password" */
	const char *header; /* lines "Name: value" */
};

struct credentials {
	char *headers[CREDENTIAL_HEADERS]; /* "Authorization: Bearer …" */
	size_t header_count;
	char *secrets[CREDENTIAL_HEADERS + 1]; /* as they were in the files */
	size_t secret_count;
};

/* 0 or negative errno: `failure` names the file, and never its contents. */
int credentials__read(const struct credential_files *files, struct credentials *c,
		      struct failure *failure);
void credentials__fini(struct credentials *c);

/* Is a part of a secret in these bytes, so that they cannot be shown? */
bool credentials__are_in(const struct credentials *c, const void *data, size_t size);

#define HTTP_BODY_MAX (64u * 1024) /* of an answer; what is beyond that is not read */

/* Strings are copied. */
struct http_options {
	const char *url; /* http:// or https://, without user, query and fragment */
	struct credential_files credentials;
	const char *ca_file; /* instead of the system's; NULL */
	const char *tenant;  /* X-Scope-OrgID; NULL */
	uint64_t timeout;    /* ns of a request in all; 0: 20 s */
};

struct http_request {
	const char *path;     /* begins with a slash; goes behind the URL */
	const char *type;     /* Content-Type */
	const char *encoding; /* Content-Encoding, "": none */
	const void *body;
	size_t size;
	void (*sending)(
		void *context); /* there is a connection, and now it goes; NULL: not needed */
	void *context;
};

struct http_answer {
	long status; /* 0: there was none, or one without its end that would say that all is well */
	bool sent;   /* the request, or a part of it, may have arrived */
	char type[128];
	char *body; /* HTTP_BODY_MAX bytes at most; owned */
	size_t size;
	uint64_t retry_after;	     /* ns; 0: none */
	bool credentials_unreadable; /* nothing was tried */
	bool stopped;		     /* by http_client__stop() */
	char text[256];		     /* what happened, in one line that shows no secret */
};

struct http_client;

/* 0 or negative errno with `failure` filled: -ENOPKG: there is no libcurl; -EINVAL: an option. */
int http_client__new(const struct http_options *options, struct http_client **client,
		     struct failure *failure);
void http_client__free(struct http_client *c);

/* An answer or none: see `answer`, which http_answer__fini() frees in any case. 0, -ENOMEM. */
int http_client__post(struct http_client *c, const struct http_request *request,
		      struct http_answer *answer);
void http_answer__fini(struct http_answer *answer);

/* Any thread: what is under way, and what comes, ends at this time (CLOCK_MONOTONIC ns). */
void http_client__stop(struct http_client *c, uint64_t deadline);

/* ---- when a request is tried again: the backend's word (Retry-After), or our own back-off ---- */

#define RETRY_AFTER_MAX                                                                            \
	(300 * UINT64_C(1000000000)) /* a backend that requests more is tried before */

/*
 * Nanoseconds of a Retry-After header: seconds, or an HTTP date, compared with the answer's own
 * Date header (`date`), because the clocks may differ; if that is NULL or no date, with `now` (ns
 * since the epoch). 0: empty, invalid or past. RETRY_AFTER_MAX at most.
 */
uint64_t retry_after(const char *value, const char *date, uint64_t now);

/* An HTTP date, "Sun, 06 Nov 1994 08:49:37 GMT", as seconds since the epoch. 0 or -EINVAL. */
int parse_http_date(const char *text, int64_t *seconds);

struct retry_pace {
	uint64_t least, most; /* ns: of the first back-off, and of all */
	uint64_t slow;	      /* ns: if only an administrator can help */
};

/*
 * Full jitter, so that a fleet does not return all at once: up to `least` doubled with each failure
 * (1: the first), `most` at most, a tenth of `least` at least. `random`: 64 random bits.
 */
uint64_t retry_delay(const struct retry_pace *pace, unsigned int failures, uint64_t random);

/* ---- the CA file ----------------------------------------------------------------------------- */

/* Distributions disagree on its place; libcurl in the static program has to work on all of them. */

/* The first of these files that can be read; NULL: none. */
const char *ca_file__first(const char *const *paths, size_t count);

/* This system's CA file, or SSL_CERT_FILE's; NULL: none. Valid until the environment changes. */
const char *ca_file__of_system(void);

#endif
