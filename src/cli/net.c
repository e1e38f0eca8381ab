/*
 * ward net: what a sandbox that runs may reach. In: show, allow or deny, the name of a sandbox,
 * rules. Out: the network as it is now, or other rules in force when the verb ends. Runs with the
 * user's rights outside of every sandbox; the sandbox's supervisor asks who we are, compiles the
 * rules and hands them to the gateway.
 */
#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "control/client_net.h"
#include "policy/units.h"

#define TEMPORARY_MAX_MS (365ull * 86400 * 1000)

static void put_size(struct buf *out, uint64_t bytes)
{
	char size[32];

	units_format_size(bytes, size, sizeof(size));
	buf_puts(out, size);
}

/* "12 of 100": what was used of a limit; nothing where there is none. */
static void put_limit(struct buf *out, const char *name, uint64_t used, uint64_t limit, bool size)
{
	if (limit == UINT64_MAX)
		return;
	buf_printf(out, "  %s ", name);
	if (size)
		put_size(out, used);
	else
		buf_printf(out, "%" PRIu64, used);
	buf_puts(out, " of ");
	if (size)
		put_size(out, limit);
	else
		buf_printf(out, "%" PRIu64, limit);
	buf_puts(out, "\n");
}

/* What language models have cost, and what is left for them. */
static void put_budget(struct buf *out, const struct control_net_limits *l, uint64_t requests,
		       uint64_t spent, uint64_t held)
{
	if (l->request_rate != UINT64_MAX)
		buf_printf(out, "  %" PRIu64 " requests, at most %" PRIu64 " per minute\n",
			   requests, l->request_rate);
	if (l->spend == UINT64_MAX && !spent && !held)
		return;
	buf_puts(out, "  spent ");
	units_put_money(spent, out);
	if (l->spend != UINT64_MAX) {
		buf_puts(out, " of ");
		units_put_money(l->spend, out);
		buf_puts(out, ", ");
		units_put_money(l->spend > spent ? l->spend - spent : 0, out);
		buf_puts(out, " left");
	}
	if (held) {
		buf_puts(out, ", ");
		units_put_money(held, out);
		buf_puts(out, " reserved for pending requests");
	}
	buf_puts(out, "\n");
}

static void put_limits(struct buf *out, const struct control_net_limits *l, uint64_t open,
		       uint64_t in, uint64_t sent)
{
	put_limit(out, "connections", open, l->connections, false);
	put_limit(out, "received", in, l->receive_bytes, true);
	put_limit(out, "sent", sent, l->send_bytes, true);
	if (l->connection_rate != UINT64_MAX)
		buf_printf(out, "  at most %" PRIu64 " connections per second\n",
			   l->connection_rate);
	if (l->bandwidth != UINT64_MAX) {
		buf_puts(out, "  at most ");
		put_size(out, l->bandwidth);
		buf_puts(out, " a second\n");
	}
}

static void put_rule(struct buf *out, const struct control_net_rule *r)
{
	buf_printf(out, "%4" PRIu32 " %-5s %-40s %6" PRIu64 "  %6" PRIu64 "  ", r->number,
		   r->deny ? "deny" : "allow", r->text, r->hits, r->open);
	put_size(out, r->bytes_in);
	buf_puts(out, " in, ");
	put_size(out, r->bytes_out);
	buf_puts(out, " out");
	if (*client_net_rule_mode(r))
		buf_printf(out, "  mode %s", client_net_rule_mode(r));
	if (r->private)
		buf_puts(out, "  private");
	if (r->added)
		buf_puts(out, "  live");
	if (r->remaining_ms)
		buf_printf(out, "  for %" PRIu64 " s", (r->remaining_ms + 999) / 1000);
	buf_puts(out, "\n");
	put_limits(out, &r->limits, r->open, r->bytes_in, r->bytes_out);
	put_budget(out, &r->limits, r->requests, r->spent, r->held);
}

static void put_flow(struct buf *out, const struct control_net_flow *f)
{
	bool six = strchr(f->host, ':');

	buf_puts(out, f->inward ? "  from the host to port " : six ? "  [" : "  ");
	text_escape(out, f->host);
	buf_printf(out, "%s%s%u  ", six ? "]" : "", f->inward ? "" : ":", f->port);
	put_size(out, f->bytes_in);
	buf_puts(out, " in, ");
	put_size(out, f->bytes_out);
	buf_printf(out, " out  %" PRIu64 ".%" PRIu64 " s", f->age_ms / 1000,
		   f->age_ms % 1000 / 100);
	if (f->rule >= 0)
		buf_printf(out, "  rule %" PRIi32, f->rule);
	buf_printf(out, "  generation %" PRIu64 "\n", f->generation);
}

/* The rules, and behind them the services of the host. */
static void put_rows(struct buf *out, const struct client_net *n)
{
	bool serves = false;

	if (n->rule_count && !n->rules[0].service)
		buf_printf(out, "RULE       %-40s   HITS    OPEN\n", "");
	for (size_t i = 0; i < n->rule_count; i++) {
		const struct control_net_rule *r = &n->rules[i];

		if (!r->service) {
			put_rule(out, r);
			continue;
		}
		if (!serves)
			buf_printf(out, "SERVICE    %-40s           OPEN\n", "");
		serves = true;
		buf_printf(out, "     %-5s %-40s         %6zu\n", r->deny ? "deny" : "allow",
			   r->text, client_net_service_open(n, r));
	}
}

static void put_text(struct buf *out, const char *id, const struct client_net *n)
{
	const struct control_net *now = &n->now;

	buf_printf(out, "%s in ", id);
	text_escape(out, now->workspace);
	buf_printf(out, "\nmode %s, generation %" PRIu64 ", gateway %s%s\n", client_net_mode(now),
		   now->generation, client_net_gateway(now),
		   now->by_port ? ", without nf_tables: only the ports known at the start" : "");
	buf_printf(out, "%" PRIu64 " connections, %" PRIu64 " names, %" PRIu64 " denied, ",
		   now->connections, now->names, now->denied);
	put_size(out, now->bytes_in);
	buf_puts(out, " in, ");
	put_size(out, now->bytes_out);
	buf_puts(out, " out\n");
	put_limits(out, &now->limits, now->open, now->bytes_in, now->bytes_out);
	put_budget(out, &now->limits, now->requests, now->spent, now->held);
	put_rows(out, n);
	if (n->flow_count)
		buf_puts(out, "OPEN\n");
	for (size_t i = 0; i < n->flow_count; i++)
		put_flow(out, &n->flows[i]);
}

static int show_one(const struct box_info *info, bool json, struct json *j, struct ward_err *e)
{
	struct client client = NO_CLIENT;
	struct client_net n = { 0 };
	int r = client_connect(info, &client, e);

	if (r == 0)
		r = client_net_show(&client, &n, e);
	client_close(&client);
	if (r < 0)
		return r;
	if (json) {
		json_begin_object(j, NULL);
		json_string(j, "id", info->id);
		json_string(j, "name", *info->name ? info->name : NULL);
		client_net_json(j, &n);
		json_end_object(j);
	} else {
		put_text(j->out, info->id, &n);
	}
	client_net_clear(&n);
	return 0;
}

/* Every one that runs and has a network. */
static int show_all(const struct options *o, struct ward_err *e)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	struct boxes all;
	int code = EXIT_FINE;

	if (client_net_list(&all, e) < 0)
		return say_error(e, o->json, EXIT_REFUSED);
	if (o->json)
		json_begin_list(&j, "sandboxes");
	for (size_t i = 0; i < all.len; i++) {
		*e = (struct ward_err){ 0 };
		if (all.items[i].alive && show_one(&all.items[i], o->json, &j, e) < 0 &&
		    e->code != EOPNOTSUPP && e->code != ESRCH && e->code != ENOENT)
			code = say_error(e, o->json, EXIT_REFUSED);
	}
	boxes_clear(&all);
	if (o->json) {
		json_end_list(&j);
	} else if (!out.len && code == EXIT_FINE) {
		buf_puts(&out, "no running sandbox has a network\n");
	}
	return say_out(&out, code);
}

static int show(const struct options *o, struct ward_err *e)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	struct box_info info = { 0 };
	int r;

	if (o->word_count == 1)
		return show_all(o, e);
	r = client_net_find(o->words[1], &info, e);
	if (r == 0)
		r = show_one(&info, o->json, &j, e);
	box_info_clear(&info);
	if (r < 0)
		return say_error(e, o->json, EXIT_REFUSED);
	if (o->json)
		buf_puts(&out, "\n");
	return say_out(&out, EXIT_FINE);
}

static int change(const struct options *o, bool deny, unsigned seconds, struct ward_err *e)
{
	struct client client = NO_CLIENT;
	struct box_info info = { 0 };
	struct control_net now;
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int r = client_net_find(o->words[1], &info, e);

	if (r == 0)
		r = client_connect(&info, &client, e);
	if (r == 0)
		r = client_net_change(&client, deny, o->words + 2, o->word_count - 2, seconds, &now,
				      e);
	client_close(&client);
	if (r == 0 && o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "id", info.id);
		client_net_json_now(&j, &now);
		json_uint(&j, "closed", now.closed);
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else if (r == 0) {
		buf_printf(&out, "%s: generation %" PRIu64 "%s", info.id, now.generation,
			   now.closed ? "" : "\n");
		if (now.closed)
			buf_printf(&out, ", %u connection%s closed\n", now.closed,
				   now.closed == 1 ? "" : "s");
	}
	box_info_clear(&info);
	return r < 0 ? say_error(e, o->json, EXIT_REFUSED) : say_out(&out, EXIT_FINE);
}

int verb_net(struct options *o)
{
	bool shows = strcmp(o->words[0], "show") == 0, allow = strcmp(o->words[0], "allow") == 0;
	bool deny = strcmp(o->words[0], "deny") == 0;
	struct ward_err e = { 0 };
	uint64_t ms = 0;

	if (!shows && !allow && !deny)
		ward_fail(&e, EINVAL, "%.100s is neither show, allow nor deny", o->words[0]);
	else if (shows && o->word_count > 2)
		ward_fail(&e, EINVAL, "show takes one sandbox, or none for all");
	else if (!shows && o->word_count < 3)
		ward_fail(&e, EINVAL, "%s needs a sandbox and at least one HOST[:PORT]",
			  o->words[0]);
	else if (shows && o->temporary)
		ward_fail(&e, EINVAL, "--temporary only works with allow and deny");
	else if (o->temporary &&
		 (units_parse_seconds(o->temporary, &ms) < 0 || ms < 1000 || ms > TEMPORARY_MAX_MS))
		ward_fail(&e, EINVAL,
			  "--temporary %.80s: expected a time between a second and a year",
			  o->temporary);
	else
		return shows ? show(o, &e) : change(o, deny, (unsigned)(ms / 1000), &e);
	ward_remedy(&e, "ward net show [BOX], ward net allow BOX HOST[:PORT]..., ward net deny BOX "
			"HOST[:PORT]...");
	return say_usage(&e, o);
}
