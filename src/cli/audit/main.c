/*
 * ward-audit: reading, verifying, signing and pruning journals. In: the words of `ward audit`. Out:
 * text, JSON, an exit code. A program of its own because it links OpenSSL, which the start of a
 * sandbox must not pay for. Runs with the user's rights; what it reads may have been changed by any
 * program with the user's rights.
 */
#include "cli/audit/parts.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "audit/sign.h"

static int audit_seal(struct options *o, int audit_fd)
{
	struct ward_err e = { 0 };

	if (sign_checkpoint(audit_fd, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	audit_prune_by_rule(audit_fd);
	return EXIT_FINE;
}

static int audit_key(struct options *o, int audit_fd)
{
	char hex[SIGN_KEY_HEX];
	struct ward_err e = { 0 };
	auto_buf out = { 0 };

	if (sign_public(audit_fd, hex, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	buf_printf(&out, o->json ? "{\"key\":\"%s\"}\n" : "%s\n", hex);
	return say_out(&out, EXIT_FINE);
}

static const struct {
	const char *word;
	size_t max; /* words behind it */
	bool make;  /* the directory need not be there */
	int (*run)(struct options *o, int audit_fd);
} words[] = {
	{ "show", 1, false, audit_show },
	{ "verify", 1, false, audit_verify },
	{ "ls", 0, false, audit_ls },
	{ "metrics", 0, true, audit_metrics },
	{ "report", 1, false, audit_report },
	{ "send", 0, false, audit_send },
	{ "export", SIZE_MAX - 1, false, audit_export },
	{ "prune", 0, false, audit_prune },
	{ "seal", 0, true, audit_seal },
	{ "key", 0, false, audit_key },
};

static int run_word(struct options *o)
{
	struct ward_err e = { 0 };
	auto_fd audit = -1;
	size_t i = 0;

	while (i < ARRAY_LEN(words) && strcmp(words[i].word, o->words[0]) != 0)
		i++;
	if (i == ARRAY_LEN(words) || o->word_count - 1 > words[i].max) {
		ward_fail(&e, EINVAL,
			  i < ARRAY_LEN(words) ? "unexpected argument: %.200s"
					       : "unknown command: ward audit %.200s",
			  o->words[i < ARRAY_LEN(words) ? words[i].max + 1 : 0]);
		ward_remedy(&e, "known are show, report, verify, export, metrics, send, ls, prune, "
				"seal and key; see ward audit --help");
		return say_error(&e, o->json, EXIT_USAGE);
	}
	audit = place_open(words[i].make, &e);
	if (audit < 0) {
		if (e.code == ENOENT)
			ward_remedy(&e, "ward run writes one unless audit.journal is none, to "
					"WARD_STATE_DIR if that is set");
		return say_error(&e, o->json, EXIT_REFUSED);
	}
	return words[i].run(o, audit);
}

static void reader_gone(unused_arg int signal_number)
{
}

int main(int argc, char **argv)
{
	const struct sigaction gone = { .sa_handler = reader_gone };
	struct ward_err e = { 0 };
	struct options o;
	int code;

	if (argc < 1)
		return EXIT_USAGE;
	sigaction(SIGPIPE, &gone, NULL);
	if (options_read(VERB_AUDIT, argv + 1, &o, &e) < 0) {
		code = say_usage(&e, &o);
	} else if (o.help) {
		auto_buf out = { 0 };

		help_text(VERB_AUDIT, &out);
		code = say_out(&out, EXIT_FINE);
	} else {
		code = strcmp(o.words[0], "forward") == 0 && getenv("WARD_SINKS")
			       ? audit_forward(&o, -1)
			       : run_word(&o);
	}
	options_clear(&o);
	return code;
}
