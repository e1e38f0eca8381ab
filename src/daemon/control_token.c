/*
 * Tokens: /ward/v1/tokens. In: calls with a key of the role admin. Out: a token that is shown once
 * and ends by itself; what keys and tokens the owner has, without their secrets. A token is never
 * more than its key: a decision asks both.
 */
#include <string.h>
#include <sys/random.h>

#include "daemon/control_access.h"

static void show_words(const char *key, const char *list, struct json *j)
{
	if (!*list)
		return;
	json_begin_array(j, key);
	while (*list) {
		size_t n = strcspn(list, ",");
		auto_free char *word = strndup(list, n);

		json_string(j, NULL, word);
		list += n + (list[n] == ',');
	}
	json_end_array(j);
}

static void show(const struct access_who *w, const char *secret, struct json *j)
{
	json_begin_object(j, NULL);
	json_string(j, "id", w->id);
	if (secret)
		json_string(j, "token", secret);
	json_string(j, "kind", *w->parent ? "token" : "key");
	json_string(j, "owner", w->owner);
	json_string(j, "role", access_role_name(w->role));
	if (*w->name)
		json_string(j, "name", w->name);
	show_time(j, "createdAt", w->made_ms);
	if (w->expires_ms)
		show_time(j, "expiresAt", w->expires_ms);
	if (*w->sandbox)
		json_string(j, "sandboxID", w->sandbox);
	if (*w->labels) {
		buf_puts(j->out, ",\"labels\":");
		buf_puts(j->out, w->labels);
	}
	show_words("templates", w->templates, j);
	show_words("engines", w->engines, j);
	show_words("sources", w->sources, j);
	if (*w->hours)
		json_string(j, "hours", w->hours);
	json_end_object(j);
}

bool access_make_secret(char ret_secret[SECRET_MAX + 1], char ret_id[CREDENTIAL_ID + 1])
{
	uint8_t bytes[20 + CREDENTIAL_ID / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return false;
	memcpy(ret_secret, "e2b_", 5); /* the form that older SDKs insist on */
	for (size_t i = 0; i < 20; i++)
		snprintf(ret_secret + 4 + 2 * i, 3, "%02x", bytes[i]);
	for (size_t i = 0; i < CREDENTIAL_ID / 2; i++)
		snprintf(ret_id + 2 * i, 3, "%02x", bytes[20 + i]);
	return true;
}

/* How many keys and tokens the owner has; negative: that cannot be found out. */
static int count(struct conn *c, struct access_who *all)
{
	int n, own = 0;

	(void)!registry_drop_expired(c->front->db, c->owner, front_now_ms());
	n = registry_list_credentials(c->front->db, c->owner, all, TOKENS_OF_OWNER + 1);
	for (int i = 0; i < n; i++)
		own += strcmp(all[i].owner, c->owner) == 0;
	return n < 0 ? n : own;
}

void control_token_create(struct conn *c)
{
	struct access_who *all = calloc(TOKENS_OF_OWNER + 1, sizeof(*all));
	char secret[SECRET_MAX + 1];
	struct access_request q;
	auto_buf body = { 0 };
	struct json j = { .out = &body };
	int n = all ? count(c, all) : -1;

	free(all);
	if (!access_read_request((const uint8_t *)buf_text(&c->body), c->body.len, false, &q)) {
		conn_refuse(c, 400, "%s", q.wrong);
		return;
	}
	if (n >= TOKENS_OF_OWNER) {
		conn_refuse(c, 429, "you have %d keys and tokens, and cannot have more", n);
		return;
	}
	memcpy(q.who.parent, c->who->own.id, sizeof(q.who.parent));
	memcpy(q.who.owner, c->owner, sizeof(q.who.owner));
	q.who.made_ms = front_now_ms();
	q.who.expires_ms = q.who.made_ms + 1000 * q.ttl_s;
	if (n < 0 || !access_make_secret(secret, q.who.id) ||
	    registry_add_credential(c->front->db, secret, &q.who) < 0) {
		conn_refuse(c, 503, "the registry cannot be written");
		return;
	}
	memcpy(c->sandbox, q.who.id, sizeof(q.who.id)); /* for the audit log */
	show(&q.who, secret, &j);
	conn_answer(c, 201, "application/json", &body, NULL);
}

void control_tokens(struct conn *c)
{
	struct access_who *all = calloc(TOKENS_OF_OWNER, sizeof(*all));
	auto_buf body = { 0 };
	struct json j = { .out = &body };
	int n;

	(void)!registry_drop_expired(c->front->db, c->owner, front_now_ms());
	n = all ? registry_list_credentials(c->front->db, c->owner, all, TOKENS_OF_OWNER) : -1;
	json_begin_array(&j, NULL);
	for (int i = 0; i < n; i++)
		show(&all[i], NULL, &j);
	json_end_array(&j);
	free(all);
	if (n < 0)
		conn_refuse(c, 503, "the registry cannot be read");
	else
		conn_answer(c, 200, "application/json", &body, NULL);
}

void control_token_revoke(struct conn *c)
{
	const struct access_who *me = &c->who->own;
	struct credential found;

	/* that of another owner does not exist */
	if (!registry_find_credential(c->front->db, c->sandbox, &found) ||
	    (strcmp(me->owner, ALL_OWNERS) != 0 && strcmp(found.own.owner, me->owner) != 0)) {
		conn_refuse(c, 404, "there is no key and no token with this id");
		return;
	}
	if (strcmp(found.own.id, me->id) == 0) {
		conn_refuse(c, 409, "a key does not revoke itself");
	} else if (registry_drop_credential(c->front->db, found.own.id) < 0) {
		conn_refuse(c, 503, "the registry cannot be written");
	} else {
		access_tick(c->front, true);
		conn_answer(c, 204, NULL, NULL, NULL);
	}
}
