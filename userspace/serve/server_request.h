/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SERVE_SERVER_REQUEST_H
#define SERVE_SERVER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

struct server_request;

/* Of a request, valid until it is answered: its path below "/" or "/TOKEN/", */
const char *server_request__path(const struct server_request *request);
/* an argument of the query, unescaped (NULL: not there), */
const char *server_request__argument(const struct server_request *request, const char *name);
/* and the body. */
const char *server_request__body(const struct server_request *request, size_t *size);

#define TOKEN_BYTES 20 /* of randomness: 160 bits */
#define TOKEN_SIZE  (2 * TOKEN_BYTES)

/* TOKEN_SIZE hexadecimal digits and NUL. 0 or negative errno. */
int token__make(char token[TOKEN_SIZE + 1]);

/* Compares the text up to `end`, in constant time. */
bool token__equal(const char token[TOKEN_SIZE + 1], const char *text, const char *end);

#endif
