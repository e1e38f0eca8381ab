/*
 * What a program inside asks of ward. In: the words of a command line, as any process of a sandbox
 * may send them. Out: the options of a fixed list, and the command; or why it is none. What an
 * option may say is decided by the comparison with the parent's policy (narrow.c). Pure. Fuzzed
 * (fuzz/child_request.c).
 */
#include "cli/children/request.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "policy/policy_channel.h"

static const struct form {
	const char *name;
	enum child_kind kind;
	const char *field;
} forms[] = {
	{ "--ro", CHILD_READ, "" },
	{ "--rw", CHILD_WRITE, "" },
	{ "--hide", CHILD_APPEND, "filesystem.hide" },
	{ "--allow", CHILD_RULE, "network.egress_allowlist" },
	{ "--memory", CHILD_FIELD, "resources.memory_limit" },
	{ "--pids", CHILD_FIELD, "resources.pids_limit" },
	{ "--cpus", CHILD_FIELD, "resources.cpu_limit" },
	{ "--disk", CHILD_FIELD, "resources.disk_limit" },
	{ "--timeout", CHILD_FIELD, "resources.timeout_seconds" },
	{ "--set", CHILD_PAIR, "" },
	{ "--name", CHILD_NAME, "" },
	{ "--chdir", CHILD_CWD, "" },
	{ "-C", CHILD_CWD, "" },
};

/* Words of a request, one after the other. */
struct words {
	const char *at;
	size_t left;
};

static const char *next(struct words *w)
{
	const char *word = w->left ? w->at : NULL;

	if (word) {
		w->at += strlen(word) + 1;
		w->left--;
	}
	return word;
}

/* "--memory" or "--memory=1Gi"; *ret_value: what stands behind the sign, NULL: nothing. */
static const struct form *find_form(const char *word, const char **ret_value)
{
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		size_t n = strlen(forms[i].name);

		if (strncmp(word, forms[i].name, n) != 0 || (word[n] && (word[n] != '=' || n == 2)))
			continue;
		*ret_value = word[n] ? word + n + 1 : NULL;
		return &forms[i];
	}
	return NULL;
}

static int refuse_option(const char *word, struct ward_err *e)
{
	auto_buf shown = { 0 };

	text_escape(&shown, word);
	ward_fail(e, EINVAL, "inside a sandbox ward run does not know %.100s", buf_text(&shown));
	return ward_remedy(e, "options: --ro --rw --hide --allow --memory --pids --cpus --disk "
			      "--timeout --set --name -C");
}

static int add_option(struct words *w, const char *word, struct child_request *ret,
		      struct ward_err *e)
{
	const char *value = NULL;
	const struct form *f = find_form(word, &value);

	if (!f)
		return refuse_option(word, e);
	if (!value)
		value = next(w);
	if (!value || !*value)
		return ward_fail(e, EINVAL, "%s needs a value", f->name);
	if (f->kind == CHILD_CWD) {
		ret->cwd = value;
		return 0;
	}
	if (f->kind == CHILD_NAME) {
		ret->name = value;
		return child_is_name(value)
			       ? 0
			       : ward_fail(e, EINVAL,
					   "--name: letters, digits and . _ -, at most "
					   "63, and not parent");
	}
	if (ret->option_count == CHILD_OPTIONS_MAX)
		return ward_fail(e, E2BIG, "a child takes at most %d options", CHILD_OPTIONS_MAX);
	ret->options[ret->option_count++] = (struct child_option){
		.kind = f->kind, .name = f->name, .field = f->field, .value = value
	};
	return 0;
}

bool child_is_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	size_t n = strspn(name, letters);

	return n && !name[n] && n < CHANNEL_NAME_TEXT && *name != '-' &&
	       strcmp(name, CHANNEL_PARENT) != 0;
}

static int read_run(struct words *w, struct child_request *ret, struct ward_err *e)
{
	while (w->left && *w->at == '-') {
		const char *word = next(w);
		int r;

		if (strcmp(word, "--") == 0)
			break;
		r = add_option(w, word, ret, e);
		if (r < 0)
			return r;
	}
	ret->command = w->at;
	ret->word_count = w->left;
	if (!w->left || !*w->at)
		return ward_fail(e, EINVAL, "ward run needs a command");
	return 0;
}

/* NAME [--to WHO] [--] TEXT */
static int read_send(struct words *w, struct child_request *ret, struct ward_err *e)
{
	const char *word;

	ret->name = next(w);
	word = next(w);
	if (word && strcmp(word, "--to") == 0) {
		ret->to = next(w);
		word = next(w);
	}
	if (word && strcmp(word, "--") == 0)
		word = next(w);
	ret->text = word;
	if (ret->name && word && !w->left)
		return 0;
	return ward_fail(e, EINVAL, "ward send CHANNEL [--to NAME] [--] MESSAGE");
}

/* NAME [--wait SECONDS] */
static int read_receive(struct words *w, struct child_request *ret, struct ward_err *e)
{
	const char *word, *number;

	ret->name = next(w);
	word = next(w);
	number = next(w);
	if (!ret->name || w->left || (word && (strcmp(word, "--wait") != 0 || !number)))
		return ward_fail(
			e, EINVAL,
			"ward receive needs a channel: ward receive CHANNEL [--wait SECONDS]");
	if (!word)
		return 0;
	if (!*number || strlen(number) > 6 || strspn(number, "0123456789") != strlen(number))
		return ward_fail(e, EINVAL, "--wait: expected a number of seconds");
	for (; *number; number++)
		ret->wait_s = ret->wait_s * 10 + (unsigned)(*number - '0');
	return 0;
}

int child_request_read(const struct command_said *said, struct child_request *ret,
		       struct ward_err *e)
{
	static const struct {
		const char *word;
		enum child_verb verb;
		int (*read)(struct words *, struct child_request *, struct ward_err *);
	} verbs[] = { { "run", CHILD_RUN, read_run },
		      { "send", CHILD_SEND, read_send },
		      { "receive", CHILD_RECEIVE, read_receive } };
	struct words w = { said->words, said->word_count };
	const char *word;

	*ret = (struct child_request){ 0 };
	(void)next(&w); /* what the client was called by */
	word = next(&w);
	for (size_t i = 0; word && i < ARRAY_LEN(verbs); i++)
		if (strcmp(word, verbs[i].word) == 0) {
			ret->verb = verbs[i].verb;
			return verbs[i].read(&w, ret, e);
		}
	ward_fail(e, EINVAL,
		  "inside a sandbox ward runs children and sends them messages, and "
		  "nothing else");
	return ward_remedy(e, "ward run [options] -- CMD..., ward send, ward receive");
}
