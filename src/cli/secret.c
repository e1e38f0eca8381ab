/*
 * ward secret: the grants of a sandbox that runs. In: ls, grant or revoke, the name of a sandbox.
 * Out: a table or JSON; no secret is printed, taken from the command line or held by this program:
 * one that is granted goes as a descriptor (standard input, or a pipe with a variable of ours) to
 * the process that keeps them.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/io.h"
#include "control/client_net.h"
#include "control/client_secret.h"
#include "policy/policy_grant.h"

static const char *const states[] = SECRET_STATE_NAMES;

static const char *state_of(const struct secrets_row *r)
{
	return states[r->state < SECRET_STATES ? r->state : SECRET_REVOKED];
}

static int connect_to(const char *word, struct box_info *info, struct client *client,
		      struct ward_err *e)
{
	int r = client_net_find(word, info, e);

	return r < 0 ? r : client_connect(info, client, e);
}

static void put_row(struct buf *out, const struct secrets_row *r)
{
	buf_printf(out, "%-16s %-8s %-24s %6" PRIu64, r->name, state_of(r), r->place, r->uses);
	if (r->max_uses != UINT64_MAX)
		buf_printf(out, " of %" PRIu64, r->max_uses);
	if (r->state == SECRET_LIVE)
		buf_printf(out, "  %" PRIu64 " s", (r->expires_ms + 999) / 1000);
	buf_printf(out, "  %s  (%s)\n", r->hosts, r->source);
}

static void put_json(struct json *j, const struct secrets_row *r)
{
	json_begin_object(j, NULL);
	json_string(j, "name", r->name);
	json_string(j, "state", state_of(r));
	json_string(j, "source", r->source);
	json_string(j, "place", r->place);
	json_string(j, "hosts", r->hosts);
	json_uint(j, "uses", r->uses);
	if (r->max_uses == UINT64_MAX)
		json_null(j, "max_uses");
	else
		json_uint(j, "max_uses", r->max_uses);
	json_uint(j, "expires_ms", r->expires_ms);
	json_end_object(j);
}

static int list(const struct options *o, struct ward_err *e)
{
	struct client client = NO_CLIENT;
	struct box_info info = { 0 };
	struct secrets_row *rows = NULL;
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	size_t count = 0;
	int r = connect_to(o->words[1], &info, &client, e);

	if (r == 0)
		r = client_secret_list(&client, &rows, &count, e);
	client_close(&client);
	if (r == 0 && o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "id", info.id);
		json_begin_array(&j, "grants");
	} else if (r == 0) {
		buf_printf(&out, "%-16s %-8s %-24s %6s\n", "GRANT", "STATE", "PLACE", "USES");
	}
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct secrets_row *row = &rows[i];

		row->name[sizeof(row->name) - 1] = row->source[sizeof(row->source) - 1] = '\0';
		row->place[sizeof(row->place) - 1] = row->hosts[sizeof(row->hosts) - 1] = '\0';
		if (o->json)
			put_json(&j, row);
		else
			put_row(&out, row);
	}
	if (r == 0 && o->json) {
		json_end_array(&j);
		json_end_object(&j);
		buf_puts(&out, "\n");
	}
	free(rows);
	box_info_clear(&info);
	return r < 0 ? say_error(e, o->json, EXIT_REFUSED) : say_out(&out, EXIT_FINE);
}

/* The variables of an env: source are ours, not those that the sandbox was started with: a pipe
 * holds their values. */
static int value_of_env(const struct policy_grant *g, struct ward_err *e)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe");
	for (size_t i = 0; i < g->variables.len; i++) {
		const char *value = getenv(g->from == GRANT_ENV && g->way != GRANT_SIGV4
						   ? g->source
						   : g->variables.items[i]);

		if (!value && i == 2)
			break;
		if (!value || strlen(value) > 8192 ||
		    io_write_all(fds[1], value, strlen(value)) < 0 ||
		    io_write_all(fds[1], "\n", 1) < 0) {
			close(fds[0]);
			close(fds[1]);
			return ward_fail(e, ENOENT, "the variable %s is not set, or is too long",
					 g->source);
		}
	}
	close(fds[1]);
	return fds[0];
}

static int grant(const struct options *o, struct ward_err *e)
{
	struct client client = NO_CLIENT;
	struct box_info info = { 0 };
	auto_free char *line = NULL, *shown = NULL;
	auto_grant g = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	auto_fd value = -1;
	int r = policy_grant_parse(o->words[2], &g, &line, e);

	if (r == 0 && o->from_stdin && isatty(STDIN_FILENO)) {
		r = ward_fail(e, EINVAL,
			      "--stdin: standard input is a terminal, which would show the secret");
		ward_remedy(e, "pass show openai | ward secret grant BOX GRANT --stdin");
	}
	if (r == 0 && (o->from_stdin || g.from == GRANT_ENV)) {
		value = o->from_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
				      : value_of_env(&g, e);
		r = value < 0
			    ? (e->code ? -e->code : ward_fail_errno(e, "cannot use standard input"))
			    : 0;
	}
	if (r == 0)
		r = connect_to(o->words[1], &info, &client, e);
	if (r == 0)
		r = client_secret_grant(&client, line, value, &shown, e);
	client_close(&client);
	if (r == 0 && o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "id", info.id);
		json_string(&j, "grant", g.name);
		json_string(&j, "placeholder", shown);
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else if (r == 0) {
		buf_printf(&out, "%s: granted %s, placeholder %s\n", info.id, g.name, shown);
	}
	box_info_clear(&info);
	return r < 0 ? say_error(e, o->json, EXIT_REFUSED) : say_out(&out, EXIT_FINE);
}

static int take_back(const struct options *o, struct ward_err *e)
{
	struct client client = NO_CLIENT;
	struct box_info info = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int r = connect_to(o->words[1], &info, &client, e);

	if (r == 0)
		r = client_secret_revoke(&client, o->words[2], e);
	client_close(&client);
	if (r == 0 && o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "id", info.id);
		json_string(&j, "revoked", o->words[2]);
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else if (r == 0) {
		buf_printf(&out, "%s: revoked %s\n", info.id, o->words[2]);
	}
	box_info_clear(&info);
	return r < 0 ? say_error(e, o->json, EXIT_REFUSED) : say_out(&out, EXIT_FINE);
}

int verb_secret(struct options *o)
{
	static const struct {
		const char *name;
		size_t words;
		int (*run)(const struct options *o, struct ward_err *e);
	} actions[] = { { "ls", 2, list }, { "grant", 3, grant }, { "revoke", 3, take_back } };
	struct ward_err e = { 0 };

	ward_fail(&e, EINVAL, "%.100s is neither ls, grant nor revoke", o->words[0]);
	for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
		if (strcmp(o->words[0], actions[i].name) != 0)
			continue;
		if (o->word_count != actions[i].words)
			ward_fail(&e, EINVAL, "%s takes %s", o->words[0],
				  i ? "a sandbox and a grant" : "one sandbox");
		else if (o->from_stdin && actions[i].run != grant)
			ward_fail(&e, EINVAL, "--stdin only works with grant");
		else
			return actions[i].run(o, &(struct ward_err){ 0 });
	}
	ward_remedy(&e, "ward secret ls BOX, ward secret grant BOX '{name: NAME, source: SOURCE, "
			"hosts: [HOST]}', ward secret revoke BOX NAME");
	return say_usage(&e, o);
}
