/*
 * Hints. In: every event of a run, on its way to the journal. Out: a few lines on standard error
 * for its reader, often an agent: what was refused, why, and the command with which the operator
 * could allow it. Runs in the supervisor, and only with --hints.
 *
 * The sandbox can write the same lines to standard error: a hint helps, but proves nothing. Each
 * line begins with the same words and holds no terminal control sequences; the first hint names the
 * command that shows the journal, which no process inside can write. There are at most HINTS_MAX
 * hints of LINE_BYTES a line, whatever happens inside, and each denial is reported once. Writing
 * never blocks: what does not fit at once is kept for the end.
 *
 * Programs look for many files that they can do without, so missing files are reported only if the
 * command has failed: the last ones it looked for.
 */
#include "observe/hints.h"

#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "event/event.h"
#include "observe/explain.h"
#include "observe/missing.h"

#define HINTS_MAX 10
#define MISSING_MAX 4
#define LINE_BYTES 500
#define KNOWN_MAX 64

struct hints {
	struct event_sink sink; /* first member: the sink that receives events */
	struct event_sink *next;
	struct explain_run about;
	char run[32];
	bool held;
	unsigned type; /* of standard error, as in st_mode */
	unsigned reported;
	uint64_t more; /* denials beyond HINTS_MAX */
	uint64_t known[KNOWN_MAX];
	size_t known_count;
	struct buf kept;                 /* lines that wait for the end */
	struct buf missing[MISSING_MAX]; /* the last ones */
	uint64_t missing_count;
};

static struct hints *of(struct event_sink *s)
{
	return (struct hints *)(void *)s;
}

/* "ward: hint 3: ..." */
static void put_line(struct buf *out, unsigned number, const char *text)
{
	buf_printf(out, "ward: hint %u: %.*s%s\n", number, LINE_BYTES, text,
		   strlen(text) > LINE_BYTES ? "..." : "");
}

static void put_hint(struct hints *h, const struct ward_event *v, struct buf *out)
{
	auto_explanation x = { 0 };
	auto_buf first = { 0 }, second = { 0 };

	explain_event(v, &h->about, &x);
	buf_printf(&first, "%s was refused: %s (%s)", buf_text(&x.what), buf_text(&x.why), x.layer);
	if (x.change_count) {
		buf_puts(&second, "a person can allow it: ");
		explain_command(&x, &h->about, &second);
	} else if (x.advice.len) {
		buf_puts(&second, buf_text(&x.advice));
	}
	h->reported++;
	if (h->reported == 1)
		buf_printf(out,
			   "ward: hint: lines with \"ward: hint\" are advice; the program inside "
			   "can write such lines, too, so rely on `ward explain %s`\n",
			   h->run);
	put_line(out, h->reported, buf_text(&first));
	if (second.len > LINE_BYTES && x.change_count) { /* a truncated command could do harm */
		second.len = 0;
		buf_printf(&second,
			   "a person can allow it with a command that is too long for this line: "
			   "ward explain %s shows it",
			   h->run);
	}
	if (second.len)
		put_line(out, h->reported, buf_text(&second));
}

/* Writes whole lines as far as they fit without blocking; the rest waits. */
static void tell(struct hints *h, struct buf *lines)
{
	ssize_t n = 0;

	if (!h->held && !h->kept.len && lines->len)
		n = io_write_some(STDERR_FILENO, h->type, lines->data, lines->len);
	if (n < 0)
		n = 0;
	if ((size_t)n < lines->len)
		buf_add(&h->kept, lines->data + n, lines->len - (size_t)n);
}

/* FNV-1a over the fields that make two denials equal. */
static uint64_t key_of(const struct ward_event *v)
{
	static const uint8_t fields[] = { FIELD_OBJECT, FIELD_REASON, FIELD_WHY };
	uint64_t key = 0xcbf29ce484222325 ^ v->kind;

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const struct event_value *value = event_get(v, (enum event_field)fields[i]);

		for (size_t k = 0; value && k < value->len; k++)
			key = (key ^ (unsigned char)value->text[k]) * 0x100000001b3;
	}
	return key;
}

static bool is_known(struct hints *h, const struct ward_event *v)
{
	uint64_t key = key_of(v);

	for (size_t i = 0; i < h->known_count; i++)
		if (h->known[i] == key)
			return true;
	if (h->known_count < KNOWN_MAX)
		h->known[h->known_count++] = key;
	return false;
}

/* Keeps the last few missing files until the command's end. */
static void keep_missing(struct hints *h, const struct ward_event *v)
{
	struct buf *place = &h->missing[h->missing_count++ % MISSING_MAX];
	char line[EVENT_LINE_MAX];

	place->len = 0;
	buf_add(place, line, event_encode(v, line));
}

static bool is_noise(const struct ward_event *v)
{
	const struct event_value *object = event_get(v, FIELD_OBJECT);

	return object && missing_is_noise(object->text);
}

static void take_event(struct hints *h, const struct ward_event *v)
{
	auto_buf lines = { 0 };

	if (!explain_is_denial(v))
		return;
	if (v->kind == EVENT_FILE_MISSING) {
		if (!is_noise(v))
			keep_missing(h, v);
		return;
	}
	if (is_known(h, v))
		return;
	if (h->reported == HINTS_MAX) {
		h->more++;
		return;
	}
	put_hint(h, v, &lines);
	if (!lines.failed)
		tell(h, &lines);
}

static int on_begin(struct event_sink *s, const char *run, struct ward_err *e)
{
	snprintf(of(s)->run, sizeof(of(s)->run), "%s", run);
	return event_begin(of(s)->next, run, e);
}

static void on_take(struct event_sink *s, const struct ward_event *v)
{
	event_emit(of(s)->next, v);
	take_event(of(s), v);
}

static int on_flush(struct event_sink *s, struct ward_err *e)
{
	return event_flush(of(s)->next, e);
}

struct hints *hints_create(const struct plan *p, struct event_sink *next, bool held)
{
	struct hints *h = calloc(1, sizeof(*h));
	const struct policy *policy = &p->spec->policy;
	enum policy_source source = policy->origin[POLICY_F_net_mode].source;
	struct stat st;

	if (!h)
		return NULL;
	h->sink = (struct event_sink){ .begin = on_begin, .take = on_take, .flush = on_flush };
	h->next = next;
	h->held = held;
	h->about = (struct explain_run){ .workspace = p->workspace,
					 .policy_file = p->spec->policy_file,
					 .home = getenv("HOME"),
					 .network_off = policy->net_mode == NET_MODE_NONE ||
							source == POLICY_CLI ||
							source == POLICY_DEFAULT };
	h->type = fstat(STDERR_FILENO, &st) == 0 ? st.st_mode & S_IFMT : 0;
	return h;
}

struct event_sink *hints_sink(struct hints *h)
{
	return &h->sink;
}

static void finish_missing(struct hints *h, struct buf *out)
{
	uint64_t first = h->missing_count > MISSING_MAX ? h->missing_count - MISSING_MAX : 0;
	char scratch[EVENT_LINE_MAX];

	for (uint64_t i = first; i < h->missing_count; i++) {
		const struct buf *line = &h->missing[i % MISSING_MAX];
		struct ward_event v;

		if (!line->failed && event_decode(line->data, line->len, scratch, &v, NULL))
			put_hint(h, &v, out);
	}
	h->more += first;
}

void hints_finish(struct hints *h, bool failed)
{
	if (!h)
		return;
	if (failed)
		finish_missing(h, &h->kept);
	if (h->more)
		buf_printf(&h->kept, "ward: hint: more was refused: ward explain %s\n", h->run);
	if (h->kept.len && !h->kept.failed &&
	    io_write_all(STDERR_FILENO, h->kept.data, h->kept.len) < 0)
		h->more = 0; /* standard error is closed */
	h->kept.len = 0;
	h->more = h->missing_count = 0;
}

void hints_destroy(struct hints *h)
{
	if (!h)
		return;
	buf_free(&h->kept);
	for (size_t i = 0; i < MISSING_MAX; i++)
		buf_free(&h->missing[i]);
	free(h);
}
