/*
 * Entries of credentials.ssh. In: a map of the policy, the canonical line that struct policy holds,
 * or the word behind --ssh. Out: what does not go together, each with its place; struct policy_ssh;
 * an entry in JSON. No key is looked at here: an entry says where one is. A host is a name or an
 * address, never a pattern: its key has to be in the user's known_hosts. Pure functions over text,
 * fuzzed with the policy (fuzz/policy.c); run by the supervisor and by ward-ssh-agent.
 */
#include "policy/policy_ssh.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "policy/policy_value.h"

#define EXPECTED "[USER@]HOST[:PORT] such as git@github.com"

static const char user_characters[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

bool ssh_host_split(const char *text, struct ssh_host *ret)
{
	const char *at = strchr(text, '@'), *host = at ? at + 1 : text;
	size_t n = at ? (size_t)(at - text) : 0;

	memset(ret, 0, sizeof(*ret));
	if (at &&
	    (!n || n >= sizeof(ret->user) || *text == '-' || strspn(text, user_characters) != n))
		return false;
	memcpy(ret->user, text, n);
	/* a word that ssh could take for an option is none */
	if (*host == '-' || host_parse(host, true, ret->host, &ret->port) ||
	    strpbrk(ret->host, "*/"))
		return false;
	if (!ret->port)
		ret->port = SSH_PORT;
	return true;
}

bool ssh_host_is_sound(const char *text, const char **ret_expected, const char **ret_hint)
{
	struct ssh_host host;

	*ret_expected = EXPECTED;
	*ret_hint = strchr(text, '*') ? "name each host: its key must be in known_hosts" : NULL;
	return ssh_host_split(text, &host);
}

bool ssh_key_is_sound(const char *text, const char **ret_expected, const char **ret_hint)
{
	static const char base64[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/";

	*ret_expected = "agent, agent:SHA256:FINGERPRINT or file:PATH";
	*ret_hint = "name where the key is, never the key itself; ssh-add -l lists fingerprints";
	if (strncmp(text, "file:", 5) == 0)
		return text[5] == '/' || (strncmp(text + 5, "~/", 2) == 0 && text[7]);
	if (strncmp(text, "agent:SHA256:", 13) == 0)
		return strlen(text + 13) == 43 && strspn(text + 13, base64) == 43;
	return strcmp(text, "agent") == 0;
}

void item_check_ssh(struct reader *r, const char *path, const struct node *map)
{
	const struct node *hosts = node_get(map, "hosts"), *sign = node_get(map, "sign");
	bool signs = sign && sign->text && strcmp(sign->text, "true") == 0;

	if (!(hosts && hosts->kind == NODE_LIST && hosts->first) && !signs)
		reader_error(r, (struct place){ map->line, map->column },
			     "add hosts: [git@github.com], or sign: true",
			     "%s: the key would be used for nothing", path);
}

void policy_ssh_clear(struct policy_ssh *s)
{
	free(s->key);
	strv_free(&s->hosts);
	*s = (struct policy_ssh){ 0 };
}

int policy_ssh_read(const char *line, struct policy_ssh *ret, struct ward_err *e)
{
	struct reader reader = { .name = "ssh", .e = e };
	auto_node map = json_read(&reader, (const uint8_t *)line, strlen(line));
	const struct node *key, *hosts, *sign;

	memset(ret, 0, sizeof(*ret));
	if (reader.count)
		return -e->code;
	key = map && map->kind == NODE_MAP ? node_get(map, "key") : NULL;
	if (!map || map->kind != NODE_MAP)
		return ward_fail(
			e, EINVAL,
			"an entry of credentials.ssh is a map: {key: agent, hosts: [git@HOST]}");
	hosts = node_get(map, "hosts");
	sign = node_get(map, "sign");
	ret->key = strdup(key && key->text ? key->text : "agent");
	ret->sign = sign && sign->text && strcmp(sign->text, "true") == 0;
	for (const struct node *n = hosts && hosts->kind == NODE_LIST ? hosts->first : NULL; n;
	     n = n->next)
		strv_add(&ret->hosts, n->text ? n->text : "");
	if (ret->key && !ret->hosts.failed)
		return 0;
	policy_ssh_clear(ret);
	return ward_fail(e, ENOMEM, "out of memory");
}

int ssh_option_read(const char *text, struct buf *ret, struct ward_err *e)
{
	struct json j = { .out = ret };
	struct ssh_host host;
	auto_buf shown = { 0 };

	if (!text_is_utf8(text))
		return ward_fail(e, EINVAL, "the value is not UTF-8");
	if (!ssh_host_split(text, &host)) {
		text_escape(&shown, text);
		ward_fail(e, EINVAL, "%.120s: expected " EXPECTED, buf_text(&shown));
		return ward_remedy(e, "for instance --ssh git@github.com");
	}
	json_begin_object(&j, NULL);
	json_begin_array(&j, "hosts");
	json_string(&j, NULL, text);
	json_end_array(&j);
	json_end_object(&j);
	return ret->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}
