/* SPDX-License-Identifier: BSD-2-Clause */
#include "world/window_lives.h"

#include <string.h>

#include "world/recorder.h"

void window_lives__fini(struct window_lives *w)
{
	vec_free_with(&w->threads, thread, vec_free(&thread->memo.frames);
		      vec_free(&thread->memo.stacks));
	vec_free(&w->processes);
}

struct window_process *window_lives__process(struct window_lives *w,
					     const struct process_life *life)
{
	struct window_process *entry = vec_at(&w->processes, life->number.slot);

	if (entry && entry->serial != life->number.serial)
		*entry = (struct window_process){.serial = life->number.serial};
	return entry;
}

/* NULL: no memory. Valid until the next call for another thread. */
static struct window_thread *thread_entry(struct window_lives *w, const struct thread_life *life)
{
	struct window_thread *entry = vec_at(&w->threads, life->number.slot);

	if (!entry || entry->serial == life->number.serial)
		return entry;
	entry->serial = life->number.serial;
	entry->id = (struct thread_id){0};
	entry->comm = (struct string_id){0};
	entry->name = (struct window_name){};
	entry->memo.frames.count = entry->memo.stacks.count = 0;
	entry->gil = 0;
	return entry;
}

struct process_id window_lives__process_id(const struct window_lives *w,
					   const struct process_life *life)
{
	const struct window_process *entry = life_entry(&w->processes, life);

	return entry ? entry->id : (struct process_id){0};
}

struct window_thread *window_lives__thread(const struct window_lives *w,
					   const struct thread_life *life)
{
	struct window_thread *entry = life_entry(&w->threads, life);

	return entry && entry->id.v ? entry : NULL;
}

static void report_facts(struct window_lives *w, struct process_id id,
			 const struct process_life *life)
{
	const struct facts_event *f = (const void *)life->facts->bytes;
	struct profile_fact facts[PROCESS_FACTS_MAX];
	const char *at = f->text;

	for (uint32_t i = 0; i < f->count; i++) {
		facts[i].key = profile_builder__string(w->builder, at);
		at += strlen(at) + 1;
		facts[i].value = profile_builder__string(w->builder, at);
		at += strlen(at) + 1;
	}
	profile_builder__process_facts(w->builder, id, f->state, facts, f->count);
}

void window_lives__set_facts(struct window_lives *w, const struct process_life *life)
{
	struct process_id id = window_lives__process_id(w, life);

	if (id.v && life->facts)
		report_facts(w, id, life);
}

void window_lives__set_program(struct window_lives *w, const struct process_life *life,
			       const char *mapped)
{
	struct profile_process *process;

	if (!life || !life->program || strcmp(life->program->bytes, mapped))
		return;
	process = profile_builder__get_process(w->builder, window_lives__process_id(w, life));
	if (process)
		process->program = profile_builder__string(w->builder, mapped);
}

/* Of tasks that have no number any more, perf writes -1. */
static uint32_t shown_number(uint32_t number)
{
	return number == UINT32_MAX ? 0 : number;
}

static void show_process(struct window_lives *w, const struct process_life *life,
			 struct window_process *entry, uint64_t start)
{
	struct profile_process p = {
		.pid = shown_number(life->pid),
		.life = life->number.serial,
		.born = life->born,
		.ppid = life->ppid,
		.name = profile_builder__string(w->builder, life->name),
		.start = life->start ? life->start : start,
		.end = life->end,
		.began = life->began,
		.execs = life->end && life->how == LIFE_EXEC,
		.cgroup = profile_builder__string(w->builder,
						  life->cgroup ? life->cgroup->bytes : NULL),
		.program = profile_builder__string(w->builder,
						   life->program ? life->program->bytes : NULL),
		.is_kernel = life->is_kernel,
		.is_target = life->is_target,
	};

	if (entry->id.v)
		return;
	entry->id = profile_builder__process(w->builder, &p);
	if (life->facts)
		report_facts(w, entry->id, life);
}

struct process_id window_lives__show_process(struct window_lives *w,
					     const struct process_life *life, uint64_t start)
{
	struct window_process *entry = window_lives__process(w, life);

	if (!entry)
		return (struct process_id){0};
	show_process(w, life, entry, start);
	return entry->id;
}

struct window_thread *window_lives__show(struct window_lives *w, struct thread_life *life,
					 uint64_t time, uint64_t earlier)
{
	struct window_process *process = window_lives__process(w, life->process);
	struct window_thread *entry = thread_entry(w, life);
	uint64_t start = life->start;
	bool is_main;

	if (!process || !entry || entry->id.v)
		return process ? entry : NULL;
	if (!start || start >= time)
		start = time > earlier + 1 ? time - earlier - 1 : 0;
	is_main = thread_life__is_main(life) && !process->has_main;
	show_process(w, life->process, process, start);
	entry->comm = profile_builder__string(w->builder, life->comm);
	entry->id = profile_builder__thread(w->builder, process->id, shown_number(life->tid),
					    is_main, entry->comm, start);
	process->has_main |= is_main;
	if (life->renamed)
		profile_builder__thread_renamed(w->builder, entry->id, life->renamed, entry->comm);
	if (life->ended)
		profile_builder__thread_end(w->builder, entry->id, life->end);
	return entry;
}
