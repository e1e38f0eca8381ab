/*
 * Public suffixes, for warnings about wildcards. In: the list as the system has it, a canonical
 * name. Out: whether names under it are given to strangers (co.uk, github.io). One walk over the
 * list; a rule is a name, *.name, or !name, which takes a name out again. Decides nothing: `ward
 * check` prints what it says. Pure.
 */
#include <stdio.h>
#include <string.h>

#include "policy/idna.h"
#include "policy/suffix.h"

#define NAME_MAX_BYTES 256

/* Whether *.parent, given as parent, has name directly below it. */
static bool is_child(const char *name, const char *parent)
{
	const char *dot = strchr(name, '.');

	return dot && dot != name && strcmp(dot + 1, parent) == 0;
}

static bool is_plain(const char *rule)
{
	for (const char *c = rule; *c; c++)
		if ((unsigned char)*c >= 0x80 || (*c >= 'A' && *c <= 'Z'))
			return false;
	return true;
}

bool suffix_is_public(const char *list, size_t n, const char *name)
{
	bool found = !strchr(name, '.');

	while (n) {
		const char *end = memchr(list, '\n', n);
		size_t line = end ? (size_t)(end - list) : n, len = 0;
		char rule[NAME_MAX_BYTES], ascii[NAME_MAX_BYTES];

		while (len < line && len + 1 < sizeof(rule) && !strchr(" \t\r", list[len])) {
			rule[len] = list[len];
			len++;
		}
		rule[len] = '\0';
		list += line + (end ? 1 : 0);
		n -= line + (end ? 1 : 0);
		if (!len || strncmp(rule, "//", 2) == 0)
			continue;
		if (is_plain(rule)) /* nearly all: as they are compared */
			snprintf(ascii, sizeof(ascii), "%s", rule[0] == '!' ? rule + 1 : rule);
		else if (idna_to_ascii(rule[0] == '!' ? rule + 1 : rule, ascii, sizeof(ascii)))
			continue;
		if (rule[0] == '!' && strcmp(ascii, name) == 0)
			return false;
		found |= strcmp(ascii, name) == 0;
		/* a registry that gives away names one deeper gives away these, too */
		if (strncmp(ascii, "*.", 2) == 0)
			found |= is_child(name, ascii + 2) || strcmp(ascii + 2, name) == 0;
	}
	return found;
}
