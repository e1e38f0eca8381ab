/*
 * Texts for messages and documents. In: strings from files that anybody may have written. Out: printable UTF-8 without
 * control characters (C1 ones too: terminals act on them), so that a policy cannot move the cursor of whoever reads its
 * errors. Pure functions, no rights.
 */
#include "policy/text.h"

#include <string.h>
#include <strings.h>

#include "base/json.h"

#define SHOWN 60	/* bytes of a value that a message repeats */

/* Length of the printable UTF-8 sequence at s (n bytes are left), 0 if there is none. */
static size_t printable(const unsigned char *s, size_t n)
{
	size_t len = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;

	if (s[0] < 0x20 || s[0] == 0x7f || (s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if (s[0] == 0xc2 && s[1] < 0xa0)
		return 0;	/* C1 */
	if (s[0] == 0xe2 && (s[1] == 0x80 || s[1] == 0x81))
		return 0;	/* directions, separators, other invisible things */
	return len;
}

static void add_escaped(struct buf *out, const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;

	while (n) {
		size_t len = printable(s, n);

		if (len)
			buf_add(out, s, len);
		else
			buf_printf(out, "\\x%02x", *s);
		len = len ? len : 1;
		s += len;
		n -= len;
	}
}

void text_show(struct buf *out, const char *s, size_t n)
{
	size_t shown = n;

	if (n > SHOWN)
		for (shown = SHOWN; shown && ((unsigned char)s[shown] & 0xc0) == 0x80;)
			shown--;
	buf_puts(out, "\"");
	add_escaped(out, s, shown);
	buf_puts(out, shown < n ? "...\"" : "\"");
}

void text_name(struct buf *out, const char *s)
{
	add_escaped(out, s, strlen(s));
}

/* Words that a YAML reader may take for something else than a string. */
static bool is_reserved(const char *s)
{
	static const char *const words[] = { "null", "true", "false", "yes", "no", "on", "off", "y", "n" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasecmp(s, words[i]) == 0)
			return true;
	return false;
}

void text_scalar(struct buf *out, const char *s)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-=+@";
	size_t n = strlen(s);
	bool starts_well = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_' ||
			   *s == '/' || strcmp(s, ".") == 0 || strncmp(s, "./", 2) == 0;

	if (n && starts_well && strspn(s, safe) == n && !is_reserved(s))
		buf_add(out, s, n);
	else
		json_quote(out, s);
}
