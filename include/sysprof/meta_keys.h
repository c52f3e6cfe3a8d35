/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of EVENT_META and of the profile's meta table. Part of the recording's format: a key
 * keeps its name and its meaning.
 */
#ifndef SYSPROF_META_KEYS_H
#define SYSPROF_META_KEYS_H

/* the machine */
#define META_PRODUCT	     "product" /* "sysprof 0.1.0" */
#define META_HOSTNAME	     "hostname"
#define META_KERNEL_RELEASE  "kernel"	       /* uname -r */
#define META_KERNEL_BUILD_ID "kernel_build_id" /* hexadecimal digits */
#define META_ARCHITECTURE    "architecture"
#define META_CPU	     "cpu"  /* its model name */
#define META_CPU_COUNT	     "cpus" /* online */

/* the recording */
#define META_COMMAND	     "command" /* the command line of the recorder */
#define META_TARGET	     "target"  /* "-p 12" */
#define META_EVENT	     "event"
#define META_EVENT_UNIT	     "event_unit"   /* of samples' weights; absent: of a clock */
#define META_EVENT_PERIOD    "event_period" /* requested; absent: chosen by the kernel for META_HZ */
#define META_CLOCK	     "clock"	    /* "tsc" or "monotonic" */
#define META_CLOCK_REASON    "clock_reason"
#define META_CPU_TIME_METHOD "cpu_time_method"
#define META_HZ		     "hz"
#define META_PERIOD	     "period_ns"
#define META_SAMPLING_START  "sampling_start" /* CLOCK_MONOTONIC ns */
#define META_CPU_CHANGES     "cpu_changes"    /* "CPU 1 online at 2.310 s; …", of the recording */
#define META_INTERRUPTS                                                                            \
	"interrupts" /* "root": the work of interrupts has a root frame of its own */
#define META_LINES_MISSING                                                                         \
	"lines_missing" /* which files have lines that could not be read, and why */
#define META_FILES_NOT_READ                                                                        \
	"files_not_read" /* of older recorders: what is EVENT_OUTSIDE now, in a sentence */
#define META_NOT_READ                                                                              \
	"not_read" /* of another tool's file: what is not in the profile, and how much */

#endif
