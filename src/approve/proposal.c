/*
 * Reading what ward-ask sends. In: bytes of any process inside. Out: a request for the rules or the
 * denials, or a proposal of one host or one path, in their canonical forms; anything else is
 * refused with a text that says what is wrong. Wildcards and blocks are refused: what is wider than
 * one host is for the policy's author, or for the person who answers. Pure. Fuzzed
 * (fuzz/proposal.c).
 */
#include "approve/proposal.h"

#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "policy/units.h"

const char proposal_usage[] =
	"usage: ward-ask [rules|denials] [--json]\n"
	"       ward-ask allow HOST[:PORT] --reason TEXT\n"
	"       ward-ask allow /PATH --reason TEXT\n"
	"       ward-ask publish PORT --reason TEXT\n"
	"\n"
	"rules    what this sandbox may do (default)\n"
	"denials  what was refused so far\n"
	"allow    propose a host, or a file or directory to read, to the person who watches this\n"
	"         sandbox, and wait for the answer\n"
	"publish  the same for a port of a server inside, to be reached from this machine\n"
	"\n"
	"exit status: 0 allowed, 1 not allowed, 2 usage, 125 ward cannot be asked\n";

/* The words of a packet; points into it. */
struct words {
	const char *items[ASK_WORDS_MAX];
	size_t count;
};

static bool take_words(const uint8_t *bytes, size_t n, struct words *ret)
{
	const char *at = (const char *)bytes + sizeof(struct ask_message),
		   *end = (const char *)bytes + n;
	struct ask_message m;

	if (n < sizeof(m) || n > ASK_MAX)
		return false;
	memcpy(&m, bytes, sizeof(m));
	if (m.magic != ASK_MAGIC || m.op != ASK_WORDS || m.a < 0 || m.a > ASK_WORDS_MAX)
		return false;
	for (ret->count = 0; ret->count < (size_t)m.a; ret->count++) {
		const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;

		if (!nul)
			return false;
		ret->items[ret->count] = at;
		at = nul + 1;
	}
	return at == end;
}

static const char *take_path(const char *text, struct proposal *ret)
{
	auto_free char *clean = path_clean(text);

	if (!clean || strcmp(clean, "/") == 0)
		return "name a file or directory below /";
	if (strlen(clean) > PROPOSAL_PATH_MAX)
		return "the path is too long";
	if (!text_is_plain(clean))
		return "the path has characters that cannot be proposed";
	memcpy(ret->path, clean, strlen(clean) + 1);
	return NULL;
}

/* NULL: taken. */
static const char *take_subject(const char *text, struct proposal *ret)
{
	uint16_t port = 0;

	if (*text == '/')
		return take_path(text, ret);
	if (strchr(text, '*') || strchr(text, '/'))
		return "name one host: patterns and blocks of addresses cannot be proposed";
	if (host_read_port(text, strlen(text), &ret->host, &port) != HOST_FINE)
		return "expected HOST, HOST:PORT or an absolute path";
	ret->port = port ? port : 443;
	return NULL;
}

/* NULL: taken. */
static const char *take_port(const char *text, struct proposal *ret)
{
	uint64_t port = 0;

	if (units_parse_uint(text, &port) < 0 || !port || port > UINT16_MAX || *text == '0')
		return "expected a port";
	ret->port = (uint16_t)port;
	return NULL;
}

/* The options behind the verb. NULL: taken. */
static const char *take_options(const struct words *w, size_t from, struct proposal *ret)
{
	bool reason = false;

	for (size_t i = from; i < w->count; i++) {
		bool allow = ret->verb >= PROPOSAL_ALLOW;

		if (!allow && strcmp(w->items[i], "--json") == 0) {
			ret->json = true;
			continue;
		}
		if (!allow || reason || strcmp(w->items[i], "--reason") != 0)
			return "unexpected argument";
		if (++i == w->count || !*w->items[i])
			return "--reason: say what it is needed for";
		if (strlen(w->items[i]) > PROPOSAL_REASON_MAX)
			return "--reason: at most 100 bytes, so that a person reads all of it";
		memcpy(ret->reason, w->items[i], strlen(w->items[i]) + 1);
		reason = true;
	}
	return ret->verb >= PROPOSAL_ALLOW && !reason ? "--reason is missing" : NULL;
}

bool proposal_read(const uint8_t *bytes, size_t n, struct proposal *ret, const char **ret_wrong)
{
	static const struct {
		const char *word;
		enum proposal_verb verb;
	} verbs[] = { { "rules", PROPOSAL_RULES }, { "denials", PROPOSAL_DENIALS },
		      { "allow", PROPOSAL_ALLOW }, { "publish", PROPOSAL_PUBLISH },
		      { "--help", PROPOSAL_HELP }, { "--json", PROPOSAL_RULES } };
	struct words w;
	size_t at = 0, from = 1;

	*ret = (struct proposal){ .verb = PROPOSAL_RULES };
	*ret_wrong = NULL;
	if (!take_words(bytes, n, &w))
		return false;
	if (!w.count)
		return true;
	while (at < ARRAY_LEN(verbs) && strcmp(verbs[at].word, w.items[0]) != 0)
		at++;
	if (at == ARRAY_LEN(verbs)) {
		*ret_wrong = "expected rules, denials, allow or publish";
		return false;
	}
	ret->verb = verbs[at].verb;
	ret->json = strcmp(w.items[0], "--json") == 0;
	if (ret->verb == PROPOSAL_HELP)
		return true;
	if (ret->verb >= PROPOSAL_ALLOW && w.count < 2)
		*ret_wrong = "what?";
	else if (ret->verb == PROPOSAL_PUBLISH)
		*ret_wrong = take_port(w.items[from++], ret);
	else if (ret->verb == PROPOSAL_ALLOW)
		*ret_wrong = take_subject(w.items[from++], ret);
	if (!*ret_wrong)
		*ret_wrong = take_options(&w, from, ret);
	return !*ret_wrong;
}
