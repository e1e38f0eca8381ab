/*
 * The programs of a run as a tree of processes. In: exec.start, and the process numbers that other
 * events bring. Out: nested lists, each process with its words, when it began, and what it read,
 * wrote and was refused. A process that begins another program without a fork shows it beneath
 * itself; equal neighbours without children are one line with a count. The sandbox chooses all of
 * it: there are at most REPORT_PROCESSES, a parent is always an earlier entry (so there is no
 * circle), nesting ends at REPORT_DEPTH, words are cut, and all text is escaped. Pure.
 */
#include "cli/audit/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define SHOWN_BYTES 400 /* of a process's words */
#define OPEN_UP_TO 30   /* processes beneath one that is shown open */

/* The latest entry of a number: numbers are used again. */
static uint32_t find(const struct report_processes *t, uint64_t pid)
{
	for (uint32_t i = t->len; pid && i-- > 0;)
		if (t->rows[i].pid == pid)
			return i;
	return NONE;
}

static struct report_process *add(struct run_report *r, uint64_t pid, uint64_t ppid,
				  uint32_t parent)
{
	struct report_processes *t = &r->processes;
	struct report_process *p;

	if (!t->rows)
		t->rows = calloc(REPORT_PROCESSES, sizeof(*t->rows));
	r->failed |= !t->rows;
	if (!t->rows || t->len == REPORT_PROCESSES) {
		t->more++;
		return NULL;
	}
	p = &t->rows[t->len++];
	*p = (struct report_process){ .pid = pid,
				      .ppid = ppid,
				      .parent = parent,
				      .first_child = NONE,
				      .last_child = NONE,
				      .next = NONE,
				      .all = 1 };
	if (parent != NONE) {
		struct report_process *above = &t->rows[parent];

		if (above->last_child != NONE)
			t->rows[above->last_child].next = t->len - 1;
		else
			above->first_child = t->len - 1;
		above->last_child = t->len - 1;
	}
	for (uint32_t i = parent; i != NONE; i = t->rows[i].parent)
		t->rows[i].all++;
	return p;
}

void report_add_exec(struct run_report *r, uint64_t pid, uint64_t ppid, char *exe, char *words,
		     uint64_t time_us)
{
	uint32_t at = find(&r->processes, pid);
	struct report_process *p = at == NONE ? NULL : &r->processes.rows[at];

	if (p && p->ppid == ppid && p->words && words && strcmp(p->words, words) == 0) {
		free(p->words); /* it tries the next directory of PATH */
	} else if (p && p->ppid == ppid && p->words) {
		p = add(r, pid, ppid, at); /* it has become another program */
		if (p)
			p->became = true;
	} else if (!p || p->ppid != ppid) {
		p = add(r, pid, ppid, find(&r->processes, ppid));
	}
	if (!p) {
		free(exe);
		free(words);
		return;
	}
	free(p->exe);
	p->exe = exe;
	p->words = words;
	p->first_us = time_us;
}

void report_add_act(struct run_report *r, uint64_t pid, uint64_t ppid, const char *exe,
		    enum report_act act, uint64_t count)
{
	uint32_t at = find(&r->processes, pid);
	struct report_process *p = at == NONE ? NULL : &r->processes.rows[at];

	if (!pid)
		return;
	if (!p) { /* a fork without a program of its own */
		p = add(r, pid, ppid, find(&r->processes, ppid));
		if (p && exe)
			p->exe = strdup(exe);
	}
	if (p && p->acts[act] < UINT64_MAX - count)
		p->acts[act] += count;
}

void report_clear_processes(struct run_report *r)
{
	for (uint32_t i = 0; i < r->processes.len; i++) {
		free(r->processes.rows[i].exe);
		free(r->processes.rows[i].words);
	}
	free(r->processes.rows);
}

static const char *text_of(const struct report_process *p)
{
	return p->words && *p->words ? p->words : p->exe ? p->exe : "(a program that was not seen)";
}

static bool is_quiet(const struct report_process *p)
{
	return p->first_child == NONE && !p->acts[DID_READ] && !p->acts[DID_WRITE] &&
	       !p->acts[DID_REFUSE];
}

/* How many equal neighbours begin here; *ret_last is the last of them. */
static uint64_t count_equal(const struct report_processes *t, uint32_t at, uint32_t *ret_last)
{
	uint64_t n = 1;

	*ret_last = at;
	if (!is_quiet(&t->rows[at]))
		return n;
	for (uint32_t i = t->rows[at].next;
	     i != NONE && is_quiet(&t->rows[i]) &&
	     strcmp(text_of(&t->rows[i]), text_of(&t->rows[at])) == 0;
	     i = t->rows[i].next) {
		*ret_last = i;
		n++;
	}
	return n;
}

static void put_acts(const struct report_process *p, struct buf *out)
{
	static const struct {
		const char *name, *colour;
	} acts[REPORT_ACTS] = { [DID_READ] = { "read", "dim" },
				[DID_WRITE] = { "written", "good" },
				[DID_REFUSE] = { "refused", "bad" } };

	for (unsigned i = 0; i < REPORT_ACTS; i++)
		if (p->acts[i])
			buf_printf(out, " <span class=\"tag %s\">%" PRIu64 " %s</span>",
				   acts[i].colour, p->acts[i], acts[i].name);
}

static void put_line(const struct run_report *r, const struct report_process *p, uint64_t times,
		     struct buf *out)
{
	const char *text = text_of(p);
	size_t len = strlen(text), shown = len;

	if (len > SHOWN_BYTES)
		for (shown = SHOWN_BYTES; shown && ((unsigned char)text[shown] & 0xc0) == 0x80;)
			shown--;
	buf_puts(out, p->became ? "<small>became</small> <code>" : "<code>");
	report_put_some(out, text, shown);
	buf_puts(out, shown < len ? "...</code>" : "</code>");
	if (times > 1)
		buf_printf(out, " <b>&times;%" PRIu64 "</b>", times);
	buf_puts(out, " <small>");
	if (p->pid && times == 1)
		buf_printf(out, "pid %" PRIu64, p->pid);
	if (p->first_us > r->began_us) {
		buf_puts(out, p->pid && times == 1 ? " at " : "at ");
		report_put_ms(out, (p->first_us - r->began_us) / 1000);
	}
	if (p->parent == NONE && p->ppid > 1)
		buf_printf(out, ", child of pid %" PRIu64 ", which started no program", p->ppid);
	buf_puts(out, "</small>");
	put_acts(p, out);
}

static void put_siblings(const struct run_report *r, uint32_t at, unsigned depth, struct buf *out);

static void put_one(const struct run_report *r, uint32_t at, uint64_t times, unsigned depth,
		    struct buf *out)
{
	const struct report_process *p = &r->processes.rows[at];

	if (p->first_child == NONE) {
		buf_puts(out, "<li>");
		put_line(r, p, times, out);
	} else if (depth == REPORT_DEPTH) {
		buf_puts(out, "<li>");
		put_line(r, p, times, out);
		buf_printf(out, " <small>and %" PRIu64 " processes beneath it</small>", p->all - 1);
	} else {
		buf_printf(out, "<li><details%s><summary>", p->all <= OPEN_UP_TO ? " open" : "");
		put_line(r, p, times, out);
		buf_puts(out, "</summary><ul>");
		put_siblings(r, p->first_child, depth + 1, out);
		buf_puts(out, "</ul></details>");
	}
	buf_puts(out, "</li>\n");
}

static void put_siblings(const struct run_report *r, uint32_t at, unsigned depth, struct buf *out)
{
	while (at != NONE) {
		uint32_t last;
		uint64_t times = count_equal(&r->processes, at, &last);

		put_one(r, at, times, depth, out);
		at = r->processes.rows[last].next;
	}
}

void report_processes(const struct run_report *r, struct buf *out)
{
	const struct report_processes *t = &r->processes;

	buf_puts(out, "<h2>Processes</h2>\n");
	if (!t->len)
		buf_puts(out, "<p class=\"dim\">Programs are on record with <code>--set "
			      "audit.level=exec</code> or a higher level only.</p>\n");
	else
		buf_puts(out, "<div class=\"tree\"><ul>");
	for (uint32_t i = 0; i < t->len; i++)
		if (t->rows[i].parent == NONE)
			put_one(r, i, 1, 0, out);
	if (t->len)
		buf_puts(out, "</ul></div>\n");
	report_put_more(out, t->more);
}
