/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_DEFAULT 80 /* of a terminal that does not say */
#define WIDTH_MIN     40

/* The program's own locale stays "C": numbers look the same everywhere. */
static bool locale_is_utf8(void)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	bool utf8;

	if (!locale)
		return false;
	utf8 = !strcmp(nl_langinfo_l(CODESET, locale), "UTF-8");
	freelocale(locale);
	return utf8;
}

static unsigned int width_of(int fd)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) || !size.ws_col)
		return WIDTH_DEFAULT;
	return size.ws_col < WIDTH_MIN ? WIDTH_MIN : size.ws_col;
}

void terminal__init(struct terminal *terminal)
{
	const char *type = getenv("TERM"), *no_color = getenv("NO_COLOR");
	bool is_terminal = isatty(STDOUT_FILENO);

	*terminal = (struct terminal){
		.color = is_terminal && !(no_color && *no_color) && type && strcmp(type, "dumb"),
		.utf8 = locale_is_utf8(),
		.width = is_terminal ? width_of(STDOUT_FILENO) : 0,
	};
}
