/*
 * What a checkpoint is, and whether a sandbox may go on from it. In: a record's bytes, or a plan.
 * Out: the record, or in what the plan is another one. Pure functions over bytes and plans. A
 * record is text: a first line, lines of "name value", an empty line, the command's words (each
 * ended by a NUL), and what must be the same.
 *
 * That is everything of the policy but variables (what runs has its own), the places and sizes of
 * what is mounted, ids and limits, and what the inner runtime adds (its own version). What the host
 * gives every sandbox (/usr, /etc) is not compared: a program whose libraries were replaced
 * meanwhile will crash inside.
 */
#include "state/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "event/table_names.h"
#include "model/inner.h"
#include "policy/units.h"
#include "state/boxes.h"

#define VALUE_SHOWN 200
#define FIRST_LINE "ward checkpoint 1\n"

void checkpoint_clear(struct checkpoint *c)
{
	strv_free(&c->command);
	free(c->workspace);
	free(c->same);
	free(c->path);
	*c = (struct checkpoint){ 0 };
}

bool checkpoint_is_name(const char *name)
{
	return boxes_is_name(name) && strcmp(name, "ls") != 0 && strcmp(name, "rm") != 0;
}

/* ---- the record ---- */

static bool read_number(const char *text, uint64_t *ret)
{
	return units_parse_uint(text, ret) == 0;
}

static bool is_digest(const char *text)
{
	return strlen(text) == SHA256_HEX - 1 && strspn(text, "0123456789abcdef") == SHA256_HEX - 1;
}

static bool copy_text(char *to, size_t size, const char *text)
{
	return (size_t)snprintf(to, size, "%s", text) < size;
}

/* One "name value"; words says how many follow. */
static bool read_line(struct checkpoint *c, const char *name, const char *value, uint64_t *words)
{
	if (strcmp(name, "image") == 0)
		return boxes_is_name(value) && copy_text(c->image, sizeof(c->image), value);
	if (strcmp(name, "sha256") == 0)
		return is_digest(value) && copy_text(c->sha256, sizeof(c->sha256), value);
	if (strcmp(name, "box") == 0)
		return boxes_is_name(value) && copy_text(c->box, sizeof(c->box), value);
	if (strcmp(name, "bytes") == 0)
		return read_number(value, &c->bytes);
	if (strcmp(name, "created") == 0)
		return read_number(value, &c->created_ms);
	return strcmp(name, "words") == 0 && read_number(value, words);
}

/* Lines up to the empty one; *at is behind that. */
static bool read_lines(struct checkpoint *c, const char **at, const char *end, uint64_t *words)
{
	while (*at < end) {
		const char *nl = memchr(*at, '\n', (size_t)(end - *at));
		size_t n = nl ? (size_t)(nl - *at) : 0;
		char line[256], *space;

		if (!nl || n >= sizeof(line) || memchr(*at, '\0', n))
			return false;
		memcpy(line, *at, n);
		line[n] = '\0';
		*at = nl + 1;
		if (n == 0)
			return c->image[0] && c->sha256[0] && c->box[0];
		space = strchr(line, ' ');
		if (!space)
			return false;
		*space = '\0';
		if (!read_line(c, line, space + 1, words))
			return false;
	}
	return false;
}

static bool read_word(const char **at, const char *end, const char **ret)
{
	const char *zero = *at < end ? memchr(*at, '\0', (size_t)(end - *at)) : NULL;

	if (!zero)
		return false;
	*ret = *at;
	*at = zero + 1;
	return true;
}

int checkpoint_parse(const char *bytes, size_t n, struct checkpoint *ret)
{
	const char *at = bytes, *end = bytes + n, *word;
	struct checkpoint c = { 0 };
	uint64_t words = 0;
	bool good = n > strlen(FIRST_LINE) && memcmp(bytes, FIRST_LINE, strlen(FIRST_LINE)) == 0;

	at += good ? strlen(FIRST_LINE) : 0;
	good = good && read_lines(&c, &at, end, &words) && read_word(&at, end, &word) &&
	       *word == '/';
	if (good)
		c.workspace = strdup(word);
	for (uint64_t i = 0; i < words && good; i++) {
		good = read_word(&at, end, &word);
		if (good)
			strv_add(&c.command, word);
	}
	good = good && !memchr(at, '\0', (size_t)(end - at));
	if (good)
		c.same = strndup(at, (size_t)(end - at));
	if (!good || !c.same || !c.workspace || c.command.failed) {
		checkpoint_clear(&c);
		return good ? -ENOMEM : -EINVAL;
	}
	*ret = c;
	return 0;
}

void checkpoint_write(const struct checkpoint *c, struct buf *out)
{
	buf_puts(out, FIRST_LINE);
	buf_printf(out,
		   "image %s\nsha256 %s\nbox %s\nbytes %" PRIu64 "\ncreated %" PRIu64
		   "\nwords %zu\n\n",
		   c->image, c->sha256, c->box, c->bytes, c->created_ms, c->command.len);
	buf_add(out, c->workspace, strlen(c->workspace) + 1);
	for (size_t i = 0; i < c->command.len; i++)
		buf_add(out, c->command.items[i], strlen(c->command.items[i]) + 1);
	buf_puts(out, c->same);
}

/* ---- whether there can be one ---- */

/* What could not come back. */
static int refuse_plan(const struct plan *p, struct ward_err *e)
{
	if (p->net.on) {
		ward_fail(e, ENOTSUP,
			  "a sandbox with a network cannot be checkpointed: its connections are "
			  "sockets of the host, which cannot be saved");
		return ward_remedy(e, "network.mode: none");
	}
	if (p->spec->tty) {
		ward_fail(e, ENOTSUP, "a sandbox with a terminal cannot be checkpointed");
		return ward_remedy(e, "ward run -d without -t");
	}
	if (p->review) {
		ward_fail(e, ENOTSUP,
			  "a sandbox under review cannot be checkpointed: its changes belong to "
			  "this run");
		return ward_remedy(e, "filesystem.mode: read_write");
	}
	return 0;
}

int checkpoint_possible(const struct plan *p, const char *no_snapshot, struct strv *words,
			struct ward_err *e)
{
	const struct inner *w = p->spec->inner;
	const char *why = w ? w->no_snapshot : no_snapshot;
	size_t n = why ? strcspn(why, "\n") : 0;
	int r = refuse_plan(p, e);

	if (!w || !w->snapshot) {
		ward_fail(e, ENOTSUP, "isolation: %s does not support checkpoints: %.*s",
			  plan_isolation(p), (int)n, why ? why : "");
		return why && why[n] ? ward_remedy(e, "%s", why + n + 1) : -ENOTSUP;
	}
	if (r == 0)
		r = w->snapshot(p, words, e);
	return r == 0 && words->failed ? ward_fail(e, ENOMEM, "out of memory") : r;
}

/* ---- what must be the same ---- */

/* A value on one line, another one for every other text. */
static void put_value(struct buf *out, const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == '\\' || *text == 127)
			buf_printf(out, "\\x%02x", (unsigned char)*text);
		else
			buf_add(out, text, 1);
}

static void put_line(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, "%s: ", key);
	put_value(out, value ? value : "none");
	buf_puts(out, "\n");
}

static void put_policy(const struct plan *p, struct buf *out)
{
	for (enum policy_field f = 0; f < POLICY_FIELDS; f++) {
		auto_free char *value = NULL;

		if (f == POLICY_F_proc_env)
			continue; /* what runs has its own; they may be secrets */
		value = policy_text(&p->spec->policy, f);
		if (!value)
			out->failed = true;
		put_line(out, policy_row(f)->path, value);
	}
}

static void put_mounts(const struct plan *p, struct buf *out)
{
	for (size_t i = 0; i < p->mount_count; i++) {
		const struct plan_mount *m = &p->mounts[i];

		if (m->system || (m->kind != MOUNT_BIND && m->kind != MOUNT_TMPFS) ||
		    path_is_beneath(m->target, "/.ward"))
			continue; /* ward's own */
		buf_puts(out, "mount ");
		put_value(out, m->target);
		buf_printf(out, ": %u %s%s%s %" PRIu64 " %o ", (unsigned)m->kind,
			   m->writable ? "rw" : "ro", m->noexec ? " noexec" : "",
			   m->review ? " review" : "", m->bytes, m->mode);
		if (m->kind == MOUNT_BIND)
			put_value(out, m->source);
		buf_puts(out, "\n");
	}
}

void checkpoint_same(const struct plan *p, struct buf *out)
{
	put_line(out, "isolation", plan_isolation(p));
	put_line(out, "ward", WARD_VERSION);
	put_line(out, "workspace", p->workspace);
	put_policy(p, out);
	put_line(out, "image", p->image.root);
	put_line(out, "image's digest", p->image.root ? p->image.digest : NULL);
	buf_printf(out, "ids: %u %u:%u inside %u:%u\n", (unsigned)p->ids.mode,
		   p->ids.mode == IDS_MAPPED ? 0 : p->ids.host_uid,
		   p->ids.mode == IDS_MAPPED ? 0 : p->ids.host_gid, p->ids.inside_uid,
		   p->ids.inside_gid); /* where they are mapped each sandbox has its own */
	for (enum limit l = 0; l < LIMITS; l++)
		buf_printf(out, "limit %s: %" PRIu64 "\n", limit_name(l), p->limits[l].value);
	put_mounts(p, out);
	for (size_t i = 0; i < p->inner_same.len; i++)
		buf_printf(out, "%s\n", p->inner_same.items[i]);
}

/* The value that a text has for a key of n characters. */
static void put_side(struct buf *out, const char *text, const char *key, size_t n)
{
	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		size_t len = strcspn(text, "\n");

		if (len < n + 2 || strncmp(text, key, n) != 0 || text[n] != ':')
			continue;
		len -= n + 2;
		buf_printf(out, "%.*s", len > VALUE_SHOWN ? VALUE_SHOWN : (int)len, text + n + 2);
		return;
	}
	buf_puts(out, "not there");
}

/* Whether a text has the key that a line begins with. */
static bool has_key(const char *text, const char *line)
{
	size_t n = strcspn(line, ":\n");

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
		if (strncmp(text, line, n) == 0 && text[n] == ':')
			return true;
	return false;
}

void checkpoint_difference(const char *then, const char *now, struct buf *out)
{
	const char *a = then, *b = now, *line;
	size_t key;

	while (*a && *b) {
		size_t n = strcspn(a, "\n");

		if (n != strcspn(b, "\n") || memcmp(a, b, n) != 0)
			break;
		a += n + (a[n] == '\n');
		b += n + (b[n] == '\n');
	}
	/* what was taken away, rather than what now stands in its place */
	line = *b && !(*a && has_key(then, b) && !has_key(now, a)) ? b : a;
	key = strcspn(line, ":\n");
	buf_printf(out, "%.*s was ", key > VALUE_SHOWN ? VALUE_SHOWN : (int)key, line);
	put_side(out, then, line, key);
	buf_puts(out, " at the checkpoint and is ");
	put_side(out, now, line, key);
	buf_puts(out, " now");
}

int checkpoint_match(const struct plan *p, struct ward_err *e)
{
	const struct checkpoint *c = p->spec->restore;
	auto_buf now = { 0 }, difference = { 0 };

	checkpoint_same(p, &now);
	if (now.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (strcmp(c->same, buf_text(&now)) == 0)
		return 0;
	checkpoint_difference(c->same, buf_text(&now), &difference);
	ward_fail(e, EPERM, "the checkpoint %s was made under another policy: %s", c->name,
		  buf_text(&difference));
	return ward_remedy(e, "use the policy file and options of the original run; only --name, "
			      "--env and output options may differ");
}
