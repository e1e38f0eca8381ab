/*
 * The secrets of a sandbox, through the control socket. In: questions and changes of the operator.
 * Out: what ward-secrets answers, when it does; nothing here waits. A secret comes as a descriptor
 * that it can be read from and is passed on unread. Only the process that serve.c lets in can ask:
 * the same user or root, outside of every sandbox.
 */
#include <errno.h>
#include <string.h>

#include "egress/secrets.h"
#include "policy/policy_grant.h"
#include "run/box_internal.h"
#include "run/serve_internal.h"

/* A grant while the sandbox runs is for hosts whose connections go through ward-keys already. */
static int check_line(const struct policy *p, const char *line, struct ward_err *e)
{
	auto_grant g = { 0 };
	int r = policy_grant_read(line, &g, e);

	for (size_t i = 0; r == 0 && i < g.hosts.len; i++)
		if (!p->cred_scanning && !policy_grants_have(p, g.hosts.items[i])) {
			ward_fail(e, EINVAL,
				  "no grant of the policy covers %s, so its connections bypass the "
				  "process that injects secrets",
				  g.hosts.items[i]);
			ward_remedy(e,
				    "start the sandbox with a grant for it, or with "
				    "credentials.secret_scanning: true and an inspect rule for it");
			r = -EINVAL;
		}
	return r;
}

void serve_secret(struct serve *s, struct serve_client *c, const struct control_message *m,
		  const char *text, int fd)
{
	enum secrets_op op = m->op == CONTROL_SECRET_GRANT    ? SECRETS_GRANT
			     : m->op == CONTROL_SECRET_REVOKE ? SECRETS_REVOKE
							      : SECRETS_LIST;
	const struct plan *p = s->box->plan;
	struct ward_err e = { 0 };
	int r = 0;

	if (m->op == CONTROL_SECRET_GRANT && p->live->secrets)
		r = check_line(&p->spec->policy, text, &e);
	if (r == 0)
		r = secrets_ask(p->live->secrets, op, c->number,
				m->op == CONTROL_SECRET_LIST ? "" : text, fd, &e);
	if (r < 0) {
		serve_refuse(c, &e);
		return;
	}
	c->asks_secret = true; /* ward-secrets, which does it, reports it */
}

void serve_secret_answered(void *whose, const struct secrets_message *said, const char *text,
			   size_t n)
{
	struct control_message m = { .magic = CONTROL_MAGIC, .op = CONTROL_SECRETS };
	struct serve *s = whose;
	struct serve_client *c = NULL;
	auto_buf out = { 0 };

	for (size_t i = 0; i < s->client_count; i++)
		if (s->clients[i].number == said->tag && s->clients[i].asks_secret)
			c = &s->clients[i];
	if (!c)
		return;
	c->asks_secret = false;
	if (said->op == SECRETS_ERROR) {
		m.op = CONTROL_ERROR;
		m.a = said->code > 0 ? said->code : EIO;
	} else {
		m.a = said->op == SECRETS_ROWS ? (int32_t)(n / sizeof(struct secrets_row)) : -1;
	}
	buf_add(&out, &m, sizeof(m));
	buf_add(&out, text, n);
	if (said->op == SECRETS_OK)
		buf_add(&out, "", 1);
	if (out.failed || control_check_answer(out.data, out.len) < 0)
		c->gone = true;
	else
		serve_send(c, out.data, out.len, NULL, 0);
}
