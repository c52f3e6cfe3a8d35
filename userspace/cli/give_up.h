/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a run ends early.
 *
 * While sampling, SIGINT, SIGTERM and SIGHUP are read from a descriptor: the first one ends the
 * recording in order. After that the handler of this module is in force: another one removes the
 * temporary files and ends the process at once with status 1, wherever it is.
 */
#ifndef CLI_GIVE_UP_H
#define CLI_GIVE_UP_H

/* Block the three signals and return a descriptor that tells them (struct signalfd_siginfo), or errno. */
int give_up__signal_fd(void);

/* A reader that went away is a write error, told as such, and no reason to die. */
void give_up__ignore_sigpipe(void);

/* In a child: the signal mask and what SIGPIPE does, as our caller left them to us. */
void give_up__restore_signals(void);

/* From now on any of the three ends the process at once. */
void give_up__arm(void);

/* A temporary file to remove in that case. Beyond a fixed number they are forgotten. */
void give_up__remember_file(const char *path);
void give_up__forget_files(void);

#endif
