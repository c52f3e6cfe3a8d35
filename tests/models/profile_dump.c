/* SPDX-License-Identifier: BSD-2-Clause */
/* The profile as text: one line an element, strings in quotes with their odd bytes escaped. */
#include "base/utf8.h"
#include "formats/out/describe.h"
#include "models/profile_dump.h"
#include "tenants/outside_books.h"

#include <inttypes.h>

static const char *const dso_kinds[] = {"none", "file",	   "vdso",   "kernel",
					"jit",	"unknown", "runtime"};
static const char *const categories[] = {"other", "user", "kernel", "library", "jit", "idle"};
static const char *const file_states[] = {
#define X(id, text) #id,
	FILE_STATES(X)
#undef X
};
static const char *const symbol_states[] = {
#define X(id, text) #id,
	SYMBOL_STATES(X)
#undef X
};
static const char *const begins[] = {"", " forked", " execed"};

static void dump_figures(const char *group, const struct figures *f, unsigned int first,
			 unsigned int end, FILE *out)
{
	for (unsigned int id = first; id < end; id++)
		if (f->value[id])
			fprintf(out, "%s %s=%" PRIu64 "\n", group, figure_table[id].key,
				f->value[id]);
}

/* "inlined-left-out 7": its key as a word of its own */
static void dump_left_out(const struct figures *f, FILE *out)
{
	for (unsigned int id = FIGURE_LEFT_OUT; id < FIGURE_LEFT_OUT_END; id++) {
		if (!f->value[id])
			continue;
		for (const char *c = figure_table[id].key; *c; c++)
			fputc(*c == '_' ? '-' : *c, out);
		fprintf(out, " %" PRIu64 "\n", f->value[id]);
	}
}

static void put_string(const struct profile *p, const char *key, struct string_id id, FILE *out)
{
	char buffer[1024];

	fprintf(out, " %s=\"%s\"", key,
		utf8_sanitize(buffer, sizeof(buffer), profile__string(p, id)));
}

static void put_address(const char *key, uint64_t address, FILE *out)
{
	if (address == PROFILE_UNKNOWN_ADDRESS)
		fprintf(out, " %s=?", key);
	else
		fprintf(out, " %s=0x%" PRIx64, key, address);
}

static void dump_session(const struct profile *p, FILE *out)
{
	struct figures f;

	figures__init(&f, p);
	fprintf(out,
		"session start=%" PRIu64 " end=%" PRIu64 " realtime=%" PRIu64 " period=%" PRIu64
		" samples=%" PRIu64 "%s%s\n",
		p->start, p->end, p->start_realtime, p->period, p->sample_count,
		p->cut_short ? " cut-short" : "", p->finished_symbols ? " finished-symbols" : "");
	fprintf(out, "clock tsc_khz=%" PRIu64 " error=%" PRIu64 " epochs=%" PRIu32 "\n", p->tsc_khz,
		p->clock_error_ns, p->clock_epochs);
	for (size_t i = 0; i < p->meta_count; i++) {
		fprintf(out, "meta");
		put_string(p, "key", p->meta[i].key, out);
		put_string(p, "value", p->meta[i].value, out);
		fputc('\n', out);
	}
	dump_left_out(&f, out);
	dump_figures("ends", &f, FIGURE_ENDS, FIGURE_ENDS_END, out);
	dump_figures("frames", &f, FIGURE_FRAMES, FIGURE_FRAMES_END, out);
	dump_figures("lost", &f, FIGURE_LOST, FIGURE_LOST_END, out);
	dump_figures("visits", &f, FIGURE_VISITED, FIGURE_VISITS_END, out);
	for (size_t i = 0; i < p->lost_range_count; i++)
		fprintf(out, "lost-range %" PRIu64 "..%" PRIu64 "\n", p->lost_ranges[i].since,
			p->lost_ranges[i].until);
	for (size_t i = 0; i < p->outside_count; i++) {
		const struct profile_outside *row = &p->outside[i];

		fprintf(out,
			"outside user=%" PRIu32 " thing=%s reason=%s count=%" PRIu64
			" since=%" PRIu64 "\n",
			row->user, outside_things[row->thing].name,
			outside_reasons[row->reason].name, row->count, row->since);
	}
	for (size_t i = 0; i < p->marker_count; i++) {
		const struct profile_marker *m = &p->markers[i];

		fprintf(out, "marker thread=%" PRIu32, m->thread.v);
		put_string(p, "name", m->name, out);
		fprintf(out, " %" PRIu64 "..%" PRIu64 "\n", m->start, m->end);
	}
	for (size_t i = 0; i < p->epoch_count; i++)
		fprintf(out, "epoch %" PRIu64 "\n", p->epochs[i]);
	if (p->unmapped_frames)
		fprintf(out, "unmapped-frames %" PRIu64 "\n", p->unmapped_frames);
}

static void dump_books(const struct profile *p, FILE *out)
{
	for (size_t i = 0; i < p->books_count; i++) {
		const struct profile_cpu_books *b = &p->books[i];

		fprintf(out,
			"books cpu=%" PRIu32 " period=%" PRIu64 " enabled=%" PRIu64
			" running=%" PRIu64 " due=%" PRIu64 " received=%" PRIu64,
			b->cpu, b->period, b->time_enabled, b->time_running, b->due, b->received);
		for (int line = 0; line < BOOK_COUNT; line++)
			fprintf(out, " %s=%" PRIu64, figure_table[FIGURE_BOOKS + line].key,
				b->count[line]);
		fputc('\n', out);
	}
}

static void dump_dsos(const struct profile *p, FILE *out)
{
	for (size_t i = 1; i < p->dso_count; i++) {
		const struct profile_dso *d = &p->dsos[i];

		fprintf(out, "dso %zu %s", i, dso_kinds[d->kind]);
		put_string(p, "path", d->path, out);
		put_string(p, "name", d->name, out);
		fprintf(out, " file=%s symbols=%s", file_states[d->file_state],
			symbol_states[d->symbol_state]);
		if (d->is_library)
			fprintf(out, " library");
		if (d->deleted)
			fprintf(out, " deleted");
		if (d->build_id_size) {
			fprintf(out, " build-id=");
			for (int k = 0; k < d->build_id_size; k++)
				fprintf(out, "%02x", d->build_id[k]);
		}
		if (d->major || d->minor || d->inode)
			fprintf(out, " inode=%" PRIu32 ":%" PRIu32 ":%" PRIu64 ".%" PRIu64,
				d->major, d->minor, d->inode, d->inode_generation);
		if (d->unshared)
			fprintf(out, " unshared");
		fputc('\n', out);
	}
}

static void dump_code(const struct profile *p, FILE *out)
{
	for (size_t i = 1; i < p->function_count; i++) {
		const struct profile_function *f = &p->functions[i];

		fprintf(out, "function %zu dso=%" PRIu32, i, f->dso.v);
		put_string(p, "name", f->name, out);
		put_address("address", f->address, out);
		fprintf(out, " size=%" PRIu64, f->size);
		put_string(p, "file", f->definition_file, out);
		fprintf(out, " at=%" PRIu32 ":%" PRIu32 "\n", f->definition_line,
			f->definition_column);
	}
	for (size_t i = 1; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];

		fprintf(out, "location %zu dso=%" PRIu32 " %s", i, l->dso.v,
			categories[l->category]);
		put_address("address", l->address, out);
		put_address("elf", l->elf_address, out);
		fprintf(out, " process=%" PRIu32, l->process.v);
		if (l->version)
			fprintf(out, " version=%" PRIu32, l->version);
		if (l->code_version)
			fprintf(out, " code=%" PRIu32, l->code_version);
		if (l->tier)
			fprintf(out, " tier=\"%s\"", code_tier_text(l->tier));
		fputs(l->ambiguous ? " ambiguous" : "", out);
		if (l->sure_lines)
			fprintf(out, " sure=%" PRIu32, l->sure_lines);
		fputc('\n', out);
		for (uint32_t k = 0; k < l->line_count; k++) {
			const struct profile_line *line = &p->lines[l->first_line + k];

			fprintf(out, "  line function=%" PRIu32, line->function.v);
			put_string(p, "file", line->file, out);
			fprintf(out, " at=%" PRIu32 ":%" PRIu32 "\n", line->line, line->column);
		}
	}
	for (size_t i = 1; i < p->stack_count; i++)
		fprintf(out,
			"stack %zu parent=%" PRIu32 " location=%" PRIu32 " depth=%" PRIu32 "\n", i,
			p->stacks[i].parent.v, p->stacks[i].location.v, p->stacks[i].depth);
}

static void dump_jit_file(const struct profile *p, const char *what,
			  const struct profile_jit_file *file, FILE *out)
{
	fprintf(out, " %s=%s entries=%" PRIu64 " bad=%" PRIu64 " torn=%" PRIu64, what,
		jit_file_states[file->state].name, file->entries, file->bad_lines, file->torn);
	put_string(p, "path", file->path, out);
}

static void dump_gils(const struct profile *p, FILE *out)
{
	for (size_t i = 0; i < p->gil_count; i++)
		fprintf(out,
			"gil process=%" PRIu32 " thread=%" PRIu32 " samples=%" PRIu64
			" held=%" PRIu64 " waiting=%" PRIu64 " held_time=%" PRIu64 "\n",
			p->gils[i].process.v, p->gils[i].thread.v, p->gils[i].samples,
			p->gils[i].held, p->gils[i].waiting, p->gils[i].held_time);
}

static void dump_jits(const struct profile *p, FILE *out)
{
	for (size_t i = 0; i < p->jit_count; i++) {
		const struct profile_jit *j = &p->jits[i];

		fprintf(out,
			"jit process=%" PRIu32 " samples=%" PRIu64 " unnamed=%" PRIu64
			" ambiguous=%" PRIu64,
			j->process.v, j->samples, j->unnamed, j->ambiguous);
		put_string(p, "runtime", j->runtime, out);
		put_string(p, "remedy", j->remedy, out);
		dump_jit_file(p, "map", &j->map, out);
		dump_jit_file(p, "dump", &j->dump, out);
		fputc('\n', out);
	}
}

static void dump_runtimes(const struct profile *p, FILE *out)
{
	for (size_t i = 0; i < p->runtime_count; i++) {
		const struct profile_runtime *r = &p->runtimes[i];

		fprintf(out,
			"runtime frames=%" PRIu64 " ambiguous=%" PRIu64 " stale=%" PRIu64
			" unknown=%" PRIu64,
			r->frames, r->ambiguous, r->stale, r->unknown);
		put_string(p, "name", r->name, out);
		fputc('\n', out);
	}
}

static void dump_memories(const struct profile *p, FILE *out)
{
	for (size_t i = 0; i < p->memory_count; i++) {
		const struct profile_memory *m = &p->memories[i];

		fprintf(out, "memory process=%" PRIu32 " pid=%" PRIu32 "%s\n", m->process.v, m->pid,
			m->is_recorder ? " recorder" : "");
		for (size_t k = 0; k < m->count; k++)
			fprintf(out, "  reading %" PRIu64 " bytes=%" PRIu64 "\n",
				m->readings[k].time, m->readings[k].bytes);
	}
}

static void dump_thread_events(const struct profile *p, const struct profile_thread *t, FILE *out)
{
	for (size_t i = 0; i < t->cut_count; i++)
		fprintf(out, "  cut %" PRIu32 " %s\n", t->cuts[i].sample,
			figure_table[FIGURE_ENDS + t->cuts[i].end].key);
	for (size_t i = 0; i < t->rename_count; i++) {
		fprintf(out, "  renamed %" PRIu64, t->renames[i].time);
		put_string(p, "name", t->renames[i].name, out);
		fputc('\n', out);
	}
}

static void dump_samples(const struct profile *p, const struct profile_samples *samples, FILE *out)
{
	for (size_t i = 0; i < samples->count; i++) {
		fprintf(out, "  sample %" PRIu64 " stack=%" PRIu32 " cpu=%" PRIu64,
			samples->time[i], samples->stack[i].v, samples->weight[i]);
		if (samples->ticks)
			fprintf(out, " ticks=%" PRIu64, samples->ticks[i]);
		if (profile_samples__gil(samples, i))
			fprintf(out, " gil=%s", gil_state_name(profile_samples__gil(samples, i)));
		put_string(p, "comm", samples->comm[i], out);
		fputc('\n', out);
	}
}

static void put_fact(const struct profile *p, const struct profile_fact *fact, FILE *out)
{
	put_string(p, profile__string(p, fact->key), fact->value, out);
}

static void dump_lives(const struct profile *p, FILE *out)
{
	for (size_t i = 1; i < p->process_count; i++) {
		const struct profile_process *process = &p->processes[i];

		fprintf(out, "process %zu pid=%" PRIu32 " ppid=%" PRIu32, i, process->pid,
			process->ppid);
		put_string(p, "name", process->name, out);
		fprintf(out, " start=%" PRIu64 " end=%" PRIu64 "%s%s%s%s", process->start,
			process->end, begins[process->began], process->execs ? " execs" : "",
			process->is_kernel ? " kernel" : "", process->is_target ? " target" : "");
		if (process->cgroup.v)
			put_string(p, "cgroup", process->cgroup, out);
		if (process->facts_state)
			fprintf(out, " facts=%d", process->facts_state);
		for (uint32_t k = 0; k < process->fact_count; k++)
			put_fact(p, &p->facts[process->first_fact + k], out);
#define X(field, label)                                                                            \
	if (process->names.field.v)                                                                \
		put_string(p, label, process->names.field, out);
		PROCESS_NAMES(X)
#undef X
		fputc('\n', out);
	}
	for (size_t i = 1; i < p->thread_count; i++) {
		const struct profile_thread *t = &p->threads[i];

		fprintf(out, "thread %zu process=%" PRIu32 " tid=%" PRIu32, i, t->process.v,
			t->tid);
		put_string(p, "name", t->name, out);
		fprintf(out, " start=%" PRIu64 " end=%" PRIu64 " tail=%" PRIu64 "%s\n", t->start,
			t->end, t->cpu_tail, t->is_main ? " main" : "");
		dump_samples(p, &t->samples[SAMPLE_CPU], out);
		dump_thread_events(p, t, out);
	}
}

/* Machine code, its rows and sources. */
static void dump_bundle(const struct profile *p, FILE *out)
{
	for (size_t i = 0; i < p->code_count; i++) {
		const struct profile_code *code = &p->codes[i];

		fprintf(out, "code %zu dso=%" PRIu32 " address=0x%" PRIx64 " machine=\"%s\" ", i,
			code->dso.v, code->address, code_machine_name(code->machine));
		if (code->version)
			fprintf(out, "process=%" PRIu32 " version=%" PRIu32 " ", code->process.v,
				code->version);
		for (uint32_t k = 0; k < code->size; k++)
			fprintf(out, "%02x", code->bytes[k]);
		fputc('\n', out);
		for (uint32_t k = 0; k < code->row_count; k++) {
			const struct profile_code_row *row = &p->code_rows[code->first_row + k];

			fprintf(out,
				"  row +%" PRIu32 " function=%" PRIu32 " depth=%" PRIu32
				" line=%" PRIu32 ":%" PRIu32,
				row->offset, row->function.v, row->depth, row->line, row->column);
			put_string(p, "file", row->file, out);
			fputc('\n', out);
		}
	}
	for (size_t i = 0; i < p->source_count; i++) {
		fprintf(out, "source %zu state=\"%s\" size=%" PRIu32, i,
			source_state_text(p->sources[i].state), p->sources[i].size);
		put_string(p, "path", p->sources[i].path, out);
		fputc('\n', out);
	}
}

void profile_dump(const struct profile *p, FILE *out)
{
	dump_session(p, out);
	dump_books(p, out);
	dump_dsos(p, out);
	dump_code(p, out);
	dump_lives(p, out);
	dump_jits(p, out);
	dump_runtimes(p, out);
	dump_gils(p, out);
	dump_memories(p, out);
	dump_bundle(p, out);
}
