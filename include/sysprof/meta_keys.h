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
#define META_CPU	     "cpu"     /* its model name */
#define META_CPU_COUNT	     "cpus"    /* online */
#define META_BOOT_ID	     "boot_id" /* of CLOCK_MONOTONIC: /proc/sys/kernel/random/boot_id */

/* the recording */
#define META_COMMAND "command" /* the command line of the recorder */
#define META_COMMAND_SHORT                                                                         \
	"command_short" /* the same without arguments: "sysprof record … -- ./orders …" */
#define ARGUMENTS_LEFT_OUT "…"
#define META_TARGET	   "target" /* "-p 12", "-- ./orders --fast" */
#define META_EVENT	   "event"
#define META_EVENT_UNIT                                                                            \
	"event_unit" /* of samples' weights; absent: of a clock; "nanoseconds": their own time */
#define META_EVENT_OFF_CPU   "offcpu-time"  /* the event of perf record --off-cpu, in ns */
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
#define META_CODE_LEFT_OUT                                                                         \
	"code_left_out" /* "3 of 120 functions, 0 of 9 sources (0.2 MB)": that had no room */
#define META_SOURCES_MISSING                                                                       \
	"sources_missing" /* "12 not there, 1 larger than 2 MiB": sources of machine code */
#define META_JIT_CODE_LEFT_OUT                                                                     \
	"jit_code_left_out" /* "3 of 120 functions": whose machine code in jitdumps had no room */
#define META_FILES_NOT_READ                                                                        \
	"files_not_read" /* of older recorders: what is EVENT_OUTSIDE now, in a sentence */
#define META_NOT_READ                                                                              \
	"not_read" /* of another tool's file: what is not in the profile, and how much */
#define META_UNTIMED                                                                               \
	"untimed" /* of another tool's file: that it has no times, and what holds instead */
#define META_PART_OF "part_of" /* of our file in another format: what its filter kept and dropped */
#define META_INPUTS                                                                                \
	"inputs" /* of several files that were read as one: how many, and how their times are related */
#define META_CPU_TIME                                                                              \
	"cpu_time" /* of another tool's file: what stands for the CPU time that it does not have */
/*
 * Of a file that is no recording. What was lost is read of perf.data alone, why a stack ends of those that
 * were copied and walked here.
 */
#define META_FORMAT		"format" /* that of an importer, … */
#define META_FORMAT_PPROF	"pprof"
#define META_FORMAT_PERF	"perf.data"
#define META_FORMAT_PERF_COPIES "perf.data with copied stacks"

#endif
