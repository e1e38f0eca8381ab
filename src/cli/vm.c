/*
 * ward vm: hands its words to ward-vm-tool, which lies beside ward or in its libexec directory and links what ward must not. In: the verb's options, read. Out: that program in place of this one.
 */
#include <errno.h>
#include <string.h>

#include "cli/cli.h"
#include "lib/vm.h"

int verb_vm(struct options *o)
{
	const char *const values[] = { "--from", o->vm_from, "--image", o->vm_image, "--memory", o->vm_memory, "--cpus", o->vm_cpus, "--accel", o->vm_accel };
	struct ward_err e = { 0 };
	auto_free char *tool = NULL;
	auto_strv argv = { 0 };

	if (vm_own_file("ward-vm-tool", &tool, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	strv_add(&argv, "ward-vm-tool");
	strv_add(&argv, o->words[0]);
	for (size_t i = 0; i < ARRAY_LEN(values); i += 2)
		if (values[i + 1]) {
			strv_add(&argv, values[i]);
			strv_add(&argv, values[i + 1]);
		}
	if (o->json)
		strv_add(&argv, "--json");
	if (o->quiet)
		strv_add(&argv, "--quiet");
	if (o->vm_network)
		strv_add(&argv, "--network");
	strv_add(&argv, "--");
	for (size_t i = 1; i < o->word_count; i++)
		strv_add(&argv, o->words[i]);
	if (argv.failed) {
		ward_fail(&e, ENOMEM, "out of memory");
	} else {
		execv(tool, argv.items);
		ward_fail_errno(&e, "cannot start %s", tool);
	}
	return say_error(&e, o->json, EXIT_REFUSED);
}
