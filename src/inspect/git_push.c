/*
 * Commands of a push (git_push.h). In: a body from inside, from its first byte on. Out: which refs
 * are to become what; and an answer that git shows. Read as git-receive-pack does, and what that
 * would let pass in silence (capabilities behind a later command, a ref that is none, a ref twice)
 * is refused. Runs in front.
 */
#include "inspect/git_push.h"

#include <stdlib.h>
#include <string.h>

#define PACKET_MAX 65520

enum { READ_COMMANDS, READ_OPTIONS, READ_DONE };

void git_push_free(struct git_push *p)
{
	free(p->commands);
	*p = (struct git_push){ 0 };
}

static int hex(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The length of the packet with its four digits; 0: a flush; 1: more is needed; -1: none. */
static int packet_length(const uint8_t *bytes, size_t n)
{
	int len = 0;

	for (size_t i = 0; i < 4; i++) {
		int digit;

		if (i == n)
			return 1;
		digit = hex(bytes[i]);
		if (digit < 0)
			return -1;
		len = len << 4 | digit;
	}
	if (len && (len <= 4 || len > PACKET_MAX))
		return -1;
	return (size_t)len > n ? 1 : len;
}

static int bad(struct git_push *p, const char *why)
{
	p->wrong = why;
	return -1;
}

/* -- one command */

static bool take_id(const uint8_t *text, unsigned id_len, uint8_t *ret, bool *ret_none)
{
	*ret_none = true;
	for (unsigned i = 0; i < id_len; i++) {
		int high = hex(text[2 * i]), low = hex(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		ret[i] = (uint8_t)(high << 4 | low);
		*ret_none &= !ret[i];
	}
	return true;
}

static bool is_ref(const char *s, size_t n)
{
	if (n <= 5 || n > 1024 || memcmp(s, "refs/", 5) != 0 || s[n - 1] == '/' || s[n - 1] == '.')
		return false;
	for (size_t i = 0; i < n; i++) {
		if ((uint8_t)s[i] <= ' ' || s[i] == 0x7f || strchr("~^:?*[\\", s[i]))
			return false;
		if (i && ((s[i] == '.' && (s[i - 1] == '.' || s[i - 1] == '/')) ||
			  (s[i] == '/' && s[i - 1] == '/') || (s[i] == '{' && s[i - 1] == '@')))
			return false;
	}
	return true;
}

static bool has_word(const char *list, size_t n, const char *word)
{
	size_t k = strlen(word);

	for (size_t i = 0; i + k <= n; i++)
		if (memcmp(list + i, word, k) == 0 && (i == 0 || list[i - 1] == ' ') &&
		    (i + k == n || list[i + k] == ' '))
			return true;
	return false;
}

/* As a word, or as a name with a value. */
static bool has_name(const char *list, size_t n, const char *name)
{
	size_t k = strlen(name);

	for (size_t i = 0; i + k <= n; i++)
		if (memcmp(list + i, name, k) == 0 && (i == 0 || list[i - 1] == ' ') &&
		    (i + k == n || list[i + k] == ' ' || list[i + k] == '='))
			return true;
	return false;
}

static const char *take_capabilities(struct git_push *p, const char *list, size_t n)
{
	while (n && (list[n - 1] == '\n' || list[n - 1] == '\0'))
		n--;
	for (size_t i = 0; i < n; i++)
		/* git takes any white space between them */
		if ((uint8_t)list[i] < ' ' || list[i] == 0x7f)
			return "a control character among the capabilities";
	p->report = has_word(list, n, "report-status") || has_word(list, n, "report-status-v2");
	p->sideband = has_word(list, n, "side-band-64k");
	p->options = has_name(list, n, "push-options");
	if (memmem(list, n, "object-format=", 14) &&
	    !has_word(list, n, p->id_len == 32 ? "object-format=sha256" : "object-format=sha1"))
		return "an unknown object format";
	return NULL;
}

static bool is_twice(const struct git_push *p, const uint8_t *bytes, const struct git_command *c)
{
	for (unsigned i = 0; i < p->count; i++)
		if (p->commands[i].ref_len == c->ref_len &&
		    memcmp(bytes + p->commands[i].ref, bytes + c->ref, c->ref_len) == 0)
			return true;
	return false;
}

static bool keep(struct git_push *p, const struct git_command *c)
{
	if (p->count == p->cap) {
		unsigned cap = p->cap ? p->cap * 2 : 4;
		struct git_command *grown = realloc(p->commands, cap * sizeof(*grown));

		if (!grown)
			return false;
		p->commands = grown;
		p->cap = cap;
	}
	p->commands[p->count++] = *c;
	return true;
}

/* "OLD NEW REF", of the first with NUL and capabilities behind; n bytes at `at`. */
static const char *take_command(struct git_push *p, const uint8_t *bytes, size_t at, size_t n)
{
	const char *line = (const char *)bytes + at, *nul = memchr(line, '\0', n);
	size_t len = nul ? (size_t)(nul - line) : n, id;
	struct git_command c = { .ref = 0 };

	if (!nul && len && line[len - 1] == '\n')
		len--;
	id = len > 64 && line[40] != ' ' ? 64 : 40;
	if (len < 2 * id + 2 + 5 || line[id] != ' ' || line[2 * id + 1] != ' ')
		return "an invalid command in a push";
	if (p->id_len && p->id_len != id / 2)
		return "ids of different object formats";
	p->id_len = (unsigned)id / 2;
	if (!take_id(bytes + at, p->id_len, c.old, &c.create) ||
	    !take_id(bytes + at + id + 1, p->id_len, c.new, &c.delete))
		return "an invalid id";
	c.ref = at + 2 * id + 2;
	c.ref_len = len - 2 * id - 2;
	if (!is_ref((const char *)bytes + c.ref, c.ref_len))
		return "an invalid ref name";
	if (nul && p->count)
		return "capabilities after the first command";
	if ((c.create && c.delete) || p->count == GIT_COMMANDS_MAX || is_twice(p, bytes, &c))
		return "too many commands, a command without effect, or two for one ref";
	if (nul) {
		const char *wrong = take_capabilities(p, nul + 1, n - len - 1);

		if (wrong)
			return wrong;
	}
	return keep(p, &c) ? NULL : "out of memory";
}

static const char *take_line(struct git_push *p, const uint8_t *bytes, size_t at, size_t n)
{
	if (n >= 8 && memcmp(bytes + at, "shallow ", 8) == 0 && !p->count) {
		bool none;
		size_t id = n - 8 - (bytes[at + n - 1] == '\n');
		uint8_t unused[GIT_ID_MAX];

		return (id == 40 || id == 64) &&
				       take_id(bytes + at + 8, (unsigned)id / 2, unused, &none)
			       ? NULL
			       : "an invalid id";
	}
	if (n >= 9 && memcmp(bytes + at, "push-cert", 9) == 0)
		return "a signed push: its certificate is not inspected";
	return take_command(p, bytes, at, n);
}

int git_push_take(struct git_push *p, const uint8_t *bytes, size_t n)
{
	while (p->state != READ_DONE) {
		int len = packet_length(bytes + p->at, n - p->at);

		if (len < 0)
			return bad(p, "not a pkt-line");
		if (len == 1)
			return n > GIT_COMMANDS_BYTES ? bad(p, "too many commands") : 0;
		if (len == 0) {
			p->state =
				p->state == READ_COMMANDS && p->options ? READ_OPTIONS : READ_DONE;
			p->at += 4;
			continue;
		}
		if (p->state == READ_COMMANDS) {
			const char *wrong = take_line(p, bytes, p->at + 4, (size_t)len - 4);

			if (wrong)
				return bad(p, wrong);
		}
		p->at += (size_t)len;
		if (p->at > GIT_COMMANDS_BYTES)
			return bad(p, "too many commands");
	}
	return 1;
}

/* -- the answer */

static void put_packet(struct buf *out, int band, const char *text, size_t n)
{
	for (size_t at = 0; at < n;) {
		size_t some = n - at > 60000 ? 60000 : n - at;

		buf_printf(out, "%04zx", some + 4 + (band ? 1 : 0));
		if (band)
			buf_add(out, (const char[]){ (char)band }, 1);
		buf_add(out, text + at, some);
		at += some;
	}
}

void git_push_report(const struct git_push *p, const uint8_t *bytes, const char *const *whys,
		     const char *message, struct buf *out)
{
	auto_buf report = { 0 }, line = { 0 };

	if (p->report) {
		put_packet(&report, 0, "unpack ok\n", 10);
		for (unsigned i = 0; i < p->count; i++) {
			line.len = 0;
			buf_puts(&line, "ng ");
			buf_add(&line, bytes + p->commands[i].ref, p->commands[i].ref_len);
			buf_printf(&line, " %s\n", whys[i]);
			put_packet(&report, 0, line.data, line.len);
		}
		buf_puts(&report, "0000");
	}
	line.len = 0;
	buf_printf(&line, p->sideband ? "%s\n" : "ERR %s\n", message);
	if (p->sideband) {
		put_packet(out, 2, line.data, line.len);
		put_packet(out, 1, report.data, report.len);
		buf_puts(out, "0000");
	} else if (p->report) {
		buf_add(out, report.data, report.len);
	} else {
		put_packet(out, 0, line.data, line.len);
	}
	out->failed |= report.failed || line.failed;
}
