/*
 * What ward-ask tells programs inside: what the sandbox may do, and what was refused so far. In:
 * the plan, the gateway's rules, the result as it is now. Out: text, or JSON. Paths are those
 * inside; where secrets come from, what is hidden and what approvals.never names is not shown. Runs
 * in the supervisor.
 */
#include "run/box_proposals.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"

static const char *mode_of(const struct rules *r)
{
	static const char *const names[] = {
		[RULES_NONE] = "none", [RULES_RESTRICTED] = "restricted", [RULES_OPEN] = "open"
	};

	return r ? names[r->network] : names[RULES_NONE];
}

static const char *kind_of(const struct rule *rule)
{
	return rule->deny ? "deny" : rule->ask ? "ask" : "allow";
}

static bool is_told(const struct plan_mount *m)
{
	return m->kind == MOUNT_BIND && m->from_policy && !m->view;
}

/* -- for a program */

static void put_network(const struct rules *r, struct json *j)
{
	json_begin_object(j, "network");
	json_string(j, "mode", mode_of(r));
	json_begin_array(j, "rules");
	for (uint32_t i = 0; r && i < r->n_items; i++) {
		auto_buf text = { 0 };

		if (r->items[i].dead)
			continue;
		rules_text(r, (int32_t)i, &text);
		json_begin_object(j, NULL);
		json_string(j, "rule", text.failed ? "?" : buf_text(&text));
		json_string(j, "action", kind_of(&r->items[i]));
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

static void put_list(const char *key, const struct strv *list, struct json *j)
{
	json_begin_array(j, key);
	for (size_t i = 0; i < list->len; i++)
		json_string(j, NULL, list->items[i]);
	json_end_array(j);
}

static void rules_json(const struct box *b, const struct rules *r, struct buf *out)
{
	const struct plan *p = b->plan;
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	put_network(r, &j);
	json_begin_array(&j, "files");
	for (size_t i = 0; i < p->mount_count; i++)
		if (is_told(&p->mounts[i])) {
			json_begin_object(&j, NULL);
			json_string(&j, "path", p->mounts[i].target);
			json_bool(&j, "writable", p->mounts[i].writable);
			json_end_object(&j);
		}
	json_end_array(&j);
	put_list("files_ask", &p->asks, &j);
	put_list("commands", &p->spec->policy.proc_commands, &j);
	json_end_object(&j);
	buf_puts(out, "\n");
}

/* -- for a reader */

static void put_lines(const char *title, const struct strv *list, struct buf *out)
{
	for (size_t i = 0; i < list->len; i++) {
		buf_printf(out, "%s  ", i ? "" : title);
		text_escape(out, list->items[i]);
		buf_puts(out, "\n");
	}
}

void box_tell_rules(const struct box *b, bool as_json, struct buf *out)
{
	const struct rules *r = b->egress ? egress_rules(b->egress) : NULL;
	const struct plan *p = b->plan;

	if (as_json) {
		rules_json(b, r, out);
		return;
	}
	buf_printf(out, "network: %s\n", mode_of(r));
	for (uint32_t i = 0; r && i < r->n_items; i++)
		if (!r->items[i].dead) {
			buf_printf(out, "  %s ", kind_of(&r->items[i]));
			rules_text(r, (int32_t)i, out);
			buf_puts(out, "\n");
		}
	buf_puts(out, "files, beside the system's:\n");
	for (size_t i = 0; i < p->mount_count; i++)
		if (is_told(&p->mounts[i])) {
			buf_printf(out, "  %s ", p->mounts[i].writable ? "read and write" : "read");
			text_escape(out, p->mounts[i].target);
			buf_puts(out, "\n");
		}
	put_lines("files that a person is asked about:\n", &p->asks, out);
	put_lines("commands:\n", &p->spec->policy.proc_commands, out);
	buf_puts(out, "more: ward-ask allow HOST[:PORT]|/PATH --reason TEXT\n");
}

void box_tell_denials(const struct box *b, bool as_json, struct buf *out)
{
	const struct result *r = b->result;
	struct json j = { .out = out };

	if (as_json) {
		json_begin_object(&j, NULL);
		json_begin_array(&j, "denials");
	}
	for (size_t i = 0; i < r->denial_count; i++) {
		const struct denial *d = &r->denials[i];

		if (!as_json) {
			buf_printf(out, "%s: %s%s%s\n", d->what, d->why,
				   d->remedy && *d->remedy ? "; to allow it: " : "",
				   d->remedy ? d->remedy : "");
			continue;
		}
		json_begin_object(&j, NULL);
		json_string(&j, "what", d->what);
		json_string(&j, "why", d->why);
		json_string(&j, "remedy", d->remedy);
		json_uint(&j, "count", d->count);
		json_end_object(&j);
	}
	if (as_json) {
		json_end_array(&j);
		json_end_object(&j);
		buf_puts(out, "\n");
	} else if (!r->denial_count) {
		buf_puts(out, "nothing was refused so far\n");
	}
}
