/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/source_api.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json_writer.h"
#include "base/order.h"
#include "base/parse.h"
#include "tenants/tenant_open.h"

#define SOURCE_REQUEST "source/v1"
#define CODE_REQUEST   "asm/v1"

static const char *const requests[] = {SOURCE_REQUEST, "symbolicate/v5", CODE_REQUEST};

bool source_api__has_request(const char *name)
{
	return any_of(requests, sizeof(requests) / sizeof(requests[0]), known,
		      !strcmp(*known, name));
}

static bool is_listed(const struct source_list *sources, const char *path)
{
	size_t i = partition_point(sources->paths, sources->count, p, strcmp(*p, path) < 0);

	return i < sources->count && !strcmp(sources->paths[i], path);
}

/*
 * The text of a listed file, NUL-terminated. A stranger's recording can name any file. So no
 * symbolic link at the end of the path, no device or pipe, no file of size 0 (as in /proc), and
 * none with NUL bytes, as programs, databases and keystores have.
 */
static int read_source(const char *path, char **text)
{
	_cleanup_close_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	_cleanup_free_ char *data = NULL;
	struct stat st;
	ssize_t got;

	if (root < 0)
		return -errno;
	fd = tenant_open(root, path, O_NOFOLLOW, SOURCE_MAX, &st);
	if (fd < 0)
		return fd;
	if (!st.st_size)
		return -ENODATA;
	data = malloc(st.st_size + 1);
	if (!data)
		return -ENOMEM;
	got = pread_full(fd, data, st.st_size, 0);
	if (got < 0)
		return got;
	if (memchr(data, 0, got))
		return -EILSEQ;
	data[got] = 0;
	*text = steal_ptr(data);
	return 0;
}

/* For an unlisted file the answer does not show whether it exists. */
static const char *find_source(const struct source_list *sources, const cJSON *file, char **text)
{
	const char *own;
	int err;

	if (!cJSON_IsString(file))
		return "the request has no \"file\"";
	own = sources->text ? sources->text(sources->context, file->valuestring) : NULL;
	if (own) {
		*text = strdup(own);
		return *text ? NULL : strerror(ENOMEM);
	}
	if (*file->valuestring != '/' || !is_listed(sources, file->valuestring))
		return "the profile does not refer to this file";
	err = read_source(file->valuestring, text);
	switch (err) {
	case 0:
		return NULL;
	case -EFBIG:
		return "the file is too big to be a source file";
	case -EILSEQ:
		return "not a text file";
	case -ELOOP:
		return "the file is a symbolic link";
	default:
		return strerror(-err);
	}
}

static void write_source(struct json_writer *w, const char *path, const char *text)
{
	json_key_null(w, "symbolsLastModified");
	json_key_null(w, "sourceLastModified");
	json_key_string(w, "file", path);
	json_key_string(w, "source", text);
}

static bool take_hex(const cJSON *json, const char *key, uint64_t *value)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));

	if (!text || strncmp(text, "0x", 2))
		return false;
	text += 2;
	return !parse_hex(&text, value) && !*text;
}

/* NULL, or what is wrong. */
static const char *answer_code(const struct source_list *sources, const cJSON *json,
			       struct json_writer *w)
{
	struct code_request request = {
		.name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "debugName")),
		.debug_id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "debugId")),
		.whole = cJSON_IsTrue(
			cJSON_GetObjectItemCaseSensitive(json, "continueUntilFunctionEnd")),
	};

	if (!take_hex(json, "startAddress", &request.address) ||
	    !take_hex(json, "size", &request.size))
		return "the request has no \"startAddress\" or no \"size\"";
	return sources->code ? sources->code(sources->context, &request, w)
			     : "the profile has no machine code";
}

static void delete_json(cJSON **json)
{
	cJSON_Delete(*json);
}

int source_api__answer(const struct source_list *sources, const char *name, const char *request,
		       size_t request_size, char **answer, size_t *size)
{
	/* cJSON limits the depth, the caller the size */
	_cleanup_(delete_json) cJSON *json = cJSON_ParseWithLength(request, request_size);
	const cJSON *file = cJSON_GetObjectItemCaseSensitive(json, "file");
	_cleanup_free_ char *text = NULL;
	const char *error = NULL;
	struct json_writer w;
	char *data = NULL;
	FILE *out;
	int err;

	if (strcmp(name, SOURCE_REQUEST) && strcmp(name, CODE_REQUEST))
		error = "the profile has its symbols already; this server has no others";
	else if (!json)
		error = "the request is not JSON";
	else if (!strcmp(name, SOURCE_REQUEST))
		error = find_source(sources, file, &text);
	out = open_memstream(&data, size);
	if (!out)
		return -ENOMEM;
	json_writer__init(&w, out);
	json_begin_object(&w);
	if (!error && !text)
		error = answer_code(sources, json, &w);
	if (error)
		json_key_string(&w, "error", error);
	else if (text)
		write_source(&w, file->valuestring, text);
	json_end_object(&w);
	err = json_writer__finish(&w);
	if (fclose(out) && !err)
		err = -ENOMEM;
	if (err)
		free(data);
	else
		*answer = data;
	return err ? -ENOMEM : 0;
}
