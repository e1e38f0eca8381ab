/*
 * ward ps: the sandboxes of this user, detached and in the foreground. In: the register. Out: a
 * table of 80 columns (more where the terminal has them) or JSON. Asks no sandbox: one that is
 * stuck does not keep the others from being listed. What a killed supervisor left is finished on
 * the way.
 */
#include "cli/boxes.h"
#include "cli/ps.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

void ps_format_age(uint64_t since_ms, uint64_t now_ms, char *out, size_t n)
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

size_t ps_columns(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 80 ? size.ws_col : 80;
}

/* Appends what fits of an escaped text, filled up with blanks unless it is the last of its row.
 * from_end: the end is what counts. Bytes count: escaped text is nearly always ASCII. */
static void put_cell(struct buf *out, const char *text, size_t width, bool from_end, bool last)
{
	auto_buf plain = { 0 };
	size_t n, at;

	text_escape(&plain, text);
	n = plain.len;
	if (n <= width) {
		buf_printf(out, "%s%*s", buf_text(&plain), last ? 0 : (int)(width - n), "");
	} else if (from_end) {
		for (at = n - (width - 2); (buf_text(&plain)[at] & 0xc0) == 0x80; at++)
			;
		buf_printf(out, "..%s%*s", plain.data + at, (int)(at - (n - (width - 2))), "");
	} else {
		for (at = width - 2; at && (buf_text(&plain)[at] & 0xc0) == 0x80; at--)
			;
		buf_printf(out, "%.*s..%*s", (int)at, plain.data, (int)(width - 2 - at), "");
	}
	buf_puts(out, last ? "\n" : " ");
}

void ps_put_command(const struct box_info *i, size_t width, bool last, struct buf *out)
{
	auto_buf line = { 0 };

	for (size_t k = 0; k < i->command.len; k++) {
		buf_puts(&line, k ? " " : "");
		buf_puts(&line, i->command.items[k]);
	}
	put_cell(out,
		 i->command.len  ? buf_text(&line)
		 : i->foreground ? ""
				 : "(idle)",
		 width, false, last);
}

/* 22 10 11 4 14, and the command has the rest of the line: 14 of 80 columns. */
static void put_row(const struct box_info *i, uint64_t now_ms, size_t columns, struct buf *out)
{
	char age[24], state[32];

	ps_format_age(i->started_ms, now_ms, age, sizeof(age));
	if (i->state == BOX_ENDED)
		snprintf(state, sizeof(state), "ended (%d)", i->exit_code);
	else
		snprintf(state, sizeof(state), "%s",
			 i->parent[0]    ? "child"
			 : i->foreground ? "foreground"
					 : box_state_name(i->state));
	put_cell(out, i->id, 22, false, false);
	put_cell(out, i->name[0] ? i->name : "-", 10, false, false);
	put_cell(out, state, 11, false, false);
	put_cell(out, age, 4, false, false);
	put_cell(out, i->workspace ? i->workspace : "-", 14, true, false);
	ps_put_command(i, columns - 66, true, out);
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

	if (client_list(&all, &e) < 0)
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
		buf_printf(&out, "%-22s %-10s %-11s %-4s %-14s %s\n", "ID", "NAME", "STATE", "AGE",
			   "WORKSPACE", "COMMAND");
		for (size_t i = 0; i < all.len; i++)
			if (is_shown(o, &all.items[i]))
				put_row(&all.items[i], (uint64_t)now.tv_sec * 1000, ps_columns(),
					&out);
	}
	boxes_clear(&all);
	return say_out(&out, EXIT_FINE);
}
