/*
 * Reading the request of a stand-in. In: bytes of any process inside. Out: the parts of a command
 * line, or a refusal; nothing is taken in part. Pure. Fuzzed (fuzz/command_rule.c).
 */
#include "approve/command_read.h"

#include <string.h>

/* The end of count texts; NULL: there are not so many. */
static const char *skip(const char *at, const char *end, int32_t count)
{
	for (; count > 0; count--) {
		const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;

		if (!nul)
			return NULL;
		at = nul + 1;
	}
	return at;
}

static bool takes_variables(const struct command_said *said)
{
	const char *at = said->variables;

	for (size_t i = 0; i < said->variable_count; i++, at += strlen(at) + 1)
		if (!command_keeps(at))
			return false;
	return true;
}

bool command_read(const uint8_t *bytes, size_t n, struct command_said *ret)
{
	const char *at = (const char *)bytes + sizeof(struct command_message),
		   *end = (const char *)bytes + n;
	struct command_message m;

	if (n <= sizeof(m) || n > COMMAND_MAX)
		return false;
	memcpy(&m, bytes, sizeof(m));
	if (m.magic != COMMAND_MAGIC || m.op != COMMAND_START || m.a < 1 ||
	    m.a > COMMAND_WORDS_MAX || m.b < 0 || m.b > COMMAND_WORDS_MAX)
		return false;
	*ret = (struct command_said){ .program = at };
	ret->words = skip(at, end, 1);
	ret->variables = ret->words ? skip(ret->words, end, m.a) : NULL;
	if (!ret->variables || skip(ret->variables, end, m.b) != end || *ret->program != '/')
		return false;
	ret->word_count = (size_t)m.a;
	ret->words_len = (size_t)(ret->variables - ret->words);
	ret->variable_count = (size_t)m.b;
	ret->variables_len = (size_t)(end - ret->variables);
	return takes_variables(ret);
}
