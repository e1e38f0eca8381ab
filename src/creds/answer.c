/*
 * Answers of a secret store. In: JSON from a server (or a program) that the user named, untrusted
 * all the same. Out: one text, copied into the caller's locked memory; what else was read is
 * zeroed. Pure functions, fuzzed; run in ward-secrets.
 */
#include "creds/answer.h"

#include <errno.h>
#include <string.h>

#include "policy/node.h"
#include "policy/units.h"

static void wipe(struct node *n)
{
	for (struct node *c = n ? n->first : NULL; c; c = c->next)
		wipe(c);
	if (n && n->text)
		explicit_bzero(n->text, strlen(n->text));
}

static const struct node *walk(const struct node *at, const char *field)
{
	while (at && field && *field) {
		size_t n = strcspn(field, ".");
		auto_free char *key = strndup(field, n);

		at = key && at->kind == NODE_MAP ? node_get(at, key) : NULL;
		field += n + (field[n] == '.');
	}
	return at;
}

/* The only text beneath, however deep; *ret_count of them. */
static const struct node *only_text(const struct node *at, unsigned *ret_count)
{
	const struct node *found = NULL;

	if (at->kind == NODE_STRING) {
		++*ret_count;
		return at;
	}
	for (const struct node *c = at->first; c; c = c->next) {
		const struct node *inner = only_text(c, ret_count);

		found = found ? found : inner;
	}
	return found;
}

static int take(const struct node *n, uint8_t *ret, size_t room, size_t *ret_n)
{
	size_t len = n && n->text ? strlen(n->text) : 0;

	if (!len || len > room)
		return -EINVAL;
	memcpy(ret, n->text, len);
	*ret_n = len;
	return 0;
}

int answer_read(const uint8_t *bytes, size_t n, const char *field, uint8_t *ret, size_t *ret_n,
		uint64_t *ret_lease_s, struct ward_err *e)
{
	struct ward_err ignored = { 0 };
	struct reader reader = { .name = "", .e = &ignored };
	auto_node root = n <= ANSWER_MAX ? json_read(&reader, bytes, n) : NULL;
	const struct node *lease = root && root->kind == NODE_MAP ? node_get(root, "lease_duration")
								  : NULL,
			  *found = NULL;
	const struct node *data = root && root->kind == NODE_MAP ? node_get(root, "data") : NULL;
	unsigned count = 0;
	size_t room = *ret_n;
	int r;

	*ret_lease_s = 0;
	if (!root || reader.count) {
		wipe(root);
		return ward_fail(e, EBADMSG, "the answer is not JSON");
	}
	/* the data of Vault's second version has data of its own, beside what it knows about it */
	if (data && data->kind == NODE_MAP && node_get(data, "data"))
		data = node_get(data, "data");
	found = field ? walk(root, field) : only_text(data ? data : root, &count);
	if (lease && lease->kind == NODE_NUMBER && units_parse_uint(lease->text, ret_lease_s) < 0)
		*ret_lease_s = 0;
	if (!field && count > 1) {
		wipe(root);
		ward_fail(e, EINVAL, "the answer contains %u strings", count);
		return ward_remedy(e, "choose one with field: data.data.NAME");
	}
	r = found && found->kind == NODE_STRING ? take(found, ret, room, ret_n) : -EINVAL;
	wipe(root);
	return r < 0 ? ward_fail(e, EINVAL, "the answer has no string at %.100s",
				 field ? field : "data")
		     : 0;
}

int answer_read_aws(const uint8_t *bytes, size_t n, uint8_t *ret, size_t *ret_n, struct ward_err *e)
{
	static const char *const keys[] = { "AccessKeyId", "SecretAccessKey", "SessionToken" };
	struct ward_err ignored = { 0 };
	struct reader reader = { .name = "", .e = &ignored };
	auto_node root = n <= ANSWER_MAX ? json_read(&reader, bytes, n) : NULL;
	size_t room = *ret_n, at = 0;
	int r = root && !reader.count && root->kind == NODE_MAP ? 0 : -EINVAL;

	for (size_t i = 0; r == 0 && i < 3; i++) {
		const struct node *part = node_get(root, keys[i]);
		size_t len = 0;

		if (!part && i == 2)
			break;
		if (at)
			ret[at++] = '\n';
		r = at < room && part && part->kind == NODE_STRING
			    ? take(part, ret + at, room - at - 1, &len)
			    : -EINVAL;
		at += len;
	}
	wipe(root);
	*ret_n = at;
	return r < 0 ? ward_fail(e, EINVAL, "no AccessKeyId and SecretAccessKey in it") : 0;
}
