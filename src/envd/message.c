/*
 * Protobuf's JSON, as far as envd's messages need it. In: a message in the reading. Out: values; a
 * value of another type makes the whole message bad. Names come in lowerCamelCase or snake_case, 64
 * bit numbers as strings or numbers, null is an absent field. Run by ward-envd. Pure.
 */
#include <ctype.h>
#include <string.h>

#include "envd/call.h"

bool message_key(const char *key, const char *name)
{
	for (; *name; name++) {
		if (isupper((unsigned char)*name) && *key == '_') {
			key++;
			if (*key++ != tolower((unsigned char)*name))
				return false;
			continue;
		}
		if (*key++ != *name)
			return false;
	}
	return !*key;
}

static bool null(struct json_in *j)
{
	if (json_in_peek(j) != 'n')
		return false;
	json_in_skip(j);
	return true;
}

void message_string(struct json_in *j, struct buf *out)
{
	if (!null(j))
		json_in_string(j, out);
}

void message_bool(struct json_in *j, bool *ret)
{
	char first = json_in_peek(j);

	if (null(j))
		return;
	if (first != 't' && first != 'f')
		j->bad = true;
	else
		json_in_skip(j);
	*ret = first == 't';
}

void message_uint(struct json_in *j, uint64_t *ret)
{
	auto_buf text = { 0 };
	const char *digits;
	char *end;

	if (null(j))
		return;
	if (json_in_peek(j) == '"') {
		json_in_string(j, &text);
	} else {
		const uint8_t *begin = j->at;

		json_in_skip(j);
		if (!j->bad)
			buf_add(&text, begin, (size_t)(j->at - begin));
	}
	digits = buf_text(&text);
	if (!isdigit((unsigned char)*digits)) {
		j->bad = true;
		return;
	}
	*ret = strtoull(digits, &end, 10);
	j->bad |= *end != '\0';
}
