/*
 * ward shell: an interactive shell in a sandbox. In: the options of run, arguments for the shell.
 * Out: the shell's exit code. It is `ward run` of bash, or of sh where the system has no bash; /usr
 * is the same inside and outside, so a look here tells; an image has sh, if any. Its prompt says
 * where one is.
 */
#include "cli/cli.h"

#include <errno.h>

#define BASH "/usr/bin/bash"
#define SH "/bin/sh"

int verb_shell(struct options *o)
{
	static const char *const bash_env[] = { "SHELL=" BASH, "PS1=(ward) \\w\\$ ", NULL };
	static const char *const sh_env[] = { "SHELL=" SH, "PS1=(ward) $ ", NULL };
	static char bash[] = BASH, sh[] = SH;
	bool has_bash = !options_name_image(o) && access(BASH, X_OK) == 0;
	auto_free char **words = NULL;
	struct ward_err e = { 0 };

	if (o->restore) {
		ward_fail(&e, EINVAL,
			  "--restore continues the command of the checkpoint and starts no shell");
		ward_remedy(&e, "ward run -d --restore %.60s, then ward exec -t", o->restore);
		return say_usage(&e, o);
	}
	words = calloc(o->word_count + 2, sizeof(*words));
	if (!words) {
		ward_fail(&e, ENOMEM, "out of memory");
		return say_error(&e, o->json, EXIT_REFUSED);
	}
	words[0] = has_bash ? bash : sh;
	for (size_t i = 0; i < o->word_count; i++)
		words[i + 1] = o->words[i];
	o->words = words;
	o->word_count++;
	o->own_env = has_bash ? bash_env : sh_env;
	return verb_run(o);
}
