/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a run ends early.
 *
 * The first SIGINT, SIGTERM or SIGHUP ends a recording in order. The second one, or the first while
 * the files are written, removes the temporary files and ends the process at once with status 1,
 * wherever it is: waiting for the reader of a pipe, too.
 */
#ifndef CLI_GIVE_UP_H
#define CLI_GIVE_UP_H

#include <stdbool.h>

/* Watch for the three signals: a descriptor that is readable when the first has come, or errno. */
int give_up__watch(void);

/*
 * Has it come? From a terminal, where Ctrl-C goes to every process of the foreground, or from
 * a sender that meant this process alone. Makes the descriptor unreadable again.
 */
bool give_up__signalled(bool *from_terminal);

/* The next one is reported by give_up__signalled() again, and ends the process only after that. */
void give_up__expect_one_more(void);

/* From now on any of the three ends the process at once. */
void give_up__arm(void);

/* A reader that went away is a write error, reported as such, and no reason to end. */
void give_up__ignore_sigpipe(void);

/* In a child: the signal mask and what the signals do, as our caller left them to us. */
void give_up__restore_signals(void);

/* A temporary file to remove in that case. Beyond a fixed number they are forgotten. */
void give_up__remember_file(const char *path);
void give_up__forget_files(void);

/* All files are written: giving up from now on loses none. Forgets them, and the signals so far. */
void give_up__nothing_to_lose(void);

#endif
