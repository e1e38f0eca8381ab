/*
 * ward vm: ward-vm-tool (src/vmtool) does its work. In: the verb's options, read. Out: that program
 * in place of this one.
 */
#include "cli/hand_over.h"

int verb_vm(struct options *o)
{
	const struct handed options[] = {
		{ "--from", o->vm_from, false },     { "--image", o->vm_image, false },
		{ "--memory", o->vm_memory, false }, { "--cpus", o->vm_cpus, false },
		{ "--accel", o->vm_accel, false },   { "--network", NULL, o->vm_network }
	};

	return hand_over(o, "ward-vm-tool", options, ARRAY_LEN(options));
}
