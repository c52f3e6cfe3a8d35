/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The .html format: one page that needs nothing else, neither a network nor a server.
 *
 * The page is web/, bundled by tools/bundle-page.sh when sysprof is built. The profile in it, and the
 * code, are base64 of gzip streams, so no byte of a name is parsed as HTML or as a script. The page's
 * Content-Security-Policy allows no request and only the bundled scripts and styles (by hash).
 */

#include <errno.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "formats/out/html_page.h" /* page_head[], page_middle[], page_tail[] */
#include "formats/out/describe.h"
#include "formats/out/html_code.h"
#include "formats/out/html_data.h"

static int close_stream(FILE **stream)
{
	FILE *file = steal_ptr(*stream);

	errno = 0;
	return fclose(file) ? -(errno ? errno : EIO) : 0;
}

/* One of the two: the profile, or what the tab Code shows. */
static int write_part(const struct export_request *request, const struct page_code *code,
		      bool is_code, FILE *out)
{
	_cleanup_fclose_ FILE *text = base64_writer(out);
	_cleanup_fclose_ FILE *packed = text ? gzip_writer(text, NULL) : NULL;
	int err, close_err;

	if (!packed)
		return -ENOMEM;
	err = is_code ? page_code__write(code, packed)
		      : html_write_data(request->profile, request->difference, code, packed);
	close_err = close_stream(&packed);
	err = err ? err : close_err;
	close_err = close_stream(&text);
	return err ? err : close_err;
}

static int write_bytes(const unsigned char *bytes, size_t size, FILE *out)
{
	return fwrite(bytes, 1, size, out) == size ? 0 : -EIO;
}

static int write_page(const struct export_request *request, const struct page_code *code)
{
	FILE *out = request->out;

	return write_bytes(page_head, sizeof(page_head), out)
		       ?: write_part(request, code, false, out)
		       ?: write_bytes(page_middle, sizeof(page_middle), out)
		       ?: write_part(request, code, true, out)
		       ?: write_bytes(page_tail, sizeof(page_tail), out);
}

static int write_html(const struct export_request *request)
{
	struct page_code *code = page_code__new(request->profile);
	int err;

	if (!code)
		return -ENOMEM;
	report_jits_left_out(request);
	err = write_page(request, code);
	page_code__free(code);
	return err;
}

const struct exporter html_exporter = {
	.name = "html",
	.suffixes = (const char *const[]){".html", NULL},
	.description = "one page: flame graph, timeline, search; needs no network",
	.how_to_open = "open %s in a browser",
	.has_code = true,
	.write = write_html,
};
