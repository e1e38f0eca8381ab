/*
 * Fuzzes what ward-ask sends: a packet, read; what is a proposal is shown. Nothing in a question
 * acts on a terminal, ward's own lines cannot be imitated, and what can be proposed is one host or
 * one path.
 */
#include <assert.h>
#include <string.h>

#include "approve/proposal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool is_shown(const char *text, size_t cap)
{
	size_t n = strnlen(text, cap);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	return n < cap;
}

static bool begins_with_label(const char *line)
{
	static const char *const labels[] = {
		"warning: ",     "widens: ",     "allows: ",
		"takes effect ", "an address, ", "the sandbox proposes it, and says why: "
	};

	for (size_t i = 0; i < ARRAY_LEN(labels); i++)
		if (strncmp(line, labels[i], strlen(labels[i])) == 0)
			return true;
	return !*line;
}

static void check_path(const struct proposal *p, const struct question *q)
{
	assert(p->path[0] == '/' && !strstr(p->path, "//") && !strstr(p->path, "/../"));
	assert(strcmp(q->line, p->path) == 0 && !*q->host && !q->port);
	assert(strncmp(q->subject, "allow reading /", 15) == 0);
}

static void check(const struct proposal *p)
{
	const char *reals[] = { NULL, "/other", p->path };
	struct question q;

	for (size_t i = 0; i < ARRAY_LEN(reals); i++) {
		unsigned reasons = 0;

		proposal_show(NULL, p, reals[i], proposal_judge(NULL, p), 1, &q);
		assert(is_shown(q.subject, sizeof(q.subject)) && is_shown(q.line, sizeof(q.line)));
		for (size_t k = 0; k < QUESTION_DETAILS_MAX; k++) {
			assert(is_shown(q.details[k], sizeof(q.details[k])) &&
			       begins_with_label(q.details[k]));
			reasons += strncmp(q.details[k], "the sandbox", 11) == 0;
		}
		assert(reasons == 1);
		if (p->verb == PROPOSAL_PUBLISH) {
			assert(q.port && q.port == p->port && !*q.host && *q.line);
		} else if (p->host.kind == HOST_NONE) {
			check_path(p, &q);
		} else {
			assert(*q.host && q.port && *q.line && !strchr(q.line, '*'));
			(void)proposal_is_public(p);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t bytes[ASK_MAX];
	struct ask_message m = { ASK_MAGIC, ASK_WORDS, 0, 0 };
	struct proposal p;
	const char *wrong;

	if (!proposal_read(data, n, &p, &wrong))
		assert(!wrong || *wrong);
	if (n < 1 || n > 1024)
		return 0;
	m.a = data[0] % 8;
	memcpy(bytes, &m, sizeof(m));
	memcpy(bytes + sizeof(m), data + 1, n - 1);
	if (!proposal_read(bytes, sizeof(m) + n - 1, &p, &wrong))
		return 0;
	assert(!wrong);
	if (p.verb >= PROPOSAL_ALLOW) {
		assert(*p.reason);
		check(&p);
	}
	return 0;
}
