/*
 * The page of a run. In: what was gathered. Out: HTML5, one file: no script, no request, nothing
 * that a sandbox chose outside of text: every such text goes through escape_html(). The policy in
 * its head forbids everything but its own style, by hash, so that even a mistake here could neither
 * run nor load anything. Readable at the width of a phone, in light and dark. Pure.
 */
#include "cli/audit/report.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <string.h>

#include "audit/escape.h"
#include "base/sha256.h"
#include "event/event.h"
#include "policy/units.h"

static const char style[] =
	":root{color-scheme:light "
	"dark;--fg:#1b1f24;--bg:#fff;--dim:#59636e;--line:#d1d9e0;--bad:#b3261e;--warn:#8a5a00;--"
	"good:#116329;--card:#f6f8fa}"
	"@media(prefers-color-scheme:dark){:root{--fg:#e6edf3;--bg:#0d1117;--dim:#9198a1;--line:#"
	"30363d;--bad:#ff7b72;--warn:#e3b341;--good:#56d364;--card:#161b22}}"
	"*{box-sizing:border-box}body{margin:0 auto;max-width:60rem;padding:1rem;font:1rem/1.5 "
	"system-ui,sans-serif;color:var(--fg);background:var(--bg);overflow-wrap:anywhere}"
	"h1{font-size:1.4rem;margin:.2rem 0}h2{font-size:1.1rem;margin:1.6rem 0 "
	".4rem;border-bottom:1px solid var(--line)}"
	"code,pre{font-family:ui-monospace,monospace;font-size:.9em;overflow-wrap:anywhere;white-"
	"space:pre-wrap}"
	".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(8rem,1fr));gap:.5rem;"
	"margin:.8rem 0}"
	".cards div{background:var(--card);border:1px solid "
	"var(--line);border-radius:6px;padding:.4rem .6rem}.cards "
	"b{display:block;font-size:1.15rem}"
	"small,.dim{color:var(--dim)}.bad{color:var(--bad)}.warn{color:var(--warn)}.good{color:var("
	"--good)}"
	".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{"
	"text-align:left;vertical-align:top;padding:.25rem .5rem .25rem 0;border-bottom:1px solid "
	"var(--line)}"
	"th{overflow-wrap:normal}td.n,th.n{text-align:right;white-space:nowrap}svg{width:100%;"
	"height:auto;display:block}svg text{fill:var(--dim);font:12px system-ui,sans-serif}"
	".axis{stroke:var(--line)}.plot{fill:none;stroke:var(--good);stroke-width:2}.c0{fill:var(--"
	"good)}.c1{fill:var(--warn)}.c2{fill:var(--bad)}figure{margin:.8rem "
	"0}figcaption{color:var(--dim)}"
	".denial{border-left:3px solid var(--bad);padding:.1rem .7rem;margin:.6rem 0}.denial "
	"p{margin:.1rem 0}details{margin:.6rem 0}summary{cursor:pointer}"
	".tree ul{list-style:none;margin:0;padding:0 0 0 1rem;border-left:1px solid "
	"var(--line)}.tree>ul{padding:0;border:0}.tree li{padding:.1rem 0}.tree "
	"details{margin:0}.tree summary{padding:.1rem 0}"
	".tag{font-size:.75rem;border:1px solid;border-radius:1rem;padding:0 "
	".4rem;white-space:nowrap}"
	".fix{background:var(--card);border:1px solid "
	"var(--line);border-radius:6px;padding:.3rem .6rem;margin:.3rem 0;user-select:all}"
	".cmd{max-height:9rem;overflow:auto}"
	".k{white-space:nowrap}@media(max-width:40rem){.tree ul ul{padding-left:.6rem}svg "
	"text{font-size:16px}.sums tr{display:grid;grid-template-columns:repeat(4,1fr);border-"
	"bottom:1px solid var(--line)}.sums td,.sums th{border:0}.sums td:first-child,.sums "
	"th:first-child{grid-column:1/-1}}";

void report_put_some(struct buf *out, const char *text, size_t n)
{
	escape_html(out, text, n);
}

void report_put(struct buf *out, const char *text)
{
	report_put_some(out, text ? text : "", text ? strlen(text) : 0);
}

static void put_bytes(struct buf *out, uint64_t bytes)
{
	static const char units[][4] = { "B", "KiB", "MiB", "GiB", "TiB" };
	unsigned unit = 0;
	uint64_t tenths = bytes < UINT64_MAX / 10 ? bytes * 10 : UINT64_MAX;

	for (; tenths >= 10240 && unit < 4; unit++)
		tenths /= 1024;
	if (unit)
		buf_printf(out, "%" PRIu64 ".%u %s", tenths / 10, (unsigned)(tenths % 10),
			   units[unit]);
	else
		buf_printf(out, "%" PRIu64 " B", bytes);
}

void report_put_ms(struct buf *out, uint64_t ms)
{
	buf_printf(out, "%" PRIu64 ".%03u s", ms / 1000, (unsigned)(ms % 1000));
}

void report_put_more(struct buf *out, uint64_t more)
{
	if (more)
		buf_printf(out,
			   "<p class=\"dim\">and %" PRIu64
			   " more, which <code>ward audit show</code> has</p>\n",
			   more);
}

/* -- head */

static void put_head(const struct run_report *r, struct buf *out)
{
	uint8_t digest[SHA256_BYTES];
	struct sha256 hash;
	unsigned char base64[64];

	sha256_begin(&hash);
	sha256_add(&hash, style, strlen(style));
	sha256_end(&hash, digest);
	EVP_EncodeBlock(base64, digest, sizeof(digest));
	buf_printf(out,
		   "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta "
		   "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
		   "'sha256-%s'; base-uri 'none'; "
		   "form-action 'none'\"><meta name=\"viewport\" content=\"width=device-width, "
		   "initial-scale=1\"><meta name=\"referrer\" content=\"no-referrer\"><title>ward "
		   "run ",
		   (const char *)base64);
	report_put(out, r->run);
	buf_printf(out, "</title><style>%s</style></head>\n<body>\n", style);
}

static void put_card(struct buf *out, const char *name)
{
	buf_printf(out, "</b><small>%s</small></div>", name);
}

static void put_outcome(const struct run_report *r, struct buf *out)
{
	if (!r->has_end)
		buf_puts(out, "<div><b class=\"warn\">no end");
	else if (r->limited)
		buf_printf(out, "<div><b class=\"bad\">limit, exit %" PRIu64, r->exit);
	else
		buf_printf(out, "<div><b class=\"%s\">exit %" PRIu64, r->exit ? "warn" : "good",
			   r->exit);
	put_card(out, "outcome");
}

static void put_cards(const struct run_report *r, struct buf *out)
{
	buf_puts(out, "<div class=\"cards\">");
	put_outcome(r, out);
	buf_puts(out, "<div><b>");
	report_put_ms(out, r->has_end ? r->duration_ms : (r->ended_us - r->began_us) / 1000);
	put_card(out, "duration");
	buf_puts(out, "<div><b>");
	report_put_ms(out, r->cpu_ms);
	put_card(out, "processor");
	buf_puts(out, "<div><b>");
	put_bytes(out, r->memory_peak);
	put_card(out, "peak memory");
	buf_puts(out, "<div><b>");
	put_bytes(out, r->bytes_out);
	put_card(out, "sent");
	buf_puts(out, "<div><b>");
	put_bytes(out, r->bytes_in);
	put_card(out, "received");
	if (r->spends.len) {
		buf_puts(out, "<div><b>");
		units_put_money(r->spent, out);
		put_card(out, "spent");
	}
	buf_printf(out, "<div><b class=\"%s\">%" PRIu64, r->denied ? "bad" : "good", r->denied);
	put_card(out, "denied");
	buf_printf(out, "<div><b>%" PRIu64, r->events);
	put_card(out, "events");
	buf_puts(out, "</div>\n");
}

static void put_fact(struct buf *out, const char *name, const char *text)
{
	if (!text || !*text)
		return;
	buf_printf(out, "<tr><th>%s</th><td>", name);
	report_put(out, text);
	buf_puts(out, "</td></tr>");
}

static void put_facts(const struct run_report *r, struct buf *out)
{
	buf_puts(out, "<table>");
	put_fact(out, "workspace", r->workspace);
	put_fact(out, "policy", r->policy ? r->policy : "none: defaults and options");
	put_fact(out, "profile", r->profile);
	put_fact(out, "engine", r->engine);
	put_fact(out, "network", r->network);
	put_fact(out, "audit.level", r->level);
	put_fact(out, "layers in force", r->layers);
	put_fact(out, "layers absent", r->absent);
	put_fact(out, "ended because", r->why);
	buf_puts(out, "</table>\n");
}

/* -- parts */

/* Each line is a command of its own, which one click selects as a whole, or words. */
static void put_remedies(const char *text, struct buf *out)
{
	while (text && *text) {
		size_t n = strcspn(text, "\n");
		bool command = strncmp(text, "ward ", 5) == 0;

		buf_puts(out, command ? "<pre class=\"fix\">" : "<p>");
		report_put_some(out, text, n);
		buf_puts(out, command ? "</pre>" : "</p>");
		text += n + (text[n] == '\n');
	}
}

static void put_denial(const struct report_row *row, struct buf *out)
{
	buf_printf(out, "<div class=\"denial\"><p><b>%s</b> <code>",
		   event_kind_name((enum event_kind)row->kind));
	report_put(out, row->texts[0]);
	buf_puts(out, "</code>");
	if (row->count > 1)
		buf_printf(out, " <small>%" PRIu64 " times</small>", row->count);
	buf_puts(out, "</p><p>");
	report_put(out, row->texts[1]);
	if (row->texts[2]) {
		buf_puts(out, " <small>by ");
		report_put(out, row->texts[2]);
		buf_puts(out, "</small>");
	}
	buf_puts(out, "</p>");
	put_remedies(row->texts[3], out);
	buf_puts(out, "</div>\n");
}

#define ALIKE_MAX 4 /* denials of one kind and reason that are shown without a click */

static bool is_alike(const struct report_row *a, const struct report_row *b)
{
	return a->kind == b->kind &&
	       strcmp(a->texts[1] ? a->texts[1] : "", b->texts[1] ? b->texts[1] : "") == 0;
}

/* The 5th name that was not in the list must not hide the one system call behind it. */
static bool is_folded(const struct report_table *t, size_t i)
{
	size_t alike = 0;

	for (size_t k = 0; k < i && alike < ALIKE_MAX; k++)
		alike += is_alike(&t->rows[k], &t->rows[i]);
	return alike == ALIKE_MAX;
}

static void put_denials(const struct run_report *r, struct buf *out)
{
	size_t folded = 0;

	buf_puts(out, "<h2>Denied</h2>\n");
	if (!r->denials.len)
		buf_puts(out, "<p class=\"good\">Nothing was refused.</p>\n");
	for (size_t i = 0; i < r->denials.len; i++) {
		if (is_folded(&r->denials, i))
			folded++;
		else
			put_denial(&r->denials.rows[i], out);
	}
	if (folded)
		buf_printf(out, "<details><summary>%zu more for the same reasons</summary>\n",
			   folded);
	for (size_t i = 0; folded && i < r->denials.len; i++)
		if (is_folded(&r->denials, i))
			put_denial(&r->denials.rows[i], out);
	buf_puts(out, folded ? "</details>\n" : "");
	report_put_more(out, r->denials.more);
}

static void put_host(const struct report_row *row, struct buf *out)
{
	buf_puts(out, "<tr><td>");
	report_put(out, row->texts[0]);
	buf_printf(out, "</td><td class=\"n\">%" PRIu64 "</td><td class=\"n\">", row->count);
	put_bytes(out, row->numbers[0]);
	buf_puts(out, "</td><td class=\"n\">");
	put_bytes(out, row->numbers[1]);
	buf_printf(out, "</td><td class=\"n%s\">%" PRIu64 "</td></tr>\n",
		   row->numbers[2] ? " bad" : "", row->numbers[2]);
}

#define HOSTS_OPEN 20 /* that are shown without a click */

static const char hosts_head[] = "<div class=\"wide\"><table class=\"sums\"><tr><th>host</th><th "
				 "class=\"n\">connections</th><th class=\"n\">sent</th><th "
				 "class=\"n\">received</th><th class=\"n\">denied</th></tr>\n";

/* Those that were reached come first. */
static void put_hosts(const struct run_report *r, struct buf *out)
{
	size_t shown = 0;

	if (!r->hosts.len)
		return;
	buf_printf(out, "<h2>Hosts</h2>%s", hosts_head);
	for (int reached = 1; reached >= 0; reached--)
		for (size_t i = 0; i < r->hosts.len; i++) {
			if ((r->hosts.rows[i].count > 0) != reached)
				continue;
			if (shown++ == HOSTS_OPEN)
				buf_printf(out,
					   "</table></div><details><summary>%zu more "
					   "hosts</summary>%s",
					   r->hosts.len - HOSTS_OPEN, hosts_head);
			put_host(&r->hosts.rows[i], out);
		}
	buf_printf(out, "</table></div>%s\n", shown > HOSTS_OPEN ? "</details>" : "");
	report_put_more(out, r->hosts.more);
}

static void put_spends(const struct run_report *r, struct buf *out)
{
	if (!r->spends.len)
		return;
	buf_puts(out,
		 "<h2>Spend</h2><div class=\"wide\"><table class=\"sums\"><tr><th>model</th><th "
		 "class=\"n\">requests</th><th class=\"n\">tokens in</th><th "
		 "class=\"n\">tokens out</th><th class=\"n\">cost</th></tr>\n");
	for (size_t i = 0; i < r->spends.len; i++) {
		const struct report_row *row = &r->spends.rows[i];

		buf_puts(out, "<tr><td>");
		report_put(out, row->texts[0]);
		buf_printf(out,
			   "</td><td class=\"n\">%" PRIu64 "</td><td class=\"n\">%" PRIu64
			   "</td><td class=\"n\">%" PRIu64 "</td><td class=\"n\">",
			   row->count, row->numbers[0], row->numbers[1]);
		units_put_money(row->numbers[2], out);
		buf_puts(out, "</td></tr>\n");
	}
	buf_puts(out, "</table></div>\n");
	report_put_more(out, r->spends.more);
}

/* Rows of a kind, up to two texts and how often. */
static void put_table(const struct report_table *t, const char *title, const char *first,
		      const char *second, struct buf *out)
{
	if (!t->len)
		return;
	buf_printf(
		out,
		"<h2>%s</h2><div class=\"wide\"><table><tr><th>event</th><th>%s</th><th>%s</th><th "
		"class=\"n\">times</th></tr>\n",
		title, first, second);
	for (size_t i = 0; i < t->len; i++) {
		const struct report_row *row = &t->rows[i];

		buf_printf(out, "<tr><td class=\"k%s\">%s</td><td>",
			   row->action == ACTION_DENY ? " bad" : "",
			   event_kind_name((enum event_kind)row->kind));
		report_put(out, row->texts[0]);
		buf_puts(out, "</td><td>");
		report_put(out, row->texts[1]);
		buf_printf(out, "</td><td class=\"n\">%" PRIu64 "</td></tr>\n", row->count);
	}
	buf_puts(out, "</table></div>\n");
	report_put_more(out, t->more);
}

static void put_list(const struct run_report *r, struct buf *out)
{
	buf_puts(out, "<h2>Events</h2><details><summary>one by one</summary><div "
		      "class=\"wide\"><table><tr><th "
		      "class=\"n\">after</th><th>event</th><th>action</th><th>object</th></tr>\n");
	for (size_t i = 0; i < r->events_list.len; i++) {
		const struct report_row *row = &r->events_list.rows[i];

		buf_puts(out, "<tr><td class=\"n\">");
		report_put_ms(out, row->first_us > r->began_us
					   ? (row->first_us - r->began_us) / 1000
					   : 0);
		buf_printf(out, "</td><td class=\"k\">%s</td><td class=\"k%s\">%s</td><td>",
			   event_kind_name((enum event_kind)row->kind),
			   row->action == ACTION_DENY ? " bad" : "",
			   event_action_name((enum event_action)row->action));
		report_put(out, row->texts[0]);
		if (row->texts[1]) {
			buf_puts(out, "<br><small>");
			report_put(out, row->texts[1]);
			buf_puts(out, "</small>");
		}
		buf_puts(out, "</td></tr>\n");
	}
	buf_puts(out, "</table></div>\n");
	report_put_more(out, r->events_list.more);
	buf_puts(out, "</details>\n");
}

void report_page(const struct run_report *r, struct buf *out)
{
	char time[EVENT_TIME_TEXT];

	event_time_text(r->began_us, time);
	put_head(r, out);
	buf_puts(out, "<h1>ward run <code>");
	report_put(out, r->run);
	buf_printf(out, "</code></h1><p class=\"dim\">%.19s UTC</p><pre class=\"cmd\">$ ", time);
	report_put(out, r->command ? r->command : "(its first event is missing)");
	buf_puts(out, "</pre>\n");
	put_cards(r, out);
	put_facts(r, out);
	put_denials(r, out);
	report_processes(r, out);
	report_files(r, out);
	put_hosts(r, out);
	put_spends(r, out);
	buf_puts(out, "<h2>Timeline</h2>\n");
	report_timeline(r, out);
	buf_puts(out, "<h2>Resources</h2>\n");
	if (r->sample_count < 2)
		buf_puts(out, "<p class=\"dim\">The run was too short for samples.</p>\n");
	report_plots(r, out);
	put_table(&r->reviews, "Reviews", "what", "by", out);
	put_table(&r->notes, "Notes", "what", "why", out);
	put_list(r, out);
	buf_puts(out, "<p class=\"dim\">Made by ward " WARD_VERSION
		      " from the run's journal; <code>ward audit verify</code> tells whether that "
		      "is what was written.</p>\n</body></html>\n");
}
