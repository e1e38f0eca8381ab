/*
 * Reading an answer that a program sends: over the socket of `ward approve --socket`, or as what a
 * webhook returns. In: bytes of the other end. Out: which question, which answer.
 * Strict: unknown keys, keys twice, other types and texts that do not fit are refused, so that two
 * programs never read one answer differently. Whether it may answer at all is not decided here.
 * Pure. Fuzzed (fuzz/approve_answer.c).
 */
#include "approve/answer.h"

#include <errno.h>
#include <string.h>

#include "approve/approve.h"
#include "base/buf.h"
#include "rules/json_in.h"

static const char words[QUESTION_ANSWERS][8] = { [QUESTION_ONCE] = "once",
						 [QUESTION_RUN] = "run",
						 [QUESTION_TIME] = "time",
						 [QUESTION_ALWAYS] = "always",
						 [QUESTION_DENY] = "deny" };

const char *answer_word(enum question_answer answer)
{
	return answer >= QUESTION_ONCE && answer < QUESTION_ANSWERS ? words[answer] : NULL;
}

enum question_answer answer_of(const char *word)
{
	for (enum question_answer a = QUESTION_ONCE; a < QUESTION_ANSWERS; a++)
		if (strcmp(words[a], word) == 0)
			return a;
	return 0;
}

/* A string of printable ASCII that fits. */
static bool take_text(struct json_in *j, char *out, size_t cap)
{
	auto_buf text = { 0 };

	if (json_in_peek(j) != '"')
		return false;
	json_in_string(j, &text);
	if (j->bad || text.failed || text.len >= cap)
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] < 0x20 || text.data[i] > 0x7e)
			return false;
	memcpy(out, buf_text(&text), text.len);
	out[text.len] = '\0';
	return true;
}

/* A whole number, without a sign, a point or an exponent. */
static bool take_number(struct json_in *j, uint64_t *ret)
{
	uint64_t value = 0;
	const uint8_t *at;

	(void)json_in_peek(j);
	at = j->at;
	json_in_skip(j);
	if (j->bad || at == j->at)
		return false;
	for (; at < j->at; at++) {
		if (*at < '0' || *at > '9' || value > APPROVE_SECONDS_MAX)
			return false;
		value = value * 10 + (uint64_t)(*at - '0');
	}
	*ret = value;
	return true;
}

static bool take_member(struct json_in *j, const char *key, struct answer_said *ret)
{
	char word[8];

	if (strcmp(key, "id") == 0)
		return take_text(j, ret->id, sizeof(ret->id));
	if (strcmp(key, "by") == 0)
		return take_text(j, ret->by, sizeof(ret->by));
	if (strcmp(key, "nonce") == 0)
		return take_text(j, ret->nonce, sizeof(ret->nonce));
	if (strcmp(key, "seconds") == 0)
		return take_number(j, &ret->seconds);
	if (strcmp(key, "answer") != 0 || !take_text(j, word, sizeof(word)))
		return false;
	ret->answer = answer_of(word);
	return ret->answer != 0;
}

int answer_read(const uint8_t *bytes, size_t n, struct answer_said *ret, struct ward_err *e)
{
	struct answer_said said = { 0 };
	struct json_level l;
	struct json_in j;
	const char *key;
	bool good;

	json_in_init(&j, bytes, n);
	good = json_in_open(&j, '{', &l);
	while (good && json_in_next(&j, &l, &key)) {
		char name[16];

		/* key is borrowed until the next call */
		good = (size_t)snprintf(name, sizeof(name), "%s", key) < sizeof(name) &&
		       take_member(&j, name, &said);
	}
	good = good && !j.bad && json_in_end(&j);
	json_in_free(&j);
	if (!good || !*said.id || !said.answer ||
	    (said.answer == QUESTION_TIME) != (said.seconds > 0) ||
	    said.seconds > APPROVE_SECONDS_MAX) {
		ward_fail(e, EINVAL, "not an answer");
		return ward_remedy(e, "{\"id\": \"SANDBOX:NUMBER\", \"answer\": "
				      "\"once\"|\"run\"|\"time\"|\"always\"|\"deny\"}, with "
				      "\"seconds\" for time");
	}
	*ret = said;
	return 0;
}
