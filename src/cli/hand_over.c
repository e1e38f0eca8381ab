/*
 * Handing a verb to the program that does its work: ward-image and ward-vm-tool lie beside ward or
 * in its libexec directory and link what ward must not. In: the verb's options, read. Out: that
 * program in place of this one; base/tool.c reads there what is put together here.
 */
#include "cli/hand_over.h"

#include <errno.h>

#include "host/program.h"

int hand_over(struct options *o, const char *program, const struct handed *options, size_t count)
{
	const struct handed common[] = { { "--json", NULL, o->json },
					 { "--quiet", NULL, o->quiet } };
	struct ward_err e = { 0 };
	auto_strv argv = { 0 };

	strv_add(&argv, program);
	strv_add(&argv, o->words[0]);
	for (size_t i = 0; i < count + ARRAY_LEN(common); i++) {
		const struct handed *h = i < count ? &options[i] : &common[i - count];

		if (h->value || h->set)
			strv_add(&argv, h->name);
		if (h->value)
			strv_add(&argv, h->value);
	}
	strv_add(&argv, "--");
	for (size_t i = 1; i < o->word_count; i++)
		strv_add(&argv, o->words[i]);
	if (argv.failed)
		ward_fail(&e, ENOMEM, "out of memory");
	else
		(void)!program_become(argv.items, &e);
	return say_error(&e, o->json, EXIT_REFUSED);
}
