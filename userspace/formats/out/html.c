/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The .html format: one page that needs nothing else, neither a network nor a server.
 *
 * The page is web/, bundled by tools/bundle-page.sh when sysprof is built. The profile in it is
 * base64 of a gzip stream, so no byte of a name is parsed as HTML or as a script. The page's
 * Content-Security-Policy allows no request and only the bundled scripts and styles (by hash).
 */

#include <errno.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "formats/out/html_page.h" /* page_head[], page_tail[] */
#include "formats/out/describe.h"
#include "formats/out/html_data.h"

static int close_stream(FILE **stream)
{
	FILE *file = steal_ptr(*stream);

	errno = 0;
	return fclose(file) ? -(errno ? errno : EIO) : 0;
}

static int write_packed(const struct export_request *request, FILE *out)
{
	_cleanup_fclose_ FILE *text = base64_writer(out);
	_cleanup_fclose_ FILE *packed = text ? gzip_writer(text, NULL) : NULL;
	int err, close_err;

	if (!packed)
		return -ENOMEM;
	err = html_write_data(request->profile, request->difference, packed);
	close_err = close_stream(&packed);
	err = err ? err : close_err;
	close_err = close_stream(&text);
	return err ? err : close_err;
}

static int write_html(const struct export_request *request)
{
	FILE *out = request->out;
	int err;

	report_jits_left_out(request);
	if (fwrite(page_head, 1, sizeof(page_head), out) != sizeof(page_head))
		return -EIO;
	err = write_packed(request, out);
	if (err)
		return err;
	return fwrite(page_tail, 1, sizeof(page_tail), out) == sizeof(page_tail) ? 0 : -EIO;
}

const struct exporter html_exporter = {
	.name = "html",
	.suffixes = (const char *const[]){".html", NULL},
	.description = "one page: flame graph, timeline, search; needs no network",
	.how_to_open = "open %s in a browser",
	.write = write_html,
};
