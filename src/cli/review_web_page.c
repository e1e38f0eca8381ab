/*
 * What the page of a review is made of. In: texts that an agent chose. Out: HTML. Pure functions.
 *
 * The page has no script, loads nothing, and its policy (Content-Security-Policy) forbids both: a
 * name or a line that got past the escaping could still do nothing. Every byte of the review goes
 * through web_put_text(): characters that act on a terminal or turn text around become visible
 * escapes first, then what is markup becomes entities.
 */
#include "cli/review_web.h"

#include <errno.h>
#include <string.h>

#include "base/diff.h"
#include "base/text.h"

void web_put_text(struct buf *out, const char *text, size_t n)
{
	while (n) {
		const char *tab = memchr(text, '\t', n);
		size_t len = tab ? (size_t)(tab - text) : n;
		auto_free char *piece = strndup(text, len);
		auto_buf plain = { 0 };

		if (!piece) {
			out->failed = true;
			return;
		}
		text_escape(&plain, piece);
		text_entities(out, buf_text(&plain));
		buf_puts(out, tab ? "\t" : "");
		out->failed |= plain.failed;
		text += len + (tab ? 1 : 0);
		n -= len + (tab ? 1 : 0);
	}
}

static const char style[] =
	":root{color-scheme:light dark;--bg:#fff;--fg:#1f2328;--dim:#59636e;--line:#d1d9e0;"
	"--box:#f6f8fa;--add:#dafbe1;--addn:#aceebb;--del:#ffebe9;--deln:#ffcecb;"
	"--none:#f6f8fa;--link:#0969da;--warn:#9a6700;--warnbg:#fff8c5;--bad:#d1242f;"
	"--good:#1a7f37}\n"
	"@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--dim:#9198a1;"
	"--line:#3d444d;--box:#151b23;--add:#12261e;--addn:#1c4428;--del:#25171c;"
	"--deln:#542426;--none:#151b23;--link:#4493f8;--warn:#d29922;--warnbg:#272215;"
	"--bad:#f85149;--good:#3fb950}}\n"
	"*{box-sizing:border-box}\n"
	"body{margin:0;background:var(--bg);color:var(--fg);"
	"font:15px/1.45 system-ui,sans-serif}\n"
	"a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}\n"
	"header{padding:14px 20px;border-bottom:1px solid var(--line)}\n"
	"h1{font-size:19px;margin:0 0 4px}header p{margin:0;color:var(--dim)}\n"
	"code,td,.path{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12.5px}"
	"\n"
	".path,code{overflow-wrap:anywhere}\n"
	".page{display:grid;grid-template-columns:minmax(200px,280px) minmax(0,1fr)}\n"
	"nav{border-right:1px solid var(--line);padding:12px;position:sticky;top:0;"
	"align-self:start;max-height:100vh;overflow:auto}\n"
	"nav ul{list-style:none;margin:0;padding-left:14px}nav>ul{padding-left:0}\n"
	"nav{font-size:13px}nav "
	"li{white-space:nowrap;overflow:hidden;text-overflow:ellipsis}\n"
	"nav summary{cursor:pointer;color:var(--dim);white-space:normal;"
	"overflow-wrap:anywhere}\n"
	"main{padding:12px 20px;min-width:0}\n"
	".find{border:1px solid var(--line);border-radius:6px;background:var(--warnbg);"
	"margin:0 0 14px;padding:8px 14px}\n"
	".find h2,.git h2{font-size:15px;margin:2px 0 6px}\n"
	".find ul,.git ul{margin:0;padding-left:18px}\n"
	".git{border:1px solid var(--line);border-radius:6px;background:var(--box);"
	"margin:0 0 14px;padding:8px 14px}\n"
	"details.file{border:1px solid var(--line);border-radius:6px;margin:0 0 14px;"
	"overflow:hidden}\n"
	".file>summary{background:var(--box);padding:7px 12px;cursor:pointer}\n"
	".file>p{margin:0;padding:8px 12px;color:var(--dim)}\n"
	".l{display:inline-block;width:1.3em;font-weight:700}\n"
	".lA{color:var(--good)}.lD{color:var(--bad)}.lM,.lX,.lT,.lR{color:var(--warn)}\n"
	".plus{color:var(--good)}.minus{color:var(--bad)}\n"
	".note{color:var(--warn)}\n"
	"table{border-collapse:collapse;width:100%;table-layout:fixed}\n"
	"col.n{width:4.2em}\n"
	"td{padding:0 6px;vertical-align:top;white-space:pre-wrap;overflow-wrap:anywhere;"
	"tab-size:8}\n"
	"td.n{color:var(--dim);text-align:right;white-space:nowrap;user-select:none}\n"
	"td.d{background:var(--del)}td.n.d{background:var(--deln)}\n"
	"td.a{background:var(--add)}td.n.a{background:var(--addn)}\n"
	"td.e{background:var(--none)}\n"
	"td.h{background:var(--box);color:var(--dim);padding:3px 12px;"
	"border-top:1px solid var(--line);border-bottom:1px solid var(--line)}\n"
	".top{float:right;font-size:12px;color:var(--dim)}\n"
	"@media(max-width:760px){.page{display:block}nav{position:static;max-height:35vh;"
	"border-right:0;border-bottom:1px solid var(--line)}main,header{padding:10px}\n"
	"colgroup{display:none}table,tbody{display:block}\n"
	"tr{display:grid;grid-template-columns:3.4em minmax(0,1fr)}\n"
	"td.h{grid-column:1/3}tr.s td.o,td.e{display:none}}\n";

void web_put_head(struct buf *out, const char *title)
{
	buf_puts(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		      "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
		      "<meta name=\"referrer\" content=\"no-referrer\">\n"
		      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		      "<title>");
	web_put_text(out, title, strlen(title));
	buf_printf(out, "</title>\n<style>\n%s</style>\n</head>\n<body id=\"top\">\n", style);
}

void web_put_tail(struct buf *out)
{
	buf_puts(out, "</body>\n</html>\n");
}

/* ---- side by side ---- */

struct line {
	const char *text;
	size_t n, number;
	bool whole;
};

/* Lines that go and come wait until all of a place are known, and stand beside each other then. */
struct sides {
	struct buf *out;
	struct line *gone, *come;
	size_t gone_count, come_count, gone_cap, come_cap;
	size_t old_line, new_line;
	size_t rows, most_rows;
	bool cut;
	bool one; /* the other side is empty: no room for it */
};

static void put_cells(struct sides *s, const struct line *l, char kind, bool is_old)
{
	const char *side = is_old ? " o" : "";

	if (!l && s->one)
		return;
	if (!l) {
		buf_printf(s->out, "<td class=\"n e%s\"></td><td class=\"e%s\"></td>", side, side);
		return;
	}
	buf_printf(s->out, "<td class=\"n %c%s\">%zu</td><td class=\"%c%s\">", kind, side,
		   l->number, kind, side);
	web_put_text(s->out, l->text, l->n);
	buf_puts(s->out, l->whole ? "</td>" : "<span class=\"note\"> (no newline)</span></td>");
}

static bool has_room(struct sides *s)
{
	s->cut |= s->rows >= s->most_rows;
	s->rows++;
	return !s->cut;
}

static void flush(struct sides *s)
{
	size_t n = s->gone_count > s->come_count ? s->gone_count : s->come_count;

	for (size_t i = 0; i < n && has_room(s); i++) {
		buf_puts(s->out, "<tr>");
		put_cells(s, i < s->gone_count ? &s->gone[i] : NULL, 'd', true);
		put_cells(s, i < s->come_count ? &s->come[i] : NULL, 'a', false);
		buf_puts(s->out, "</tr>\n");
	}
	s->gone_count = s->come_count = 0;
}

static int wait_line(struct line **lines, size_t *count, size_t *cap, struct line l)
{
	if (*count == *cap) {
		size_t grown_cap = *cap ? *cap * 2 : 32;
		struct line *grown = reallocarray(*lines, grown_cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		*lines = grown;
		*cap = grown_cap;
	}
	(*lines)[(*count)++] = l;
	return 0;
}

static int see_hunk(void *ctx, size_t old_line, size_t old_count, size_t new_line, size_t new_count)
{
	struct sides *s = ctx;

	flush(s);
	s->old_line = old_count ? old_line : old_line + 1;
	s->new_line = new_count ? new_line : new_line + 1;
	if (has_room(s))
		buf_printf(s->out,
			   "<tr><td class=\"h\" colspan=\"%d\">@@ -%zu,%zu +%zu,%zu @@</td></tr>\n",
			   s->one ? 2 : 4, old_line, old_count, new_line, new_count);
	return 0;
}

static int see_line(void *ctx, char sign, const char *text, size_t n, bool whole)
{
	struct sides *s = ctx;
	struct line l = { text, n, 0, whole };

	if (s->cut)
		return 0;
	if (sign == '-') {
		l.number = s->old_line++;
		return wait_line(&s->gone, &s->gone_count, &s->gone_cap, l);
	}
	if (sign == '+') {
		l.number = s->new_line++;
		return wait_line(&s->come, &s->come_count, &s->come_cap, l);
	}
	flush(s);
	if (!has_room(s))
		return 0;
	buf_puts(s->out, "<tr class=\"s\">");
	l.number = s->old_line++;
	put_cells(s, &l, 's', true);
	l.number = s->new_line++;
	put_cells(s, &l, 's', false);
	buf_puts(s->out, "</tr>\n");
	return 0;
}

int web_put_sides(struct buf *out, const struct buf *old_text, const struct buf *new_text,
		  size_t most_rows, bool *ret_cut)
{
	static const struct diff_ops ops = { see_hunk, see_line };
	struct sides s = { .out = out,
			   .most_rows = most_rows,
			   .one = !old_text->len || !new_text->len };
	struct diff_counts counts;
	int status;

	buf_printf(out, "<table><colgroup><col class=\"n\"><col>%s</colgroup><tbody>\n",
		   s.one ? "" : "<col class=\"n\"><col>");
	status = diff_texts(buf_text(old_text), old_text->len, buf_text(new_text), new_text->len,
			    &ops, &s, &counts);
	flush(&s);
	buf_puts(out, "</tbody></table>\n");
	free(s.gone);
	free(s.come);
	*ret_cut = s.cut;
	return status < 0 ? status : out->failed ? -ENOMEM : 0;
}
