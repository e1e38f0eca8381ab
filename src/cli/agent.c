/*
 * ward agent: an agent by its name. In: the name of a profile, options of ward run, arguments of
 * the agent. Out: the exit code of a `ward run` with that profile and its first program; 127 with
 * the way to get the program where PATH does not have it.
 *
 * Everything is put together as one command line of ward run, which is then read and carried out
 * like any other: the profile, what agent_ask.c puts beside it (--default, below a policy file),
 * .env hidden (--add, which only narrows), the caller's options, the program. So ward agent has
 * whatever ward run has, detached sandboxes too, whose ward-box reads that line again.
 */
#include "cli/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "cli/ask.h"
#include "cli/question.h"
#include "plan/plan.h"
#include "plan/profile.h"

#define NOT_FOUND 127
#define POLICY_BYTES_MAX (1024 * 1024)

/* What agents have no business with; a file may hide more, --set filesystem.hide=[] less. */
static const char hidden[][24] = { ".env", ".env.local", ".env.*.local", ".env.production",
				   ".env.staging" };

static const struct {
	char name[16], install[64];
} agents[] = {
#define AGENT(name, install) { name, install },
#include "agents.def"
};

const char *agent_install(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(agents); i++)
		if (strcmp(agents[i].name, name) == 0)
			return agents[i].install;
	return NULL;
}

bool agent_is_known(const char *name)
{
	return agent_install(name) != NULL;
}

/* -- the profile and its program */

static int read_profile(const char *name, struct policy *ret, struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	auto_buf text = { 0 };
	auto_free char *where = NULL;
	int r = profile_read(name, &text, &where, e);

	if (r == 0)
		r = policy_defaults(ret, e);
	if (r < 0)
		return r;
	r = policy_read(ret, where ? where : name, (const uint8_t *)buf_text(&text), text.len,
			POLICY_PROFILE, &errors);
	ask_print_errors(&errors);
	if (r < 0)
		ward_fail(e, -r, "the profile %s has %zu errors", name, errors.lines.len);
	strv_free(&errors.lines);
	return r;
}

int agent_open(const char *name, struct agent *ret, struct ward_err *e)
{
	struct agent a = { .name = name };
	int r = read_profile(name, &a.profile, e);

	if (r == 0 && a.profile.fs_programs.len) {
		a.program = strdup(a.profile.fs_programs.items[0]);
		a.file = plan_find_program(a.profile.fs_programs.items[0]);
		r = a.program ? 0 : ward_fail(e, ENOMEM, "out of memory");
	}
	if (r < 0)
		agent_close(&a);
	else
		*ret = a;
	return r;
}

void agent_close(struct agent *a)
{
	policy_clear(&a->profile);
	free(a->program);
	free(a->file);
	*a = (struct agent){ 0 };
}

static int fail_missing(const struct agent *a, struct ward_err *e)
{
	const char *install = agent_install(a->name);

	ward_fail(e, ENOENT, "%s is not installed: your PATH has no program %s", a->name,
		  a->program);
	if (install)
		return ward_remedy(e, "get it with %s", install);
	return ward_remedy(e, "install %s, or add its directory to PATH", a->program);
}

/* -- the command line */

/* Options as they were given, up to where the words begin. */
static void add_options(struct strv *line, char **from, char **to)
{
	if (to > from && strcmp(to[-1], "--") == 0)
		to--;
	for (; from < to; from++)
		strv_add(line, *from);
}

/* What was given: options in front of the name, options behind it, arguments. */
struct given {
	const struct options *before, *behind;
};

static int check_given(const struct agent *a, const struct given *g, struct ward_err *e)
{
	if (!a->program) {
		ward_fail(e, EINVAL, "the profile %s has no program of its own to start", a->name);
		return ward_remedy(e, "ward run --profile %s -- CMD", a->name);
	}
	if (!g->before->profile && !g->behind->profile)
		return 0;
	ward_fail(e, EINVAL, "ward agent %s has the profile %s already", a->name, a->name);
	return ward_remedy(e, "remove --profile, or use ward run");
}

static bool is_watched(const struct given *g)
{
	return question_possible() && !g->before->detach && !g->behind->detach &&
	       !g->before->json && !g->behind->json;
}

static int make_line(const struct agent *a, const struct given *g, struct strv *line,
		     struct ward_err *e)
{
	int r;

	strv_add(line, "--profile");
	strv_add(line, a->name);
	r = agent_add_wishes(a, is_watched(g), line, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		strv_addf(line, "--add=filesystem.hide=%s", hidden[i]);
	add_options(line, g->before->line, g->before->words);
	add_options(line, g->behind->line, g->behind->words);
	strv_add(line, "--");
	strv_add(line, a->program);
	for (size_t i = 0; i < g->behind->word_count; i++)
		strv_add(line, g->behind->words[i]);
	return line->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* Whether a policy file may name an image. It is not read here as ward run reads it: a word in it
 * is enough. */
static bool may_name_image(const char *name)
{
	auto_buf text = { 0 };
	struct stat st;

	return stat(name, &st) == 0 && S_ISREG(st.st_mode) &&
	       (io_read_file(AT_FDCWD, name, POLICY_BYTES_MAX, &text) < 0 ||
		strstr(buf_text(&text), "image") || strstr(buf_text(&text), "extends"));
}

/* A root that is not the host's may have the program. */
static bool may_be_elsewhere(const struct given *g)
{
	return options_name_image(g->before) || options_name_image(g->behind) ||
	       may_name_image("ward.yaml") || may_name_image("ward.json");
}

static int run_agent(const struct agent *a, const struct given *g, struct strv *line,
		     struct ward_err *e)
{
	bool json = g->before->json || g->behind->json;
	struct options run;
	int code;

	if (!a->file && !may_be_elsewhere(g)) {
		fail_missing(a, e);
		return say_error(e, json, NOT_FOUND);
	}
	if (make_line(a, g, line, e) < 0)
		return say_error(e, json, EXIT_REFUSED);
	if (options_read(VERB_RUN, line->items, &run, e) < 0)
		return say_error(e, json, EXIT_REFUSED);
	code = verb_run(&run);
	options_clear(&run);
	return code;
}

static int start(struct options *before)
{
	static char *nothing[] = { NULL };
	struct options behind = { 0 };
	const struct given g = { before, &behind };
	struct ward_err e = { 0 };
	auto_strv line = { 0 };
	struct agent a;
	int code;

	if (options_read(VERB_AGENT, before->words[1] ? before->words + 1 : nothing, &behind, &e) <
	    0) {
		behind.json |= before->json;
		code = say_usage(&e, &behind);
	} else if (behind.help) {
		auto_buf out = { 0 };

		help_text(VERB_AGENT, &out);
		code = say_out(&out, EXIT_FINE);
	} else if (agent_open(before->words[0], &a, &e) < 0) {
		code = say_error(&e, before->json || behind.json, EXIT_REFUSED);
	} else {
		code = check_given(&a, &g, &e) < 0 ? say_usage(&e, before)
						   : run_agent(&a, &g, &line, &e);
		agent_close(&a);
	}
	options_clear(&behind);
	return code;
}

int verb_agent(struct options *o)
{
	bool json_behind = o->word_count == 2 && strcmp(o->words[1], "--json") == 0;
	struct ward_err e = { 0 };

	if (!o->word_count)
		return agent_list(o->json);
	if (strcmp(o->words[0], "ls") == 0 && (o->word_count == 1 || json_behind))
		return agent_list(o->json || json_behind);
	if (strcmp(o->words[0], "set") == 0 && o->word_count > 2)
		return agent_set(o);
	if (strcmp(o->words[0], "ls") != 0 && strcmp(o->words[0], "set") != 0)
		return start(o);
	ward_fail(&e, EINVAL, "%s",
		  strcmp(o->words[0], "ls") == 0
			  ? "ward agent ls takes no argument"
			  : "ward agent set needs the name of an agent and WHAT=VALUE");
	ward_remedy(&e, "ward agent ls, or ward agent set NAME spend=5.00");
	return say_error(&e, o->json, EXIT_USAGE);
}

char **agent_words(char **argv)
{
	size_t n = 0;
	bool split = false, options = argv[1] && argv[1][0] == '-';
	char **words, **at;

	for (; argv[n]; n++)
		split |= n > 0 && strcmp(argv[n], "--") == 0;
	words = calloc(n + 2, sizeof(*words));
	if (!words)
		return NULL;
	at = words;
	*at++ = argv[0];
	if (!(options && split)) {
		static char end[] = "--";

		*at++ = end;
	}
	for (size_t i = 1; i < n; i++)
		*at++ = argv[i];
	return words;
}
