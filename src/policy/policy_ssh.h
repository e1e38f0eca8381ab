/* An entry of credentials.ssh, taken apart: which key, for which hosts, for commits too or not. */
#ifndef WARD_POLICY_POLICY_SSH_H
#define WARD_POLICY_POLICY_SSH_H

#include "policy/policy.h"

#define SSH_ENTRIES_MAX 16 /* of one policy */
#define SSH_HOSTS_MAX 32   /* of all of them */
#define SSH_PORT 22

/* Texts are owned. */
struct policy_ssh {
	char *key;         /* agent, agent:SHA256:..., file:PATH */
	struct strv hosts; /* [USER@]HOST[:PORT] as written */
	bool sign;
};

struct ssh_host {
	char user[64]; /* "": any */
	char host[256];
	unsigned port;
};

/* Takes apart one line of canonical JSON, as struct policy holds them. -EINVAL with *e; *ret is
 * empty then. */
must_check int policy_ssh_read(const char *line, struct policy_ssh *ret, struct ward_err *e);
void policy_ssh_clear(struct policy_ssh *s);
#define auto_policy_ssh __attribute__((cleanup(policy_ssh_clear))) struct policy_ssh

/* Takes [USER@]HOST[:PORT] apart; the host is canonical. False: it is none. Pure. */
bool ssh_host_split(const char *text, struct ssh_host *ret);
/* Whether text can be a host or a key of an entry. Pure. */
bool ssh_host_is_sound(const char *text, const char **ret_expected, const char **ret_hint);
bool ssh_key_is_sound(const char *text, const char **ret_expected, const char **ret_hint);

/* Appends to *ret the entry that --ssh [USER@]HOST[:PORT] means, as a map in JSON. -EINVAL with *e.
 * Pure. */
must_check int ssh_option_read(const char *text, struct buf *ret, struct ward_err *e);

#endif
