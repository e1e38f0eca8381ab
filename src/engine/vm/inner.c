/*
 * The vm engine as the inner runtime of a native sandbox. In: the policy. Out: refusals, mounts,
 * words; what runs behind it is ward-vm (src/vm), which starts QEMU in the sandbox and the command
 * in the machine. The machine's memory and processors are QEMU's, so the native sandbox's limits
 * hold them; its connections are made by QEMU in the sandbox's network namespace, so the gateway
 * decides about them; its files are copied from and to what the sandbox shows, so hide, protect and
 * review hold. A break-out of the machine lands in the sandbox that every other command has.
 *
 * kvm is taken only where a guest was seen to run at the processor's own speed, and /dev/kvm is in
 * the sandbox only then; tcg, which isolates by nothing but its own correctness, only where the
 * policy says so, and then it is shown wherever the run is shown.
 */
#include <errno.h>
#include <string.h>

#include "engine/vm/vm.h"
#include "plan/wishes.h"
#include "host/program.h"
#include "host/vm_kvm.h"
#include "state/vm.h"

#define TCG "--set vm.accel=tcg: emulation, slow and no hardware isolation"

static const struct inner emulated, template;

/* An operator who is asked to get a kernel must learn at once that it will not do for KVM. */
static int no_kernel(struct ward_err *e)
{
	const struct ward_err inner = *e;
	struct ward_err kvm = { 0 };

	if (vm_probe_kvm(&kvm) == 0)
		return -e->code;
	ward_fail(e, inner.code, "%s; and %s", inner.why, kvm.why);
	return ward_remedy(e, "%s; then runs need " TCG, inner.remedy);
}

static int probe(struct ward_err *e)
{
	auto_free char *qemu = NULL, *runner = NULL;
	struct vm_boot boot = { 0 };
	int r = vm_find_qemu(&qemu, e);

	if (r == 0)
		r = program_path("ward-vm", &runner, e);
	if (r == 0 && vm_boot_find(&boot, e) < 0)
		r = no_kernel(e);
	vm_boot_clear(&boot);
	return r;
}

static int refuse(struct ward_err *e, const char *field, const char *why, const char *remedy)
{
	ward_fail(e, ENOTSUP, "%s: %s with isolation: vm", field, why);
	return ward_remedy(e, "%s", remedy);
}

/* The sandbox in which a template is made has /dev/kvm and no machine around its command: so that
 * is ward-vm, which makes one, and nothing else. */
static int check_template(struct spec *s, struct ward_err *e)
{
	auto_free char *runner = NULL;
	int r = program_path("ward-vm", &runner, e);

	if (r < 0)
		return r;
	if (s->policy.req_isolation > REQUIRE_NAMESPACES)
		return refuse(e, "require.isolation",
			      "a template is made in a native sandbox, which is weaker than that",
			      "require less for ward vm template build");
	if (!s->argv || !s->argv[0] || strcmp(s->argv[0], runner) != 0 || !s->argv[1] ||
	    strcmp(s->argv[1], "template") != 0)
		return refuse(e, VM_TEMPLATE_PROGRAM,
			      "only ward-vm template may run under this name",
			      "ward run --isolation vm");
	s->inner = &template;
	return 0;
}

static int check_accel(struct spec *s, struct ward_err *e)
{
	bool makes_template = strcmp(program_invocation_short_name, VM_TEMPLATE_PROGRAM) == 0;
	char remedy[sizeof(e->remedy)];

	if (makes_template && s->policy.vm_accel != VM_ACCEL_TCG && check_template(s, e) < 0)
		return -e->code;
	if (s->policy.vm_accel == VM_ACCEL_TCG) {
		if (s->policy.req_isolation == REQUIRE_VM)
			return refuse(
				e, "require.isolation",
				"vm.accel: tcg is no hardware isolation, so it does not suffice",
				"use a machine with KVM, or require less");
		s->inner = &emulated;
		return 0;
	}
	if (vm_probe_kvm(e) == 0)
		return 0;
	memcpy(remedy, e->remedy, sizeof(remedy));
	return ward_remedy(e, "%s%s" TCG "; or isolation: gvisor", remedy, *remedy ? "; or " : "");
}

static int want(struct spec *s, struct ward_err *e)
{
	const struct policy *p = &s->policy;

	if (p->res_gpus.len)
		return refuse(e, "resources.gpus", "GPUs are not supported",
			      "use isolation: native or oci");
	if (p->net_ingress.len && !wishes_drop_ingress(s, "isolation: vm"))
		return refuse(e, "network.ingress", "publishing ports is not supported",
			      "use isolation: native");
	if (p->net_host_services.len)
		return refuse(e, "network.host_services", "host services are not supported",
			      "use isolation: native");
	return check_accel(s, e);
}

/* Whether the hardware holds the machine is what everybody must know. */
static const char *which(void)
{
	struct ward_err unused = { 0 };

	return vm_probe_kvm(&unused) == 0 ? inner_vm.help
					  : "a virtual machine (QEMU), only with vm.accel: tcg (no "
					    "hardware isolation): KVM does not run guests here";
}

/* The same with the reason. */
static void about(struct buf *out)
{
	struct ward_err why = { 0 };

	if (vm_probe_kvm(&why) == 0)
		buf_puts(out, inner_vm.help);
	else
		buf_printf(out,
			   "a virtual machine (QEMU), only with vm.accel: tcg (no hardware "
			   "isolation); %s",
			   why.why);
}

static int no_words(struct plan *p, struct ward_err *e)
{
	(void)p;
	(void)e;
	return 0;
}

static const char *const stages[] = {
	"machine",  "ward-vm starts QEMU from a matching template, or boots it",
	"copy in",  "copy the workspace and the other trees of the plan into the machine",
	"command",  "the machine's init starts the command as uid 1000",
	"copy out", "copy changed files of the writable trees back into the sandbox",
	NULL,
};

#define WALL(text, hardware)                                                                       \
	{                                                                                          \
		.name = "vm", .help = text,                                                        \
		.kvm = (hardware) ? INNER_KVM_MACHINE : INNER_KVM_NONE, .own_memory = true,        \
		.own_root = true, .probe = probe, .which = which, .about = about, .want = want,    \
		.mounts = vm_add_mounts, .words = vm_fill_words, .needs_command = true,            \
		.stages = stages,                                                                  \
		.no_snapshot = "a machine can be saved only before its command starts\nward vm "   \
			       "template build saves a booted machine; isolation: gvisor makes "   \
			       "checkpoints of running commands"                                   \
	}

const struct inner inner_vm =
	WALL("a virtual machine (KVM) in a native sandbox: hardware isolation", true);
static const struct inner emulated =
	WALL("an emulated machine (tcg) in a native sandbox: no hardware isolation", false);

/* The sandbox in which ward-vm makes a template: the command is ward-vm itself. Only ward-vm-tool
 * calls ward by that name; no other program calls it "vm". */
static const struct inner template = { .name = "vm-template",
				       .help = "a virtual machine that becomes a template",
				       .probe = probe,
				       .want = want,
				       .words = no_words,
				       .kvm = INNER_KVM_MACHINE,
				       .needs_command = true };
