/*
 * ward ps: the detached sandboxes of this user. In: the register. Out: a table or JSON. Asks no
 * sandbox: one that is stuck does not keep the others from being listed. What a killed supervisor
 * left is finished on the way.
 */
#include "cli/boxes.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

/* "12s", "5m", "3h", "2d" */
static void format_age(uint64_t since_ms, uint64_t now_ms, char *out, size_t n)
{
	uint64_t s = now_ms > since_ms ? (now_ms - since_ms) / 1000 : 0;

	if (s < 120)
		snprintf(out, n, "%" PRIu64 "s", s);
	else if (s < 7200)
		snprintf(out, n, "%" PRIu64 "m", s / 60);
	else if (s < 172800)
		snprintf(out, n, "%" PRIu64 "h", s / 3600);
	else
		snprintf(out, n, "%" PRIu64 "d", s / 86400);
}

static void put_command(const struct box_info *i, struct buf *out)
{
	auto_buf line = { 0 };

	for (size_t k = 0; k < i->command.len; k++) {
		buf_puts(&line, k ? " " : "");
		text_escape(&line, i->command.items[k]);
	}
	if (!i->command.len)
		buf_puts(&line, "(idle)");
	if (line.len > 40)
		buf_printf(out, "%.37s...", line.data);
	else
		buf_printf(out, "%-40s", buf_text(&line));
}

static void put_row(const struct box_info *i, uint64_t now_ms, struct buf *out)
{
	char age[24], state[32];

	format_age(i->started_ms, now_ms, age, sizeof(age));
	if (i->state == BOX_ENDED)
		snprintf(state, sizeof(state), "ended (%d)", i->exit_code);
	else
		snprintf(state, sizeof(state), "%s", box_state_name(i->state));
	buf_printf(out, "%-23s %-16s %-11s %-5s ", i->id, i->name[0] ? i->name : "-", state, age);
	put_command(i, out);
	buf_puts(out, "  ");
	text_escape(out, i->workspace ? i->workspace : "");
	buf_puts(out, "\n");
}

static bool is_shown(const struct options *o, const struct box_info *i)
{
	return o->all || i->alive || (i->state == BOX_DEAD);
}

static void put_json(const struct options *o, const struct boxes *all, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_list(&j, "sandboxes");
	for (size_t i = 0; i < all->len; i++)
		if (is_shown(o, &all->items[i])) {
			json_begin_object(&j, NULL);
			boxes_json(&j, &all->items[i]);
			json_end_object(&j);
		}
	json_end_list(&j);
}

int verb_ps(struct options *o)
{
	auto_buf out = { 0 };
	struct ward_err e = { 0 };
	struct timespec now;
	struct boxes all;

	if (boxes_list(&all, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	client_recover(&all);
	clock_gettime(CLOCK_REALTIME, &now);
	if (o->json) {
		put_json(o, &all, &out);
	} else if (o->quiet) {
		for (size_t i = 0; i < all.len; i++)
			if (is_shown(o, &all.items[i]))
				buf_printf(&out, "%s\n",
					   all.items[i].name[0] ? all.items[i].name
								: all.items[i].id);
	} else {
		buf_printf(&out, "%-23s %-16s %-11s %-5s %-40s  %s\n", "ID", "NAME", "STATE", "AGE",
			   "COMMAND", "WORKSPACE");
		for (size_t i = 0; i < all.len; i++)
			if (is_shown(o, &all.items[i]))
				put_row(&all.items[i], (uint64_t)now.tv_sec * 1000, &out);
	}
	boxes_clear(&all);
	return say_out(&out, EXIT_FINE);
}
