/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/credentials.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "agent/http.h"
#include "agent/secret_memory.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/order.h"

#define FILE_MAX  8192
#define PIECE_MAX 8 /* bytes of a secret that are enough to recognize it */

/* ---- files ----------------------------------------------------------------------------------- */

/* The text of a file without the blanks at its end, in secret memory. */
static int read_secret(const char *path, char **text, struct failure *failure)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	_cleanup_secret_ char *buffer = NULL;
	ssize_t size;

	if (fd < 0)
		return fail(failure, -errno, "cannot open %s: %s", path, strerror(errno));
	buffer = secret_alloc(FILE_MAX + 1);
	if (!buffer)
		return -ENOMEM;
	size = read_full(fd, buffer, FILE_MAX + 1);
	if (size < 0)
		return fail(failure, size, "cannot read %s: %s", path, strerror(-size));
	if (size > FILE_MAX)
		return fail(failure, -EFBIG, "%s: more than %d bytes", path, FILE_MAX);
	while (size && isspace((unsigned char)buffer[size - 1]))
		size--;
	buffer[size] = '\0';
	if (!size)
		return fail(failure, -ENODATA, "%s is empty", path);
	if (strlen(buffer) != (size_t)size)
		return fail(failure, -EINVAL, "%s: a zero byte", path);
	*text = steal_ptr(buffer);
	return 0;
}

/* Could end a header and begin another one. */
static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return true;
	return false;
}

/* ---- headers --------------------------------------------------------------------------------- */

static int join(char **joined, const char *a, const char *b)
{
	size_t a_length = strlen(a), b_size = strlen(b) + 1;

	*joined = secret_alloc(a_length + b_size);
	if (!*joined)
		return -ENOMEM;
	memcpy(*joined, a, a_length);
	memcpy(*joined + a_length, b, b_size);
	return 0;
}

static int add_secret(struct credentials *c, const char *secret)
{
	if (c->secret_count == CREDENTIAL_HEADERS + 1)
		return -E2BIG;
	c->secrets[c->secret_count] = secret_strdup(secret);
	if (!c->secrets[c->secret_count])
		return -ENOMEM;
	c->secret_count++;
	return 0;
}

static int add_header(struct credentials *c, const char *name, const char *value)
{
	int err;

	if (c->header_count == CREDENTIAL_HEADERS)
		return -E2BIG;
	err = join(&c->headers[c->header_count], name, value);
	if (err)
		return err;
	c->header_count++;
	return add_secret(c, value);
}

static int read_bearer(const char *path, struct credentials *c, struct failure *failure)
{
	_cleanup_secret_ char *token = NULL;
	int err = read_secret(path, &token, failure);

	if (err)
		return err;
	if (has_control(token) || strchr(token, ' '))
		return fail(failure, -EINVAL, "%s: not a token alone on one line", path);
	return add_header(c, "Authorization: Bearer ", token);
}

static void encode_base64(const unsigned char *in, size_t size, char *out)
{
	for (size_t i = 0; i < size; i += 3, out += 4) {
		size_t left = size - i;
		uint32_t bits = in[i] << 16 | (left > 1 ? in[i + 1] << 8 : 0) |
				(left > 2 ? in[i + 2] : 0);

		base64_group(out, bits, (unsigned int)min_u64(left, 3));
	}
	*out = '\0';
}

static int read_basic(const char *path, struct credentials *c, struct failure *failure)
{
	_cleanup_secret_ char *text = NULL;
	_cleanup_secret_ char *encoded = NULL;
	const char *colon;
	int err = read_secret(path, &text, failure);

	if (err)
		return err;
	colon = strchr(text, ':');
	if (has_control(text) || !colon || !colon[1])
		return fail(failure, -EINVAL, "%s: not USER:PASSWORD on one line", path);
	encoded = secret_alloc((strlen(text) + 2) / 3 * 4 + 1);
	if (!encoded)
		return -ENOMEM;
	encode_base64((unsigned char *)text, strlen(text), encoded);
	return add_secret(c, colon + 1) ?: add_header(c, "Authorization: Basic ", encoded);
}

/* Those that the request itself depends on. */
static bool is_taken(const char *name, size_t length)
{
	static const char *const TAKEN[] = {"Content-Length",	 "Content-Type", "Content-Encoding",
					    "Transfer-Encoding", "Connection",	 "Expect"};

	return any_of(TAKEN, sizeof(TAKEN) / sizeof(*TAKEN), taken,
		      strlen(*taken) == length && !strncasecmp(*taken, name, length));
}

static bool is_header_name(const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '-' && name[i] != '_')
			return false;
	return length > 0;
}

/* A line "Name: value", which is cut in two. */
static int add_line(struct credentials *c, char *line)
{
	_cleanup_secret_ char *name = NULL;
	char *colon = strchr(line, ':'), *value;

	if (!colon || !is_header_name(line, colon - line) || is_taken(line, colon - line))
		return -EINVAL;
	for (value = colon + 1; *value == ' ' || *value == '\t';)
		value++;
	if (!*value || has_control(value))
		return -EINVAL;
	*colon = '\0';
	return join(&name, line, ": ") ?: add_header(c, name, value);
}

static int read_headers(const char *path, struct credentials *c, struct failure *failure)
{
	_cleanup_secret_ char *text = NULL;
	int err = read_secret(path, &text, failure), number = 1;

	if (err)
		return err;
	for (char *line = text, *next; line && !err; line = next, number++) {
		size_t length = strcspn(line, "\n");

		next = line[length] ? line + length + 1 : NULL;
		if (length && line[length - 1] == '\r')
			line[length - 1] = '\0';
		line[length] = '\0';
		if (*line)
			err = add_line(c, line);
	}
	if (err == -EINVAL)
		return fail(failure, err, "%s:%d: not a header that can be sent", path, number - 1);
	if (err == -E2BIG)
		return fail(failure, err, "%s: more than %d headers", path, CREDENTIAL_HEADERS);
	return err;
}

int credentials__read(const struct credential_files *files, struct credentials *c,
		      struct failure *failure)
{
	int err = 0;

	*c = (struct credentials){};
	if (files->bearer)
		err = read_bearer(files->bearer, c, failure);
	if (!err && files->basic)
		err = read_basic(files->basic, c, failure);
	if (!err && files->header)
		err = read_headers(files->header, c, failure);
	if (err)
		credentials__fini(c);
	return err;
}

void credentials__fini(struct credentials *c)
{
	for (size_t i = 0; i < CREDENTIAL_HEADERS; i++)
		secret_free(c->headers[i]);
	for (size_t i = 0; i < CREDENTIAL_HEADERS + 1; i++)
		secret_free(c->secrets[i]);
	*c = (struct credentials){};
}

/* A backend may show a secret cut, quoted or escaped: any piece of it is enough. */
bool credentials__are_in(const struct credentials *c, const void *data, size_t size)
{
	for (size_t i = 0; i < c->secret_count; i++) {
		size_t length = strlen(c->secrets[i]), piece = min_u64(length, PIECE_MAX);

		for (size_t at = 0; at + piece <= length; at++)
			if (memmem(data, size, c->secrets[i] + at, piece))
				return true;
	}
	return false;
}
