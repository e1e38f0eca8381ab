/*
 * Entries of approvals.never. In: a text of the document. Out: whether it is an entry, and its host
 * in the form in which all hosts are compared. Pure.
 */
#include "policy/policy_never.h"

#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "policy/policy_value.h"

#define ENTRY_MAX 1024

static const char host_kind[] = "host:";

bool never_host(const char *entry, char ret_host[256])
{
	unsigned port;

	return strncmp(entry, host_kind, strlen(host_kind)) == 0 &&
	       !host_parse(entry + strlen(host_kind), false, ret_host, &port);
}

bool never_has_shape(const char *text, const char **ret_expected, const char **ret_hint)
{
	static const char *const kinds[] = { "program:", "credential:" };
	char host[256];

	*ret_expected = "KIND:PATTERN";
	*ret_hint = "host: with a name, *.suffix, address or block; path: with / or ~/ or * in "
		    "front; program: or credential: with a name";
	if (strlen(text) >= ENTRY_MAX || strpbrk(text, "\r\n"))
		return false;
	if (strncmp(text, "path:", 5) == 0)
		return text[5] == '/' || text[5] == '*' || strncmp(text + 5, "~/", 2) == 0;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strncmp(text, kinds[i], strlen(kinds[i])) == 0)
			return text[strlen(kinds[i])] != '\0';
	return never_host(text, host);
}
