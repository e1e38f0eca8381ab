/*
 * What git gives to a program that signs. In: bytes that a program inside wants to have signed with
 * a gpg key. Out: whether they are a commit or a tag. Only forms that git itself writes are known:
 * their headers in git's order, each whole, without control characters; ids of one length. So a
 * signature that ward gets is never one of a mail, a key, a package or a push certificate. A tag
 * whose message has a line that begins an armored block is refused: programs differ in where they
 * then look for the signature. Sources: git-commit-tree, git-mktag, gitformat-signature of git 2.39
 * and 2.47. Pure functions, fuzzed (fuzz/git_signed.c); run by ward-ssh-agent.
 */
#include "rules/git_signed.h"

#include <stdbool.h>
#include <string.h>

#include "base/own.h"

#define ARMOR "-----BEGIN "
#define TAG_NAME_MAX 1024

struct text {
	const char *at, *end;
};

/* Takes a word from the front. */
static bool take_word(struct text *t, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
		return false;
	t->at += n;
	return true;
}

/* Takes the rest of the line and its newline. False: there is none. */
static bool take_line(struct text *t, struct text *ret)
{
	const char *end = memchr(t->at, '\n', (size_t)(t->end - t->at));

	if (!end)
		return false;
	*ret = (struct text){ t->at, end };
	t->at = end + 1;
	return true;
}

static bool is_visible(struct text line)
{
	for (const char *s = line.at; s < line.end; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return line.at < line.end;
}

/* An id of 40 or 64 hexadecimal digits, the same number in each of an object. */
static bool take_id(struct text *t, size_t *digits)
{
	struct text line;
	size_t n;

	if (!take_line(t, &line))
		return false;
	n = (size_t)(line.end - line.at);
	if ((n != 40 && n != 64) || (*digits && n != *digits))
		return false;
	*digits = n;
	for (const char *s = line.at; s < line.end; s++)
		if (!strchr("0123456789abcdef", *s) || !*s)
			return false;
	return true;
}

static size_t count_of(const char *at, const char *end, bool (*is)(char))
{
	const char *s = at;

	while (s < end && is(*s))
		s++;
	return (size_t)(s - at);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* NAME <MAIL> SECONDS +ZONE */
static bool take_person(struct text *t)
{
	const char *open, *close, *s;
	struct text line;
	size_t n;

	if (!take_line(t, &line) || !is_visible(line))
		return false;
	open = memchr(line.at, '<', (size_t)(line.end - line.at));
	close = open ? memchr(open, '>', (size_t)(line.end - open)) : NULL;
	if (!close || line.end - close < 2 || close[1] != ' ' ||
	    memchr(open + 1, '<', (size_t)(close - open - 1)))
		return false;
	s = close + 2;
	n = count_of(s, line.end, is_digit);
	s += n;
	if (!n || line.end - s < 3 || *s != ' ' || (s[1] != '+' && s[1] != '-'))
		return false;
	n = count_of(s + 2, line.end, is_digit);
	return n >= 4 && n <= 6 && s + 2 + n == line.end;
}

/* Headers that git adds to a commit before it is signed; a mergetag goes on in lines that begin
 * with a space. */
static bool take_more(struct text *t)
{
	struct text line;

	if (take_word(t, "encoding "))
		return take_line(t, &line) && is_visible(line);
	if (!take_word(t, "mergetag ") || !take_line(t, &line))
		return false;
	while (take_word(t, " "))
		if (!take_line(t, &line))
			return false;
	return true;
}

/* A message: whatever the encoding, but no NUL, where readers of C stop. */
static bool is_message(struct text t)
{
	return !memchr(t.at, '\0', (size_t)(t.end - t.at));
}

static bool is_commit(struct text t)
{
	size_t digits = 0;

	if (!take_word(&t, "tree ") || !take_id(&t, &digits))
		return false;
	while (take_word(&t, "parent "))
		if (!take_id(&t, &digits))
			return false;
	if (!take_word(&t, "author ") || !take_person(&t) || !take_word(&t, "committer ") ||
	    !take_person(&t))
		return false;
	while (!take_word(&t, "\n"))
		if (!take_more(&t))
			return false;
	return is_message(t);
}

static bool is_kind(struct text line)
{
	static const char *const kinds[] = { "commit", "tree", "blob", "tag" };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if ((size_t)(line.end - line.at) == strlen(kinds[i]) &&
		    memcmp(line.at, kinds[i], strlen(kinds[i])) == 0)
			return true;
	return false;
}

static bool has_armor(struct text t)
{
	struct text line;

	do
		if (take_word(&t, ARMOR))
			return true;
	while (take_line(&t, &line));
	return false;
}

static bool is_tag(struct text t)
{
	struct text line;
	size_t digits = 0;

	if (!take_word(&t, "object ") || !take_id(&t, &digits) || !take_word(&t, "type ") ||
	    !take_line(&t, &line) || !is_kind(line))
		return false;
	if (!take_word(&t, "tag ") || !take_line(&t, &line) || !is_visible(line) ||
	    line.end - line.at > TAG_NAME_MAX)
		return false;
	return take_word(&t, "tagger ") && take_person(&t) && take_word(&t, "\n") &&
	       is_message(t) && !has_armor(t);
}

enum git_signed git_signed_read(const uint8_t *bytes, size_t n)
{
	struct text t = { (const char *)bytes, (const char *)bytes + n };

	if (!n || n > GIT_SIGNED_MAX)
		return GIT_SIGNED_OTHER;
	if (is_commit(t))
		return GIT_SIGNED_COMMIT;
	return is_tag(t) ? GIT_SIGNED_TAG : GIT_SIGNED_OTHER;
}
