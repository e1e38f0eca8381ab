/*
 * Remedies as options. In: changes of the policy (explain.h). Out: the options of `ward run` that
 * make the same change for one run, to be pasted: tables/options.def says which option sets which
 * field, --set and --add do the rest. Texts may come from a sandbox: explain.c has let only such
 * through as a policy can hold and a terminal bears, and here they are quoted for a shell. Pure
 * functions; run by ward-explain, and by the supervisor when the sandbox is dead.
 */
#include "observe/advice.h"

#include <string.h>

#include "base/text.h"
#include "model/plan.h"
#include "policy/policy.h"

enum kind {
	KIND_ONE,
	KIND_MANY,
	KIND_MOUNT_RO,
	KIND_MOUNT_RW,
	KIND_PAIR,
	KIND_ENTRY,
	KIND_SECRET,
	KIND_SSH,
	KIND_BELOW
};

static const struct option {
	const char *name, *field;
	enum kind kind;
} options[] = {
#define FIELD(verbs, letter, name, metavar, kind, field, help) { name, field, KIND_##kind },
#include "options.def"
};

/* --secret and --ssh have forms of their own, which no change of a policy is turned into. */
static const struct option *find_option(const char *field)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (options[i].kind != KIND_SECRET && options[i].kind != KIND_SSH &&
		    strcmp(options[i].field, field) == 0)
			return &options[i];
	return NULL;
}

/* Behind another word an equals sign is no assignment. */
static bool is_safe(const char *word)
{
	const char *sign = strchr(word, '=');
	auto_free char *before = sign ? strndup(word, (size_t)(sign - word)) : NULL;

	return text_is_plain(word) || (before && text_is_plain(before) && text_is_plain(sign + 1));
}

static void put_word(struct buf *out, const char *word)
{
	if (is_safe(word)) {
		buf_puts(out, word);
		return;
	}
	buf_puts(out, "'");
	for (; *word; word++)
		if (*word == '\'')
			buf_puts(out, "'\\''");
		else
			buf_add(out, word, 1);
	buf_puts(out, "'");
}

/* `{path: "A", at: "B"}` as A:B. False: it says more, or has characters that an option would read
 * otherwise. */
static bool read_mount(const char *value, struct buf *ret)
{
	const char *from = value + 8, *from_end, *at, *at_end;

	if (*value != '{' && !strchr(value, ':')) {
		buf_puts(ret, value);
		return true;
	}
	if (strncmp(value, "{path: \"", 8) != 0)
		return false;
	from_end = strchr(from, '"');
	if (!from_end || strncmp(from_end, "\", at: \"", 8) != 0 ||
	    memchr(from, ':', (size_t)(from_end - from)))
		return false;
	at = from_end + 8;
	at_end = strchr(at, '"');
	if (!at_end || strcmp(at_end, "\"}") != 0 || strchr(value, '\\') || strchr(at, ':'))
		return false;
	buf_add(ret, from, (size_t)(from_end - from));
	buf_puts(ret, ":");
	buf_add(ret, at, (size_t)(at_end - at));
	return !ret->failed;
}

static bool is_list(const char *field)
{
	static const char *const lists[] = { "COMMANDS", "ENUMS", "GRANTS", "INGRESS", "MOUNTS",
					     "PRICES",   "RULES", "SINKS",  "SSH",     "STRINGS" };

	for (enum policy_field f = 0; f < POLICY_FIELDS; f++)
		for (size_t i = 0; strcmp(policy_row(f)->path, field) == 0 && i < ARRAY_LEN(lists);
		     i++)
			if (strcmp(policy_row(f)->type, lists[i]) == 0)
				return true;
	return false;
}

/* `{path: "A", mode: read_write}`: A. */
static bool read_writable(const char *value, struct buf *ret)
{
	static const char behind[] = "\", mode: read_write}";
	const char *from = value + 8, *end;

	if (strncmp(value, "{path: \"", 8) != 0)
		return false;
	end = strchr(from, '"');
	if (!end || strcmp(end, behind) != 0 || memchr(from, '\\', (size_t)(end - from)) ||
	    memchr(from, ':', (size_t)(end - from)))
		return false;
	buf_add(ret, from, (size_t)(end - from));
	return !ret->failed;
}

/* The value as the option itself takes it. False: it needs --set or --add. */
static bool read_own(const struct option *o, const char *value, struct buf *ret)
{
	if (!o || *value == '-')
		return false;
	if (o->kind == KIND_MOUNT_RO)
		return read_mount(value, ret);
	/* a map, and what begins as a list does: "[::1]:80" */
	if (o->kind != KIND_ONE && (o->kind != KIND_MANY || *value == '{' || *value == '['))
		return false;
	buf_puts(ret, value);
	return true;
}

static void put_change(const struct explain_change *c, struct buf *out)
{
	const struct option *o = find_option(c->field);
	auto_buf word = { 0 }, writable = { 0 };

	if (o && o->kind == KIND_MOUNT_RO && read_writable(c->value, &writable)) {
		buf_puts(out, "--rw ");
		put_word(out, buf_text(&writable));
		return;
	}
	if (read_own(o, c->value, &word)) {
		buf_printf(out, "--%s ", o->name);
		put_word(out, buf_text(&word));
		return;
	}
	buf_printf(out, "--%s %s=", is_list(c->field) ? "add" : "set", c->field);
	put_word(out, c->value);
}

/* --allow and --service give the run a network by themselves. */
static bool is_implied(const struct explain_change *changes, size_t count, size_t i)
{
	for (size_t k = 0; strcmp(changes[i].field, "network.mode") == 0 && k < count; k++)
		if (strcmp(changes[k].field, "network.egress_allowlist") == 0 ||
		    strcmp(changes[k].field, "network.host_services") == 0)
			return true;
	return false;
}

void advice_option(const struct explain_change *changes, size_t count, bool file, struct buf *out)
{
	size_t before = out->len;

	for (size_t i = 0; i < count; i++) {
		if (is_implied(changes, count, i))
			continue;
		buf_puts(out, out->len > before ? " " : "");
		put_change(&changes[i], out);
	}
	if (out->len > before && file)
		buf_puts(out, " --widen");
}

void advice_fill(struct result *r, const struct plan *p)
{
	for (size_t i = 0; i < r->denial_count; i++) {
		struct denial *d = &r->denials[i];
		struct explain_change c;
		auto_buf text = { 0 };

		if (!d->remedy || !explain_read_line(d->remedy, &c))
			continue;
		advice_option(&c, 1, p && p->spec->policy_file && !p->spec->widened, &text);
		free(c.value);
		free(d->option);
		d->option = text.len && !text.failed ? strdup(buf_text(&text)) : NULL;
	}
}
