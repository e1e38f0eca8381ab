/*
 * The grants of a policy beside each other. In: two grants, or all of them. Out: whether they go
 * together. A request carries every grant that is for it, each in its own place; two grants that
 * could be put into one place of one request are an error, since which of the secrets a server gets
 * must not depend on an order that is not visible. Pure functions, no rights; run by the
 * supervisor, by `ward check` and by ward-secrets.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy_grant.h"

/* -- places */

/* Servers take a dash for an underscore, and any case for another. */
static bool names_equal(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		char x = *a == '_' ? '-' : (char)tolower((unsigned char)*a),
		     y = *b == '_' ? '-' : (char)tolower((unsigned char)*b);

		if (x != y)
			return false;
	}
	return *a == *b;
}

static bool parameters_equal(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		char x = *a == '.' ? '_' : (char)tolower((unsigned char)*a),
		     y = *b == '.' ? '_' : (char)tolower((unsigned char)*b);

		if (x != y)
			return false;
	}
	return *a == *b;
}

static bool takes_token(const struct policy_grant *signing, const struct policy_grant *other)
{
	return signing->way == GRANT_SIGV4 && names_equal(other->header, "x-amz-security-token");
}

bool grants_share_place(const struct policy_grant *a, const struct policy_grant *b)
{
	if (a->way == GRANT_QUERY || b->way == GRANT_QUERY)
		return a->way == b->way && parameters_equal(a->parameter, b->parameter);
	return names_equal(a->header, b->header) || takes_token(a, b) || takes_token(b, a);
}

/* -- requests */

static bool methods_meet(const struct policy_grant *a, const struct policy_grant *b)
{
	bool met = !a->methods.len || !b->methods.len;

	for (size_t i = 0; i < a->methods.len && !met; i++)
		met = strv_has(&b->methods, a->methods.items[i]);
	return met;
}

/* %2f is %2F. */
static bool is_same(const char *a, size_t i, char c)
{
	bool escape = (i && a[i - 1] == '%') || (i > 1 && a[i - 2] == '%');

	return a[i] == c || (escape && isxdigit((unsigned char)c) &&
			     tolower((unsigned char)a[i]) == tolower((unsigned char)c));
}

/* Whether some text matches both patterns: from their ends to their beginnings, one row of answers
 * at a time. Out of memory counts as yes. */
bool grant_paths_meet(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	auto_free bool *row = calloc(m + 1, sizeof(*row)), *below = calloc(m + 1, sizeof(*below));

	if (!row || !below)
		return true;
	for (size_t i = n + 1; i-- > 0;) {
		for (size_t k = m + 1; k-- > 0;) {
			bool met;

			if (i < n && a[i] == '*')
				met = below[k] || (k < m && row[k + 1]);
			else if (k < m && b[k] == '*')
				met = row[k + 1] || (i < n && below[k]);
			else
				met = i == n || k == m ? i == n && k == m
						       : is_same(a, i, b[k]) && below[k + 1];
			row[k] = met;
		}
		memcpy(below, row, (m + 1) * sizeof(*row));
	}
	return below[0];
}

static bool paths_meet(const struct policy_grant *a, const struct policy_grant *b)
{
	bool met = !a->paths.len || !b->paths.len;

	for (size_t i = 0; i < a->paths.len && !met; i++)
		for (size_t k = 0; k < b->paths.len && !met; k++)
			met = grant_paths_meet(a->paths.items[i], b->paths.items[k]);
	return met;
}

static bool hosts_meet(const struct policy_grant *a, const struct policy_grant *b)
{
	for (size_t i = 0; i < a->hosts.len; i++)
		for (size_t k = 0; k < b->hosts.len; k++)
			if (grant_hosts_touch(a->hosts.items[i], b->hosts.items[k]))
				return true;
	return false;
}

bool grants_overlap(const struct policy_grant *a, const struct policy_grant *b)
{
	return grants_share_place(a, b) && hosts_meet(a, b) && methods_meet(a, b) &&
	       paths_meet(a, b);
}

int grants_refuse_overlap(const struct policy_grant *a, const struct policy_grant *b,
			  struct ward_err *e)
{
	if (a->way == GRANT_QUERY)
		ward_fail(e, EINVAL,
			  "grants %s and %s overlap: both would be put into the parameter %.60s of "
			  "one request",
			  b->name, a->name, a->parameter);
	else
		ward_fail(e, EINVAL,
			  "grants %s and %s overlap: both would be put into the header %.60s of "
			  "one request",
			  b->name, a->name, a->header);
	return ward_remedy(
		e, "make their hosts, methods or paths disjoint, or use another header or query");
}

/* -- all of them */

static int check_pair(const struct policy_grant *grants, size_t i, size_t k, struct ward_err *e)
{
	if (strcmp(grants[i].name, grants[k].name) == 0)
		return ward_fail(
			e, EINVAL,
			"credentials.grants[%zu].name: %s is already the name of grants[%zu]", i,
			grants[i].name, k);
	for (size_t v = 0; v < grants[i].variables.len; v++)
		if (strv_has(&grants[k].variables, grants[i].variables.items[v])) {
			ward_fail(e, EINVAL,
				  "credentials.grants[%zu]: the placeholders of %s and %s would "
				  "both be in %s",
				  i, grants[i].name, grants[k].name, grants[i].variables.items[v]);
			return ward_remedy(e, "give one of them another variable: as: NAME");
		}
	if (!grants_overlap(&grants[i], &grants[k]))
		return 0;
	grants_refuse_overlap(&grants[i], &grants[k], e);
	return ward_wrap(e, "credentials.grants[%zu]", i);
}

int grants_check(const struct policy_grant *grants, size_t count, struct ward_err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		for (size_t k = 0; r == 0 && k < i; k++)
			r = check_pair(grants, i, k, e);
	return r;
}

int grants_read(const struct policy *p, struct policy_grant **ret, size_t *ret_count,
		struct ward_err *e)
{
	size_t count = 0;
	int r = 0;

	*ret = NULL;
	*ret_count = 0;
	if (p->cred_grants.len > GRANTS_MAX)
		return ward_fail(e, E2BIG, "credentials.grants: more than %d grants", GRANTS_MAX);
	*ret = calloc(p->cred_grants.len + 1, sizeof(**ret));
	if (!*ret)
		return ward_fail(e, ENOMEM, "out of memory");
	for (; r == 0 && count < p->cred_grants.len; count += r == 0) {
		r = policy_grant_read(p->cred_grants.items[count], &(*ret)[count], e);
		if (r < 0)
			ward_wrap(e, "credentials.grants[%zu]", count);
	}
	*ret_count = count;
	return r;
}

void grants_free(struct policy_grant *grants, size_t count)
{
	while (count)
		policy_grant_clear(&grants[--count]);
	free(grants);
}
