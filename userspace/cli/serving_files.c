/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/serving_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/order.h"
#include "base/suffix.h"
#include "base/utf8.h"
#include "cli/outputs.h"
#include "formats/out/exporters.h"
#include "formats/out/firefox_code.h"
#include "serve/server.h"
#include "serve/server_request.h"
#include "serve/source_api.h"

/* The files that come first; behind them those of the exporters, in the order of exporters(). */
enum { FILE_PAGE, FILE_PROFILE, FILE_FORMATS, FILE_FIRST_DOWNLOAD };

#define NAME_SIZE 32 /* "profile.trace.json.gz" */
#define GZIP_END  ".gz"

/* ---- which files there are ------------------------------------------------------------------- */

static const char *type_of(const char *name)
{
	static const struct {
		const char *suffix, *type;
	} types[] = {
		{GZIP_END, "application/gzip"},	       {".json", "application/json"},
		{".cpuprofile", "application/json"},   {".html", "text/html; charset=utf-8"},
		{".txt", "text/plain; charset=utf-8"}, {".folded", "text/plain; charset=utf-8"},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (has_suffix(name, types[i].suffix))
			return types[i].type;
	return "application/octet-stream";
}

/* A compressed one, if there is one: all of their readers take it. */
static const char *download_suffix(const struct exporter *exporter)
{
	for (const char *const *suffix = exporter->suffixes; *suffix; suffix++)
		if (has_suffix(*suffix, GZIP_END))
			return *suffix;
	return exporter->suffixes[0];
}

/* ---- the list of formats --------------------------------------------------------------------- */

static const char page_head[] =
	"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\"><link rel=\"icon\" href=\"data:,\">\n"
	"<title>sysprof</title><style>\n"
	":root { color-scheme: light dark }\n"
	"body { font: 16px/1.5 system-ui, sans-serif; max-width: 45em; margin: 3em auto; padding: 0 1em }\n"
	"td { padding: .3em 1.5em .3em 0; vertical-align: top } code { font-size: 95% }\n"
	"</style></head><body>\n";

/* Whatever it contains, it is text in the page. */
static int print_escaped(FILE *out, const char *text)
{
	size_t size = 4 * strlen(text) + 1;
	_cleanup_free_ char *plain = malloc(size);

	if (!plain)
		return -ENOMEM;
	utf8_sanitize(plain, size, text);
	for (const char *c = plain; *c; c++) {
		if (strchr("<>&\"'", *c))
			fprintf(out, "&#%d;", *c);
		else
			fputc(*c, out);
	}
	return 0;
}

static void print_size(const struct profile *p, FILE *out)
{
	if (p->uncounted)
		fputs("weights, whose number of samples is unknown", out);
	else
		fprintf(out, "%" PRIu64 " samples", p->sample_count);
	if (!p->untimed && p->end > p->start)
		fprintf(out, " in %.3f s", (double)(p->end - p->start) / 1e9);
}

static int write_formats(const struct serving_files *f, FILE *out)
{
	int err;

	fputs(page_head, out);
	fputs("<h1>", out);
	err = print_escaped(out, f->what);
	fputs("</h1>\n<p>", out);
	print_size(f->profile, out);
	fputs("</p>\n<p><a id=\"profiler\" rel=\"noreferrer\" href=\"", out);
	if (!err)
		err = print_escaped(out, f->profiler_url);
	fputs("\">Open in the Firefox Profiler</a>: it loads the profile from here, and uploads "
	      "nothing.</p>\n<table>\n",
	      out);
	for (size_t i = FILE_FIRST_DOWNLOAD; i < f->file_count && !err; i++) {
		const char *name = f->routes[i].path;

		fprintf(out, "<tr><td><a href=\"%s\" download><code>%s</code></a><td>", name, name);
		err = print_escaped(out, exporters()[i - FILE_FIRST_DOWNLOAD]->description);
		fputs("\n", out);
	}
	fputs("</table>\n<p>This page is served by <code>sysprof open</code> and ends with it.</p>\n"
	      "</body></html>\n",
	      out);
	return err;
}

/* ---- making them ----------------------------------------------------------------------------- */

static int write_export(const struct serving_files *f, const struct exporter *exporter, bool gzip,
			FILE *out)
{
	const struct export_request request = {.profile = f->profile};
	uint64_t size;

	return outputs__write_format(exporter, request, gzip, out, &size);
}

static int write_file(const struct serving_files *f, size_t index, FILE *out)
{
	const struct exporter *page = exporter_by_name("html"), *exporter;

	switch (index) {
	case FILE_PAGE:
		return page ? write_export(f, page, false, out) : write_formats(f, out);
	case FILE_PROFILE:
		return write_export(f, exporter_by_name("firefox"), true, out);
	case FILE_FORMATS:
		return write_formats(f, out);
	default:
		exporter = exporters()[index - FILE_FIRST_DOWNLOAD];
		return write_export(f, exporter,
				    outputs__are_compressed(exporter, f->routes[index].path), out);
	}
}

static int make_file(const struct serving_files *f, size_t index, struct server_file *made)
{
	_cleanup_close_ int file = memfd_create("profile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat st;
	FILE *out;
	int stream, err;

	if (file < 0)
		return -errno;
	stream = fcntl(file, F_DUPFD_CLOEXEC, 0);
	out = stream < 0 ? NULL : fdopen(stream, "w");
	if (!out) {
		err = -errno;
		if (stream >= 0)
			close(stream);
		return err;
	}
	errno = 0;
	err = write_file(f, index, out);
	if (!err && (fflush(out) || ferror(out)))
		err = errno ? -errno : -EIO;
	if (fclose(out) && !err)
		err = -errno;
	if (!err &&
	    (fcntl(file, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) ||
	     fstat(file, &st)))
		err = -errno;
	if (err)
		return err;
	made->size = st.st_size;
	made->fd = steal_fd(file);
	return 0;
}

/* ---- the routes ------------------------------------------------------------------------------ */

static bool answer_file(void *context, const struct route *route, struct server_request *request,
			struct server_reply *reply)
{
	struct serving_files *f = context;
	size_t index = (size_t)(route - f->routes);
	struct server_file *made = &f->made[index];
	int err = made->fd < 0 ? make_file(f, index, made) : 0;

	(void)request;
	if (err)
		log_print(LOG_ERROR, "cannot make %s: %s", *route->path ? route->path : "the page",
			  strerror(-err));
	*reply = (struct server_reply){.status = err ? 500 : 200, .file = err ? NULL : made};
	return true;
}

static const char *find_text(void *context, const char *path)
{
	const struct serving_files *f = context;
	const struct profile *p = f->profile;

	for (size_t i = 0; i < p->source_count; i++)
		if (!strcmp(profile__string(p, p->sources[i].path), path))
			return p->sources[i].text;
	return NULL;
}

static const char *write_code(void *context, const struct code_request *request,
			      struct json_writer *w)
{
	const struct serving_files *f = context;

	return firefox_code(f->profile,
			    &(struct firefox_code_request){.name = request->name,
							   .debug_id = request->debug_id,
							   .address = request->address,
							   .size = request->size,
							   .whole = request->whole},
			    w);
}

static bool answer_source_api(void *context, const struct route *route,
			      struct server_request *request, struct server_reply *reply)
{
	const struct serving_files *f = context;
	const struct source_list sources = {.paths = (const char *const *)f->sources,
					    .count = f->source_count,
					    .context = context,
					    .text = find_text,
					    .code = write_code};
	char *answer;
	size_t size;
	const char *body = server_request__body(request, &size);
	int err = source_api__answer(&sources, server_request__path(request), body, size, &answer,
				     &size);

	(void)route;
	*reply = err ? (struct server_reply){.status = 500}
		     : (struct server_reply){.status = 200, .body = answer, .size = size};
	return true;
}

static int list_files(struct serving_files *f)
{
	size_t downloads = 0;

	while (exporters()[downloads])
		downloads++;
	f->routes = calloc(FILE_FIRST_DOWNLOAD + downloads + 1, sizeof(*f->routes));
	f->made = calloc(FILE_FIRST_DOWNLOAD + downloads, sizeof(*f->made));
	f->names = calloc(downloads, NAME_SIZE);
	if (!f->routes || !f->made || !f->names)
		return -ENOMEM;
	f->routes[FILE_PAGE] = (struct route){.path = "", .type = type_of(".html"), .page = true};
	f->routes[FILE_PROFILE] =
		(struct route){.path = PROFILE_NAME, .type = type_of(PROFILE_NAME), .gzip = true};
	f->routes[FILE_FORMATS] =
		(struct route){.path = FORMATS_NAME, .type = type_of(".html"), .page = true};
	f->file_count = FILE_FIRST_DOWNLOAD;
	for (size_t i = 0; i < downloads; i++) {
		char *name = f->names + i * NAME_SIZE;

		snprintf(name, NAME_SIZE, "profile%s", download_suffix(exporters()[i]));
		f->routes[f->file_count++] =
			(struct route){.path = name, .type = type_of(name), .download = true};
	}
	for (size_t i = 0; i < f->file_count; i++) {
		f->routes[i].answer = answer_file;
		f->made[i].fd = -1;
	}
	f->routes[f->file_count] = (struct route){.has_path = source_api__has_request,
						  .post = true,
						  .type = "application/json",
						  .answer = answer_source_api};
	f->route_count = f->file_count + 1;
	return 0;
}

DEFINE_ORDER(compare_paths, char *, strcmp(*x, *y));

/* Every absolute path of a definition or an executing line, each once. */
static int list_sources(struct serving_files *f)
{
	const struct profile *p = f->profile;
	_cleanup_free_ bool *seen = calloc(p->string_count + 1, sizeof(*seen));
	size_t used = 0;

	f->sources = calloc(p->string_count + 1, sizeof(*f->sources));
	if (!seen || !f->sources)
		return -ENOMEM;
	for (size_t i = 0; i < p->line_count; i++)
		seen[p->lines[i].file.v] = true;
	for (size_t i = 1; i < p->function_count; i++)
		seen[p->functions[i].definition_file.v] = true;
	for (size_t i = 0; i < p->string_count; i++)
		if (seen[i] && *p->strings[i] == '/')
			f->sources[used++] = (char *)p->strings[i];
	if (used)
		qsort(f->sources, used, sizeof(*f->sources), compare_paths);
	f->source_count = used;
	return 0;
}

int serving_files__init(struct serving_files *f, const struct profile *profile, const char *what)
{
	int err;

	*f = (struct serving_files){.profile = profile, .what = what};
	err = list_files(f) ?: list_sources(f);
	if (err)
		serving_files__fini(f);
	return err;
}

void serving_files__fini(struct serving_files *f)
{
	for (size_t i = 0; f->made && i < f->file_count; i++)
		cleanup_close(&f->made[i].fd);
	free(f->made);
	free(f->routes);
	free(f->names);
	free(f->sources);
	*f = (struct serving_files){};
}
