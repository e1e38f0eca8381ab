/*
 * ward stats: what sandboxes use. In: names (all that live when none is given). Out: a table, again
 * each second while a person watches, or JSON once. Every sandbox is asked before any answer is
 * waited for; one that does not answer costs the others nothing but its own line.
 */
#include "cli/boxes.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "policy/units.h"

#define ROUND_MS 1000

/* One look at all of them. */
struct body_inspect {
	struct control_usage *usage;
	bool *known;
	char (*ids)[24]; /* the list may change between two looks */
	size_t len;
	uint64_t at_ms;
};

static bool look_at_all(struct chosen *c, struct body_inspect *l)
{
	l->usage = calloc(c->len + 1, sizeof(*l->usage));
	l->known = calloc(c->len + 1, sizeof(*l->known));
	l->ids = calloc(c->len + 1, sizeof(*l->ids));
	if (!l->usage || !l->known || !l->ids)
		return false;
	l->at_ms = io_now_ms();
	l->len = c->len;
	for (size_t i = 0; i < c->len; i++)
		memcpy(l->ids[i], c->infos[i].id, sizeof(l->ids[i]));
	for (size_t i = 0; i < c->len; i++) {
		struct ward_err e = { 0 };

		if (client_connect(&c->infos[i], &c->clients[i], &e) == 0 &&
		    client_send(&c->clients[i], CONTROL_STATS, 0, 0, 0, &e) < 0)
			client_close(&c->clients[i]);
	}
	for (size_t i = 0; i < c->len; i++) {
		struct client_answer a;
		struct ward_err e = { 0 };
		/* one wait for all that are stuck */
		uint64_t waited = io_now_ms() - l->at_ms;

		if (c->clients[i].fd >= 0 &&
		    client_receive(&c->clients[i], &a,
				   waited < CLIENT_ANSWER_MS ? (int)(CLIENT_ANSWER_MS - waited) : 0,
				   &e) == 0 &&
		    a.message.op == CONTROL_USAGE) {
			l->usage[i] = a.usage;
			l->known[i] = true;
		}
		client_close(&c->clients[i]);
	}
	return true;
}

static void look_clear(struct body_inspect *l)
{
	free(l->usage);
	free(l->known);
	free(l->ids);
	*l = (struct body_inspect){ 0 };
}

static void put_row(const struct box_info *i, const struct control_usage *u,
		    const struct control_usage *before, uint64_t between_ms, struct buf *out)
{
	char memory[32], peak[32], disk[32], cpu[32];

	units_format_size(u->memory_bytes, memory, sizeof(memory));
	units_format_size(u->memory_peak_bytes, peak, sizeof(peak));
	units_format_size(u->disk_bytes, disk, sizeof(disk));
	if (before && between_ms)
		snprintf(cpu, sizeof(cpu), "%.1f %%",
			 100.0 * (double)(u->cpu_ms - before->cpu_ms) / (double)between_ms);
	else
		units_format_ms(u->cpu_ms, cpu, sizeof(cpu));
	buf_printf(out, "%-23s %-16s %-10s %-11s %-11s %-6llu %s\n", i->id,
		   i->name[0] ? i->name : "-", cpu, memory, peak, (unsigned long long)u->pids,
		   disk);
}

/* The same sandbox in the look before; NULL: it was not there, or did not answer. */
static const struct control_usage *find_before(const struct body_inspect *before, const char *id,
					       const struct control_usage *now)
{
	for (size_t i = 0; i < before->len; i++)
		if (before->known[i] && strcmp(before->ids[i], id) == 0 &&
		    before->usage[i].cpu_ms <= now->cpu_ms)
			return &before->usage[i];
	return NULL;
}

static int print(const struct chosen *c, const struct body_inspect *now,
		 const struct body_inspect *before, bool again)
{
	auto_buf out = { 0 };

	if (again)
		buf_puts(&out, "\033[H\033[J");
	buf_printf(&out, "%-23s %-16s %-10s %-11s %-11s %-6s %s\n", "ID", "NAME", "CPU", "MEMORY",
		   "PEAK", "PIDS", "DISK");
	for (size_t i = 0; i < c->len; i++)
		if (now->known[i])
			put_row(&c->infos[i], &now->usage[i],
				find_before(before, c->infos[i].id, &now->usage[i]),
				now->at_ms - before->at_ms, &out);
	return say_out(&out, EXIT_FINE);
}

static int print_json(const struct chosen *c, const struct body_inspect *l)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	json_begin_list(&j, "sandboxes");
	for (size_t i = 0; i < c->len; i++) {
		const struct control_usage *u = &l->usage[i];

		if (!l->known[i])
			continue;
		json_begin_object(&j, NULL);
		json_string(&j, "id", c->infos[i].id);
		json_string(&j, "name", c->infos[i].name[0] ? c->infos[i].name : NULL);
		boxes_usage_json(&j, u);
		json_end_object(&j);
	}
	json_end_list(&j);
	return say_out(&out, EXIT_FINE);
}

static int say_unknown(const struct options *o, const struct chosen *c,
		       const struct body_inspect *l, int code)
{
	for (size_t i = 0; i < c->len; i++) {
		struct ward_err e = { 0 };

		if (l->known[i])
			continue;
		ward_fail(&e, ETIMEDOUT, "the sandbox %s does not answer", c->infos[i].id);
		code = say_error(&e, o->json, EXIT_REFUSED);
	}
	return code;
}

int verb_stats(struct options *o)
{
	bool stream = !o->no_stream && !o->json && isatty(STDOUT_FILENO), all = o->word_count == 0;
	const struct timespec pause = { .tv_sec = ROUND_MS / 1000 };
	struct body_inspect before = { 0 };
	int code;

	for (bool again = false;; again = true) {
		struct body_inspect now = { 0 };
		struct chosen c;

		o->all = all;
		boxes_choose(o, CHOOSE_ALIVE | CHOOSE_ALL, &c, &code);
		if (code == EXIT_FINE && !look_at_all(&c, &now))
			code = EXIT_REFUSED;
		if (code == EXIT_FINE && o->json)
			code = print_json(&c, &now);
		else if (code == EXIT_FINE)
			code = print(&c, &now, &before, again && stream);
		if (now.known && !stream)
			code = say_unknown(o, &c, &now, code);
		look_clear(&before);
		before = now;
		stream = stream && code == EXIT_FINE;
		chosen_clear(&c);
		if (!stream)
			break;
		nanosleep(&pause, NULL);
	}
	look_clear(&before);
	return code;
}
