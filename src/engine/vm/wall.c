/*
 * The vm engine as a wall inside a native sandbox. In: the policy. Out: refusals, mounts, words; what runs behind it is ward-vm (src/vm), which starts QEMU in the sandbox and the command in the machine. The machine's memory and processors are
 * QEMU's, so the native sandbox's limits hold them; its connections are made by QEMU in the sandbox's network namespace, so the gateway decides about them; its files are copied from and to what the sandbox shows, so hide, protect and
 * review hold. A break-out of the machine lands in the sandbox that every other command has.
 *
 * kvm is taken only where a guest was seen to run at the processor's own speed; tcg, which isolates by nothing but its own correctness, only where the policy says so, and then it is said wherever the run is shown.
 */
#include <errno.h>
#include <string.h>

#include "engine/vm/vm.h"
#include "lib/program.h"
#include "lib/vm.h"

static const struct wall emulated;

static int probe(struct ward_err *e)
{
	auto_free char *qemu = NULL, *runner = NULL;
	struct vm_boot boot = { 0 };
	int r = vm_find_qemu(&qemu, e);

	if (r == 0)
		r = program_path("ward-vm", &runner, e);
	if (r == 0)
		r = vm_boot_find(&boot, e);
	vm_boot_clear(&boot);
	return r;
}

static int refuse(struct ward_err *e, const char *field, const char *why, const char *remedy)
{
	ward_fail(e, ENOTSUP, "%s: %s with isolation: vm", field, why);
	return ward_remedy(e, "%s", remedy);
}

static int check_accel(struct spec *s, struct ward_err *e)
{
	if (s->policy.vm_accel == VM_ACCEL_TCG) {
		if (s->policy.req_isolation == REQUIRE_VM)
			return refuse(e, "require.isolation", "vm.accel: tcg is no hardware isolation, so it is not enough", "take a machine with KVM, or require less");
		s->wall = &emulated;
		return 0;
	}
	/* what KVM needs inside, its device and its requests, no sandbox gets yet: that is said here, not by QEMU */
	if (vm_probe_kvm(e) == 0)
		ward_fail(e, ENOTSUP, "vm.accel: kvm: KVM runs guests here, but this build hands /dev/kvm to no sandbox yet");
	return ward_remedy(e, "--set vm.accel=tcg: emulation, slow and no hardware isolation; or isolation: gvisor");
}

static int want(struct spec *s, struct ward_err *e)
{
	const struct policy *p = &s->policy;

	if (p->res_gpus.len)
		return refuse(e, "resources.gpus", "graphics processors are not given", "take isolation: native or oci");
	if (p->net_ingress.len)
		return refuse(e, "network.ingress", "ports are not published", "take isolation: native");
	if (p->net_host_services.len)
		return refuse(e, "network.host_services", "services of the host have no address there", "take isolation: native");
	return check_accel(s, e);
}

/* Whether the hardware holds the machine is what everybody must know. */
static const char *which(void)
{
	struct ward_err unused = { 0 };

	return vm_probe_kvm(&unused) == 0 ? "a virtual machine (QEMU), only with vm.accel: tcg, which is no hardware isolation: this build hands /dev/kvm to no sandbox yet"
					  : "a virtual machine (QEMU), only with vm.accel: tcg, which is no hardware isolation: KVM does not run guests here";
}

static const char *const stages[] = {
	"machine", "ward-vm starts QEMU: restored from the template that fits, or booted", "copy in", "the workspace and the other trees of the plan are copied into the machine",
	"command", "the machine's init starts the command as uid 1000", "copy out", "changed files of the writable trees are copied back into the sandbox", NULL,
};

#define WALL(text) { .name = "vm", .help = text, .own_root = true, .probe = probe, .which = which, .want = want, .mounts = vm_add_mounts, .words = vm_fill_words, .needs_command = true, .stages = stages }

const struct wall wall_vm = WALL("a virtual machine (QEMU, KVM) inside the native sandbox");
static const struct wall emulated = WALL("an emulated machine (QEMU, tcg) inside the native sandbox: no hardware isolation");
