/* A grant of a policy, taken apart: which secret, whom it goes to, where it is put in. */
#ifndef WARD_POLICY_POLICY_GRANT_H
#define WARD_POLICY_POLICY_GRANT_H

#include "policy/policy.h"

#define GRANT_VALUES 3 /* of one grant: a secret, or ID, secret and token of sigv4 */
#define GRANTS_MAX 64  /* of one sandbox */

enum grant_from { GRANT_ENV, GRANT_FILE, GRANT_CMD, GRANT_KEYRING, GRANT_HTTP, GRANT_HANDED };
enum grant_way { GRANT_HEADER, GRANT_BASIC, GRANT_QUERY, GRANT_SIGV4 };

/* Texts are owned; what is not said is NULL. */
struct policy_grant {
	char *name;
	enum grant_from from;
	/* behind the prefix: a variable, path, command line, key or URL */
	char *source;
	struct strv hosts, methods, paths; /* hosts canonical */
	enum grant_way way;
	char *header;              /* HEADER: its name; else "Authorization" */
	char *before, *behind;     /* HEADER: around the secret */
	char *user;                /* BASIC */
	char *parameter;           /* QUERY */
	char *region, *service;    /* SIGV4; "*": any */
	struct strv variables;     /* inside, for each value; none: no placeholder is shown */
	uint64_t ttl_ms, max_uses; /* POLICY_NONE: no limit */
	bool ask;                  /* a person has to say yes first */
	char *token;               /* HTTP: another source */
	char *field;               /* HTTP */
};

/* Takes apart one line of canonical JSON, as struct policy holds grants. -EINVAL with *e; *ret is
 * empty then. */
must_check int policy_grant_read(const char *line, struct policy_grant *ret, struct ward_err *e);
/* The same for a map as a person writes it (flow YAML or JSON), checked as in a file. *ret_line
 * (the caller frees; NULL: not wanted) is its canonical form. */
must_check int policy_grant_parse(const char *text, struct policy_grant *ret, char **ret_line,
				  struct ward_err *e);
void policy_grant_clear(struct policy_grant *g);

/* Which kind of source a text is, and what stands behind the prefix (borrowed). False: none. */
bool grant_source_split(const char *text, enum grant_from *ret_from, const char **ret_rest);
/* Whether text can be a source, or a header with a place for the secret. Pure functions. */
bool grant_source_is_sound(const char *text, const char **ret_expected, const char **ret_hint);
bool grant_header_is_sound(const char *text, const char **ret_expected, const char **ret_hint);
/* The words of a command line: spaces separate, '...' and "..." hold together, \ takes the next
 * character as it is. There is no shell and nothing is expanded. -EINVAL: a quote is open, or there
 * is no word. */
must_check int grant_command_words(const char *text, struct strv *ret);

/* Whether a grant is for this host (canonical). Pure. */
bool grant_is_for_host(const struct policy_grant *g, const char *host);
/* Whether the policy has a grant in force for a host (canonical, *.suffix too), or one for some
 * name that a rule's host stands for. */
bool policy_grants_have(const struct policy *p, const char *host);
bool policy_grants_touch(const struct policy *p, const char *rule_host);
/* "*" matches any characters. A pure function, linear in practice: one place to come back to. */
bool grant_path_matches(const char *pattern, const char *path, size_t n);

/* Whether host a (a name, *.suffix or *) stands for everything that b does. Pure. */
bool grant_host_covers(const char *a, const char *b);
/* Whether some name is meant by both hosts (canonical, *.suffix too). Pure. */
bool grant_hosts_touch(const char *a, const char *b);

/* policy_grants.c: grants beside each other. Pure functions. */
/* Whether some path matches both patterns. */
bool grant_paths_meet(const char *a, const char *b);
/* Whether both are put into the same header or parameter, as servers read names; and whether some
 * request would get both there. */
bool grants_share_place(const struct policy_grant *a, const struct policy_grant *b);
bool grants_overlap(const struct policy_grant *a, const struct policy_grant *b);
/* Fills *e for two that overlap; returns its code, negative. */
int grants_refuse_overlap(const struct policy_grant *a, const struct policy_grant *b,
			  struct ward_err *e);
/* Whether these go together: names, variables, places. */
must_check int grants_check(const struct policy_grant *grants, size_t count, struct ward_err *e);
/* All grants of a policy; *ret and *ret_count are for grants_free() in any case. */
must_check int grants_read(const struct policy *p, struct policy_grant **ret, size_t *ret_count,
			   struct ward_err *e);
void grants_free(struct policy_grant *grants, size_t count);

#define auto_grant __attribute__((cleanup(policy_grant_clear))) struct policy_grant

#endif
