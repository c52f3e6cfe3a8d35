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

#include "agent/retry.h"
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

/* ---- the CA file ----------------------------------------------------------------------------- */

/* Distributions disagree on its place; libcurl in the static program has to work on all of them. */

/* The first of these files that can be read; NULL: none. */
const char *ca_file__first(const char *const *paths, size_t count);

/* This system's CA file, or SSL_CERT_FILE's; NULL: none. Valid until the environment changes. */
const char *ca_file__of_system(void);

#endif
