/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/habits.h"

#include <stddef.h>
#include <string.h>

struct habit {
	const char *command; /* NULL: the words are commands */
	const char *words;   /* with a space before and after each */
	const char *sentence;
};

static const struct habit habits[] = {
	/* commands of perf and samply */
	{NULL, " script ", "for text write 'sysprof convert IN -o folded:-'"},
	{NULL, " annotate ", "for lines write 'sysprof report IN --by line'"},
	{NULL, " list ", "'sysprof check --events' lists the events of this machine"},
	{NULL, " top ", "write 'sysprof record -a -d 10', then 'sysprof report IN'"},
	{NULL, " stat ", "it counts nothing by itself: 'sysprof record' samples"},
	{NULL, " load view ", "write 'sysprof open IN'"},
	{NULL, " import ", "write 'sysprof open IN' or 'sysprof convert IN -o OUT'"},
	{NULL, " setup ", "nothing has to be set up: 'sysprof check' lists what is missing"},
	{NULL, " sched lock ", "write 'sysprof record --wall', then 'sysprof report --wall IN'"},
	{NULL, " trace mem c2c kmem probe ", "not here: 'sysprof record' samples"},
	/* perf record */
	{"record", " -g ", "stacks are the default, so leave -g out"},
	{"record", " -i ", "children are included; --no-inherit leaves them out"},
	{"record", " -u --uid ", "write --user NAME"},
	{"record", " -G ", "write --cgroup PATH"},
	{"record", " -r ", "write -F HZ for a rate; a priority is not needed"},
	{"record", " --realtime ", "not needed: the collector is woken by a fill mark"},
	{"record", " -m --mmap-pages ", "write --ring-mem MIB, of all CPUs together"},
	{"record",
	 " -T --timestamp -P --period -R --raw-samples -s --stat --sample-cpu -W --weight ",
	 "each sample has its time, CPU and CPU time, so leave it out"},
	{"record", " -N --no-buildid-cache -B --no-buildid --buildid-all --buildid-mmap ",
	 "build-ids come with the mappings and nothing is copied, so leave it out"},
	{"record", " -D --delay ", "write 'sleep SECONDS' before it, or record with -p later"},
	{"record", " -b --branch-any -j --branch-filter ", "branch stacks are not recorded"},
	{"record", " --all-user ", "write --no-kernel"},
	{"record", " --all-kernel ", "write -g none for kernel stacks alone"},
	{"record", " --switch-events ", "write --wall: waits without a hook on context switches"},
	{"record", " --off-cpu ", "write --wall"},
	{"record", " -k --clockid ", "write --clock auto, tsc or monotonic"},
	{"record", " -A --append ", "write a recording for each and compare them with diff"},
	{"record", " -z --compression-level ", "recordings are small; leave it out"},
	{"record", " --aio --no-buffering --tail-synthesize --overwrite ", "leave it out"},
	{"record", " --exclude-perf ", "write --exclude-self"},
	{"record", " --kernel-callchains --user-callchains ",
	 "both stacks are recorded; --no-kernel leaves out that of the kernel"},
	{"record", " --user-regs --intr-regs ",
	 "registers are not needed: stacks are unwound while recording"},
	{"record", " --max-stack ", "write --max-depth FRAMES"},
	{"record", " --per-thread ", "threads are recorded apart, so leave it out"},
	{"record", " --max-size --switch-output ", "-d SECONDS ends a recording"},
	/* samply record */
	{"record", " --rate ", "write -F HZ"},
	{"record", " --save-only --no-open -n ",
	 "files are written and nothing is opened unless there is --open, so leave it out"},
	{"record", " --profile-name --main-thread-only --reuse-threads --fold-recursive-prefix ",
	 "not here; 'sysprof convert IN -o OUT --thread TID' writes one thread"},
	{"record", " --iteration-count --iterations ",
	 "'sysprof compare' records a command repeatedly"},
	{"record", " --cswitch-markers ", "write --wall"},
	{"record", " --per-cpu-threads ", "write 'sysprof report IN --cpu N'"},
	{"record", " --include-args ", "write --arguments"},
	{"record", " --unstable-presymbolicate --presymbolicate --symbol-dir ",
	 "names are added at the end of a recording, so leave it out"},
	{"record", " --address --port -P ", "write --open, then 'sysprof open IN --port N'"},
	/* perf report */
	{"report", " -i --input ", "write the file alone: 'sysprof report IN'"},
	{"report", " --stdio --tui --gtk --header -g --call-graph -G --inverted ",
	 "the report is text; --tree is by callers, --tree --callers by callees"},
	{"report", " --no-children --children ", "both columns are there: self and total"},
	{"report", " -s --sort ", "write --by function, thread, process, dso, line, service, …"},
	{"report", " -F --fields -n --show-nr-samples ", "all columns are there, so leave it out"},
	{"report", " -t --field-separator ", "write --json"},
	{"report", " --percent-limit ", "write --min SHARE"},
	{"report", " --no-inline ", "inlined functions are rows of their own"},
	{"report", " -S --symbols --symbol-filter ", "write --focus FUNCTION"},
	{"report", " --comms --comm ", "--by process has a row for each program"},
	{"report", " --dsos --dso ", "--by dso has a row for each file"},
	{"report", " --tid ", "write 'sysprof convert IN -o OUT --thread TID'"},
	{"report", " -M --disassembler-style ", "no instructions are shown; --by line shows lines"},
	{"report", " --header-only ", "the lines with # are the header; --top 1 leaves one row"},
	{"report", " --no-demangle ", "names are demangled"},
};

static int has_word(const char *words, const char *word)
{
	size_t length = strcspn(word, "= ");

	for (const char *at = words; (at = strchr(at, ' ')) && at[1]; at++)
		if (!strncmp(at + 1, word, length) && at[1 + length] == ' ')
			return length > 0;
	return 0;
}

const char *habit__find(const char *command, const char *word)
{
	for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++)
		if (!command == !habits[i].command &&
		    (!command || !strcmp(command, habits[i].command)) &&
		    has_word(habits[i].words, word))
			return habits[i].sentence;
	return NULL;
}
